"""What one asks of a desk: `torra radar`, `torra ask` and `torra committee`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from torra.commands.answer import CommandAnswer, answering
from torra.committee.votes import RiskProfile
from torra.errors import ConfigError

if TYPE_CHECKING:
    from torra.ask.answer import ChatAnswer
    from torra.committee.card import CardSeat, DecisionCard
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
    return CommandAnswer({"run": number, **found.model_dump(mode="json")}, _radar_lines(found))


def _radar_lines(found: RadarRun) -> Iterator[str]:
    from torra.words.orders import HOLD_REASONS  # noqa: PLC0415
    from torra.words.radar import (  # noqa: PLC0415
        BUCKET_WORDS,
        mode_sentence,
        words_of,
        worth_sentence,
    )

    yield f"{' '.join(found.portfolio_brief)} As of {found.as_of}."
    if found.mode != "rules" or found.fallback_trigger:
        yield mode_sentence(found.model_dump())
    for bucket, heading in BUCKET_WORDS.items():
        rows: Sequence[RadarRow] = getattr(found, bucket)
        if rows:
            yield f"\n{heading}"
        for row in rows:
            words = ", ".join(words_of(code).word for code in row.codes)
            more = HOLD_REASONS.get(row.deny_reason, row.deny_reason)
            more = f" ({more})" if more else ""
            yield f"  {row.stream.replace('|', ' '):<14} {words}{more}"
            yield from (f"  {'':<14} {one.text}" for one in row.objections)
    for card in found.cards:
        yield f"\n{card.stream.replace('|', ' ')}"
        yield from (f"  {one}" for one in card.sentences)
    if found.worth:
        yield f"\n{worth_sentence(found.worth.model_dump())}"
    names = ", ".join(name.replace("|", " ") for name in found.coverage.quiet_streams)
    quiet = f": {names}" if names else ""
    yield f"\n{found.coverage.quiet} of {found.coverage.streams} streams are quiet{quiet}."
    for failure in found.coverage.failed:
        yield f"  {failure.stream}  {words_of(failure.code).word}: {failure.message}"


@click.command()
@click.argument("question")
@click.option("--session", default="", help="Go on with this session: a follow-up may name less.")
@click.option("--about", default="", metavar="STREAM@BAR", help="Ask about this tick.")
@click.option("--model", is_flag=True, help="Let the profile's model choose; the hour pays.")
@answering
def ask(home: Path, /, question: str, session: str, about: str, model: bool) -> CommandAnswer:
    """Answer a question about the desk from what it stored; nothing is done."""
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
    from torra.tools.contract import CODES as TOOL_CODES  # noqa: PLC0415
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
        args = (str(step.args[one]) for one in ARGS if one in step.args)
        came_to = TOOL_CODES[step.code]["word"] if step.code else f"{step.facts} facts"
        yield f"  {' '.join((step.tool.replace('_', ' '), *args))}: {came_to}"
    for cite in answer.citations:
        yield f"  [{cite.id}] of {cite.as_of}, {cite.where}"


@click.command()
@click.argument("symbol", required=False)
@click.option("--example", is_flag=True, help="Show a card of an invented company.")
@click.option("--again", is_flag=True, help="Ask once more of the same evidence.")
@click.option(
    "--as-of", default="", help="A moment of the past, such as 2026-01-05T10:00Z: a card by rules."
)
@click.option(
    "--hindsight", is_flag=True, help="With --as-of: models vote too, and the card is marked."
)
@click.option(
    "--risk",
    type=click.Choice(get_args(RiskProfile)),
    help="How much each seat's vote weighs; default: that of desk.json.",
)
@answering
def committee(
    home: Path,
    /,
    symbol: str | None,
    example: bool,
    again: bool,
    as_of: str,
    hindsight: bool,
    risk: RiskProfile | None,
) -> CommandAnswer:
    """Ask the committee about a SYMBOL: three votes from stored evidence, and a card of them."""
    from torra.committee import job  # noqa: PLC0415
    from torra.committee.card import DecisionCard  # noqa: PLC0415
    from torra.committee.deciding import example_card  # noqa: PLC0415

    if bool(symbol) == example:
        raise ConfigError("name a symbol of the desk or say --example, and not both")
    if example and (again or as_of or hindsight):
        raise ConfigError("--example takes --risk alone: its evidence and its day are invented")
    if symbol is None:
        card = example_card(risk or "balanced")
    else:
        flags = {"again": "yes" * again, "hindsight": "yes" * hindsight}
        asked = {"symbol": symbol, "risk": risk or "", "as_of": as_of, **flags}
        document = job.at_home(home, asked)
        card = DecisionCard.model_validate_json(document)
    return CommandAnswer(card.model_dump(mode="json"), _card_lines(card, example=example))


def _card_lines(card: DecisionCard, *, example: bool) -> Iterator[str]:
    from agents.features import name_of  # noqa: PLC0415
    from torra.committee.card import voters  # noqa: PLC0415
    from torra.exhibits.figures import format_any  # noqa: PLC0415

    yield card.final_statement
    if example:
        yield "The company is invented: reports, closes and headlines are arithmetic."
    price = format_any(card.price) if card.price is not None else "unknown"
    yield f"Evidence until {card.evidence_until}, last close {price}. {voters(card)}"
    for seat in card.seats:
        yield from _seat_lines(seat, card)
    others = ", ".join(f"{name} {decision}" for name, decision in card.under_other_profiles.items())
    yield f"\nThe profile is {card.risk_profile}. The same votes under the others: {others}."
    if card.missing:
        yield f"Not known: {', '.join(map(name_of, card.missing))}."
    if card.missing and not example:
        yield (
            "How to import it stands in docs/outside.md, docs/news.md and docs/bars.md. What was "
            f"seen here after {card.evidence_until} counts in a later card."
        )


def _seat_lines(seat: CardSeat, card: DecisionCard) -> Iterator[str]:
    from torra.committee.seats import feature_of  # noqa: PLC0415

    vote = f"{seat.stance}, {seat.confidence} confidence" if seat.stance else "no vote"
    weight = f" (weight {card.weights[seat.seat]:.2f})" if seat.counted else ""
    dissents = ", dissents" if seat.claim in card.dissenting_opinions else ""
    yield f"\n{seat.seat}: {vote}{weight}{dissents}"
    yield f"  {seat.claim}"
    against = [one.sentence for one in seat.evidence if feature_of(one) in seat.points_against]
    if against:
        yield f"  Against it: {' '.join(against)}"
    if seat.falsifiers:
        yield f"  What would prove it wrong: {' '.join(seat.falsifiers)}"
