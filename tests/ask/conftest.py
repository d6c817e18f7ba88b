"""Three homes with ticks and trades, made once, and what an oracle reads from them by SQL alone."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database, open_home, open_reader
from tests.worlds import busy_desk, desks, large_database
from torra.config import DeskSettings
from torra.money.book import MoneyBook
from torra.tools.desk_reader import DeskReader


@dataclass(frozen=True)
class AskHome:
    """A home, its reader, and the desk's own database for what Ask writes."""

    home: Path
    reader: DeskReader
    database: Database

    def desk(self) -> DeskReader:
        return self.reader


def _large(folder: Path, rows: int, instances: int) -> AskHome:
    path = folder / "torra.db"
    settings = large_database.build(path, rows, instances)
    database, evidence = large_database.open_database(path), open_reader(path)
    profiles = {one.id: large_database.profile() for one in settings.instances}
    now = (large_database.NOW + large_database.AFTER).replace(microsecond=0)
    book = MoneyBook(evidence, settings.paper_currency)
    return AskHome(
        folder, DeskReader(folder, evidence, settings, profiles, now, now, book), database
    )


def _busy(folder: Path) -> AskHome:
    home = folder / "home"
    desk = busy_desk.run(home, None, "full", 32)
    now = desk.clock.now()
    desk.close()
    settings = DeskSettings(instances=(desks.BTC,))
    (home / "desk.json").write_text(settings.model_dump_json(), encoding="utf-8")
    evidence = open_reader(home / "torra.db")
    profiles = {"BTCUSD": busy_desk.trading("full")}
    return AskHome(home, DeskReader(home, evidence, settings, profiles, now, now), open_home(home))


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[AskHome]]:
    made = [
        _busy(tmp_path_factory.mktemp("busy")),
        _large(tmp_path_factory.mktemp("three"), 2_000, 3),
        _large(tmp_path_factory.mktemp("five"), 2_000, 5),
    ]
    yield made
    for one in made:
        one.reader.database.close()
        one.database.close()


@pytest.fixture
def busy(homes: list[AskHome], tmp_path: Path) -> Iterator[AskHome]:
    """A copy of the home whose desk traded, for tests that write."""
    home, reader = shutil.copytree(homes[0].home, tmp_path / "home"), homes[0].reader
    with closing(open_home(home)) as database, closing(open_reader(home / "torra.db")) as evidence:
        own = DeskReader(home, evidence, reader.settings, reader.profiles, reader.as_of, reader.now)
        yield AskHome(home, own, database)


# --- the oracle -----------------------------------------------------------------------------------

PLACE = r"(?P<i>[^|]+)\|(?P<t>\w+)@(?P<b>[^/]+)/"
AT = (
    "FROM chains c JOIN journal j USING (torra_key) "
    "WHERE c.instance = :i AND c.timeframe = :t AND c.bar_time = :b"
)
OPEN = "kind = 'open' AND state IN ('FILLED', 'CLOSING')"
DONE = "FROM signals WHERE kind = 'open' AND state = 'CLOSED'"
SINCE = {"today": "substr(:now, 1, 10)", "week": "date(:now, '-6 days')", "whole": "''"}
TOTALS = {
    "trades": "count(*)", "profit": "sum(profit)", "r": "sum(r_multiple)",
    "mean_r": "avg(r_multiple)", "win_rate": "avg(profit > 0)",
}  # fmt: skip
CLOSE = (
    "(SELECT close FROM bars b WHERE b.instance = s.instance AND timeframe = 'M15' "
    "ORDER BY bar_time DESC LIMIT 1)"
)
SIDE = "(CASE side WHEN 'BUY' THEN 1 ELSE -1 END)"
HOLDS = f"FROM signals s WHERE {OPEN} AND instance = :i"
SPENT = "SELECT coalesce(sum(usd), 0) FROM ledger WHERE at"

ORACLE: dict[str, str] = {
    PLACE + "(?P<c>consensus|composite|verdict|l1_consensus|l1_verdict)": f"SELECT c.{{c}} {AT}",
    PLACE + "reason": f"SELECT j.reason {AT}",
    PLACE + "gate.reasons": (
        f"SELECT coalesce((SELECT group_concat(value, ', ') FROM json_each(j.record, "
        f"'$.gate.reasons')), 'none') {AT}"
    ),
    PLACE + "gate.(?P<c>multiplier|veto)": f"SELECT json_extract(j.record, '$.gate.{{c}}') {AT}",
    PLACE + "thresholds.(?P<c>buy|sell)": f"SELECT json_extract(record, '$.thresholds.{{c}}') {AT}",
    PLACE + "distance": (
        "SELECT min(json_extract(record, '$.thresholds.buy') - c.consensus, "
        f"json_extract(record, '$.thresholds.sell') + c.consensus) {AT}"
    ),
    PLACE + "next_close": (
        "SELECT (n - strftime('%s', :now) % n) / 60.0 FROM "
        "(SELECT CASE :t WHEN 'M15' THEN 900 ELSE 3600 END n)"
    ),
    r"changed\.((?P<i>[^|]+)\.)?(?P<what>ticks|verdicts)": (
        "SELECT count(*) FROM chains WHERE (:what = 'ticks' OR verdict <> l1_verdict) "
        "AND (:i IS NULL OR instance = :i)"
    ),
    r"changed\.(?P<k>.+)/(?P<c>l1|done)\.verdict": (
        "SELECT CASE '{c}' WHEN 'l1' THEN l1_verdict ELSE verdict END FROM chains "
        "WHERE torra_key = :k"
    ),
    r"money\.trade\.(?P<s>.+)": "SELECT r_multiple FROM signals WHERE sid = :s",
    r"money\.0\.(?P<span>today|week|whole)\.(?P<total>\w+)": (
        f"SELECT coalesce({{total}}, 0) {DONE} AND closed_at >= {{span}}"
    ),
    r"money\.0\.drawdown": (
        "WITH sums AS (SELECT sum(profit) OVER (ORDER BY closed_at, seq) s, closed_at, seq "
        f"{DONE}), tops AS (SELECT s, max(s, 0, max(s) OVER (ORDER BY closed_at, seq)) t "
        "FROM sums) SELECT coalesce(max(t - s), 0) FROM tops"
    ),
    r"lesson\.(?P<n>\d+)": "SELECT r FROM lesson_facts WHERE number = :n",
    r"book\.0\.positions": f"SELECT count(*) FROM signals WHERE {OPEN}",
    r"book\.0\.orders": "SELECT count(*) FROM signals WHERE state IN ('PENDING', 'SENT')",
    r"book\.lost_today": (
        f"SELECT -coalesce(sum(profit), 0) {DONE} AND closed_at >= substr(:now, 1, 10)"
    ),
    r"book\.warm_up_today": (  # of a desk that has traded in its warm-up alone
        f"SELECT sum(profit) {DONE} AND closed_at >= substr(:now, 1, 10)"
    ),
    r"book\.(?P<i>[A-Z][^.]*)\.lots": f"SELECT lots {HOLDS}",
    r"book\.0\.risk": f"SELECT sum(lots * abs(price - stop)) FROM signals WHERE {OPEN}",
    r"cost\.last_hour": f"{SPENT} > strftime('%Y-%m-%dT%H:%M:%SZ', :now, '-1 hour')",
    r"cost\.last_24_hours": f"{SPENT} > strftime('%Y-%m-%dT%H:%M:%SZ', :now, '-1 day')",
    r"cost\.today": f"{SPENT} >= substr(:now, 1, 10)",
    r"cost\.default\.spent_usd": f"{SPENT} > strftime('%Y-%m-%dT%H:%M:%SZ', :now, '-1 hour')",
    # whatever else a tick's evidence holds
    PLACE + r"(?P<f>[a-z_]+\.[\w.]+)": (
        "SELECT json_extract(f.value, '$.value') FROM chains c JOIN journal j USING (torra_key), "
        "json_each(j.record, '$.features') f WHERE c.instance = :i AND c.timeframe = :t "
        "AND c.bar_time = :b AND json_extract(f.value, '$.id') = :f"
    ),
}
"""A citation's id, and the SQL of its value."""

NOT_BY_SQL = (
    r"doc\..*", r"pattern\..*", r"changed\..*came_to.*", r"cost\.default\.(degradation_level|"
    r"ceiling_usd|left_usd)", r"book\.[^.]+\.(r|stop_r|cap|result|risk_r|risk)",
    PLACE + r"(reports|events|outside|scores\.\w+\.score).*",
)  # fmt: skip
"""What no statement can work out: texts, detectors, settings, counterfactuals, open results."""


def value_of(connection: sqlite3.Connection, fact: str, now: str) -> list[Any]:
    """Return the value of a citation by SQL, in a list; an empty one where no SQL can tell."""
    for pattern, sql in ORACLE.items():
        match = re.fullmatch(pattern, fact)
        if match and not any(re.fullmatch(one, fact) for one in NOT_BY_SQL):
            names = match.groupdict()
            words = {"c": names.get("c"), "span": SINCE.get(names.get("span") or ""),
                     "total": TOTALS.get(names.get("total") or "")}  # fmt: skip
            rows = connection.execute(sql.format(**words), {**names, "now": now}).fetchall()
            return [rows[0][0]]
    return []
