"""What a replay or a scorecard came to, before any statistic: a sentence and a table.

The sentence says R a trade first, and money only beside L1 at the same mean size
(torra.evaluation.paired_days): smaller orders lose less on noise, and that is no agent's doing. It
names bars on which nearly all trades of L1 were of one side. All of it is read off the figures of a
document's own tables, so a page, a report, a terminal and a file of last year say the same.
`outcome` returns None where a document has no trades of arms, as a sweep, or a file that another
program made. Nothing is claimed here: whether a result stands out from luck is decided by the
tables of claims and of arms, and only repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from torra.evaluation.exhibits import ReportTable
from torra.evaluation.wording import (
    CONTROL,
    MEANINGLESS,
    UNKNOWN,
    arm_called,
    count,
    listed,
    percent,
    signed,
    span,
    the_arm,
    upper_first,
)

ARMS: Final = "arms"
CLAIMS: Final = "claims"
FLIPS: Final = "discordant"
ENTRIES: Final = "random-entries"
"""The tables that are read."""

NOTICED: Final = 0.0005
"""A difference of results, as a share of the capital, that is worth a word."""

AT_ONE_SIZE: Final = "of the capital beside the bars alone, each at its own mean size"
"""How money is meant wherever agents are set beside the bars alone."""

ONE_SIDED: Final = 0.8
"""Share of L1's trades of one side from which on its bars test that side only."""

LEAST_TRADES: Final = 20
"""Trades that it takes to say so."""

SMALLER: Final = 0.95
"""An arm trades smaller from here on: its mean size as a share of L1's."""

HEADS: Final = (
    "Who traded", "Result", "Deepest drawdown", "Trades", "Won", "A trade, in R (95 %)",
    "Models' cost",
)  # fmt: skip
"""The heads of the short table."""

BRIEF_HEADS: Final = (
    "Who traded", "Result", "Drawdown", "Trades", "Won", "R a trade (95 %)", "Models",
)  # fmt: skip
"""The same where a line has few letters."""


@dataclass(frozen=True, slots=True)
class ArmLine:
    """An arm in a line: what it came to, as words; `known` has the numbers that sentences need.

    `who` is what a sentence calls it, `called` what a table does.
    """

    arm: str
    who: str
    called: str
    cells: tuple[str, ...]
    known: Mapping[str, float | None]

    @property
    def placebo(self) -> bool:
        """Whether its answers mean nothing."""
        return self.arm in MEANINGLESS

    def figure(self, name: str) -> float:
        """Return a number, 0.0 where it is not known."""
        return self.known.get(name) or 0.0

    def is_smaller_than(self, control: ArmLine) -> bool:
        """Return whether it traded smaller on average than the bars alone."""
        size, usual = self.known.get("size"), control.known.get("size")
        return size is not None and usual is not None and size < SMALLER * usual


@dataclass(frozen=True, slots=True)
class ArmsConclusion:
    """What arms came to: `sentence` in R a trade, `why` a larger share of wins earned less."""

    sentence: str
    why: str
    lines: tuple[ArmLine, ...]


def outcome(tables: Sequence[ReportTable], arms: Sequence[str]) -> ArmsConclusion | None:
    """Return what arms came to; None where the tables do not say it."""
    named = {table.name: table for table in tables}
    figures = {name: table.figures for name, table in named.items()}
    lines = tuple(_lines(figures.get(ARMS, {}), arms))
    if not lines or lines[0].arm != CONTROL:
        return None
    claims = figures.get(CLAIMS, {})
    own = [line for line in lines if not line.placebo]
    luck = _luck(own, claims, enough=named[ARMS].enough)
    delayed = figures.get(ENTRIES, {}).get(f"{CONTROL}.delayed")
    if claims.get(f"{CONTROL}.edge") == 1.0 and delayed is not None:
        luck += f"; random entries of the same side soon after each come to {signed(delayed, 3)} R"
    sentence = f"{_sentence(own, luck)}{_one_side(lines[0])}"
    return ArmsConclusion(sentence, _why(own, figures.get(FLIPS, {})), lines)


# --- the short table ------------------------------------------------------------------------------


def _lines(figures: Mapping[str, float | None], arms: Sequence[str]) -> Iterator[ArmLine]:
    for arm in arms:
        own = {
            name.removeprefix(f"{arm}."): value
            for name, value in figures.items()
            if name.startswith(f"{arm}.")
        }
        if own.get("trades") is not None and own.get("return") is not None:
            yield ArmLine(arm, the_arm(arm, arms), arm_called(arm, arms), _cells(own), own)


def _cells(own: Mapping[str, float | None]) -> tuple[str, ...]:
    mean, low, high = (own.get(name) for name in ("expectancy", "low", "high"))
    interval = f" ({span(low, high)})" if low is not None and high is not None else ""
    return (
        _result(own.get("return")),
        percent(own.get("drawdown"), 1),
        f"{own.get('trades') or 0:,.0f}",
        percent(own.get("hit_rate")) if own.get("trades") else "—",
        f"{signed(mean)}{interval}" if mean is not None else "—",
        f"${own.get('model_cost') or 0.0:,.2f}",
    )


def _result(share: float | None) -> str:
    return UNKNOWN if share is None else f"{signed(100 * share)} %"


# --- the sentence ---------------------------------------------------------------------------------


def r_a_trade(means: Sequence[tuple[str, float | None]]) -> str:
    """Return what a trade came to with each of those who traded, as a sentence begins."""
    each = [f"{who} {UNKNOWN if mean is None else f'{signed(mean, 3)} R'}" for who, mean in means]
    return upper_first(", ".join([f"{each[0]} a trade", *each[1:]]))


def _sentence(own: Sequence[ArmLine], luck: str) -> str:
    if not any(line.figure("trades") for line in own):
        return "Nobody traded here, with agents or without: there is nothing to compare."
    begin = r_a_trade([(line.who, line.known.get("expectancy")) for line in own])
    if len(own) == 1:
        trades = count(round(own[0].figure("trades")), "trade")
        return f"{begin}, {_result(own[0].known['return'])} with {trades}: {luck}."
    return f"{begin}: {_agents(own)}{luck}."


def _agents(own: Sequence[ArmLine]) -> str:
    """Return what agents cost or brought at one size; "" where a table does not tell it."""
    desks = [line for line in own if line.known.get("beside") is not None]
    if not desks:
        return ""
    shares = [(line.who, line.figure("beside")) for line in desks]
    if all(abs(share) < NOTICED for _, share in shares):
        return "agents made no difference, and "
    each = [
        f"{who} made no difference"
        if abs(share) < NOTICED
        else f"{who} {'cost' if share < 0 else 'brought'} {percent(abs(share), 1)}"
        for who, share in shares
    ]
    return f"{listed(each)} {AT_ONE_SIZE}, and "


def _luck(own: Sequence[ArmLine], claims: Mapping[str, float | None], *, enough: bool) -> str:
    """Return what the tables say of luck."""
    edge = [line.who for line in own if claims.get(f"{line.arm}.edge") == 1.0]
    if edge:
        return f"the result of {listed(edge)} stands out from luck on these bars"
    trades = count(round(max((line.figure("trades") for line in own), default=0.0)), "trade")
    if not enough:
        return f"{trades} cannot tell skill from luck"
    losing = [line for line in own if line.figure("high") < 0]
    if losing:
        # the bars are many
        verb = "loses" if len(losing) == 1 and losing[0].arm != CONTROL else "lose"
        return f"{listed([line.who for line in losing])} {verb} beyond bad luck"
    return f"{trades} show no skill beyond luck"


def _one_side(control: ArmLine) -> str:
    """Return that bars tested one side of L1 only; "" where they tested both."""
    trades, buys = control.figure("trades"), control.known.get("buys")
    if buys is None or trades < LEAST_TRADES:
        return ""
    most, side = max((buys, "buys"), (trades - buys, "sells"))
    if most < ONE_SIDED * trades:
        return ""
    return (
        f" Of the trades of the bars alone {percent(most / trades)} are {side}: one side is tested."
    )


# --- the size -------------------------------------------------------------------------------------


def _why(own: Sequence[ArmLine], flips: Mapping[str, float | None]) -> str:
    """Return how size explains what the results alone do not; "" where nothing is to explain."""
    control, *desks = own
    less = " ".join(filter(None, (_won_and_earned_less(line, control, flips) for line in desks)))
    if less or not desks or not desks[0].is_smaller_than(control):
        return less
    return (
        f"{upper_first(desks[0].who)} traded smaller: {_sizes(desks[0], control)}. So the same "
        "move wins or loses it less money."
    )


def _won_and_earned_less(line: ArmLine, control: ArmLine, flips: Mapping[str, float | None]) -> str:
    wins, losses = (round(flips.get(f"{line.arm}.{name}") or 0) for name in ("wins", "losses"))
    if wins <= losses or line.figure("return") >= control.figure("return"):
        return ""
    right = (
        f"Where {line.who} changed the verdict, {wins:,} changes were better than the verdict of "
        f"the bars and {losses:,} worse. It still earned less"
    )
    if line.is_smaller_than(control):
        return f"{right}, because it traded smaller: {_sizes(line, control)}."
    return f"{right}: a change counts the same, however much the trade behind it earned or lost."


def _sizes(line: ArmLine, control: ArmLine) -> str:
    own, usual = percent(line.known.get("size")), percent(control.known.get("size"))
    return f"{own} of a full order on average, the bars alone {usual}"
