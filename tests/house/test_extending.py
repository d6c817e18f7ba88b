"""docs/extending.md builds one of each: what the page shows is installed here, and works.

The page's code is a package of its own, `torra-acme`, put onto the path as pip would. What it may
not do is tested with broken ones beside it.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import textwrap
import threading
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agents import features
from agents.contracts import ModelUnavailable, Request
from agents.registry import AGENTS
from instance_database import open_home
from scoring_rubric import build_interpretive_prompt
from tests.doubles.news_server import NewsServer, Said
from tests.doubles.scripted import FULL_FEATURES, Scripted, context, debate, settings
from tests.evidence.test_feature_bundle import bundle
from tests.worlds.hands import torra
from tests.worlds.homes import profile_file
from tests.worlds.news_desks import NewsDesk
from tests.worlds.orders import Decided
from torra.bridges.protocol import Health, Order, Recall
from torra.config import ROOT, NewsSettings, Profile, load_desk
from torra.errors import BridgeUnavailable
from torra.evidence import feature_bundle
from torra.evidence.news_digest import NewsStatus, NewsSubject
from torra.feeds import registry as feeds
from torra.news.source import open_sources
from torra.plugins import loading
from torra.providers.prices import PriceList
from torra.providers.registry import GuardedProvider
from torra.tick import record as tick_record
from torra.tick.degradation import tick_worst_case
from torra.time_limit import TimeLimit
from torra.trading import channels
from torra.words.deny_reasons import DenyReason

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {
    found[1]: code
    for kind, code in BLOCKS
    if kind in ("python", "toml") and (found := re.match(r"# ([\w/.]+)\n", code))
}
MODULES = [name for name in FILES if name.startswith("acme_")]
EXAMPLES = [json.loads(line) for kind, code in BLOCKS if kind == "json" for line in [code]]
NOW = datetime.now(UTC)
LONG = timedelta(days=1)
"""Longer than a night of tests: it comes to this file hours after it was read."""

MOST_LINES = 60


def install(site: Path, package: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Put a distribution's facts beside its modules, as pip does."""
    facts = site / f"{package.replace('-', '_')}-1.2.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2.0\n")
    lines = (
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
        for group, points in groups.items()
    )
    (facts / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of the page, installed."""
    folder = tmp_path / "site"
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    install(folder, project["name"], project["entry-points"])
    for name in MODULES:
        (folder / name).write_text(FILES[name], encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    loading._version.cache_clear()
    yield folder
    for name in [*MODULES, *(path.name for path in folder.glob("*.py"))]:
        sys.modules.pop(name.removesuffix(".py"), None)
    loading._version.cache_clear()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / "profiles").mkdir(parents=True)
    return folder


def desk(home: Path, document: Mapping[str, Any]) -> None:
    (home / "desk.json").write_text(json.dumps(document), encoding="utf-8")


def shown(kind: str) -> dict[str, Any]:
    """Return the settings of the page that name a plug-in of this kind."""
    return next(row for row in EXAMPLES if f"torra-acme:{kind}" in json.dumps(row))


def test_the_page_shows_each_family_in_less_than_sixty_lines() -> None:
    packed = tomllib.loads(FILES["pyproject.toml"])["tool"]["setuptools"]["py-modules"]
    assert sorted(f"{name}.py" for name in packed) == sorted(MODULES)
    families = ("bridge", "feed", "news", "pager", "provider")
    assert sorted(MODULES) == [f"acme_{name}.py" for name in families]
    for name, code in FILES.items():
        assert len(code.splitlines()) < MOST_LINES, name
    groups = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]
    kinds = ("feeds", "bridges", "providers", "news", "notices")
    assert set(groups) == {f"torra.{kind}" for kind in kinds}


# --- a feed ---------------------------------------------------------------------------------------


@pytest.fixture
def bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bars"
    folder.mkdir()
    (folder / "BTCUSD_M15.csv").write_text(
        (ROOT / "sample_data" / "BTCUSD_M15.csv").read_text(encoding="utf-8"), encoding="utf-8"
    )
    monkeypatch.setenv("ACME_BARS", str(folder))
    return folder


MOMENT = ("tick", "BTCUSD", "M15", "--as-of", "2021-11-08T03:00:00Z", "--json")


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The records of the ticks that run."""
    found: list[dict[str, Any]] = []
    real = tick_record.build

    def build(*told: Any) -> dict[str, Any]:
        found.append(real(*told))
        return found[-1]

    monkeypatch.setattr(tick_record, "build", build)
    return found


@pytest.mark.journey
def test_a_tick_runs_on_the_feed_of_the_page(
    site: Path, home: Path, bars: Path, records: list[dict[str, Any]]
) -> None:
    desk(home, shown("ticks"))
    assert torra(home, *MOMENT).exit_code == 0
    desk(home, {"instances": [{"symbol": "BTCUSD", "timeframes": ["M15"]}]})
    assert torra(home, *MOMENT).exit_code == 0
    told, plain = records
    assert told["versions"] == {**plain["versions"], "torra-acme": "1.2.0"}, "in each record"
    assert told["l1"] == plain["l1"], "the sample's own bars"


def test_bars_of_a_plug_in_pass_the_door(site: Path, home: Path, bars: Path) -> None:
    path = bars / "BTCUSD_M15.csv"
    rows = path.read_text(encoding="utf-8").splitlines()
    at = next(n for n, row in enumerate(rows) if row.startswith("2021-11-08T02:45"))
    rows[at] = re.sub(r",[^,]+,", ",nan,", rows[at], count=1)
    path.write_text("\n".join(rows), encoding="utf-8")
    desk(home, shown("ticks"))
    assert "nan" in torra(home, *MOMENT).stderr


def test_a_feed_that_hangs_has_its_time_and_no_longer(
    site: Path, home: Path, bars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "SHARE_SECONDS", 0.2)
    let_go = threading.Event()
    acme = importlib.import_module("acme_feed")
    monkeypatch.setattr(acme.AcmeFeed, "bars", lambda *_: let_go.wait(30))
    desk(home, shown("ticks"))
    result = torra(home, *MOMENT)
    let_go.set()
    assert result.exit_code != 0 and "no answer within 0.2 s" in result.stderr


# --- a bridge -------------------------------------------------------------------------------------

TERMS = {
    "broker_symbol": "EURUSD", "digits": 5, "tick_size": 0.00001, "tick_value": 1.0,
    "contract_size": 100_000.0, "lot_min": 0.01, "lot_step": 0.01, "lot_max": 5.0,
    "stops_level": 10, "trade_mode": "full", "currency": "USD", "quote": [1.10000, 1.10010],
}  # fmt: skip


@pytest.fixture
def broker(site: Path, home: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "acme"
    for name in ("orders", "answers"):
        (folder / name).mkdir(parents=True)
    facts = {"account": 1001, "real_account": False}
    (folder / "broker.json").write_text(
        json.dumps({"account": facts, "symbols": {"EURUSD": TERMS}}), encoding="utf-8"
    )
    document = shown("folder")
    document["channels"]["main"]["folder"] = str(folder)
    desk(home, document)
    return folder


def tell(broker: Path, **changes: Any) -> None:
    told = json.loads((broker / "broker.json").read_text(encoding="utf-8"))
    for name, value in changes.items():
        if name == "account":
            told["account"].update(value)
        elif value is None:
            told["symbols"] = {}
        else:
            told["symbols"]["EURUSD"].update({name: value})
    (broker / "broker.json").write_text(json.dumps(told), encoding="utf-8")


def an_order(**changes: Any) -> Order:
    order = Decided(
        sid="T0001", seq=1, kind="open", instance="EURUSD", symbol="EURUSD",
        broker_symbol="EURUSD", timeframe="H1", bar_time=NOW, side="BUY", lots=0.10, entry=1.10010,
        stop=1.09000, target=1.12000, created=NOW - timedelta(seconds=1),
        expires=NOW + LONG, magic=7, max_spread_pts=30, max_dev_pts=50, digits=5,
    )  # fmt: skip
    return replace(order, **changes)


@pytest.fixture
def bridge(home: Path, broker: Path) -> Iterator[Any]:
    (found,) = channels.open_bridges(home, load_desk(home), {}).values()
    with closing(found):
        yield found


def test_an_order_goes_through_the_bridge_of_the_page(bridge: Any, broker: Path) -> None:
    assert bridge.name == "torra-acme:folder main" and bridge.health().ok
    for _ in range(2):
        bridge.submit(an_order())
    (path,) = (broker / "orders").iterdir()
    assert json.loads(path.read_text(encoding="utf-8"))["lots"] == 0.10
    answer = {"status": "FILLED", "at": NOW.isoformat(), "price": 1.1, "volume": 0.1, "ticket": "9"}
    (broker / "answers" / "T0001.json").write_text(json.dumps(answer), encoding="utf-8")
    (report,) = bridge.poll()
    assert (report.sid, report.status, report.ticket) == ("T0001", "FILLED", "9")
    assert bridge.recall("T0001", 1) is Recall.TAKEN
    bridge.settle(report)
    assert list(bridge.poll()) == []


@pytest.mark.parametrize(
    ("order", "told", "reason"),
    [
        ({"lots": 50.0}, {}, "volume"),
        ({"lots": 0.015}, {}, "volume"),
        ({}, {"quote": [1.10000, 1.20000]}, "spread"),
        ({"entry": 1.2}, {}, "deviation"),
        ({"stop": 1.2}, {}, "side"),
        ({"stop": 1.09995}, {}, "stops"),
        ({}, {"trade_mode": "short_only"}, "symbol"),
        ({"expires": NOW - timedelta(seconds=1)}, {}, "stale"),
        ({}, {"account": {"real_account": True}}, "live"),
        ({}, {"account": {"real_account": None}}, "live"),
    ],
)
def test_the_guards_stand_outside_a_plug_in(
    bridge: Any, broker: Path, order: dict[str, Any], told: dict[str, Any], reason: str
) -> None:
    """It is never shown an order that a guard refuses; the refusal is told until it is booked."""
    tell(broker, **told)
    for _ in range(2):
        bridge.submit(an_order(**order))
    (report,) = bridge.poll()
    assert (report.status, report.reason) == ("REJECTED", reason)
    assert list((broker / "orders").iterdir()) == []
    assert bridge.recall("T0001", 1) is Recall.NEVER_SENT
    bridge.settle(report)
    assert list(bridge.poll()) == []


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"account": {"account": 2002}}, "on account 2002, not 1001"),
        ({"symbols": None}, "trading conditions of EURUSD"),
    ],
)
def test_an_order_waits_for_what_a_plug_in_has_not_told(
    bridge: Any, broker: Path, told: dict[str, Any], said: str
) -> None:
    tell(broker, **told)
    with pytest.raises(BridgeUnavailable, match=said):
        bridge.submit(an_order())
    assert list((broker / "orders").iterdir()) == [] and list(bridge.poll()) == []


def test_a_halt_stops_a_plug_in_too(bridge: Any, broker: Path, home: Path) -> None:
    (home / "control").mkdir()
    (home / "control" / "HALT").touch()
    assert bridge.health().deny is DenyReason.TRADING_HALTED
    with pytest.raises(BridgeUnavailable, match="HALT is there"):
        bridge.submit(an_order())


def test_a_close_needs_no_quote(bridge: Any, broker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acme = importlib.import_module("acme_bridge")
    old = {"EURUSD": replace(bridge.terms()["EURUSD"], quote=None)}
    monkeypatch.setattr(acme.AcmeBridge, "terms", lambda _: old)
    with pytest.raises(BridgeUnavailable, match="no quote of EURUSD"):
        bridge.submit(an_order())
    bridge.submit(an_order(kind="close", side="SELL"))
    assert [report.reason for report in bridge.poll()] == ["no_position"], "it was judged"


@pytest.mark.parametrize("how", ["raises", "hangs", "answers something else"])
def test_a_plug_in_that_breaks_holds_nobody_up(
    bridge: Any, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, ended = threading.Event(), list[str]()

    def odd(*_: Any) -> Any:
        if how == "raises":
            raise RuntimeError("no")
        if how == "hangs":
            let_go.wait(30)
            ended.append(how)
        return object()

    acme = importlib.import_module("acme_bridge")
    for name in ("submit", "recall", "poll", "settle", "health", "books", "terms", "heartbeat"):
        monkeypatch.setattr(acme.AcmeBridge, name, odd)
    monkeypatch.setattr(bridge, "_limit", TimeLimit("acme", 0.05))
    assert not bridge.health().ok and bridge.books() is None and dict(bridge.terms()) == {}
    assert list(bridge.poll()) == []
    bridge.heartbeat("ACTIVE")
    for call in (lambda: bridge.submit(an_order()), lambda: bridge.recall("T0001", 1)):
        with pytest.raises(BridgeUnavailable):
            call()
    assert isinstance(bridge.health(), Health)
    assert ended == [], "nobody waited for it"
    let_go.set()


# --- a service of notices -------------------------------------------------------------------------


@pytest.fixture
def pager(site: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program of a pager, which writes down what it is told; its notices are in a file."""
    told, path = tmp_path / "paged", tmp_path / "pager"
    path.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"open({str(told)!r}, 'a').write(sys.argv[1] + ' ' + sys.stdin.read())\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    monkeypatch.setenv("ACME_PAGER", str(path))
    monkeypatch.delenv("TORRA_NOTICE_URLS", raising=False)
    desk(home, shown("pager"))
    return told


def test_a_notice_goes_through_the_service_of_the_page(pager: Path, home: Path) -> None:
    result = torra(home, "notices", "test")
    assert (result.exit_code, result.output) == (0, "torra-acme:pager 1: taken\n")
    assert pager.read_text(encoding="utf-8").startswith("note Torra: a test\n")
    found = [line for line in torra(home, "doctor").output.splitlines() if " notices " in line]
    assert len(found) == 1 and "sent to torra-acme:pager 1" in found[0]


def test_a_service_that_breaks_is_told_by_the_type_of_its_error(
    pager: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_PAGER", "/nowhere/secret")
    result = torra(home, "notices", "test")
    assert result.exit_code == 1
    assert result.output == "torra-acme:pager 1: failed: FileNotFoundError\n"


def test_a_service_that_cannot_be_used_is_one_line_with_the_remedy(
    pager: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACME_PAGER")
    result = torra(home, "notices", "test")
    assert result.exit_code == 2 and "set ACME_PAGER" in result.stderr
    desk(home, {"notices": {"services": ["torra-acme:pager"]}})
    result = torra(home, "notices", "test")
    assert result.exit_code == 2 and 'add "torra-acme" to its plugins' in result.stderr
    desk(home, {"notices": {"services": ["pigeon"]}})
    result = torra(home, "notices", "test")
    assert result.exit_code == 2 and "PACKAGE:NAME of a plug-in" in result.stderr
    acme = importlib.import_module("acme_pager")
    desk(home, shown("pager"))
    for odd, said in ((7, "no list of services"), ([object()], "has no send")):
        monkeypatch.setattr(acme, "open_services", lambda _, odd=odd: odd)
        result = torra(home, "notices", "test")
        assert result.exit_code == 2 and said in result.stderr


# --- a provider -----------------------------------------------------------------------------------

ANSWER = """\
#!{python}
import json, sys
role = sys.argv[1]
assert "BTCUSD" in sys.stdin.read()
reply = {{"symbol": "BTCUSD", "confidence": "high", "evidence": []}}
if role == "risk_gate":
    reply |= {{"multiplier": 1.0, "veto": False, "reason_code": "NONE", "reasoning": "As asked."}}
else:
    vectors = ("price_action", "key_levels", "momentum", "structure")
    reply |= {{"adjustments": dict.fromkeys(vectors, 0.05), "flags": []}}
    reply |= {{"abstained": False, "abstain_reason": "", "falsifiers": [], "rebuttals": []}}
    reply |= {{"claim": "As asked.", "points_for": [], "points_against": []}}
print(json.dumps(reply))
"""


@pytest.fixture
def program(site: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "answers"
    path.write_text(ANSWER.format(python=sys.executable), encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("ACME_PROGRAM", str(path))
    desk(home, {"plugins": ["torra-acme"], "instances": [{"symbol": "BTCUSD", "profile": "mine"}]})
    profile = shown("program")
    profile["agents"]["timeout_seconds"] = 60.0
    profile_file(home, profile, "mine")
    return path


def test_the_agents_ask_the_provider_of_the_page(
    program: Path, home: Path, records: list[dict[str, Any]]
) -> None:
    prices = next(row for row in EXAMPLES if "torra-acme:program:quick" in row)
    (home / "prices.json").write_text(json.dumps(prices), encoding="utf-8")
    assert torra(home, *MOMENT).exit_code == 0
    record = records[-1]
    assert record["provider"] == "torra-acme:program"
    assert record["source_type"] == "AGENT_BUDGET" and record["calls"] == 4
    assert record["adjustments"]["momentum"] > 0.0
    assert record["versions"]["torra-acme"] == "1.2.0"


def test_a_plug_in_without_a_price_is_under_the_ceiling(program: Path, home: Path) -> None:
    """Nobody knows what it costs: at the dearest listed price a tick does not fit under 2 USD."""
    told = json.loads(torra(home, *MOMENT).stdout)
    assert (told["source_type"], told["calls"]) == ("L1_ONLY", 0)
    agents = Profile.model_validate(shown("program")).agents
    assert tick_worst_case(PriceList(), agents, lambda _: False) > agents.max_api_cost_per_hour


def test_a_plug_in_cannot_talk_its_cost_down(
    program: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its calls stay booked at the worst case of the user's prices, whatever it reports."""
    acme = importlib.import_module("acme_provider")
    asked = acme.AcmeProvider._ask

    def cheap(self: Any, request: Request) -> Any:
        return replace(asked(self, request), cost_usd=1e-9, input_tokens=1, output_tokens=1)

    monkeypatch.setattr(acme.AcmeProvider, "_ask", cheap)
    dear = {f"torra-acme:program:{tier}": {"input": 5, "output": 5} for tier in ("quick", "deep")}
    (home / "prices.json").write_text(json.dumps(dear), encoding="utf-8")
    told = json.loads(torra(home, *MOMENT).stdout)
    assert told["calls"] == 4
    spent = json.loads(torra(home, "cost", "--json").stdout)["last_hour"]["usd"]
    agents = Profile.model_validate(shown("program")).agents
    worst = tick_worst_case(PriceList.read(home / "prices.json"), agents, lambda _: False)
    assert 0.25 * worst < spent <= worst


@pytest.mark.parametrize("how", ["raises", "no future"])
def test_a_provider_that_breaks_is_an_agent_that_failed(how: str) -> None:
    class Broken:
        def submit(self, request: Request) -> Any:
            if how == "raises":
                raise RuntimeError("a key: k" + "e" * 40)
            return "an answer"

        def close(self) -> None:
            raise RuntimeError("no")

    provider = GuardedProvider(Broken(), "torra-acme:broken")
    future: Future[Any] = provider.submit(None)
    error = future.exception()
    assert isinstance(error, ModelUnavailable) and error.billed, "nobody knows"
    assert "eeee" not in str(error)
    provider.close()


# --- a news source --------------------------------------------------------------------------------


def source(home: Path, address: str) -> Any:
    desk(home, {"plugins": ["torra-acme"], "instances": [{"symbol": "BTCUSD"}]})
    asked = NewsSettings.model_validate(shown("jsonfeed")["news"])
    (found,) = open_sources(asked, {"ACME_NEWS": address}, home).vendors.values()
    return found


def test_headlines_come_from_the_source_of_the_page(site: Path, home: Path) -> None:
    rows = [
        {"title": "Gold rallies", "date_published": NOW.isoformat(), "url": "https://a.test/1"},
        {"title": "", "date_published": NOW.isoformat()},
        {"title": "No time", "date_published": "yesterday"},
    ]
    with NewsServer(Said(json.dumps({"items": rows}).encode())) as server:
        found = source(home, server.url)
        assert found.topics(NewsSubject("BTCUSD")) == ("all",) and found.every("all") == 300.0
        answer = found.fetch("all", NOW, 5.0)
    (item,) = answer.items
    assert (item.headline, item.source) == ("Gold rallies", "torra-acme:jsonfeed")
    assert answer.dropped == 2


@pytest.mark.parametrize(
    ("rows", "status"),
    [([], NewsStatus.EMPTY), ("text", NewsStatus.BROKEN), (RuntimeError("k"), NewsStatus.BROKEN)],
)
def test_a_source_that_breaks_is_an_answer_that_says_so(
    site: Path, home: Path, rows: Any, status: NewsStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = source(home, "http://127.0.0.1:1/")

    def fetch(*_: Any) -> Any:
        if isinstance(rows, Exception):
            raise rows
        return rows

    monkeypatch.setattr(importlib.import_module("acme_news").AcmeNews, "fetch", fetch)
    assert found.fetch("all", NOW, 5.0).status is status


def test_a_source_that_hangs_has_its_time_and_no_longer(
    site: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, let_go = source(home, "http://127.0.0.1:1/"), threading.Event()
    acme = importlib.import_module("acme_news").AcmeNews
    monkeypatch.setattr(acme, "fetch", lambda *_: let_go.wait(30))
    desk = NewsDesk({"acme": found}, fetch_seconds=0.1)
    for _ in range(2):
        assert desk.later(3600).collector.status()[0].status is NewsStatus.UNREACHABLE
    let_go.set()


# --- what no plug-in may --------------------------------------------------------------------------

ALLOWED = {"plugins": ["torra-acme"]}
BTC = {"symbol": "BTCUSD", "timeframes": ["M15"]}


@pytest.mark.journey
@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"instances": [{**BTC, "feed": "torra-acme:ticks"}]}, 'add "torra-acme" to its plugins'),
        ({**ALLOWED, "instances": [{**BTC, "feed": "torra-acme:none"}]}, "torra-acme:ticks"),
        ({"plugins": ["nobody"], "instances": [{**BTC, "feed": "nobody:x"}]}, "is not installed"),
        ({**ALLOWED, "instances": [{**BTC, "feed": "tikcs"}]}, "'sample'"),
        ({**ALLOWED, "instances": [{**BTC, "feed": "store:"}]}, "'sample'"),
        (
            {**ALLOWED, "instances": [{**BTC, "feed": "store", "bridge": "torra-acme:folder"}]},
            "channels.main",
        ),
    ],
)
def test_what_is_not_allowed_or_not_there_is_one_line(
    site: Path, home: Path, document: dict[str, Any], said: str
) -> None:
    desk(home, document)
    result = torra(home, *MOMENT)
    assert result.exit_code == 2 and result.stdout == ""
    assert said in result.stderr and "Traceback" not in result.stderr
    assert "acme_feed" not in sys.modules, "nothing was loaded"


@pytest.mark.journey
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise RuntimeError('broken')", "cannot be loaded: RuntimeError: broken"),
        ("open_feed = 7", "is no callable but int"),
        ("def open_feed(place): return object()", "is no feed: it has no bars and no period"),
    ],
)
def test_a_plug_in_that_is_none_is_one_line(
    site: Path, home: Path, bars: Path, code: str, said: str
) -> None:
    (site / "acme_feed.py").write_text(code, encoding="utf-8")
    desk(home, shown("ticks"))
    result = torra(home, *MOMENT)
    assert result.exit_code == 2 and said in result.stderr


def test_no_package_takes_a_built_in_name(site: Path, home: Path) -> None:
    """One that calls itself store is reached as thief:store only, and not by allowing it."""
    install(
        site, "thief", {"torra.feeds": {"store": "thief:open_feed", "sample": "thief:open_feed"}}
    )
    (site / "thief.py").write_text("raise SystemExit('loaded')", encoding="utf-8")
    desk(home, {"plugins": ["thief"], "instances": [BTC, {**BTC, "name": "B", "feed": "store"}]})
    assert torra(home, *MOMENT).exit_code == 0
    assert "thief" not in sys.modules


def test_a_package_is_known_by_any_spelling(site: Path) -> None:
    assert loading.canonical("Torra_Acme") == loading.canonical("torra.acme") == "torra-acme"
    assert callable(loading.load("feeds", "torra-acme:ticks", ["Torra_ACME"]))


def test_a_profile_cannot_allow_a_package(home: Path) -> None:
    """Profiles are what pages edit; which packages may run stands in desk.json alone."""
    assert "plugins" not in Profile.model_fields
    path = home / "profiles" / "bad.json"
    path.write_text('{"plugins": ["torra-acme"]}', encoding="utf-8")
    result = torra(home, "profile", "check", "bad")
    assert result.exit_code != 0 and "plugins" in result.stdout + result.stderr
    pages = (ROOT / "torra" / "dashboard").rglob("*.py")
    writes = [path for path in pages if re.search(r"home import [^\n]*\bDESK\b", path.read_text())]
    assert writes == [], "no page knows where that file is"


def test_the_doctor_lists_what_is_allowed(site: Path, home: Path) -> None:
    desk(home, {"plugins": ["torra-acme", "nobody"], "instances": [BTC]})
    text = torra(home, "doctor").stdout
    assert (
        "torra-acme 1.2.0 may be loaded: bridges: torra-acme:folder, feeds: torra-acme:ticks"
        in text
    )
    assert "plug-in nobody is not installed" in text


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"instances": [{**BTC, "feed": "torra-acme:ticks"}]}, "does not allow"),
        ({**ALLOWED, "instances": [{**BTC, "feed": "torra-acme:tick"}]}, "are torra-acme:ticks"),
        ({**ALLOWED, "instances": [{**BTC, "feed": "torra-acme:ticks"}]}, "set ACME_BARS"),
    ],
)
@pytest.mark.parametrize("ran", [False, True])
def test_the_doctor_says_what_keeps_a_plug_in_from_starting(
    site: Path, home: Path, document: dict[str, Any], said: str, ran: bool
) -> None:
    """In a new home too, and once."""
    desk(home, document)
    if ran:
        open_home(home).close()
    result = torra(home, "doctor")
    lines = [line for line in result.stdout.splitlines() if said in line]
    assert len(lines) == 1 and lines[0].startswith("ERROR    plug-in"), result.stdout
    assert result.exit_code == 1


# --- an agent -------------------------------------------------------------------------------------

SEATED = """\
import json, sys
from agents.registry import AGENTS
assert "session" in AGENTS
sys.path.insert(1, sys.argv[1])
from tests.evidence.test_feature_bundle import bundle
from tests.doubles.scripted import FULL_FEATURES, Scripted, context, debate, settings
from tests.worlds.orders import Decided
about = context(features=FULL_FEATURES)
desk = settings(active_agents=("technical", "session", "bull_researcher", "bear_researcher"))
record = debate(Scripted(), about=about, config=desk)
print(json.dumps([[told.agent_id for told in record.reports], str(record.source_type)]))
"""


@pytest.mark.journey
def test_an_agent_is_one_file_and_one_row(tmp_path: Path) -> None:
    overlay = tmp_path / "overlay"
    listed = subprocess.run(
        ["git", "ls-files", "agents", "agent_*.py", "scoring_rubric.py"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    for name in listed:
        (overlay / name).parent.mkdir(parents=True, exist_ok=True)
        (overlay / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (overlay / "agents" / "session_agent.py").write_text(
        FILES["agents/session_agent.py"], encoding="utf-8"
    )
    registry = overlay / "agents" / "registry.py"
    text = registry.read_text(encoding="utf-8")
    seated = text.replace("    sentiment_agent,\n", "    sentiment_agent,\n    session_agent,\n")
    assert seated.count("session_agent") == 2
    registry.write_text(seated, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SEATED, str(ROOT)],
        cwd=overlay, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    reports, source = json.loads(done.stdout)
    assert reports == ["technical", "session", "bull_researcher", "bear_researcher", "risk_gate"]
    assert source == "AGENT_CUSTOM"


def test_a_feature_is_one_row_and_one_value(monkeypatch: pytest.MonkeyPatch) -> None:
    row = features.FeatureRow(
        unit="of 100", decimals=1, name="the new reading", high="much", low="little", side="up"
    )
    monkeypatch.setitem(cast("dict[str, Any]", features.ROWS), "forecast.new", row)
    blocks = cast("dict[str, Any]", feature_bundle._BLOCKS)
    monkeypatch.setitem(
        blocks, "forecast", lambda _: {"forecast.new": 61.26, "forecast.low_pct": -1.0}
    )
    features.row_of.cache_clear()
    made = bundle().features
    new = made["forecast.new"]
    assert (new.value, new.unit, new.decimals) == (61.3, "of 100", 1)
    assert features.name_of("forecast.new") == "the new reading"
    assert features.sides("forecast.new", made) == (1,)
    about = replace(context(), features=dict(made))
    prompt = build_interpretive_prompt(about, AGENTS["bull_researcher"].role)
    assert "forecast.new = 61.3 of 100" in prompt.user


def test_a_host_hands_an_agent_in(tmp_path: Path) -> None:
    from agents.registry import AGENTS, seat  # noqa: PLC0415

    code = FILES["agents/session_agent.py"].replace("from .", "from agents.")
    found: dict[str, Any] = {"__name__": "session_agent"}
    exec(compile(textwrap.dedent(code), "session_agent.py", "exec"), found)
    agents = {**AGENTS, "session": seat(found["ROLE"])}
    desk = settings(active_agents=("session", "bull_researcher", "bear_researcher"))
    record = debate(Scripted(), about=context(features=FULL_FEATURES), config=desk, agents=agents)
    assert next(told.agent_id for told in record.reports) == "session"
    bare = context(features={**FULL_FEATURES, "market.session": None})
    record = debate(Scripted(), about=bare, config=desk, agents=agents)
    assert record.reports[0].abstained, "without its evidence it says nothing"
