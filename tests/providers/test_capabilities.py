"""The table of models: today's ids are in it, gone ones are refused with a replacement named."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest

from agent_config import MODELS, VENDORS
from docs import generate
from tests.cases import cases
from tests.later import Later
from torra.config import ROOT
from torra.errors import ConfigError
from torra.providers.vendors.table import (
    AS_OF,
    Capability,
    capability,
    check_model,
    vendors,
    warning,
)

anthropic_ends = Later("anthropic.resources.messages.messages")
anthropic_names = Later("anthropic.types.model_param")
google_types = Later("google.genai.types")
openai_names = Later("openai.types.shared")

MODELS_KNOWN = [row for vendor in vendors().values() for row in vendor.models.values()]
BY_NAME = {(row.vendor, row.model): row for row in MODELS_KNOWN}
ENDING = [row for row in MODELS_KNOWN if row.retired]
DAY = timedelta(days=1)


def test_no_model_stands_there_twice() -> None:
    assert len(BY_NAME) == len(MODELS_KNOWN)
    assert {row.vendor for row in MODELS_KNOWN} == set(VENDORS)


@cases("vendor", VENDORS)
@cases("tier", ["quick", "deep"])
def test_the_defaults_are_known_and_not_about_to_end(vendor: str, tier: str) -> None:
    row = BY_NAME[vendor, MODELS[vendor][tier]]
    assert row.retired is None and not row.replaced_by
    assert tier in row.note


@cases("row", ENDING, ids=lambda row: row.model)
def test_a_model_is_refused_from_its_last_day_on_and_warned_of_before(row: Capability) -> None:
    assert row.retired
    for day in (row.retired, row.retired + DAY, row.retired + 999 * DAY):
        with pytest.raises(ConfigError, match=re.escape(row.replaced_by)) as caught:
            check_model(row.vendor, row.model, day)
        assert row.model in str(caught.value)
        assert warning(row.vendor, row.model, day) == ""
    check_model(row.vendor, row.model, row.retired - DAY)
    said = warning(row.vendor, row.model, row.retired - DAY)
    assert row.replaced_by in said and "in 1 days" in said and str(row.retired) in said


@cases("row", [row for row in MODELS_KNOWN if row.replaced_by], ids=lambda row: row.model)
def test_a_replacement_is_a_model_of_the_same_vendor_that_stays(row: Capability) -> None:
    new = BY_NAME[row.vendor, row.replaced_by]
    assert new.retired is None


def test_what_ends_has_a_replacement() -> None:
    assert all(row.replaced_by for row in ENDING)


def test_the_ids_of_document_001_are_gone_or_have_a_successor() -> None:
    with pytest.raises(ConfigError, match="claude-sonnet-5-5"):
        check_model("anthropic", "claude-sonnet-4-20250514", AS_OF)
    assert capability("anthropic", "claude-haiku-4-5-20251001").replaced_by
    assert capability("google", "gemini-3-flash-preview").replaced_by


def test_anthropics_own_list_of_ends_is_ours() -> None:
    for model, end in anthropic_ends.DEPRECATED_MODELS.items():
        plain = re.sub(r"(\d)(st|nd|rd|th),", r"\1,", end)
        day = datetime.strptime(plain, "%B %d, %Y").date()  # noqa: DTZ007 - a day
        assert BY_NAME["anthropic", model].retired == day, model


def test_every_id_that_anthropics_sdk_names_is_known() -> None:
    names = [name for part in get_args(anthropic_names.ModelParam) for name in get_args(part)]
    assert len(names) > 15
    assert {("anthropic", name) for name in names} <= set(BY_NAME)


@pytest.mark.journey
def test_openais_own_list_of_ends_is_ours() -> None:
    text = Path(openai_names.chat_model.__file__).read_text(encoding="utf-8")
    notes = re.findall(
        r"- (\"[^:]*):\s+Announced\s+shutdown\s+date:\s+(\d{4}-\d\d-\d\d)", text, re.DOTALL
    )
    ends = {
        name: date.fromisoformat(day)
        for names, day in notes
        for name in re.findall(r'"(\S+)"', names)
    }
    assert len(ends) > 40
    spoken = {name for name in ends if "audio" in name or "search" in name}
    for name in ends.keys() - spoken:
        assert BY_NAME["openai_compatible", name].retired == ends[name], name


def test_a_model_that_nobody_knows_is_allowed_and_sent_nothing_odd() -> None:
    for vendor in VENDORS:
        check_model(vendor, "made-up-9", date(2099, 1, 1))
        assert warning(vendor, "made-up-9", date(2099, 1, 1)) == ""
        row = capability(vendor, "made-up-9")
        assert row.thinking is None and row.effort is None and row.structured
    assert not capability("openai_compatible", "llava:7b").picture


def test_a_known_name_of_one_vendor_is_nothing_to_another() -> None:
    check_model("google", "claude-sonnet-4-20250514", date(2099, 1, 1))


@pytest.mark.journey
def test_thinking_is_sent_as_its_vendor_takes_it() -> None:
    for row in MODELS_KNOWN:
        if row.vendor == "google" and row.thinking:
            google_types.ThinkingConfig.model_validate(dict(row.thinking))
            assert row.effort is None
        if row.vendor == "anthropic":
            assert row.thinking is None or set(row.thinking) == {"type"}
            assert row.effort in {None, "low"}
        if row.vendor == "openai_compatible":
            assert row.thinking is None
            assert row.effort in {None, "none", "low"}


def test_the_page_is_written_from_the_code() -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert page == generate.render_models_docs(generate.by_hand(page)), "python -m docs.generate"
    assert all(f"`{row.model}`" in page for row in MODELS_KNOWN)


def test_what_is_written_by_hand_on_the_page_stays() -> None:
    page = generate.render_models_docs("\n## Measured\n\n40 tokens/s\n")
    assert generate.render_models_docs(generate.by_hand(page)) == page
