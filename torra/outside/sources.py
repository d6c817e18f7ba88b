"""The sources of outside numbers, and why a block of features has nothing of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from torra.evidence.news_digest import NewsStatus

FEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "macro": ("fred", "file"),
    "cot": ("cftc", "file"),
    "derivs": ("file",),
    "company": ("edgar", "file"),
}
"""Who brings the series of a block, the first that is named before the others."""


def trouble_of(
    sources: Collection[str], status: Callable[[str], str] = lambda _source: ""
) -> Callable[[str], str]:
    """Return a function that says of a block why nothing is known of it.

    `sources` are those of the settings; `status` says how it stands with one that is asked, "" of
    one that is not.
    """

    def trouble(block: str) -> str:
        named = [name for name in FEEDS[block] if name in sources]
        if not named:
            return str(NewsStatus.OFF)
        words = map(status, named)
        return next(filter(None, words), str(NewsStatus.EMPTY))

    return trouble
