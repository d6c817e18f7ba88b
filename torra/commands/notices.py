"""`torra notices`: what was told to a person and whether it arrived, and a test of every way out.

Addresses are in no output: a way out is called by its number and its scheme. A mistake is one line
and exit code 2; a test that one service did not take ends in exit code 1.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from torra.clock import System
from torra.commands.answer import Answer, answering, stored
from torra.commands.options import SpelledGroup

NONE_SET = (
    "No service is set: put addresses into TORRA_NOTICE_URLS, as docs/notices.md shows. Pages show "
    "notices without any."
)


@click.group(cls=SpelledGroup, invoke_without_command=True)
@click.option("--limit", default=30, show_default=True, type=click.IntRange(1, 2000))
@answering
def notices(home: Path, /, limit: int) -> Answer:
    """Show what was told to you, newest first, and whether it arrived."""
    from torra.notices import listing  # noqa: PLC0415

    with stored(home) as database:
        nothing: dict[str, object] = {"notices": [], "services": []}
        document = nothing if database is None else listing.document(database, limit)
    return Answer(document, listing.table)


@notices.command("test")
@answering
def test(home: Path, /) -> Answer:
    """Send a test to every service; exit 1 when one did not take it."""
    from torra.config import load_desk  # noqa: PLC0415
    from torra.desk.wiring import open_notices  # noqa: PLC0415
    from torra.notices import listing  # noqa: PLC0415
    from torra.notices.protocol import Notice  # noqa: PLC0415
    from torra.notices.sending import LIMIT_SECONDS  # noqa: PLC0415
    from torra.notices.words import NoticeFormatter  # noqa: PLC0415

    services = open_notices(home, load_desk(home), dict(os.environ))
    now = System().real_now()
    notice = Notice("test", "test", "note", *NoticeFormatter().test(), "", now, now)
    rows = listing.try_all(services, notice, LIMIT_SECONDS)
    lines = [
        f"{row['service']}: {'failed: ' + row['failed'] if row['failed'] else 'taken'}"
        for row in rows
    ]
    failed = any(row["failed"] for row in rows)
    return Answer({"services": rows}, "\n".join(lines) or NONE_SET, int(failed))
