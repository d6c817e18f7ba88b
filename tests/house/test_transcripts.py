"""The page of transcripts is what the desk says today, and what a model once replied."""

from __future__ import annotations

import json

import pytest

from docs import transcripts


@pytest.fixture(scope="module")
def page() -> str:
    return transcripts.PAGE.read_text("utf-8")


@pytest.mark.nightly
def test_the_page_is_written_from_the_desk(page: str) -> None:
    """By day its first three ticks, by the test below: the fourth is seven hours later."""
    assert page == transcripts.render(), "python -m docs.generate"


@pytest.mark.journey
def test_its_first_three_ticks_are_written_from_the_desk(page: str) -> None:
    told = transcripts.render(transcripts.TICKS[:3]).removesuffix(transcripts.TAIL)
    assert told and page.startswith(f"{told}## {transcripts.TICKS[3].title}: ")
    assert page.endswith(transcripts.TAIL)


def test_it_shows_the_four_kinds_of_tick_each_in_both_hands(page: str) -> None:
    for tick in transcripts.TICKS:
        assert f"## {tick.title}: {tick.instance} {tick.timeframe}" in page
    assert page.count("### The rules") == page.count("### The small model") == 4
    trend, range_, vetoed, prevented = page.split("\n## ")[1:]
    assert "action OPEN\\_BUY" in trend or "action OPEN_BUY" in trend
    assert "is stretched upwards" in range_
    assert "as the gate vetoes it" in vetoed
    assert "the agents prevented the sell verdict; without agents" in prevented


def test_every_reply_that_is_kept_is_of_a_tick_of_the_page() -> None:
    kept = json.loads(transcripts.REPLIES.read_text("utf-8"))
    assert set(kept["replies"]) == {tick.key for tick in transcripts.TICKS}
    assert all(reply for told in kept["replies"].values() for reply in told.values())
