"""Which models the desk can ask, which it does ask, and what that costs: for page and command.

A key is told as found or missing, by the name of its variable. Prices are those that the ledger
books by. What a tick cost is read from the ledger of the last 24 hours; what it may cost is the
worst case that is set aside before it. Nothing is asked of a vendor and nothing is changed here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NotRequired, TypedDict

from agent_config import GATE_ID, MODELS, MODES, TRADER_ID, VENDORS, AgentSettings, route
from agents.registry import REVIEWER, TRADER, seated
from instance_database import Database, open_home
from torra.clock import System, iso
from torra.config import Instance, Profile, load_desk
from torra.desk import costs
from torra.desk.memory.experts_past import ExpertsPast
from torra.desk.models import call_words, expected_cost, expert_standing
from torra.desk.models.expected_cost import CostBasis, ExpectedCost, ModeCost
from torra.desk.models.expert_standing import SeatRow
from torra.desk.models.question import ROLE, newest, profiles_of
from torra.home import DATABASE, PRICES
from torra.providers import call_health
from torra.providers.call_health import ModelHealth
from torra.providers.prices import PriceList
from torra.providers.registry import installed
from torra.providers.vendors.addresses import key_sign
from torra.providers.vendors.table import vendors, warning
from torra.store import ledger as ledger_table
from torra.store import tick_listing
from torra.store.trade.rows import ProviderBlock
from torra.tick.marks import PROPOSED
from torra.tick.spending import HOUR, tick_worst_case
from torra.words.deny_reasons import DenyReason

DAY: Final = timedelta(days=1)
DECIMALS: Final = 6

BESIDE: Final = frozenset((ROLE.id, REVIEWER.id))
"""Roles that are asked beside the ticks."""

OPENINGS: Final = frozenset(("OPEN_BUY", "OPEN_SELL", "REVERSE"))
ALMOST: Final = frozenset((PROPOSED, DenyReason.TRADER_DECLINED.value))
"""Actions that open, and reasons of a HOLD that would have."""

WITHOUT_TRADER: Final = frozenset(row.complete for row in MODES.values() if not row.consults)
"""Sources of ticks whose desk asks no trader."""

OPENINGS_READ: Final = 200
"""Newest openings of a profile of which the trader's part is counted."""

TITLES: Final = {
    "anthropic": "Anthropic",
    "google": "Google Gemini",
    "openai_compatible": "OpenAI and compatible",
}


class ModelRow(TypedDict):
    """A model of a vendor: who asks it, its price in USD for a million tokens, its last day.

    A price is None where nobody lists it; `roles` name profile and role, and are empty for the
    vendor's usual models while no profile asks them. `ending` says when it is shut down, "" for no.
    `health` is how its newest calls went (torra.providers.call_health), `answers` the same in
    words, and `remedy` what to do, "" while it does not fail.
    """

    model: str
    roles: list[str]
    input: float | None
    output: float | None
    cached: float | None
    calls: int
    usd: float
    ending: str
    health: dict[str, Any]
    answers: str
    remedy: str


class VendorReport(TypedDict):
    """A vendor: its key, its server, its rest, its models and its last test."""

    vendor: str
    title: str
    key: str
    variables: list[str]
    server: str
    trouble: str
    package: str
    used_by: list[str]
    rests_until: str | None
    rests_because: str
    models: list[ModelRow]
    tested: dict[str, Any] | None


class SpendingReport(TypedDict):
    """What the ticks of a profile cost: `ticks` of the last 24 hours asked a model.

    `tick_usd` is their mean, None without any; `tick_most_usd` what is set aside for one. A day of
    `closes` closes is expected to cost `day_usd`, and at most `day_most_usd`. `never_runs` says why
    the desk never runs and what to change, "" where it may run (torra.desk.costs). `expected` is
    what its models are expected to cost (torra.desk.models.expected_cost).
    """

    profile: str
    provider: str
    paid: bool
    ceiling_usd: float
    spent_hour_usd: float
    ticks: int
    day_so_far_usd: float
    tick_usd: float | None
    tick_most_usd: float
    closes: int
    day_usd: float | None
    day_most_usd: float
    never_runs: str
    expected: ExpectedCost


class TraderReport(TypedDict):
    """How often a profile's trader was asked, of its newest `openings`, made or declined.

    `escalated` were asked of the chief tier, `declined` it would not make, `without` have no answer
    of it.
    """

    profile: str
    openings: int
    asked: int
    escalated: int
    declined: int
    without: int


class ModelReport(TypedDict):
    """The whole report, as `torra models --json` prints it.

    `expected` is by mode and vendor. `standing` is there where ticks are told of their seats' past,
    and nowhere else.
    """

    at: str
    currency: str
    vendors: list[VendorReport]
    profiles: list[SpendingReport]
    expected: list[ModeCost]
    traders: list[TraderReport]
    standing: NotRequired[list[SeatRow]]


def report(
    home: Path,
    database: Database | None,
    instances: Iterable[Instance],
    profiles: Mapping[str, Profile],
    environment: Mapping[str, str],
    past: ExpertsPast | None = None,
) -> ModelReport:
    """Return the report on profiles in use; raises ConfigError for a broken price list.

    `past` is that of a desk that runs here; without it the journal is counted.
    """
    now = System().real_now().replace(microsecond=0)
    prices = PriceList.read(home / PRICES)
    rests = {
        row.provider: row for row in (ledger_table.provider_blocks(database) if database else ())
    }
    tested = newest(database) if database else {}
    spent = _by_model(database, profiles, now)
    read = partial(ledger_table.newest_calls, database) if database else None
    models = call_health.health((one.agents for one in profiles.values()), read)
    heard = {(one.vendor, one.model): one for one in models}
    vendors = [
        _vendor(
            name, profiles, prices, environment, spent, heard, rests.get(name), tested.get(name),
            now,
        )
        for name in VENDORS
    ]  # fmt: skip
    every = list(instances)
    told = [
        _spending(name, one, [item for item in every if item.profile == name], database, prices,
                  environment, now)
        for name, one in profiles.items()
    ]  # fmt: skip
    traders = [
        _trader(name, {item.id for item in every if item.profile == name}, database)
        for name, one in profiles.items()
        if one.agents.consulted()
    ]
    found: ModelReport = {
        "at": iso(now), "currency": "USD", "vendors": vendors, "profiles": told, "traders": traders,
        "expected": CostBasis.of(database, every, prices, environment).by_mode(),
    }  # fmt: skip
    if expert_standing.asked_for(profiles.values()):
        found["standing"] = []
        if past is not None:
            found["standing"] = expert_standing.rows(past)
        elif database is not None:
            moment = database.desk_time() or now
            found["standing"] = expert_standing.counted(database, every, profiles, moment)
    return found


def run(home: Path, environment: Mapping[str, str]) -> ModelReport:
    """Return the report of a home; raises ConfigError."""
    instances, profiles = load_desk(home).instances, profiles_of(home)
    # Opening would create a database, and a question must not leave one behind.
    if not (home / DATABASE).exists():
        return report(home, None, instances, profiles, environment)
    database = open_home(home)
    try:
        return report(home, database, instances, profiles, environment)
    finally:
        database.close()


def table(document: ModelReport) -> str:
    """Return the report for a terminal."""
    cells = expected_cost.cells(document["expected"])
    return (
        "\n".join(line for vendor in document["vendors"] for line in _lines(vendor))
        + "\n\n"
        + ("\n".join(spending_line(row) for row in document["profiles"]))
        + "".join(f"\n{line}" for line in ladder_lines(document["profiles"]))
        + "".join(f"\nprofile {row['profile']}: {trader_line(row)}" for row in document["traders"])
        + "".join(f"\n{line}" for line in _standing(document))
        + "\n\nexpected with default models, in USD; influence earned asks for the last column\n"
        + "\n".join(map("{:<8}{:<18}{:>12}{:>14}{:>14}".format, *zip(*cells, strict=True)))
    )


def _standing(document: ModelReport) -> list[str]:
    """Return how often the seats of swarms were right, a sentence each; none where none is told."""
    told = document.get("standing")
    if told is None:
        return []
    return ["", *map(expert_standing.line, told)] if told else ["", expert_standing.NOTHING]


def trader_line(row: TraderReport) -> str:
    """Return how often a trader was asked, of which tier, and what it declined, in a sentence."""
    if not row["openings"]:
        return "the trader was not asked yet: no opening stood"
    of = "1 opening" if row["openings"] == 1 else f"the newest {row['openings']} openings"
    share = f" ({100 * row['escalated'] / row['asked']:.0f} %)" if row["asked"] else ""
    parts = [f"{row['escalated']} on the chief tier{share}", f"{row['declined']} declined"]
    if row["without"]:
        parts.append(f"{row['without']} without its answer")
    return f"of {of} the trader was asked about {row['asked']}: {', '.join(parts)}"


def spending_line(row: SpendingReport) -> str:
    """Return what a profile costs, in a sentence."""
    expected = expected_cost.sentence(row["expected"])
    if not row["paid"]:
        if row["expected"]["tick_usd"] is not None:
            expected = f"{row['provider']} is asked, which costs nothing"
        return f"profile {row['profile']}: {expected}"
    far = f"{row['day_so_far_usd']:.4f} USD in 24 hours, {ticks_that_asked(row['ticks'])}"
    most = f"{row['tick_most_usd']:.4f} USD at most"
    mean = "" if row["tick_usd"] is None else f"{row['tick_usd']:.4f} USD on average, "
    day = "" if row["day_usd"] is None else f"{row['day_usd']:.2f} USD by that average, "
    closes = f"; a day of {row['closes']} closes {day}{row['day_most_usd']:.2f} USD at most"
    return (
        f"profile {row['profile']}: {expected}; {far}; a tick costs {mean}{most}"
        f"{closes if row['closes'] else ''} (ceiling {row['ceiling_usd']:.2f} an hour)"
    )


def ladder_lines(rows: Iterable[SpendingReport]) -> list[str]:
    """Return for each profile whose desk never runs why that is, in a sentence."""
    return [f"profile {row['profile']}: {row['never_runs']}" for row in rows if row["never_runs"]]


def ticks_that_asked(number: int) -> str:
    """Return how many ticks asked a model, in words."""
    return f"{number:,} {'tick' if number == 1 else 'ticks'} that asked"


# --- vendors --------------------------------------------------------------------------------------


def _vendor(
    name: str,
    profiles: Mapping[str, Profile],
    prices: PriceList,
    environment: Mapping[str, str],
    spent: Mapping[tuple[str, str], tuple[float, int]],
    heard: Mapping[tuple[str, str], ModelHealth],
    rest: ProviderBlock | None,
    tested: dict[str, Any] | None,
    now: datetime,
) -> VendorReport:
    sign = key_sign(name, environment)
    models: list[ModelRow] = []
    for model, roles in listed(name, profiles).items():
        price = prices.per_million(name, model, local=sign.local)
        usd, calls = spent.get((name, model), (0.0, 0))
        one = heard.get((name, model), ModelHealth(name, model))
        models.append(
            {
                "model": model,
                "roles": roles,
                "input": None if price is None else price.input,
                "output": None if price is None else price.output,
                "cached": None if price is None else price.cached,
                "calls": calls,
                "usd": round(usd, DECIMALS),
                "ending": warning(name, model, now.date()) or "",
                "health": asdict(one),
                "answers": call_words.line(one),
                "remedy": call_words.remedy(one, environment),
            }
        )
    server = "the vendor's own server"
    if not sign.official:
        server = "a server on this machine" if sign.local else "a server of yours"
    return {
        "vendor": name,
        "title": TITLES[name],
        "key": _key(sign.variable, sign.trouble, official=sign.official),
        "variables": list(sign.variables),
        "server": server,
        "trouble": sign.trouble,
        "package": "" if installed(name) else vendors()[name].package,
        "used_by": [found for found, one in profiles.items() if name in one.agents.vendors()],
        "rests_until": rest.until if rest else None,
        "rests_because": rest.reason if rest else "",
        "models": models,
        "tested": tested,
    }


def _key(found: str, trouble: str, *, official: bool) -> str:
    """Return found, missing, wrong, or not needed: a server of one's own may want none."""
    if found:
        return "wrong" if trouble else "found"
    return "missing" if official else "not needed"


def listed(vendor: str, profiles: Mapping[str, Profile]) -> dict[str, list[str]]:
    """Return the models that a report lists of a vendor: asked by whom, or the usual ones."""
    asked = _asked(vendor, profiles)
    return asked or {model: [] for model in dict.fromkeys(MODELS[vendor].values())}


def _asked(vendor: str, profiles: Mapping[str, Profile]) -> dict[str, list[str]]:
    """Return the models of a vendor that profiles ask, each with who asks it."""
    found: dict[str, list[str]] = {}
    for name, profile in profiles.items():
        for role, model in _routes(profile.agents):
            if route(model, profile.agents.provider)[0] == vendor:
                model_name = route(model, profile.agents.provider)[1]
                found.setdefault(model_name, []).append(f"{name}: {role}")
    return found


def _routes(agents: AgentSettings) -> list[tuple[str, str]]:
    """Return role and model of every seat, of the reviewer, and of who stands in."""
    try:
        roles = [seat.role for seat in seated(agents)]
    except ValueError:
        roles = []
    if agents.consulted():
        roles.append(TRADER.role)
        if "chief" in agents.tiers():
            roles.append(replace(TRADER.role, tier="chief", title="trader, escalated"))
    if agents.memory.review == "model":
        roles.append(REVIEWER)
    told = [(role.title, agents.model(role.id, role.tier)) for role in roles]
    spare = dict.fromkeys(found for role in roles for found in agents.fallbacks(role.tier))
    return [*told, *(("stands in", f"{vendor}:{model}") for vendor, model in spare)]


def _by_model(
    database: Database | None, profiles: Mapping[str, Profile], now: datetime
) -> dict[tuple[str, str], tuple[float, int]]:
    """Return USD and calls of 24 hours by vendor and model."""
    found: dict[tuple[str, str], tuple[float, int]] = {}
    for name in profiles if database else ():
        for row in ledger_table.ledger_sums(database, name, now - DAY, None) if database else ():
            key = (row["provider"], row["model"])
            usd, calls = found.get(key, (0.0, 0))
            found[key] = (usd + row["usd"], calls + row["calls"])
    return found


# --- the trader ---------------------------------------------------------------------------------


def _trader(name: str, instances: Collection[str], database: Database | None) -> TraderReport:
    """Return how often a profile's trader was asked, of the newest openings of its instances."""
    kinds = tick_listing.tick_kinds(database) if database else []
    wanted = [
        kind.id
        for kind in kinds
        if kind.instance in instances
        and kind.source not in WITHOUT_TRADER
        and (kind.action in OPENINGS or kind.reason in ALMOST)
    ]
    told = (
        tick_listing.consultations(database, wanted, limit=OPENINGS_READ)
        if database and wanted
        else []
    )
    return {
        "profile": name,
        "openings": len(told),
        "asked": sum(bool(one.tier) for one in told),
        "escalated": sum(one.tier == "chief" for one in told),
        "declined": sum(one.declined for one in told),
        "without": sum(bool(one.failure) for one in told),
    }


# --- money ----------------------------------------------------------------------------------------


def _spending(
    name: str,
    profile: Profile,
    users: Sequence[Instance],
    database: Database | None,
    prices: PriceList,
    environment: Mapping[str, str],
    now: datetime,
) -> SpendingReport:
    agents, local = profile.agents, costs.local_by(environment)
    usd, ticks = _day(database, name, now)
    hour = database.spent(name, now - HOUR) if database else 0.0
    most = _worst(prices, agents, local)
    closes = costs.closes_a_day(users)
    mean = usd / ticks if ticks else None
    ceiling = agents.max_api_cost_per_hour
    return {
        "profile": name,
        "provider": agents.provider,
        "paid": bool(most),
        "ceiling_usd": ceiling,
        "spent_hour_usd": round(hour, DECIMALS),
        "ticks": ticks,
        "day_so_far_usd": round(usd, DECIMALS),
        "tick_usd": None if mean is None else round(mean, DECIMALS),
        "tick_most_usd": round(most, DECIMALS),
        "closes": closes,
        "day_usd": None if mean is None else round(min(mean * closes, 24 * ceiling), DECIMALS),
        "day_most_usd": round(min(most * closes, 24 * ceiling), DECIMALS),
        "never_runs": costs.never_runs(prices, agents, environment) if most else "",
        "expected": CostBasis.of(database, users, prices, environment).expected(profile),
    }


def _day(database: Database | None, profile: str, now: datetime) -> tuple[float, int]:
    """Return what a profile's ticks cost in 24 hours, and how many of them asked a model.

    A tick is one call of its gate, which is asked once; of a gate that costs nothing the ledger
    knows nothing, then it is one of the role that was asked least.
    """
    booked = ledger_table.ledger_sums(database, profile, now - DAY, None) if database else []
    rows = [row for row in booked if row["role"] not in BESIDE]
    calls: dict[str, int] = {}
    for row in rows:
        calls[row["role"]] = calls.get(row["role"], 0) + row["calls"]
    usd = math.fsum(row["usd"] for row in rows)
    # a trader is asked where an opening would stand, and no tick hangs on it
    calls.pop(TRADER_ID, None)
    return usd, calls.get(GATE_ID) or min(calls.values(), default=0)


def _worst(prices: PriceList, agents: AgentSettings, local: Any) -> float:
    try:
        found = tick_worst_case(prices, agents, local)
    except ValueError:  # a desk that cannot be seated asks nobody
        return 0.0
    return found if math.isfinite(found) else 0.0


# --- a terminal -----------------------------------------------------------------------------------


def _lines(row: VendorReport) -> list[str]:
    names = " or ".join(row["variables"])
    users = ", ".join(row["used_by"]) or "no profile"
    lines = [f"{row['vendor']}: key {row['key']} ({names}), {row['server']}, used by {users}"]
    if row["trouble"]:
        lines.append(f"  {row['trouble']}")
    if row["package"]:
        lines.append(f"  the package {row['package']} is not installed")
    if row["rests_until"]:
        lines.append(f"  rests until {row['rests_until']}: {row['rests_because']}")
    for model in row["models"]:
        price = "no price known, booked at the dearest"
        if model["input"] is not None and model["output"] is not None:
            price = f"{model['input']:g} in, {model['output']:g} out, USD a million tokens"
        who = "; ".join(model["roles"]) or "asked by nobody"
        spent = f", {model['usd']:.4f} USD in 24 hours" if model["calls"] else ""
        mend = f"  -> {model['remedy']}" if model["remedy"] else ""
        lines.append(f"  {model['model']}: {price}; {who}{spent}; {model['answers']}{mend}")
    return lines
