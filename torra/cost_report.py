"""`torra cost`: what models have cost, by hour, day, role, model and profile, against the ceilings.

Everything is read from the desk's ledger; nothing is changed, and a home without a database stays
without one. A request that was sent and not answered counts at its worst case and is told apart as
`kept`; so does one that a crash left reserved. Times are UTC, money is USD.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from instance_database import Database
from torra import wiring
from torra.clock import System, iso, parse
from torra.config import NAME, Profile, load_desk, load_profile
from torra.errors import ConfigError
from torra.providers.addresses import address
from torra.providers.prices import PriceList
from torra.spending import HOUR, tick_worst_case

DAY: Final = timedelta(days=1)
DECIMALS: Final = 6
"""Of a sum of money: a call of a small model costs some ten-thousandths of a dollar."""

SHARE_DECIMALS: Final = 4

Row = Mapping[str, Any]


def run(home: Path, profile: str | None = None) -> dict[str, Any]:
    """Return the report of a home, or of one profile; raises ConfigError for one not there."""
    now = System().real_now().replace(microsecond=0)
    names = [item.profile for item in load_desk(home).instances]
    if not (home / wiring.DATABASE).exists():
        return _report(now, [], _profiles(home, None, names, profile, now), [])
    database = wiring.open_database(home)
    try:
        told = _profiles(home, database, [*names, *database.ledger_profiles()], profile, now)
        rows = database.ledger_rows(now - DAY, profile)
        return _report(now, rows, told, database.provider_blocks())
    finally:
        database.close()


def table(document: Mapping[str, Any]) -> str:
    """Return the report for a terminal."""
    lines = [_profile_line(row) for row in document["profiles"]]
    blocked = [
        f"{row['provider']} is not asked until {row['until']}: {row['reason']}"
        for row in document["blocked"]
    ]
    if not document["last_24_hours"]["calls"]:
        empty = "No call to a model was booked in the last 24 hours: nothing was spent."
        return "\n".join([empty, *lines, *blocked])
    sums = [
        _sum_line("last hour", document["last_hour"]),
        _sum_line("today (UTC)", document["today"]),
        _sum_line("last 24 hours", document["last_24_hours"]),
        f"{'day, projected':<32}{_money(document['projected_day_usd'])}",
    ]
    parts = [
        *_group("role, last 24 hours", document["roles"], "role"),
        *_group("model, last 24 hours", document["models"], "model"),
    ]
    heading = (
        f"{'':<32}{'USD':>12}{'calls':>7}{'tokens in':>11}{'cached':>9}{'out':>9}{'kept USD':>12}"
    )
    return "\n".join([heading, *sums, *parts, "", *lines, *blocked])


# --- figures --------------------------------------------------------------------------------------


def _report(
    now: datetime,
    rows: Sequence[Row],
    profiles: list[dict[str, Any]],
    blocked: list[dict[str, Any]],
) -> dict[str, Any]:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    hour, today = _since(rows, now - HOUR), _since(rows, midnight)
    rest = (midnight + DAY - now) / HOUR
    return {
        "at": iso(now),
        "currency": "USD",
        "last_hour": _sum(hour),
        "today": _sum(today),
        "last_24_hours": _sum(rows),
        "projected_day_usd": _round(_usd(today) + _usd(hour) * rest),
        "roles": _grouped(rows, "role", lambda row: str(row["role"])),
        "models": _grouped(rows, "model", lambda row: f"{row['provider']}:{row['model']}"),
        "profiles": profiles,
        "blocked": blocked,
    }


def _since(rows: Iterable[Row], moment: datetime) -> list[Row]:
    return [row for row in rows if parse(row["until"]) > moment]


def _sum(rows: Iterable[Row]) -> dict[str, Any]:
    rows = list(rows)
    kept = [row for row in rows if row["state"] != "settled"]
    total = _usd(rows)
    return {
        "usd": _round(total),
        "calls": len(rows),
        "input_tokens": sum(row["input_tokens"] for row in rows),
        "cached_tokens": sum(row["cached_tokens"] for row in rows),
        "output_tokens": sum(row["output_tokens"] for row in rows),
        "kept_usd": _round(_usd(kept)),
        "kept_calls": len(kept),
        "kept_share": round(_usd(kept) / total, SHARE_DECIMALS) if total else 0.0,
    }


def _grouped(rows: Iterable[Row], name: str, of: Callable[[Row], str]) -> list[dict[str, Any]]:
    """Return the sums of each group, the dearest first."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(of(row), []).append(row)
    told = [{name: group, **_sum(members)} for group, members in groups.items()]
    return sorted(told, key=lambda row: (-row["usd"], row[name]))


def _usd(rows: Iterable[Row]) -> float:
    return math.fsum(row["usd"] for row in rows)


def _round(usd: float) -> float:
    return round(usd, DECIMALS)


# --- profiles -------------------------------------------------------------------------------------


def _profiles(
    home: Path, database: Database | None, names: Iterable[str], asked: str | None, now: datetime
) -> list[dict[str, Any]]:
    known = sorted(set(names))
    if asked is not None and asked not in known:
        if not NAME.fullmatch(asked):
            raise ConfigError(f"--profile {asked}: name a profile, as it stands in desk.json")
        load_profile(asked, home)
    prices = PriceList.read(home / wiring.PRICES)
    chosen = known if asked is None else [asked]
    return [_profile(home, database, name, prices, now) for name in chosen]


def _profile(
    home: Path, database: Database | None, name: str, prices: PriceList, now: datetime
) -> dict[str, Any]:
    rows = [] if database is None else database.ledger_rows(now - HOUR, name)
    spent = _usd(rows)
    settings = _settings(name, home)
    told: dict[str, Any] = {
        "profile": name,
        "spent_usd": _round(spent),
        "ceiling_usd": None,
        "left_usd": None,
        "worst_tick_usd": None,
        "free_at": None,
        "rung": None,
        "booked_ahead": sum(parse(row["at"]) > now for row in rows),
    }
    if settings is None:
        return told
    ceiling = settings.agents.max_api_cost_per_hour
    worst = tick_worst_case(prices, settings.agents, _local)
    held = None if database is None else database.rung(name)
    return told | {
        "ceiling_usd": ceiling,
        "left_usd": _round(max(0.0, ceiling - spent)),
        "worst_tick_usd": _round(worst),
        "free_at": _free_at(rows, worst, ceiling, now),
        "rung": held or ("custom" if settings.agents.active_agents else settings.agents.mode),
    }


def _settings(name: str, home: Path) -> Profile | None:
    """Return a profile; None for one that was booked for once and is gone."""
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
    for row in rows:
        left += row["usd"]
        if worst <= left:
            return iso(parse(row["until"]) + HOUR)
    return None


def _local(vendor: str) -> bool:
    try:
        return address(vendor, os.environ).local
    except ConfigError:
        return False


# --- a terminal -----------------------------------------------------------------------------------


def _money(usd: float) -> str:
    return f"{usd:>12.4f}" if usd >= 1 or not usd else f"{usd:>12.6f}"


def _sum_line(name: str, told: Row) -> str:
    share = f" ({told['kept_share']:.0%})" if told["kept_calls"] else ""
    return (
        f"{name:<32}{_money(told['usd'])}{told['calls']:>7}{told['input_tokens']:>11}"
        f"{told['cached_tokens']:>9}{told['output_tokens']:>9}{_money(told['kept_usd'])}"
        f"{share}"
    )


def _group(title: str, rows: Sequence[Row], name: str) -> list[str]:
    return ["", title, *(_sum_line(f"  {row[name]}", row) for row in rows)]


def _profile_line(row: Row) -> str:
    spent = f"profile {row['profile']}: {_money(row['spent_usd']).strip()} USD in the last hour"
    if row["ceiling_usd"] is None:
        return f"{spent}; the profile itself is gone"
    parts = [
        f"{spent} of {row['ceiling_usd']:.2f}",
        f"{_money(row['left_usd']).strip()} left",
        f"rung {row['rung']}",
    ]
    if row["worst_tick_usd"]:
        parts += [f"a tick costs {_money(row['worst_tick_usd']).strip()} at most", _free(row)]
    else:
        parts.append("its agents cost nothing")
    if row["booked_ahead"]:
        parts.append(
            f"{row['booked_ahead']} calls were booked by a clock ahead of this one and count on"
        )
    return ", ".join(parts)


def _free(row: Row) -> str:
    if row["free_at"] is None:
        return (
            "more than the ceiling: raise agents.max_api_cost_per_hour, or name the model's price "
            f"in {wiring.PRICES}"
        )
    if row["left_usd"] >= row["worst_tick_usd"]:
        return "which fits"
    return f"which fits from {row['free_at']}"
