"""Settings tried on the desk's own bars: what L1 alone would have made, before and after."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from functools import cache
from math import fsum
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from instance_database import Database
from technical_calculator import WARM_UP
from tests.cases import cases
from tests.worlds import desks, stores
from torra.clock import System, duration, iso, parse
from torra.commands.command_line import main
from torra.config import DeskSettings, Instance, Profile, validate
from torra.errors import ConfigError
from torra.home import TRIED
from torra.profiles.fields import DEFAULT, changed
from torra.replay.l1.sweep import L1Backtest
from torra.replay.shards import trials
from torra.replay.tried import estimate, kind, words
from torra.replay.tried.estimate import Sums, Tried, WhatIf, tried
from torra.store.trade import proposals_and_alarms as execution_table

pytestmark = pytest.mark.usefixtures("scored_once")

END = parse("2021-11-20T00:00:00Z")
BOTH = {"thresholds.buy": 0.2, "risk.risk_per_trade_pct": 1.0}


@cache
def sample(symbol: str, timeframe: str) -> pd.DataFrame:
    return desks.sample().bars(symbol, timeframe, END, 4000)


def store(home: Path, *instances: Instance, last: int | None = None) -> Database:
    """A home whose desk has stored the sample of some instances, the `last` bars of it."""
    (home / "desk.json").write_text(DeskSettings(instances=instances).model_dump_json())
    database = stores.open_database(home, now=System().real_now)
    for item in instances:
        for name in item.timeframes:
            bars = sample(item.symbol, name)
            database.store_bars(item.id, name, bars if last is None else bars.tail(last))
    return database


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the bars of two symbols: storing them takes longer than copying it."""
    folder = tmp_path_factory.mktemp("shelf")
    store(folder, desks.BTC, desks.EUR).close()
    return folder


@pytest.fixture
def home(shelf: Path, tmp_path: Path) -> Path:
    return shutil.copytree(shelf, tmp_path / "home")


def profile(**places: Any) -> Profile:
    told = {tuple(name.split("__")): value for name, value in places.items()}
    return validate(Profile, changed(DEFAULT, told), "a test")


def ask(
    home: Path, wanted: Profile, saved: Profile | None = None, days: int = 30,
    instances: tuple[Instance, ...] = (desks.BTC, desks.EUR), paper: str = "USD",
) -> Tried:  # fmt: skip
    database = stores.open_database(home, now=System().real_now)
    try:
        question = WhatIf("default", saved or Profile(), wanted, days, END)
        return tried(home, database, instances, question, paper)
    finally:
        database.close()


def swept(item: Instance, found: Profile, days: int = 30) -> Any:
    frames = {name: sample(item.symbol, name) for name in item.timeframes}
    return L1Backtest(item, frames, begin=END - timedelta(days=days), end=END).run(found)


def deepest(profits: list[float]) -> float:
    """The deepest fall of a running sum, written a second time."""
    levels = [fsum(profits[:at]) for at in range(len(profits) + 1)]
    return max(max(levels[: at + 1]) - level for at, level in enumerate(levels))


def test_both_are_what_l1_alone_makes_of_the_stored_bars(home: Path) -> None:
    wanted = profile(thresholds__buy=0.2)
    found = ask(home, wanted)
    for told, run in ((found.before, Profile()), (found.after, wanted)):
        made = [trade for item in (desks.BTC, desks.EUR) for trade in swept(item, run).trades]
        made.sort(key=lambda trade: trade.closed)
        profits = [trade.profit for trade in made]
        assert told == (
            Sums(
                "USD", len(made), sum(one > 0 for one in profits), round(fsum(profits), 2),
                round(fsum(trade.r for trade in made), 2), round(deepest(profits), 2),
            ),
        )  # fmt: skip
    assert found.after[0].trades > 2 * found.before[0].trades > 0
    assert [one.instance for one in found.ran_on] == ["BTCUSD", "EURUSD"]
    assert found.ran_on[0].before.trades == len(swept(desks.BTC, Profile()).trades)
    assert (found.begin, found.end) == ("2021-10-21T00:15:00Z", "2021-11-20T00:00:00Z")


def test_fewer_days_are_those_days_alone(home: Path) -> None:
    found = ask(home, Profile(), days=7, instances=(desks.BTC,))
    assert found.before[0].trades == len(swept(desks.BTC, Profile(), 7).trades)
    assert found.before == found.after
    assert found.says.startswith("As saved: ") and "With the changes" not in found.says


@pytest.mark.journey
def test_each_change_is_run_by_itself(home: Path) -> None:
    found = ask(home, profile(thresholds__buy=0.2, risk__risk_per_trade_pct=1.0))
    assert [one.name for one in found.alone] == list(BOTH)
    for one, single in zip(
        found.alone,
        (profile(thresholds__buy=0.2), profile(risk__risk_per_trade_pct=1.0)),
        strict=True,
    ):
        assert one.sums == ask(home, single).after
    assert not ask(home, profile(thresholds__buy=0.2)).alone, "a single change is the whole"
    risky = words.alone(found)[1]
    assert risky.title == "Risk per trade"
    assert risky.difference.startswith("as many trades, ")


def test_at_most_ten_changes_are_run_by_themselves(home: Path) -> None:
    weights = {f"sentiment_weights__{name}": 0.3 for name in DEFAULT["sentiment_weights"]}
    gate = dict.fromkeys(("gate__losing_streak", "gate__min_valid_bars", "risk__cooldown_bars"), 9)
    risk = dict.fromkeys(
        ("risk__max_positions", "risk__max_signals_per_hour", "risk__min_trades_for_ev"), 2
    )
    found = ask(home, profile(**weights, **gate, **risk), instances=(desks.EUR,))
    assert (len(found.changes), len(found.alone)) == (11, estimate.MOST_ALONE)


def test_every_configuration_is_a_look_once(home: Path) -> None:
    found = ask(home, profile(thresholds__buy=0.2, risk__risk_per_trade_pct=1.0))
    assert [one.looks for one in found.ran_on] == [4, 4]
    assert trials.count(home, "BTCUSD") == 4
    ask(home, profile(thresholds__buy=0.2))
    assert trials.count(home, "BTCUSD") == 4, "the same on the same bars is the same look"
    ask(home, profile(thresholds__buy=0.3))
    assert trials.count(home, "BTCUSD") == 5
    assert any("4 at BTCUSD and 4 at EURUSD" in note for note in found.notes)


def test_a_look_is_logged_before_its_result_is_known(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr(L1Backtest, "run", broken)
    with pytest.raises(RuntimeError):
        ask(home, profile(thresholds__buy=0.2))
    assert trials.count(home, "BTCUSD") == 2


def test_amounts_of_two_currencies_are_not_added_up(home: Path) -> None:
    database = stores.open_database(home, now=System().real_now)
    abroad = desks.EUR.model_copy(update={"bridge": "mt5_direct", "channel": "main"})
    execution_table.note_bridge(
        database, abroad.route, deny="", detail="", facts={"currency": "EUR"}
    )
    database.close()
    found = ask(home, profile(thresholds__buy=0.2), instances=(desks.BTC, abroad))
    assert [one.currency for one in found.before] == ["USD", "EUR"]
    assert [name for name, _ in words.tables(found)] == ["USD", "EUR"]
    assert " USD, " in found.says and " EUR, " in found.says


def test_without_a_known_currency_none_is_told(home: Path) -> None:
    found = ask(home, Profile(), paper="")
    assert words.tables(found)[0][0] == "the account's currency"
    assert "USD" not in found.says


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (0, "no bar of it is stored yet"),
        (100, "100 bars of it are stored, and scores take 210"),
    ],
)
def test_an_instance_with_too_few_bars_is_left_out_with_the_reason(
    tmp_path: Path, last: int, why: str
) -> None:
    store(tmp_path, desks.EUR).close()
    database = stores.open_database(tmp_path, now=System().real_now)
    for name in desks.BTC.timeframes:
        database.store_bars("BTCUSD", name, sample("BTCUSD", name).tail(last))
    database.close()
    found = ask(tmp_path, profile(thresholds__buy=0.2))
    assert [(one.instance, one.why) for one in found.left_out] == [("BTCUSD", why)]
    assert [one.instance for one in found.ran_on] == ["EURUSD"]
    alone = ask(tmp_path, profile(thresholds__buy=0.2), instances=(desks.BTC,))
    assert alone.says == f"Nothing could be run. BTCUSD: {why}."
    assert words.table(alone).startswith("Nothing could be run.")


def test_a_short_history_says_how_far_back_it_goes(tmp_path: Path) -> None:
    store(tmp_path, desks.BTC, last=1000).close()
    found = ask(tmp_path, Profile(), instances=(desks.BTC,))
    first = sample("BTCUSD", "M15").index[-1000 + WARM_UP - 1] + duration("M15")
    assert found.ran_on[0].whole_from == iso(first.to_pydatetime()) > found.begin
    told = f"BTCUSD: its bars reach back to {first:%Y-%m-%d} only, not 30 days."
    assert told in found.notes


def test_bars_of_long_ago_are_not_the_last_days(tmp_path: Path) -> None:
    store(tmp_path, desks.BTC).close()
    database = stores.open_database(tmp_path, now=System().real_now)
    late = WhatIf("default", Profile(), Profile(), 30, END + timedelta(days=90))
    found = tried(tmp_path, database, (desks.BTC,), late, "USD")
    database.close()
    assert found.left_out[0].why == "no bar of it closed in the last 30 days"


@pytest.mark.parametrize(
    ("wanted", "trades", "note"),
    [
        (profile(execution="off"), 0, estimate.NOBODY_SENDS),
        (profile(execution="approve"), None, estimate.AS_IF_APPROVED),
        (profile(events__calendar="events.csv"), None, estimate.NO_CALENDAR),
    ],
)
def test_what_bars_alone_cannot_know_is_told(
    home: Path, wanted: Profile, trades: int | None, note: str
) -> None:
    found = ask(home, wanted)
    assert note in found.notes
    assert found.after[0].trades == (found.before[0].trades if trades is None else trades)


def test_a_desk_that_only_watches_sees_what_would_have_been(home: Path) -> None:
    watching = profile(execution="off")
    found = ask(home, profile(execution="off", thresholds__buy=0.2), watching)
    assert (found.before, found.after) == (
        ask(home, Profile()).after,
        ask(home, profile(thresholds__buy=0.2)).after,
    )
    assert estimate.WATCHED in found.notes and estimate.NOBODY_SENDS not in found.notes


def test_settings_of_agents_are_said_not_to_be_measured(home: Path) -> None:
    found = ask(home, profile(agents__influence="shadow", agents__max_api_cost_per_hour=1.0))
    assert "Not measured here: agents.influence and agents.max_api_cost_per_hour." in found.notes
    assert found.before == found.after


# --- as a request, and kept -----------------------------------------------------------------------


def request(home: Path, **asked: Any) -> Any:
    return kind.check(home, {"profile": "default", **asked})


def test_a_request_fixes_the_newest_close_and_both_profiles(home: Path) -> None:
    found = request(home, settings=BOTH)
    newest = max(
        sample(item.symbol, name).index[-1] + duration(name)
        for item in (desks.BTC, desks.EUR)
        for name in item.timeframes
    )
    told: Any = found.parameters
    assert told["end"] == iso(newest.to_pydatetime())
    assert Profile.model_validate_json(told["wanted"]).thresholds.buy == 0.2
    assert found.title == ("default: thresholds.buy 0.2, risk.risk_per_trade_pct 1.0, last 30 days")
    assert request(home).title == "default: as saved, last 30 days"


def test_the_same_request_is_known_however_it_is_written(home: Path) -> None:
    one = request(home, settings=BOTH)
    same = request(home, settings=dict(reversed(BOTH.items())), days=30)
    assert one.identity == same.identity
    assert request(home, settings=BOTH, days=20).identity != one.identity
    assert request(home, settings={"thresholds.buy": 0.3}).identity != one.identity


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"settings": {"thresholds.buy": 2}}, "thresholds.buy: "),
        ({"settings": {"thresholds.no": 2}}, "thresholds.no"),
        ({"settings": {"events.calendar": "/etc/passwd"}}, "a path can be tried only on"),
        ({"days": 0}, "days: 0 is not between 1 and 366"),
        ({"days": "30"}, "days: "),
        ({"profile": "nobody"}, "there is no profile nobody"),
        ({"profile": "../x"}, "is no name for a profile"),
        ({"more": 1}, "more: "),
    ],
)
def test_a_mistake_is_told_before_anything_is_queued(
    home: Path, asked: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        request(home, **asked)
    assert trials.count(home, "BTCUSD") == 0


def test_without_bars_or_a_symbol_nothing_is_queued(tmp_path: Path) -> None:
    store(tmp_path, desks.BTC, last=0).close()
    with pytest.raises(ConfigError, match="No bar of BTCUSD is stored yet"):
        request(tmp_path)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "mine.json").write_text("{}")
    with pytest.raises(ConfigError, match="mine: no symbol of this desk uses it"):
        request(tmp_path, profile="mine")


def test_a_home_without_a_database_stays_without_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No bar of BTCUSD is stored yet"):
        request(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_was_found_is_kept_and_read_again(home: Path) -> None:
    found = kind.run(home, request(home, settings=BOTH).parameters, lambda *_: None)
    told = kind.read(home, found.made)
    assert told is not None
    assert (told.says, told.changes[0]["place"]) == (found.says, "thresholds.buy")
    assert kind.read(home, "0" * 16) is None
    assert kind.read(home, "../../desk") is None
    (home / TRIED / f"{'1' * 16}.json").write_text('{"profile": 1}')
    assert kind.read(home, "1" * 16) is None


@pytest.fixture(scope="module")
def document(shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What was found of a question, as it is kept."""
    home = shutil.copytree(shelf, tmp_path_factory.mktemp("document") / "home")
    made = kind.run(home, request(home, settings=BOTH).parameters, lambda *_: None).made
    return (home / TRIED / f"{made}.json").read_text()


@cases(
    "spoil",
    [
        {},
        {"capital": 0}, {"before": []}, {"changes": [{}]}, {"changes": [{"place": 7}]},
        {"alone": [{"name": "thresholds.buy", "before": 1, "after": 2, "sums": []}]},
        {"ran_on": 3}, {"says": None}, {"more": 1}, {"before": "x" * 5000},
    ],
)  # fmt: skip
def test_a_document_that_makes_no_sense_is_none(
    tmp_path: Path, document: str, spoil: dict[str, Any]
) -> None:
    made = "0" * 16
    (tmp_path / TRIED).mkdir(exist_ok=True)
    (tmp_path / TRIED / f"{made}.json").write_text(json.dumps(json.loads(document) | spoil))
    assert (kind.read(tmp_path, made) is None) == bool(spoil.keys() - {"more"})


def test_a_fall_is_a_share_of_the_capital_that_it_was_made_with(home: Path) -> None:
    found = ask(home, profile(risk__capital=100_000.0), profile(risk__capital=10_000.0))
    ((_, told),) = words.tables(found)
    row = next(one for one in told if one.what.startswith("Deepest fall"))
    before, after = found.before[0].fall, found.after[0].fall
    assert after > 5 * before > 0
    assert row.before.endswith(f"({100 * before / 10_000:.1f} %)")
    assert row.after.endswith(f"({100 * after / 100_000:.1f} %)")


def test_the_newest_documents_are_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "KEPT", 2)
    for days in (3, 4, 5):
        made = kind.run(home, request(home, days=days).parameters, lambda *_: None).made
    assert len(list((home / TRIED).iterdir())) == 2
    assert kind.read(home, made) is not None


# --- from the command line ------------------------------------------------------------------------


def command(home: Path, *told: str) -> Any:
    return CliRunner().invoke(main, ["--home", str(home), "profile", "try", *told])


@pytest.mark.journey
def test_the_command_says_the_same_as_the_job(home: Path) -> None:
    pairs = [f"{name}={value}" for name, value in BOTH.items()]
    told = command(home, "default", *pairs, "--json")
    assert told.exit_code == 0, told.output
    found = kind.run(home, request(home, settings=BOTH).parameters, lambda *_: None)
    document = json.loads(told.stdout)
    assert document["says"] == found.says
    shown = command(home, "default", *pairs).stdout
    assert shown.startswith(found.says)
    assert "  thresholds.buy 0.5 → 0.2: " in shown
    assert not (home / "profiles").exists(), "nothing is saved"


def test_a_mistake_is_one_line_and_exit_code_2(home: Path) -> None:
    answer = command(home, "default", "thresholds.buy")
    assert answer.exit_code == 2
    assert "write PLACE=VALUE" in answer.output and "Traceback" not in answer.output
