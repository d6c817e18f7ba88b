"""Text of a page: numbers and states, written one way everywhere; and the places of small bars.

A missing number is an em dash, never a zero. A negative number has U+2212 as its minus. Every state
has a glyph and a word, so that colour only repeats what is already said. Text that a model wrote is
cleaned of control characters and of marks that turn the reading direction. Pure functions: a value
that cannot be shown gives the dash, and nothing raises.
"""

from __future__ import annotations

import math
from typing import Final, TypedDict

from torra import clock
from torra.harmless_text import HOSTILE
from torra.words.badge import Badge
from torra.words.ticks import BADGES

MINUS: Final = "\u2212"
DASH: Final = "\u2014"
SCORE_DECIMALS: Final = 3
FULL_DECIMALS: Final = 5
"""Decimals of the arithmetic that a reader recomputes."""

MAX_TEXT: Final = 4000
"""Most characters of a model's text on a page."""

BAR_WIDTH: Final = 100.0
"""Width of a signed bar's coordinate system; zero lies in the middle."""

STATES: Final = ("STRONG_BULLISH", "BULLISH", "NEUTRAL", "BEARISH", "STRONG_BEARISH")
VERDICTS: Final = ("BUY", "HOLD", "SELL", "VETO", "DECLINED", "skipped")
"""Lanes of a timeline, from above."""

NEAR_CEILING: Final = 0.8
"""Share of a ceiling from which on it is told in colour."""


def number(value: object) -> float | None:
    """Return a finite number, or None for anything else."""
    # bool is a kind of int: True would be written as 1
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        known = float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return None
    return known if math.isfinite(known) else None


def format_signed(value: object, decimals: int = SCORE_DECIMALS) -> str:
    """Write a score or an adjustment with its sign; zero has none."""
    known = number(value)
    if known is None:
        return DASH
    text = f"{abs(known):,.{decimals}f}"
    # the written number decides: -0.0004 is 0.000, which has no sign
    if not float(text.replace(",", "")):
        return text
    return (MINUS if known < 0 else "+") + text


def plain(value: object, decimals: int = 2) -> str:
    """Write a number with thousands separators; only a negative one has a sign."""
    known = number(value)
    if known is None:
        return DASH
    text = f"{abs(known):,.{decimals}f}"
    return MINUS + text if known < 0 and float(text.replace(",", "")) else text


def format_any(value: object) -> str:
    """Write a value of evidence as it is cited: a number with up to eight digits, or a word."""
    known = number(value)
    if known is None:
        return DASH if value is None or isinstance(value, float) else sanitize(str(value), 200)
    return f"{known:,.8g}".replace("-", MINUS)


def money(value: object, decimals: int = 4, currency: str = "$") -> str:
    """Write an amount with its currency."""
    known = number(value)
    if known is None:
        return DASH
    return (MINUS if known < 0 else "") + currency + f"{abs(known):,.{decimals}f}"


def span(seconds: object) -> str:
    """Write a length of time to read at a glance: 45 s, 12 min, 3 h 05 min, 2 d 4 h."""
    known = number(seconds)
    if known is None:
        return DASH
    whole = max(0, int(known))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def countdown(seconds: object) -> str:
    """Write a time to wait as 0:04 or 1:02:09; `due` once it has passed."""
    known = number(seconds)
    if known is None:
        return DASH
    # up: half a second left is not due yet
    whole = math.ceil(known)
    if whole <= 0:
        return "due"
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def moment(text: object, seconds: bool = False) -> str:
    """Write an ISO time as 2021-12-01 10:15 UTC."""
    try:
        when = clock.parse(str(text))
    except ValueError:
        return DASH
    return when.strftime("%Y-%m-%d %H:%M:%S UTC" if seconds else "%Y-%m-%d %H:%M UTC")


def mark(name: object) -> Badge:
    """Return the mark of a state; a state without one keeps its own name."""
    known = BADGES.get(str(name))
    if known:
        return known
    return Badge("", DASH if name is None else sanitize(str(name), 60), "flat")


def share_tone(share: float) -> str:
    """Return the tone of the share of a ceiling that is used."""
    return "alert" if share >= 1 else "warn" if share >= NEAR_CEILING else ""


def tone(value: object, decimals: int = SCORE_DECIMALS) -> str:
    """Return the tone of a written number: up or down by its sign, flat for 0, "" for a dash."""
    text = format_signed(value, decimals)
    if text == DASH:
        return ""
    return {"+": "up", MINUS: "down"}.get(text[0], "flat")


def sanitize(text: object, limit: int = MAX_TEXT) -> str:
    """Return text of unknown origin without hostile characters and no longer than `limit`."""
    safe = HOSTILE.sub("", str(text or "").replace("\r\n", "\n"))
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters with which a spreadsheet begins a formula; no cell of a file may begin with one."""

CONTROL: Final = ("\t", "\r", "\n")


def guarded(text: str) -> str:
    """Return text as a cell that no spreadsheet takes for a formula, otherwise as it is."""
    # spreadsheets skip blanks before a formula
    risky = text.startswith(CONTROL) or text.lstrip().startswith(FORMULA)
    return f"'{text}" if risky else text


def sheet_cell(value: object, limit: int = MAX_TEXT) -> object:
    """Return a value as a cell of a CSV file, text of unknown origin cleaned and guarded.

    A number stays one, a missing value is empty.
    """
    if not isinstance(value, str):
        return "" if value is None else value
    return guarded(sanitize(value, limit))


def title(name: str) -> str:
    """Write an identifier as words: bull_researcher becomes Bull researcher."""
    words = sanitize(name, 80).replace("_", " ")
    return words[:1].upper() + words[1:]


def position_on_axis(value: object, bound: float = 1.0) -> float:
    """Return where a value lies on a bar, 0 to BAR_WIDTH; a missing one in the middle."""
    known = number(value) or 0.0
    share = max(-1.0, min(1.0, known / bound))
    return round((share + 1) / 2 * BAR_WIDTH, 2)


class BarSpan(TypedDict):
    """Where a bar begins, and how wide it is."""

    x: float
    width: float


def signed_bar(value: object, bound: float = 1.0) -> BarSpan:
    """Return x and width of a bar that grows from the middle."""
    end = position_on_axis(value, bound)
    middle = BAR_WIDTH / 2
    return {"x": min(end, middle), "width": round(abs(end - middle), 2)}
