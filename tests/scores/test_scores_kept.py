"""The scores of the shipped bars are those that are noted.

BTCUSD's are still those of version 7 of the rules, EURUSD's those of version 11, which changed the
momentum of 175 rows. Noted are the four scores of every 97th valid row, and a digest of all
components and scores, which holds where a machine rounds as the noting one did.
"""

from __future__ import annotations

import hashlib
import json
import platform
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agents.contracts import VECTORS
from technical_calculator import COMPONENTS, c_versions, score_frame
from tests import ROOT
from tests.worlds.price_series import SAMPLES, sample

NOTED: dict[str, Any] = json.loads(
    (ROOT / "tests" / "scores" / "golden" / "version_11.json").read_text(encoding="utf-8")
)
STEP = 97
EDGE = 1.01e-8
"""One unit of the last decimal: where a rounded value may tip over."""


@cache
def scored(name: str) -> pd.DataFrame:
    frame = score_frame(sample(name))
    return frame[frame["valid"]]


def digest(frame: pd.DataFrame) -> str:
    names = [*(name for weights in COMPONENTS.values() for name in weights), *VECTORS]
    # Whole numbers of the last decimal: the same whatever the layout of the frame is.
    values = np.rint(frame[names].to_numpy() * 1e8).astype("<i8")
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_scores_are_those_that_are_noted(name: str) -> None:
    now, then = scored(name)[list(VECTORS)].to_numpy()[::STEP], np.array(NOTED["scores"][name])
    np.testing.assert_allclose(now, then, rtol=0, atol=EDGE)
    assert len(now) > 10 and np.mean(now != then) < 0.01


@pytest.mark.parametrize("name", SAMPLES)
def test_on_the_same_kind_of_machine_not_one_is_another(name: str) -> None:
    made_with = {"machine": platform.machine(), "numpy": np.__version__, **c_versions()}
    if made_with != NOTED["made_with"]:
        pytest.skip("the last bits of a number are another machine's")
    assert digest(scored(name)) == NOTED["digests"][name]
