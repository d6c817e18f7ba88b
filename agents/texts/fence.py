"""The fence around quoted prose: the random word that marks it, and the text that it may hold.

Prose of another agent and headlines from strangers are quoted between two lines that carry a nonce.
`clean` removes everything that could forge such a line or begin one of its own: the result is one
printable line without brackets, without the nonce and without invisible letters. Pure functions
that raise for no text.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from ..contracts import DebateContext

NONCE_PLACEHOLDER: Final = "{NONCE}"
_HEXADECIMAL: Final = frozenset("0123456789abcdef")
"""Replaces the fence's random text in every record."""

NONCE: Final = re.compile(r"[A-Za-z0-9]{8,64}")
_OPENING: Final = "<{[‹«≪⟨〈《˂ᐸ❬❮❰⟪⋖⋘⪡⦉⦑⧼⫷"
_CLOSING: Final = ">}]›»≫⟩〉》˃ᐳ❭❯❱⟫⋗⋙⪢⦊⦒⧽⫸"
_UNSEEN: Final = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xE0100, 0xE01EF),
)
"""Characters that Unicode displays as nothing though they count as printable."""
_PLAINER: Final = str.maketrans(
    dict.fromkeys(_OPENING, "(")
    | dict.fromkeys(_CLOSING, ")")
    | {"`": "'"}
    | {chr(code): "" for first, last in _UNSEEN for code in range(first, last + 1)}
)
"""Replaces brackets, which open fences and a chat's own marks; removes invisible letters."""
_MARKS: Final = re.compile(r"[<>{}\[\]`]")
"""The ASCII characters among those."""
_CUT: Final = "…"


def has_nonce(context: DebateContext) -> bool:
    """Return whether the context carries a nonce that is long and plain enough to fence with."""
    return NONCE.fullmatch(context.nonce) is not None


def clean(text: str, limit: int, nonce: str = "") -> str:
    """Return text as one printable line of at most `limit` bytes that can forge no fence."""
    # Cut before the work: a stranger's text may be megabytes long.
    text = text[: limit * 2]
    if _is_clean(text) and (not nonce or nonce.lower() not in text.lower()):
        return text if len(text) <= limit else text[: max(0, limit - len(_CUT.encode()))] + _CUT
    if not text.isascii():
        # Full-width brackets and the like become the plain ones that are replaced below.
        text = unicodedata.normalize("NFKC", text)
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else " " for letter in text)
    # Letters first: invisible ones inside it could hide a nonce; its placeholder has brackets
    # again.
    text = without_nonce(text.translate(_PLAINER), nonce).translate(_PLAINER)
    text = " ".join(text.split())
    written = text.encode()
    if len(written) <= limit:
        return text
    # Cut by bytes, so the last letter may be half: it is dropped.
    return written[: max(0, limit - len(_CUT.encode()))].decode(errors="ignore") + _CUT


def _is_clean(text: str) -> bool:
    """Return whether text is as `clean` would leave it, its length aside: most is."""
    return (
        text.isascii()
        and text.isprintable()
        and _MARKS.search(text) is None
        and "  " not in text
        and not text.startswith(" ")
        and not text.endswith(" ")
    )


def without_nonce(text: str, nonce: str) -> str:
    """Return text with the nonce, in whatever case, replaced by its placeholder."""
    if not nonce or nonce.lower() not in text.lower():
        return text
    # Written as drawn it needs no pattern: that would be compiled for each call anew.
    if len(nonce) > len(NONCE_PLACEHOLDER) and _HEXADECIMAL.issuperset(nonce):
        text = text.replace(nonce, NONCE_PLACEHOLDER)
        if nonce not in text.lower():
            return text
    return re.sub(re.escape(nonce), NONCE_PLACEHOLDER, text, flags=re.IGNORECASE)
