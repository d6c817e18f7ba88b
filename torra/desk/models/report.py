"""Which models the desk can ask, which it does ask, and what that costs: for page and command.

A key is told as found or missing, by the name of its variable. Prices are those that the ledger
books by. What a tick cost is read from the ledger of the last 24 hours; what it may cost is the
worst case that is set aside before it. Nothing is asked of a vendor and nothing is changed here.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from agent_config import GATE_ID, MODELS, MODES, TRADER_ID, VENDORS, AgentSettings, route
from agents.contracts import Role
from agents.registry import REVIEWER, TRADER, seated
from instance_database import Database, open_home
from torra.clock import System, iso
from torra.config import Instance, Profile, load_desk
from torra.desk import costs
from torra.desk.costs import DAY, DECIMALS, Row
from torra.desk.memory.experts_past import ExpertsPast
from torra.desk.models import call_words, expected_cost, expert_standing
from torra.desk.models.expected_cost import CostBasis
from torra.desk.models.question import ROLE, newest, profiles_of
from torra.evaluation.standing.track_record import wanted
from torra.home import PRICES, has_database
from torra.providers import call_health
from torra.providers.call_health import ModelHealth
from torra.providers.prices import PriceList
from torra.providers.registry import installed
from torra.providers.vendors.addresses import key_sign
from torra.providers.vendors.table import vendors, warning
from torra.store import ledger as ledger_table
from torra.store import tick_listing
from torra.store.trade.rows import ProviderBlock
from torra.tick.degradation import tick_worst_case
from torra.tick.marks import PROPOSED
from torra.tick.spending import HOUR
from torra.words.deny_reasons import DenyReason

OUTSIDE_TICKS: Final = frozenset((ROLE.id, REVIEWER.id))
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


@dataclass(frozen=True, slots=True)
class _Desk:
    """What a report is made of; `database` is None where nothing was ever stored."""

    database: Database | None
    instances: Sequence[Instance]
    profiles: Mapping[str, Profile]
    prices: PriceList
    environment: Mapping[str, str]
    now: datetime

    def users(self, name: str) -> list[Instance]:
        """Return the instances that use a profile."""
        return [item for item in self.instances if item.profile == name]


def report(
    home: Path,
    database: Database | None,
    instances: Iterable[Instance],
    profiles: Mapping[str, Profile],
    environment: Mapping[str, str],
    past: ExpertsPast | None = None,
) -> Row:
    """Return the report on profiles in use; raises ConfigError for a broken price list.

    `past` is that of a desk that runs here; without it the journal is counted. `vendors`,
    `profiles` and `traders` have a row each; `expected` is the cost by mode and vendor; `standing`
    is there where ticks are told of their seats' past, and nowhere else.
    """
    now = System().real_now().replace(microsecond=0)
    prices = PriceList.read(home / PRICES)
    desk = _Desk(database, list(instances), profiles, prices, environment, now)
    document: Row = {
        "at": iso(now), "currency": "USD", "vendors": _vendors(desk),
        "profiles": [_spending(desk, name, one) for name, one in profiles.items()],
        "traders": [
            _trader(name, {item.id for item in desk.users(name)}, database)
            for name, one in profiles.items()
            if one.agents.consulted()
        ],
        "expected": CostBasis.of(database, desk.instances, prices, environment).by_mode(),
    }  # fmt: skip
    if any(wanted(profile.agents) for profile in profiles.values()):
        if past is None and database is not None:
            moment = database.desk_time() or now
            past = expert_standing.counted(database, desk.instances, profiles, moment)
        document["standing"] = expert_standing.rows(past) if past else []
    return document


def run(home: Path, environment: Mapping[str, str]) -> Row:
    """Return the report of a home; raises ConfigError."""
    instances, profiles = load_desk(home).instances, profiles_of(home)
    with ExitStack() as stack:
        # Opening would create a database, and a question must not leave one behind.
        there = has_database(home)
        database = stack.enter_context(closing(open_home(home))) if there else None
        return report(home, database, instances, profiles, environment)


def table(document: Row) -> str:
    """Return the report for a terminal."""
    cells = expected_cost.cells(document["expected"])
    lines = [line for vendor in document["vendors"] for line in _lines(vendor)]
    lines += ["", *map(spending_line, document["profiles"]), *ladder_lines(document["profiles"])]
    lines += [f"profile {row['profile']}: {trader_line(row)}" for row in document["traders"]]
    if "standing" in document:
        lines.append("")
        lines += map(expert_standing.line, document["standing"])
        lines += [] if document["standing"] else [expert_standing.NOTHING]
    lines += ["", "expected with default models, in USD; influence earned asks for the last column"]
    lines += map("{:<8}{:<18}{:>12}{:>14}{:>14}".format, *zip(*cells, strict=True))
    return "\n".join(lines)


def trader_line(row: Row) -> str:
    """Return how often a trader was asked, of which tier, and what it declined, in a sentence."""
    if not row["openings"]:
        return "the trader was not asked yet: no opening stood"
    of = "1 opening" if row["openings"] == 1 else f"the newest {row['openings']} openings"
    share = f" ({100 * row['escalated'] / row['asked']:.0f} %)" if row["asked"] else ""
    parts = [f"{row['escalated']} on the chief tier{share}", f"{row['declined']} declined"]
    if row["without"]:
        parts.append(f"{row['without']} without its answer")
    return f"of {of} the trader was asked about {row['asked']}: {', '.join(parts)}"


def spending_line(row: Row) -> str:
    """Return what a profile costs, in a sentence."""
    expected = expected_cost.sentence(row["expected"])
    if not row["paid"]:
        if row["expected"]["tick_usd"] is not None:
            expected = f"{row['provider']} is asked, which costs nothing"
        return f"profile {row['profile']}: {expected}"
    far = f"{row['day_so_far_usd']:.4f} USD in 24 hours, {asking_ticks(row['ticks'])}"
    most = f"{row['tick_most_usd']:.4f} USD at most"
    mean = "" if row["tick_usd"] is None else f"{row['tick_usd']:.4f} USD on average, "
    day = "" if row["day_usd"] is None else f"{row['day_usd']:.2f} USD by that average, "
    closes = f"; a day of {row['closes']} closes {day}{row['day_most_usd']:.2f} USD at most"
    return (
        f"profile {row['profile']}: {expected}; {far}; a tick costs {mean}{most}"
        f"{closes if row['closes'] else ''} (ceiling {row['ceiling_usd']:.2f} an hour)"
    )


def ladder_lines(rows: Iterable[Row]) -> list[str]:
    """Return for each profile whose desk never runs why that is, in a sentence."""
    return [f"profile {row['profile']}: {row['never_runs']}" for row in rows if row["never_runs"]]


def asking_ticks(number: int) -> str:
    """Return how many ticks asked a model, in words."""
    return f"{number:,} {'tick' if number == 1 else 'ticks'} that asked"


# --- vendors --------------------------------------------------------------------------------------


def _vendors(desk: _Desk) -> list[Row]:
    database = desk.database
    rests = {
        row.provider: row for row in (ledger_table.provider_blocks(database) if database else ())
    }
    tests = newest(database) if database else {}
    spent = defaultdict[tuple[str, str], list[Row]](list)
    for name in desk.profiles if database else ():
        for row in (
            ledger_table.ledger_sums(database, name, desk.now - DAY, None) if database else ()
        ):
            spent[row["provider"], row["model"]].append(row)
    calls = call_health.health(
        (one.agents for one in desk.profiles.values()),
        partial(ledger_table.newest_calls, database) if database else None,
    )
    health = {(one.vendor, one.model): one for one in calls}
    return [
        _vendor(desk, name, rests.get(name), tests.get(name), [
            _model(desk, ModelHealth(name, model), roles, spent[name, model], health)
            for model, roles in listed(name, desk.profiles).items()
        ])
        for name in VENDORS
    ]  # fmt: skip


def _vendor(
    desk: _Desk, name: str, block: ProviderBlock | None, test: Row | None, models: list[Row]
) -> Row:
    """Return a vendor: its key, its server, its rest, its models and its last test."""
    sign = key_sign(name, desk.environment)
    # A server of one's own may want no key.
    server, key = "the vendor's own server", "missing"
    if not sign.official:
        server = "a server on this machine" if sign.local else "a server of yours"
        key = "not needed"
    if sign.variable:
        key = "wrong" if sign.trouble else "found"
    return {
        "vendor": name,
        "title": TITLES[name],
        "key": key,
        "variables": list(sign.variables),
        "server": server,
        "trouble": sign.trouble,
        "package": "" if installed(name) else vendors()[name].package,
        "used_by": [user for user, one in desk.profiles.items() if name in one.agents.vendors()],
        "rests_until": block.until if block else None,
        "rests_because": block.reason if block else "",
        "models": models,
        "tested": test,
    }


def _model(
    desk: _Desk,
    model: ModelHealth,
    roles: list[str],
    booked: Sequence[Row],
    health: Mapping[tuple[str, str], ModelHealth],
) -> Row:
    """Return a model of a vendor: who asks it, its price in USD for a million tokens, its last day.

    A price is None where nobody lists it; `roles` name profile and role, and are empty for the
    vendor's usual models while no profile asks them. `ending` says when it is shut down, "" for no.
    `health` is how its newest calls went, `answers` the same in words, and `remedy` what to do, ""
    while it does not fail.
    """
    vendor, name = model.vendor, model.model
    local = key_sign(vendor, desk.environment).local
    price = desk.prices.per_million(vendor, name, local=local)
    state = health.get((vendor, name), model)
    return {
        "model": name,
        "roles": roles,
        "input": price and price.input,
        "output": price and price.output,
        "cached": price and price.cached,
        "calls": sum(row["calls"] for row in booked),
        "usd": round(math.fsum(row["usd"] for row in booked), DECIMALS),
        "ending": warning(vendor, name, desk.now.date()) or "",
        "health": asdict(state),
        "answers": call_words.line(state),
        "remedy": call_words.remedy(state, desk.environment),
    }


def listed(vendor: str, profiles: Mapping[str, Profile]) -> dict[str, list[str]]:
    """Return the models that a report lists of a vendor: asked by whom, or the usual ones."""
    models = defaultdict[str, list[str]](list)
    for name, profile in profiles.items():
        for role, model in _routes(profile.agents):
            who, model_name = route(model, profile.agents.provider)
            if who == vendor:
                models[model_name].append(f"{name}: {role}")
    return dict(models) or {model: [] for model in MODELS[vendor].values()}


def traders(agents: AgentSettings) -> list[Role]:
    """Return the trader's role, once for each tier that it may be asked of; [] without one."""
    if not agents.consulted():
        return []
    escalated = replace(TRADER.role, tier="chief", title="trader, escalated")
    return [TRADER.role, escalated] if "chief" in agents.tiers() else [TRADER.role]


def _routes(agents: AgentSettings) -> list[tuple[str, str]]:
    """Return role and model of every seat, of the reviewer, and of who stands in."""
    try:
        roles = [seat.role for seat in seated(agents)]
    except ValueError:
        roles = []
    roles += traders(agents)
    if agents.memory.review == "model":
        roles.append(REVIEWER)
    spare = dict.fromkeys(place for role in roles for place in agents.fallbacks(role.tier))
    return [
        *((role.title, agents.model(role.id, role.tier)) for role in roles),
        *(("stands in", f"{vendor}:{model}") for vendor, model in spare),
    ]


# --- the trader ---------------------------------------------------------------------------------


def _trader(name: str, instances: Collection[str], database: Database | None) -> Row:
    """Return how often a profile's trader was asked, of the newest openings of its instances.

    `escalated` were asked of the chief tier, `declined` it would not make, `without` have no answer
    of it.
    """
    kinds = [
        kind.id
        for kind in (tick_listing.tick_kinds(database) if database else ())
        if kind.instance in instances
        and kind.source not in WITHOUT_TRADER
        and (kind.action in OPENINGS or kind.reason in ALMOST)
    ]
    rows = (
        tick_listing.consultations(database, kinds, limit=OPENINGS_READ)
        if database and kinds
        else []
    )
    return {
        "profile": name,
        "openings": len(rows),
        "asked": sum(bool(row.tier) for row in rows),
        "escalated": sum(row.tier == "chief" for row in rows),
        "declined": sum(row.declined for row in rows),
        "without": sum(bool(row.failure) for row in rows),
    }


# --- money ----------------------------------------------------------------------------------------


def _spending(desk: _Desk, name: str, profile: Profile) -> Row:
    """Return what the ticks of a profile cost: `ticks` of the last 24 hours asked a model.

    `tick_usd` is their mean, None without any; `tick_most_usd` what is set aside for one. A day of
    `closes` closes is expected to cost `day_usd`, and at most `day_most_usd`. `never_runs` says why
    the desk never runs and what to change, "" where it may run. `expected` is what its models are
    expected to cost (torra.desk.models.expected_cost).
    """
    agents, database, users = profile.agents, desk.database, desk.users(name)
    usd, ticks = _day(database, name, desk.now)
    hour = database.spent(name, desk.now - HOUR) if database else 0.0
    most = 0.0
    with suppress(ValueError):  # a desk that cannot be seated asks nobody
        worst = tick_worst_case(desk.prices, agents, costs.local_by(desk.environment))
        most = worst if math.isfinite(worst) else 0.0
    closes = costs.closes_a_day(users)
    mean = usd / ticks if ticks else None
    ceiling = agents.max_api_cost_per_hour
    basis = CostBasis.of(database, users, desk.prices, desk.environment)
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
        "never_runs": costs.never_runs(desk.prices, agents, desk.environment) if most else "",
        "expected": basis.expected(profile),
    }


def _day(database: Database | None, profile: str, now: datetime) -> tuple[float, int]:
    """Return what a profile's ticks cost in 24 hours, and how many of them asked a model.

    A tick is one call of its gate, which is asked once; of a gate that costs nothing the ledger
    knows nothing, then it is one of the role that was asked least.
    """
    booked = ledger_table.ledger_sums(database, profile, now - DAY, None) if database else []
    rows = [row for row in booked if row["role"] not in OUTSIDE_TICKS]
    calls = Counter[str]()
    for row in rows:
        calls[row["role"]] += row["calls"]
    # a trader is asked where an opening would stand, and no tick hangs on it
    calls.pop(TRADER_ID, None)
    usd = math.fsum(row["usd"] for row in rows)
    return usd, calls[GATE_ID] or min(calls.values(), default=0)


# --- a terminal -----------------------------------------------------------------------------------


def _lines(row: Row) -> list[str]:
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
