"""The drawings of reports and pages are those of the goldens."""

from __future__ import annotations

from tests.golden import parts


def test_the_drawings_are_as_in_the_goldens() -> None:
    parts.check("drawings")
