"""The map of names loses no value, and has no row that means nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.golden import projection
from tests.golden.exact import rows
from tests.golden.parts import MADE_WITH, TEXTS
from tests.golden.projection import KINDS, keys, projected

DUMPS = ("tables/*.json", "bytes_ticks/*.json", "bytes_orders/*.json", "bytes_vendors/ledger_*")
FORMS = {
    "record": DUMPS,
    "tables": DUMPS,
    "api": ("pages_*/*.json", "commands*/*.json", "notices/*.json"),
}
"""Where the goldens have what of each kind; the record is JSON in columns of the tables."""

ARGUMENTS = {"save_sentiment"}
"""What stands beside the tables of a dump and is none."""

MOST = 99

FIXED = {
    *("timestamp", "timeframe", "ath", "composite", "consensus", "verdict", "source_type"),
    *("agent_deliberation", "torra_key", "trading_config"),
    *("price_action", "key_levels", "momentum", "structure", "composite_bias"),
    *("agent_id", "adjustments", "confidence", "reasoning", "flags", "reports"),
    *("falsifiers", "winner", "conviction", "rebuttals", "stance", "key_points"),
}
"""Columns, tables and keys that documents name: of the sentiment, run_debate(), and a debate."""

RENAMED = {"asked_at": "request_time", "told.by": "source", "gone": None}


def test_a_renamed_field_keeps_its_name_in_the_golden() -> None:
    today = {"request_time": 1, "told": [{"source": "a"}], "source": {"source": 2}, "new": 3}
    golden = {"asked_at": 1, "told": [{"by": "a"}], "source": {"source": 2}, "new": 3}
    assert projected(today, "record", RENAMED) == golden


def test_two_fields_may_not_become_one() -> None:
    with pytest.raises(ValueError, match="two fields of the value are 'asked_at'"):
        projected({"request_time": 1, "asked_at": 2}, "record", RENAMED)


def test_a_renamed_table_and_a_column_of_one_table_alone_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(tmp_path / "torra.db")) as database:
        database.execute("CREATE TABLE orders (number, note)")
        database.execute("""INSERT INTO orders VALUES (1, '{"number": 2}')""")
        database.commit()
    renamed = {"record": {}, "tables": {"signals": "orders", "signals.sid": "number"}, "api": {}}
    (tmp_path / "keys.json").write_text(json.dumps(renamed))
    monkeypatch.setattr(projection, "KEYS", tmp_path / "keys.json")
    assert rows(tmp_path, "signals") == [{"sid": 1, "note": {"number": 2}}]


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_of_the_map_means_something(kind: str) -> None:
    """A name of today is taken once; what is gone is in no golden, everything else in one."""
    pairs = keys(kind)
    today = [(name.rpartition(".")[0], new) for name, new in pairs.items() if new is not None]
    assert len(set(today)) == len(today) and not {new for _, new in today} & set(pairs)
    for name, new in pairs.items():
        assert (name in names_of(kind)) is (new is not None), name


def test_a_name_counts_for_its_kind_alone() -> None:
    record, columns, api = (names_of(kind) for kind in KINDS)
    assert "reports.agent_id" in record - columns
    assert {"signal_events", "sentiment.agent_deliberation"} <= columns - record
    assert "document" in api - columns - record


def test_names_that_documents_fix_are_in_the_goldens_and_in_no_row() -> None:
    assert names_of("tables") | names_of("record") >= FIXED
    for kind in KINDS:
        assert not {name.rpartition(".")[2] for name in keys(kind)} & FIXED, kind


@cache
def names_of(kind: str) -> frozenset[str]:
    """Return the names of fields in what the goldens show of a kind, bare and with their parent."""
    paths = [path for form in FORMS[kind] for path in TEXTS.glob(form) if path.name != MADE_WITH]
    values = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    if kind == "record":
        values = [[*row.values()] for value in values for row in _rows(value)]
    return frozenset(
        name for value in values for name in _names(value, "", 2 if kind == "tables" else MOST)
    )


def _rows(dump: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, table in dump.items():
        yield from table if isinstance(table, list) and name not in ARGUMENTS else ()


def _names(value: Any, parent: str, depth: int) -> Iterator[str]:
    """Yield the names down to a depth: the second one of a dump of tables has their columns."""
    if isinstance(value, list):
        for item in value:
            yield from _names(item, parent, depth)
    elif isinstance(value, dict) and depth:
        for name, item in value.items():
            if name not in ARGUMENTS:
                yield from (name, f"{parent}.{name}")
                yield from _names(item, name, depth - 1)
