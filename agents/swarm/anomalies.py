"""What an expert may call odd, and the numbers that show it: a word without its number is dropped.

`ROWS` has the limits of each word; it is shown where all limits of one row hold. `RELATIONS` has
what limits cannot say: how one number stands to another. An unknown number shows nothing. The
mirrored market shows the mirrored words. Pure functions; nothing raises.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ..contracts import PATTERNS, WALL_EVENTS, Feature
from ..evidence import COMPANIONS
from ..features import number, sides

Features = Mapping[str, Feature]

TRIAGE: Final = "market.triage"
BOS, CLOSE, MEAN = "technical.bos", "technical.close", "technical.sma50"
BOOK, UP_SHARE = "flow.book_imbalance", "flow.up_share"
PATTERN: Final = "geometry.pattern."
"""How the ids of patterns begin; 1 where code found one."""

LEANING: Final = 0.70
"""Imbalance of the order book above which it leans (document 003: more than 70 %)."""

PANIC_RANK: Final = 95.0
"""Rank of fear from which there is panic (GateSettings.panic_percentile)."""

PRESSED: Final = 0.1
"""How much more than half of the bar's moves went against a wall."""

PRESSED_DECIMALS: Final = 4

TOGETHER: Final = 0.5
DIVERGED: Final = 0.6
"""A companion diverges that moves with this market by so much and stands at such an end of its own
range while this market stands on the other side of its mean."""


SIGNS: Final[Mapping[str, tuple[Callable[[float, float], bool], str]]] = {
    ">=": (operator.ge, "at least"),
    ">": (operator.gt, "above"),
    "<=": (operator.le, "at most"),
    "<": (operator.lt, "below"),
}
"""How a number stands to a limit, and what the docs call that."""


class Limit(NamedTuple):
    """A limit of a number, or `has` and a word that the feature has.

    `size` is of the number without its sign.
    """

    feature: str
    sign: str
    limit: float | str
    size: bool = False

    def holds(self, value: float | str | None) -> bool | None:
        """Tell whether a value is within it; None of an unknown one."""
        if value is None:
            return None
        if isinstance(value, str) or isinstance(self.limit, str):
            return str(self.limit) in str(value).split()
        return SIGNS[self.sign][0](abs(value) if self.size else value, self.limit)

    def __str__(self) -> str:
        """Return it as the docs do."""
        if isinstance(self.limit, str):
            return f"`{self.feature}` has {self.limit}"
        either = " either way" if self.size else ""
        return f"`{self.feature}` {SIGNS[self.sign][1]} {self.limit:g}{either}"


Choices = tuple[tuple[Limit, ...], ...]


def limits(*choices: str) -> Choices:
    """Return the limits of each choice, such as "|technical.bos| >= 1 and market.triage has gap".

    A choice holds where all of its limits do; bars stand around a number that counts by its size.
    """
    rows = [[limit.split() for limit in choice.split(" and ")] for choice in choices]
    return tuple(
        tuple(
            Limit(name.strip("|"), sign, most if sign == "has" else float(most), name[0] == "|")
            for name, sign, most in row
        )
        for row in rows
    )


FEAR: Final = (f"derivs.dvol_rank >= {PANIC_RANK}", "derivs.iv_slope < 0")
"""Options that panic: implied volatility by rank, or near-term above far-term."""

ROWS: Final[Mapping[str, Choices]] = {
    "whale_cvd_divergence": limits("|liquidity.divergence| >= 1 and |liquidity.delta20| >= 0.05"),
    "stop_sweep": limits(
        "liquidity.sweep_low >= 1 and liquidity.sweep_age <= 2",
        "liquidity.sweep_high >= 1 and liquidity.sweep_age <= 2",
    ),
    "fake_wall": limits(f"|{BOOK}| >= 0.5 and flow.book_events >= {WALL_EVENTS}"),
    "imbalance": limits(f"|{BOOK}| > {LEANING}"),
    "fragile": limits(
        "micro.spread_percentile >= 95 and micro.spread_jump >= 2", "flow.slippage_atr >= 0.25"
    ),
    "options_panic": limits(
        *FEAR, f"derivs.put_call_rank >= {PANIC_RANK}", f"macro.vix_rank >= {PANIC_RANK}"
    ),
    "macro_divergence": ((),),
    "exhaustion_top": limits(f"{TRIAGE} has exhaustion and geometry.channel_place > 0.5"),
    "capitulation_bottom": limits(f"{TRIAGE} has exhaustion and geometry.channel_place < 0.5"),
    "clean_breakout": limits(f"{TRIAGE} has breakout and |{BOS}| >= 1"),
    "fake_breakout": limits(f"geometry.pattern_done >= 1 and |{BOS}| >= 1"),
    "geometric_trap": ((),),
    "accumulation_range": limits(
        "geometry.compression <= 0.3 and |geometry.channel_slope_atr| <= 0.02"
    ),
}
"""Limits of each word, what counts most of an expert's first."""


def shown_by(word: str, features: Features) -> tuple[str, ...]:
    """Return the features that show a word, () where none does or the word is unknown."""
    related = RELATIONS[word][1](features) if word in RELATIONS else ()
    for row in ROWS.get(word, ()) if related is not None else ():
        if all(limit.holds(_value(limit, features)) for limit in row):
            return (*(limit.feature for limit in row), *(related or ()))
    return ()


def patterns(features: Features) -> dict[str, int]:
    """Return which way each pattern leans that code found, by its feature."""
    names = (PATTERN + name for name in PATTERNS)
    known = (name for name in names if number(features, name) == 1.0)
    return {name: (*sides(name, features), 0)[0] for name in known}


def _value(limit: Limit, features: Features) -> float | str | None:
    if isinstance(limit.limit, float):
        return number(features, limit.feature)
    feature = features.get(limit.feature)
    return None if feature is None else feature.value


def _number_or_nan(features: Features, name: str) -> float:
    """Return a number; NaN, which is beyond no limit, where it is not known."""
    value = number(features, name)
    return math.nan if value is None else value


def _pressed(features: Features) -> tuple[str, ...] | None:
    share, book = _number_or_nan(features, UP_SHARE), _number_or_nan(features, BOOK)
    # rounded as it is shown, so that the limit itself counts
    pressed = round(math.copysign(1.0, book) * (0.5 - share), PRESSED_DECIMALS)
    return (UP_SHARE,) if pressed >= PRESSED else None


def _divergence(features: Features) -> tuple[str, ...] | None:
    ahead = _number_or_nan(features, CLOSE) - _number_or_nan(features, MEAN)
    for name in sorted(features):
        if name.startswith(COMPANIONS) and name.endswith(".correlation"):
            rank = f"{name.removesuffix('correlation')}percentile"
            together = _number_or_nan(features, name)
            stretch = math.copysign(1.0, together) * (_number_or_nan(features, rank) / 50.0 - 1.0)
            far = abs(together) >= TOGETHER and abs(stretch) >= DIVERGED
            if far and stretch * ahead < 0.0:
                return rank, name, CLOSE
    return None


def _against_the_break(features: Features) -> tuple[str, ...] | None:
    drawn, broke = patterns(features), number(features, BOS)
    return tuple(drawn) if broke and {*drawn.values()} == {-broke} else None


def _opposite(features: Features) -> tuple[str, ...] | None:
    drawn = patterns(features)
    return tuple(drawn) if {1, -1} <= {*drawn.values()} else None


RELATIONS: Final[Mapping[str, tuple[str, Callable[[Features], tuple[str, ...] | None]]]] = {
    "fake_wall": (
        f"`{UP_SHARE}` {PRESSED:g} or more beyond half, against the book's lean", _pressed
    ),
    "macro_divergence": (
        f"a companion's `correlation` at least {TOGETHER:g} either way, its `percentile` at most "
        f"{50 * (1 - DIVERGED):g} or at least {50 * (1 + DIVERGED):g}, and `{CLOSE}` on the other "
        f"side of `{MEAN}`",
        _divergence,
    ),
    "fake_breakout": (f"every `{PATTERN}*` that is 1 leans against `{BOS}`", _against_the_break),
    "geometric_trap": (f"a `{PATTERN}*` of either side is 1", _opposite),
}  # fmt: skip
"""What limits cannot say, in words, and the features in which it was seen; None where it is not."""
