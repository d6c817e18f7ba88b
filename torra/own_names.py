"""Whether the names that Torra puts beside itself are still its own.

Torra installs a package `agents` and the modules of the root, so that a host may import them. Who
installs another of the same name hides Torra's or is written over it: PyPI's openai-agents brings a
package `agents`, too. Then an import fails somewhere deep, or two programs are mixed; here it is
told in one line. Nothing is imported.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

from torra.errors import ConfigError

OVERLAY: Final = "agents"
"""Torra's package of agents: its `__init__.py` is empty, which tells it from another one."""

NAMES: Final = (
    OVERLAY, "agent_config", "agent_framework", "ath_calculator", "instance_database",
    "news_collector", "scoring_rubric", "signal_bridge", "technical_calculator", "torra_trader",
)  # fmt: skip

ROOT: Final = Path(__file__).resolve().parents[1]
"""The folder in which all of them stand, with `torra` itself."""


def check_names() -> None:
    """Raise ConfigError where a name of Torra's leads to something else."""
    for name in NAMES:
        place = _place(name)
        if (
            place is None
            or place.parent != ROOT
            or (name == OVERLAY and (place / "__init__.py").read_bytes().strip())
        ):
            raise ConfigError(_fault_text(name, place))


def _place(name: str) -> Path | None:
    """Return the file of a module, or the folder of a package; None where there is none."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module that somebody made by hand
        return None
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).resolve()
    return file.parent if file.name == "__init__.py" else file


def _fault_text(name: str, place: Path | None) -> str:
    kind = "package" if name == OVERLAY else "module"
    where = f"the {kind} `{name}` at {place}" if place else f"the {kind} `{name}`"
    if name == OVERLAY:
        return (
            f"{where} is not Torra's; PyPI's openai-agents installs one of the same name: give "
            "Torra a Python environment of its own, or uninstall openai-agents and install Torra "
            "again"
        )
    return f"{where} is not Torra's; give Torra a Python environment of its own, or rename yours"
