"""Writes torra/desk/models/representative_tick.json: what a tick of the sample sees, of bars alone.

A desk runs some closes of the sample as a swarm, whose evidence holds that of every other mode, so
that its memory is filled. A test compares the file with what is rendered here; `python -m
docs.generate` writes it anew.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Final

from agent_config import AgentSettings
from tests.worlds import desks
from torra.config import ROOT, Profile

PAGE: Final = ROOT / "torra" / "desk" / "models" / "representative_tick.json"
CLOSES: Final = 24
KEPT: Final = (
    "symbol", "timeframe", "bar_time", "as_of", "close", "atr", "l1", "notes", "memory", "features",
)  # fmt: skip
"""What the prompts of a tick are made of."""


def render() -> str:
    """Return the file: the newest M15 tick after CLOSES closes."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Profile(agents=AgentSettings(mode="swarm"))
        desk = desks.open_desk(Path(folder), profile=profile)
        try:
            desks.open_for_work(desk)
            for _ in range(CLOSES):
                desks.step(desk)
            record = desk.database.latest_tick("BTCUSD", "M15") or {}
        finally:
            desk.close()
    return json.dumps({name: record[name] for name in KEPT}, indent=1) + "\n"
