"""The version of what Torra and its Expert Advisor write to each other, and what a difference says.

The messages (torra.bridges.torra.messages) and the bars files (torra.feeds.mt5_files) bear one
version. Neither side uses a word of another: Torra says so where a person looks, the Expert Advisor
refuses with `version`.
"""

from __future__ import annotations

from typing import Final

PROTOCOL: Final = 2
"""Version of messages and bars files; since 2 each of them names its channel."""


def difference(channel: str, theirs: int, ours: int = PROTOCOL) -> str:
    """Return the sentence about an Expert Advisor of another version, with the remedy."""
    remedy = (
        "compile and attach mql5/TorraBridge.mq5 anew"
        if theirs < ours
        else "update Torra, or compile and attach the mql5/TorraBridge.mq5 of this one"
    )
    return (
        f"the Expert Advisor on channel {channel} speaks protocol {theirs}, this Torra {ours}: "
        f"{remedy}"
    )
