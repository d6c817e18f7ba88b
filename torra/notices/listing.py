"""What was told, and whether it arrived: for `torra notices`, the pages, health and doctor.

Reads the database and changes nothing. What it shows holds no address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from instance_database import Database
from torra.notices import apprise_service
from torra.notices.protocol import Notice, NoticePlace, NoticeRefused, NoticeService
from torra.store import notices as notice_table
from torra.time_limit import TimeLimit

COLUMNS: Final = ("id", "key", "kind", "level", "title", "text", "instance", "desk_time", "at")
ROWS: Final = 30


def document(database: Database, limit: int = ROWS) -> dict[str, Any]:
    """Return the newest notices, newest first, with their way, and how each service does."""
    return {
        "notices": [
            {name: row[name] for name in COLUMNS} | {"silent": bool(row["silent"])}
            | {"sent": row["sent"]}
            for row in notice_table.notices(database, limit)
        ],
        "services": [
            {"service": row["service"], "failed": row["detail"], "at": row["at"]}
            for row in notice_table.notice_services(database)
        ],
    }  # fmt: skip


def table(document: Mapping[str, Any]) -> str:
    """Return the list for a terminal."""
    lines = []
    for row in document["notices"]:
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
