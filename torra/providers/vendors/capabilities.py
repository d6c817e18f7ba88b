"""The table of models: what each can do, what it is sent for it, and which are gone.

The table is of 2026-11-21, from the vendors' SDKs (anthropic 2.12, google-genai 3.4, openai 3.54)
and their notices. A profile may name any model: one that is not listed is sent nothing that it
might refuse. A model is refused from the day on which its vendor shuts it down, with a replacement
named; before that day `warning` says so. Nothing here asks a vendor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from torra.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Capability:
    """What one model can do.

    `structured`: it can be held to a JSON schema. `picture`: it sees. `thinking`: what to send to
    turn its thinking off or down, None for nothing. `effort`: what to send as effort, None for
    nothing. `retired`: the day from which it is gone, and `replaced_by` what to name instead.
    """

    vendor: str
    model: str
    structured: bool = True
    picture: bool = True
    thinking: Mapping[str, str | int] | None = None
    effort: str | None = None
    replaced_by: str = ""
    retired: date | None = None
    note: str = ""


AS_OF: Final = date(2026, 11, 21)
"""When the table was written."""

Form = Literal["json_schema", "json_object", "prompt"]
FORMS: Final[tuple[Form, ...]] = ("json_schema", "json_object", "prompt")
"""In which forms a server is asked for an object, the first one first."""

FORM_IN_USE: Final = "asked in the form "
"""Begin of the end of a call's detail where a server is not asked in its first form."""

OFF: Final[Mapping[str, str | int]] = {"type": "disabled"}
BETWEEN: Final[Mapping[str, str | int]] = {"type": "between_tools"}
MINIMAL: Final[Mapping[str, str | int]] = {"thinking_level": "MINIMAL"}
LOW: Final[Mapping[str, str | int]] = {"thinking_level": "LOW"}
NO_BUDGET: Final[Mapping[str, str | int]] = {"thinking_budget": 0}

ALWAYS: Final = "always thinks, which counts as output"
AS_IS: Final = "thinking is left as it is"
OFF_ALREADY: Final = "does not think unless asked; takes no effort"


def _claude(
    *names: str,
    thinking: Mapping[str, str | int] | None = None,
    effort: str | None = "low",
    replaced_by: str = "",
    retired: date | None = None,
    note: str = "",
) -> Iterator[Capability]:
    for name in names:
        model = f"claude-{name}"
        yield Capability(
            "anthropic",
            model,
            thinking=thinking,
            effort=effort,
            replaced_by=replaced_by,
            retired=retired,
            note=note,
        )


def _gemini(
    *names: str,
    thinking: Mapping[str, str | int] | None,
    replaced_by: str = "",
    retired: date | None = None,
    note: str = "",
) -> Iterator[Capability]:
    for name in names:
        yield Capability(
            "google",
            f"gemini-{name}",
            thinking=thinking,
            replaced_by=replaced_by,
            retired=retired,
            note=note,
        )


def _openai(
    *names: str,
    effort: str | None = None,
    structured: bool = True,
    picture: bool = True,
    replaced_by: str = "",
    retired: date | None = None,
    note: str = "",
) -> Iterator[Capability]:
    for name in names:
        yield Capability(
            "openai_compatible",
            name,
            structured=structured,
            picture=picture,
            effort=effort,
            replaced_by=replaced_by,
            retired=retired,
            note=note,
        )


def _gone(model: str, replaced_by: str, day: date) -> Iterator[Capability]:
    """Yield the rows of retired models of which only the end matters, `model` split at blanks."""
    for name in model.split():
        if name.startswith("claude-"):
            yield Capability("anthropic", name, replaced_by=replaced_by, retired=day)
        else:
            yield Capability("openai_compatible", name, replaced_by=replaced_by, retired=day)


HAIKU: Final = "claude-haiku-5-5"
SONNET: Final = "claude-sonnet-5-5"
OPUS: Final = "claude-opus-5-5"
LUNA: Final = "gpt-6-luna"
TERRA: Final = "gpt-6.1-terra"

_ANTHROPIC: Final = (
    *_claude("haiku-5-5", thinking=OFF, note="default, quick"),
    *_claude(
        "sonnet-5-5", thinking=BETWEEN, note="default, deep; does not think where no tool is used"
    ),
    *_claude("opus-5-5", "fable-5-2", "fable-5-1", "fable-5", note=ALWAYS),
    *_claude("mythos-5-2", "mythos-5-1", "mythos-5", note=ALWAYS),
    *_claude("sonnet-5", replaced_by=SONNET, note=f"superseded; {AS_IS}"),
    *_claude(
        "opus-5", "opus-4-8", "opus-4-7", "opus-4-6", replaced_by=OPUS,
        note=f"superseded; {AS_IS}",
    ),
    *_claude("sonnet-4-6", replaced_by=SONNET, note=f"superseded; {AS_IS}"),
    *_claude(
        "haiku-4-5", "haiku-4-5-20251001", effort=None, replaced_by=HAIKU,
        note=f"superseded, ten times the price; {OFF_ALREADY}",
    ),
    *_claude("opus-4-5", "opus-4-5-20251101", replaced_by=OPUS, note=f"superseded; {AS_IS}"),
    *_claude(
        "sonnet-4-5", "sonnet-4-5-20250929", effort=None, replaced_by=SONNET,
        retired=date(2026, 11, 30), note=OFF_ALREADY,
    ),
    *_claude("mythos-preview", replaced_by="claude-mythos-5-2", retired=date(2026, 6, 30)),
    *_gone("claude-sonnet-4-20250514 claude-sonnet-4-0", SONNET, date(2026, 6, 15)),
    *_gone("claude-opus-4-20250514 claude-opus-4-0", OPUS, date(2026, 6, 15)),
    *_gone("claude-3-7-sonnet-20250219 claude-3-7-sonnet-latest", SONNET, date(2026, 2, 19)),
    *_gone("claude-3-5-haiku-20241022 claude-3-5-haiku-latest", HAIKU, date(2026, 2, 19)),
    *_gone("claude-3-opus-20240229", OPUS, date(2026, 1, 5)),
    *_gone("claude-3-sonnet-20240229 claude-2.1 claude-2.0", SONNET, date(2025, 7, 21)),
    *_gone("claude-1.3 claude-1.3-100k", SONNET, date(2024, 11, 6)),
    *_gone(
        "claude-instant-1.1 claude-instant-1.1-100k claude-instant-1.2", HAIKU, date(2024, 11, 6)
    ),
)  # fmt: skip

_GOOGLE: Final = (
    *_gemini("3.5-flash-lite", thinking=MINIMAL, note="default, quick"),
    *_gemini("3.8-flash", thinking=LOW, note="default, deep; thinks at low at least"),
    *_gemini("3.7-flash", "4-argon", "4-carbon", thinking=LOW, note="thinks at low at least"),
    *_gemini("4-hydrogen", thinking=LOW, note="thinks at low at least; high unless told"),
    *_gemini("3.6-flash", "3.5-flash", thinking=MINIMAL),
    *_gemini(
        "3.1-flash-lite", thinking=MINIMAL, replaced_by="gemini-3.5-flash-lite",
        retired=date(2027, 5, 7),
    ),
    *_gemini(
        "3.1-pro-preview", thinking=LOW, replaced_by="gemini-4-argon", note="preview; always thinks"
    ),
    *_gemini(
        "3-flash-preview", thinking=MINIMAL, replaced_by="gemini-3.5-flash",
        note="preview of an older series; no end announced",
    ),
    *_gemini("2.5-flash-lite", thinking=NO_BUDGET, replaced_by="gemini-3.5-flash-lite"),
    *_gemini(
        "2.5-flash", thinking=NO_BUDGET, replaced_by="gemini-3.8-flash", retired=date(2026, 12, 1)
    ),
    *_gemini(
        "2.5-pro", thinking={"thinking_budget": 128}, replaced_by="gemini-4-argon",
        retired=date(2026, 12, 1), note="always thinks",
    ),
)  # fmt: skip

_OPENAI: Final = (
    *_openai("gpt-6-luna", effort="none", note="default, quick"),
    *_openai("gpt-6.1-terra", effort="none", picture=False, note="default, deep; sight not known"),
    *_openai("gpt-6-sol", effort="none"),
    *_openai("gpt-6.1-sol", effort="low", note="effort none is refused"),
    *_openai("gpt-6.2-sol", effort="low", note="no price known: counted at the worst case"),
    *_openai("gpt-6-astra", "gpt-6.2-astra", effort="low", note="effort none is refused"),
    *_openai("gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna", effort="none"),
    *_openai("gpt-5.5", "gpt-5.4", "gpt-5.4-mini", effort="low"),
    *_openai(
        "gpt-5.4-nano", "gpt-5.4-nano-2026-03-17", "gpt-5.1", "gpt-5.1-2025-11-13", effort="low",
        replaced_by=LUNA, retired=date(2027, 4, 1),
    ),
    *_openai(
        "gpt-5", "gpt-5-2025-08-07", "o3", "o3-2025-04-16", effort="low", replaced_by=TERRA,
        retired=date(2026, 12, 11),
    ),
    *_openai(
        "gpt-5-mini", "gpt-5-nano", "gpt-5-mini-2025-08-07", "gpt-5-nano-2025-08-07", effort="low",
        replaced_by=LUNA, retired=date(2026, 12, 11),
    ),
    *_openai(
        "gpt-4.1", "gpt-4.1-2025-04-14", "gpt-4o", "gpt-4o-2024-11-20", "gpt-4o-2024-08-06",
        replaced_by=TERRA, retired=date(2027, 1, 14),
    ),
    *_openai(
        "gpt-4.1-mini", "gpt-4.1-mini-2025-04-14", "gpt-4o-mini", "gpt-4o-mini-2024-07-18",
        replaced_by=LUNA, retired=date(2027, 1, 14),
    ),
    *_gone("gpt-5.3-chat-latest gpt-5.2-chat-latest", TERRA, date(2026, 8, 10)),
    *_gone("gpt-5.1-codex gpt-5.1-chat-latest gpt-5-chat-latest", TERRA, date(2026, 7, 23)),
    *_gone("gpt-4.1-nano gpt-4.1-nano-2025-04-14 gpt-3.5-turbo", LUNA, date(2026, 10, 23)),
    *_gone("gpt-3.5-turbo-0125 o4-mini o4-mini-2025-04-16", LUNA, date(2026, 10, 23)),
    *_gone("o3-mini o3-mini-2025-01-31", LUNA, date(2026, 10, 23)),
    *_gone("o1 o1-2024-12-17 gpt-4o-2024-05-13 gpt-4-turbo", TERRA, date(2026, 10, 23)),
    *_gone("gpt-4-turbo-2024-04-09 gpt-4-1106-preview gpt-4", TERRA, date(2026, 10, 23)),
    *_gone("gpt-4-0613", TERRA, date(2026, 10, 23)),
    *_gone("gpt-3.5-turbo-1106", LUNA, date(2026, 9, 28)),
    *_gone("gpt-4-0125-preview gpt-4-turbo-preview gpt-4-0314", TERRA, date(2026, 3, 26)),
    *_gone("chatgpt-4o-latest", TERRA, date(2026, 2, 17)),
    *_gone("codex-mini-latest", LUNA, date(2026, 2, 12)),
    *_gone("o1-mini o1-mini-2024-09-12", LUNA, date(2025, 10, 27)),
    *_gone("o1-preview o1-preview-2024-09-12", TERRA, date(2025, 7, 28)),
    *_gone("gpt-4-32k gpt-4-32k-0314 gpt-4-32k-0613", TERRA, date(2025, 6, 6)),
    *_gone("gpt-4-vision-preview", TERRA, date(2024, 12, 6)),
    *_gone("gpt-3.5-turbo-16k gpt-3.5-turbo-0301", LUNA, date(2024, 9, 13)),
    *_gone("gpt-3.5-turbo-0613 gpt-3.5-turbo-16k-0613", LUNA, date(2024, 9, 13)),
)  # fmt: skip

MODELS_KNOWN: Final[tuple[Capability, ...]] = (*_ANTHROPIC, *_GOOGLE, *_OPENAI)
_BY_NAME: Final = {(row.vendor, row.model): row for row in MODELS_KNOWN}


def capability(vendor: str, model: str) -> Capability:
    """Return what a model can do; of an unlisted one, only what all of its vendor's models can."""
    known = _BY_NAME.get((vendor, model))
    return known or Capability(vendor, model, picture=vendor != "openai_compatible")


def check_model(vendor: str, model: str, today: date) -> None:
    """Raise ConfigError, with the replacement named, for a model that its vendor has shut down."""
    row = _BY_NAME.get((vendor, model))
    if row and row.retired and today >= row.retired:
        raise ConfigError(f"{model} was shut down on {row.retired}; name {row.replaced_by} instead")


def warning(vendor: str, model: str, today: date) -> str:
    """Return a sentence on a model that will be shut down, "" for any other."""
    row = _BY_NAME.get((vendor, model))
    if row is None or row.retired is None or today >= row.retired:
        return ""
    days = (row.retired - today).days
    return f"{model} is shut down on {row.retired}, in {days} days; name {row.replaced_by} instead"
