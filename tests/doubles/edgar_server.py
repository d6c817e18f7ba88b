"""A loopback server that stands for EDGAR: the data, the table of tickers, and its two refusals.

`files` are the concepts by company, taxonomy and name, `filings` the submissions, `ciks` the
tickers. Who names no contact gets the page on undeclared tools. `play(Said(...))` makes every reply
something else, `mend()` the files again; `limit()` makes it the page on too many requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Self

from tests.doubles import edgar_payloads as edgar
from tests.doubles.loopback import Loopback
from tests.doubles.news_server import NewsServer, Said

HTML: Final = {"content-type": "text/html"}
CONCEPT: Final = re.compile(r"/edgar/api/xbrl/companyconcept/CIK(\d{10})/([a-z-]+)/(\w+)\.json")
SUBMISSIONS: Final = re.compile(r"/edgar/submissions/CIK(\d{10})\.json")
NO_SUCH_KEY: Final = b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>'
CONTACT: Final = "canary@example.org"


def page(title: str) -> Said:
    """Return a refusal as the SEC's firewall gives it: a page, and no JSON."""
    head = (
        '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN">\n<html xmlns="x">\n<head>\n'
        '<meta http-equiv="Content-Type" content="text/html; charset=UTF-8" />\n'
        f"<title>SEC.gov | {title}</title>\n"
    )
    style = "<style>html {height: 100%}</style>\n" * 200
    return Said(f"{head}{style}</head><body>{title}</body></html>".encode(), 403, HTML)


TOO_MANY: Final = page("Request Rate Threshold Exceeded")
UNDECLARED: Final = page("Your Request Originates from an Undeclared Automated Tool")


class EdgarServer(NewsServer):
    """See the module; use it in a `with`."""

    def __init__(self) -> None:
        super().__init__()
        self.ciks: dict[str, int] = dict(edgar.CIKS)
        self.files: dict[tuple[int, str, str], dict[str, Any]] = {}
        self.filings: dict[int, dict[str, Any]] = {}
        self.mend()

    @property
    def url(self) -> str:
        return str(Loopback.url.__get__(self))

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead here, with a contact."""
        return {
            "TORRA_EDGAR_BASE_URL": f"{self.url}/edgar",
            "TORRA_EDGAR_FILES_BASE_URL": f"{self.url}/files",
            "TORRA_EDGAR_CONTACT": CONTACT,
        }

    def add(self, *payloads: dict[str, Any]) -> Self:
        """Have files of concepts."""
        self.files |= {(one["cik"], one["taxonomy"], one["tag"]): one for one in payloads}
        return self

    def file(self, cik: int, *filings: tuple[str, str, str, str]) -> Self:
        """Have a company's submissions."""
        self.filings[cik] = edgar.submissions(cik, *filings)
        return self

    def mend(self) -> Self:
        """Answer from the files."""
        return self.play(self._answer)

    def limit(self) -> Self:
        """Answer that too many requests came."""
        return self.play(TOO_MANY)

    def _answer(self, path: str, _query: Mapping[str, str]) -> Said:
        if "@" not in self.headers[-1].get("user-agent", ""):
            return UNDECLARED
        if path == "/files/company_tickers.json":
            return _json(edgar.tickers(self.ciks))
        if found := SUBMISSIONS.fullmatch(path):
            return _json(self.filings.get(int(found[1])))
        if found := CONCEPT.fullmatch(path):
            return _json(self.files.get((int(found[1]), found[2], found[3])))
        return _json(None)


def _json(payload: Any) -> Said:
    if payload is None:
        return Said(NO_SUCH_KEY, code=404, headers={"content-type": "application/xml"})
    return Said(json.dumps(payload).encode())


def apple() -> EdgarServer:
    """Return a server that has the two reports of Apple, and Amazon's shares."""
    server = EdgarServer()
    server.add(edgar.aapl_assets(), edgar.aapl_equity(), edgar.amzn_shares())
    server.file(
        edgar.AAPL,
        (edgar.AAPL_Q2_2025, "10-Q", "2025-05-02", "2025-05-02T10:00:49.000Z"),
        (edgar.AAPL_2023, "10-K", "2023-11-03", "2023-11-02T22:08:27.000Z"),
        (edgar.AAPL_2022, "10-K", "2022-10-28", "2022-10-27T22:01:14.000Z"),
    )
    server.file(
        edgar.AMZN,
        (edgar.AMZN_2022, "10-K", "2023-02-03", "2023-02-02T23:06:12.000Z"),
        (edgar.AMZN_2020, "10-K", "2021-01-29", "2021-01-28T23:08:51.000Z"),
    )
    return server
