"""The table of a job's states: what may follow what, and what is final."""

from __future__ import annotations

from itertools import product

import pytest

from tests.cases import cases
from torra.jobs import states

MAY = {
    ("queued", "running"),
    ("queued", "cancelled"),
    ("running", "retrying"),
    ("running", "done"),
    ("running", "error"),
    ("running", "cancelled"),
    ("retrying", "running"),
    ("retrying", "cancelled"),
}


@cases("step", list(product(states.TRANSITIONS, repeat=2)))
def test_only_the_steps_of_the_table_are_taken(step: tuple[str, str]) -> None:
    if step in MAY:
        states.check_transition(*step)
    else:
        with pytest.raises(ValueError, match=f"{step[0]} cannot become {step[1]}"):
            states.check_transition(*step)
