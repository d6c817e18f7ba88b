"""What vendors and publishers answer instead of what they were asked, and what a person can do.

One table for all who are asked over torra.collecting.line: a row in vendors.toml, or of COMMON. The
status of HTTP and words in the answer decide; the first row that fits counts. Detail and remedy are
ours: an answer may quote the key, and nothing of it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from torra.evidence.news_digest import NewsStatus
from torra.providers.vendors.table import vendors

OK: Final = 200
BROKEN_DOWN: Final = 500


class HttpRefusal(NamedTuple):
    """A documented answer: of one status of HTTP, or 0 for any, with these words in small letters.

    `status` decides how long the next question waits, `detail` says what is wrong and the remedy.
    """

    code: int
    words: str
    status: NewsStatus
    detail: str


REFUSED: Final = NewsStatus.REFUSED
COMMON: Final = (
    HttpRefusal(401, "", REFUSED, "HTTP status 401: the key is not accepted; set one that is"),
    HttpRefusal(403, "", REFUSED, "HTTP status 403: the key may not ask this; look at its plan"),
    HttpRefusal(
        429, "", NewsStatus.RATE_LIMITED, "HTTP status 429: too many requests; asked again later"
    ),
    HttpRefusal(OK, "", REFUSED, "an error instead of an answer: look at the key and the symbol"),
)

PAGE: Final = (NewsStatus.BROKEN, "a web page instead of an answer: look at the address")


@cache
def refusals() -> Mapping[str, tuple[HttpRefusal, ...]]:
    """Return the documented answers, by the vendor's name."""
    return {
        name: tuple(
            HttpRefusal(code, words, NewsStatus(status), detail)
            for code, words, status, detail in row.refusals
        )
        for name, row in vendors().items()
        if not row.sdk
    }


def refusal(vendor: str, code: int, reply: str) -> tuple[NewsStatus, str]:
    """Return what an answer that is none means, and its words."""
    text = reply.lower()
    for row in (*refusals().get(vendor, ()), *COMMON):
        if row.code in {0, code} and row.words in text:
            return row.status, row.detail
    if code >= BROKEN_DOWN:
        return NewsStatus.UNREACHABLE, f"HTTP status {code}: it is out of order; asked again later"
    return NewsStatus.BROKEN, f"HTTP status {code}: look at the address"
