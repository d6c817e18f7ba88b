"""Replays and scorecards begin with money: a sentence, a short table; statistics behind --full."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import Scale
from tests.worlds.desk_pages import Pages, open_pages
from torra.commands.command_line import main
from torra.config import ROOT

UNSAID = (
    "Allowed for", "looks at this symbol", "Seeing +", "p of all looks", "discordant", "flips",
    "first success criterion", "by lot would come to", "placebo of its own",
    "confidence word", "told from a coin", "Brier", "longest, days", "placebo_", "| arm |",
)  # fmt: skip
"""What stood outside of "How this is computed" and was not understood."""

NAMED = re.compile(r"\bl1\b|\barms?\b|placebo_\w+|\bsize\b(?=\s+[\d.])")
"""Names of programs, and labels that stood alone."""

BARS = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, scaled: Scale) -> Path:
    """The home of a replay that ran, with its report."""
    home, begin = tmp_path_factory.mktemp("money"), "2021-11-08" if scaled.whole else "2021-11-09"
    words = ["--home", str(home), "replay", "BTCUSD", "--bars", BARS[0], "--bars", BARS[1]]
    words += ["--from", begin, "--to", "2021-11-11", "--arms", "l1,budget,placebo"]
    words += ["--name", "week", "--workers", "1", "--report", str(home / "week.html")]
    answer = CliRunner().invoke(main, words, catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return home


class Outside(HTMLParser):
    """The words of a page that stand outside of "How this is computed"."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self.stack: list[bool] = []
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("meta", "link", "br", "hr", "img", "input"):
            return
        behind = tag in ("style", "script") or dict(attrs).get("id") == "computed"
        self.stack.append(behind or bool(self.stack and self.stack[-1]))

    def handle_endtag(self, tag: str) -> None:
        if self.stack:
            self.stack.pop()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Have nothing inside."""

    def handle_data(self, data: str) -> None:
        if not (self.stack and self.stack[-1]):
            self.words.append(data)


def plain(text: str) -> None:
    """Check that a text has nothing that was not understood."""
    assert not [words for words in UNSAID if words in text]
    assert not NAMED.findall(text)


def test_the_report_has_money_curves_trades_and_then_statistics(ran: Path) -> None:
    report = (ran / "week.html").read_text(encoding="utf-8")
    text = Outside(report).text
    heads = (
        "The bars alone ",
        "Who traded",
        "Curves",
        "Trades of bars alone",
        "Trades of budget desk",
    )
    places = [text.index(words) for words in heads]
    assert places == sorted(places)
    assert report.index("Trades of budget desk") < report.index("How this is computed")
    plain(text.partition("Contents")[0])


# --- on pages -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(ran: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    found = open_pages(tmp_path_factory.mktemp("pages"))
    (ran / "replays").rename(found.backing.home / "replays")
    yield found
    found.desk.close()


def test_the_page_has_money_curves_trades_and_folded_statistics(pages: Pages) -> None:
    text = pages.text("/replays/week")
    outside = Outside(text).text
    heads = ("The bars alone ", "Who traded", "Read with care", "Curves", "newest first", "as CSV")
    places = [outside.index(words) for words in heads]
    assert places == sorted(places)
    folded = text[text.index('id="computed"') :]
    assert folded.count("<details id=") == folded.count('<span class="asks">') > 12
    assert "<details id" in folded and " open>" not in folded
    plain(outside)


@pytest.mark.journey
def test_the_list_says_it_in_money_and_under_what(pages: Pages) -> None:
    outside = Outside(pages.text("/replays")).text
    assert "bars: BTCUSD_M15.csv; BTCUSD_H1.csv; profile: default; thresholds: BUY from" in outside
    assert re.search(r"The bars alone \S+ R a trade, the budget desk \S+ R: ", outside)
    plain(outside)


@pytest.mark.journey
def test_trades_are_listed_by_who_traded(pages: Pages) -> None:
    text = Outside(pages.text("/replays/week?arm=l1")).text
    assert re.search(r"1 to \d+ of \d+, newest first", text)
    other = pages.text("/replays/week?arm=nobody&place=x")
    assert 'aria-current="true">budget desk' in other
    assert " of " in Outside(pages.text("/replays/week?arm=budget&place=999999")).text


@pytest.mark.journey
def test_long_lists_of_trades_go_on_by_pages(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torra.dashboard.screens.replays.AT_ONCE", 1)
    first = pages.text("/replays/week?arm=l1")
    assert "Older trades" in first and "Newer trades" not in first
    assert "place=1" in first
    second = pages.text("/replays/week?arm=l1&place=1")
    assert "Newer trades" in second and "2 to 2 of " in second
