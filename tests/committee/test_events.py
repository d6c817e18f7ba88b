"""A committee's stream: numbered without a gap, one end, code's sentences, a second attempt."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from instance_database import Database
from tests.conftest import Scale
from tests.worlds import cards as made_up
from tests.worlds import desks
from torra.clock import System
from torra.committee.debate import debate
from torra.committee.events import KIND, CommitteeStream
from torra.committee.evidence import CommitteeEvidence, evidence
from torra.committee.example import SYMBOL, example_desk
from torra.committee.votes import SEATS
from torra.desk.models.off_tick import OffTickReply
from torra.store import streams as stream_table
from torra.store.envelopes import envelope

AGENT = {"agent": {"enum": [*SEATS]}, "round": {"enum": [1, 2]},
         "phase": {"enum": ["analysis", "debate"]}}  # fmt: skip


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": [*properties],
        "additionalProperties": False,
    }  # fmt: skip


TEXT, NUMBER, BOOL = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
TEXTS = {"type": "array", "items": TEXT}
PAYLOADS = {
    "committee_start": closed(
        phase=TEXT, symbol=TEXT, evidence_until=TEXT, asked=TEXT, seats=TEXTS, models=TEXTS,
        risk_profile=TEXT,
    ),
    "agent_start": closed(**AGENT),
    "thinking": closed(**AGENT, seconds=NUMBER),
    "insight_extracted": closed(**AGENT, asked=TEXT, model=TEXT, vote=closed(
        stance={"enum": [-1, 0, 1]}, confidence=TEXT, points_for=TEXTS, points_against=TEXTS
    )),
    "agent_complete": closed(**AGENT, summary=TEXT),
    "agent_error": closed(**AGENT, error=TEXT),
    "debate_round": closed(round=AGENT["round"], phase=AGENT["phase"], statements=TEXTS),
    "decision": closed(
        phase={"const": "decision"}, card_id=TEXT, decision={"enum": ["buy", "hold", "reduce"]},
        lean=TEXT, why=TEXT, agreement=NUMBER, confidence=NUMBER, consensus_reached=BOOL,
        contested=BOOL, dissenting_opinions=TEXTS, source_type=TEXT, cost_usd=NUMBER,
        final_statement=TEXT,
    ),
    "error": closed(phase={"const": "decision"}, code=TEXT, message=TEXT, recoverable=BOOL),
}  # fmt: skip
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "oneOf": [
        closed(
            schema_version={"const": "1.0"}, stream_id=TEXT, stream_kind={"const": KIND},
            seq={"type": "integer", "minimum": 1}, event={"const": event},
            terminal={"const": event in ("decision", "error")}, payload=payload,
        )
        for event, payload in PAYLOADS.items()
    ],
}  # fmt: skip
VALID = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture(scope="module")
def known() -> Iterator[CommitteeEvidence]:
    with example_desk() as reader:
        yield evidence(reader, SYMBOL)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(desks.open_database(tmp_path)) as found:
        yield found


def envelopes(database: Database, stream: CommitteeStream) -> list[dict[str, Any]]:
    return [
        envelope(
            stream.id,
            KIND,
            row.seq,
            row.event,
            json.loads(row.payload),
            terminal=bool(row.terminal),
        )
        for row in stream_table.events_after(database, stream.id, 0, 1_000)
    ]


def check(found: list[dict[str, Any]]) -> None:
    assert [one["seq"] for one in found] == [*range(1, len(found) + 1)]
    assert [one["terminal"] for one in found] == [False] * (len(found) - 1) + [True]
    for one in found:
        VALID.validate(one)


def sit(
    stream: CommitteeStream, known: CommitteeEvidence, chance: random.Random, card: Any
) -> None:
    """Let models of every kind debate, and end the stream as the job does."""
    stream.tell(
        "committee_start", symbol=SYMBOL, evidence_until="2026-03-02T00:00:00Z", asked="q",
        seats=[*known.facts], models=["a:b"], risk_profile="balanced",
    )  # fmt: skip

    def ask(*_: Any, **__: Any) -> OffTickReply:
        if chance.random() < 0.3:
            return OffTickReply(None, chance.choice(("NETWORK", "TIMEOUT", "AUTH_REFUSED")))
        return OffTickReply({
            "stance": chance.choice((-1, 0, 1)), "confidence": "low", "claim": "SECRET WORDS",
            "points_for": [], "points_against": [], "falsifiers": ["SECRET WORDS"],
        })  # fmt: skip

    debate(known, ask, System(), tell=stream.tell)
    if chance.random() < 0.5:
        stream.decision(card)
    else:
        stream.error("ALL_FAILED", "no seat gave a usable answer", recoverable=False)


def test_streams_hold_to_their_schema_and_hold_no_words_of_a_model(
    database: Database, known: CommitteeEvidence, scaled: Scale
) -> None:
    """1,000 streams at night."""
    chance, card = random.Random(70), made_up.stored(database)
    for number in range(scaled(1_000, least=20)):
        stream = CommitteeStream(database, f"key-{number}")
        sit(stream, known, chance, card)
        found = envelopes(database, stream)
        check(found)
        assert "SECRET" not in json.dumps(found)
        stream.tell("agent_start", agent="valuation", round=1)
        assert len(envelopes(database, stream)) == len(found), "nothing follows the end"


def test_a_second_attempt_goes_on_in_the_stream_that_was_left_open(
    database: Database, known: CommitteeEvidence
) -> None:
    first = CommitteeStream(database, "key")
    first.tell("agent_start", agent="valuation", round=1)
    again = CommitteeStream(database, "key")
    assert again.id == first.id
    sit(again, known, random.Random(1), made_up.stored(database))
    check(envelopes(database, again))
    assert CommitteeStream(database, "key").id != first.id
    assert CommitteeStream(database, "other").id != first.id


@pytest.mark.parametrize("ended", [True, False])
def test_votes_are_taken_of_the_same_question_alone(database: Database, *, ended: bool) -> None:
    """Of another day's evidence and of another risk profile, and after two jobs that were lost."""
    for key, asked, seat, stance in (
        ("key", "monday", "valuation", 1), ("other", "monday", "sentiment", 0),
        ("key", "tuesday", "valuation", -1),
    ):  # fmt: skip
        stream = CommitteeStream(database, key)
        assert not stream.has_begun(asked)
        stream.tell("committee_start", asked=asked)
        assert stream.has_begun(asked) and not stream.has_begun("wednesday")
        vote = {"asked": asked, "vote": {"stance": stance}, "model": "a:b"}
        stream.tell("insight_extracted", agent=seat, round=1, **vote)
        if ended:
            stream.error("CANCELLED", "cancelled", recoverable=True)
    found = CommitteeStream(database, "third")
    stances = {key: one["vote"]["stance"] for key, one in found.votes("monday").items()}
    assert stances == {("valuation", 1): 1, ("sentiment", 1): 0}
    assert [*found.votes("tuesday")] == [("valuation", 1)]
    assert found.votes("wednesday") == {} and not found.has_begun("monday")


def test_a_stream_of_a_desk_that_is_gone_gets_its_end_from_the_next(database: Database) -> None:
    stream = CommitteeStream(database, "key")
    stream.tell("agent_start", agent="valuation", round=1)
    assert stream.id in stream_table.orphans(database, "the next desk")


def test_streams_of_ticks_are_listed_without_those_of_committees(database: Database) -> None:
    CommitteeStream(database, "key")
    assert stream_table.streams(database) == []
    assert stream_table.newest_stream(database, "tick", "key") is None
    assert stream_table.newest_stream(database, KIND, "none") is None
