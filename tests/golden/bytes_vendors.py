"""What goes over the wire to each vendor, as its own SDK writes it, and what the ledger books.

Bodies are those that reached a loopback server; the size and the hash of their bytes stand beside
them. Ledger rows are those of ticks whose calls a vendor bills, and of a desk that comes to its
ceiling.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from agent_config import MODELS
from agents.contracts import Completion, Request
from tests.doubles import vendor_line
from tests.doubles.vendor_line import PICTURE, knowing
from tests.doubles.vendor_server import ANTHROPIC, GOOGLE, OPENAI, VENDORS, Exchange, VendorServer
from tests.faults import lives
from tests.golden.exact import as_json, in_lines, rows, with_machine
from tests.worlds import desks, paid_ticks
from torra.clock import System

ROLES: Final = ("technical", "bull_researcher", "risk_gate", "chart_scorer")
PASSING: Final = frozenset(
    {"host", "user-agent", "x-goog-api-client", "content-length", "connection", "accept-encoding"}
)
"""Headers of the machine and of the SDK's version."""

PAID: Final[Mapping[str, str]] = {ANTHROPIC: "firm", GOOGLE: "full", OPENAI: "budget"}
"""Which desk each vendor is paid for."""

CEILING: Final = 0.45
"""USD of an hour that pays for some of a desk's calls, and not for all."""


def make(folder: Path) -> dict[str, str]:
    """Return the requests to each vendor, and the rows of each ledger."""
    texts = {f"wire_{vendor}.json": as_json(_sent(vendor)) for vendor in VENDORS}
    for vendor, mode in PAID.items():
        home = folder / vendor
        home.mkdir()
        paid_ticks.bill(home, vendor, mode, 2)
        texts[f"ledger_{vendor}_{mode}.json"] = as_json(_ledger(home))
    texts["ledger_ceiling.json"] = as_json(_short(folder))
    return with_machine(texts)


def _sent(vendor: str) -> dict[str, Any]:
    """Return what arrived at the vendor's own address and at a server of one's own."""
    with VendorServer() as server:
        with vendor_line.official(server, vendor) as line:
            for tier in ("quick", "deep"):
                for role in ROLES:
                    line.ask(vendor_line.a_request(role, MODELS[vendor][tier]))
            picture = {"picture": PICTURE, "max_output_tokens": 700}
            line.ask(vendor_line.a_request(ROLES[0], MODELS[vendor]["deep"], **picture))
        official = server.exchanges
        server.play({"*": knowing("prompt")} if vendor == OPENAI else {})
        with vendor_line.line(server, vendor) as line:
            line.ask(vendor_line.a_request(ROLES[0], MODELS[vendor]["quick"]))
        return {
            "official": [_plain(exchange) for exchange in official],
            "custom": [_plain(exchange) for exchange in server.exchanges],
        }


def _plain(exchange: Exchange) -> dict[str, Any]:
    headers = {name.lower(): value for name, value in exchange.headers.items()}
    return {
        "request": f"{exchange.method} {exchange.path}",
        "headers": {name: headers[name] for name in headers if name not in PASSING},
        "body": in_lines(exchange.body),
        "bytes": f"{len(exchange.raw)}, {hashlib.sha256(exchange.raw).hexdigest()}",
    }


class Unsure(lives.Vendor):
    """Answers, but fails one seat without a word of what that cost."""

    def submit(self, request: Request) -> Future[Completion]:
        """Answer as a vendor does."""
        answer = super().submit(request)
        if request.role.id != "bull_researcher":
            return answer
        failure: Future[Completion] = Future()
        failure.set_exception(TimeoutError())
        return failure


def _short(home: Path) -> dict[str, Any]:
    """Return what a desk books that comes to its ceiling, with one timeframe."""
    now = partial(datetime.now, UTC)
    voice = Unsure(home / lives.BOOKS, now)
    quarters = desks.BTC.model_copy(update={"timeframes": ("M15",)})
    desk = desks.open_desk(
        home, (quarters,), profile=lives.profile(CEILING, "full"), provider=voice
    )
    desks.charge(desk, vendor_line.prices(), System().real_now, "default")
    desks.open_for_work(desk)
    for _ in range(6):
        desks.step(desk)
    desk.close()
    return _ledger(home)


def _ledger(home: Path) -> dict[str, Any]:
    """Return the ledger and the levels, without the numbers of the rows, which threads decide."""
    tables = {name: rows(home, name) for name in ("ledger", "rungs")}
    for row in tables["ledger"]:
        del row["id"]
    return {name: sorted(table, key=as_json) for name, table in tables.items()}
