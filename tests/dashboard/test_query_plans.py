"""No page reads a table through: every statement of every address, and how SQLite would find it.

Addresses are asked for as a visitor would, over a small database of the real shape; what SQLite is
asked meanwhile is recorded on every connection, whichever thread has it. A statement passes when
each table of it is found by an index, or is one of the few that stay small whatever happens. That
the work does not grow with the database is measured besides, in steps of SQLite's machine, because
a plan does not tell how many rows it visits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from flask.testing import FlaskClient

from instance_database import Database
from tests.cases import cases
from tests.doubles.visitors import open_app
from tests.worlds import large_database
from torra.dashboard.doors.routes import every_route
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.store import connection as store_connection

BOUNDED = {
    "provider_blocks": "one row for each vendor that is not asked",
    "bridges": "one row for each channel",
    "degradation_levels": "one row for each profile",
    "notice_services": "one row for each way out",
    "desk_run": "one row",
    "jobs": "200 that have ended, and 20 that go on",
    "latches": "two rows for each instance",
    "trade_tags": "what a person wrote by hand to trades",
    "tick_kinds": "one row for what ticks of a stream can be: some dozens a stream",
    "_sqlite_migrations": "one row for each step of the schema",
    "sqlite_master": "the schema itself",
    "sqlite_schema": "the schema itself",
}
"""Tables that may be read through, and why they stay small."""

FEW = {
    "alarms_standing": "alarms that stand",
    "streams_open": "debates that run now",
    "ticks_claimed": "ticks that run now",
}
"""Partial indexes that hold few rows at any time."""

SORTED = {
    r"FROM proposals WHERE state = '\?' ORDER BY created_at": "proposals that wait",
    r"FROM ledger WHERE profile = .* GROUP BY": "the calls of a window, in a few groups",
    r"FROM ledger WHERE until > .* ORDER BY until, id": "bookings of the same second",
    r"FROM calls c .* WHERE c.torra_key = '\?' ORDER BY c.rowid": "the calls of one tick",
    r"FROM \(SELECT .* FROM ticks INDEXED BY ticks_close .* LIMIT": "the newest closes of a page",
    r"FROM json_each\('\?'\) k JOIN news": "the headlines of one tick",
    r"_sqlite_migrations": "one row for each step of the schema",
}
"""Statements that sort or group what was found, by a pattern, and what bounds it."""

LITERAL = re.compile(r"'(?:[^']|'')*'|(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
SOURCE = re.compile(
    r"\b(?:FROM|JOIN)\s+(\w+)(?:\s+(?:AS\s+)?(?!WHERE|ORDER|JOIN|LEFT|ON|INDEXED)(\w+))?"
)
STREAMS = ("events",)
"""Kinds of answers that have no end and are no page."""


class Recorder:
    """Every statement that any connection runs while it records."""

    def __init__(self) -> None:
        self.said: Counter[str] = Counter()
        self.on = False

    def __call__(self, statement: str) -> None:
        if self.on:
            self.said[statement] += 1

    @contextmanager
    def recording(self):
        self.said.clear()
        self.on = True
        try:
            yield self.said
        finally:
            self.on = False


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    found, connect = Recorder(), store_connection.connect

    def traced(path, busy_seconds):
        db = connect(path, busy_seconds)
        db.conn.set_trace_callback(found)
        return db

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_connection, "connect", traced)
        yield found


def open_pages(folder, rows, instances):
    """Return a database, its desk, a client of its pages and what fills their addresses."""
    path = folder / "torra.db"
    desk = large_database.build(path, rows, instances)
    database = large_database.open_database(path)
    looking = large_database.looking(database, desk)
    view = DatabaseView(database, desk, looking)
    backing = PageContext(folder, database, desk, looking)
    app = open_app(view, backing=backing)
    client = app.test_client()
    return database, client, values(database, desk)


def values(database, desk):
    one = desk.instances[0]
    return {
        "instance": one.id,
        "timeframe": "M15",
        "bar_time": database.ticks(one.id, "M15", 1)[0]["bar_time"],
        "sid": large_database.PROPOSED,
        "stream_id": large_database.STREAM,
        "missing": "nothing/here",
        "name": "default",
        "filename": "torra.css",
    }


@pytest.fixture(scope="module")
def pages(
    recorder: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Database, FlaskClient, dict[str, str]]]:
    database, client, filling = open_pages(tmp_path_factory.mktemp("pages"), 1200, 3)
    yield database, client, filling
    database.close()


ROUTES = {
    route.name: route
    for route in every_route()
    if "GET" in route.methods and route.reply not in STREAMS
}


def address(route, filling):
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: filling.get(found[1], "x"), route.rule)


def plain(statement):
    """Return a statement without its values and needless space."""
    return LITERAL.sub("'?'", re.sub(r"\s+", " ", statement)).strip()


def faults(database, statement):
    """Return what is wrong with the way SQLite would answer a statement."""
    if not re.match(r"\s*(SELECT|WITH)\b", statement, re.IGNORECASE):
        return []
    rows = database.connection().conn.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
    tables = set(database.connection().table_names()) | {"sqlite_master", "sqlite_schema"}
    named = {alias or table: table for table, alias in SOURCE.findall(statement)}
    found = []
    for *_, detail in rows:
        scan = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", detail)
        if scan:
            table, index = named.get(scan[1], scan[1]), scan[2]
            small = table not in tables or table in BOUNDED or index in FEW
            if not small and not first_rows_only(statement, rows):
                found.append(detail)
        elif "TEMP B-TREE" in detail and not any(re.search(p, plain(statement)) for p in SORTED):
            found.append(detail)
    return found


def first_rows_only(statement, rows):
    """Return whether a scan ends after its first rows: in order as they lie, and limited."""
    text = plain(statement)
    return bool(
        re.search(r" LIMIT ('\?'|\d+)$", text)
        and " WHERE " not in text
        and not any("TEMP B-TREE" in row[-1] for row in rows)
    )


@pytest.mark.journey
@cases("name", sorted(ROUTES))
def test_no_statement_of_a_page_reads_a_table_through(
    name: str, pages: tuple[Database, FlaskClient, dict[str, str]], recorder: Recorder
) -> None:
    database, client, filling = pages
    with recorder.recording() as said:
        answer = client.get(address(ROUTES[name], filling))
        answer.get_data()
    wrong = {plain(one): bad for one in list(said) if (bad := faults(database, one))}
    assert not wrong, f"{name}: {wrong}"
    assert answer.status_code < 500


def test_the_pages_of_the_desk_do_ask_the_database(
    pages: tuple[Database, FlaskClient, dict[str, str]], recorder: Recorder
) -> None:
    _, client, filling = pages
    for name, least in (("overview", 8), ("symbol", 10), ("tick", 8)):
        with recorder.recording() as said:
            assert client.get(address(ROUTES[name], filling)).status_code == 200
        assert len(said) >= least, name


@pytest.mark.journey
@cases(
    "statement",
    [
        "SELECT count(*) FROM chains WHERE verdict = 'BUY'",
        "SELECT * FROM signals WHERE detail = 'x' ORDER BY seq DESC LIMIT 5",
        "SELECT c.* FROM sentiment s JOIN chains c ON c.sentiment_id = s.id",
        "SELECT DISTINCT profile FROM ledger",
        "SELECT * FROM journal ORDER BY at LIMIT 3",
    ],
)
def test_a_statement_that_reads_a_table_through_is_found_out(
    statement: str, pages: tuple[Database, FlaskClient, dict[str, str]]
) -> None:
    assert faults(pages[0], statement)


@pytest.mark.journey
def test_what_is_limited_in_its_own_order_passes(
    pages: tuple[Database, FlaskClient, dict[str, str]],
) -> None:
    for table in ("signals", "desk_state"):
        key = "seq" if table == "signals" else "id"
        assert not faults(pages[0], f"SELECT * FROM {table} ORDER BY {key} DESC LIMIT 20")
