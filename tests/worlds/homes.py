"""The settings of a home, written as a person writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel


def profile_file(home: Path, profile: Any, name: str = "default") -> Path:
    """Write a profile, as an object or as what its file says; return the home."""
    (home / "profiles").mkdir(exist_ok=True)
    text = profile.model_dump_json() if isinstance(profile, BaseModel) else json.dumps(profile)
    (home / "profiles" / f"{name}.json").write_text(text, encoding="utf-8")
    return home


def desk_file(home: Path, *instances: dict[str, Any], **settings: Any) -> Path:
    """Write the settings of a desk of these instances; return the home."""
    told = {"instances": instances, **settings}
    (home / "desk.json").write_text(json.dumps(told), encoding="utf-8")
    return home
