r"""Text of unknown origin as it may stand on a terminal, in a log or in a file.

A model, a broker, a headline or a stranger's file may hold characters that steer a terminal, turn
the reading direction or cannot be seen: a line then reads as another than it is. `escaped` shows
each as its escape, such as \u202e. In JSON that is the same text, so a document keeps what it says.
Pages leave such characters out (torra.exhibits.figures). Nothing here raises.
"""

from __future__ import annotations

import re
from typing import Final

HOSTILE: Final = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""Control characters, bidirectional controls, invisible joiners and lone surrogates."""


def escaped(text: str) -> str:
    """Return text with each hostile character as its escape; line ends and tabs stay."""
    return HOSTILE.sub(lambda character: f"\\u{ord(character[0]):04x}", text)
