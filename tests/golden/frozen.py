"""Time and chance that stand still, so that two runs write the same text.

Everything in Torra that reads real time or draws a token does so through `torra.clock`: here real
time is NOW, no second passes for PATIENCE real seconds (after which waits end as always, and the
block is an error), and tokens are numbered. `masked` takes what is left of a machine out of a text.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, tzinfo
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from tests.conftest import KEPT_OUT
from torra import clock

NOW: Final = datetime(2021, 11, 12, 9, 30, tzinfo=UTC)
"""Real time of a frozen run, two days after the desks of the tests begin."""

PATIENCE: Final = 600.0

SURROUNDINGS: Final = {"COLUMNS": "120", "NO_COLOR": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8"}


WORDING: Final = r"\b(rubric(?:\": ?\"| \| ))[0-9a-f]{12}\b"
"""The version of a desk's prompts: any edit of their files is another one."""

PACKAGES: Final = (
    "python|flask|numpy|pandas|pandas-ta-classic|sqlite-utils|apscheduler|pydantic|click|waitress"
    "|anthropic|google-genai|openai|genai-prices|finnhub-python|sqlite|[Tt]orra"
)
"""Whose versions differ between machines."""


class _AnyDatetime(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


class _Still(datetime, metaclass=_AnyDatetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return NOW.astimezone(tz)


@contextmanager
def frozen() -> Iterator[None]:
    """Freeze real time, tokens, the environment and the umask until the end of the block."""
    began, tokens = time.monotonic(), count(1)
    still = SimpleNamespace(
        monotonic=lambda: began + max(0.0, time.monotonic() - began - PATIENCE),
        sleep=time.sleep,
    )
    numbered = SimpleNamespace(token_hex=lambda size=32: f"{next(tokens):0{2 * size}x}")
    clean = {name: value for name, value in os.environ.items() if not KEPT_OUT.search(name)}
    with (
        patch.dict(os.environ, {**clean, **SURROUNDINGS}, clear=True),
        patch.multiple(clock, datetime=_Still, time=still, secrets=numbered),
        ExitStack() as end,
    ):
        end.callback(os.umask, os.umask(0o022))
        yield
    if time.monotonic() - began > PATIENCE:
        raise AssertionError(f"time went on: the block took more than {PATIENCE:.0f} s")


def masked(text: str, *folders: Path) -> str:
    """Return a text without folders (`<home>`, `<home2>`), loopback ports and process numbers."""
    for number, folder in enumerate(folders, 1):
        text = text.replace(str(folder), f"<home{number if number > 1 else ''}>")
    text = re.sub(r"127\.0\.0\.1:\d{4,5}", "127.0.0.1:<port>", text)
    return re.sub(r"\bprocess \d+", "process <n>", text)


def versionless(text: str) -> str:
    """Return a text without the versions of packages and prompts."""
    text = re.sub(WORDING, r"\1<wording>", text)
    names = rf"\b({PACKAGES}|ta-lib|ta-lib-c)"
    return re.sub(names + r'(": "| | \| )\d+\.\d+[\w.]*', r"\1\2<version>", text)
