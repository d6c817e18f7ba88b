"""The two first files of a home, desk.json and a profile: put in place together, or neither.

`torra init` and the page that adds a symbol call `write`: each file is written beside its place,
read back by the models that will read it later, then renamed. A note in the home says what is under
way, so that the next `torra init` or `torra run` undoes what a kill or a power cut between the two
renames left (`recover`). A note that cannot have been written here moves and removes nothing:
ConfigError. What is left over must have names that the note tells, so nothing here is written by
`write_whole`.
torra.desk.setup.desk_plan decides what stands in the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torra.clock import token
from torra.errors import MALFORMED, ConfigError
from torra.home import INIT_NOTE
from torra.whole_files import sync_folder, write_synced

if TYPE_CHECKING:
    from torra.desk.setup.desk_plan import DeskPlan

SMALL: Final = re.compile(r"(?m)(?<=: )\d+(?:\.\d+)?e-\d+(?=,?$)")
"""A number that JSON writes with an exponent."""

DRAFTS: Final = {
    "draft": re.compile(r"(profiles/[\w.-]+\.json)\.([0-9a-f]+)\.new"),
    "desk": re.compile(r"(desk\.json)\.([0-9a-f]+)\.new"),
}
"""Names that are written into the note: the file that is meant, and the digits of one run."""


def write(found: DeskPlan, *, force: bool = False) -> None:
    """Put both files in place, or neither; raises ConfigError.

    Without `force` files that are there already stay.
    """
    from torra.config import DeskSettings, Profile, read  # noqa: PLC0415

    if not force:
        refuse_overwriting(found.desk_path, found.profile_path)
    # The same digits in both names: by them `recover` knows a note of one run.
    mark = f"{token(4)}.new"
    desk, profile = (
        path.with_name(f"{path.name}.{mark}") for path in (found.desk_path, found.profile_path)
    )
    try:
        found.profile_path.parent.mkdir(parents=True, exist_ok=True)
        write_synced(profile, as_text(found.profile).encode())
        write_synced(desk, as_text(found.desk).encode())
        # As they lie on the disk: what a desk could not load must not get its name.
        read(Profile, profile)
        read(DeskSettings, desk)
        put_both(profile, found.profile_path, desk, found.desk_path)
    except OSError as error:
        raise ConfigError(
            f"cannot write {error.filename or found.desk_path}: {error.strerror}; nothing was "
            "changed"
        ) from error
    finally:
        for draft in (desk, profile):
            with suppress(OSError):
                draft.unlink(missing_ok=True)


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


def put_both(first: Path, first_place: Path, second: Path, second_place: Path) -> None:
    """Rename both; when the second cannot be, put the first place back as it was.

    The rename of the second decides. A note says what is under way until then, so that `recover`
    can undo what a kill or a power cut left half done.
    """
    home = second_place.parent
    kept, note = first.with_name(f"{first.name}.kept"), home / INIT_NOTE
    had = first_place.exists()
    try:
        if had:
            write_synced(kept, first_place.read_bytes())
        parts = {"draft": first, "profile": first_place, "kept": kept, "desk": second}
        told = {name: path.relative_to(home).as_posix() for name, path in parts.items()}
        write_synced(note, json.dumps({**told, "had": had}).encode())
        # The note must be on the disk before the first rename can be.
        _sync(home, first_place.parent)
        first.replace(first_place)
        try:
            # So must the first rename, before the second, which decides, can be.
            _sync(first_place.parent)
            second.replace(second_place)
        except OSError:
            _put_back(first_place, kept, had=had)
            raise
        # Both files are in place; a folder that cannot be synced is no failure any more.
        with suppress(OSError):
            _sync(home)
    finally:
        for left in (kept, note):
            with suppress(OSError):
                left.unlink(missing_ok=True)


def _put_back(place: Path, kept: Path, *, had: bool) -> None:
    """Undo a rename: the file that was kept returns, or, where there was none, the new one goes."""
    if not had:
        place.unlink(missing_ok=True)
    elif kept.exists():
        kept.replace(place)


def recover(home: Path) -> str:
    """Undo or end what a cut-off `torra init` left half done; return what was done, if anything.

    Until desk.json is in place neither file is, from then on both are. Raises ConfigError, and for
    a note that `torra init` cannot have written, which moves or removes nothing.
    """
    note = home / INIT_NOTE
    try:
        told = json.loads(note.read_text(encoding="utf-8"))
        names = [str(told[name]) for name in ("draft", "profile", "kept", "desk")]
        had = bool(told["had"])
    except FileNotFoundError:
        return ""
    except (OSError, *MALFORMED):  # the note itself was cut off: nothing had been moved yet
        names, had = [INIT_NOTE] * 4, False
    else:
        _refuse_foreign(note, *names)
    draft, profile, kept, desk = (home / name for name in names)
    # The draft of desk.json is renamed last: while it is there, the rename did not happen.
    half = desk != note and desk.exists()
    try:
        if half:
            _put_back(profile, kept, had=had)
        for left in (draft, kept, desk, note):  # the note last: killed here, this runs again
            left.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename}: {error.strerror}") from error
    return (
        "A torra init was cut off half-way: nothing of it was kept, type it again." if half else ""
    )


def _refuse_foreign(note: Path, draft: str, profile: str, kept: str, desk: str) -> None:
    """Raise ConfigError unless a note names what `put_both` would: what it names is removed."""
    first, second = DRAFTS["draft"].fullmatch(draft), DRAFTS["desk"].fullmatch(desk)
    ours = (first[1], f"{draft}.kept", first[2]) if first else None
    if second is None or ours != (profile, kept, second[2]):
        raise ConfigError(f"{note} is none that torra init wrote: look at it, then remove it")


def _sync(*folders: Path) -> None:
    for folder in folders:
        sync_folder(folder)
