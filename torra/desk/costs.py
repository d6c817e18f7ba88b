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
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from agent_config import GATE_ID, VENDORS, AgentSettings
from instance_database import Database, open_home
from torra.clock import System, duration, iso, parse
from torra.config import NAME, Instance, Profile, load_desk, load_profile
from torra.errors import ConfigError
from torra.home import PRICES, has_database
from torra.providers import call_health
from torra.providers.prices import PriceList
from torra.providers.vendors.addresses import key_sign
from torra.store import hosted as hosted_table
from torra.store import ledger as ledger_table
from torra.tick.degradation import UNASKED, Local, degradation_level_name, tick_worst_case, to_climb
from torra.tick.spending import HOUR

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

Row = dict[str, Any]
"""A row of the ledger, or a part of the report, by name; USD are rounded to DECIMALS."""

Settings = Callable[[str], Profile | None]
"""Returns a profile by its name; None for one that was booked for once and is gone."""

FOREVER: Final = parse("9000-01-01")
"""The end of the newest stretch: rows of a clock that runs ahead count too."""

TOKENS: Final = ("input_tokens", "cached_tokens", "output_tokens")
KEPT_FIELDS: Final = (
    "id", "profile", "torra_key", "stage", "role", "provider", "model", "state", "usd", "at",
    "until",
)  # fmt: skip

GONE: Final = dict.fromkeys(
    ("ceiling_usd", "left_usd", "worst_tick_usd", "free_at", "ticks_left", "ticks_an_hour",
     "degradation_level", "degradation_level_since")
)  # fmt: skip
"""What is not known of a profile that is gone."""


def run(home: Path, profile: str | None = None) -> Row:
    """Return the report of a home, or of one profile; raises ConfigError for one not there.

    Beside what `report` returns: `vendors`, what each would cost a desk whose profiles pay none;
    `proposals`, settings that would save money, each in a few sentences.
    """
    now = System().real_now()
    instances = load_desk(home).instances
    names = [item.profile for item in instances]
    # Opening would create a database, and a question must not leave one behind.
    with ExitStack() as stack:
        database = None
        if has_database(home):
            database = stack.enter_context(closing(open_home(home)))
            names += [item.profile for item in hosted_table.hosted_instances(database)]
        document = report(home, database, names, now, profile=profile)
    chosen = {row["profile"] for row in document["profiles"]}
    pairs = [(item, profile_of(item.profile, home)) for item in instances if item.profile in chosen]
    setups = [(item, profile) for item, profile in pairs if profile is not None]
    pays = document["last_24_hours"]["calls"] or any(one.agents.paid() for _, one in setups)
    return {
        **document,
        "vendors": [] if pays else of_vendors(home, setups),
        "proposals": _proposals(document, setups),
    }


def _proposals(document: Row, setups: Iterable[tuple[Instance, Profile]]) -> list[str]:
    """Return which profiles ask the gate's model where nothing can open, while that is paid."""
    usd = next((row["usd"] for row in document["roles"] if row["role"] == GATE_ID), 0.0)
    names = {
        item.profile
        for item, profile in setups
        if profile.agents.gate_call == profile.agents.call_policy == "always"
        and profile.agents.paid()
    }
    return [GATE_COST.format(usd=money(usd), profile=name) for name in sorted(names) if usd]


def of_vendors(home: Path, setups: Iterable[tuple[Instance, Profile]]) -> list[Row]:
    """Return what each vendor would cost some instances at most, the cheapest first.

    A day has a tick for every bar, and no hour of it costs more than its profile's ceiling.
    """
    closes = defaultdict[str, int](int)
    profiles: dict[str, Profile] = {}
    for item, profile in setups:
        profiles[item.profile] = profile
        closes[item.profile] += closes_a_day([item])
    tick, day = defaultdict[str, float](float), defaultdict[str, float](float)
    for name, profile in profiles.items():
        most = DAY / HOUR * profile.agents.max_api_cost_per_hour
        for vendor, usd in by_vendor(home, profile.agents).items():
            tick[vendor] = max(tick[vendor], usd)
            day[vendor] += min(usd * closes[name], most)
    return [
        {"vendor": name, "tick_usd": _round(tick[name]), "day_usd": _round(day[name])}
        for name in sorted(day, key=lambda name: (tick[name], day[name], name))
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
) -> Row:
    """Return the report of a database, or of None: nothing was spent.

    `named` are the profiles of the desk, `now` is real time. `settings` returns profiles as a
    running desk has them; without it they are read from the home. `past` remembers sums between
    reports. The sums of `last_hour`, `today` and `last_24_hours`, of each of `roles` and of
    `models` (VENDOR:MODEL, the dearest first) are those of `_sum`; `late` counts the newest calls
    that were answered too late to be used; `blocked` are vendors that are not asked for a while.
    """
    now = now.replace(microsecond=0)
    past = past or LedgerSums()
    booked = ledger_table.ledger_profiles(database) if database else []
    names = _chosen(home, {*named, *booked}, profile)
    settings = settings or (lambda name: profile_of(name, home))
    profiles = {name: settings(name) for name in names}
    groups = past.groups(database, names, now) if database else []
    hour = [row for row in groups if row["in_hour"]]
    today = [row for row in groups if row["in_today"]]
    # The projection takes the last hour for every hour that is left of the day.
    rest = (_midnight(now) + DAY - now) / HOUR
    read = partial(ledger_table.newest_calls, database) if database else None
    blocks = ledger_table.provider_blocks(database) if database else []
    calls = call_health.health((one.agents for one in profiles.values() if one), read)
    return {
        "at": iso(now),
        "currency": "USD",
        "last_hour": _sum(hour),
        "today": _sum(today),
        "last_24_hours": _sum(groups),
        "projected_day_usd": _round(_usd(today) + _usd(hour) * rest),
        "roles": _grouped("role", groups),
        "models": _grouped("model", [
            {**row, "model": f"{row['provider']}:{row['model']}"} for row in groups
        ]),
        "days": past.days(database, names, now),
        "profiles": _profiles(home, database, profiles, environment, now),
        "blocked": [row.as_json() for row in blocks],
        "kept": _unsettled(database, names, now) if database and _sum(groups)["kept_calls"] else [],
        "late": {
            "calls": sum(one.failed.get("late", 0) for one in calls),
            "of": sum(one.calls for one in calls),
        },
    }  # fmt: skip


def table(document: Row) -> str:
    """Return the report for a terminal."""
    lines = [_profile_line(row) for row in document["profiles"]]
    lines += [
        f"{row['provider']} is not asked until {row['until']}: {row['reason']}"
        for row in document["blocked"]
    ]
    if not document["last_24_hours"]["calls"]:
        empty = "No call to a model was booked in the last 24 hours: nothing was spent."
        return "\n".join([empty, *lines, *_vendor_lines(document["vendors"])])
    return "\n".join([
        f"{'':<32}{'USD':>12}{'calls':>7}{'tokens in':>11}{'cached':>9}{'out':>9}{'kept USD':>12}",
        _sum_line("last hour", document["last_hour"]),
        _sum_line("today (UTC)", document["today"]),
        _sum_line("last 24 hours", document["last_24_hours"]),
        f"{'day, projected':<32}{money(document['projected_day_usd']):>12}",
        "", "role, last 24 hours",
        *(_sum_line(f"  {row['role']}", row) for row in document["roles"]),
        "", "model, last 24 hours",
        *(_sum_line(f"  {row['model']}", row) for row in document["models"]),
        "", *lines, *document["proposals"],
    ])  # fmt: skip


# --- figures --------------------------------------------------------------------------------------


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _sum(groups: Sequence[Row]) -> Row:
    """Return sums of calls; those `kept` count at their worst case."""
    kept = [row for row in groups if row["kept"]]
    total = _usd(groups)
    return {
        "usd": _round(total),
        "calls": sum(row["calls"] for row in groups),
        **{name: sum(row[name] for row in groups) for name in TOKENS},
        "kept_usd": _round(_usd(kept)),
        "kept_calls": sum(row["calls"] for row in kept),
        "kept_share": round(_usd(kept) / total, SHARE_DECIMALS) if total else 0.0,
    }


def _grouped(name: str, rows: Iterable[Row]) -> list[Row]:
    """Return the sums of each group, the dearest first."""
    groups = defaultdict[str, list[Row]](list)
    for row in rows:
        groups[row[name]].append(row)
    sums = [{name: group, **_sum(members)} for group, members in groups.items()]
    return sorted(sums, key=lambda row: (-row["usd"], row[name]))


def _usd(rows: Iterable[Row]) -> float:
    return math.fsum(row["usd"] for row in rows)


def _round(usd: float) -> float:
    return round(usd, DECIMALS)


class LedgerSums:
    """Sums of the ledger; those of the past stay in memory for REMEMBERED."""

    def __init__(self) -> None:
        self._past: dict[tuple[str, datetime, datetime], tuple[datetime, Any]] = {}

    def groups(self, database: Database, profiles: Iterable[str], now: datetime) -> list[Row]:
        """Return the groups of 24 hours, each with in_today and in_hour."""
        ends = [*_edges(now), FOREVER]
        return [
            {**row, "in_today": start >= _midnight(now), "in_hour": start >= now - HOUR}
            for name in profiles
            for start, end in pairwise(ends)
            for row in self._read(
                partial(ledger_table.ledger_sums, database), name, start, end, now
            )
        ]

    def days(self, database: Database | None, profiles: Sequence[str], now: datetime) -> list[Row]:
        """Return day, usd and calls of each of the last DAYS days (UTC), the oldest first."""
        rows = []
        for back in range(DAYS - 1, -1, -1):
            start = _midnight(now) - back * DAY
            sums = [
                self._read(
                    partial(ledger_table.ledger_between, database), name, start, start + DAY, now
                )
                for name in profiles
                if database
            ]
            usd, calls = math.fsum(usd for usd, _ in sums), sum(calls for _, calls in sums)
            rows.append({"day": iso(start)[:10], "usd": _round(usd), "calls": calls})
        past = tuple(self._past.items())  # at once: another request may be adding to it
        self._past = {key: row for key, row in past if abs(now - row[0]) < REMEMBERED}
        return rows

    def _read(
        self, query: Callable[[str, datetime, datetime], Any], name: str, start: datetime,
        end: datetime, now: datetime,
    ) -> Any:  # fmt: skip
        """Return what `query` says of a stretch of the ledger; of the past, from memory."""
        read_at, answer = self._past.get((name, start, end), (None, None))
        # abs: the clock may have been set back.
        if read_at is None or abs(now - read_at) >= REMEMBERED:
            answer = query(name, start, end)
            # A younger stretch is read each time: late answers are still booked into it.
            if end <= now - SETTLED_AFTER:
                self._past[name, start, end] = (now, answer)
        return answer


def _edges(now: datetime) -> list[datetime]:
    """Return where the stretches of 24 hours begin: at each whole hour, and an hour ago."""
    first = (now - DAY).replace(minute=0, second=0, microsecond=0) + HOUR
    # Whole hours: the stretches between them stay the same, so their sums can be kept.
    hours = [first + number * HOUR for number in range(23)]
    return sorted({now - DAY, *hours, now - HOUR, _midnight(now)})


def _unsettled(database: Database, profiles: Iterable[str], now: datetime) -> list[Row]:
    """Return the newest rows of 24 hours that stand at their worst case, newest first.

    `under_way` says that a request may still be answered.
    """
    rows = [
        row
        for name in profiles
        for row in ledger_table.ledger_unsettled(database, name, now - DAY, KEPT_SHOWN)
    ]
    newest = sorted(rows, key=lambda row: (row["until"], row["id"]), reverse=True)[:KEPT_SHOWN]
    return [
        {name: row[name] for name in KEPT_FIELDS}
        | {
            "usd": _round(row["usd"]),
            "under_way": row["state"] == "reserved" and parse(row["until"]) > now,
        }
        for row in newest
    ]


# --- profiles -------------------------------------------------------------------------------------


def _chosen(home: Path, names: set[str], profile: str | None) -> list[str]:
    """Return the profiles to report on; raises ConfigError for one that is not there."""
    if profile is None:
        return sorted(names)
    if profile not in names:
        if not NAME.fullmatch(profile):
            raise ConfigError(f"--profile {profile}: name a profile, as it stands in desk.json")
        load_profile(profile, home)
    return [profile]


def _profiles(
    home: Path,
    database: Database | None,
    profiles: Mapping[str, Profile | None],
    environment: Mapping[str, str] | None,
    now: datetime,
) -> list[Row]:
    """Return each profile against its ceiling; of one that is gone only what it spent is known."""
    prices = PriceList.read(home / PRICES)
    profile_rows = []
    for name, profile in profiles.items():
        rows = ledger_table.ledger_rows(database, now - HOUR, name) if database else []
        row: Row = {
            "profile": name,
            "spent_usd": _round(_usd(rows)),
            **GONE,
            "ladder": [],
            "oldest_leaves_at": iso(parse(rows[0]["until"]) + HOUR) if rows else None,
            "booked_ahead": sum(parse(row["at"]) > now for row in rows),
        }
        if profile is not None:
            level = (database and ledger_table.degradation_level_row(database, name)) or {}
            worst = worst_ticks(
                prices, profile.agents, os.environ if environment is None else environment
            )
            row |= _standing(rows, profile.agents.max_api_cost_per_hour, worst, level, now)
        profile_rows.append(row)
    return profile_rows


def _standing(
    rows: Sequence[Row], ceiling: float, worst: Mapping[str, float], level: Row, now: datetime
) -> Row:
    """Return how a profile stands against its ceiling; `worst` is what each level may cost.

    `ladder` has the levels, and what must be left of the hour to climb to each.
    """
    spent = _usd(rows)
    left = ceiling - spent
    highest, dearest = next(iter(worst.items()))
    name = str(level.get("degradation_level", highest))
    return {
        "ceiling_usd": ceiling,
        "left_usd": _round(max(0.0, left)),
        "worst_tick_usd": _round(dearest),
        "free_at": _free_at(rows, dearest, left, now),
        # None for ticks that cost nothing.
        "ticks_left": math.floor(max(0.0, left) / dearest) if dearest else None,
        "ticks_an_hour": math.floor(max(0.0, ceiling) / dearest) if dearest else None,
        "degradation_level": name,
        "degradation_level_since": level.get("at"),
        "ladder": [
            {
                "degradation_level": step,
                "worst_tick_usd": _round(usd),
                "needs_usd": _round(to_climb(usd, ceiling, spent)),
                "here": step == name,
            }
            for step, usd in worst.items()
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
    worst, ceiling = worst_ticks(prices, agents, environment), agents.max_api_cost_per_hour
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


def worst_ticks(
    prices: PriceList, agents: AgentSettings, environment: Mapping[str, str]
) -> dict[str, float]:
    """Return the most that a tick costs on each level of a profile's ladder, the highest first."""
    local = local_by(environment)
    # Names as torra.tick.spending gives them, for a stored level is compared with them.
    return {
        degradation_level_name(each): tick_worst_case(prices, each, local)
        for each in agents.ladder()
    } | {UNASKED: 0.0}


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


def _free_at(rows: Sequence[Row], worst: float, left: float, now: datetime) -> str | None:
    """Return from when a whole tick fits under the ceiling; None when it never does.

    Rows come in the order in which they leave the window.
    """
    if worst <= left:
        return iso(now)
    # A row frees its money one hour after `until`, not after it was booked.
    for row in rows:
        left += row["usd"]
        if worst <= left:
            return iso(parse(row["until"]) + HOUR)
    return None


# --- a terminal -----------------------------------------------------------------------------------


def money(usd: float) -> str:
    """Return an amount as text; a small one has six decimals."""
    return f"{usd:.4f}" if usd >= 1 or not usd else f"{usd:.6f}"


def _sum_line(name: str, row: Row) -> str:
    share = f" ({row['kept_share']:.0%})" if row["kept_calls"] else ""
    return (
        f"{name:<32}{money(row['usd']):>12}{row['calls']:>7}{row['input_tokens']:>11}"
        f"{row['cached_tokens']:>9}{row['output_tokens']:>9}{money(row['kept_usd']):>12}{share}"
    )


def _vendor_lines(rows: Sequence[Row]) -> list[str]:
    """Return what each vendor would cost a desk that pays none."""
    lines = [
        "",
        "With language models it would cost at most (USD):",
        f"{'vendor':<32}{'a tick':>12}{'a day':>12}",
        *(f"{row['vendor']:<32}{money(row['tick_usd']):>12}{row['day_usd']:>12.2f}"
          for row in rows),
        DAY_AT_MOST,
    ]  # fmt: skip
    return lines if rows else []


def _profile_line(row: Row) -> str:
    spent = f"profile {row['profile']}: {money(row['spent_usd'])} USD in the last hour"
    left, worst = row["left_usd"], row["worst_tick_usd"]
    if row["ceiling_usd"] is None:
        return f"{spent}; the profile itself is gone"
    parts = [
        f"{spent} of {row['ceiling_usd']:.2f}",
        f"{money(left)} left",
        f"agent tier {row['degradation_level']}",
    ]
    if not worst:
        parts.append("its agents cost nothing")
    elif row["free_at"] is None:
        parts += [
            f"a tick costs {money(worst)} at most",
            "more than the ceiling: raise agents.max_api_cost_per_hour, or name the model's price "
            f"in {PRICES}",
        ]
    else:
        fits = "which fits" if left >= worst else f"which fits from {row['free_at']}"
        parts += [f"a tick costs {money(worst)} at most", fits]
    if row["booked_ahead"]:
        parts.append(
            f"{row['booked_ahead']} calls were booked by a clock ahead of this one and count on"
        )
    return ", ".join(parts)
