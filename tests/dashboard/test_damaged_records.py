"""A damaged record shows as damaged, with its reason, wherever records are shown; nothing fails."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from flask.testing import FlaskClient

from tests.conftest import Scale
from tests.doubles.visitors import open_app
from tests.worlds import firm_ticks, swarm_ticks
from tests.worlds.demo_full_desk import FullDeskView
from tests.worlds.desk_pages import Pages
from tests.worlds.records import quiet
from torra.dashboard.view.stream_reading import StreamReading, brief
from torra.desk.journal_ticks import tick_of
from torra.replay.rerun.journal_replay import replay
from torra.replay.rerun.replay_store import JournalDatabase
from torra.store import replay_queries
from torra.tick.tick_record import Damaged, JournalRecord, TickRecord, load

CASES: Final = 10_000
"""Damaged records of a night."""

ODD: Final[tuple[Any, ...]] = (
    None, "", "text", 3, -1.5, True, [], {}, [None, "x", 4], [[1]], {"a": {"b": 1}}, float("nan"),
    float("inf"), 10**400, "2021-13-45T99:99:99Z", "\u202e<b>", [{}], {"BUY": 1},
)  # fmt: skip
"""What a damaged part is in place of what it was."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value in JSON."""
    named = {**dict(enumerate(value))} if isinstance(value, list) else value
    for name, part in named.items() if isinstance(named, dict) else ():
        yield (*path, name)
        yield from places(part, (*path, name))


def damaged(whole: dict[str, Any], where: list[tuple[Any, ...]], chance: random.Random) -> str:
    """Return the text of a record of which a part is gone, or is another thing."""
    text = json.dumps(whole)
    if chance.random() < 0.05:
        return text[: chance.randrange(len(text))]
    again = json.loads(text)
    *path, last = chance.choice(where)
    part = again
    for name in path:
        part = part[name]
    if chance.random() < 0.3:
        del part[last]
    else:
        part[last] = chance.choice(ODD)
    return json.dumps(again)


class OneRecordView(FullDeskView):
    """A view in which every tick has this record."""

    record: TickRecord

    def tick(self, *_: str) -> dict[str, Any]:
        return self.record.as_json()


def shown_by_everybody(record: TickRecord, view: OneRecordView, pages: FlaskClient) -> None:
    """Read a record as pages, lists and reports do."""
    view.record = record
    answer = pages.get(f"/symbol/BTCUSD/M15/{firm_ticks.BAR}")
    assert (answer.status_code, "What moved the scores" in answer.text) == (200, True)
    assert brief(record).sentence
    assert tick_of(record).instance == record.instance


@pytest.mark.parametrize("world", [firm_ticks, swarm_ticks])
def test_what_a_damaged_record_still_says_can_be_shown_and_the_rest_is_named(
    world: Any, scaled: Scale
) -> None:
    whole = world.record()
    for name in ("desk", "outcomes", "headlines", "digits", "previous", "next", "told_outcome"):
        whole.pop(name, None)
    whole["desk"] = quiet()["desk"]
    assert isinstance(load("a tick", whole), TickRecord)
    where, chance, found = list(places(whole)), random.Random(64), 0
    cases, view = scaled(CASES // 2, least=200), OneRecordView("demo")
    pages = open_app(view).test_client()
    for _ in range(cases):
        record = load("a tick", damaged(whole, where, chance))
        if isinstance(record, Damaged):
            found += 1
            assert record.reason and record.key == "a tick"
        else:
            shown_by_everybody(record, view, pages)
    assert found > cases / 2


def addresses(pages: Pages, page: str) -> list[str]:
    """Return the addresses on which the record of a tick is read."""
    (row,) = pages.database.proposals("WAITING", limit=1)
    return [
        "/", "/api/v1/overview", "/symbols", "/history?only=changed", "/approvals", "/health",
        page, f"/api/v1{page}", f"/api/v1{page}/chart", page.rpartition("/")[0],
        f"/api/v1{page.rpartition('/')[0]}", f"/approvals/{row.sid}", "/ticks.csv",
        f"/api/v1/proposals/{row.sid}", "/lessons", "/signals",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return firm_ticks.lived(tmp_path_factory.mktemp("firm"))


def test_every_page_and_answer_shows_a_damaged_record_as_damaged(
    pages: Pages, tmp_path: Path, scaled: Scale
) -> None:
    """Its tick's page says why, the stored text can be fetched, and a replay goes on after it."""
    key = f"{firm_ticks.INSTANCE}|{firm_ticks.TIMEFRAME}|{firm_ticks.BAR}"
    database, page = pages.database, f"/symbol/{key.replace('|', '/')}"
    stored, _ = replay_queries.journal_row(database, key)
    assert isinstance(load(key, stored, JournalRecord), JournalRecord)
    where, chance = list(places(stored)), random.Random(64)
    sql = "UPDATE journal SET record = ? WHERE torra_key = ?"

    def others(name: str) -> list[str]:
        past = JournalDatabase.at(tmp_path / name)
        again = [*replay(database, past, firm_ticks.INSTANCE)]
        past.close()
        return [one.state for one in again if one.key != key]

    applied = pages.desk.setups[firm_ticks.INSTANCE].profile
    database.apply_profile(firm_ticks.INSTANCE, applied.model_dump_json(), applied.digest())
    before = others("whole.db")
    assert before and set(before) == {"same"}
    for number in range(scaled(400, least=6)):
        text = damaged(stored, where, chance)
        database.change(sql, text, key)
        view = pages.app.extensions["torra_agents"].desk_view
        view._streams = StreamReading(database, view._profile)
        for address in addresses(pages, page):
            answer = pages.client().get(address)
            assert answer.status_code < 500, (address, text)
        reason = pages.json(f"/api/v1{page}").get("damaged", "")
        assert ("The record of this tick is damaged" in pages.text(page)) == bool(reason)
        states = others(f"{number}.db")
        # what still reads may tell another tick of its close another thing
        assert len(states) == len(before) and (not reason or states == before), text
    database.change(sql, json.dumps(stored), key)
