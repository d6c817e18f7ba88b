"""The page of a profile: the ten settings first, the bar that saves, an undo that says what for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import template_rendered

from tests.doubles.page_reader import Page, check_policy
from tests.doubles.visitors import ACCESS, bearer
from tests.tries import Tries
from tests.worlds.desk_pages import Pages, open_pages
from torra.clock import System
from torra.profiles.book import ProfileBook
from torra.profiles.fields import changed
from torra.profiles.ten import TEN
from torra.store import audit as audit_chain

PAGE = "/profiles/default"
API = "/api/v1/profiles/default"
OURS = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}
JSON = {"Accept": "application/json"}
SLOWEST = 0.150
"""Seconds that the page of a profile may take with a full history."""

MOMENTUM = ("sentiment_weights", "momentum")


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    found = open_pages(tmp_path / "home")
    yield found
    found.desk.close()


def from_the_command_line(pages: Pages, places: dict[tuple[str, ...], Any]) -> None:
    home, desk = pages.backing.home, pages.backing.settings
    book = ProfileBook(home, desk, now=System().real_now, environment={})
    book.save(
        "default", lambda values: changed(values, places), digest=None, may="loosen", actor="me"
    )


def seen(pages: Pages) -> str:
    """The page as a session of an administrator has it, with its forms."""
    client = pages.client()
    client.post("/login", data={"token": ACCESS.tokens["admin"]}, headers=OURS)
    return client.get(PAGE).text


def entry(pages: Pages, number: int, scope: str = "admin") -> Any:
    contexts: list[Any] = []
    with template_rendered.connected_to(lambda _, context, **__: contexts.append(context)):
        pages.client().get(PAGE, headers=bearer(scope))
    (found,) = [one for one in contexts[0]["history"] if one["number"] == number]
    return found["put_back"]


def undo(pages: Pages, number: int, scope: str = "admin", **more: Any) -> Any:
    digest = pages.json(API)["digest"]
    body = {"number": number, "digest": digest, **more}
    return pages.client().post(f"{API}/undo", json=body, headers={**JSON, **bearer(scope)})


def test_the_ten_come_first_and_only_who_may_save_has_the_button(pages: Pages) -> None:
    text = pages.text(PAGE)
    names = [row["data-name"] for row in Page(text).all("div") if "data-name" in row]
    assert names[: len(TEN)] == [one.name for one in TEN]
    reader = pages.client().get(PAGE, headers={**bearer("read"), "Accept": "text/html"}).text
    button = f'formaction="{API}/save"'
    assert button in text and button not in reader


def test_a_share_of_the_capital_is_told_in_money_with_its_currency(pages: Pages) -> None:
    from_the_command_line(pages, {("risk", "risk_per_trade_pct"): 0.75})
    text = pages.text(PAGE)
    assert "Saved: 75.00 of 10,000.00 USD." in text
    assert "Saved: 200.00 of 10,000.00 USD." in text


def test_the_rest_is_folded_and_a_section_with_a_fault_is_open(pages: Pages) -> None:
    def unfolded(text: str) -> list[str]:
        page = Page(text)
        return [
            one["data-section"]
            for one in page.all("details")
            if "data-section" in one and "open" in one
        ]

    assert unfolded(pages.text(PAGE)) == []
    wrong = pages.client().post(
        f"{API}/check", data={"gate.losing_streak": "0"}, headers={"Accept": "text/html"}
    )
    assert unfolded(wrong.text) == ["gate"]


# --- undo -----------------------------------------------------------------------------------------


LOOSE = {MOMENTUM: 0.4, ("risk", "max_positions"): 2, ("execution",): "approve"}


def test_an_entry_says_what_comes_back_or_why_it_does_not(pages: Pages) -> None:
    from_the_command_line(pages, LOOSE)
    told = entry(pages, 1)
    assert [(one["title"], one["now"], one["then"]) for one in told["back"]] == [
        ("Sentiment weights: momentum", "0.4", "0.25"),
        ("Positions at once", "2", "3"),
        ("Who sends orders", "approve", "auto"),
    ]
    assert told["why_not"].startswith("Loosening Positions at once (risk.max_positions) and Who")
    assert told["command"] == "torra profile undo default 1"
    assert told["then"].startswith("A desk that runs takes it at its next start")
    text = seen(pages)
    (button,) = [one for one in Page(text).all("button") if one.get("aria-describedby") == "why-1"]
    assert "disabled" in button
    assert all(shown in text for shown in (told["label"], told["command"], told["then"]))
    refused = undo(pages, 1)
    assert refused.status_code == 403
    assert "needs the command line: torra profile undo default 1. " in refused.json["reason"]
    assert entry(pages, 2) is None, "what is saved now needs no undo"


def test_a_whole_entry_is_put_back(pages: Pages) -> None:
    from_the_command_line(pages, {MOMENTUM: 0.4, ("risk", "max_positions"): 4})
    assert entry(pages, 1)["question"] == (
        "Put entry 1 back: Sentiment weights: momentum 0.4 → 0.25 and Positions at once 4 → 3?"
    )
    why = entry(pages, 1, "approve")["why_not"]
    assert why.startswith("Only an administrator may change Positions at once")
    assert undo(pages, 1, "approve").status_code == 403
    done = undo(pages, 1)
    assert done.status_code in (200, 202)
    assert done.json["reason"].startswith("Saved. ")
    values = pages.json(API)["values"]
    assert (values["sentiment_weights"]["momentum"], values["risk"]["max_positions"]) == (0.25, 3)
    assert audit_chain.audit_entries(pages.database, limit=1)[0]["action"] == "profile.undo"


def test_older_entries_are_folded(pages: Pages) -> None:
    for number in range(7):
        from_the_command_line(pages, {MOMENTUM: 0.3 + number / 100})
    assert "3 older entries" in pages.text(PAGE)
    page = Page(seen(pages))
    check_policy(page, forms=True)


@pytest.mark.journey
def test_the_page_is_quick_with_a_full_history(pages: Pages, tries: Tries) -> None:
    for number in range(52):
        from_the_command_line(pages, {MOMENTUM: 0.3 + number / 100, ("execution",): "off"})
    pages.text(PAGE)
    for attempt in tries():
        times = []
        for _ in range(5):
            begun = time.perf_counter()
            pages.text(PAGE)
            times.append(time.perf_counter() - begun)
        with attempt:
            assert min(times) <= SLOWEST
