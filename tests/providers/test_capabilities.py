"""The table of vendors: models of today are in it, and gone ones are refused with a remedy."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final, get_args

import pytest

from agent_config import MODELS, VENDORS
from docs import generate
from tests.cases import cases
from tests.later import Later
from torra.config import ROOT
from torra.errors import ConfigError
from torra.providers.vendors.table import AS_OF, Capability, capability, check_model, vendors
from torra.providers.vendors.table import warning as warning_of

anthropic_ends = Later("anthropic.resources.messages.messages")
anthropic_names = Later("anthropic.types.model_param")
google_types = Later("google.genai.types")
openai_names = Later("openai.types.shared")

ROWS: Final = {
    (vendor, row.model): row for vendor in VENDORS for row in vendors()[vendor].models.values()
}
DAY: Final = timedelta(days=1)


@cases("vendor", VENDORS)
@cases("tier", ["quick", "deep"])
def test_the_defaults_are_known_and_not_about_to_end(vendor: str, tier: str) -> None:
    row = ROWS[vendor, MODELS[vendor][tier]]
    assert row.retired is None and not row.replaced_by and tier in row.note


@cases("row", [row for row in ROWS.values() if row.retired or row.replaced_by])
def test_a_model_is_refused_from_its_last_day_on_and_warned_of_before(row: Capability) -> None:
    """Its replacement is a model of the same vendor that stays."""
    assert ROWS[row.vendor, row.replaced_by].retired is None
    for day in (row.retired + number * DAY for number in (0, 1, 999) if row.retired):
        with pytest.raises(ConfigError, match=re.escape(row.replaced_by)) as caught:
            check_model(row.vendor, row.model, day)
        assert row.model in str(caught.value)
        assert warning_of(row.vendor, row.model, day) == ""
    eve = (row.retired or AS_OF) - DAY
    check_model(row.vendor, row.model, eve)
    sentence = warning_of(row.vendor, row.model, eve)
    wanted = f"{row.model} is shut down on {row.retired}, in 1 days; name {row.replaced_by} instead"
    assert sentence == (wanted if row.retired else "")


def test_anthropics_own_lists_are_ours() -> None:
    for model, end in anthropic_ends.DEPRECATED_MODELS.items():
        plain = re.sub(r"(\d)(st|nd|rd|th),", r"\1,", end)
        day = datetime.strptime(plain, "%B %d, %Y").date()  # noqa: DTZ007 - a day
        assert ROWS["anthropic", model].retired == day, model
    names = [name for part in get_args(anthropic_names.ModelParam) for name in get_args(part)]
    assert len(names) > 15
    assert {("anthropic", name) for name in names} <= set(ROWS)


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
        if "audio" not in name and "search" not in name
    }
    assert len(ends) > 40
    for name, day in ends.items():
        assert ROWS["openai_compatible", name].retired == day, name


def test_a_model_that_nobody_knows_is_allowed_and_sent_nothing_odd() -> None:
    for vendor in VENDORS:
        check_model(vendor, "made-up-9", date(2099, 1, 1))
        assert warning_of(vendor, "made-up-9", date(2099, 1, 1)) == ""
        row = capability(vendor, "made-up-9")
        assert row.thinking is None and row.effort is None
    assert not capability("openai_compatible", "llava:7b").picture


@pytest.mark.journey
def test_thinking_is_sent_as_its_vendor_takes_it() -> None:
    for row in ROWS.values():
        if row.vendor == "google" and row.thinking:
            google_types.ThinkingConfig.model_validate(dict(row.thinking))
            assert row.effort is None
        if row.vendor == "anthropic":
            assert row.thinking is None or set(row.thinking) == {"type"}
            assert row.effort in {None, "low"}
        if row.vendor == "openai_compatible":
            assert row.thinking is None and row.effort in {None, "none", "low"}


def test_the_page_is_written_from_the_table_and_keeps_what_is_written_by_hand() -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert page == generate.render_models_docs(generate.by_hand(page)), "python -m docs.generate"
    page = generate.render_models_docs("\n## Measured\n\n40 tokens/s\n")
    assert generate.render_models_docs(generate.by_hand(page)) == page
