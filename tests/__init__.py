"""The tests of Torra, by room as `torra/` is; tests/README.md is the map."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
"""The folder of the project."""
