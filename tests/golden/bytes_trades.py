"""The trades of replays of every mode, as `torra replay` writes them: every number as its repr.

A day of the sample, cut off at its end, runs through the arms of all desks with thresholds that
are often reached, and with all three costs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from tests.golden.exact import with_machine
from torra.commands.command_line import main
from torra.config import ROOT

ARMS: Final = "l1,budget,full,firm,swarm"
BEGIN, END = "2021-11-10", "2021-11-11"
PROFILE: Final[dict[str, Any]] = {
    "thresholds": {"buy": 0.15, "sell": 0.15},
    "on_opposite": "reverse",
    "risk": {"capital": 100_000.0},
}


def make(folder: Path) -> dict[str, str]:
    """Return the file of trades."""
    words = ["--arms", ARMS, "--from", BEGIN, "--to", END, "--workers", "1", "--name", "day"]
    for name in ("M15", "H1"):
        lines = (ROOT / "sample_data" / f"BTCUSD_{name}.csv").read_text().splitlines(True)
        bars = folder / f"BTCUSD_{name}.csv"
        bars.write_text("".join([lines[0], *(line for line in lines[1:] if line < END)]))
        words += ["--bars", str(bars)]
    profile = folder / "profile.json"
    profile.write_text(json.dumps(PROFILE))
    words += ["--clock", "utc", "--costs", "15,2,5", "--profile", str(profile)]
    result = CliRunner().invoke(main, ["--home", str(folder), "replay", "BTCUSD", *words])
    assert result.exit_code == 0, result.stderr
    content = (folder / "replays" / "day" / "trades.csv").read_bytes().decode("utf-8")
    return with_machine({"trades.csv": content})
