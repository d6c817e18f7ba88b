"""What the three vendors refuse with a 400, as far as it is known: facts that requests must meet.

`objection` returns the reason, "" for a request that the vendor would take. Everything unknown is
refused: a body holds the documented fields and no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

FIELDS: Final = {
    "anthropic": {
        "model", "max_tokens", "messages", "system", "thinking", "output_config", "cache_control",
        "metadata", "service_tier", "stop_sequences", "stream", "tools", "tool_choice",
    },
    "google": {"contents", "systemInstruction", "generationConfig", "safetySettings"},
    "openai_compatible": {
        "model", "messages", "response_format", "max_completion_tokens", "max_tokens",
        "reasoning_effort", "store", "stream", "seed", "n", "service_tier", "prompt_cache_key",
    },
}  # fmt: skip
LOCAL_FIELDS: Final = {"model", "messages", "max_tokens", "response_format"}
"""What every server in OpenAI's place knows."""

NEEDED: Final = {
    "anthropic": {"model", "max_tokens", "messages"},
    "google": {"contents"},
    "openai_compatible": {"model", "messages"},
}
KEY_HEADER: Final = {
    "anthropic": "authorization",
    "google": "x-goog-api-key",
    "openai_compatible": "authorization",
}
SAMPLING: Final = {"temperature", "top_p", "top_k", "topP", "topK"}
OPENAI_HOST: Final = "api.openai.com"
API_VERSION: Final = "2026-10-21"
UNSUPPORTED: Final = {"minimum", "maximum", "minLength", "maxLength", "maxItems", "pattern"}
"""Keywords that a strict schema may not have."""

NEVER_OFF: Final = ("claude-opus-5-5", "claude-fable", "claude-mythos")
OFF_BETWEEN_TOOLS: Final = ("claude-sonnet-5-5",)
NO_EFFORT: Final = ("claude-haiku-4-5", "claude-sonnet-4-5")
LOW_AT_LEAST: Final = ("gemini-3.7-flash", "gemini-3.8-flash", "gemini-3.1-pro", "gemini-4-")
NO_NONE: Final = ("gpt-6-astra", "gpt-6.2-astra", "gpt-6.1-sol")


def objection(exchange: Any) -> str:
    """Return why the vendor would refuse a request, "" if it would not."""
    vendor, body = exchange.vendor, exchange.body
    if not exchange.headers.get(KEY_HEADER[vendor]):
        return "no key"
    theirs = vendor != "openai_compatible" or official(exchange)
    if strange := set(body) - (FIELDS[vendor] if theirs else LOCAL_FIELDS):
        return f"unknown fields: {', '.join(sorted(strange))}"
    if missing := NEEDED[vendor] - set(body):
        return f"missing fields: {', '.join(sorted(missing))}"
    if sampling := SAMPLING & set(_names(body)):
        return f"no longer supported: {', '.join(sorted(sampling))}"
    schema = exchange.schema
    if schema is not None and (reason := _schema(schema, strict=vendor != "google")):
        return reason
    own = {"anthropic": _anthropic, "google": _google, "openai_compatible": _openai}[vendor]
    return own(exchange, body)


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield name
            yield from _names(item)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item)


def _schema(schema: Any, *, strict: bool) -> str:
    if isinstance(schema, list):
        return next((reason for item in schema if (reason := _schema(item, strict=strict))), "")
    if not isinstance(schema, Mapping):
        return ""
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if not properties or set(schema.get("required", ())) != set(properties):
            return "schema: every property must be required"
        if strict and schema.get("additionalProperties") is not False:
            return "schema: additionalProperties must be false"
    if strict and (strange := UNSUPPORTED & set(schema)):
        return f"schema: {', '.join(sorted(strange))} is not supported"
    # The names of properties are anybody's words, and no keywords.
    inner = [*schema.get("properties", {}).values()]
    inner += [value for name, value in schema.items() if name != "properties"]
    return _schema(inner, strict=strict)


def _anthropic(exchange: Any, body: Mapping[str, Any]) -> str:
    if exchange.headers.get("anthropic-version") != API_VERSION:
        return "anthropic-version"
    if not exchange.headers["authorization"].startswith("Bearer "):
        return "authorization"
    kind = body.get("thinking", {}).get("type")
    model = exchange.model
    if kind == "disabled" and model.startswith((*NEVER_OFF, *OFF_BETWEEN_TOOLS)):
        return f"thinking cannot be disabled on {model}"
    if kind == "between_tools" and not model.startswith(OFF_BETWEEN_TOOLS):
        return f"thinking.type between_tools is not known to {model}"
    if "effort" in body.get("output_config", {}) and model.startswith(NO_EFFORT):
        return f"effort is not supported on {model}"
    if body["messages"][-1]["role"] != "user":
        return "prefill is not supported"
    return ""


def _google(exchange: Any, body: Mapping[str, Any]) -> str:
    thinking = body.get("generationConfig", {}).get("thinkingConfig", {})
    if exchange.model.startswith(LOW_AT_LEAST) and thinking.get("thinkingLevel") == "MINIMAL":
        return f"thinking level MINIMAL is not supported by {exchange.model}"
    if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
        return "thinking budget and level exclude each other"
    return ""


def official(exchange: Any) -> bool:
    """Tell whether a request was meant for the vendor itself."""
    return bool(exchange.headers.get("host", "").startswith(OPENAI_HOST))


def _openai(exchange: Any, body: Mapping[str, Any]) -> str:
    if not exchange.headers["authorization"].startswith("Bearer "):
        return "authorization"
    if not official(exchange):
        return ""
    if exchange.model.startswith(NO_NONE) and body.get("reasoning_effort") == "none":
        return f"reasoning_effort none is not supported by {exchange.model}"
    if "max_tokens" in body:
        return "use max_completion_tokens"
    return ""
