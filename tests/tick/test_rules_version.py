"""A record carries the version of the rules that made it; changed outcomes want another version."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
import talib

from tests.worlds import rule_outcomes
from tests.worlds.rule_outcomes import DIGITS, digests, golden, made_with, outcomes
from torra.tick import record
from torra.tick.rules_version import RULES, RULES_VERSION

REMEDY = (
    "the same inputs come to something else in: {parts}. If that is meant, add a row to RULES in "
    "torra/tick/rules_version.py and note the outcomes: python -m tests.worlds.rule_outcomes"
)


@pytest.fixture(scope="module")
def found() -> dict[str, list[Any]]:
    return outcomes()


def changed(found: dict[str, list[Any]]) -> set[str]:
    """Return the parts whose outcomes are not those that are noted of this version."""
    noted = golden()[str(RULES_VERSION)]
    # The last bits of a number are the libraries': of others only what a person could see counts.
    bits = noted["made_with"] == made_with()
    now = digests(found) if bits else digests(found, DIGITS)
    then = noted["exact" if bits else "rounded"]
    return {part for part in now | then if now.get(part) != then.get(part)}


def test_the_outcomes_of_the_rules_are_those_of_their_version(
    found: dict[str, list[Any]],
) -> None:
    parts = changed(found)
    assert not parts, REMEDY.format(parts=", ".join(sorted(parts)))


def test_every_version_has_its_row_and_its_outcomes() -> None:
    assert set(golden()) == {str(number) for number in RULES}
    assert list(RULES) == list(range(1, RULES_VERSION + 1))
    assert all(line and "\n" not in line for line in RULES.values())


def test_what_is_noted_of_a_version_is_never_noted_again() -> None:
    with pytest.raises(SystemExit, match="are noted and never change"):
        rule_outcomes.main()


def test_the_fixed_ticks_meet_every_part(found: dict[str, list[Any]]) -> None:
    """Without this equal digests would prove little."""
    actions = {told["action"] for told in found["risk checks"]}
    assert actions >= {"HOLD", "OPEN_BUY", "OPEN_SELL"}
    assert len({told["reason"] for told in found["risk checks"]}) > 3
    assert any(told["gate"]["multiplier"] < 1 for told in found["gate"])
    assert any(told["profit"] for told in found["paper bridge"])
    assert len({role for told in found["prompts"] for role in told}) > 8


def test_a_record_carries_the_version() -> None:
    assert record.versions()[record.RULES_NAME] == str(RULES_VERSION)


def test_a_record_carries_the_versions_of_what_computes_its_scores() -> None:
    told = record.versions()
    assert told["ta-lib"] == version("ta-lib")
    # The C library below the package has a version of its own.
    assert vars(talib)["__ta_version__"].decode().startswith(f"{told['ta-lib-c']} (")
