"""Options that several commands share, and that cost no import until one is given."""

from __future__ import annotations

from typing import Any

import click


class ModeName(click.ParamType[str]):
    """The name of a desk: a row of agent_config.MODES."""

    name = "mode"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; a click error that lists the modes for one that is none."""
        from agent_config import MODES  # noqa: PLC0415  pydantic costs a tenth of a second

        if value not in MODES:
            self.fail(f"{value!r} is no desk of agents; there are {', '.join(MODES)}", param, ctx)
        return str(value)
