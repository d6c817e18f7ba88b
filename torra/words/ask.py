"""The codes of Ask, each with its word and meaning: ask.csv.

Page, command and docs read these rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agents.features import rows_of
from torra.words.radar import CodeWords

ASK_CODES: Final[Mapping[str, dict[str, CodeWords]]] = defaultdict(dict)
"""Every code by its table: modes, qualities, what is unknown, requests, why no model was asked."""

for _row in rows_of(Path(__file__).with_name("ask.csv")):
    ASK_CODES[_row["table"]][_row["code"]] = CodeWords(_row["word"], _row["meaning"])
