"""A desk's database with a watcher and senders, on clocks that a test moves by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from instance_database import Database
from tests.tries import until
from tests.worlds import stores
from tests.worlds.stores import NOON, opening
from torra.clock import Simulated
from torra.config import Instance, NoticeSettings, Profile
from torra.notices.protocol import Notice, NoticeRefused
from torra.notices.sending import Sender
from torra.notices.watching import SLOWLY, Watcher
from torra.store import notices as notice_table

EUR = Instance(symbol="EURUSD", timeframes=("M15", "H1"))
BTC = Instance(symbol="BTCUSD", timeframes=("M15",))
PAID = Profile.model_validate({"agents": {"provider": "anthropic", "max_api_cost_per_hour": 1.0}})


class Clock(Simulated):
    """Desk time, real time and monotonic time that move together when a test says so."""

    def __init__(self, moment: datetime = NOON) -> None:
        super().__init__(moment)
        self.passed = 0.0

    def real_now(self) -> datetime:
        return self.now()

    def monotonic(self) -> float:
        return self.passed

    def pass_by(self, span: timedelta) -> None:
        self.set(self.now() + span)
        self.passed += span.total_seconds()


@dataclass
class Pager:
    """A service in memory; `answers` says what each try does, then everything is taken."""

    name: str = "1 pager"
    taken: list[Notice] = field(default_factory=list)
    answers: list[Exception] = field(default_factory=list)
    tries: int = 0

    def send(self, notice: Notice) -> None:
        self.tries += 1
        if self.answers:
            raise self.answers.pop(0)
        self.taken.append(notice)

    @property
    def titles(self) -> list[str]:
        return [notice.title for notice in self.taken]


def until_watched(desk: Any) -> None:
    """Wait until the watcher of a desk has looked once."""
    until(lambda: notice_table.notice_cursor(desk.database, "states"))


class ToldDesk:
    """A database, the watcher of its desk and the senders of some services."""

    def __init__(
        self,
        folder: Path,
        *services: Any,
        settings: NoticeSettings | None = None,
        instances: Sequence[Instance] = (EUR, BTC),
        profile: Profile | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.settings = settings or NoticeSettings()
        self.database = stores.open_database(folder, now=self.clock.now)
        self.services = list(services)
        self.ours = True
        self.database.fence = lambda: self.ours
        self.instances, self.profile = list(instances), profile or Profile()
        self.watcher = Watcher(
            self.database,
            self.settings,
            lambda: [(item, self.profile) for item in self.instances],
            lambda: self.clock,
            lambda: [one.name for one in self.services],
        )
        self.senders = [self.sender(one) for one in self.services]

    def sql(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Write into the database as a foreign hand does."""
        with self.database.transaction():
            self.database.connection().conn.execute(statement, values)

    def sender(self, service: Any, **how: Any) -> Sender:
        return Sender(self.database, service, self.settings, self.clock.now, **how)

    def look(self) -> list[str]:
        """Look once; return the titles of what is new, oldest first."""
        before = notice_table.newest_notice(self.database)
        self.watcher.look()
        return [row["title"] for row in notice_table.notices_after(self.database, before, 1000)]

    def later(self, **span: float) -> None:
        self.clock.pass_by(timedelta(**span))

    def later_look(self) -> list[str]:
        """Look once more, after everything may be looked at again."""
        self.later(seconds=SLOWLY + 1)
        return self.look()

    def send_all(self) -> None:
        """Let every sender do what is due now."""
        for sender in self.senders:
            for _ in range(2000):
                if not sender.send_due():
                    break

    def texts(self) -> list[str]:
        return [
            f"{row['title']}. {row['text']}" for row in notice_table.notices(self.database, 100)
        ][::-1]

    def states(self) -> dict[str, str]:
        """What became of each notice on its way to the first service, by its key."""
        return {
            row["key"]: row["sent"][0]["state"]
            for row in notice_table.notices(self.database, 2000)
            if row["sent"]
        }


def fill(
    database: Database, sid: str = "T1", *, price: float = 1.1834, lots: float = 0.2, **more: Any
) -> None:
    """Let an opening of EURUSD be filled."""
    levels = {"entry": price, "stop": 1.179, "target": 1.1922}
    row = opening(sid, **{"instance": "EURUSD", "symbol": "EURUSD", "lots": lots, **levels, **more})
    assert database.enqueue_signal(row)
    database.move_signal(sid, "PUBLISHED")
    database.move_signal(sid, "FILLED", fields={"price": price, "opened_at": NOON})


def end(database: Database, sid: str = "T1", **more: Any) -> None:
    """Let that position end."""
    told: dict[str, Any] = {
        "price": 1.1922, "time": NOON, "profit": 32.1, "r_multiple": 2.0, "reason": "TARGET",
    }  # fmt: skip
    database.close_position(sid, **{**told, **more})


def propose(database: Database, sid: str = "P1", *, drafts: Any = None, **more: Any) -> None:
    """Let a proposal wait."""
    levels = {"entry": 1.1834, "stop": 1.179, "target": 1.1922, "atr": 0.0022}
    draft = {"kind": "open", "side": "BUY", "lots": 0.2, "levels": levels, "closes": None}
    row = {
        "sid": sid, "torra_key": f"EURUSD|M15|{sid}", "instance": "EURUSD", "symbol": "EURUSD",
        "timeframe": "M15", "bar_time": NOON, "verdict": "BUY", "action": "OPEN_BUY",
        "drafts": [draft] if drafts is None else drafts, "price": 1.1834, "atr": 0.0022,
        "multiplier": 1.0, "created_at": NOON, "expires": NOON + timedelta(hours=2, minutes=30),
    }  # fmt: skip
    assert database.propose({**row, **more})


REFUSED = NoticeRefused("it is full")
