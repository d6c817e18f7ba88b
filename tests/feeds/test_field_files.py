"""A file of any source gives the true bars, or a refusal that names the file and what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cases import cases
from tests.feeds.field_files import FILES, STEP, TIMEFRAME, TRUTH, FieldFile
from tests.worlds.price_series import times_of
from torra.errors import ConfigError, DataUnavailable
from torra.feeds import door
from torra.feeds.csv_file import read_bars

READ = [file for file in FILES if not file.says]
REFUSED = [file for file in FILES if file.says]


def admitted(file: FieldFile, folder: Path) -> pd.DataFrame:
    """Return the bars of a file as the reader and the door leave them."""
    path = folder / f"{file.name.replace(' ', '_')}{file.suffix}"
    path.write_bytes(file.content)
    frame = read_bars(path, clock=file.clock)
    end = times_of(frame)[-1].to_pydatetime() + STEP
    checked = door.check(frame, TIMEFRAME, as_of=end, minimum=1)
    checked.attrs = frame.attrs
    return checked


def test_the_corpus_has_sixty_files_of_different_names() -> None:
    assert len({file.name for file in FILES}) == len(FILES)
    assert min(len(READ), len(REFUSED)) >= 30


@cases("file", READ, ids=lambda file: file.name)
def test_a_file_gives_the_true_bars(file: FieldFile, tmp_path: Path) -> None:
    found = admitted(file, tmp_path)
    assert list(times_of(found)) == list(times_of(TRUTH))
    prices = ["open", "high", "low", "close"]
    assert np.array_equal(found[prices].to_numpy(), TRUTH[prices].to_numpy())
    volume = TRUTH["volume"] if file.volume else 0.0 * TRUTH["volume"]
    assert list(found["volume"]) == list(volume)
    assert file.shape in found.attrs["shape"]


@cases("file", REFUSED, ids=lambda file: file.name)
def test_a_file_that_is_wrong_is_refused_by_what_is_wrong(file: FieldFile, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, DataUnavailable)) as refused:
        admitted(file, tmp_path)
    assert file.says in str(refused.value)
    assert "\n" not in str(refused.value)
