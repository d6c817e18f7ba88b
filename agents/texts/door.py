"""The door through which the reply of a model comes: the one JSON object of its text, or a failure.

The whole text is read strictly first (`load`): no NaN, no 1e999, no duplicate key, no lone
surrogate, nothing around the JSON object, 64 kB at most. Where it is no object, at most MOST
unwrappings of the closed table UNWRAPPINGS are tried, each at most once, and what they leave is
read as strictly. The rows of the table that a vendor's wire format brings are applied where the
wire is read (torra.providers.vendors.vendor.wire_text), by the same rules.

A thought is dropped up to its first closing tag; its text is no second object, and one that was cut
off hides nothing. Two objects stay refused, and so does an object that stands in the request: a
model that repeats an example has not answered. A failure is ModelUnavailable with a word of ours as
its detail, and nothing else is raised.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import string
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn

from ..contracts import Completion, ModelUnavailable, Request
from .fence import without_nonce

MAX_REPLY_CHARS: Final = 65_536
TOO_DEEP: Final = re.compile(r"(?:[\[{][^\[\]{}]*){100}")
"""A longer reply is not read, nor one that opens so many brackets and closes none between them.

Only such a one could be nested deeper than Python reads.
"""

LINE_KEPT: Final = 300
"""Characters kept of a claim, a point, a flag, a cited word or an abstention's reason."""

UNUSABLE: Final[Mapping[str, str]] = {
    "length": "garbage",
    "context": "refused",
    "refusal": "refused",
    "filter": "refused",
}
"""Stop reasons of a completion that is not read, and how it counts: cut off, or refused."""

ODD: Final = frozenset(("tool", "paused", "malformed", "other"))
"""Stop reasons that say why a text holds no object, where it holds none."""

MOST: Final = 2
"""Unwrappings of one text."""
WORDS_BESIDE: Final = 200
"""Characters of words before and after an object, together."""
NO_WORDS: Final = frozenset("[]{}<>`|◁▷")
"""Signs of brackets, tags, fences and special tokens: what holds one is more than words."""

THOUGHT: Final = re.compile(
    r"""\s*(?:
        <(think|thinking|thought|reasoning|seed:think)>.*?</\1>
        | </think>                                      # of a template that has the begin
        | \[THINK\].*?\[/THINK\]                        # Magistral
        | <\|START_THINKING\|>.*?<\|END_THINKING\|>     # Command
        | <\|channel>thought.*?<channel\|>              # Gemma 4
        | ◁think▷.*?◁/think▷                            # Kimi
    )(?P<inner>.*)""",
    re.DOTALL | re.VERBOSE,
)

FINAL: Final = re.compile(
    r"""\s*
    (?:(?:<\|start\|>assistant)?<\|channel\|>(?!final)(?:(?!<\|end\|>).)*+<\|end\|>\s*)*+
    (?:<\|start\|>assistant)?<\|channel\|>final\s*(?:<\|constrain\|>\s*json\s*)?<\|message\|>
    (?P<inner>(?:(?!<\|(?:channel|end|return)\|>).)*+)
    (?:<\|end\|>|<\|return\|>)?\s*""",
    re.DOTALL | re.VERBOSE,
)
"""Other channels, each to its end, then the final one: a thought that was cut off has no end."""

FENCE: Final = re.compile(r"\s*```[A-Za-z]*(?P<inner>(?:(?!```).)*+)```\s*", re.DOTALL)

ENDS: Final = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
)
"""Special tokens that end a reply, and that some servers write into its text."""

INVISIBLE: Final = f"\ufeff\u200b\u200c\u200d\u2060\u00a0{string.whitespace}"

TYPED: Final = "“”„‟«»＂"
"""Typographic quotation marks."""
STRING: Final = (
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
    rf'|[{TYPED}](?P<typed>[^"\\{TYPED}]*+(?:\\[^"{TYPED}][^"\\{TYPED}]*+)*+)[{TYPED}]'
)
"""A string in ASCII quotes, or one in typographic ones."""
QUOTED: Final = re.compile(STRING, re.DOTALL)
STRINGS: Final = re.compile(rf'(?:[^"{TYPED}]++|{STRING})*+', re.DOTALL)


class Unwrapping(NamedTuple):
    """A row of the table: what is around an object, who reports it, an example, and how it goes.

    `inner` returns what a text holds, None where it is not wrapped so. Without it the wrapping is
    one of the wire.
    """

    name: str
    source: str
    example: str
    inner: Callable[[str], str | None] | None = None


def answered(completion: Completion, request: Request, symbol: str | None) -> dict[str, Any]:
    """Return the object of a completion, about `symbol`; raises ModelUnavailable and only that."""
    stop = completion.stop_reason
    if stop in UNUSABLE:
        raise ModelUnavailable(UNUSABLE[stop], stop)
    try:
        reply = opened(completion.text, symbol, request.nonce)
    except ModelUnavailable as error:
        if stop in ODD and error.reason == "garbage":
            raise garbage(stop) from None
        raise
    if reply == request.schema or reply in _objects(f"{request.system}\n{request.user}"):
        raise garbage("echo")
    return reply


def opened(text: object, symbol: str | None, nonce: str = "") -> dict[str, Any]:
    """Return the one object of a text, about `symbol`; raises ModelUnavailable and only that."""
    if not isinstance(text, str) or len(text) > MAX_REPLY_CHARS:
        return load(text, symbol)
    if not text.strip(INVISIBLE):
        raise garbage("empty")
    failure = garbage("not JSON")
    for reading in _readings(without_nonce(text, nonce), UNWRAPPINGS, MOST):
        try:
            return load(reading, symbol)
        except ModelUnavailable as error:
            failure = error
            if error.reason != "garbage":
                break
    raise failure


def _readings(text: str, rows: tuple[Unwrapping, ...], most: int) -> Iterator[str]:
    """Yield a text as it is, and as each way of taking off up to `most` wrappings leaves it."""
    yield text
    for row in rows if most else ():
        inner = row.inner(text) if row.inner else None
        if inner is not None:
            yield from _readings(
                inner, tuple(other for other in rows if other is not row), most - 1
            )


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects that stand in a text, those inside of others too."""
    objects: list[dict[str, Any]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        objects.append(dict(pairs))
        return objects[-1]

    decoder, at = json.JSONDecoder(object_pairs_hook=keep), text.find("{")
    at = -1 if TOO_DEEP.search(text) else at
    while at >= 0:
        end = at + 1
        with contextlib.suppress(ValueError, RecursionError):
            end = decoder.raw_decode(text, at)[1]
        at = text.find("{", end)
    return objects


# --- the strict parser ----------------------------------------------------------------------------


def load(text: object, symbol: str | None) -> dict[str, Any]:
    """Return the JSON object that a text is, about `symbol` where one is named.

    Raises ModelUnavailable and only that.
    """
    return about(strict(text), symbol)


def strict(text: object) -> object:
    """Return the JSON value that a text is, and nothing around it; raises ModelUnavailable."""
    if not isinstance(text, str):
        raise garbage(f"the reply is {type(text).__name__}, not text")
    if len(text) > MAX_REPLY_CHARS:
        raise garbage(f"the reply has {len(text)} characters")
    if TOO_DEEP.search(text):
        raise garbage("the reply is nested too deep")
    try:
        reply = _DECODER.decode(text)
        # A lone surrogate cannot be stored: it is refused here, as text or as an escape.
        text.encode()
        if "\\u" in text:
            json.dumps(reply, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        more = error.msg == "Extra data" and "{" in text[error.pos :]
        raise garbage("two objects" if more else "not JSON") from None
    except (ValueError, RecursionError) as error:
        raise garbage(type(error).__name__) from None
    return reply


def about(reply: object, symbol: str | None) -> dict[str, Any]:
    """Return the object of a reply, about `symbol` where one is named; raises ModelUnavailable."""
    if not isinstance(reply, dict):
        raise garbage("the reply is no JSON object")
    if symbol is None:
        return reply
    name = reply.get("symbol")
    if not isinstance(name, str):
        raise garbage("the reply names no symbol")
    if name != symbol:
        raise ModelUnavailable("wrong_symbol", name[:LINE_KEPT])
    return reply


def garbage(detail: str) -> ModelUnavailable:
    """Return the failure of a reply that cannot be read."""
    return ModelUnavailable("garbage", detail)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # json keeps the last of two equal keys; which of them the model meant nobody knows.
    keys = dict(pairs)
    if len(keys) != len(pairs):
        raise garbage("a duplicate key")
    return keys


def _number(word: str) -> float:
    # 1e999 is good JSON, and infinity to float().
    number = float(word)
    if not math.isfinite(number):
        raise garbage("a number that is not finite")
    return number


def _constant(word: str) -> NoReturn:
    raise garbage(f"{word} is no number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_float=_number,
    parse_constant=_constant,
)


# --- unwrappings ----------------------------------------------------------------------------------


def _inside(form: re.Pattern[str], text: str) -> str | None:
    """Return the inner part of a text of a form."""
    match = form.fullmatch(text)
    return match and match["inner"]


def _alone(text: str) -> str | None:
    """Return what stands between words: an object, or a fence."""
    begin = min((at for sign in ("{", "```") if (at := text.find(sign)) >= 0), default=0)
    end = max(text.rfind("}") + 1, text.rfind("```") + 3)
    words = text[:begin].strip(INVISIBLE) + text[end:].strip(INVISIBLE)
    few = 0 < len(words) <= WORDS_BESIDE and not NO_WORDS.intersection(words)
    return text[begin:end] if few else None


def _bare(text: str) -> str | None:
    rest = text.strip(INVISIBLE)
    while rest.endswith(ENDS):
        rest = rest[: rest.rindex("<")].rstrip(INVISIBLE)
    return rest if rest != text.strip() else None


def _string(text: str) -> str | None:
    try:
        value = strict(text)
    except ModelUnavailable:
        return None
    return value if isinstance(value, str) else None


def _requoted(text: str) -> str | None:
    if not STRINGS.fullmatch(text):
        return None
    mended = QUOTED.sub(lambda m: m[0] if m["typed"] is None else f'"{m["typed"]}"', text)
    return mended if mended != text else None


OBJECT: Final = '{"symbol": …}'
UNWRAPPINGS: Final = (
    Unwrapping(
        "a thought in a tag at the beginning, up to its first closing tag",
        "users of DeepSeek-R1 and Qwen3 behind Ollama, LM Studio, sglang; Magistral, Seed, Gemma 4",
        f"<think>The trend…</think>{OBJECT}",
        partial(_inside, THOUGHT),
    ),
    Unwrapping(
        "the final channel",
        "users of gpt-oss behind llama.cpp, vLLM, TensorRT-LLM; OpenAI's harmony format",
        f"<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>{OBJECT}",
        partial(_inside, FINAL),
    ),
    Unwrapping(
        "one markdown fence",
        "users of OpenRouter, Gemini, GLM, Gemma behind oMLX",
        f"```json {OBJECT} ```",
        partial(_inside, FENCE),
    ),
    Unwrapping(
        f"words before or after, {WORDS_BESIDE} characters at most, without bracket or brace",
        "users of LM Studio and Ollama, in any form but json_schema",
        f"Here is the JSON: {OBJECT}",
        _alone,
    ),
    Unwrapping(
        "special tokens at the end, a byte order mark, signs without width",
        "users of sglang and of chat templates that do not fit the model; OpenAI's gpt-5-mini",
        f"{OBJECT}<|im_end|>",
        _bare,
    ),
    Unwrapping(
        "an object that was encoded twice",
        "users of LangChain",
        '"{\\"symbol\\": …}"',
        _string,
    ),
    Unwrapping(
        "typographic quotation marks, outside of ASCII ones",
        "users of Chinese and European texts (BAML, Graphify)",
        "{“symbol”: …}",
        _requoted,
    ),
    Unwrapping(
        "one text part in a list, beside thoughts",
        "Mistral's documentation",
        f'"content": [{{"type": "text", "text": "{OBJECT}"}}]',
    ),
    Unwrapping(
        "a reasoning field that is the object, with stop reason end and no content",
        "users of LM Studio, vLLM, OpenRouter with Qwen3",
        f'"content": "", "reasoning_content": "{OBJECT}"',
    ),
    Unwrapping(
        "the arguments of exactly one tool call, without content",
        "the three vendors' documentation",
        f'"content": null, "tool_calls": [{{"function": {{"arguments": "{OBJECT}"}}}}]',
    ),
)
"""The closed table: nothing else is taken off a reply. The last three are read on the wire."""
