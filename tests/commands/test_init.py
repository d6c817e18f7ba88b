"""`torra init`: from answers to a desk that loads, or to one line that says what is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cases import cases
from tests.worlds import listed_terms
from torra.bridges.protocol import Quote, SymbolTerms
from torra.bridges.torra.messages import TAIL_LENGTH, seal
from torra.commands import init as first_steps
from torra.commands.command_line import ChapterGroup
from torra.config import SYMBOLS, Profile, SymbolSpec, load_desk, load_profile
from torra.desk.setup.broker_symbols import kind_of, nearest, read_terms
from torra.desk.setup.desk_plan import plan, write
from torra.desk.setup.request import SetupRequest, TerminalFacts
from torra.errors import ConfigError

KEY = "a key of the test"
AT = datetime(2026, 3, 10, 12, tzinfo=UTC)


def terms_of(broker: str, **more: Any) -> SymbolTerms:
    values: dict[str, Any] = {
        "broker_symbol": broker, "digits": 2, "tick_size": 0.01, "tick_value": 0.92,
        "contract_size": 100.0, "lot_min": 0.01, "lot_step": 0.01, "lot_max": 20.0,
        "stops_level": 15, "trade_mode": "full", "currency": "USD",
        "quote": Quote(2345.1, 2345.42, AT),
    }  # fmt: skip
    return SymbolTerms(**{**values, **more})


GOLD = terms_of("XAUUSD.m")
EURO = terms_of(
    "EURUSD", digits=5, tick_size=1e-05, tick_value=1.0, contract_size=100_000.0, lot_max=50.0,
    stops_level=0, quote=Quote(1.08, 1.08012, AT),
)  # fmt: skip
POUND = replace(EURO, broker_symbol="GBPJPY.m", tick_value=0.67, currency="JPY", stops_level=3)
APPLE = terms_of("#AAPL", contract_size=1.0, stops_level=0, quote=Quote(210.0, 210.05, AT))
TERMS = {row.broker_symbol: row for row in (GOLD, EURO, POUND, APPLE)}
LIST = TerminalFacts(terms=TERMS, account=12345678, trade_mode="demo", offset=10800, at=AT)
TWO = SetupRequest(
    symbols=(("XAUUSD", "XAUUSD.m"), ("EURUSD", "EURUSD")),
    folder="/mt5/Torra/main",
    account=12345678,
)

# --- the plan -------------------------------------------------------------------------------------

DESK = """\
{
  "instances": [
    {
      "symbol": "XAUUSD",
      "timeframes": [
        "M15",
        "H1"
      ],
      "profile": "mine",
      "feed": "mt5_files",
      "bridge": "paper",
      "channel": "main",
      "broker_symbol": "XAUUSD.m"
    },
    {
      "symbol": "EURUSD",
      "timeframes": [
        "M15",
        "H1"
      ],
      "profile": "mine",
      "feed": "mt5_files",
      "bridge": "paper",
      "channel": "main"
    }
  ],
  "channels": {
    "main": {
      "folder": "/mt5/Torra/main",
      "account": 12345678,
      "live": false,
      "server_clock": "new_york+7"
    }
  }
}
"""
PROFILE = """\
{
  "symbols": {
    "XAUUSD": {
      "stops_level": 15,
      "tick_value": 0.92,
      "lot_max": 20.0,
      "spread": 0.32
    }
  }
}
"""


def test_the_files_of_two_symbols(tmp_path: Path) -> None:
    found = plan(tmp_path, TWO, LIST)
    assert not list(tmp_path.iterdir())
    write(found)
    assert (tmp_path / "desk.json").read_text() == DESK
    assert (tmp_path / "profiles" / "mine.json").read_text() == PROFILE
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "desk.json", "mine.json", "profiles",
    ]  # fmt: skip
    desk = load_desk(tmp_path)
    assert [item.broker_name for item in desk.instances] == ["XAUUSD.m", "EURUSD"]
    profile = load_profile("mine", tmp_path)
    assert profile.symbol("XAUUSD").tick_value == 0.92
    assert profile.symbol("EURUSD") == SYMBOLS["EURUSD"]
    assert profile.risk == Profile().risk


def test_companions_are_of_every_symbol_but_themselves(tmp_path: Path) -> None:
    beside = (("dxy", "USDX.f"), ("gold", "XAUUSD.m"))
    found = plan(tmp_path, replace(TWO, companions=beside), LIST)
    gold, euro = found.desk["instances"]
    assert gold["companions"] == {"dxy": "USDX.f"} and euro["companions"] == dict(beside)
    # What ticks is written first, what is read beside it after it, and each once.
    assert (
        "bar_symbols XAUUSD.m,EURUSD,USDX.f, bar_timeframes M15,H1, flow_symbols XAUUSD.m,EURUSD."
    ) in found.steps[0]


def test_a_profile_says_only_what_differs(tmp_path: Path) -> None:
    answers = replace(
        TWO, capital=2500.0, risk_per_trade=0.25, execution="approve", provider="anthropic"
    )
    found = plan(tmp_path, answers, LIST).profile
    assert set(found) == {"risk", "symbols", "agents", "execution"}
    assert found["risk"] == {"capital": 2500.0, "risk_per_trade_pct": 0.25}
    assert found["agents"] == {"provider": "anthropic"}
    assert found["execution"] == "approve"
    assert plan(tmp_path, TWO, TerminalFacts()).profile == {}


def test_a_symbol_that_is_not_shipped_comes_from_the_list(tmp_path: Path) -> None:
    answers = replace(TWO, symbols=(("GBPJPY", "GBPJPY.m"), ("AAPL", "#AAPL")))
    found = plan(tmp_path, answers, LIST)
    write(found)
    profile = load_profile("mine", tmp_path)
    assert profile.symbol("GBPJPY") == SymbolSpec(
        digits=5, tick_size=1e-05, tick_value=0.67, contract_size=100_000.0, lot_min=0.01,
        lot_step=0.01, lot_max=50.0, spread=0.00012, stops_level=3, asset="fx",
        currencies=("GBP", "JPY"),
    )  # fmt: skip
    assert profile.symbol("AAPL").asset == ""
    assert profile.symbol("AAPL").currencies == ("USD",)
    assert profile.symbol("AAPL").spread == 0.05
    text = (tmp_path / "profiles" / "mine.json").read_text()
    assert '"tick_size": 0.00001,' in text and "e-05" not in text
    assert any("symbols.AAPL.asset" in note for note in found.notes)
    assert not any("symbols.GBPJPY.asset" in note for note in found.notes)


def test_other_timeframes_get_a_weight(tmp_path: Path) -> None:
    assert "timeframe_weights" not in plan(tmp_path, replace(TWO, timeframes=("H1",)), LIST).profile
    found = plan(tmp_path, replace(TWO, timeframes=("M15", "H4")), LIST)
    assert found.profile["timeframe_weights"] == {"M15": 1.0, "H4": 1.0}
    assert any("timeframe_weights" in note for note in found.notes)


@pytest.mark.parametrize(
    ("feed", "bridge", "channel", "folder", "first"),
    [
        ("mt5_files", "paper", True, True, "bar_symbols XAUUSD.m,EURUSD, bar_timeframes M15,H1"),
        ("mt5_files", "torra_files", True, True, "Set TORRA_CHANNEL_KEY"),
        ("store", "torra_files", True, True, "Set TORRA_CHANNEL_KEY"),
        ("mt5_direct", "mt5_direct", True, False, "Start MetaTrader 5"),
        ("store", "paper", False, False, "torra import FILE --symbol XAUUSD --timeframe M15"),
    ],
)
def test_each_way_to_the_market(
    tmp_path: Path, feed: str, bridge: str, channel: bool, folder: bool, first: str
) -> None:
    answers = replace(TWO, feed=feed, bridge=bridge, folder="/mt5" if folder else "")
    found = plan(tmp_path, answers, LIST)
    assert ("channels" in found.desk) is channel
    if channel:
        assert ("folder" in found.desk["channels"]["main"]) is folder
    assert ("channel" in found.desk["instances"][0]) is channel
    assert first in found.steps[0] and "torra doctor" in found.steps[-2]
    # Bars of the past teach a desk its records; of the feed `store` they are the feed itself.
    history = "Import years of bars" in found.steps[1]
    assert history is (feed != "store") and len(found.steps) == 3 + history
    assert found.steps[-1].endswith("on paper." if bridge == "paper" else "account 12345678.")
    if folder:
        with pytest.raises(ConfigError, match="give --folder"):
            plan(tmp_path, replace(answers, folder=""), LIST)
    if channel:
        with pytest.raises(ConfigError, match="give --account"):
            plan(tmp_path, replace(answers, account=0), LIST)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"symbols": ()}, "give --symbols"),
        ({"symbols": (("XAUUSD", "a"), ("XAUUSD", "b"))}, "the symbol XAUUSD is there twice"),
        ({"symbols": (("A", "x"), ("B", "x"))}, "the broker's symbol x is there twice"),
        ({"symbols": (("XAUUSD", "XAUUSD"),)}, r"no XAUUSD; nearest: XAUUSD\.m.*XAUUSD=XAUUSD\.m"),
        ({"symbols": (("DAX", "Germany40"),)}, "no Germany40: show it in Market Watch"),
        ({"account": 7}, "logged in to 12345678, not 7"),
        ({"server_clock": "Europe/Athens"}, r"is \+03:00 from UTC, but Europe/Athens was \+02:00"),
        ({"server_clock": "Atlantis"}, "unknown clock 'Atlantis'"),
        ({"risk_per_trade": 11.0}, r"profile mine: risk\.risk_per_trade_pct: .*must be 10 at most"),
        ({"feed": "csv"}, r"desk\.json: instances\.0\.feed"),
        ({"companions": (("DXY", "USDX.f"),)}, "lower-case letters"),
    ],
)  # fmt: skip
def test_an_answer_that_does_not_fit(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan(tmp_path, replace(TWO, **changes), LIST)


def test_without_a_list_only_shipped_symbols_are_known(tmp_path: Path) -> None:
    found = plan(tmp_path, TWO, TerminalFacts())
    assert sum("shipped trading conditions" in note for note in found.notes) == 2
    answers = replace(TWO, symbols=(("GBPJPY", "GBPJPY.m"),))
    with pytest.raises(ConfigError, match=r"nothing is known of GBPJPY: run the Expert Advisor "):
        plan(tmp_path, answers, TerminalFacts())
    with pytest.raises(ConfigError, match=r"--terms FILE \(no list\)"):
        plan(tmp_path, answers, TerminalFacts(trouble="no list"))


def test_a_spread_is_quoted_or_shipped_or_missing(tmp_path: Path) -> None:
    def spread(symbol: str, broker: str, quote: Quote | None) -> float:
        terms = {broker: replace(TERMS[broker], quote=quote)}
        answers = replace(TWO, symbols=((symbol, broker),))
        found = plan(tmp_path, answers, replace(LIST, terms=terms)).profile
        return float(found["symbols"][symbol].get("spread", -1))

    assert spread("XAUUSD", "XAUUSD.m", Quote(2000.0, 2000.4, AT)) == 0.4
    assert spread("XAUUSD", "XAUUSD.m", Quote(2000.0, 2000.0, AT)) == 0.0
    assert spread("XAUUSD", "XAUUSD.m", None) == -1  # the shipped one
    assert spread("XAUUSD", "XAUUSD.m", Quote(2000.4, 2000.0, AT)) == -1
    with pytest.raises(ConfigError, match=r"no quote of GBPJPY\.m and so no spread"):
        spread("GBPJPY", "GBPJPY.m", None)


def test_what_the_broker_does_not_let_open(tmp_path: Path) -> None:
    for mode in ("disabled", "close_only", "long_only", "short_only"):
        terminal = replace(LIST, terms={**TERMS, "EURUSD": replace(EURO, trade_mode=mode)})
        assert any(mode in note for note in plan(tmp_path, TWO, terminal).notes)
        orders = replace(TWO, bridge="torra_files")
        if mode in ("disabled", "close_only"):
            with pytest.raises(ConfigError, match="lets nobody open EURUSD"):
                plan(tmp_path, orders, terminal)
        else:
            plan(tmp_path, orders, terminal)


def test_the_servers_clock_is_found_or_assumed(tmp_path: Path) -> None:
    def clock(terminal: TerminalFacts, given: str = "") -> tuple[str, str]:
        found = plan(tmp_path, replace(TWO, server_clock=given), terminal)
        notes = [note for note in found.notes if "server_clock" in note]
        return found.desk["channels"]["main"]["server_clock"], " ".join(notes)

    assert clock(LIST)[0] == "new_york+7" and "Europe/Moscow" in clock(LIST)[1]
    assert clock(replace(LIST, offset=7200))[0] == "Europe/Athens"
    assert clock(replace(LIST, offset=-18000))[0] == "-05:00"
    assert clock(LIST, "+03:00") == ("+03:00", "")
    name, note = clock(TerminalFacts())
    assert name == "new_york+7" and "as of most brokers" in note
    with pytest.raises(ConfigError, match="no clock is"):
        clock(replace(LIST, offset=100_000))


def test_real_money_and_a_small_balance_are_said(tmp_path: Path) -> None:
    def notes(terminal: TerminalFacts, **changes: Any) -> str:
        return " ".join(plan(tmp_path, replace(TWO, **changes), terminal).notes)

    real = replace(LIST, trade_mode="real", balance=500.0)
    assert "real money" in notes(real, bridge="torra_files")
    assert "real money" not in notes(real, bridge="torra_files", live=True)
    assert "real money" not in notes(real)
    assert "balance is 500.00, below the capital" in notes(real)
    assert "balance" not in notes(real, capital=500.0)


@cases(
    ("symbol", "kind"),
    [
        ("EURUSD", ("fx", ("EUR", "USD"))),
        ("USDJPY", ("fx", ("USD", "JPY"))),
        ("XAUEUR", ("gold", ("EUR",))),
        ("GOLD", ("gold", ("USD",))),
        ("ETHUSD", ("crypto", ("USD",))),
        ("US500", ("index", ("USD",))),
        ("GER40", ("index", ("EUR",))),
        ("XTIUSD", ("oil", ("USD",))),
        ("XAGUSD", ("", ())),
        ("AAPL", ("", ())),
        ("USDUSD", ("", ())),
        ("EURUSDX", ("", ())),
    ],
)
def test_a_kind_is_said_only_where_the_name_is_certain(
    symbol: str, kind: tuple[str, tuple[str, ...]]
) -> None:
    assert kind_of(symbol) == kind


def test_shipped_symbols_have_the_kind_of_their_name() -> None:
    for name, spec in SYMBOLS.items():
        assert kind_of(name) == (spec.asset, spec.currencies)


def test_the_nearest_names_come_first() -> None:
    names = ["EURUSD.m", "EURJPY.m", "XAUUSD.m", "XAGUSD.m", "GOLDspot", "US500"]
    assert nearest("EURUSD", "EURUSD", names)[0] == "EURUSD.m"
    assert nearest("gold", "XAUUSD", names)[:2] == ["GOLDspot", "XAUUSD.m"] or (
        nearest("gold", "XAUUSD", names)[:2] == ["XAUUSD.m", "GOLDspot"]
    )
    assert len(nearest("USD", "USD", names * 3)) <= 5
    assert nearest("zzz", "qqq", names) == []


# --- writing --------------------------------------------------------------------------------------


STEPS = ("fsync", "replace")


def everything(home: Path) -> dict[str, str]:
    files = [path for path in home.rglob("*") if path.is_file()]
    return {str(path.relative_to(home)): path.read_text() for path in files}


def test_nothing_is_replaced_without_force(tmp_path: Path) -> None:
    found = plan(tmp_path, TWO, LIST)
    write(found)
    other = plan(tmp_path, replace(TWO, capital=5.0), LIST)
    before = everything(tmp_path)
    with pytest.raises(ConfigError, match=r"desk\.json is there already: add --force"):
        write(other)
    (tmp_path / "desk.json").unlink()
    with pytest.raises(ConfigError, match=r"mine\.json is there already: add --force"):
        write(other)
    write(found, force=True)
    assert everything(tmp_path) == before
    write(other, force=True)
    assert load_profile("mine", tmp_path).risk.capital == 5.0


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize(("step", "nth"), [*((step, nth) for step in STEPS for nth in (1, 2))])
def test_a_disk_that_fails_leaves_no_desk_without_its_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool, step: str, nth: int
) -> None:
    if old:
        write(plan(tmp_path, TWO, LIST))
    before = everything(tmp_path)
    real: Callable[..., Any] = os.fsync if step == "fsync" else Path.replace
    calls = []

    def fails(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == nth or (step == "fsync" and len(calls) > nth):
            raise OSError(28, "No space left on device", "a file")
        return real(*given)

    monkeypatch.setattr(os if step == "fsync" else Path, step, fails)
    other = plan(tmp_path, replace(TWO, capital=5.0), LIST)
    with pytest.raises(ConfigError, match=r"cannot write .*\.json: No space left.* do it again"):
        write(other, force=True)
    found = everything(tmp_path)
    assert set(found) <= {"desk.json", "profiles/mine.json"}
    assert found.get("desk.json") == before.get("desk.json")
    if nth == 1:
        assert found == before, "nothing was changed"
    monkeypatch.undo()
    write(other, force=True)
    assert load_profile("mine", tmp_path).risk.capital == 5.0


# --- a list from a file ---------------------------------------------------------------------------

ROW = {
    "digits": 3, "tick_size": 0.001, "tick_value": 0.67, "contract_size": 100000,
    "lot_min": 0.01, "lot_step": 0.01, "lot_max": 50,
}  # fmt: skip


def given(path: Path, values: object) -> dict[str, SymbolTerms]:
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return read_terms(path)


def test_a_list_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "terms.json"
    assert given(path, {"A.b": ROW})["A.b"] == SymbolTerms(
        "A.b", 3, 0.001, 0.67, 100000.0, 0.01, 0.01, 50.0, 0, "full"
    )
    more = {**ROW, "stops_level": 4, "bid": 190, "ask": 190.02, "currency": "JPY"}
    found = given(path, {"A.b": more})["A.b"]
    assert (found.stops_level, found.currency) == (4, "JPY")
    assert found.quote is not None and (found.quote.bid, found.quote.ask) == (190.0, 190.02)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ([], "write "),
        ({"A": 1}, "write "),
        ({"A": {**ROW, "digits": "2"}}, "digits of A is '2', not a number"),
        ({"A": {**ROW, "digits": 2.5}}, r"digits of A is 2\.5"),
        ({"A": {**ROW, "lot_min": True}}, "lot_min of A is True"),
        ({"A": {"digits": 2}}, "tick_size of A is missing"),
        ({"A": {**ROW, "bid": 1}}, "ask of A is missing"),
    ],
)
def test_a_broken_list_names_the_place(tmp_path: Path, values: object, said: str) -> None:
    path = tmp_path / "terms.json"
    with pytest.raises(ConfigError, match=said) as caught:
        given(path, values)
    assert str(path) in str(caught.value)
    with pytest.raises(ConfigError, match="cannot read"):
        read_terms(tmp_path / "none.json")


# --- the command ----------------------------------------------------------------------------------


STORE = ("--feed", "store", "--symbols", "EURUSD")


@pytest.fixture
def advisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the Expert Advisor has written, and its key in the environment."""
    folder = tmp_path / "Torra" / "main"
    listed_terms.write(folder, [*TERMS.values()], KEY, offset=10801, balance="3000.55")
    monkeypatch.setenv("TORRA_CHANNEL_KEY", KEY)
    return folder


def torra(home: Path, *words: str, answers: str | None = None) -> Result:
    group = ChapterGroup("torra")
    group.add_command(first_steps.init)
    runner = CliRunner()
    return runner.invoke(group, ["init", *words], obj=home, input=answers, catch_exceptions=False)


def test_every_flag(tmp_path: Path, advisor: Path) -> None:
    home = tmp_path / "home"
    flags: Mapping[str, str] = {
        "symbols": "GBPJPY=GBPJPY.m", "timeframes": "h4,m15", "feed": "mt5_files",
        "bridge": "torra_files", "channel": "main", "folder": str(advisor),
        "account": "12345678", "server-clock": "+03:00", "capital": "2500",
        "risk-per-trade": "0.25", "execution": "approve", "provider": "google",
        "profile-name": "pound", "companions": " dxy = USDX.f , vix=VIX,",
    }  # fmt: skip
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    result = torra(home, "--json", "--live", *words)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert list(document) == ["files", "desk", "profile", "notes", "next"]
    assert document["desk"] == json.loads((home / "desk.json").read_text())
    assert document["profile"] == json.loads((home / "profiles" / "pound.json").read_text())
    instance = load_desk(home).instances[0]
    assert (instance.timeframes, instance.bridge) == (("M15", "H4"), "torra_files")
    assert instance.companions == {"dxy": "USDX.f", "vix": "VIX"}
    channel = load_desk(home).channels["main"]
    assert (channel.live, channel.server_clock) == (True, "+03:00")
    profile = load_profile(instance.profile, home)
    assert (profile.risk.capital, profile.risk.risk_per_trade_pct) == (2500.0, 0.25)
    assert (profile.execution, profile.agents.provider) == ("approve", "google")
    assert len(document["next"]) == 4


def test_questions(tmp_path: Path, advisor: Path) -> None:
    home = tmp_path / "home"
    answers = [
        "",  # feed
        "teleprinter", "torra_files",  # bridge
        "",  # channel
        str(advisor),  # folder
        "twelve", "",  # account: the one that MetaTrader 5 told
        "",  # live
        "Europe/Athens", "",  # server clock: the one that fits
        "XAUUSD", "XAUUSD=XAUUSD.m",  # symbols
        "M7", "",  # timeframes
        "-5", "",  # capital: the balance
        "1",  # risk
        "approve",  # execution
        "",  # provider
        "gold mine", "gold",  # profile
    ]  # fmt: skip
    result = torra(home, answers="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    channel = load_desk(home).channels["main"]
    assert (channel.account, channel.live, channel.server_clock) == (12345678, False, "new_york+7")
    instance = load_desk(home).instances[0]
    assert (instance.broker_name, instance.bridge) == ("XAUUSD.m", "torra_files")
    profile = load_profile("gold", home)
    assert (profile.risk.capital, profile.risk.risk_per_trade_pct) == (3000.0, 1.0)
    assert profile.execution == "approve"
    for said in (
        "'teleprinter' is none of paper, torra_files", "'twelve' is not an account number",
        "but Europe/Athens was +02:00", "nearest: XAUUSD.m", "'M7' is no timeframe",
        "'-5' is not a number above 0", "'gold mine': use letters",
    ):  # fmt: skip
        assert said in result.stderr, said
    assert result.stdout.startswith("wrote ")
    assert KEY not in result.output + "".join(everything(home).values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give --folder: folder that Torra and MetaTrader 5 share"),
        (("--folder", " "), "--folder: name a folder"),
        (("--folder", "/x"), "give --account: account number"),
        (("--folder", "/x", "--account", "0"), "--account: '0' is not an account number"),
        (("--folder", "/x", "--account", "1"), "give --symbols: symbols"),
        (("--feed", "store", "--symbols", "a|b"), "--symbols: 'a|b': use letters"),
        (("--feed", "store", "--symbols", "BTC/USD"), "call the symbol BTCUSD (BTCUSD=BTC/USD)"),
        (("--feed", "store", "--symbols", "EURUSD=a|b"), "--symbols: 'a|b' is no broker's symbol"),
        (("--feed", "store", "--symbols", "EURUSD="), "--symbols: '' is no broker's symbol"),
        (("--feed", "store", "--symbols", "EURUSD,EURUSD"), "EURUSD is there twice"),
        (("--feed", "store", "--symbols", "GBPJPY"), "nothing is known of GBPJPY"),
        (("--feed", "store", "--symbols", "EURUSD", "--capital", "inf"), "--capital: 'inf' is not"),
        (("--feed", "store", "--symbols", "EURUSD", "--risk-per-trade", "90"), "must be 10 at"),
        (("--feed", "store", "--symbols", "EURUSD", "--timeframes", ""), "'' is no timeframe"),
        (("--feed", "store", "--symbols", "EURUSD", "--profile-name", "../x"), "--profile-name: "),
        (("--feed", "csv"), "Invalid value for '--feed'"),
        (("--make-key",), "--make-key shows a key on a terminal only"),
        (("--terms", "gone.json", "--feed", "store"), "cannot read gone.json"),
        ((*STORE, "--companions", "USDX.f"), "write USDX.f=SYMBOL, such as dxy=USDX.f"),
        ((*STORE, "--companions", "dxy="), "write dxy=SYMBOL"),
        ((*STORE, "--companions", "dxy=A,dxy=B"), "the name dxy is there twice"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", ["--yes", "--json"])
def test_a_mistake_is_one_line_and_nothing_is_written(
    tmp_path: Path, words: tuple[str, ...], said: str, how: str
) -> None:
    home = tmp_path / "home"
    result = torra(home, how, *words)
    assert result.exit_code == 2
    assert said in result.stderr and len(result.stderr.splitlines()) == 1
    assert result.stdout == "" and not home.exists()


def test_a_fresh_key_is_shown_on_the_terminal_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_steps, "on_terminal", lambda: True)
    home, keys = tmp_path / "home", set()
    for words in ((), ("--json",), ("--yes", "--feed", "store", "--symbols", "EURUSD")):
        result = torra(home, "--make-key", *words)
        assert result.exit_code == 0, result.output
        key = result.stderr.strip().rpartition("TORRA_CHANNEL_KEY=")[2]
        assert len(key) == 64 and int(key, 16)
        assert result.stdout == "" and not home.exists()
        keys.add(key)
    assert len(keys) == 3


def wrong_row(state: Path) -> None:
    listed_terms.write(
        state.parent, [GOLD], KEY, change=lambda row: row.replace("|full|", "|fool|")
    )


def older(state: Path) -> None:
    for path in state.iterdir():
        body = path.read_text(encoding="ascii")[:-TAIL_LENGTH].replace('"v":2', '"v":1')
        path.write_bytes(seal(body, KEY))


@pytest.mark.parametrize(
    ("damage", "more", "said"),
    [
        (wrong_row, (), "has a wrong row"),
        (
            older,
            (),
            "the Expert Advisor on channel main speaks protocol 1, this Torra 2: compile and",
        ),
        (lambda _: None, ("--channel", "second"), "has the channel main, not second"),
    ],
    ids=["a-wrong-row", "an-older-version", "another-channel"],
)
def test_what_an_advisor_wrote_wrongly_is_told_once(
    tmp_path: Path, advisor: Path, damage: Callable[[Path], None], more: tuple[str, ...], said: str
) -> None:
    damage(advisor / "state")
    words = ("--yes", "--folder", str(advisor), "--account", "12345678", "--symbols", "EURUSD")
    result = torra(tmp_path / "home", *words, *more)
    assert result.output.count(said) == 1
    assert result.exit_code == (2 if more else 0)
    assert ("shipped trading conditions" in result.output) is not bool(more)


def test_what_the_advisor_wrote_counts_only_when_it_is_signed(
    tmp_path: Path, advisor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--yes", "--folder", str(advisor), "--account", "12345678", "--symbols", "EURUSD")
    monkeypatch.setenv("TORRA_CHANNEL_KEY", "another key")
    result = torra(tmp_path / "a", *words)
    assert result.exit_code == 0 and "is no message (auth" in result.stdout
    assert "another key" not in result.output
    monkeypatch.delenv("TORRA_CHANNEL_KEY")
    result = torra(tmp_path / "b", *words)
    assert result.exit_code == 0 and "TORRA_CHANNEL_KEY is not set" in result.stdout
    assert load_profile("mine", tmp_path / "b").risk.capital == 10_000
    monkeypatch.setenv("TORRA_CHANNEL_KEY", KEY)
    (advisor / "state" / "ea.json").unlink()
    result = torra(tmp_path / "c", *words)
    assert result.exit_code == 0 and "cannot read" in result.stdout
    assert "shipped trading conditions" not in result.stdout


def test_a_list_from_a_file_goes_before_the_advisors(tmp_path: Path, advisor: Path) -> None:
    path = tmp_path / "terms.json"
    path.write_text(json.dumps({"USDJPY.x": {**ROW, "bid": 150.0, "ask": 150.012}}))
    words = ("--folder", str(advisor), "--symbols", "USDJPY=USDJPY.x,XAUUSD=XAUUSD.m")
    result = torra(tmp_path / "home", "--yes", *words, "--terms", str(path))
    assert result.exit_code == 0, result.output
    profile = load_profile("mine", tmp_path / "home")
    assert profile.symbol("USDJPY").spread == 0.012
    assert profile.symbol("XAUUSD").stops_level == 15


def test_the_common_folder_is_found_and_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = Path("MetaQuotes", "Terminal", "Common", "Files")
    windows = tmp_path / "Roaming" / inside
    wine = tmp_path / ".wine/drive_c/users/me/AppData/Roaming" / inside
    assert first_steps.common_files({"HOME": str(tmp_path)}) is None
    for path in (windows, wine):
        path.mkdir(parents=True)
    (tmp_path / ".wine/drive_c/users/Public/AppData/Roaming").mkdir(parents=True)
    assert first_steps.common_files({"APPDATA": str(tmp_path / "Roaming")}) == windows
    assert first_steps.common_files({"HOME": str(tmp_path)}) == wine
    assert first_steps.common_files({"WINEPREFIX": str(tmp_path / ".wine")}) == wine
    monkeypatch.setenv("APPDATA", str(tmp_path / "Roaming"))
    result = torra(tmp_path / "home", "--yes", "--symbols", "EURUSD", "--account", "5")
    assert result.exit_code == 0, result.output
    assert load_desk(tmp_path / "home").channels["main"].folder == str(windows / "Torra" / "main")


def test_a_folder_is_written_so_that_it_means_the_same_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    for given, meant in (("mt5/main", "mt5/main"), ("~/main", "me/main")):
        words = ("--yes", "--force", "--symbols", "EURUSD", "--account", "5", "--folder", given)
        result = torra(tmp_path / "home", *words)
        assert result.exit_code == 0, result.output
        assert load_desk(tmp_path / "home").channels["main"].folder == str(tmp_path / meant)
