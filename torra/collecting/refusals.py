"""What vendors and publishers answer instead of what they were asked, and what a person can do.

One table for all who are asked over torra.collecting.line. A row is told by the status of HTTP and
by words in the answer; the first that fits counts. Detail and remedy are ours: an answer may quote
the key, and nothing of it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from torra.evidence.news_digest import NewsStatus

OK: Final = 200
BROKEN_DOWN: Final = 500

REFUSED: Final = NewsStatus.REFUSED
LIMITED: Final = NewsStatus.RATE_LIMITED
BROKEN: Final = NewsStatus.BROKEN
UNREACHABLE: Final = NewsStatus.UNREACHABLE


class HttpRefusal(NamedTuple):
    """A documented answer: of one status of HTTP, or 0 for any, with these words in small letters.

    `status` decides how long the next question waits, `detail` says what is wrong and the remedy.
    """

    code: int
    words: str
    status: NewsStatus
    detail: str


_EDGAR: Final = (
    HttpRefusal(403, "request rate threshold exceeded", LIMITED,
            "EDGAR says that too many requests came: asked again later"),
    HttpRefusal(403, "", REFUSED,
            "EDGAR does not take the contact: set TORRA_EDGAR_CONTACT to your own address"),
)  # fmt: skip

REFUSALS: Final[Mapping[str, tuple[HttpRefusal, ...]]] = {
    "alpha_vantage": (
        HttpRefusal(OK, "for demo purposes only", REFUSED,
                "the key is the demo key: set ALPHAVANTAGE_API_KEY to one of your own"),
        HttpRefusal(OK, "apikey is invalid", REFUSED,
                "the key is not valid: set ALPHAVANTAGE_API_KEY to one that is"),
        # A limit names the premium endpoints too, so that its rows come first.
        HttpRefusal(OK, "call frequency", LIMITED, "too many requests at once: asked again later"),
        HttpRefusal(OK, "per second", LIMITED, "too many requests at once: asked again later"),
        HttpRefusal(OK, "per day", LIMITED,
                "the key's requests of the day are used up: wait a day, or take a larger plan"),
        HttpRefusal(OK, "call volume", LIMITED,
            "the key's requests are used up: asked again later"),
        HttpRefusal(OK, "premium", REFUSED,
                "the key's plan has no such news: take another plan, or another source"),
        HttpRefusal(OK, "no articles found", NewsStatus.EMPTY, "it has no articles on this"),
        HttpRefusal(OK, "invalid inputs", REFUSED,
                "it knows no such ticker or topic: correct symbols.SYMBOL.ticker of the profile"),
        HttpRefusal(OK, "invalid api call", REFUSED,
                "it does not know the question: correct symbols.SYMBOL.ticker of the profile"),
    ),
    "finnhub": (
        HttpRefusal(0, "invalid api key", REFUSED,
                "the key is not valid: set FINNHUB_API_KEY to one that is"),
        HttpRefusal(0, "use an api key", REFUSED, "no key came: set FINNHUB_API_KEY"),
        HttpRefusal(0, "sign up for a free account", REFUSED, "no key came: set FINNHUB_API_KEY"),
        HttpRefusal(0, "have access to this resource", REFUSED,
                "the key's plan has no such data: take another plan, or another source"),
        HttpRefusal(0, "limit reached", LIMITED,
                "the key's requests of the minute are used up: asked again later"),
        HttpRefusal(0, "symbol not supported", REFUSED,
                "it knows no such ticker: correct symbols.SYMBOL.ticker of the profile"),
    ),
    "fred": (
        HttpRefusal(404, "", BROKEN, "FRED has no such series any more: take a newer Torra"),
        HttpRefusal(403, "", REFUSED,
            "FRED does not answer this machine: wait, or ask from another"),
    ),
    "cftc": (
        HttpRefusal(202, "", UNREACHABLE, "the CFTC is still at work on it: asked again later"),
        HttpRefusal(400, "", BROKEN, "the CFTC does not know the question: take a newer Torra"),
        HttpRefusal(403, "app_token", REFUSED,
                "the CFTC does not know the token: correct TORRA_CFTC_APP_TOKEN, or unset it"),
        HttpRefusal(403, "", REFUSED, "the CFTC does not show this report: take a newer Torra"),
        HttpRefusal(404, "", BROKEN, "the CFTC has no such report any more: take a newer Torra"),
        HttpRefusal(429, "", LIMITED,
                "the CFTC says that too many requests came: set TORRA_CFTC_APP_TOKEN"),
    ),
    "edgar": _EDGAR,
    "edgar_files": _EDGAR,
}  # fmt: skip
"""Documented answers, by the vendor's name (torra.providers.vendors.addresses)."""

COMMON: Final = (
    HttpRefusal(401, "", REFUSED, "HTTP status 401: the key is not accepted; set one that is"),
    HttpRefusal(403, "", REFUSED, "HTTP status 403: the key may not ask this; look at its plan"),
    HttpRefusal(429, "", LIMITED, "HTTP status 429: too many requests; asked again later"),
    HttpRefusal(OK, "", REFUSED, "an error instead of an answer: look at the key and the symbol"),
)  # fmt: skip

PAGE: Final = (BROKEN, "a web page instead of an answer: look at the address")


def refusal(vendor: str, code: int, said: str) -> tuple[NewsStatus, str]:
    """Return what an answer that is none means, and its words."""
    text = said.lower()
    for row in (*REFUSALS.get(vendor, ()), *COMMON):
        if row.code in {0, code} and row.words in text:
            return row.status, row.detail
    if code >= BROKEN_DOWN:
        return UNREACHABLE, f"HTTP status {code}: it is out of order; asked again later"
    return BROKEN, f"HTTP status {code}: look at the address"
