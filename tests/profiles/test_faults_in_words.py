"""What a settings model refuses is told in words, whatever is wrong with it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from tests.cases import cases
from torra.config import validate
from torra.errors import REQUIREMENTS, ConfigError

RAW = ("should", "valid", "unable to parse", "Field required", "greater than", "less than")
"""Words of the library, which no person has asked for."""


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    side: Literal["BUY", "SELL"] = "BUY"


class Odd(BaseModel):
    """A field for each kind of fault."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    whole: Annotated[int, Field(ge=1, le=9)] = 1
    number: Annotated[float, Field(gt=0, lt=1)] = 0.5
    yes: bool = True
    name: Annotated[str, Field(min_length=2, max_length=4, pattern="^[a-z]+$")] = "ab"
    names: Annotated[list[str], Field(min_length=1, max_length=2)] = ["a"]
    since: AwareDatetime | None = None
    inner: Inner = Inner()
    needed: int


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"whole": 0}, "whole: must be 1 or more (found 0)"),
    ({"whole": 10}, "whole: must be 9 at most (found 10)"),
    ({"whole": 1.5}, "whole: must be a whole number (found 1.5)"),
    ({"whole": "x"}, "whole: must be a whole number (found 'x')"),
    ({"number": 0}, "number: must be above 0 (found 0)"),
    ({"number": 1}, "number: must be below 1 (found 1)"),
    ({"number": float("inf")}, "number: must be a finite number (found inf)"),
    ({"yes": "perhaps"}, "yes: must be true or false (found 'perhaps')"),
    ({"name": "a"}, "name: must have 2 characters or more (found 'a')"),
    ({"name": "abcde"}, "name: must have 4 characters at most (found 'abcde')"),
    ({"name": "A1"}, "name: is not written as it must be (^[a-z]+$) (found 'A1')"),
    ({"name": 1}, "name: must be a text (found 1)"),
    ({"names": []}, "names: must have 1 entries or more (found [])"),
    ({"names": "a"}, "names: must be a list (found 'a')"),
    ({"since": datetime(2026, 1, 1)}, "since: must be a time with its zone"),  # noqa: DTZ001
    ({"since": "soon"}, "since: must be a time, as 2024-05-01T10:00Z (found 'soon')"),
    ({"inner": {"side": "HOLD"}}, "inner.side: must be 'BUY' or 'SELL' (found 'HOLD')"),
    ({"inner": 3}, "inner: must be an object, in braces (found 3)"),
]


@cases(("values", "said"), FAULTS, ids=[said for _, said in FAULTS])
def test_a_fault_is_told_in_words(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(Odd, {"needed": 1, **values}, "x.json")
    told = str(caught.value)
    assert told.startswith(f"x.json: {said}")
    assert not [word for word in RAW if word in told]


def test_what_is_missing_is_told_without_what_is_there() -> None:
    with pytest.raises(ConfigError) as caught:
        validate(Odd, {}, "x.json")
    assert str(caught.value) == "x.json: needed: is missing"


def test_every_sentence_has_what_it_names() -> None:
    assert not [said for said in REQUIREMENTS.values() if "should" in said or said.endswith(".")]
