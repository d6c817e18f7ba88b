"""Thousands of ticks and debates come to what they did; `make test` has the first of each mode."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.golden import many

DAILY = {"ticks": 4 * many.BLOCK, "debates": many.BLOCK}


def test_artefacts_have_the_digests_that_are_committed(scaled: Callable[..., int]) -> None:
    counts = {kind: scaled(count, DAILY[kind]) for kind, count in many.COUNTS.items()}
    try:
        differing = many.check(counts)
    except many.Other:
        pytest.skip("the digests are of other libraries, or of another machine")
    assert not differing, (
        f"{differing[0]} is the first of {len(differing)} blocks that differ: "
        f"python -m tests.golden.many --dump FOLDER --block {differing[0]} in both trees, and diff"
    )
