"""`torra models`: which models can be asked and what they cost, and one small test question."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from torra.commands.cli_errors import plainly
from torra.commands.options import print_json
from torra.commands.terminal import say


@click.command()
@click.option(
    "--test", "vendor", metavar="VENDOR", help="Ask this vendor, or VENDOR:MODEL, one question."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
@plainly
def models(home: Path, /, vendor: str | None, as_json: bool) -> None:
    """Show keys, models, prices and cost by vendor; --test asks one question, exit 1 if in vain."""
    from torra.desk.models import question as model_question  # noqa: PLC0415
    from torra.desk.models import report as model_report  # noqa: PLC0415

    environment = dict(os.environ)
    if vendor is None:
        document = model_report.run(home, environment)
        if as_json:
            print_json(document)
        else:
            say(model_report.table(document))
        return
    asked = model_question.run(home, vendor, environment)
    if as_json:
        print_json(asked.document())
    else:
        say(asked.line())
    sys.exit(0 if asked.ok else 1)
