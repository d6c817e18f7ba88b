"""`torra replay --journal` runs hosted ticks again to the bit, and names what was altered."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

import agent_framework
import technical_calculator
from agents.contracts import VECTORS, ModelUnavailable
from tests.conftest import Scale
from tests.doubles.scripted import NEVER, Scripted
from tests.worlds import journals, scorers
from tests.worlds.busy_desk import VOICES
from tests.worlds.hands import torra
from tests.worlds.tables_once import Tables, tables_once
from torra.clock import iso
from torra.overlay import Overlay
from torra.providers.rules.provider import RulesProvider
from torra.tick import debate as tick_debate
from torra.tick.degradation import DegradationLevel

STREAM: Final = "host:scorer:BTCUSD"
JOURNAL: Final = ("replay", "--journal")
ROLES: Final = ("technical", "bull_researcher", "bear_researcher", "risk_gate", "chart_scorer")
PROFILES: Final[dict[str, dict[str, Any]]] = {
    "quiet": {"agents": {"influence": "shadow"}},
    "pivotal": {"agents": {"call_policy": "pivotal", "pivotal_sample": 0.5}},
    "full": {"agents": {"mode": "full", "include_news": True}},
    "drawn": {"agents": {"picture": "rendered"}},
    "calm": {"events": {"calendar": "events.csv"}},
    "missing": {"agents": {"picture": "file", "picture_file": "/nowhere/{symbol}_{timeframe}.png"}},
}


QUICK: Final = {"timeout_seconds": 1.0}


def prepared(folder: Path) -> None:
    for name, told in PROFILES.items():
        scorers.profile(folder, name, **told)
    day = "2021-10-{:02d}T12:30:00Z,USD,high,US consumer prices\n"
    rows = "".join(day.format(number) for number in range(1, 32))
    (folder / "home" / "events.csv").write_text(f"time,currency,impact,name\n{rows}")


def overlays(folder: Path) -> dict[str, Overlay]:
    """Return scorers of one home: each answered by another voice, or of another profile."""
    prepared(folder)
    found = {
        name: scorers.overlay(folder, voice(), strict=True, name=name)
        for name, voice in VOICES.items()
    }
    found["moody"] = scorers.overlay(folder, journals.Moody(), strict=True, name="moody")
    found["dead"] = scorers.overlay(
        folder, Scripted(dict.fromkeys(ROLES, ModelUnavailable("down"))), strict=True, name="dead"
    )
    for name in PROFILES:
        found[name] = scorers.overlay(folder, RulesProvider(), profile=name, strict=True, name=name)
    return found


HEADLINES: Final = (
    "Bitcoin falls as regulators warn of a ban",
    {"headline": "Bitcoin ETF sees record inflows", "published": "2021-10-01T10:00:00Z"},
    {"headline": "Miners sell", "summary": "More than they mined.", "source": "a paper"},
    {"headline": "miners SELL", "summary": "Said again, in other words.", "url": "https://a.b/c"},
    {"headline": "Miners Sell", "summary": "In capital letters."},
    "Inflation data surprises; dollar slumps",
)


MINE: Final = {vector: {"score": 0.123456789, "note": "mine"} for vector in VECTORS}
"""What a host's own fallback says."""

FORMS: Final[tuple[Callable[[pd.DataFrame], Any], ...]] = (
    lambda frame: frame,
    lambda frame: frame.reset_index(names="time"),
    lambda frame: list(frame.itertuples(name=None)),
    lambda frame: frame.astype(np.float32).tz_convert("Asia/Tokyo"),
    lambda frame: frame.set_axis(pd.DatetimeIndex(frame.index).as_unit("ns")),
)
"""How a host may have its bars."""


def asked(overlay: Overlay, rng: np.random.Generator, frame: pd.DataFrame, timeframe: str) -> Any:
    """Ask about the newest of these bars, with whatever a host may hand over."""
    own = dict(zip(VECTORS, rng.uniform(-1, 1, 4).tolist(), strict=True))
    extra = {"rsi": float(rng.normal()), "spread": 25.0 * float(rng.random())}
    if rng.random() < 0.5:
        extra |= {"position": float(rng.integers(-1, 2)), "losing_streak": 3.0, "zero": -0.0}
    some = rng.permutation(len(HEADLINES))[: int(rng.integers(1, 5))]
    minutes = {"M15": 15, "H1": 60, "M30": 30}[timeframe]
    late = pd.Timedelta(seconds=float(rng.choice([0.0, 0.25, 70.0, 500.123456])))
    return overlay.deliberate(
        "MYPAIR" if timeframe == "H1" else "BTCUSD",
        timeframe,
        FORMS[int(rng.integers(len(FORMS)))](frame),
        scores=own if rng.random() < 0.6 else None,
        extra=extra if rng.random() < 0.6 else None,
        headlines=[HEADLINES[number] for number in some] if rng.random() < 0.5 else None,
        picture=a_picture(int(rng.integers(2))) if rng.random() < 0.2 else None,
        fallback=(lambda *_: MINE) if rng.random() < 0.3 else None,
        as_of=scorers.closed_at(frame, minutes) + late,
    )


def a_picture(shade: int) -> bytes:
    """Return a PNG of 320 x 240."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    noise = np.random.default_rng(shade).integers(0, 256, (240, 320), dtype=np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in noise)
    head = struct.pack(">IIBBBBB", 320, 240, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def handed_over(rng: np.random.Generator, whole: pd.DataFrame, end: int) -> pd.DataFrame:
    """Return bars up to one: of any number, some corrected since, some missing."""
    frame = whole.iloc[max(0, end - int(rng.integers(300, 1_500))) : end].copy()
    if rng.random() < 0.4:  # the broker corrects a bar, near or old
        at = int(rng.integers(len(frame)))
        frame.loc[frame.index[at], "high"] = float(frame["high"].iloc[at]) * 1.002
        frame.loc[frame.index[at], "volume"] = -0.0
    if rng.random() < 0.3:  # and withdraws others
        frame = frame.drop(frame.index[rng.integers(1, len(frame) - 1, 2)])
    return frame


@pytest.fixture(autouse=True, scope="module")
def tables() -> Iterator[Tables]:
    """Scores of the same bars, which nearly every test asks for, worked out once."""
    with tables_once(technical_calculator) as found:
        yield found


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory, scaled: Callable[..., int]) -> Path:
    """The folder of a home on which many scorers asked, over several days of bars."""
    folder = tmp_path_factory.mktemp("days")
    rng = np.random.default_rng(11)
    found = overlays(folder)
    quarter, hour = scorers.bars(6_000), scorers.bars(3_000, name="EURUSD_H1")
    steps = scaled(60, least=2)
    for step in range(steps):
        for name, overlay in found.items():
            frame = handed_over(rng, quarter, 1_600 + step * 5 + int(rng.integers(5)))
            asked(overlay, rng, frame, "M15")
            # the same bar again, another question
            if rng.random() < 0.2 or (step, name) == (1, "rules"):
                asked(overlay, rng, frame, "M15")
            if name == "rules":
                frame = handed_over(rng, hour, 1_600 + step)
                asked(overlay, rng, frame, "H1")
    # in any order: the oldest bar at last
    asked(found["rules"], rng, quarter.iloc[900:1_500], "M15")
    thirty = quarter.resample("30min").agg(
        {"open": "first", "high": "max", "low": "min", "close": "last", "volume": "sum"}
    )
    asked(found["rules"], rng, thirty.dropna(), "M30")
    for overlay in found.values():
        overlay.close()
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a home with seven ticks of one stream, each of its own range of bars."""
    folder = tmp_path_factory.mktemp("plain")
    prepared(folder)
    overlay = scorers.overlay(folder, Scripted(), strict=True)
    for number in range(6):
        scorers.asked(
            overlay,
            scorers.bars(900 + number, start=number * 2),
            scores=scorers.L1,
            extra={"my_rsi": 61.2 + number, "spread": 12.0},
            headlines=["Bitcoin falls as regulators warn of a ban"],
        )
    scorers.asked(overlay, scorers.bars(1_200))
    overlay.close()
    return folder


@pytest.fixture
def home(plain: Path, tmp_path: Path) -> Path:
    """A copy of it, to be altered."""
    shutil.copytree(plain, tmp_path / "copy")
    return tmp_path / "copy"


def checked(folder: Path, *words: str, code: int = 0) -> dict[str, Any]:
    told = torra(folder / "home", *JOURNAL, *words, "--json")
    assert told.exit_code == code, told.output
    return {one["instance"]: one for one in json.loads(told.stdout)["instances"]}


def sql(folder: Path, text: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(folder / "home" / "torra.db")) as db, db:
        return db.execute(text, values).fetchall()


def change(folder: Path, text: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "home" / "torra.db")) as db, db:
        assert db.execute(text, values).rowcount > 0, text


def key(folder: Path, number: int = 3) -> str:
    text = "SELECT torra_key FROM chains ORDER BY sentiment_id LIMIT 1 OFFSET ?"
    found: str = sql(folder, text, number)[0][0]
    return found


# --- all the same ---------------------------------------------------------------------------------


@pytest.mark.journey
def test_every_hosted_tick_is_the_same_to_the_bit(
    days: Path, tables: Tables, record_property: Callable[[str, object], None]
) -> None:
    tables.known.clear()
    found = checked(days)
    assert {name.split(":")[1] for name in found} >= {*VOICES, *PROFILES, "moody", "dead"}
    for one in found.values():
        assert one["different"] == 0, one["first_difference"]
        assert set(one["not_run_again"]) <= {"put_aside"}
        assert one["ticks"] == one["same"] + sum(one["not_run_again"].values())
    same = sum(one["same"] for one in found.values())
    assert same == sql(days, "SELECT count(*) FROM journal")[0][0], "every tick is accounted for"
    record_property("seen", f"{same} hosted ticks the same")


@pytest.mark.journey
def test_the_table_tells_streams_and_what_was_put_aside(plain: Path, days: Path) -> None:
    assert not (plain / "home" / "desk.json").exists()
    told = torra(plain / "home", *JOURNAL)
    assert told.exit_code == 0 and f"{STREAM} M15: 7 ticks" in told.stdout
    assert told.stdout.endswith("7 ticks ran again, every one the same to the bit.\n")
    told = torra(days / "home", *JOURNAL, "host:rules:BTCUSD")
    assert "not run again, a newer answer about their bar took their place" in told.stdout


def test_every_answer_that_was_put_aside_is_counted(tmp_path: Path) -> None:
    """Also one without agents, of which nothing but its number is kept."""
    overlay = scorers.overlay(tmp_path, Scripted(), strict=True)
    scorers.asked(overlay, scores=scorers.L1)
    scorers.answered_by(overlay, Scripted(dict.fromkeys(ROLES, ModelUnavailable("down"))))
    scorers.asked(overlay, scores=scorers.L1, extra={"rsi": 1.0})
    for _ in range(2):
        scorers.asked(overlay, scores=scorers.L1, extra={"rsi": 2.0})
    one = checked(tmp_path)[STREAM]
    assert (one["ticks"], one["same"], one["not_run_again"]) == (4, 1, {"put_aside": 3})


def test_agents_that_hung_hang_again(tmp_path: Path, scaled: Scale) -> None:
    silent = (ROLES[:1], ROLES[1:2], ROLES) if scaled.whole else (ROLES[:1], ROLES)
    for number, roles in enumerate(silent):
        overlay = scorers.overlay(
            tmp_path, Scripted(dict.fromkeys(roles, NEVER)), agents=QUICK, strict=True
        )
        scorers.asked(overlay, scorers.bars(400 + number), scores=scorers.L1)
    assert sql(tmp_path, "SELECT 1 FROM calls WHERE status = 'timeout'")
    one = checked(tmp_path)[STREAM]
    assert one["same"] == one["ticks"] == len(silent), one["first_difference"]


@pytest.mark.journey
def test_a_desk_and_a_host_on_one_home_are_both_checked(tmp_path: Path) -> None:
    journals.live(tmp_path / "home", 6, Scripted(), plain=True).close()
    named = [{"symbol": name, "feed": "store"} for name in ("BTCUSD", "EURUSD")]
    (tmp_path / "home" / "desk.json").write_text(json.dumps({"instances": named}))
    overlay = scorers.overlay(tmp_path, Scripted(), strict=True)
    scorers.asked(overlay, scores=scorers.L1)
    found = checked(tmp_path)
    assert set(found) == {"BTCUSD", "EURUSD", STREAM}
    assert {one["different"] for one in found.values()} == {0}
    assert set(checked(tmp_path, "BTCUSD")) == {"BTCUSD"}, "the instance of that very name"


def test_a_tick_that_nobody_could_pay_and_one_without_threads_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(tmp_path)
    overlay = scorers.overlay(tmp_path, Scripted(), strict=True)
    scorers.asked(overlay, scorers.bars(400), scores=scorers.L1)
    overlay._opened.account = Unpaid()  # type: ignore[assignment]
    scorers.asked(overlay, scorers.bars(401), scores=scorers.L1)
    overlay._opened.account = None
    with monkeypatch.context() as patch:
        patch.setattr(agent_framework, "too_many_abandoned", lambda: True)
        scorers.asked(overlay, scorers.bars(402), scores=scorers.L1)
    flags = "SELECT json_extract(agent_deliberation, '$.flags') FROM sentiment ORDER BY id"
    first = [json.loads(row[0])[0] for row in sql(tmp_path, flags)]
    assert first[1:] == ["budget", "threads_exhausted"]
    one = checked(tmp_path)[STREAM]
    assert one["same"] == 3, one["first_difference"]


class Unpaid:
    """An account that has no money left."""

    def degradation_level(
        self, settings: Any, agents: Any = None, *, reserved_usd: float = 0.0
    ) -> Any:
        del agents, reserved_usd
        return DegradationLevel(settings, "L1_ONLY", calls_models=False)


# --- what was altered is named --------------------------------------------------------------------


def the_one(folder: Path, cause: str, number: int = 1, *words: str) -> dict[str, Any]:
    """Return the first difference of the stream, which has so many, for one cause alone."""
    (one,) = checked(folder, *words, code=1).values()
    assert (one["causes"], one["different"]) == ({cause: number}, number), one
    first: dict[str, Any] = one["first_difference"]
    return first


def around() -> tuple[str, ...]:
    """Return the words for the closes of the tick that is altered and of its two neighbours."""
    first, last = (iso(scorers.closed_at(scorers.bars(1, start=at))) for at in (905, 911))
    return "--from", first, "--to", last


@pytest.mark.parametrize(
    ("offset", "number", "first"),
    [(None, 4, None), (1, 2, 0)],
    ids=["of a tick", "seen by the first tick and by the last, which saw more"],
)
def test_an_altered_bar_differs_at_those_who_saw_it(
    home: Path, offset: int | None, number: int, first: int | None
) -> None:
    """Also one that is older than what the scores are made of."""
    time = key(home).split("|")[2]
    if offset is not None:
        text = f"SELECT bar_time FROM bars ORDER BY bar_time LIMIT 1 OFFSET {offset}"
        ((time,),) = sql(home, text)
    change(home, "UPDATE bars SET close = close + 0.5 WHERE bar_time = ?", time)
    told = the_one(home, "bar", number)
    assert told["key"] == (key(home) if first is None else key(home, first))
    assert told["field"] == "bars"


def altered(place: str) -> str:
    """Return the statement that alters a place of a record."""
    return f"UPDATE journal SET record = json_set(record, '$.{place}', json(?)) WHERE torra_key = ?"


CHART = "UPDATE hosted SET chart = json_set(chart, '$.momentum.score', ?) WHERE torra_key = ?"


@pytest.mark.journey
@pytest.mark.parametrize(
    ("text", "value", "cause"),
    [
        *(
            (altered(place), value, "question")
            for place, value in (
                ("hosted.extra.my_rsi", 12.5),
                ("hosted.extra.my_rsi", 64.20000001),
                ("hosted.extra.spread", 900.0),
                ("hosted.extra.added", 1.0),
                ("l1.momentum", 0.5),
                ("hosted.own_scores", False),
                ("hosted.headlines", []),
                ("hosted.asked", "0"),
            )
        ),
        *(
            (altered(place), value, "unknown")
            for place, value in (
                ("hosted.moment", "2021-12-30T00:00:00Z"),
                ("hosted.bars", 5),
                ("hosted.handed.hash", "0"),
                ("ath_price", 1.0),
                ("records_since", "2020-01-01T00:00:00Z"),
                ("memory.state_duration", 77),
                ("consensus", 0.5),
                ("sentence", "x"),
            )
        ),
        (altered("bars.hash"), "0", "bar"),
        ("UPDATE chains SET composite = ? WHERE torra_key = ?", 0.5, "unknown"),
        ("UPDATE chains SET l1 = ? WHERE torra_key = ?", {"momentum": 0.5}, "unknown"),
        ("UPDATE sentiment SET momentum = ? WHERE torra_key = ?", 0.9, "unknown"),
        (CHART, 0.9, "unknown"),
        ("UPDATE calls SET reply = ? WHERE torra_key = ? AND role = 'technical'", {}, "unknown"),
    ],
)
def test_what_was_altered_is_named(home: Path, text: str, value: object, cause: str) -> None:
    change(home, text, json.dumps(value), key(home))
    assert the_one(home, cause, 1, *around())["key"] == key(home)


# --- what is not run again ------------------------------------------------------------------------


def test_a_fallback_that_asked_a_model_by_itself_is_left_out(tmp_path: Path) -> None:
    provider = Scripted(dict.fromkeys(ROLES[:-1], ModelUnavailable("down")))
    overlay = scorers.overlay(tmp_path, provider, strict=True)
    scorers.asked(overlay, scores=scorers.L1, fallback=tick_debate.score_chart)
    scorers.asked(overlay, scorers.bars(401), scores=scorers.L1)
    one = checked(tmp_path)[STREAM]
    assert (one["same"], one["not_run_again"]) == (1, {"own_scorer": 1})
