"""`torra radar`: which symbols deserve a look now. `torra ask`: a question about the desk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torra.commands.answer import CommandAnswer, answering

if TYPE_CHECKING:
    from torra.ask.answer import ChatAnswer
    from torra.radar.result import RadarRow, RadarRun

ARGS = "symbol", "timeframe", "words"
"""Arguments of a tool that a line of a plan shows."""


@click.command()
@click.argument("symbols", nargs=-1)
@answering
def radar(home: Path, /, symbols: tuple[str, ...]) -> CommandAnswer:
    """Scan the desk's symbols, or some of them: what would open, what is near, what to look at."""
    from torra.radar import job  # noqa: PLC0415
    from torra.radar.result import RadarRun  # noqa: PLC0415

    number, document = job.at_home(home, {"symbols": ",".join(symbols)})
    found = RadarRun.model_validate_json(document)
    return CommandAnswer({"run": number, **found.model_dump(mode="json")}, _lines(found))


def _lines(found: RadarRun) -> Iterator[str]:
    from torra.words.orders import HOLD_REASONS  # noqa: PLC0415
    from torra.words.radar import BUCKET_WORDS, words_of  # noqa: PLC0415

    yield " ".join(found.portfolio_brief)
    if found.using_cached_data:
        yield f"{words_of(found.fallback_trigger).word}: {found.fallback_reason}"
    for bucket, heading in BUCKET_WORDS.items():
        rows: Sequence[RadarRow] = getattr(found, bucket)
        if rows:
            yield f"\n{heading}"
        for row in rows:
            words = ", ".join(words_of(code).word for code in row.codes)
            more = f" ({HOLD_REASONS.get(row.deny_reason)})" if row.deny_reason else ""
            yield f"  {row.stream.replace('|', ' '):<14} {words}{more}"
    yield f"\n{found.coverage.quiet} of {found.coverage.streams} streams are quiet."
    for failure in found.coverage.failed:
        yield f"  {failure.stream}  {words_of(failure.code).word}: {failure.message}"


@click.command()
@click.argument("question")
@click.option("--session", default="", help="Go on with this session: a follow-up may name less.")
@click.option("--about", default="", metavar="STREAM@BAR", help="Ask about this tick.")
@click.option("--model", is_flag=True, help="Let the profile's model choose; the hour pays.")
@answering
def ask(home: Path, /, question: str, session: str, about: str, model: bool) -> CommandAnswer:
    """ChatAnswer a question about the desk from what it stored; nothing is done."""
    from torra.ask.answering import ask as answer_to  # noqa: PLC0415
    from torra.tools.desk_reader import reading  # noqa: PLC0415
    from torra.trading.commanding import COMMAND_LINE  # noqa: PLC0415

    with reading(home) as (desk, database):
        answer = answer_to(
            desk, database, question, session=session, person=COMMAND_LINE.actor, about=about,
            may_spend=model,
        )  # fmt: skip
    return CommandAnswer(answer.model_dump(mode="json"), _answer_lines(answer))


def _answer_lines(answer: ChatAnswer) -> Iterator[str]:
    from torra.words.ask import ASK_CODES  # noqa: PLC0415

    for sentence in answer.sentences:
        yield sentence.text
    if answer.comment:
        yield f"Unchecked comment of the model: {answer.comment}"
    if answer.address:
        yield f"See {answer.address}"
    if answer.portfolio_impact:
        yield f"\nHeld: {answer.portfolio_impact}"
    words = ASK_CODES["quality"][answer.evidence_quality], ASK_CODES["mode"][answer.analysis_mode]
    yield f"\n{words[0].word}; {words[1].word}; session {answer.session}"
    for step in answer.retrieval_plan.steps:
        args = " ".join(str(step.args[name]) for name in ARGS if name in step.args)
        yield f"  {step.tool} {args}: {step.code or f'{step.facts} facts'}"
    for cite in answer.citations:
        yield f"  [{cite.id}] of {cite.as_of}, {cite.where}"
