"""The door of replies: the table's wrappings are read, and nothing else that was refused before."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.contracts import Completion, ModelUnavailable, Request
from agents.texts import door, fence
from tests.cases import cases
from tests.doubles import scripted, vendor_line

SYMBOL: Final = "XAUUSD"
VALID: Final = json.dumps(scripted.report(claim="Close “up”, see ```x``` and <b> in 3 bars."))
PLAIN: Final = json.dumps(scripted.report())
OTHER: Final = json.dumps(scripted.report(confidence="low"))
THOUGHT: Final = f"I could say {OTHER} but the trend is up [1], so no."

WRAPPED: Final[dict[str, str]] = {
    "bare": VALID,
    "think": f"<think>{THOUGHT}</think>\n{VALID}",
    "think, blank before": f"\n<think>\n\n</think>\n\n{VALID}",
    "think, its begin in the template": f"</think>\n{VALID}",
    "thinking": f"<thinking>{THOUGHT}</thinking>{VALID}",
    "thought": f"<thought>{THOUGHT}</thought>{VALID}",
    "reasoning": f"<reasoning>{THOUGHT}</reasoning>{VALID}",
    "Seed": f"<seed:think>{THOUGHT}</seed:think>{VALID}",
    "Magistral": f"[THINK]{THOUGHT}[/THINK]{VALID}",
    "Command": f"<|START_THINKING|>{THOUGHT}<|END_THINKING|>{VALID}",
    "Gemma": f"<|channel>thought\n{THOUGHT}<channel|>{VALID}",
    "Kimi": f"◁think▷{THOUGHT}◁/think▷{VALID}",
    "final channel": f"<|channel|>final<|message|>{VALID}<|return|>",
    "channels": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant"
    f"<|channel|>final<|message|>{VALID}",
    "channels, constrained": f"<|channel|>analysis<|message|>{THOUGHT}<|end|>"
    f"<|start|>assistant<|channel|>final <|constrain|>json<|message|>{VALID}<|end|>",
    "fence": f"```json\n{PLAIN}\n```",
    "fence without a name": f"  ```\r\n{PLAIN}\r\n```\n",
    "fence in one line": f"```JSON {PLAIN}```",
    "words before": f"Here is the JSON: {VALID}",
    "words before and after": f"Sure!\n{VALID}\nI hope that helps.",
    "as many words as may be": f"{'w' * 150} {VALID} {'w' * 50}",
    "special token": f"{VALID}<|im_end|>",
    "special tokens": f"{VALID} <|eot_id|>\n</s>",
    "byte order mark": f"\ufeff{VALID}",
    "signs without width": f"\u200b{VALID}\u2060\n",
    "encoded twice": json.dumps(VALID),
    "typographic quotes": PLAIN.replace('"', "“"),
    "typographic quotes, both": PLAIN.replace('", ', "”, ").replace('"', "„"),
    "typographic name, ASCII values": VALID.replace('"symbol"', "“symbol”"),
    "think, then fence": f"<think>{THOUGHT}</think>```json\n{PLAIN}\n```",
    "words, then fence": f"Here it is:\n```json\n{PLAIN}\n```\nDone.",
    "channel, then fence": f"<|channel|>final<|message|>```json\n{PLAIN}\n```<|return|>",
    "think, then words": f"<think>{THOUGHT}</think>The answer: {VALID}",
    "think, then token": f"<think>{THOUGHT}</think>{VALID}<|im_end|>",
    "mark, then typographic quotes": "\ufeff" + PLAIN.replace('"', "”"),
}
"""Replies that are read, by what is around their object."""

CUT: Final = PLAIN[:-40]
HOSTILE: Final[dict[str, str]] = {
    "two objects": PLAIN + PLAIN,
    "two objects, a line each": f"{OTHER}\n{PLAIN}",
    "two objects, words between": f"{OTHER} or rather {PLAIN}",
    "two fences": f"```json\n{OTHER}\n```\n```json\n{PLAIN}\n```",
    "an object beside a fence": f"{OTHER}\n```json\n{PLAIN}\n```",
    "an object after a fence": f"```json\n{PLAIN}\n```\n{OTHER}",
    "an object in prose of another one": json.dumps({"note": f"the desk said {PLAIN}"}),
    "an object in another one": json.dumps({"reply": scripted.report()}),
    "an object in a list": f"[{PLAIN}]",
    "an object in long prose": f"{'The market turns. ' * 12}{PLAIN}",
    "too many words": f"{'w' * 151} {PLAIN} {'w' * 50}",
    "words with a bracket": f"As seen in [1]: {PLAIN}",
    "words with a brace": f"The set {{a}} says: {PLAIN}",
    "words with a tag": f"<answer>{PLAIN}</answer>",
    "a draft in a thought that was cut off": f"<think>I might say {PLAIN}",
    "the same, at once": f"<think>{PLAIN}",
    "the same, with a token": f"<think>{PLAIN}<|im_end|>",
    "the same, fenced": f"<think>Perhaps\n```json\n{PLAIN}\n```",
    "the same, of Magistral": f"[THINK]Perhaps {PLAIN}",
    "the same, of another channel": f"<|channel|>analysis<|message|>{PLAIN}",
    "a final channel that a thought quotes": "<|channel|>analysis<|message|>Next comes "
    f"<|channel|>final<|message|>{PLAIN}",
    "the channel of comments": f"<|channel|>commentary<|message|>{PLAIN}<|end|>",
    "two final channels": f"<|channel|>final<|message|>{OTHER}<|end|>"
    f"<|start|>assistant<|channel|>final<|message|>{PLAIN}",
    "a tag that is not at the beginning": f"Well. <think>{OTHER}</think>{PLAIN}",
    "nested tags": f"<think>a <think>b</think> c</think>{PLAIN}",
    "nested tags, closed at once": f"<think>a <think>b</think></think>{PLAIN}",
    "a draft behind the first closing tag": f"<think>a</think>{OTHER}</think>{PLAIN}",
    "a closing tag in a string of a draft": "<think>"
    + PLAIN.replace('"high"', '"</think>"').replace('"claim"', '"claim"'),
    "a closing tag in a string, then an object": f'<think>{{"claim": "</think>"}} {PLAIN}',
    "another tag closes": f"<think>a</thought>{PLAIN}",
    "a fence in a string that is broken": '{"symbol": "XAUUSD", "claim": "```json\n'
    + PLAIN
    + '\n```"}',
    "a fence in a fence": f"```\n```json\n{PLAIN}\n```\n```",
    "a fence that nobody closed": f"```json\n{PLAIN}",
    "mixed quotes": PLAIN.replace('"symbol"', '“symbol"'),
    "mixed quotes, the other way": PLAIN.replace('"symbol"', '"symbol”'),
    "ASCII quotes in typographic ones": PLAIN.replace('"symbol"', '“sym"bol”'),
    "a typographic quote too many": PLAIN.replace('"', "“").replace("high", "hi“gh"),
    "NaN in a wrapped object": f"Sure: {PLAIN.replace('0.1', 'NaN', 1)}",
    "infinity in a fence": f"```json\n{PLAIN.replace('0.1', '1e999', 1)}\n```",
    "a duplicate key after a thought": "<think>a</think>" + '{"symbol": "XAUUSD", ' + PLAIN[1:],
    "a lone surrogate, encoded twice": json.dumps(PLAIN.replace("high", "\\ud800")),
    "cut off in a fence": f"```json\n{CUT}\n```",
    "cut off after words": f"Here: {CUT}",
    "three wrappings": f"<think>a</think>Here:\n```json\n{PLAIN}\n```",
    "encoded three times": json.dumps(json.dumps(PLAIN)),
    "Python": str(scripted.report()),
    "a comment": PLAIN.replace("{", "{ // why\n", 1),
    "a comma too many": PLAIN[:-1] + ",}",
    "a string": json.dumps("a report"),
    "a text that is longer than any": f"<think>{'t' * door.MAX_REPLY_CHARS}</think>{PLAIN}",
    "nothing but a thought": f"<think>{PLAIN}</think>",
    "null": "null",
    "a number": "0.1",
    "a list without end": "[" * 60_000,
    "an object without end": '{"a":' * 15_000,
    "a lone surrogate": PLAIN.replace("Momentum", "\ud800"),
    "a lone surrogate, escaped": PLAIN.replace("Momentum", "\\uDFFF"),
    "a duplicate key": PLAIN.replace('"confidence"', '"symbol": "XAUUSD", "confidence"'),
    "a control sign in a string": PLAIN.replace("agree", "agree\n\x00"),
    "an object that is longer than any": "{" + " " * door.MAX_REPLY_CHARS + PLAIN[1:],
    **{
        f"a draft in a thought that was cut off: {tag}": f"{tag} perhaps {PLAIN}"
        for tag in (
            "<think>",
            "<thinking>",
            "<seed:think>",
            "[THINK]",
            "<|START_THINKING|>",
            "<|channel>thought",
            "◁think▷",
        )
    },
}
"""Replies that stay refused."""


def a_request(**changes: Any) -> Request:
    asked = vendor_line.a_request("technical", "claude-haiku-5-5")
    return replace(asked, prompt=replace(asked.prompt, **changes))


def read(text: str, request: Request | None = None, **how: Any) -> dict[str, Any]:
    completion = Completion(text, "m", "anthropic", **how)
    return door.answered(completion, request or a_request(), SYMBOL)


def refusal(text: str, request: Request | None = None, **how: Any) -> ModelUnavailable:
    with pytest.raises(ModelUnavailable) as caught:
        read(text, request, **how)
    return caught.value


@cases("name", WRAPPED)
def test_a_right_reply_in_a_usual_wrapping_is_read(name: str) -> None:
    held = scripted.report()
    assert read(WRAPPED[name]) in (json.loads(VALID), held)


@cases("name", HOSTILE)
def test_what_holds_not_exactly_one_object_stays_refused(name: str) -> None:
    assert refusal(HOSTILE[name]).reason == "garbage"


def test_every_row_of_the_table_is_needed_by_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    table = door.UNWRAPPINGS
    for row in (row for row in table if row.inner):
        monkeypatch.setattr(door, "UNWRAPPINGS", tuple(one for one in table if one is not row))
        refused = 0
        for text in WRAPPED.values():
            try:
                read(text)
            except ModelUnavailable:
                refused += 1
        assert refused, row.name


@cases("name", [name for name in WRAPPED if name != "bare"])
def test_a_wrapped_reply_about_another_symbol_says_so(name: str) -> None:
    text = WRAPPED[name].replace(SYMBOL, "EURUSD")
    assert refusal(text).reason == "wrong_symbol"


# --- what stands in the request -------------------------------------------------------------------

NEAR: Final = json.dumps(scripted.report(), indent=2)


@cases("place", ["system", "user"])
@cases("text", [PLAIN, NEAR, f"```json\n{NEAR}\n```", f"<think>a</think>{PLAIN}"])
@cases("quoted", [PLAIN, NEAR, json.dumps({"example": scripted.report()})])
def test_an_object_of_the_request_is_an_echo(place: str, text: str, quoted: str) -> None:
    request = a_request(**{place: f"Answer like this: {quoted}. Or like {{this}}."})
    assert refusal(text, request).detail == "echo"
    assert read(OTHER, request) == json.loads(OTHER)


def test_the_schema_of_the_request_is_an_echo() -> None:
    request = a_request()
    with pytest.raises(ModelUnavailable, match="echo"):
        door.answered(Completion(json.dumps(request.schema), "m"), request, None)


# --- how it ended ---------------------------------------------------------------------------------


@cases(
    ("stop", "reason"),
    [("length", "garbage"), ("context", "refused"), ("refusal", "refused"), ("filter", "refused")],
)
def test_a_reply_that_was_stopped_is_not_read(stop: str, reason: str) -> None:
    error = refusal(VALID, stop_reason=stop)
    assert (error.reason, error.detail) == (reason, stop)
    assert error.again == (0.0 if stop == "length" else None)


@cases("stop", sorted(door.ODD))
def test_an_odd_end_is_told_where_there_is_no_object(stop: str) -> None:
    assert read(VALID, stop_reason=stop) == json.loads(VALID)
    assert refusal("", stop_reason=stop).detail == stop
    assert refusal("{", stop_reason=stop).detail == stop
    assert refusal(VALID.replace(SYMBOL, "EURUSD"), stop_reason=stop).reason == "wrong_symbol"


@cases(
    ("text", "detail"),
    [
        ("", "empty"),
        (" \ufeff\n", "empty"),
        ("Hold.", "not JSON"),
        (PLAIN + OTHER, "two objects"),
        (f"Here: {PLAIN} {OTHER}", "two objects"),
    ],
)
def test_a_failure_has_a_word_of_its_own(text: str, detail: str) -> None:
    assert refusal(text).detail == detail


@cases("text", [f"<think>sk-canary</think>{CUT}", "sk-canary", f"sk-canary {PLAIN}{PLAIN}"])
def test_no_word_of_a_reply_is_in_a_detail(text: str) -> None:
    assert "sk-canary" not in str(refusal(text))


# --- malformed replies ----------------------------------------------------------------------------


def strict(text: str) -> bool:
    """Say whether a text is one JSON object about the symbol, by a parser of our own making."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in found}) < len(found):
            raise ValueError("twice")
        return dict(found)

    def constant(word: str) -> Any:
        raise ValueError(word)

    def number(word: str) -> float:
        if math.isinf(float(word)):
            raise ValueError(word)
        return float(word)

    try:
        found = json.loads(
            text, object_pairs_hook=pairs, parse_constant=constant, parse_float=number
        )
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("symbol") == SYMBOL


SIGNS: Final = (
    *('"', "“", "”", "{", "}", "[", "]", "`", "```", "<", ">", "|", "\\", ",", ":", "\ufeff"),
    *(
        "<think>",
        "</think>",
        "<|end|>",
        "<|channel|>final<|message|>",
        "<|im_end|>",
        "NaN",
        "1e999",
    ),
    *("\ud800", "\\ud800", "\x00", "symbol", "0.1", " ", "\n", "w" * 60),
)


def mutated(chance: random.Random) -> str:
    """Return a reply with some signs lost, added or moved."""
    text = chance.choice([*WRAPPED.values(), *HOSTILE.values()])[:6_000]
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text) + 1)
        to = min(len(text), at + chance.choice([0, 0, 1, 1, 5, 40]))
        text = text[:at] + chance.choice(["", "", chance.choice(SIGNS), text[at:to]]) + text[to:]
    return text


def requoted(text: str) -> str:
    """Return a text whose typographic signs outside of ASCII quotes are ASCII quotes."""
    found, inside, escaped = [], False, False
    for sign in text:
        if sign == '"' and not escaped:
            inside = not inside
        escaped = inside and sign == "\\" and not escaped
        found.append('"' if sign in door.TYPED and not inside else sign)
    return "".join(found)


def between(text: str) -> str:
    """Return a text from its first brace to its last."""
    return text[text.find("{") : text.rfind("}") + 1]


def test_ten_thousand_malformed_replies_raise_nothing_else(scaled: Callable[..., int]) -> None:
    chance = random.Random(63)
    seen = {"as it is": 0, "unwrapped": 0, "refused": 0}
    for _ in range(scaled(10_000, 500)):
        text = mutated(chance)
        try:
            read(text)
        except ModelUnavailable:
            assert not strict(text), "a reply that is one object is read"
            seen["refused"] += 1
            continue
        if strict(text):
            seen["as it is"] += 1
            continue
        # Beyond the strict parser only the table reads: what it took is an object as strict.
        seen["unwrapped"] += 1
        quoted = requoted(text)
        ends = [
            part for mark in ("</", "/THINK]", "<channel|>", "think▷") for part in text.split(mark)
        ]
        views = [text, quoted, *ends]
        if text.lstrip("\ufeff\u200b").startswith('"'):
            views.append(text.replace('\\"', '"').replace("\\\\", "\\"))
        views += [text.rpartition("<|message|>")[2], text.partition("END_THINKING|>")[2]]
        assert any(strict(between(view)) for view in views), text
    assert all(seen.values()), seen


def test_the_strict_parser_reads_a_whole_text_and_nothing_around_it() -> None:
    assert door.load(VALID, SYMBOL) == json.loads(VALID)
    for name, text in WRAPPED.items():
        if name != "bare":
            with pytest.raises(ModelUnavailable):
                door.load(text, SYMBOL)


@example(text="ab ", limit=8, within=False)
@example(text=" ab", limit=8, within=False)
@example(text="a  b", limit=8, within=False)
@example(text="abcdefghij", limit=8, within=False)
@example(text="a`b", limit=8, within=False)
@given(st.text(max_size=60) | st.text("ab <{}`[\n", max_size=60), st.integers(4, 40), st.booleans())
def test_a_clean_text_is_what_cleaning_makes_of_it(text: str, limit: int, within: bool) -> None:
    nonce = "5eedfeed5eedfeed"
    text = f"{text}{nonce.upper()}" if within else text
    short = fence.clean(text, limit, nonce)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fence, "_CLEAN", re.compile("(?!)"))
        assert fence.clean(text, limit, nonce) == short
