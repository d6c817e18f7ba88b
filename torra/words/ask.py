"""The codes of Ask, each with its word and meaning: ask.csv.

Page, command and docs read these rows.
"""

from __future__ import annotations

from collections import ChainMap
from pathlib import Path
from typing import Final

from torra.words.radar import CODES, code_tables

ASK_CODES: Final = code_tables(Path(__file__).with_name("ask.csv"))
"""Every code by its table: modes, qualities, what is unknown, requests, why no model was asked."""

TRIGGERS: Final = ChainMap(ASK_CODES["trigger"], *CODES.values())
"""Why no model chose; what a failed request is called is told by the radar."""
