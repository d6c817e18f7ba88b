"""The map of names loses no value, and has no row that means nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.golden import projection
from tests.golden.exact import rows
from tests.golden.parts import TEXTS
from tests.golden.projection import KINDS, keys, projected

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
    known = set[str]()
    for path in TEXTS.rglob("*.json"):
        known |= set(_names(json.loads(path.read_text(encoding="utf-8")), ""))
    for name, new in pairs.items():
        assert (name in known) is (new is not None), name


def _names(value: Any, parent: str) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _names(item, parent)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from (name, f"{parent}.{name}")
            yield from _names(item, name)
