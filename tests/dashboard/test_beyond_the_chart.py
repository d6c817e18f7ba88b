"""The panel "Beyond the chart" on the pages of a tick and of a symbol."""

from __future__ import annotations

from typing import Any

import pytest

from agents.registry import AGENTS
from tests.cases import cases
from tests.doubles.page_reader import Page, check_policy
from tests.doubles.visitors import open_app
from tests.worlds.demo_view import ScriptedView, bars
from tests.worlds.records import shown_tick, tick_record
from torra.dashboard.record import citations, surroundings, transcript
from torra.dashboard.view.stream_reading import brief
from torra.evidence.companion_readings import NUMBERS
from torra.exhibits import figures
from torra.exhibits.beyond import outside_words

STREAM = "/symbol/EURUSD/H1"
TICK = f"{STREAM}/{bars('EURUSD', 'H1')[-1]['time']}"
FILE = "<img src=x onerror=alert(1)>" + "a" * 200 + ".csv"
ABSENT = object()


def seen(value: float, day: str = "2026-02-12", *, stale: bool = False, source: str = FILE) -> Any:
    told = {"at": f"{day}T00:00:00Z", "known_at": "2026-02-13T22:00:00Z"}
    return {**told, "value": value, "source": source, "stale": stale}


KNOWN: dict[str, Any] = {
    "numbers": {
        "macro.rate_gap": -1.5, "macro.rate_gap_change_20": 0.25, "macro.rate_gap_rank": 12.4,
        "macro.slope": None, "cot.net_pct": None, "positioning.fear_greed": None,
    },
    "statuses": {"macro": "available", "cot": "unreachable", "derivs": "empty"},
    "seen": {
        "DGS2": seen(4.0, source="fred"), "yield_2y.EUR": seen(2.5),
        "DGS10": seen(4.4, "2026-01-02", stale=True, source="fred"),
    },
}  # fmt: skip
NOTHING: dict[str, Any] = {
    "numbers": dict.fromkeys(KNOWN["numbers"]),
    "statuses": dict.fromkeys(("macro", "cot", "derivs"), "empty"),
    "seen": {},
}


class View(ScriptedView):
    """A scripted desk whose records have this part; ABSENT: they are from before there was one."""

    told: Any = ABSENT

    def _record(self, instance: str, timeframe: str, place: int) -> dict[str, Any]:
        found = super()._record(instance, timeframe, place)
        return found if self.told is ABSENT else {**found, "outside": self.told}


def shown(told: Any, address: str) -> tuple[str, Page]:
    view = View("demo")
    view.told = told
    text = open_app(view).test_client().get(address).text
    page = Page(text)
    check_policy(page)
    return text, page


@pytest.mark.parametrize("address", [TICK, STREAM])
def test_nothing_known_is_a_sentence_with_what_to_do(address: str) -> None:
    _, page = shown(NOTHING, address)
    assert "Beyond the chart" in page.text and "torra data import FILE" in page.text
    assert "Rank 100" not in page.text
    _, off = shown(None, address)
    assert outside_words.OFF in off.text


BESIDE: dict[str, Any] = {
    "numbers": {
        **{f"companion.dxy.{name}": 0.5 for name in NUMBERS},
        **{f"companion.vix.{name}": None for name in NUMBERS},
    },
    "statuses": {"companion": "available", "companion.vix": "missing"},
    "seen": {"companion.dxy": seen(104.2335, source=FILE)},
}
"""What a tick knew of two companions, whose feed's symbol somebody made up to do harm."""


@pytest.mark.parametrize("address", [TICK, STREAM])
@pytest.mark.parametrize("known", [KNOWN, BESIDE])
def test_what_was_known_stands_there_and_a_strangers_file_is_text(
    address: str, known: dict[str, Any]
) -> None:
    text, page = shown(known, address)
    found = outside_words.shown("EURUSD", tick_record(outside=known).outside)
    assert found.rows and found.notes
    for row in found.rows:
        assert [row.name, row.value, row.change, row.rank, row.origin] in page.rows
    assert all(note in page.text for note in (*found.notes, found.brief))
    assert "<img src=x" not in text and "&lt;img src=x" in text and "a" * 60 not in text


def test_a_glance_keeps_what_a_tick_knew_and_that_it_could_not_know() -> None:
    assert brief(tick_record(outside=KNOWN)).outside == tick_record(outside=KNOWN).outside
    assert brief(tick_record()).outside is None


# --- the fundamental analyst ----------------------------------------------------------------------


@cases(
    ("reason", "said"),
    [
        (
            "no company or macro evidence: company off, macro empty",
            "(company: switched off: agents.include_news; economy: nothing known)",
        ),
        ("no company or macro evidence: empty", "(nothing known)"),
        ("no sentiment evidence: news off, positions unreachable", "positions: not reached)"),
        ("no news evidence: empty", "(no headline: "),
        ("no macro evidence: of a kind", "no macro evidence: of a kind"),
        ("no macro evidence: macro odd", "no macro evidence: macro odd"),
    ],
)
def test_an_analyst_that_abstains_says_why_in_words(reason: str, said: str) -> None:
    assert said in surroundings.plain_reason(reason)


@cases("role", AGENTS)
def test_a_sitting_with_any_agent_is_shown_with_its_name(role: str) -> None:
    """Every agent of the registry, in a seat that no mode has: no page breaks, each has a title."""
    view = View("demo")
    record = view.tick("EURUSD", "H1", TICK.rsplit("/", 1)[1])
    assert record is not None
    report = next(one for one in record["deliberation"]["reports"] if not one["abstained"])
    told = {**report, "agent_id": role}
    stranger = {**report, "agent_id": "brought_by_a_host"}
    deliberation = {
        **record["deliberation"],
        "reports": [told, stranger],
        "stages": [{"name": "analysts", "agents": {role: "", "brought_by_a_host": ""}}],
    }
    shown = shown_tick({**record, "deliberation": deliberation})
    titles = [figures.title(one.name) for one in transcript.people(shown)]
    assert titles[:2] == [figures.title(role), "Brought by a host"]
    assert citations.role_of(role) is not None
