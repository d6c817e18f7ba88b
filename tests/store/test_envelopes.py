"""What a tick tells becomes an event with a fixed set of fields, and fits whatever it holds."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.cases import cases
from torra.store.envelopes import (
    AGENT,
    DEEPEST,
    FIELDS,
    PAYLOAD_BYTES,
    SHAPES,
    SIGNAL,
    WHOLE,
    Shaped,
    envelope,
    failure,
    fitted,
    picked,
    shaped,
    written,
)


@cases("kind", sorted(SHAPES))
def test_an_event_has_the_fields_of_its_kind_and_no_others(kind: str) -> None:
    event, _, fields, terminal = SHAPES[kind]
    shape = shaped(kind, {"stage": "analysts", "more": 1})
    assert shape is not None and set(shape.payload) == set(fields)
    assert (shape.event, shape.terminal) == (event, terminal)


@cases(
    ("kind", "stage", "phase"),
    [("agent_start", "analysts", "analysts"), ("agent_start", "research", "debate"),
     ("agent_complete", "", ""), ("debate_round", "analysts", "debate"),
     ("tick", "analysts", "decision"), ("decision", "gate", "decision")],
)  # fmt: skip
def test_the_phase_is_that_of_the_kind_or_of_the_stage(kind: str, stage: str, phase: str) -> None:
    shape = shaped(kind, {"stage": stage} if stage else {})
    assert shape is not None and shape.payload["phase"] == phase


def test_values_are_taken_over_and_what_is_missing_is_null() -> None:
    assert shaped("nonsense", {}) is None
    error = shaped("agent_error", {"agent": "technical", "reason": "timeout", "round": 2})
    assert error is not None and error.payload == {
        "agent": "technical", "round": 2, "phase": "", "error": "timeout", "ms": None,
    }  # fmt: skip
    round_ = shaped("debate_round", {"round": 1, "statements": ({"agent": "bull"},)})
    assert round_ is not None and round_.payload["statements"] == [{"agent": "bull"}]
    signal = {**dict.fromkeys(SIGNAL, 1), "seal": "secret"}
    tick = shaped("tick", {"signals": (signal,)})
    assert tick is not None and tick.payload["signals"] == [dict.fromkeys(SIGNAL, 1)]
    assert picked({"agent": 1, "x": 2}, AGENT) == {"agent": 1, "round": None, "phase": None}


@cases(("more", "again"), [({}, True), ({"recoverable": False}, False)])
def test_a_tick_that_came_to_nothing_ends_in_a_failure(more: Any, again: bool) -> None:
    event = shaped("tick_error", {"code": "store", "message": 7, **more})
    words = {"code": "store", "message": "7", "recoverable": again}
    assert event == Shaped("error", {"phase": "decision", **words}, terminal=True)
    assert failure("store", 7, again) == event


def test_an_event_is_framed_for_its_stream() -> None:
    assert envelope("s", "tick", 3, "decision", {"a": 1}, terminal=True) == {
        "schema_version": "1.0", "stream_id": "s", "stream_kind": "tick", "seq": 3,
        "event": "decision", "terminal": True, "payload": {"a": 1},
    }  # fmt: skip
    assert envelope("s", "tick", 3, "x", None)["terminal"] is False
    event = written(Shaped("error", {"a": 1}, terminal=True))
    assert event == ("error", '{"a":1}', True)


class Odd:
    def __str__(self) -> str:
        return "odd"


@cases(
    ("value", "plain"),
    [
        (True, True), (None, None), (7, 7), (0.5, 0.5), ("ü", "ü"), (Odd(), "odd"),
        (math.nan, None), (math.inf, None), (-math.inf, None),
        (WHOLE, WHOLE), (-WHOLE, -WHOLE), (WHOLE + 1, str(WHOLE + 1)),
        (-WHOLE - 1, str(-WHOLE - 1)), ((1, 2), [1, 2]), ({3}, [3]), (frozenset({3}), [3]),
        ({1: {2: math.nan}}, {"1": {"2": None}}),
    ],
)  # fmt: skip
def test_a_value_is_written_as_json_can_hold_it(value: Any, plain: Any) -> None:
    text = fitted({"a": value})
    assert json.loads(text) == {"a": plain} and text.isascii()


def test_what_lies_too_deep_is_null_though_it_holds_itself() -> None:
    endless: dict[str, Any] = {}
    endless["a"] = endless
    payload: Any = json.loads(fitted(endless))
    for _ in range(DEEPEST - 1):
        payload = payload["a"]
    assert payload == {"a": None}


@pytest.mark.parametrize(
    ("count", "length", "kept", "longest"),
    [(1, PAYLOAD_BYTES, 1, 4000), (400, 20, 400, 20), (300, 4000, 40, 600), (300, 10_000, 40, 600)],
)
def test_a_payload_that_is_too_long_is_shortened_as_little_as_fits(
    count: int, length: int, kept: int, longest: int
) -> None:
    payload = json.loads(fitted({"texts": ["x" * length] * count}))
    assert len(payload["texts"]) == kept
    assert {len(text) for text in payload["texts"]} == {min(length, longest)}
    assert payload.get("shortened", False) == (length > longest)
    assert {text[-1] for text in payload["texts"]} == {"…" if length > longest else "x"}


def test_a_payload_of_exactly_the_longest_length_stays_whole() -> None:
    frame = len(fitted({"a": ""}))
    whole = {"a": "x" * (PAYLOAD_BYTES - frame)}
    assert json.loads(fitted(whole)) == whole
    assert json.loads(fitted({"a": whole["a"] + "x"}))["shortened"] is True


def test_a_mapping_keeps_some_fields_however_much_must_go() -> None:
    row = {f"n{number}": "x" * 5000 for number in range(40)}
    payload = json.loads(fitted({"rows": [row] * 200}))
    (first, *_), more = payload["rows"], len(payload["rows"])
    assert payload["shortened"] is True and FIELDS <= len(first) < 40 and more < 200
    hopeless: Any = "x" * 20
    for _ in range(3):
        hopeless = {f"n{number}": hopeless for number in range(FIELDS)}
    assert fitted(hopeless) == '{"shortened":true}'
