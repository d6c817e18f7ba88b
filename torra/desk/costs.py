"""The cost report: money spent on models by hour, day, role, model and profile, against ceilings.

`torra cost` prints `run`, the page Cost shows `report` of an open database. Everything is read from
the desk's ledger; nothing is changed, and a home without a database stays without one. A request
that was sent and not answered counts at its worst case and is listed apart as `kept`; so does one
that a crash left reserved. Times are UTC and real, also where the desk's clock runs faster; money
is USD.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict

from agent_config import GATE_ID, VENDORS, AgentSettings
from instance_database import Database, open_home
from torra.clock import System, duration, iso, parse
from torra.config import NAME, Instance, Profile, load_desk, load_profile
from torra.errors import ConfigError
from torra.home import DATABASE, PRICES
from torra.providers import call_health
from torra.providers.prices import PriceList
from torra.providers.vendors.addresses import key_sign
from torra.store import hosted as hosted_table
from torra.store import ledger as ledger_table
from torra.tick.spending import (
    HOUR,
    UNASKED,
    Local,
    degradation_level_name,
    tick_worst_case,
    to_climb,
)

DAY: Final = timedelta(days=1)
DAYS: Final = 30
"""Days that are listed one by one, today included."""

SETTLED_AFTER: Final = timedelta(hours=2)
"""What is older hardly changes any more: an answer that came very late is booked afterwards."""

REMEMBERED: Final = timedelta(minutes=10)
"""How long sums of that age are kept in memory."""

KEPT_SHOWN: Final = 20
DECIMALS: Final = 6
"""Of a sum of money: a call of a small model costs some ten-thousandths of a dollar."""

SHARE_DECIMALS: Final = 4

DAY_AT_MOST: Final = (
    "A day: a tick for every bar at its worst case, but no hour above its ceiling "
    "(agents.max_api_cost_per_hour)."
)

GATE_COST: Final = (
    "The gate's model cost {usd} USD in the last 24 hours. `torra profile set {profile} "
    "agents.gate_call openings` asks it only where a position can open; its rules stand always. "
    "Agents that earn their influence begin anew with it."
)

Row = Mapping[str, Any]
Settings = Callable[[str], Profile | None]
"""Returns a profile by its name; None for one that was booked for once and is gone."""


class CallSums(TypedDict):
    """Sums of calls; those `kept` count at their worst case."""

    usd: float
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    kept_usd: float
    kept_calls: int
    kept_share: float


class RoleSums(CallSums):
    """The sums of a role."""

    role: str


class ModelSums(CallSums):
    """The sums of a model, by VENDOR:MODEL."""

    model: str


class DaySum(TypedDict):
    """What a day cost."""

    day: str
    usd: float
    calls: int


class LadderStep(TypedDict):
    """A level of a profile's ladder, and what must be left of the hour to climb to it."""

    degradation_level: str
    worst_tick_usd: float
    needs_usd: float
    here: bool


class ProfileCost(TypedDict):
    """A profile against its ceiling; of one that is gone only what it spent is known."""

    profile: str
    spent_usd: float
    ceiling_usd: float | None
    left_usd: float | None
    worst_tick_usd: float | None
    free_at: str | None
    oldest_leaves_at: str | None
    ticks_left: int | None
    ticks_an_hour: int | None
    degradation_level: str | None
    degradation_level_since: str | None
    ladder: list[LadderStep]
    booked_ahead: int


class KeptCall(TypedDict):
    """A row of the ledger that stands at its worst case."""

    id: int
    profile: str
    torra_key: str
    stage: str
    role: str
    provider: str
    model: str
    state: str
    usd: float
    at: str
    until: str
    under_way: bool


class Block(TypedDict):
    """A vendor that is not asked for a while."""

    provider: str
    reason: str
    since: str
    until: str


class LateShare(TypedDict):
    """How many of the newest calls were answered too late to be used."""

    calls: int
    of: int


class CostSums(TypedDict):
    """The sums of the last 24 hours, the dearest group first."""

    at: str
    currency: str
    last_hour: CallSums
    today: CallSums
    last_24_hours: CallSums
    projected_day_usd: float
    roles: list[RoleSums]
    models: list[ModelSums]


class CostReport(CostSums):
    """The whole report, as `torra cost --json` prints it."""

    days: list[DaySum]
    profiles: list[ProfileCost]
    blocked: list[Block]
    kept: list[KeptCall]
    late: LateShare


class VendorCost(TypedDict):
    """What a vendor's own models would cost a desk at most, by tick and by day."""

    vendor: str
    tick_usd: float
    day_usd: float


class HomeReport(CostReport):
    """The report of a home; `vendors` is empty where a profile pays a vendor already.

    `proposals` are settings that would save money, each in a few sentences.
    """

    vendors: list[VendorCost]
    proposals: list[str]


def run(home: Path, profile: str | None = None) -> HomeReport:
    """Return the report of a home, or of one profile; raises ConfigError for one not there."""
    now = System().real_now()
    instances = load_desk(home).instances
    named = [item.profile for item in instances]
    # Opening would create a database, and a question must not leave one behind.
    if not (home / DATABASE).exists():
        return _with_vendors(report(home, None, named, now, profile=profile), home, instances)
    database = open_home(home)
    try:
        named += [item.profile for item in hosted_table.hosted_instances(database)]
        told = report(home, database, named, now, profile=profile)
    finally:
        database.close()
    return _with_vendors(told, home, instances)


def _with_vendors(told: CostReport, home: Path, instances: Iterable[Instance]) -> HomeReport:
    asked = {row["profile"] for row in told["profiles"]}
    found = [(item, profile_of(item.profile, home)) for item in instances if item.profile in asked]
    setups = [(item, profile) for item, profile in found if profile is not None]
    pays = told["last_24_hours"]["calls"] or any(one.agents.paid() for _, one in setups)
    return {
        **told,
        "vendors": [] if pays else of_vendors(home, setups),
        "proposals": _proposals(told, setups),
    }


def _proposals(told: CostReport, setups: Iterable[tuple[Instance, Profile]]) -> list[str]:
    """Return which profiles ask the gate's model where nothing can open, while that is paid."""
    usd = next((row["usd"] for row in told["roles"] if row["role"] == GATE_ID), 0.0)
    asking = {
        item.profile
        for item, profile in setups
        if profile.agents.gate_call == profile.agents.call_policy == "always"
        and profile.agents.paid()
    }
    return [
        GATE_COST.format(usd=_money(usd).strip(), profile=name) for name in sorted(asking) if usd
    ]


def of_vendors(home: Path, setups: Iterable[tuple[Instance, Profile]]) -> list[VendorCost]:
    """Return what each vendor would cost some instances at most, the cheapest first.

    A day has a tick for every bar, and no hour of it costs more than its profile's ceiling.
    """
    closes: dict[str, int] = {}
    profiles: dict[str, Profile] = {}
    for item, profile in setups:
        profiles[item.profile] = profile
        closes[item.profile] = closes.get(item.profile, 0) + closes_a_day([item])
    found: dict[str, tuple[float, float]] = {}
    for name, profile in profiles.items():
        most = DAY / HOUR * profile.agents.max_api_cost_per_hour
        for vendor, usd in by_vendor(home, profile.agents).items():
            tick, day = found.get(vendor, (0.0, 0.0))
            found[vendor] = max(tick, usd), day + min(usd * closes[name], most)
    return [
        {"vendor": vendor, "tick_usd": _round(tick), "day_usd": _round(day)}
        for vendor, (tick, day) in sorted(found.items(), key=lambda one: (one[1], one[0]))
    ]


def closes_a_day(instances: Iterable[Instance]) -> int:
    """Return how many bars of some instances close in 24 hours."""
    return sum(DAY // duration(frame) for item in instances for frame in item.timeframes)


def report(
    home: Path,
    database: Database | None,
    named: Iterable[str],
    now: datetime,
    *,
    profile: str | None = None,
    environment: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    past: LedgerSums | None = None,
) -> CostReport:
    """Return the report of a database, or of None: nothing was spent.

    `named` are the profiles of the desk, `now` is real time. `settings` returns profiles as a
    running desk has them; without it they are read from the home. `past` remembers sums between
    reports.
    """
    now = now.replace(microsecond=0)
    booked = ledger_table.ledger_profiles(database) if database else []
    known = _chosen(home, {*named, *booked}, profile)
    found = settings or (lambda name: profile_of(name, home))
    read_from = os.environ if environment is None else environment
    told = _profiles(home, database, known, found, read_from, now)
    past = past or LedgerSums()
    groups = past.groups(database, known, now) if database else []
    blocked: list[Any] = (
        [row.as_json() for row in ledger_table.provider_blocks(database)] if database else []
    )
    return {
        **_sums(now, groups),
        "days": past.days(database, known, now)
        if database
        else [_day(start, 0.0, 0) for start in _starts(now)],
        "profiles": told,
        "blocked": blocked,
        "kept": _kept(database, known, now) if database and _sum(groups)["kept_calls"] else [],
        "late": _late(database, filter(None, map(found, known))),
    }


def table(document: HomeReport) -> str:
    """Return the report for a terminal."""
    lines = [_profile_line(row) for row in document["profiles"]]
    blocked = [
        f"{row['provider']} is not asked until {row['until']}: {row['reason']}"
        for row in document["blocked"]
    ]
    if not document["last_24_hours"]["calls"]:
        empty = "No call to a model was booked in the last 24 hours: nothing was spent."
        return "\n".join([empty, *lines, *blocked, *_vendor_lines(document["vendors"])])
    sums = [
        _sum_line("last hour", document["last_hour"]),
        _sum_line("today (UTC)", document["today"]),
        _sum_line("last 24 hours", document["last_24_hours"]),
        f"{'day, projected':<32}{_money(document['projected_day_usd'])}",
    ]
    parts = [
        *_group("role, last 24 hours", [(row["role"], row) for row in document["roles"]]),
        *_group("model, last 24 hours", [(row["model"], row) for row in document["models"]]),
    ]
    heading = (
        f"{'':<32}{'USD':>12}{'calls':>7}{'tokens in':>11}{'cached':>9}{'out':>9}{'kept USD':>12}"
    )
    return "\n".join([heading, *sums, *parts, "", *lines, *blocked, *document["proposals"]])


# --- figures --------------------------------------------------------------------------------------


def _sums(now: datetime, groups: Sequence[Row]) -> CostSums:
    hour = [row for row in groups if row["in_hour"]]
    today = [row for row in groups if row["in_today"]]
    # The projection takes the last hour for every hour that is left of the day.
    rest = (_midnight(now) + DAY - now) / HOUR
    return {
        "at": iso(now),
        "currency": "USD",
        "last_hour": _sum(hour),
        "today": _sum(today),
        "last_24_hours": _sum(groups),
        "projected_day_usd": _round(_usd(today) + _usd(hour) * rest),
        "roles": [
            {"role": name, **told} for name, told in _grouped(groups, lambda row: str(row["role"]))
        ],
        "models": [
            {"model": name, **told}
            for name, told in _grouped(groups, lambda row: f"{row['provider']}:{row['model']}")
        ],
    }


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _sum(groups: Iterable[Row]) -> CallSums:
    groups = list(groups)
    kept = [row for row in groups if row["kept"]]
    total = _usd(groups)
    return {
        "usd": _round(total),
        "calls": sum(row["calls"] for row in groups),
        "input_tokens": sum(row["input_tokens"] for row in groups),
        "cached_tokens": sum(row["cached_tokens"] for row in groups),
        "output_tokens": sum(row["output_tokens"] for row in groups),
        "kept_usd": _round(_usd(kept)),
        "kept_calls": sum(row["calls"] for row in kept),
        "kept_share": round(_usd(kept) / total, SHARE_DECIMALS) if total else 0.0,
    }


def _grouped(rows: Iterable[Row], of: Callable[[Row], str]) -> list[tuple[str, CallSums]]:
    """Return the sums of each group, the dearest first."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(of(row), []).append(row)
    told = [(group, _sum(members)) for group, members in groups.items()]
    return sorted(told, key=lambda pair: (-pair[1]["usd"], pair[0]))


def _usd(rows: Iterable[Row]) -> float:
    return math.fsum(row["usd"] for row in rows)


def _round(usd: float) -> float:
    return round(usd, DECIMALS)


class LedgerSums:
    """Sums of the ledger; those of the past are kept in memory for REMEMBERED."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, datetime, datetime], tuple[datetime, Any]] = {}

    def groups(self, database: Database, profiles: Iterable[str], now: datetime) -> list[Row]:
        """Return the groups of 24 hours, each with in_today and in_hour."""
        edges = _edges(now)
        ends = [*edges[1:], None]
        return [
            {**row, "in_today": start >= _midnight(now), "in_hour": start >= now - HOUR}
            for name in profiles
            for start, end in zip(edges, ends, strict=True)
            for row in self._sums(database, name, start, end, now)
        ]

    def days(self, database: Database, profiles: Sequence[str], now: datetime) -> list[DaySum]:
        """Return day, usd and calls of each of the last DAYS days (UTC), the oldest first."""
        rows = []
        for start in _starts(now):
            read = partial(ledger_table.ledger_between, database)
            sums = [self._of(read, name, start, start + DAY, now) for name in profiles]
            usd = math.fsum(one for one, _ in sums)
            rows.append(_day(start, usd, sum(calls for _, calls in sums)))
        self._forget(now)
        return rows

    def _sums(
        self, database: Database, name: str, start: datetime, end: datetime | None, now: datetime
    ) -> list[Row]:
        if end is None:
            # The newest stretch still grows, so it is read each time.
            return list(ledger_table.ledger_sums(database, name, start, None))
        return list(self._of(partial(ledger_table.ledger_sums, database), name, start, end, now))

    def _of(
        self,
        read: Callable[[str, datetime, datetime], Any],
        name: str,
        start: datetime,
        end: datetime,
        now: datetime,
    ) -> Any:
        """Return what `read` says of a stretch of the ledger; of the past, from memory."""
        known = self._held.get((name, start, end))
        # abs: the clock may have been set back.
        if known is not None and abs(now - known[0]) < REMEMBERED:
            return known[1]
        found = read(name, start, end)
        # A younger stretch is read each time: late answers are still booked into it.
        if end <= now - SETTLED_AFTER:
            self._held[name, start, end] = (now, found)
        return found

    def _forget(self, now: datetime) -> None:
        held = tuple(self._held.items())  # at once: another request may be adding to it
        self._held = {key: row for key, row in held if abs(now - row[0]) < REMEMBERED}


def _edges(now: datetime) -> list[datetime]:
    """Return where the stretches of 24 hours begin: at each whole hour, and an hour ago."""
    first = (now - DAY).replace(minute=0, second=0, microsecond=0) + HOUR
    # Whole hours: the stretches between them stay the same, so their sums can be kept.
    hours = [first + number * HOUR for number in range(23)]
    return sorted({now - DAY, *hours, now - HOUR, _midnight(now)})


def _starts(now: datetime) -> list[datetime]:
    return [_midnight(now) - back * DAY for back in range(DAYS - 1, -1, -1)]


def _day(start: datetime, usd: float, calls: int) -> DaySum:
    return {"day": iso(start)[:10], "usd": _round(usd), "calls": calls}


def _kept(database: Database, profiles: Iterable[str], now: datetime) -> list[KeptCall]:
    """Return the newest rows of 24 hours that stand at their worst case, newest first.

    `under_way` says that a request may still be answered.
    """
    found = [
        row
        for name in profiles
        for row in ledger_table.ledger_unsettled(database, name, now - DAY, KEPT_SHOWN)
    ]
    newest = sorted(found, key=lambda row: (row["until"], row["id"]), reverse=True)[:KEPT_SHOWN]
    return [
        {
            "id": row["id"],
            "profile": row["profile"],
            "torra_key": row["torra_key"],
            "stage": row["stage"],
            "role": row["role"],
            "provider": row["provider"],
            "model": row["model"],
            "state": row["state"],
            "usd": _round(row["usd"]),
            "at": row["at"],
            "until": row["until"],
            "under_way": row["state"] == "reserved" and parse(row["until"]) > now,
        }
        for row in newest
    ]


def _late(database: Database | None, profiles: Iterable[Profile]) -> LateShare:
    """Return how many of the newest calls to each model were answered too late to be used."""
    read = partial(ledger_table.newest_calls, database) if database else None
    told = call_health.health((one.agents for one in profiles), read)
    late = (one.failed.get("late", 0) for one in told)
    return {"calls": sum(late), "of": sum(one.calls for one in told)}


# --- profiles -------------------------------------------------------------------------------------


def _chosen(home: Path, names: set[str], asked: str | None) -> list[str]:
    """Return the profiles to report on; raises ConfigError for one that is not there."""
    if asked is None:
        return sorted(names)
    if asked not in names:
        if not NAME.fullmatch(asked):
            raise ConfigError(f"--profile {asked}: name a profile, as it stands in desk.json")
        load_profile(asked, home)
    return [asked]


def _profiles(
    home: Path,
    database: Database | None,
    names: Iterable[str],
    settings: Settings,
    environment: Mapping[str, str],
    now: datetime,
) -> list[ProfileCost]:
    prices = PriceList.read(home / PRICES)
    told = []
    for name in names:
        found = settings(name)
        rows = [] if database is None else ledger_table.ledger_rows(database, now - HOUR, name)
        row: ProfileCost = {
            "profile": name,
            "spent_usd": _round(_usd(rows)),
            "ceiling_usd": None,
            "left_usd": None,
            "worst_tick_usd": None,
            "free_at": None,
            "oldest_leaves_at": iso(parse(rows[0]["until"]) + HOUR) if rows else None,
            "ticks_left": None,
            "ticks_an_hour": None,
            "degradation_level": None,
            "degradation_level_since": None,
            "ladder": [],
            "booked_ahead": sum(parse(row["at"]) > now for row in rows),
        }
        if found is not None:
            held = None if database is None else ledger_table.degradation_level_row(database, name)
            worst = _worst(prices, found.agents, environment)
            row = _against(row, rows, found.agents.max_api_cost_per_hour, worst, held, now)
        told.append(row)
    return told


def _against(
    known: ProfileCost,
    rows: Sequence[Row],
    ceiling: float,
    worst: Mapping[str, float],
    held: Row | None,
    now: datetime,
) -> ProfileCost:
    """Return what is known of a profile, and how it stands; `worst` is what each level may cost."""
    spent = _usd(rows)
    left = ceiling - spent
    highest, dearest = next(iter(worst.items()))
    degradation_level = str(held["degradation_level"]) if held else highest
    return {
        **known,
        "ceiling_usd": ceiling,
        "left_usd": _round(max(0.0, left)),
        "worst_tick_usd": _round(dearest),
        "free_at": _free_at(rows, dearest, ceiling, now),
        "ticks_left": _ticks(left, dearest),
        "ticks_an_hour": _ticks(ceiling, dearest),
        "degradation_level": degradation_level,
        "degradation_level_since": held["at"] if held else None,
        "ladder": [
            {
                "degradation_level": name,
                "worst_tick_usd": _round(usd),
                "needs_usd": _round(to_climb(usd, ceiling, spent)),
                "here": name == degradation_level,
            }
            for name, usd in worst.items()
        ],
    }


def local_by(environment: Mapping[str, str]) -> Local:
    """Return what tells whether a vendor's server is one's own, which costs nothing.

    What cannot be read counts as billed: a report may be too high, never too low.
    """
    return lambda vendor: vendor in VENDORS and key_sign(vendor, environment).local


def never_runs(prices: PriceList, agents: AgentSettings, environment: Mapping[str, str]) -> str:
    """Return why a desk never runs, which runs instead and what to change; "" where it may run.

    It never does where a tick of it can cost more than the ceiling of an hour in which nothing was
    spent. Raises ValueError for a desk that cannot be seated.
    """
    worst, ceiling = _worst(prices, agents, environment), agents.max_api_cost_per_hour
    name, most = next(iter(worst.items()))
    if most <= ceiling:
        return ""
    below = next(degradation_level for degradation_level, usd in worst.items() if usd <= ceiling)
    instead = "nobody is asked" if below == UNASKED else f"the {below} desk runs instead"
    remedy = ""
    if math.isfinite(most):
        enough = math.ceil(most * 100) / 100
        remedy = f"raise agents.max_api_cost_per_hour to {enough:.2f} or more, or "
    return (
        f"a tick of the {name} desk can cost {most:.4f} USD, more than the {ceiling:.2f} that an "
        f"hour may cost, so it never runs and {instead}: {remedy}name cheaper models"
    )


def _worst(
    prices: PriceList, agents: AgentSettings, environment: Mapping[str, str]
) -> dict[str, float]:
    """Return the most that a tick costs on each level of a profile's ladder, the highest first."""
    # Names as torra.tick.spending gives them, for `rung_held` is compared with them.
    degradation_levels = {degradation_level_name(each): each for each in agents.ladder()}

    local = local_by(environment)
    told = {name: tick_worst_case(prices, each, local) for name, each in degradation_levels.items()}
    return {**told, UNASKED: 0.0}


_OWN_MODELS: Final[dict[str, Any]] = {
    "quick_think_model": "", "deep_think_model": "", "chief_think_model": "",
    "role_models": {}, "fallback_models": (),
}  # fmt: skip
"""Settings of a profile that names no model: each vendor's default ones answer."""


def by_vendor(home: Path, agents: AgentSettings) -> dict[str, float]:
    """Return the most that a tick of these agents would cost if each vendor answered for them.

    By the vendor's default models and its official address, in US dollars.
    """
    prices = PriceList.read(home / PRICES)
    return {
        vendor: tick_worst_case(
            prices,
            agents.model_copy(update={"provider": vendor} | _OWN_MODELS),
            lambda _: False,
        )
        for vendor in VENDORS
    }


def _ticks(usd: float, worst: float) -> int | None:
    """Return how many whole ticks an amount pays for; None for ticks that cost nothing."""
    return math.floor(max(0.0, usd) / worst) if worst else None


def profile_of(name: str, home: Path) -> Profile | None:
    """Return a profile; None for one that was booked for once and is gone. Raises ConfigError."""
    if not NAME.fullmatch(name):
        return None
    try:
        return load_profile(name, home)
    except ConfigError:
        if (home / "profiles" / f"{name}.json").exists():
            raise
        return None


def _free_at(rows: Sequence[Row], worst: float, ceiling: float, now: datetime) -> str | None:
    """Return from when a whole tick fits under the ceiling; None when it never does.

    Rows come in the order in which they leave the window.
    """
    left = ceiling - _usd(rows)
    if worst <= left:
        return iso(now)
    # A row frees its money one hour after `until`, not after it was booked.
    for row in rows:
        left += row["usd"]
        if worst <= left:
            return iso(parse(row["until"]) + HOUR)
    return None


# --- a terminal -----------------------------------------------------------------------------------


def _money(usd: float) -> str:
    return f"{usd:>12.4f}" if usd >= 1 or not usd else f"{usd:>12.6f}"


def _sum_line(name: str, told: CallSums) -> str:
    share = f" ({told['kept_share']:.0%})" if told["kept_calls"] else ""
    return (
        f"{name:<32}{_money(told['usd'])}{told['calls']:>7}{told['input_tokens']:>11}"
        f"{told['cached_tokens']:>9}{told['output_tokens']:>9}{_money(told['kept_usd'])}"
        f"{share}"
    )


def _group(title: str, rows: Sequence[tuple[str, CallSums]]) -> list[str]:
    return ["", title, *(_sum_line(f"  {name}", row) for name, row in rows)]


def _vendor_lines(rows: Sequence[VendorCost]) -> list[str]:
    """Return what each vendor would cost a desk that pays none."""
    if not rows:
        return []
    return [
        "",
        "With language models it would cost at most (USD):",
        f"{'vendor':<32}{'a tick':>12}{'a day':>12}",
        *(f"{row['vendor']:<32}{_money(row['tick_usd'])}{row['day_usd']:>12.2f}" for row in rows),
        DAY_AT_MOST,
    ]


def _profile_line(row: ProfileCost) -> str:
    spent = f"profile {row['profile']}: {_money(row['spent_usd']).strip()} USD in the last hour"
    left, worst = row["left_usd"], row["worst_tick_usd"]
    if row["ceiling_usd"] is None or left is None or worst is None:
        return f"{spent}; the profile itself is gone"
    parts = [
        f"{spent} of {row['ceiling_usd']:.2f}",
        f"{_money(left).strip()} left",
        f"agent tier {row['degradation_level']}",
    ]
    if worst:
        fits = _free(row["free_at"], now=left >= worst)
        parts += [f"a tick costs {_money(worst).strip()} at most", fits]
    else:
        parts.append("its agents cost nothing")
    if row["booked_ahead"]:
        parts.append(
            f"{row['booked_ahead']} calls were booked by a clock ahead of this one and count on"
        )
    return ", ".join(parts)


def _free(free_at: str | None, *, now: bool) -> str:
    if free_at is None:
        return (
            "more than the ceiling: raise agents.max_api_cost_per_hour, or name the model's price "
            f"in {PRICES}"
        )
    return "which fits" if now else f"which fits from {free_at}"
