"""A home in which strangers filled every field that they can reach, with texts of one's choice.

`Home` is a desk that ran, with signals in every state, proposals, alarms, bridges, news, calls,
streams, an audit log and replays, made once. `filled(folder, words)` is a copy of it in which each
field of a stranger holds the next of `words`; `pages` shows it. What is a number, a time, a key or
a word of ours stays as it is, so that two fillings differ in strangers' words alone.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from instance_database import Database
from tests.doubles.visitors import open_app
from tests.worlds import demo_full_desk, desks
from tests.worlds.demo_view import bars
from torra.clock import System, iso
from torra.config import DeskSettings, Profile, validate
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.store import jobs as job_table
from torra.store import ledger as ledger_table
from torra.store import replay_queries
from torra.store.connection import to_json
from torra.store.ledger import Booking
from torra.store.trade import proposals_and_alarms as execution_table
from torra.verdict.signal_states import TRANSITIONS

PROFILE: Final = {
    "execution": "approve",
    "thresholds": {"buy": 0.01, "sell": 0.01},
    "agents": {"include_news": True},
}

CASES: Final = ("whole", "attack", "degraded", "vetoed")
"""Ticks of the full desk (tests.worlds.demo_full_desk) that the newest ticks become."""

COLUMNS: Final = {
    "calls": ("model", "provider", "user", "reply", "detail"),
    "instructions": ("text",),
    "signals": ("detail", "ticket", "deal", "close_reason"),
    "signal_events": ("detail",),
    "alarms": ("kind", "detail"),
    "bridges": ("deny", "detail"),
    "provider_blocks": ("reason",),
    "news": ("source", "topic", "headline", "summary", "url", "event"),
    "desk_state": ("reason",),
    "ledger": ("role", "provider", "model"),
    "proposals": ("reason",),
    "jobs": ("title", "stage", "says", "made", "asked_by", "kind"),
}
"""Columns that hold a stranger's words, by table. Skips are told with them too, see `_skip`."""

DOCUMENTS: Final = {
    "sentiment": ("agent_deliberation",),
    "journal": ("record",),
    "bridges": ("facts",),
    "signals": ("outcome", "evolution", "thesis"),
    "trading_config": ("profile",),
    "stream_events": ("payload",),
    "jobs": ("parameters",),
}
"""Columns of JSON in which every text that is not OURS is a stranger's."""

OURS: Final = frozenset(
    (
        "instance", "symbol", "timeframe", "bar_time", "as_of", "now", "close_time", "time", "at",
        "from", "to", "verdict", "l1_verdict", "action", "source_type", "agent_id", "role_id",
        "stage", "name", "status", "state", "kind", "side", "sid", "expires", "execution",
        "confidence", "torra_key", "stream_id", "event", "phase", "agent", "decided", "hash",
        "torra", "python", "last_time", "opened_at", "published", "first_seen", "paper_cursor",
        "on_opposite", "mode", "provider", "call_policy", "picture", "asset", "trading_state",
        "agents_state", "fundamentals_status", "bar_hash", "id_of_news", "drafts", "unit",
    )
)  # fmt: skip
"""Keys whose text is chosen by Torra from a closed list, or is a key of ours or a time."""

LISTED: Final = ("denied", "signals", "composites", "agents", "latches", "path", "unasked", "items")
"""Keys below which texts in lists are ours."""


class Home:
    """A home that was filled once, with harmless words."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.settings = DeskSettings(instances=(desks.BTC, desks.EUR))
        self.desk = desks.open_desk(
            folder, self.settings.instances, profile=validate(Profile, PROFILE, "a test")
        )
        desks.open_for_work(self.desk)
        for _ in range(len(CASES) + 1):
            desks.step(self.desk)
        self.database = self.desk.database
        self._enrich()
        self._books()
        self._machine()
        self.database.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self.desk.close()

    # --- what there is ------------------------------------------------------------------------

    def _enrich(self) -> None:
        """Give the newest ticks the records of the full desk: news, events, panels, failures."""
        ticks = self.database.ticks("BTCUSD", "M15", len(CASES))
        place = len(bars("BTCUSD", "M15")) - 1
        for row, case in zip(ticks, CASES, strict=True):
            told, _ = replay_queries.journal_row(self.database, row["torra_key"])
            demo = demo_full_desk.desk_record("BTCUSD", "M15", place, case)
            kept = {"bar_time", "as_of", "signal", "signals", "verdict", "action", "consensus"}
            record = {**told, **{n: v for n, v in demo.items() if n not in kept and n in told}}
            record |= {n: demo[n] for n in ("news", "events", "regime", "failures") if n in demo}
            deliberation = demo["deliberation"]
            with self.database.transaction():
                change = self.database.connection().execute
                change(
                    "UPDATE journal SET record = ? WHERE torra_key = ?",
                    (json.dumps({n: v for n, v in record.items() if n != "deliberation"}),
                     row["torra_key"]),
                )  # fmt: skip
                change(
                    "UPDATE sentiment SET agent_deliberation = ? WHERE torra_key = ?",
                    (json.dumps(deliberation), row["torra_key"]),
                )
        for item in demo_full_desk.headlines(iso(self.desk.clock.now())):
            names = ("id", "source", "topic", "headline", "summary", "url", "tickers", "published",
                     "first_seen", "score", "event")  # fmt: skip
            values = {n: item[n] for n in names}
            values |= {"tickers": "[]", "at": iso(self.desk.clock.now())}
            if item["id"].startswith("n"):
                self.database.add("news", values)

    def _books(self) -> None:
        now = iso(self.desk.clock.now().replace(microsecond=0))
        for number, state in enumerate(TRANSITIONS):
            kind = "open" if state in ("CLOSED", "REJECTED", "EXPIRED", "CANCELLED") else "close"
            self.database.add(
                "signals",
                {
                    "sid": f"TSTATE{number:02d}", "instance": "EURUSD", "symbol": "EURUSD",
                    "timeframe": "H1", "bar_time": now, "kind": kind, "side": "BUY", "lots": 0.1,
                    "entry": 1.1, "stop": 1.09, "target": 1.12, "atr": 0.005, "decided_at": now,
                    "expires": now, "state": state, "detail": "a word", "price": 1.1,
                    "opened_at": now, "ticket": "12", "close_reason": "target", "deal": "13",
                    "profit": 1.0, "r_multiple": 0.5, "close_price": 1.12,
                    "closed_at": now if state == "CLOSED" else None,
                },
            )  # fmt: skip
            self.database.add(
                "signal_events",
                {"sid": f"TSTATE{number:02d}", "from_state": None, "to_state": state,
                 "detail": "a word", "at": now},
            )  # fmt: skip
        for state in ("queued", "running", "done"):
            row, _ = job_table.queue_job(
                self.database,
                "replay",
                state,
                title="a word",
                parameters='{"bars": "a word"}',
                actor="a word",
            )
            if state != "queued":
                job_table.begin_job(self.database, row["id"], "queued")
                job_table.note_progress(self.database, row["id"], "a word", 1, 2)
            if state == "done":
                job_table.end_job(self.database, row["id"], "running", "done", "a word", "a-word")
        self.database.raise_alarm("a key", "UNKNOWN_ORDER", "a word")
        facts = {"account": "a word", "server": "a word", "symbols": "a word", "leverage": 100}
        for name in ("main", "other"):
            execution_table.note_bridge(self.database, name, deny="", detail="a word", facts=facts)

    def _machine(self) -> None:
        real = self.desk.clock.real_now()
        hour = real + timedelta(hours=1)
        ledger_table.block_provider(self.database, "anthropic", "a word", hour)
        self.database.set_trading_state("REDUCING", "a word")
        rows = [Booking("analysts", "technical", 1, n, "anthropic", "a word", 0.01) for n in (1, 2)]
        for number in self.database.book("default", "BTCUSD|M15|x", rows, at=real, until=real):
            self.database.keep(number)
        at = iso(real.replace(microsecond=0))
        key = self.database.ticks("BTCUSD", "M15", 1)[0]["torra_key"]
        self.database.add(
            "streams", {"stream_id": "S1", "kind": "tick", "torra_key": key, "owner": "x",
                        "at": at, "ended": 1},
        )  # fmt: skip
        told = (
            ("agent_complete", 0, {"agent": "technical", "round": 1, "phase": "analysts",
                                   "summary": "a word", "evidence": ["a word"], "abstained": False,
                                   "adjustments": {}, "confidence": "high", "ms": 3}),
            ("agent_error", 0, {"agent": "momentum", "error": "a word", "phase": "analysts"}),
            ("decision", 1, {"phase": "decision", "reason": "a word", "denied": ["a word"]}),
        )  # fmt: skip
        for seq, (event, terminal, payload) in enumerate(told, 1):
            self.database.add(
                "stream_events",
                {"stream_id": "S1", "seq": seq, "event": event, "terminal": terminal,
                 "payload": to_json(payload), "at": at},
            )  # fmt: skip

    # --- filling --------------------------------------------------------------------------------

    def filled(self, folder: Path, words: Iterable[str]) -> Filled:
        """Return a copy in which every field of a stranger holds the next of the words."""
        folder.mkdir()
        shutil.copy(self.folder / "torra.db", folder / "torra.db")
        database = Database.open(folder / "torra.db", now=System().real_now)
        supply = iter(words)
        with database.transaction():
            _fill(database, supply)
        for _ in range(3):
            database.audit(
                actor=_stored(next(supply)), address=_stored(next(supply)), action="profile.save",
                target=_stored(next(supply)), outcome=_stored(next(supply)),
                before={"x": _stored(next(supply))}, after={"y": _stored(next(supply))},
            )  # fmt: skip
        _files(folder, supply)
        return Filled(self, folder, database)


class Filled:
    """The pages of a filled home."""

    def __init__(self, home: Home, folder: Path, database: Database) -> None:
        desk = SimpleNamespace(clock=home.desk.clock, setups=home.desk.setups, active=True)
        self.database = database
        self.backing = PageContext(folder, database, home.settings, desk, {})
        view = DatabaseView(database, home.settings, desk)
        self.client = open_app(view, backing=self.backing).test_client()

    def close(self) -> None:
        self.database.close()


def _stored(text: str) -> str:
    """Return a text as SQLite takes it: without lone surrogates, which its driver refuses."""
    return text.encode("utf-8", "replace").decode()


KEYED: Final = {
    "instructions": "hash", "alarms": "key", "bridges": "name", "provider_blocks": "provider",
    "news": "id", "proposals": "sid", "stream_events": "seq",
}  # fmt: skip
"""Tables without row ids, with what tells their rows apart here."""


def _fill(database: Database, words: Iterator[str]) -> None:
    change = database.connection().execute
    for table, columns in COLUMNS.items():
        name = KEYED.get(table, "rowid")
        for column in columns:
            for (key,) in change(f"SELECT {name} FROM {table}").fetchall():
                text = _stored(next(words))
                change(f"UPDATE {table} SET {column} = ? WHERE {name} = ?", (text, key))
    for table, columns in DOCUMENTS.items():
        name = KEYED.get(table, "rowid")
        for column in columns:
            for key, told in change(f"SELECT {name}, {column} FROM {table}").fetchall():
                if told:
                    text = json.dumps(walked(json.loads(told), words))
                    change(f"UPDATE {table} SET {column} = ? WHERE {name} = ?", (text, key))
    _skip(change, words)


def _skip(change: Any, words: Iterator[str]) -> None:
    """Make the oldest tick of a stream a skipped one, in a stranger's words."""
    row = change("SELECT bar_time FROM ticks WHERE instance = 'EURUSD' LIMIT 1").fetchone()
    change(
        "UPDATE ticks SET state = 'skipped', reason = ?, detail = ? "
        "WHERE instance = 'EURUSD' AND bar_time = ?",
        (_stored(next(words)), _stored(next(words)), row[0]),
    )


def walked(value: Any, words: Iterator[str], key: str = "", ours: bool = False) -> Any:
    """Return a JSON value whose texts are strangers' words, but those that are OURS.

    A lone surrogate passes here: JSON writes it as an escape.
    """
    if isinstance(value, Mapping):
        below = ours or key in LISTED
        return {n: walked(v, words, n, ours=below) for n, v in value.items()}
    if isinstance(value, list):
        return [walked(item, words, key, ours=ours or key in LISTED) for item in value]
    if isinstance(value, str) and value and key not in OURS and not ours:
        return next(words)
    return value


def _files(folder: Path, words: Iterator[str]) -> None:
    def paired() -> str:
        """Return a word without lone surrogates: a report that has one is refused as a whole."""
        return _stored(next(words))

    def word(least: int = 1, most: int = 200) -> str:
        return paired()[:most] or "x" * least

    start, later = "2021-12-01T00:00:00Z", "2021-12-02T00:00:00Z"

    def line(points: list[Any]) -> dict[str, Any]:
        return {"name": word(), "points": points}

    document = {
        "kind": "replay", "name": "arrived", "created_at": start, "title": word(),
        "summary": word(most=600), "period": {"from": start, "to": start}, "arms": [word(), word()],
        "tables": [{"title": word(), "name": "first", "says": word(), "columns": [word(), word()],
                    "rows": [[paired(), paired()], [paired(), 1]]}],
        "plots": [
            {"title": word(), "of": "first", "kind": "line", "x": word(), "y": word(),
             "says": word(), "lines": [line([[start, n], [later, 1]]) for n in (0, 1)]},
            {"title": word(), "kind": "bars", "y": word(), "lines": [line([[word(), 1.0]])] * 2},
            {"title": word(), "kind": "bands", "lines": [line([[start, word()], [later, word()]])],
             "says": word()},
        ],
        "warnings": [paired(), paired()],
    }  # fmt: skip
    replays = folder / "replays"
    replays.mkdir()
    (replays / "arrived.json").write_text(json.dumps(document), encoding="utf-8")
    broken = {**document, word(): 1, "name": "broken"}
    (replays / "broken.json").write_text(json.dumps(broken), encoding="utf-8")
    odd = "".join(c for c in _stored(word(most=60)) if c not in "/\\\0\n") or "odd"
    (replays / f"{odd}.json").write_text("{}", encoding="utf-8")
    profiles = folder / "profiles"
    profiles.mkdir()
    news = {"file": "".join(c for c in next(words)[:200] if c.isprintable()) or "news.jsonl"}
    told = {"news": {**news, "sources": ["file"]}, "agents": {"quick_think_model": word()}}
    (profiles / "strange.json").write_text(json.dumps(told), encoding="utf-8")
    (profiles / "broken.json").write_text(json.dumps({word(): word()}), encoding="utf-8")


def supply(texts: Iterable[str], offset: int) -> Iterator[str]:
    """Return the texts for ever, beginning with one of them."""
    known = list(texts)
    return itertools.islice(itertools.cycle(known), offset % len(known), None)
