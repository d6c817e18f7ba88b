"""The openings that an arm wanted: those it made, those that were refused, and for what reason.

An opening that is refused tick after tick is one decision asked again: an episode, the row of ticks
of an instance on which openings of one side are refused. A reason counts once in each episode in
which it was given, so the reasons may add up to more than the episodes. Where several reasons speak
against an opening, the tick keeps the first in the order of docs/deny_reasons.md. The shares of BUY
and SELL are of all ticks, whatever was opened.

SIZE_ZERO is lot rounding where the rules and the agents left more than nothing of the size: the
account is too small for one lot step. Then arms that differ in size by a little differ by whole
trades. `rounding_warning` says so, and what would help. Ticks without an action (L1 beside a desk's
own) have no openings, which is None; nothing raises.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from torra.config import Profile
from torra.evaluation.exhibits import Columns, Exhibit, by_arm, contents, percentage
from torra.evaluation.observations import ArmObservation, TickObservation
from torra.evaluation.wording import count, listed, percent, the_arm
from torra.verdict.one_sided import leans
from torra.verdict.order_levels import Levels, exact, levels
from torra.verdict.position_size import loss_of_one, smallest, value_of_one
from torra.words.deny_reasons import DenyReason

SIZE_ZERO: Final = DenyReason.SIZE_ZERO.value
OPENED: Final = frozenset(("OPEN_BUY", "OPEN_SELL", "REVERSE"))
"""Actions that open a position."""

NOTABLE_SHARE: Final = 0.1
"""A share of the openings wanted from which on lot rounding is warned of."""

LEAST_VERDICTS: Final = 20
"""Ticks of the larger side from which on a missing other side is more than a few bars' luck."""

LEAST_TICKS: Final = 100
"""Ticks from which on the shares of the verdicts can be read."""

MOST_TOLD: Final = 1_600
"""Most characters of the arms in the table's sentence; the table has them all."""

HELPED: Final = 0.9
"""The share of the refused openings that the capital and the lot step named would let through."""

DENIED: Final = frozenset(reason.value for reason in DenyReason)


@dataclass(frozen=True, slots=True)
class RefusalCount:
    """How often a reason refused an opening: on how many ticks, in how many episodes."""

    ticks: int
    episodes: int


@dataclass(frozen=True, slots=True)
class Openings:
    """The verdicts of an arm and what became of the openings that they asked for.

    `buys` and `sells` count the ticks with that verdict, of `ticks`. `made` is None where no tick
    has an action; `episodes` counts the rows of refusals, `refused` has them by reason.
    """

    arm: str
    ticks: int
    buys: int
    sells: int
    made: int | None
    episodes: int = 0
    refused: Mapping[str, RefusalCount] = field(default_factory=dict)

    @property
    def buy_share(self) -> float | None:
        """The share of ticks with the verdict BUY."""
        return self.buys / self.ticks if self.ticks else None

    @property
    def sell_share(self) -> float | None:
        """The share of ticks with the verdict SELL."""
        return self.sells / self.ticks if self.ticks else None

    @property
    def refusals(self) -> int | None:
        """The episodes of refusals; None where no tick has an action."""
        return None if self.made is None else self.episodes

    @property
    def wanted(self) -> int | None:
        """Openings made and refused, each episode once."""
        return None if self.made is None else self.made + self.episodes

    def share(self, reason: str) -> float | None:
        """Return the share of the openings wanted that met a reason; None of nothing."""
        if not self.wanted:
            return None
        return self.refused[reason].episodes / self.wanted if reason in self.refused else 0.0


def openings(arm: ArmObservation) -> Openings:
    """Return the verdicts and the openings of an arm."""
    said = Counter(tick.verdict for tick in arm.ticks)
    known = any(tick.action for tick in arm.ticks)
    rows = list(episodes(arm.ticks))
    on_ticks = Counter(tick.reason for row in rows for tick in row)
    in_rows = Counter(reason for row in rows for reason in {tick.reason for tick in row})
    return Openings(
        arm.name,
        len(arm.ticks),
        said["BUY"],
        said["SELL"],
        sum(tick.action in OPENED for tick in arm.ticks) if known else None,
        len(rows),
        {name: RefusalCount(number, in_rows[name]) for name, number in on_ticks.most_common()},
    )


def episodes(ticks: Sequence[TickObservation]) -> Iterator[tuple[TickObservation, ...]]:
    """Yield the rows of ticks of an instance on which openings of one side were refused."""
    rows: dict[str, list[TickObservation]] = defaultdict(list)
    for tick in ticks:
        row, refused = rows[tick.instance], _refused(tick)
        if row and not (refused and row[-1].verdict == tick.verdict):
            yield tuple(row)
            row.clear()
        if refused:
            row.append(tick)
    yield from (tuple(row) for row in rows.values() if row)


def _refused(tick: TickObservation) -> bool:
    # A CLOSE with a deny reason was a REVERSE: what was refused is its opening.
    return tick.verdict != "HOLD" and tick.action not in OPENED and tick.reason in DENIED


# --- the table ------------------------------------------------------------------------------------


def _reasons(one: Openings) -> str | None:
    """Return the reasons with their episodes and ticks; None where no action is known."""
    if one.made is None:
        return None
    return "; ".join(
        f"{name} {told.episodes:,} ({count(told.ticks, 'tick')})"
        for name, told in one.refused.items()
    ) or "none"  # fmt: skip


COLUMNS: Final[Columns] = {
    "arm": "arm",
    "BUY, % of ticks": percentage("buy_share", 1),
    "SELL, % of ticks": percentage("sell_share", 1),
    "openings made": "made",
    "openings refused": "refusals",
    "openings refused, by reason": _reasons,
}


def openings_exhibit(
    arms: Sequence[ArmObservation], placebos: Collection[str] = frozenset()
) -> Exhibit:
    """Return the table of verdicts and openings, a row for each arm.

    The sentence leaves out arms named in `placebos`, whose words are another arm's.
    """
    found = [openings(arm) for arm in arms]
    return Exhibit(
        name="openings",
        title="Verdicts, and the openings that were made and refused",
        **contents(COLUMNS, found),
        figures=by_arm((one.arm, _figures(one)) for one in found),
        says=_says([one for one in found if one.arm not in placebos]),
        enough=any(one.ticks >= LEAST_TICKS for one in found),
    )


def _figures(one: Openings) -> dict[str, float | None]:
    told: dict[str, float | None] = {
        "buy_share": one.buy_share,
        "sell_share": one.sell_share,
        "made": one.made,
        "refused": one.refusals,
    }
    for reason, refused in one.refused.items():
        told |= {f"{reason}.episodes": refused.episodes, f"{reason}.ticks": refused.ticks}
    return told


def _says(found: Sequence[Openings]) -> str:
    known = [one for one in found if one.ticks]
    if not known:
        return "No tick was run, so nothing was decided."
    told = " ".join(map(_told, known))
    more = " ..." if len(told) > MOST_TOLD else ""
    return (
        f"{told[:MOST_TOLD]}{more} An opening that is refused on several ticks in a row counts "
        "once, and so does each reason in it; on how many ticks stands in brackets."
    )


def _told(one: Openings) -> str:
    shares = [percent(share, 1) for share in (one.buy_share, one.sell_share)]
    told = f"{one.arm}: BUY on {shares[0]} of {count(one.ticks, 'tick')}, SELL on {shares[1]}"
    if one.made is not None:
        told += f"; {count(one.made, 'opening')} made, {one.episodes:,} refused"
        told += f": {_reasons(one)}" if one.refused else ""
    return f"{told}."


# --- what to warn of ------------------------------------------------------------------------------


def side_warning(arms: Sequence[ArmObservation]) -> str:
    """Return which arms hardly ever say one of BUY and SELL; "" where none does."""
    names = [arm.name for arm in arms]
    told = [
        f"{the_arm(one.arm, names)} (BUY on {percent(one.buy_share, 1)} of ticks, SELL on "
        f"{percent(one.sell_share, 1)})"
        for one in map(openings, arms)
        if leans(one.buys, one.sells, LEAST_VERDICTS)
    ]
    if not told:
        return ""
    return (
        f"One side has under a tenth of the other's verdicts: {listed(told)}. These bars test one "
        "side only."
    )


def rounding_warning(arms: Sequence[ArmObservation], profile: Profile) -> str:
    """Return in which arms lot rounding decides, and what would help; "" where in none.

    `profile` has the capital and the symbols' lots that the arms ran with.
    """
    names = [arm.name for arm in arms]
    found = [(arm, openings(arm)) for arm in arms]
    meant = [(arm, one) for arm, one in found if (one.share(SIZE_ZERO) or 0.0) > NOTABLE_SHARE]
    if not meant:
        return ""
    told = listed(
        [
            f"{one.refused[SIZE_ZERO].episodes:,} of {one.wanted:,} openings that "
            f"{the_arm(one.arm, names)} wanted ({percent(one.share(SIZE_ZERO))})"
            for _, one in meant
        ]
    )
    apart = " Differences between them may be rounding." if len(arms) > 1 else ""
    helps = _remedy([arm for arm, _ in meant], profile)
    return f"Lot rounding decides (SIZE_ZERO): it refused {told}.{apart}{helps}"


def _remedy(arms: Sequence[ArmObservation], profile: Profile) -> str:
    """Return which capital, or which lot step, would have let most of the refused openings pass."""
    refused = [tick for arm in arms for tick in arm.ticks if tick.reason == SIZE_ZERO]
    symbols = sorted({tick.symbol for tick in refused})
    # Of several symbols each has its own steps; the one that is refused most is named.
    symbol = max(symbols, key=lambda name: sum(tick.symbol == name for tick in refused))
    spec, capital = profile.symbol(symbol), profile.risk.capital
    rooms = [room for tick in refused if tick.symbol == symbol if (room := _room(tick, profile))]
    if not rooms:
        return " The gate or the agents' conviction left nothing of the size; no capital helps."
    least = float(np.quantile(rooms, 1 - HELPED, method="lower"))
    wanted, step = _up(capital * smallest(spec) / least), _down(least)
    return (
        f" The capital is {capital:,.10g} in account currency, the smallest order of {symbol} "
        f"{smallest(spec):g} lots: a capital of {wanted:,.10g}, or lots in steps of {_plain(step)},"
        f" would have been enough on {percent(HELPED)} of those ticks."
    )


def _room(tick: TickObservation, profile: Profile) -> float:
    """Return the lots of a tick's opening before they are rounded; 0.0 where nothing was left."""
    spec, risk = profile.symbol(tick.symbol), profile.risk
    found = levels(tick.verdict, tick.close, tick.atr, spec)
    if not isinstance(found, Levels):
        return 0.0
    by_risk = exact(risk.capital * risk.risk_per_trade_pct / 100) / loss_of_one(found, spec)
    worth = exact(found.entry) * value_of_one(spec)
    by_worth = exact(risk.capital * risk.max_notional_pct / 100) / worth
    return float(min(by_risk, by_worth)) * tick.size_share


def _plain(value: float) -> str:
    """Return a number without an exponent and without zeros at its end."""
    return f"{value:.10f}".rstrip("0").rstrip(".")


def _up(value: float) -> float:
    """Return a number rounded up to two figures."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(round(value / unit, 6)) * unit


def _down(value: float) -> float:
    """Return the next lower of 1, 2, 5 times a power of ten: the steps that brokers have."""
    unit = 10.0 ** math.floor(math.log10(value))
    return max(n for n in (1, 2, 5) if n * unit <= value * (1 + 1e-9)) * unit
