"""What was told, and whether it arrived: for `torra notices`, the pages, health and doctor.

Reads the database and changes nothing. What it shows holds no address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from instance_database import Database
from torra.harmless_text import HOSTILE
from torra.notices import apprise_service
from torra.notices.protocol import Notice, NoticePlace, NoticeRefused, NoticeService
from torra.store import notices as notice_table
from torra.time_limit import TimeLimit

TEXTS: Final = ("key", "kind", "level", "title", "text", "instance", "desk_time", "at")
"""Columns of a notice that are text; `silent` ones are listed, and nobody is called for them."""

LONGEST: Final = 600
ROWS: Final = 50


def document(database: Database, after: int | None = None, limit: int = ROWS) -> dict[str, Any]:
    """Return notices, oldest first, each with its way, and how each service does.

    These are those above the number `after`, or the newest ones. `newest` is what to name as
    `after` then: a smaller number shows that another database is there, such as a restored one.
    Every text is cleaned, for a database may have been written by others.
    """
    newest = notice_table.newest_notice(database)
    rows = notice_table.notices_after(
        database, max(0, newest - limit) if after is None else after, limit
    )
    return {
        "notices": [
            {name: _clean(row[name]) for name in TEXTS}
            | {
                "id": row["id"],
                "silent": bool(row["silent"]),
                "sent": [
                    {**way, **{name: _clean(way[name]) for name in ("service", "state", "detail")}}
                    for way in row["sent"]
                ],
            }
            for row in rows
        ],
        "newest": rows[-1]["id"] if rows else newest,
        "services": [
            {
                "service": _clean(row["service"]),
                "failed": _clean(row["detail"]),
                "at": _clean(row["at"]),
            }
            for row in notice_table.notice_services(database)
        ],
    }


def _clean(text: object) -> str:
    return HOSTILE.sub("", str(text))[:LONGEST]


def table(document: Mapping[str, Any]) -> str:
    """Return the list for a terminal, newest first."""
    lines = []
    for row in reversed(document["notices"]):
        moment = str(row["at"]).replace("T", " ").replace("Z", " UTC")
        lines.append(f"{moment}  {row['level']:<8}  {row['title']}. {row['text']}  [{state(row)}]")
    failing = [row for row in document["services"] if row["failed"]]
    return "\n".join([
        *(lines or ["Nothing was told yet."]),
        *(f"{row['service']}: {row['failed']}" for row in failing),
    ])  # fmt: skip


def state(row: Mapping[str, Any]) -> str:
    """Return what became of a notice, in a few words."""
    if row["silent"]:
        return "listed only: quiet hours, or below the least level"
    ways = []
    for way in row["sent"]:
        reason = f": {way['detail']}" if way["detail"] else ""
        tries = f" after {way['tries']} tries" if way["tries"] > 1 else ""
        ways.append(f"{way['service']} {way['state']}{tries}{reason}")
    return ", ".join(ways) or "listed only: no service is set"


def trouble(database: Database, names: Iterable[str]) -> str:
    """Return which services did not take the last notice, and why; "" while all did."""
    known = set(names)
    failing = [
        f"{row['service']}: {row['detail']}"
        for row in notice_table.notice_services(database)
        if row["detail"] and row["service"] in known
    ]
    return "; ".join(failing)


def missing_extra(place: NoticePlace) -> str:
    """Return what is missing to send to the addresses of the environment; "" when nothing is."""
    addresses = place.environment.get(apprise_service.VARIABLE, "").strip()
    if not addresses or "apprise" not in place.settings.services or apprise_service.installed():
        return ""
    return apprise_service.MISSING


def try_all(
    services: Sequence[NoticeService], notice: Notice, seconds: float
) -> list[dict[str, str]]:
    """Hand a notice to every service at once; return each one's name and why it failed, if so."""
    rows = []
    for service in services:
        failed = ""
        try:
            TimeLimit(service.name, seconds).run(partial(service.send, notice))
        except NoticeRefused as error:
            failed = str(error)
        except TimeoutError:
            failed = "no answer in time"
        except (Exception, SystemExit) as error:  # noqa: BLE001 - its text may hold an address
            failed = f"it failed ({type(error).__name__})"
        rows.append({"service": service.name, "failed": failed})
    return rows
