"""Replies as a language model spoils them: each kind, and the reason that must then be on record.

A kind takes a valid reply (as a dict), a role and a seeded `random.Random`, and gives what the
provider brings back. `REASON` is the reason of the failed call where it is not `garbage`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from agents.contracts import VECTORS, Completion, Request
from tests.doubles.scripted import COST, honest

Valid = dict[str, Any]
GERMAN: Final = {
    "symbol": "kürzel",
    "adjustments": "anpassungen",
    "confidence": "zuversicht",
    "multiplier": "faktor",
    "price_action": "kursverlauf",
}


def text_of(reply: Any) -> str:
    return json.dumps(reply)


def holding(number: str) -> Callable[[Valid, random.Random], str]:
    """Return a kind that writes one number of the reply as `number`, in JSON's own letters."""

    def spoil(reply: Valid, chance: random.Random) -> str:
        mark = "\x07"
        return text_of(marked(reply, mark, chance)).replace(text_of(mark), number)

    return spoil


def marked(reply: Valid, mark: str, chance: random.Random) -> Valid:
    """Return the reply with one of the numbers that count replaced."""
    if "multiplier" in reply:
        return reply | {"multiplier": mark}
    vector = chance.choice(VECTORS)
    if "adjustments" in reply:
        return reply | {"adjustments": reply["adjustments"] | {vector: mark}}
    return reply | {vector: reply[vector] | {"score": mark}}


def said_in(reply: Valid) -> str:
    """Return the field of prose that the reply has."""
    return next((name for name in ("claim", "reasoning", "summary") if name in reply), "claim")


def truncated(reply: Valid, chance: random.Random) -> str:
    whole = text_of(reply)
    return whole[: chance.randrange(len(whole))]


def fenced(reply: Valid, chance: random.Random) -> str:
    """A fence that has no end of its own, or two: of one alone the object is taken."""
    whole = text_of(reply)
    twice = f"```json\n{whole}\n```\n```json\n{whole}\n```"
    return chance.choice([twice, f"~~~json\n{whole}\n```", f"json\n{whole}\n```"])


def nested(reply: Valid, chance: random.Random) -> str:
    often = text_of(text_of(text_of(reply)))  # encoded twice it is read, and no more than that
    forms: list[Any] = [{"reply": reply}, [reply], {"output": [{"json": reply}]}, often]
    deep = "[" * chance.choice([100, 5_000, 60_000])
    return chance.choice([*map(text_of, forms), deep, deep.replace("[", '{"a":')])


@cache
def ten_megabytes() -> str:
    return "very long " * (1024 * 1024)


def huge(reply: Valid, chance: random.Random) -> str:
    head, tail = text_of(reply | {said_in(reply): "@@"}).split("@@")
    return head + ten_megabytes() + tail


def wrong_symbol(reply: Valid, chance: random.Random) -> str:
    return text_of(reply | {"symbol": chance.choice(["GBPJPY", "XRPUSD", "xauusd.", "MSFT"])})


def foreign(reply: Valid, chance: random.Random) -> str:
    words = ["Der Markt ist ruhig.", "市场平静, 建议观望。", "السوق هادئ", "Рынок спокоен."]
    if chance.random() < 0.5:
        return chance.choice(words)
    taken = {name: GERMAN.get(name, name) for name in reply}
    return text_of({taken[name]: value for name, value in reply.items() if name != "symbol"})


def tool_call(reply: Valid, chance: random.Random) -> Completion | str:
    call = {"name": "get_price", "arguments": {"symbol": reply["symbol"]}}
    if chance.random() < 0.5:
        return Completion("", "scripted-1", "scripted", 900, 30, COST, "tool_use")
    return text_of(chance.choice([call, {"tool_calls": [call]}]))


def refused(reply: Valid, chance: random.Random) -> Completion:
    stop = chance.choice(["refusal", "filter"])
    return Completion("I cannot help with that.", "scripted-1", "scripted", 900, 10, COST, stop)


def byte_order_mark(reply: Valid, chance: random.Random) -> str:
    """A mark inside of the object: one around it is taken off."""
    del chance
    return text_of(reply).replace(": ", ":\ufeff ", 1)


def lone_surrogate(reply: Valid, chance: random.Random) -> str:
    half = chance.choice(["\\ud800", "\\udfff", "\ud83d", "\udc00"])
    return text_of(reply | {said_in(reply): "@@"}).replace("@@", half)


def missing(reply: Valid, chance: random.Random) -> str:
    gone = chance.choice(
        [name for name in ("confidence", "adjustments", *VECTORS) if name in reply]
    )
    return text_of({name: value for name, value in reply.items() if name != gone})


def twice(reply: Valid, chance: random.Random) -> str:
    """A key that stands twice: which one counts is anybody's guess."""
    return f'{{"symbol": {text_of(reply["symbol"])}, {text_of(reply)[1:]}'


KINDS: Final[Mapping[str, Callable[[Valid, random.Random], Any]]] = {
    "truncated": truncated,
    "fenced": fenced,
    "nested": nested,
    "nan": holding("NaN"),
    "infinity": holding("Infinity"),
    "minus_infinity": holding("-Infinity"),
    "1e999": holding("1e999"),
    "n/a": holding('"N/A"'),
    "true": holding("true"),
    "a_number_as_text": holding('"0.1"'),
    "10_mb": huge,
    "wrong_symbol": wrong_symbol,
    "wrong_language": foreign,
    "tool_call": tool_call,
    "refusal": refused,
    "byte_order_mark": byte_order_mark,
    "lone_surrogate": lone_surrogate,
    "missing_key": missing,
    "key_twice": twice,
}
REASON: Final = {"wrong_symbol": "wrong_symbol", "refusal": "refused"}


def spoilt(kind: str, request: Request, chance: random.Random) -> Any:
    """Return a provider's answer to a request, spoilt in one of KINDS."""
    return KINDS[kind](honest(request), chance)
