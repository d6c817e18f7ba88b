"""`torra data`: a file is stored whole or refused with its line, and what is known is told."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from instance_database import open_home
from tests.worlds import desks
from tests.worlds.hands import torra
from tests.worlds.homes import desk_file

SERIES = "name,at,known_at,value\n"
GOOD = "DGS2,2026-02-12,2026-02-13T22:00:00Z,4.25\nDGS2,2026-02-13,2026-02-16T22:00:00Z,4.3\n"
FACTS = (
    "ticker,figure,begins,ends,known_at,value,unit\n"
    "ACME,revenue,2025-10-01,2025-12-31,2026-02-05T21:30:00Z,5e9,USD\n"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def written(folder: Path, text: str) -> str:
    path = folder / "mine.csv"
    path.write_text(text)
    return str(path)


def test_a_file_is_stored_once(home: Path, tmp_path: Path) -> None:
    file = written(tmp_path, SERIES + GOOD)
    for count in ("2 values are stored.", "0 values are stored; 2 were known already"):
        assert count in torra(home, "data", "import", file).stdout


def test_nobody_knows_the_future(home: Path, tmp_path: Path) -> None:
    refused = torra(
        home, "data", "import", written(tmp_path, SERIES + "DGS2,2026-02-12,2062-02-13,4\n")
    )
    assert refused.exit_code == 2
    assert "lies in the future" in refused.stderr


def test_a_company_without_a_report_has_its_figures(home: Path, tmp_path: Path) -> None:
    torra(home, "data", "import", written(tmp_path, FACTS))
    partly = torra(home, "data", "ACME")
    assert partly.exit_code == 0
    assert partly.stdout.startswith("ACME: no net income is stored")
    assert "revenue: 5,000,000,000 USD, 2025-10-01 to 2025-12-31" in partly.stdout


def test_companions_are_told_with_their_newest_stored_bars(home: Path) -> None:
    home.mkdir()
    own = desks.BTC.model_copy(update={"companions": {"euro": "EURUSD", "dxy": "usdx"}})
    desk_file(home, own.model_dump(mode="json", exclude_defaults=True))
    first, *rest = torra(home, "data").stdout.splitlines()
    assert first.startswith("No series is stored yet")
    assert rest[0] == "euro, the companion EURUSD of BTCUSD: no bar is stored."
    bars = desks.sample().bars("EURUSD", "H1", desks.START, 30)
    with closing(open_home(home)) as database:
        database.store_bars(own.companion_stream("EURUSD"), "H1", bars)
        database.store_bars("USDX", "H1", bars.head(20))  # as torra import stores it
    told = torra(home, "data").stdout.splitlines()
    assert told[-2:] == [
        "euro, the companion EURUSD of BTCUSD: its newest stored bars closed H1 2021-11-10 "
        "10:00 UTC.",
        "dxy, the companion usdx of BTCUSD: its newest stored bars closed H1 2021-11-10 00:00 UTC.",
    ]
    found = json.loads(torra(home, "data", "--json").stdout)["companions"]
    assert found[0] == {
        "instance": "BTCUSD", "name": "euro", "symbol": "EURUSD",
        "closed": {"H1": "2021-11-10T10:00:00Z"}, "newest_tick": {},
    }  # fmt: skip


def test_json_before_a_subcommand_counts_for_it(tmp_path: Path) -> None:
    document = json.loads(torra(tmp_path, "data", "--json", "DGS2").stdout)
    assert (document["name"], document["values"]) == ("DGS2", [])
