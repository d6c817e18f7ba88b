"""`torra lookahead` finds every planted leak, says where, and finds none in what is shipped."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from ath_calculator import Records
from technical_calculator import score_frame
from tests.cases import cases
from tests.conftest import Scale
from tests.examples import examples
from tests.scores.test_causality import early_swings
from tests.worlds import company_reports, outside_series
from tests.worlds.price_series import SAMPLE_DATA, sample, walk
from tests.worlds.stored_days import POSITIONS
from torra.commands import checking as checking_commands
from torra.config import OutsideSettings, Profile
from torra.errors import ConfigError
from torra.evidence.company_facts import CompanyHistory
from torra.evidence.outside_numbers import SeriesHistory, StoredRow
from torra.market import structure as market_structure
from torra.market.longer_bars import aggregate
from torra.replay.outlook_then import PointInTimeData
from torra.replay.replaying import guessed_terms
from torra.replay.rerun import futures, lookahead
from torra.replay.rerun.futures import KINDS
from torra.replay.rerun.lookahead import Findings, LookaheadSubject, exhibit, probe
from torra.replay.shards.history import History
from torra.tick.bar_window import HistoryWindow

BARS = walk(1000, 41)
FEW = BARS.iloc[:300]
SHIPPED = str(SAMPLE_DATA / "EURUSD_H1.csv")


def subject(bars: pd.DataFrame = BARS, *, hours: bool = False, **more: Any) -> LookaheadSubject:
    frames = {"M15": bars}
    if hours:
        frames["H1"] = aggregate(bars, "M15", "H1")
    derived = ("H1",) if hours else ()
    made = LookaheadSubject.of(History("BTCUSD", frames, {}, derived), Profile())
    return LookaheadSubject(made.instance, made.profile, made.frames, made.derived, **more)


def parts(found: Findings) -> set[tuple[str, str]]:
    return {(one.part, one.column) for one in found.moved}


# --- what is shipped ------------------------------------------------------------------------------


def test_what_is_shipped_knows_no_future(scaled: Scale, monkeypatch: pytest.MonkeyPatch) -> None:
    if not scaled.whole:
        monkeypatch.setattr(lookahead, "LEAD", 4)
    found = probe(subject(hours=True), points=scaled(100, 1), seed=3)
    assert found.clean, exhibit(found).rows
    assert set(found.columns) == {"score", "window", "bars", "tick"}
    assert {"H1.momentum", "M15.key_levels", "M15.valid"} <= found.columns["score"]
    told = found.columns["tick"]
    assert {"ath_price", "l1_consensus", "l1_verdict", "consensus", "regime.name"} <= told
    assert {"features.technical.rsi14.value", "features.memory.markov_state.value"} <= told
    assert any(name.startswith("composites.H1") for name in told)
    assert {"agents.momentum", "gate.multiplier", "memory.current_markov_state"} <= told


@pytest.mark.parametrize("name", ["BTCUSD_M15", "EURUSD_H1"])
def test_the_samples_know_no_future(name: str, scaled: Scale) -> None:
    if not scaled.whole:
        pytest.skip("nightly: make nightly")
    symbol, timeframe = name.split("_")
    bars = History(symbol, {timeframe: sample(name)}, {})
    found = probe(LookaheadSubject.of(bars, Profile()), points=100)
    assert found.clean, exhibit(found).rows


# --- planted leaks --------------------------------------------------------------------------------


def with_column(make: Callable[[pd.DataFrame], Any]) -> lookahead.Score:
    return lambda bars: score_frame(bars).assign(leak=make(bars))


def hourly(bars: pd.DataFrame) -> pd.Series:
    """The close of the hour that a bar is in, known three quarters too early."""
    hours = bars["close"].resample("1h").last()
    return pd.Series(hours.reindex(bars.index, method="ffill").to_numpy(), index=bars.index)


LEAKS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "centred mean": lambda bars: bars["close"].rolling(5, center=True).mean(),
    "normalised over the frame": lambda bars: bars["close"] / bars["high"].max(),
    "z-score over the frame": lambda bars: (bars["close"] - bars["close"].mean()).round(9),
    "hour that is not over": hourly,
    "next open": lambda bars: bars["open"].shift(-1),
    "last known bar": lambda bars: bars["close"] * 0 + len(bars),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_in_a_score_is_caught(name: str) -> None:
    made = subject(FEW, score=with_column(LEAKS[name]))
    found = probe(made, points=4, seed=1, modes=(), kinds=("scaled", "removed"))
    caught = {column for part, column in parts(found) if part == "score"}
    assert caught == {"M15.leak"}
    told = exhibit(found)
    assert "M15.leak" in told.says
    assert "is not to be believed" in told.says
    assert told.figures["moved"] >= 1
    worst = found.moved[0]
    assert worst.moment <= worst.as_of
    assert worst.before != worst.after


@cases("kind", KINDS)
def test_every_future_finds_a_peek_at_the_next_bar(kind: str) -> None:
    made = subject(FEW, score=with_column(lambda bars: bars["high"].shift(-1)))
    found = probe(made, points=1, modes=(), kinds=(kind,))
    assert {(one.part, one.kind) for one in found.moved} == {("score", kind)}


def test_a_leak_in_a_vector_reaches_the_tick_and_is_told_there() -> None:
    def leaks(bars: pd.DataFrame) -> pd.DataFrame:
        scored = score_frame(bars)
        return scored.assign(momentum=scored["momentum"].shift(-1).fillna(0.5))

    found = probe(subject(FEW, score=leaks), points=1, modes=("budget",), kinds=("reversed",))
    told = {column for part, column in parts(found) if part == "tick"}
    assert {"l1.momentum", "l1_consensus", "composite"} <= told
    assert {one.kind for one in found.moved if one.part == "tick"} == {"reversed, budget"}


def test_a_score_that_needs_the_whole_history_is_caught_by_the_live_window() -> None:
    made = subject(score=with_column(lambda bars: bars["close"].expanding().mean()))
    found = probe(made, points=4, modes=(), kinds=("scaled",))
    assert parts(found) == {("window", "M15.leak")}


def test_a_leak_inside_the_calculator_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market_structure, "swings", early_swings)
    found = probe(subject(FEW), points=16, modes=(), kinds=("noise",))
    assert any(part == "score" for part, _ in parts(found))


@pytest.mark.journey
@pytest.mark.parametrize("name", ["ath_price", "low_price"])
def test_a_record_of_the_whole_history_is_caught(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    honest = HistoryWindow.records

    def whole(self: HistoryWindow, timeframe: str, as_of: Any) -> Records:
        found, stream = honest(self, timeframe, as_of), self._streams[timeframe]
        if name == "ath_price":
            return found._replace(high=float(stream.highest[-1]))
        return found._replace(low=float(stream.lowest[-1]))

    monkeypatch.setattr(HistoryWindow, "records", whole)
    found = probe(subject(FEW), points=2, modes=("budget",), kinds=("spike",))
    assert ("tick", name) in parts(found)


def test_hours_that_know_the_next_hour_are_caught() -> None:
    def early(bars: pd.DataFrame, shorter: str, longer: str) -> pd.DataFrame:
        return aggregate(bars, shorter, longer).shift(-1).dropna()

    bars = subject(hours=True)
    frames = {**bars.frames, "H1": early(bars.frames["M15"], "M15", "H1")}
    made = LookaheadSubject(bars.instance, bars.profile, frames, bars.derived, aggregate=early)
    found = probe(made, points=1, modes=(), kinds=("scaled",))
    assert ("bars", "H1.close") in parts(found)


# --- the futures themselves -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_future_keeps_the_past_and_passes_the_door(kind: str) -> None:
    bars = subject(hours=True)
    as_of = (BARS.index[601] + pd.Timedelta("15min")).to_pydatetime()
    rng = np.random.default_rng(1)
    made = futures.world(bars.frames, bars.derived, as_of, kind, rng)
    pd.testing.assert_frame_equal(made["M15"].iloc[:602], BARS.iloc[:602], check_freq=False)
    assert not made["M15"].iloc[602:].equals(BARS.iloc[602:])
    ended = futures.closed(made["H1"], "H1", as_of)
    assert ended == 150
    assert made["H1"].iloc[:ended].equals(bars.frames["H1"].iloc[:ended])
    assert set(HistoryWindow(made).times) == ({"M15"} if kind == "removed" else {"M15", "H1"})


def test_a_history_that_is_too_short_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="BTCUSD: more than"):
        subject(BARS.iloc[:150])


def test_few_moments_are_said_to_be_few() -> None:
    found = probe(subject(FEW), points=1, modes=(), kinds=("removed",))
    told = exhibit(found)
    assert not told.enough
    assert "too few to show anything" in told.says
    assert told.rows == ()


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of bars; little is run before each moment."""
    monkeypatch.setattr(lookahead, "LEAD", 1)
    FEW.to_csv(tmp_path / "bars.csv")
    return str(tmp_path / "bars.csv")


def run(tmp_path: Path, *words: str) -> Result:
    return CliRunner().invoke(checking_commands.lookahead, [*words], obj=tmp_path)


@pytest.mark.journey
def test_the_command_tells_a_table_or_one_document(few: str, tmp_path: Path) -> None:
    words = ("BTCUSD", "--bars", few, "--points", "1")
    told = run(tmp_path, *words, "--json")
    assert told.exit_code == 0, told.output
    document = json.loads(told.stdout)
    assert document["clean"] is True
    assert document["probes"][0]["symbol"] == "BTCUSD"
    assert document["probes"][0]["points"] == 1


@pytest.mark.journey
def test_the_command_ends_with_1_where_something_moved(
    few: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaking = with_column(LEAKS["next open"])
    monkeypatch.setattr("technical_calculator.score_frame", leaking)
    told = run(tmp_path, "BTCUSD", "--bars", few, "--points", "1")
    assert told.exit_code == 1
    assert "M15.leak" in told.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("BTCUSD", "--bars", "store"), "holds no database yet"),
        (("--bars", "store"), "name a symbol"),
        (("BTCUSD", "--profile", "nobody"), "nobody"),
        (("DOGUSD", "--bars", SHIPPED), "DOGUSD"),
    ],
    ids=["no-store", "no-symbol", "no-profile", "unknown-symbol"],
)
def test_a_mistake_is_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    told = run(tmp_path, *words)
    assert told.exit_code == 2
    assert said in told.stderr
    assert len(told.stderr.strip().splitlines()) == 1


# --- outside numbers ------------------------------------------------------------------------------


def beside_the_chart() -> LookaheadSubject:
    """Return the shipped euro with a history of yields and positions."""
    bars = History("EURUSD", {"H1": sample("EURUSD_H1")}, {})
    begin, end = bars.period
    names = ("DGS2", "DGS10", "yield_2y.EUR", *(f"cot.eur.{part}" for part in POSITIONS))
    days = (end - begin).days + 400
    rows = outside_series.rows(names, (begin - timedelta(days=400)).replace(hour=0), days)
    outlook = PointInTimeData(series=tuple(outside_series.stored(rows)))
    return LookaheadSubject.of(bars, Profile(), outlook)


def of_a_company() -> LookaheadSubject:
    """Return shipped bars as those of a share, with the reports of its company."""
    bars = History("ACME", {"H1": sample("EURUSD_H1")}, {})
    spec = guessed_terms(bars).model_copy(update={"asset": "stock", "ticker": "ACME"})
    # A quarter has just ended: it is reported within these weeks.
    later = bars.period[0] - company_reports.midnight(company_reports.end(25))
    reports = company_reports.moved(company_reports.reports(company_reports.grown(1)), later)
    facts = tuple(company_reports.stored(reports))
    profile = Profile(symbols={"ACME": spec}, outside=OutsideSettings(sources=("edgar",)))
    return LookaheadSubject.of(bars, profile, PointInTimeData(facts=facts, begin=bars.period[0]))


def early_reports(patch: pytest.MonkeyPatch) -> None:
    """Let a report be known when its quarter ends."""
    add = CompanyHistory.add

    def early(self: CompanyHistory, rows: Any) -> None:
        add(self, [one._replace(row=one.row._replace(known_at=one.row.ends)) for one in rows])

    patch.setattr(CompanyHistory, "add", early)


def early_numbers(patch: pytest.MonkeyPatch) -> None:
    """Let a number be known when its day begins."""

    def at_once(_: SeriesHistory, one: StoredRow) -> Any:
        return one.row.at

    patch.setattr(SeriesHistory, "_moment", at_once)


@pytest.mark.journey
@pytest.mark.parametrize(
    ("made", "names", "leak"),
    [
        (beside_the_chart, {"macro.rate_gap_change_20", "cot.net_pct"}, early_numbers),
        (of_a_company, {"company.net_margin_pct", "company.pe"}, early_reports),
    ],
)
def test_what_is_known_later_moves_nothing_and_what_is_known_too_early_is_found(
    made: Callable[[], LookaheadSubject],
    names: set[str],
    leak: Callable[[pytest.MonkeyPatch], None],
    scaled: Scale,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = probe(made(), points=scaled(60, 2), kinds=("noise",), modes=("budget",))
    assert found.clean, found.moved[:3]
    assert {f"features.{name}.value" for name in names} <= found.columns["tick"]
    leak(monkeypatch)
    assert not probe(made(), points=examples(4, 2), kinds=("noise",), modes=("budget",)).clean
