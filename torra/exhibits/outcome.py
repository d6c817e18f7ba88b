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
    """An arm in a line: what it came to, as words; `known` has the numbers that sentences need."""

    arm: str
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


@dataclass(frozen=True, slots=True)
class ArmsConclusion:
    """What arms came to: `sentence` in R a trade, `why` a larger share of wins earned less."""

    sentence: str
    why: str
    lines: tuple[ArmLine, ...]


def outcome(tables: Sequence[ReportTable], arms: Sequence[str]) -> ArmsConclusion | None:
    """Return what arms came to; None where the tables do not say it."""
    named = {table.name: table for table in tables}
    table = named.get(ARMS)
    lines = _lines(table.figures, arms) if table else ()
    if table is None or not lines or lines[0].arm != CONTROL:
        return None
    flips = named[FLIPS].figures if FLIPS in named else {}
    claims = named[CLAIMS].figures if CLAIMS in named else {}
    own = [line for line in lines if not line.placebo]
    luck = _luck(own, claims, arms, enough=table.enough)
    if claims.get(f"{CONTROL}.edge") == 1.0 and ENTRIES in named:
        luck += _weeks(named[ENTRIES].figures.get(f"{CONTROL}.delayed"))
    sentence = f"{_sentence(own, arms, luck)}{_one_side(lines[0])}"
    return ArmsConclusion(sentence, _why(own, flips, arms), lines)


# --- the short table ------------------------------------------------------------------------------


def _lines(figures: Mapping[str, float | None], arms: Sequence[str]) -> tuple[ArmLine, ...]:
    found = []
    for arm in arms:
        own = {
            name.removeprefix(f"{arm}."): value
            for name, value in figures.items()
            if name.startswith(f"{arm}.")
        }
        if own.get("trades") is not None and own.get("return") is not None:
            found.append(ArmLine(arm, arm_called(arm, arms), _cells(own), own))
    return tuple(found)


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


def r_a_trade(told: Sequence[tuple[str, float | None]]) -> str:
    """Return what a trade came to with each of those who traded, as a sentence begins."""
    each = [f"{who} {UNKNOWN if mean is None else f'{signed(mean, 3)} R'}" for who, mean in told]
    return upper_first(", ".join([f"{each[0]} a trade", *each[1:]]))


def _sentence(own: Sequence[ArmLine], arms: Sequence[str], luck: str) -> str:
    if not any(line.figure("trades") for line in own):
        return "Nobody traded here, with agents or without: there is nothing to compare."
    told = r_a_trade([(the_arm(line.arm, arms), line.known.get("expectancy")) for line in own])
    if len(own) == 1:
        trades = count(round(own[0].figure("trades")), "trade")
        return f"{told}, {_result(own[0].known['return'])} with {trades}: {luck}."
    return f"{told}: {''.join(f'{part}, and ' for part in _agents(own, arms))}{luck}."


def _agents(own: Sequence[ArmLine], arms: Sequence[str]) -> Iterator[str]:
    """Yield what agents cost or brought at one size; nothing where a table does not tell it."""
    desks = [line for line in own if line.known.get("beside") is not None]
    if any(abs(line.figure("beside")) >= NOTICED for line in desks):
        yield f"{listed([_each(line, arms) for line in desks])} {AT_ONE_SIZE}"
    elif desks:
        yield "agents made no difference"


def _each(line: ArmLine, arms: Sequence[str]) -> str:
    who, share = the_arm(line.arm, arms), line.figure("beside")
    if abs(share) < NOTICED:
        return f"{who} made no difference"
    return f"{who} {'cost' if share < 0 else 'brought'} {percent(abs(share), 1)}"


def _luck(
    own: Sequence[ArmLine],
    claims: Mapping[str, float | None],
    arms: Sequence[str],
    *,
    enough: bool,
) -> str:
    """Return what the tables say of luck."""
    edge = [the_arm(line.arm, arms) for line in own if claims.get(f"{line.arm}.edge") == 1.0]
    if edge:
        return f"the result of {listed(edge)} stands out from luck on these bars"
    most = round(max((line.figure("trades") for line in own), default=0.0))
    if not enough:
        return f"{count(most, 'trade')} cannot tell skill from luck"
    losing = [the_arm(line.arm, arms) for line in own if _loses(line)]
    if losing:
        one = len(losing) == 1 and losing[0] != the_arm(CONTROL, arms)
        return f"{listed(losing)} {'loses' if one else 'lose'} beyond bad luck"
    return f"{count(most, 'trade')} show no skill beyond luck"


def _weeks(delayed: float | None) -> str:
    """Return what of an edge of L1 is the days on which it traded; "" where it is not known."""
    if delayed is None:
        return ""
    return f"; random entries of the same side soon after each come to {signed(delayed, 3)} R"


def _one_side(control: ArmLine) -> str:
    """Return that bars tested one side of L1 only; "" where they tested both."""
    trades, buys = control.figure("trades"), control.known.get("buys")
    if buys is None or trades < LEAST_TRADES:
        return ""
    side, most = max(("buys", buys), ("sells", trades - buys), key=lambda each: each[1])
    if most < ONE_SIDED * trades:
        return ""
    return (
        f" Of the trades of the bars alone {percent(most / trades)} are {side}: one side is tested."
    )


def _loses(line: ArmLine) -> bool:
    high = line.known.get("high")
    return high is not None and high < 0


# --- the size -------------------------------------------------------------------------------------


def _why(own: Sequence[ArmLine], flips: Mapping[str, float | None], arms: Sequence[str]) -> str:
    """Return how size explains what the results alone do not; "" where nothing is to explain."""
    control, *desks = own
    told = [_won_and_earned_less(line, control, flips, arms) for line in desks]
    if not any(told):
        told = [_smaller(line, control, arms) for line in desks[:1]]
    return " ".join(filter(None, told))


def _won_and_earned_less(
    line: ArmLine, control: ArmLine, flips: Mapping[str, float | None], arms: Sequence[str]
) -> str:
    wins, losses = (round(flips.get(f"{line.arm}.{name}") or 0) for name in ("wins", "losses"))
    if wins <= losses or line.figure("return") >= control.figure("return"):
        return ""
    who = the_arm(line.arm, arms)
    right = (
        f"Where {who} changed the verdict, {wins:,} changes were better than the verdict of the "
        f"bars and {losses:,} worse. It still earned less"
    )
    if _trades_smaller(line, control):
        return f"{right}, because it traded smaller: {_sizes(line, control)}."
    return f"{right}: a change counts the same, however much the trade behind it earned or lost."


def _smaller(line: ArmLine, control: ArmLine, arms: Sequence[str]) -> str:
    if not _trades_smaller(line, control):
        return ""
    who = upper_first(the_arm(line.arm, arms))
    return (
        f"{who} traded smaller: {_sizes(line, control)}. So the same move wins or loses it less "
        "money."
    )


def _trades_smaller(line: ArmLine, control: ArmLine) -> bool:
    size, usual = line.known.get("size"), control.known.get("size")
    return size is not None and usual is not None and size < SMALLER * usual


def _sizes(line: ArmLine, control: ArmLine) -> str:
    own, usual = percent(line.known.get("size")), percent(control.known.get("size"))
    return f"{own} of a full order on average, the bars alone {usual}"
