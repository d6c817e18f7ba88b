"""Why a reply ended: each vendor's documented words, and the one word of ours for each.

The words are those of agents.contracts.Completion; what a person can do about each stands in
torra.desk.models.remedies. A word that is not here is `other`: a vendor's own words are not kept.
The tables are of the SDKs that are installed, and a test compares them: anthropic's StopReason,
google-genai's FinishReason, openai's finish_reason with those of servers like it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "anthropic": {
        "end": "end_turn stop_sequence",
        "length": "max_tokens",
        "context": "model_context_window_exceeded",
        "refusal": "refusal",
        "tool": "tool_use",
        "paused": "pause_turn",
    },
    "google": {
        "end": "STOP",
        "length": "MAX_TOKENS",
        "filter": "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY "
        "IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION MODEL_ARMOR",
        "tool": "MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS",
        "paused": "CONTINUATION",
        "malformed": "MALFORMED_RESPONSE MISSING_THOUGHT_SIGNATURE",
        "empty": "NO_IMAGE",
        "other": "FINISH_REASON_UNSPECIFIED OTHER IMAGE_OTHER ESCALATION PUP_LIMITED_DISABLED",
    },
    "openai_compatible": {
        "end": "stop eos eos_token stop_sequence",
        "length": "length max_tokens",
        "context": "model_length",
        "filter": "content_filter",
        "tool": "tool_calls function_call",
    },
}
"""Each vendor's words, split at blanks, by ours."""

STOPS: Final = {
    vendor: {told: word for word, names in rows.items() for told in names.split()}
    for vendor, rows in WORDS.items()
}


def stop_word(vendor: str, told: str) -> str:
    """Return our word for how a reply ended; a reply that does not say has ended by itself."""
    return STOPS[vendor].get(told, "other") if told else "end"
