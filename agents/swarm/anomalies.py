"""What an expert may call odd, and the numbers that show it: a word without its number is dropped.

`ROWS` has the limits of each word; it is shown where all limits of one row hold. `RELATIONS` has
what limits cannot say: how one number stands to another. An unknown number shows nothing. The
mirrored market shows the mirrored words. Pure functions; nothing raises.
"""

from __future__ import annotations

import math
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


class Limit(NamedTuple):
    """A limit of a number: `way` +1 holds at or above it, -1 at or below it.

    `strict` holds only beyond it, `size` is of the number without its sign. A word as the limit is
    one of those that the feature has.
    """

    feature: str
    limit: float | str
    way: int = 1
    strict: bool = False
    size: bool = False

    def holds(self, value: float | str | None) -> bool | None:
        """Tell whether a value is within it; None of an unknown one."""
        if value is None:
            return None
        if isinstance(value, str) or isinstance(self.limit, str):
            return str(self.limit) in str(value).split()
        beyond = self.way * ((abs(value) if self.size else value) - self.limit)
        return beyond > 0.0 if self.strict else beyond >= 0.0

    def __str__(self) -> str:
        """Return it as the docs do."""
        if isinstance(self.limit, str):
            return f"`{self.feature}` has {self.limit}"
        way = {
            (1, True): "above",
            (1, False): "at least",
            (-1, True): "below",
            (-1, False): "at most",
        }
        either = " either way" if self.size else ""
        return f"`{self.feature}` {way[self.way, self.strict]} {self.limit:g}{either}"


FEAR: Final = (
    (Limit("derivs.dvol_rank", PANIC_RANK),),
    (Limit("derivs.iv_slope", 0.0, -1, strict=True),),
)
"""Options that panic: implied volatility by rank, or near-term above far-term."""

ROWS: Final[Mapping[str, tuple[tuple[Limit, ...], ...]]] = {
    "whale_cvd_divergence": (
        (
            Limit("liquidity.divergence", 1.0, size=True),
            Limit("liquidity.delta20", 0.05, size=True),
        ),
    ),
    "stop_sweep": (
        (Limit("liquidity.sweep_low", 1.0), Limit("liquidity.sweep_age", 2.0, -1)),
        (Limit("liquidity.sweep_high", 1.0), Limit("liquidity.sweep_age", 2.0, -1)),
    ),
    "fake_wall": (
        (
            Limit(BOOK, 0.5, size=True),
            Limit("flow.book_events", WALL_EVENTS),
        ),
    ),
    "imbalance": ((Limit(BOOK, LEANING, strict=True, size=True),),),
    "fragile": (
        (Limit("micro.spread_percentile", 95.0), Limit("micro.spread_jump", 2.0)),
        (Limit("flow.slippage_atr", 0.25),),
    ),
    "options_panic": (
        *FEAR,
        (Limit("derivs.put_call_rank", PANIC_RANK),),
        (Limit("macro.vix_rank", PANIC_RANK),),
    ),
    "macro_divergence": ((),),
    "exhaustion_top": (
        (Limit(TRIAGE, "exhaustion"), Limit("geometry.channel_place", 0.5, strict=True)),
    ),
    "capitulation_bottom": (
        (Limit(TRIAGE, "exhaustion"), Limit("geometry.channel_place", 0.5, -1, strict=True)),
    ),
    "clean_breakout": ((Limit(TRIAGE, "breakout"), Limit(BOS, 1.0, size=True)),),
    "fake_breakout": ((Limit("geometry.pattern_done", 1.0), Limit(BOS, 1.0, size=True)),),
    "geometric_trap": ((),),
    "accumulation_range": (
        (
            Limit("geometry.compression", 0.3, -1),
            Limit("geometry.channel_slope_atr", 0.02, -1, size=True),
        ),
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


def _pressed(features: Features) -> tuple[str, ...] | None:
    book, share = number(features, BOOK), number(features, UP_SHARE)
    if book is None or share is None:
        return None
    # rounded as it is shown, so that the limit itself counts
    pressed = round(math.copysign(1.0, book) * (0.5 - share), PRESSED_DECIMALS)
    return (UP_SHARE,) if pressed >= PRESSED else None


def _divergence(features: Features) -> tuple[str, ...] | None:
    close, mean = number(features, CLOSE), number(features, MEAN)
    if close is None or mean is None:
        return None
    for name in (name for name in sorted(features) if name.startswith(COMPANIONS)):
        rank = name.removesuffix("correlation") + "percentile"
        together, ranked = number(features, name), number(features, rank)
        if not name.endswith(".correlation") or together is None or ranked is None:
            continue
        stretch = math.copysign(1.0, together) * (ranked / 50.0 - 1.0)
        far = abs(together) >= TOGETHER and abs(stretch) >= DIVERGED
        if far and stretch * (close - mean) < 0.0:
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
