"""What the program has for those outside of it, by name: a removal is a line that is gone.

Names stand here as they are today: what is renamed is a difference too.
"""

from __future__ import annotations

from pathlib import Path

from scripts import inventory


def make(folder: Path) -> dict[str, str]:
    """Return the inventory."""
    return {"inventory.txt": "\n".join(inventory.lines(folder))}
