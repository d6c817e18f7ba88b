"""Reads the grid of a sweep: from `--thresholds .3:.7:.05 --weights momentum=0:.5:.25` to profiles.

An axis is FROM:TO:STEP with both ends included, or values with commas between them, or one value.
Numbers are read as decimals, so that 0.3 + 8 x 0.05 is 0.7 and not a little less. Every combination
of the axes is a configuration, in the order in which they were written, thresholds first. A text
that is no grid, and a grid that is too large, raise ConfigError that says what to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import product
from typing import Any, Final

from torra.clock import TIMEFRAMES
from torra.config import Profile, SentimentWeights, validate
from torra.errors import ConfigError

LARGEST: Final = 2_000
"""Configurations of one sweep: more would be looked through for luck, not for an answer."""

WEIGHTS: Final = tuple(SentimentWeights.model_fields)
AXIS_HELP: Final = "write FROM:TO:STEP or values with commas, as .3:.7:.05 or .4,.5"


@dataclass(frozen=True, slots=True)
class GridCell:
    """One configuration: its name, its differences from the profile, and its own profile."""

    name: str
    settings: Mapping[str, float]
    profile: Profile


def axis(option: str, text: str) -> tuple[float, ...]:
    """Return the values of an axis in the order written; raises ConfigError naming the option."""
    parts = text.split(":")
    if len(parts) == 3:
        first, last, step = (_decimal(option, text, part) for part in parts)
        if step <= 0 or last < first:
            raise ConfigError(f"{option} {text}: FROM is at most TO and STEP above 0; {AXIS_HELP}")
        # Before the values are made: a tiny step would fill the memory.
        if (last - first) / step >= LARGEST:
            raise ConfigError(f"{option} {text}: more than {LARGEST:,} values; take a larger step")
        count = int((last - first) / step) + 1
        return tuple(float(first + step * number) for number in range(count))
    if len(parts) != 1:
        raise ConfigError(f"{option} {text}: {AXIS_HELP}")
    found = tuple(float(_decimal(option, text, part)) for part in text.split(","))
    if len(set(found)) < len(found):
        raise ConfigError(f"{option} {text}: a value stands there twice")
    return found


def cells(profile: Profile, thresholds: str, weights: Sequence[str] = ()) -> tuple[GridCell, ...]:
    """Return every configuration of a grid; raises ConfigError for one that a profile refuses.

    `thresholds` is an axis, the same for BUY and SELL, "" for the profile's own; each of `weights`
    is NAME=AXIS, NAME a vector, ath or a timeframe.
    """
    axes: dict[str, tuple[float, ...]] = {}
    if thresholds:
        axes["threshold"] = axis("--thresholds", thresholds)
    for text in weights:
        name, values = _weight(text, profile)
        if name in axes:
            raise ConfigError(f"--weights {text}: {name} is an axis already")
        axes[name] = values
    count = 1
    for values in axes.values():
        count *= len(values)
    # Counted before the product is made, for the same reason.
    if count > LARGEST:
        raise ConfigError(f"the grid has {count:,} configurations; {LARGEST:,} at most")
    drawn = (dict(zip(axes, chosen, strict=True)) for chosen in product(*axes.values()))
    return tuple(_cell(profile, settings) for settings in drawn)


def _cell(profile: Profile, settings: Mapping[str, float]) -> GridCell:
    told = " ".join(f"{name} {value:g}" for name, value in settings.items())
    values = profile.model_dump(mode="json")
    for place, key, value in _places(settings):
        values[place][key] = value
    return GridCell(
        told or "as it is", dict(settings), validate(Profile, values, f"the grid at {told}")
    )


def _places(settings: Mapping[str, float]) -> Iterator[tuple[str, str, float]]:
    for name, value in settings.items():
        if name == "threshold":
            yield "thresholds", "buy", value
            yield "thresholds", "sell", value
        else:
            yield "timeframe_weights" if name in TIMEFRAMES else "sentiment_weights", name, value


def _weight(text: str, profile: Profile) -> tuple[str, tuple[float, ...]]:
    name, mark, values = text.partition("=")
    name = name.strip()
    known = (*WEIGHTS, *profile.timeframe_weights)
    if not mark or name not in known:
        raise ConfigError(
            f"--weights {text}: write NAME=AXIS, as momentum=0:.5:.25; names: {', '.join(known)}"
        )
    return name, axis(f"--weights {name}", values)


def _decimal(option: str, text: str, part: str) -> Decimal:
    try:
        found = Decimal(part.strip())
    except InvalidOperation:
        raise ConfigError(f"{option} {text}: {part!r} is no number; {AXIS_HELP}") from None
    if not found.is_finite():
        raise ConfigError(f"{option} {text}: {part!r} is no number; {AXIS_HELP}")
    return found


def as_json(cell: GridCell) -> dict[str, Any]:
    """Return what names a configuration in a log: its settings by name."""
    return dict(sorted(cell.settings.items()))
