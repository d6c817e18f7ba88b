"""The two first files of a home: a profile, and desk.json, which names it.

`torra init` and the page that adds a symbol call `write`. desk.json comes last, so it never names a
profile that is not there: what a kill or a full disk between the two leaves is a profile more.
torra.desk.setup.desk_plan decides what stands in the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torra.errors import ConfigError
from torra.whole_files import write_whole

if TYPE_CHECKING:
    from torra.desk.setup.desk_plan import DeskPlan

SMALL: Final = re.compile(r"(?m)(?<=: )\d+(?:\.\d+)?e-\d+(?=,?$)")
"""A number that JSON writes with an exponent."""


def write(plan: DeskPlan, *, force: bool = False) -> None:
    """Write the profile and then desk.json; raises ConfigError naming the file that cannot be.

    Without `force` files that are there already stay, and nothing is written.
    """
    if not force:
        refuse_overwriting(plan.desk_path, plan.profile_path)
    for path, values in ((plan.profile_path, plan.profile), (plan.desk_path, plan.desk)):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, as_text(values).encode())
        except OSError as error:
            raise ConfigError(
                f"cannot write {path}: {error.strerror}; once that is mended, do it again "
                "(torra init asks for --force then)"
            ) from error


def refuse_overwriting(*paths: Path) -> None:
    """Raise ConfigError when one of the files exists."""
    for path in paths:
        if path.exists():
            raise ConfigError(f"{path} is there already: add --force to replace it")


def as_text(values: Mapping[str, Any]) -> str:
    """Write a settings file as JSON, without exponents."""
    # A person reads and edits this: 0.00001, not 1e-05.
    text = json.dumps(values, indent=2, allow_nan=False)
    return SMALL.sub(lambda found: format(Decimal(found[0]), "f"), text) + "\n"
