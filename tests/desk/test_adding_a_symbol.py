"""A symbol is added to a desk: what torra init would write, never over what is there, on paper."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database, open_home
from tests import ROOT
from tests.worlds import listed_terms
from tests.worlds.homes import profile_file
from tests.worlds.mt5_package import World
from torra.bridges.protocol import Quote, SymbolTerms
from torra.config import Channel, DeskSettings, Instance, load_desk, load_profile
from torra.desk.setup import adding, bar_sources, wishes
from torra.desk.setup.adding import Addition, place_of, plan, write
from torra.desk.setup.bar_sources import BarSource, known_terms, sources
from torra.desk.setup.wishes import FieldError
from torra.errors import ConfigError
from torra.home import DESK_BEFORE
from torra.store import bars as bar_table

KEY = "a key of the test"
POUND = SymbolTerms(
    "GBPJPY.m", 3, 0.001, 0.67, 100_000.0, 0.01, 0.01, 50.0, 3, "full", "JPY",
    Quote(190.1, 190.118, listed_terms.AT),
)  # fmt: skip
TERMS = {
    "digits": "2", "tick_size": "0.01", "tick_value": "1", "contract_size": "100",
    "lot_min": "0.01", "lot_step": "0.01", "lot_max": "50", "spread": "0.25", "stops_level": "0",
    "asset": "gold", "currencies": "USD",
}  # fmt: skip
STORED: dict[str, str] = {"source": "store", "symbol": "xauusd", "timeframes": "M15", **TERMS}
FROM_FILES = {
    "source": "files", "symbol": "XAUUSD", "as.gold.csv": "M15", "as.slow.csv": "H1", **TERMS,
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A desk of one's own, with two files of bars."""
    found = tmp_path / "home"
    (found / "uploads").mkdir(parents=True)
    shutil.copy(ROOT / "sample_data" / "BTCUSD_M15.csv", found / "uploads" / "gold.csv")
    shutil.copy(ROOT / "sample_data" / "BTCUSD_H1.csv", found / "uploads" / "slow.csv")
    profile_file(found, {"execution": "auto"}, "mine")
    (found / "desk.json").write_text(
        '{"instances": [{"symbol": "EURUSD", "timeframes": ["H1"], "feed": "store", '
        '"profile": "mine"}], "keep_calls_days": 7}'
    )
    return found


@pytest.fixture
def database(home: Path) -> Iterator[Database]:
    found = open_home(home)
    yield found
    found.close()


def planned(
    home: Path,
    words: Mapping[str, str],
    database: Database | None,
    *uploads: str,
) -> Addition:
    settings = load_desk(home)
    files = [*uploads] or ["gold.csv", "slow.csv"]
    wish, faults = wishes.read(words, sources(settings, {}), files)
    assert wish is not None, faults
    return plan(place_of(home, settings), wish, database)


def wrong(home: Path, **changes: str) -> dict[str, str]:
    known = sources(load_desk(home), {})
    return wishes.read({**FROM_FILES, **changes}, known, ["gold.csv", "slow.csv"])[1]


def put(found: Addition) -> Addition:
    return write(found, found.place.version, nullcontext)


def test_an_instance_is_added_and_nothing_else_changes(home: Path, database: Database) -> None:
    before = json.loads((home / "desk.json").read_text())
    shown = planned(home, FROM_FILES, database)
    assert shown.before and '"XAUUSD"' not in shown.before
    found = put(shown)
    assert (home / "desk.json").read_text() == shown.after
    assert (home / "profiles" / "xauusd.json").read_text() == shown.profile_text
    after = json.loads((home / "desk.json").read_text())
    assert after == {**before, "instances": [*before["instances"], found.desk["instances"][-1]]}
    added = load_desk(home).instance("XAUUSD")
    assert (added.bridge, added.feed, added.profile) == ("paper", "store", "xauusd")
    after_of = added.timeframes
    assert after_of == ("M15", "H1")
    assert json.loads((home / DESK_BEFORE).read_text()) == before
    assert (
        bar_table.bar_rows(database, "XAUUSD", "M15") > 1000
        and bar_table.bar_rows(database, "XAUUSD", "H1") > 100
    )
    told = [
        f"{bar_table.bar_rows(database, 'XAUUSD', name):,} bars of XAUUSD {name}"
        for name in after_of
    ]
    assert [line.split(", ")[0] for line in found.imported] == told


def test_its_profile_asks_a_person_and_pays_nobody(home: Path, database: Database) -> None:
    words = {**FROM_FILES, "capital": "2500", "risk": "0.25"}
    put(planned(home, words, database))
    profile = load_profile("xauusd", home)
    assert profile.execution == "approve" and profile.agents.paid() == ()
    assert (profile.risk.capital, profile.risk.risk_per_trade_pct) == (2500.0, 0.25)
    assert json.loads((home / "profiles" / "mine.json").read_text()) == {"execution": "auto"}
    assert wrong(home, execution="auto")["execution"].startswith("'auto' is none of approve, off")


def test_a_profile_that_is_there_is_used_as_it_is(home: Path, database: Database) -> None:
    database.close()
    profile_file(home, {"execution": "approve"}, "mine")
    words = {**FROM_FILES, "profile": "mine"}
    found = put(planned(home, words, None))
    assert found.profile is None and load_desk(home).instance("XAUUSD").profile == "mine"
    assert not (home / "profiles" / "xauusd.json").exists()
    unknown = {**words, "symbol": "GBPJPY"}
    with pytest.raises(FieldError, match="does not know how GBPJPY is traded") as told:
        planned(home, unknown, None)
    assert told.value.name == "profile"


@pytest.mark.parametrize("name", ["mine", "default"])
def test_a_profile_that_sends_by_itself_is_refused(
    home: Path, database: Database, name: str
) -> None:
    said = rf"profile {name} sends orders by itself \(execution: auto\): take a new profile"
    with pytest.raises(FieldError, match=said) as told:
        planned(home, {**FROM_FILES, "profile": name}, database)
    assert told.value.name == "profile"


def packed_plan(home: Path, database: Database) -> Addition:
    words = {"source": "files", "symbol": "XAUUSD", "as.gold.csv.gz": "M15", **TERMS}
    return planned(home, words, database, "gold.csv.gz")


@pytest.mark.journey
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"1" * (adding.LARGEST_FILE + 1)), "gold.csv.gz holds more than 8,000,000"),
        (b"\x1f\x8bno gzip at all", "cannot read gold.csv.gz"),
        (gzip.compress(b"1" * 9999)[:-20], "cannot read gold.csv.gz"),
    ],
    ids=["too much", "no gzip", "cut off"],
)
def test_a_packed_file_that_cannot_be_taken_is_told_before_anything_is_written(
    home: Path, database: Database, content: bytes, said: str
) -> None:
    (home / "uploads" / "gold.csv.gz").write_bytes(content)
    with pytest.raises(FieldError, match=said) as told:
        packed_plan(home, database)
    assert told.value.name == "files" and str(home) not in str(told.value)


def test_a_packed_file_that_grows_after_it_was_shown_is_not_imported(
    home: Path, database: Database
) -> None:
    path = home / "uploads" / "gold.csv.gz"
    path.write_bytes(gzip.compress((home / "uploads" / "gold.csv").read_bytes()))
    found = packed_plan(home, database)
    path.write_bytes(gzip.compress(b"1" * (adding.LARGEST_FILE + 1)))
    with pytest.raises(FieldError, match="holds more than 8,000,000 bytes"):
        put(found)
    assert not bar_table.bar_rows(database, "XAUUSD", "M15")


@pytest.mark.journey
def test_two_people_at_once_lose_nothing(home: Path, database: Database) -> None:
    mine = planned(home, FROM_FILES, database)
    other = planned(home, {**FROM_FILES, "symbol": "BTCUSD", "profile_name": "coin"}, database)
    put(other)
    kept = (home / "desk.json").read_text()
    with pytest.raises(ConfigError, match="was changed since this was shown"):
        put(mine)
    assert (home / "desk.json").read_text() == kept
    assert not (home / "profiles" / "xauusd.json").exists()
    # what was shown is older than what it was planned with
    newest = planned(home, FROM_FILES, database)
    with pytest.raises(ConfigError, match="was changed since this was shown"):
        write(newest, mine.place.version, nullcontext)
    put(newest)
    assert [item.id for item in load_desk(home).instances] == ["EURUSD", "BTCUSD", "XAUUSD"]


def test_a_demo_stays_as_it_is(tmp_path: Path) -> None:
    demo = tmp_path / "demo"
    (demo / "uploads").mkdir(parents=True)
    shutil.copy(ROOT / "sample_data" / "BTCUSD_M15.csv", demo / "uploads" / "gold.csv")
    words = {**FROM_FILES, "as.slow.csv": ""}
    found = put(planned(demo, words, None))
    own = tmp_path / "demo_own"
    assert [path.name for path in demo.iterdir()] == ["uploads"]
    assert load_desk(own).instance("XAUUSD").feed == "store"
    assert not (own / DESK_BEFORE).exists()
    assert found.place.separate and "run --port 5001" in found.steps[0]
    # the next one is added to that desk
    again = planned(demo, {**words, "symbol": "BTCUSD"}, None)
    put(again)
    assert [item.id for item in load_desk(own).instances] == ["XAUUSD", "BTCUSD"]


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("symbol", "", "name the symbol"),
        ("symbol", "a|b", "use letters"),
        ("symbol", "US 30", "call the symbol US30"),
        ("broker", "a,b", "can be no broker's symbol"),
        ("source", "moon", "say where its bars come from"),
        ("digits", "2.5", "is not a whole number"),
        ("digits", "99", "must be 10 at most"),
        ("tick_size", "", "write a number"),
        ("tick_size", "0", "must be above 0"),
        ("lot_max", "nan", "finite number"),
        ("currencies", "DOLLAR", "is no currency"),
        ("asset", "moon", "must be '', 'gold'"),
        ("capital", "-5", "is not a number above 0"),
        ("risk", "11", "too much to risk on one trade"),
        ("clock", "mars", "mars"),
        ("as.gold.csv", "M7", "is no timeframe"),
        ("as.gold.csv", "H1", "are both H1"),
        ("profile_name", "../x", "use letters"),
    ],
)
def test_a_mistake_stands_at_its_field(home: Path, field: str, text: str, said: str) -> None:
    found = wrong(home, **{field: text})
    where = "files" if field.startswith("as.") else field
    assert said in found[where], found


def test_every_mistake_is_told_at_once(home: Path) -> None:
    found = wrong(home, symbol="", digits="x", lot_min="0", capital="much")
    assert set(found) == {"symbol", "digits", "lot_min", "capital"}


def test_what_the_desk_has_is_not_added_again(home: Path, database: Database) -> None:
    with pytest.raises(FieldError, match="watches EURUSD already") as told:
        planned(home, {**FROM_FILES, "symbol": "EURUSD"}, database)
    assert told.value.name == "symbol"
    with pytest.raises(FieldError, match="no bars of XAUUSD M15 are stored") as told:
        planned(home, STORED, database)
    assert told.value.name == "timeframes"
    with pytest.raises(FieldError, match="a profile mine already"):
        planned(home, {**FROM_FILES, "profile_name": "mine"}, database)


def test_a_file_that_is_none_changes_nothing(home: Path, database: Database) -> None:
    (home / "uploads" / "gold.csv").write_text("time,open\nnonsense\n")
    before = (home / "desk.json").read_text()
    with pytest.raises(FieldError) as told:
        put(planned(home, FROM_FILES, database))
    assert told.value.name == "files" and "gold.csv" in str(told.value)
    assert str(home) not in str(told.value)
    assert (home / "desk.json").read_text() == before and not (home / DESK_BEFORE).exists()


def test_a_file_that_would_hold_the_database_up_is_for_the_command_line(
    home: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "LARGEST_FILE", 1000)
    with pytest.raises(
        FieldError, match=r"gold\.csv is larger than .*: import it with torra import"
    ) as told:
        planned(home, FROM_FILES, database)
    assert told.value.name == "files"


def test_a_broken_desk_file_is_not_touched(home: Path) -> None:
    settings = load_desk(home)
    (home / "desk.json").write_text("{")
    with pytest.raises(ConfigError, match="cannot read"):
        place_of(home, settings)


# --- the broker's list ----------------------------------------------------------------------------


def listed(folder: Path, *, account: int = 12345678) -> DeskSettings:
    listed_terms.write(folder, [POUND], KEY, account=account)
    euro = Instance(symbol="EURUSD", profile="mine", feed="mt5_files")
    channel = Channel(folder=str(folder), account=12345678)
    return DeskSettings(instances=(euro,), channels={"main": channel})


def test_the_advisors_list_fills_the_terms_in(tmp_path: Path) -> None:
    settings = listed(tmp_path / "main")
    found = sources(settings, {"TORRA_CHANNEL_KEY": KEY})["mt5_files main"]
    assert set(found.terms) == {"GBPJPY.m"} and not found.trouble
    terms, who = known_terms("GBPJPY", "GBPJPY.m", found)
    assert who == "the broker's own list"
    assert (terms["digits"], terms["tick_size"], terms["tick_value"]) == ("3", "0.001", "0.67")
    assert (terms["spread"], terms["asset"], terms["currencies"]) == ("0.018", "fx", "GBP, JPY")
    words = {**terms, "source": "mt5_files main", "symbol": "GBPJPY", "broker": "GBPJPY.m"}
    wish, faults = wishes.read(words, {"mt5_files main": found}, [])
    assert wish is not None, faults
    (tmp_path / "desk.json").write_text(settings.model_dump_json())
    added = plan(place_of(tmp_path, settings), wish, None)
    assert added.desk["instances"][-1] == {
        "symbol": "GBPJPY", "timeframes": ["M15", "H1"], "profile": "gbpjpy", "feed": "mt5_files",
        "bridge": "paper", "channel": "main", "broker_symbol": "GBPJPY.m",
    }  # fmt: skip
    assert "bar_symbols EURUSD,GBPJPY.m, bar_timeframes M15,H1." in added.steps[0]
    euro = settings.instances[0].model_copy(update={"companions": {"dxy": "USDX.f"}})
    beside = settings.model_copy(update={"instances": (euro,)})
    (tmp_path / "desk.json").write_text(beside.model_dump_json())
    step = plan(place_of(tmp_path, beside), wish, None).steps[0]
    told = "EURUSD,GBPJPY.m,USDX.f, bar_timeframes M15,H1, flow_symbols EURUSD,GBPJPY.m."
    assert f"bar_symbols {told}" in step
    missing = wishes.read({**words, "broker": "GBPJPY"}, {"mt5_files main": found}, [])[1]
    assert "nearest: GBPJPY.m" in missing["broker"]


@pytest.mark.parametrize(
    ("environment", "account", "said"),
    [
        ({}, 12345678, "TORRA_CHANNEL_KEY is not set"),
        ({"TORRA_CHANNEL_KEY": "another"}, 12345678, "is no message"),
        ({"TORRA_CHANNEL_KEY": KEY}, 999, "logged in to 999, not to 12345678"),
    ],
)
def test_a_list_that_cannot_be_used_says_why(
    tmp_path: Path, environment: dict[str, str], account: int, said: str
) -> None:
    settings = listed(tmp_path / "main", account=account)
    found = sources(settings, environment)["mt5_files main"]
    assert not found.terms and said in found.trouble and KEY not in found.trouble


def test_the_package_lists_every_symbol(tmp_path: Path) -> None:
    world = World(tmp_path)
    settings = DeskSettings(
        instances=(Instance(symbol="EURUSD", feed="mt5_direct"),),
        channels={"main": Channel(account=12345678)},
    )
    try:
        found = sources(settings, {}, lambda: world.terminal)
    finally:
        for terminal in world.terminals:
            terminal.close()
    assert list(found) == ["mt5_direct main", "files", "store"]
    assert "XAUUSD.m" in found["mt5_direct main"].terms
    told = sources(settings, {}, _no_package)["mt5_direct main"]
    assert "exists for Windows only" in told.trouble


def _no_package() -> Any:
    raise ConfigError("mt5_direct needs the MetaTrader5 package, which exists for Windows only")


def test_shipped_terms_are_read_without_an_exponent() -> None:
    source = BarSource("files", "store", "files")
    terms, who = known_terms("EURUSD", "EURUSD", source)
    assert terms["tick_size"] == "0.00001" and terms["spread"] == "0.00012" and "Torra's" in who
    nothing, who = known_terms("GBPJPY", "GBPJPY", source)
    assert nothing["digits"] == "" and nothing["asset"] == "fx" and not who
    assert set(terms) == set(bar_sources.TERMS)
    odd = replace(POUND, tick_size=1e-08)
    assert (
        known_terms("X", "GBPJPY.m", replace(source, terms={"GBPJPY.m": odd}))[0]["tick_size"]
        == "0.00000001"
    )
