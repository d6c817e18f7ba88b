"""No word of a stranger becomes more than a word, on any page, in any answer.

Each page of a home that strangers filled with hostile texts is held against the same page of a home
that they filled with harmless ones: it may have no element, no attribute and no kind of address
that the harmless page has not. Every route of the table is asked, so a new one is asked too.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import FileSystemLoader

from tests.cases import cases
from tests.conftest import Scale
from tests.worlds.hostile_home import Home, supply
from tests.worlds.hostile_texts import TEXTS
from torra.config import ROOT
from torra.dashboard.doors.routes import by_name, every_route
from torra.dashboard.trade.order_pages import STAGES
from torra.harmless_text import HOSTILE
from torra.store import tick_queries

AGAIN = ("a plain word", "another one", "buyers hold the line", "https://news.example.com/a")
HARMLESS = [f"word {number}" if number % 3 else AGAIN[number % 4] for number in range(5000)]
"""Some words come again, as evidence that is cited does, and some do not."""

LINKS = ("href", "src", "action", "formaction", "xlink:href", "data", "poster", "srcset", "ping")
NEVER = {"iframe", "object", "embed", "base", "style", "img", "video", "math", "marquee"}
INERT = {"title", "hidden", "class", "data-tone"}
"""Attributes that an element has or has not by what it tells; the corpus tries all others."""

SHEETED = "/report.html"
"""End of the address of the one page that carries its sheet in itself: it is kept as a file."""

RARE = {
    "style",
    "script",
    "link",
    "meta",
    "title",
    "template",
    "html",
    "head",
    "body",
    "main",
    "h1",
}
"""Elements of which a page has as many as its template, whatever strangers say."""

REL = {"noopener", "noreferrer", "nofollow"}
FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[-+]?\d[\d.,:eE+-]*")


class Skeleton(HTMLParser):
    """The elements of a page with their attributes, and every text and value in it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.shapes: set[tuple[str, str]] = set()
        self.rare: Counter[str] = Counter()
        self.links: list[tuple[str, str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs) -> None:
        attributes = dict(attrs)
        assert len(attributes) == len(attrs), f"<{tag}> has an attribute twice"
        self.shapes.add((tag, ""))
        if tag in RARE:
            self.rare[tag] += 1
        for name, value in attrs:
            self.shapes.add((tag, name))
            self.texts.append(value or "")
            if name in LINKS:
                self.links.append((tag, value or "", attributes))
            if name == "id":
                self.ids.add(value)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.rare["!--"] += 1

    def handle_decl(self, decl: str) -> None:
        assert decl.lower() == "doctype html"

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data[:80]}")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    found = Home(tmp_path_factory.mktemp("home") / "home")
    yield found
    found.close()


@pytest.fixture(scope="module")
def harmless(
    home: Home, tmp_path_factory: pytest.TempPathFactory, scaled: Scale
) -> Iterator[Harmless]:
    found = Harmless(home, tmp_path_factory.mktemp("harmless"), scaled(100))
    yield found
    found.filled.close()


class Harmless:
    """The pages of a home that was filled with harmless words.

    Of signals and proposals each, `some` are looked at.
    """

    def __init__(self, home, folder, some) -> None:
        self.filled = home.filled(folder / "home", itertools.cycle(HARMLESS))
        self.addresses = list(addresses(self.filled, some))
        self.rare: dict[str, Any] = {}
        self.shapes: dict[str, Any] = {}
        self.shown: dict[str, Any] = {}
        for route, address in self.addresses:
            answer = self.filled.client.get(address)
            body = answer.text
            if answer.mimetype == "text/html":
                found = Skeleton(body)
                self.rare[address] = found.rare
                self.shapes.setdefault(route.name, set()).update(found.shapes)
            if re.search(r"word \d+", body):
                self.shown[route.name] = address

    def skeleton(self, route, address):
        """Return what a page may be made of, as all pages of its kind are."""
        return SimpleNamespace(shapes=self.shapes[route.name], rare=self.rare[address])


def addresses(filled, some):
    """Return an address for each GET route, with everything that its parameters can name."""
    ticks = filled.database.ticks("BTCUSD", "M15", 8)[: some + 1]
    skipped = [
        r
        for r in tick_queries.tick_states(filled.database, "EURUSD", "H1", 9)
        if r["state"] == "skipped"
    ]
    signals = sorted(row["sid"] for row in filled.database.signals(limit=100))
    proposals = [row.sid for row in filled.database.proposals(None)]
    spaces = {
        "sid": [*signals[:: max(1, len(signals) // some)], *proposals[:some]],
        "name": ["default", "strange", "broken", "arrived", "none"],
        "stream_id": ["S1"],
        "card_id": ["C1", "none"],
        "run": ["1", "2"],
        "number": ["1", "2", "3"],
        "missing": ["a/b", "%3Cscript%3E"],
    }
    for route in every_route():
        if "GET" not in route.methods or route.rule == "/api/v1/events":
            continue  # that one never ends, and tells keys of ours alone
        if "<instance>" in route.rule:
            rule = route.rule.replace("<instance>", "{}").replace("<timeframe>", "{}")
            rule = rule.replace("<bar_time>", "{}").replace("<number>", "1")
            keys = [("BTCUSD", "M15", row["bar_time"]) for row in ticks]
            keys += [("EURUSD", "H1", row["bar_time"]) for row in skipped]
            for key in sorted({rule.format(*key) for key in keys}):
                yield route, key
            continue
        fields = re.findall(r"<(?:path:)?(\w+)>", route.rule)
        assert set(fields) <= set(spaces), f"{route.rule}: say what its parameters may be"
        for values in itertools.product(*(spaces[name] for name in fields)):
            address = route.rule
            for name, value in zip(fields, values, strict=True):
                address = re.sub(rf"<(?:path:)?{name}>", value, address)
            yield route, address
        if route.name == "orders":
            for stage in STAGES:
                yield route, f"{route.rule}?stage={stage}"


def offsets(scaled):
    """Return where the corpus begins, so that over the nights every text meets every field."""
    number = scaled(len(TEXTS), least=1)
    return [at * len(TEXTS) // number for at in range(number)]


def test_the_corpus_is_large_and_of_every_kind() -> None:
    assert len(TEXTS) >= 60
    assert len(set(TEXTS.values())) == len(TEXTS)
    signs = set(map(ord, "".join(TEXTS.values())))
    wanted = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0, 0x1B, 0x9B, 0x200B, 0xD800}
    assert wanted <= signs


def test_no_text_of_a_stranger_becomes_more_than_text(
    home: Home, harmless: Harmless, tmp_path: Path, scaled: Scale
) -> None:
    for offset in offsets(scaled):
        hostile = home.filled(tmp_path / f"home{offset}", supply(TEXTS.values(), offset))
        try:
            seen = check_everything(hostile, harmless)
        finally:
            hostile.close()
    assert seen["html"] > 40 and seen["json"] > 30 and seen["csv"] and seen["events"], seen


@pytest.mark.journey
def test_strangers_words_do_reach_the_pages(harmless: Harmless) -> None:
    """What no page shows would be harmless for another reason."""
    expected = {
        "overview", "symbol", "tick", "orders", "order", "costs",
        "profiles", "profile", "replays", "replay", "replay_report", "health", "audit",
        "signals_csv", "audit_csv",
        "api_tick", "api_costs", "api_health", "api_replay", "api_stream",
    }  # fmt: skip
    assert not expected - set(harmless.shown)


def check_everything(hostile, harmless):
    seen = dict.fromkeys(("html", "json", "csv", "events"), 0)
    for route, address in harmless.addresses:
        answer = hostile.client.get(address)
        where = f"{address} ({answer.status_code})"
        assert answer.status_code in (200, 204, 303, 404, 409, 422), where
        assert answer.headers["X-Content-Type-Options"] == "nosniff", where
        kind, body = answer.mimetype, answer.text
        if kind == "text/html":
            check_page(body, harmless.skeleton(route, address), where)
            seen["html"] += 1
        elif kind == "application/json":
            check_json(json.loads(body), where)
            seen["json"] += 1
        elif kind == "text/csv":
            check_csv(body, where)
            seen["csv"] += 1
        elif kind == "text/event-stream":
            check_events(body, where)
            seen["events"] += 1
        else:
            assert not body, (where, kind)
        missing = route.reply in ("picture", "csv") and answer.status_code == 404  # told by a page
        assert (route.reply == "html" or missing) == (kind == "text/html"), where
    return seen


def check_page(body, expected, where) -> None:
    found = Skeleton(body)
    more = {(tag, name) for tag, name in found.shapes - expected.shapes if name not in INERT}
    assert not more, (where, more)
    never = NEVER - {"style"} if SHEETED in where else NEVER
    assert not never & {tag for tag, _ in found.shapes}, where
    assert not [name for _, name in found.shapes if name.startswith("on") or name == "style"], where
    assert found.rare == expected.rare, (where, found.rare - expected.rare)
    for text in found.texts:
        assert not HOSTILE.search(text), (where, HOSTILE.search(text), text[:200])
    for tag, link, attributes in found.links:
        check_link(tag, link, attributes, where)


def check_link(tag, link, attributes, where) -> None:
    if link.startswith(("/", "#", "?")) and not link.startswith("//"):
        return
    if link == "https://www.tradingview.com/":
        return
    assert tag == "a" and link.startswith("https://"), (where, tag, link[:100])
    assert set(attributes.get("rel", "").split()) >= REL, (where, link[:100])
    assert re.fullmatch(r"https://[a-z0-9.-]+(?:/[^\s\\]*)?", link), (where, link[:100])


def check_json(told: Any, where: str) -> None:
    """What a page writes by itself from an answer is clean; addresses are ours."""
    cells = told.get("cells", {}) if isinstance(told, dict) else {}
    for name, cell in cells.items():
        for part in ("text", "title"):
            assert not HOSTILE.search(str(cell.get(part) or "")), (where, name, part)
        for attribute, value in (cell.get("set") or {}).items():
            assert not attribute.startswith("on") and attribute not in ("style", "srcdoc"), where
            if attribute in LINKS and value not in ("", "#"):
                assert str(value).startswith("/") and not str(value).startswith("//"), (
                    where,
                    name,
                    value,
                )


def check_csv(body: Any, where: str) -> None:
    rows = list(csv.reader(io.StringIO(body, newline="")))
    assert len({len(row) for row in rows}) == 1, where
    for row in rows:
        for cell in row:
            harmless = not cell.startswith(FORMULA) or NUMBER.fullmatch(cell)
            assert harmless, (where, cell[:100])


def check_events(body: Any, where: str) -> None:
    frames = [frame for frame in body.split("\n\n") if frame.strip()]
    names = []
    for frame in frames:
        lines = dict(line.partition(": ")[::2] for line in frame.splitlines())
        assert set(lines) <= {"id", "event", "data", "retry", ""}, (where, frame[:200])
        if "data" in lines:
            envelope = json.loads(lines["data"])
            assert envelope["event"] == lines["event"]
            names.append(envelope["event"])
    assert names == ["agent_complete", "agent_error", "decision"], where


# --- the test itself ------------------------------------------------------------------------------


@pytest.mark.journey
def test_a_page_that_trusts_a_stranger_is_found(
    home: Home, harmless: Harmless, tmp_path: Path
) -> None:
    """The check sees what it looks for: one template that takes a text as it is."""
    folder = tmp_path / "templates"
    (folder / "torra_agents").mkdir(parents=True)
    source = (ROOT / "templates" / "torra_agents" / "replay_parts.html").read_text(encoding="utf-8")
    careless = source.replace("{{ one.summary }}", "{{ one.summary|safe }}")
    assert careless != source
    (folder / "torra_agents" / "replay_parts.html").write_text(careless, encoding="utf-8")
    texts = [TEXTS[name] for name in ("image-error", "svg-load")]
    hostile = home.filled(tmp_path / "home", itertools.cycle(texts))
    try:
        hostile.client.application.jinja_loader = FileSystemLoader(folder)
        body = hostile.client.get("/replays/arrived").text
        with pytest.raises(AssertionError, match=r"img|svg|on"):
            check_page(body, harmless.skeleton(by_name()["replay"], "/replays/arrived"), "careless")
    finally:
        hostile.close()


@cases(
    "body",
    [
        '<p title="a" onclick="b">x</p>', "<p><img src=x></p>", "<p><!-- x --></p>",
        "<p>\u202ex</p>", '<p title="&#x202e;">x</p>', '<a href="javascript:x">x</a>',
        '<a href="https://news.example.com/">x</a>', '<a href="//evil.test">x</a>',
        '<a href="https://good.example.com@evil.test/" rel="noopener noreferrer nofollow">x</a>',
    ],
    ids=["handler", "image", "comment", "bidi", "bidi-value", "scheme", "rel", "relative", "user"],
)  # fmt: skip
def test_the_check_finds(body: str) -> None:
    expected = Skeleton('<p title="a"></p><a href="/" rel="x"></a>')
    with pytest.raises(AssertionError):
        check_page(body, expected, "here")


def test_templates_take_no_text_as_it_is() -> None:
    for path in sorted(Path(ROOT / "templates").rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"\|\s*safe|Markup|autoescape\s+false|<script>|style=|\son\w+=", text
        ), path
        assert not re.search(r"=\{\{", text), f"{path.name}: an attribute without quotes"
