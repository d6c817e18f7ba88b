"""The sentence of a tick is the first thing that its pages say, stored or made from the record."""

from __future__ import annotations

import re

import pytest

from tests.dashboard.test_pages import TICKS
from tests.doubles.page_reader import client, get
from tests.worlds.records import tick_record
from torra.dashboard.streams import tick_words
from torra.dashboard.view.stream_reading import brief
from torra.tick.sentence import page_text
from torra.tick.tick_record import TickRecord


def stored(address: str) -> TickRecord:
    return tick_record(client().get(f"/api/v1{address}").json)


@pytest.mark.journey
def test_symbol_and_overview_say_it_of_the_newest_tick() -> None:
    sentence = page_text(stored(f"/symbol/BTCUSD/M15/{TICKS['AGENT_BUDGET']}"))
    symbol = get("/symbol/BTCUSD/M15")
    assert sentence in symbol.text
    assert symbol.text.index(sentence) < symbol.text.index("Verdict")
    # a tile shows symbol and distance itself, so it says the rest of the sentence
    overview, brief = get("/"), tick_words.brief(sentence)
    assert brief in overview.text


def test_a_tile_says_only_what_it_does_not_show() -> None:
    held = "Does nothing in BTCUSD on M15: the consensus +0.15 is between the thresholds; the "
    whole = f"{held}agents lean down, and without them it would hold too."
    assert tick_words.brief(whole) == "The agents lean down; without them the same."
    bought = "Buys 0.06 lots of BTCUSD on M15: the consensus +0.53 reaches +0.50; L1 agrees."
    assert tick_words.brief(bought) == bought
    assert tick_words.brief("") == ""
    pulled = whole.removesuffix(".") + "; H1 of 2021-10-27 05:00 UTC (−0.13) pulls the other way."
    assert tick_words.brief(pulled) == (
        "The agents lean down; without them the same; H1 pulls the other way."
    )
    kept = "Keeps the long in EURUSD on H1, open for 3 bars: the consensus +0.65 reaches the buy "
    kept += "threshold +0.50; on balance the agents agree."
    assert tick_words.brief(kept) == (
        "Keeps the long, open for 3 bars; on balance the agents agree."
    )
    assert tick_words.brief(
        "Keeps the short in EURUSD on H1: consensus −0.65; no agent was heard."
    ) == ("Keeps the short; no agent was heard.")


def test_a_sentence_from_a_store_is_cleaned() -> None:
    known = {"symbol": "BTCUSD", "timeframe": "M15", "verdict": "HOLD", "action": "HOLD"}
    odd = tick_record({**known, "sentence": "Buys\u202e all.\x1b" + "x" * 900})
    shown = tick_words.page_sentence(odd)
    assert 0 < len(shown) <= 400 and not re.search(r"[\x1b\u202e]", shown)


def test_a_glance_keeps_the_sentence_of_a_record() -> None:
    record = client().get(f"/api/v1/symbol/BTCUSD/M15/{TICKS['AGENT_BUDGET']}").json
    said = record["sentence"]
    assert brief(tick_record(record)).sentence == said == page_text(tick_record(record))
