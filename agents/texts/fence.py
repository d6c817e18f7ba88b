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
"""Replaces the fence's random text in every record."""

_HEXADECIMAL: Final = frozenset("0123456789abcdef")

NONCE: Final = re.compile(r"[A-Za-z0-9]{8,64}")
_OPENING: Final = "<{[‹«≪⟨〈《˂ᐸ❬❮❰⟪⋖⋘⪡⦉⦑⧼⫷"
_CLOSING: Final = ">}]›»≫⟩〉》˃ᐳ❭❯❱⟫⋗⋙⪢⦊⦒⧽⫸"
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Unicode displays as nothing though they count as printable."""
_PLAINER: Final = str.maketrans(
    f"{_OPENING}{_CLOSING}`", "(" * len(_OPENING) + ")" * len(_CLOSING) + "'"
)
"""Replaces brackets, which open fences and a chat's own marks."""
_WORD: Final = r"[!-;=?-Z\\^_a-z|~]+"
"""ASCII letters and signs without any of those."""
_CLEAN: Final = re.compile(f"(?:{_WORD}(?: {_WORD})*)?")
"""A text as `clean` would leave it, its length aside: most is."""
_CUT: Final = "…"


def has_nonce(context: DebateContext) -> bool:
    """Return whether the context carries a nonce that is long and plain enough to fence with."""
    return NONCE.fullmatch(context.nonce) is not None


def clean(text: str, limit: int, nonce: str = "") -> str:
    """Return text as one printable line of at most `limit` bytes that can forge no fence."""
    # Cut before the work: a stranger's text may be megabytes long.
    text = text[: limit * 2]
    if not (_CLEAN.fullmatch(text) and (not nonce or nonce.lower() not in text.lower())):
        # Full-width brackets and the like become the plain ones that are replaced below.
        text = unicodedata.normalize("NFKC", text)
        text = "".join(letter if letter.isprintable() else " " for letter in text)
        # Letters first: invisible ones inside it could hide a nonce; its placeholder has brackets
        # again.
        text = without_nonce(_UNSEEN.sub("", text).translate(_PLAINER), nonce).translate(_PLAINER)
        text = " ".join(text.split())
    written = text.encode()
    if len(written) <= limit:
        return text
    # Cut by bytes, so the last letter may be half: it is dropped.
    return written[: max(0, limit - len(_CUT.encode()))].decode(errors="ignore") + _CUT


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
