"""`torra notices`: what was told to a person and whether it arrived, and a test of every way out.

Addresses are in no output: a way out is called by its number and its scheme. A mistake is one line
and exit code 2; a test that one service did not take ends in exit code 1.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from torra.commands.cli_errors import plainly
from torra.commands.options import SpelledGroup, print_json
from torra.commands.terminal import say
from torra.home import DATABASE

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")

NONE_SET = (
    "No service is set: put addresses into TORRA_NOTICE_URLS, as docs/notices.md shows. Pages show "
    "notices without any."
)


@click.group(cls=SpelledGroup, invoke_without_command=True)
@click.option("--limit", default=30, show_default=True, type=click.IntRange(1, 2000))
@as_json_option
@click.pass_context
@plainly
def notices(context: click.Context, /, limit: int, as_json: bool) -> None:
    """Show what was told to you, newest first, and whether it arrived."""
    if context.invoked_subcommand is not None:
        return
    from instance_database import open_home  # noqa: PLC0415
    from torra.config import load_desk  # noqa: PLC0415
    from torra.notices import listing  # noqa: PLC0415

    home: Path = context.obj
    found: dict[str, object] = {"notices": [], "services": []}
    if (home / DATABASE).is_file():
        database = open_home(home)
        try:
            found = listing.document(database, limit)
        finally:
            database.close()
    else:
        load_desk(home)  # a home without a database stays without one
    if as_json:
        print_json(found)
    else:
        say(listing.table(found))


@notices.command("test")
@as_json_option
@click.pass_obj
@plainly
def test(home: Path, /, as_json: bool) -> None:
    """Send a test to every service; exit 1 when one did not take it."""
    from torra.clock import System  # noqa: PLC0415
    from torra.config import load_desk  # noqa: PLC0415
    from torra.desk.wiring import open_notices  # noqa: PLC0415
    from torra.notices import listing  # noqa: PLC0415
    from torra.notices.protocol import Notice  # noqa: PLC0415
    from torra.notices.sending import LIMIT_SECONDS  # noqa: PLC0415
    from torra.notices.words import NoticeFormatter  # noqa: PLC0415

    services = open_notices(home, load_desk(home), dict(os.environ))
    now = System().real_now()
    notice = Notice("test", "test", "note", *NoticeFormatter().say("test", "Torra"), "", now, now)
    tried = listing.try_all(services, notice, LIMIT_SECONDS)
    if as_json:
        print_json({"services": tried})
    elif not tried:
        say(NONE_SET)
    for row in () if as_json else tried:
        say(f"{row['service']}: {'failed: ' + row['failed'] if row['failed'] else 'taken'}")
    sys.exit(1 if any(row["failed"] for row in tried) else 0)
