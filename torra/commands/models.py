"""`torra models`: which models can be asked and what they cost, and one small test question."""

from __future__ import annotations

import os
from pathlib import Path

import click

from torra.commands.answer import Answer, answering


@click.command()
@click.option(
    "--test", "vendor", metavar="VENDOR", help="Ask this vendor, or VENDOR:MODEL, one question."
)
@answering
def models(home: Path, /, vendor: str | None) -> Answer:
    """Show keys, models, prices and cost by vendor; --test asks one question, exit 1 if in vain."""
    from torra.desk.models import question as model_question  # noqa: PLC0415
    from torra.desk.models import report as model_report  # noqa: PLC0415

    environment = dict(os.environ)
    if vendor is None:
        return Answer(model_report.run(home, environment), model_report.table)
    reply = model_question.run(home, vendor, environment)
    return Answer(reply.document(), reply.line(), int(not reply.ok))
