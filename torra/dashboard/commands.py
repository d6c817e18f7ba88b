"""The command group `flask torra ...` of a host program that has the pages installed.

In a host without the pages each command prints one clear line and exits with code 2. Importing this
module loads click and Flask's command line only.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from flask import current_app, url_for
from flask.cli import with_appcontext

from torra.harmless_text import escaped

if TYPE_CHECKING:
    from torra.dashboard.cells.shown import Overview
    from torra.dashboard.view.rendering import PageState

# as in view.rendering, which is not imported here: it would load the pages
EXTENSION = "torra_agents"


@click.group("torra")
def group() -> None:
    """Torra's pages in this app."""


@group.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@with_appcontext
def status(as_json: bool) -> None:
    """Show the desk: role, trading state, and the newest tick of every stream."""
    # loaded for this command only
    from torra.dashboard.cells.shown import Overview  # noqa: PLC0415
    from torra.tick.tick_record import TickRecord  # noqa: PLC0415

    data = _state().desk_view.overview()
    click.echo(
        escaped(
            json.dumps(data, indent=2, default=TickRecord.as_json)
            if as_json
            else table(Overview.read(data))
        )
    )


@group.command()
@click.option(
    "--scope",
    type=click.Choice(["read", "approve", "admin"]),
    default="admin",
    show_default=True,
    help="What its holder may do.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@with_appcontext
def link(scope: str, as_json: bool) -> None:
    """Show the path that logs a person in; put this app's own address before it."""
    with current_app.test_request_context():
        path = f"{url_for(f'{EXTENSION}.login_page')}#token={_state().access.tokens[scope]}"
    click.echo(json.dumps({"scope": scope, "path": path}) if as_json else path)


def _state() -> PageState:
    found: PageState | None = current_app.extensions.get(EXTENSION)
    if found is None:
        raise click.UsageError("this app has no Torra pages: call TorraOverlay(app)")
    return found


def table(data: Overview) -> str:
    """Return the overview as lines of text."""
    from torra.exhibits import figures  # noqa: PLC0415  loaded for this command only

    desk = data.desk
    head = [
        "DEMO" if desk.demo else "",
        figures.moment(desk.now),
        str(desk.role),
        f"trading {desk.trading_state}",
        f"cost this hour {figures.money(desk.cost_hour)}",
    ]
    lines = ["  ".join(part for part in head if part)]
    for instance in data.instances:
        for stream in instance.streams:
            tick = stream.tick
            stale = "STALE " if stream.stale else ""
            lines.append(
                f"{instance.instance:<12} {stream.timeframe:<4} "
                f"{figures.mark(tick and tick.verdict).word:<5} "
                f"{figures.signed(tick and tick.consensus):>7}  "
                f"{figures.mark(tick and tick.source_type).word:<14} "
                f"{stale}{figures.span(stream.age_seconds)}"
            )
    return "\n".join(lines)
