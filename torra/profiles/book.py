"""Profile files: read, checked, compared, saved with a history, undone.

A save is a compare-and-set: it names the digest of the profile that it was made from, and changes
nothing when the file has another one by now. The file is written whole and renamed into place, so a
crash leaves the old one or the new one. Every state is kept as a numbered copy in
profiles/.history/NAME of the home, with its author, its time and what changed; undoing makes a new
entry. The shipped profiles are never written: saving one makes a file of its name in the home.

A save that is not allowed returns a `SaveResult` with the reason. Names and files that cannot be
used raise ConfigError. The caller decides who may loosen a guarded setting; torra.desk.roster
lets a running desk take a profile.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from agent_config import MODES
from instance_database import open_home
from torra.clock import iso
from torra.config import NAME, ROOT, DeskSettings, Instance, Profile, faults, read
from torra.desk.roster import fixed
from torra.errors import ConfigError, StoreUnavailable
from torra.evaluation.wording import listed
from torra.home import DESK, PRICES, has_database
from torra.profiles.fields import canonical, settings, shown
from torra.profiles.guard import Change, May, command_line, compare, loosening
from torra.profiles.idle import set_in_vain
from torra.profiles.ten import called
from torra.providers.prices import PriceList
from torra.regular_files import lies, open_regular, read_regular
from torra.whole_files import write_whole

DEVICES: Final = {"CON", "PRN", "AUX", "NUL"} | {
    f"{a}{n}" for a in ("COM", "LPT") for n in range(10)
}
"""Names that Windows keeps for devices, whatever comes after a dot."""

LARGEST_FILE: Final = 1 << 20
SHOWN_ENTRIES: Final = 50
"""Entries of a history that can be undone to."""

KEPT_ENTRIES: Final = 200
"""Entries of a history that are kept; older ones go."""

UNDO: Final = "torra profile undo {} {}"
"""What to type where putting an entry back would loosen."""

Propose = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Makes new values of a profile's present ones."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A profile as it lies on the disk; of a broken one `profile` is None and `trouble` says why.

    `digest` distinguishes the states of a file, those of a broken file too.
    """

    name: str
    path: Path
    shipped: bool
    profile: Profile | None
    digest: str
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class SettingFault:
    """What is wrong with a setting; `name` is "" where no single setting is to blame."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One state of a profile in its history. `changes` are against the state before."""

    number: int
    at: str
    actor: str
    action: str
    digest: str
    changes: Sequence[Mapping[str, Any]]
    values: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return it for programs, without its values."""
        return {name: value for name, value in asdict(self).items() if name != "values"}


@dataclass(frozen=True, slots=True)
class SaveResult:
    """The result of a check or a save; only one that is `saved` changed something.

    `profile` is None where there are faults. `changes` are those that were wished; for a conflict,
    those that somebody else made meanwhile. `idle` are the settings without effect that it sets, by
    name, each in a sentence. `command` is what to type where the command line is needed.
    """

    outcome: Literal["valid", "saved", "unchanged", "conflict", "invalid", "scope", "loosens"]
    reason: str
    digest: str
    before: str = ""
    number: int = 0
    profile: Profile | None = None
    changes: tuple[Change, ...] = ()
    faults: tuple[SettingFault, ...] = ()
    warnings: tuple[str, ...] = ()
    idle: Mapping[str, str] = field(default_factory=dict)
    command: str = ""


class ProfileBook:
    """The profiles of a home, with their history.

    `exclusive` keeps other processes out while a file changes (the database's transaction).
    `desk_here` means that the desk runs in this process: then a missing key is a fault, elsewhere
    only a warning.
    """

    def __init__(
        self,
        home: Path,
        desk: DeskSettings,
        *,
        now: Callable[[], datetime],
        exclusive: Callable[[], AbstractContextManager[None]] = nullcontext,
        environment: Mapping[str, str] | None = None,
        desk_here: bool = False,
    ) -> None:
        self.home = home
        self.folder = home / "profiles"
        self._desk = desk
        self.now = now
        self._exclusive = exclusive
        self._variables = os.environ if environment is None else environment
        self._desk_here = desk_here

    # --- reading ----------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return every profile that exists or that an instance names, sorted."""
        names = {instance.profile for instance in self._desk.instances}
        for folder in (self.folder, ROOT / "profiles"):
            with suppress(OSError):
                names |= {path.stem for path in folder.iterdir() if path.suffix == ".json"}
        return sorted(name for name in names if usable(name))

    def users(self, name: str) -> tuple[Instance, ...]:
        """Return the instances that use a profile."""
        return tuple(item for item in self._desk.instances if item.profile == name)

    def read(self, name: str) -> Loaded:
        """Read a profile; raises ConfigError for a name that is not allowed or not there."""
        own = self.path(name)
        shipped = ROOT / "profiles" / f"{name}.json"
        path = own if lies(own) or not shipped.exists() else shipped
        if not lies(path):
            if not self.users(name):
                raise ConfigError(
                    f"there is no profile {name}; there are {', '.join(self.names())}"
                )
            return Loaded(name, own, False, None, "missing", f"there is no file {own}")
        try:
            profile = read(Profile, path)
        except ConfigError as error:
            return Loaded(name, path, path == shipped, None, _digest_of_bytes(path), str(error))
        return Loaded(name, path, path == shipped, profile, profile.digest())

    def path(self, name: str) -> Path:
        """Return where a profile of the home lies; raises ConfigError for a name not allowed."""
        if not usable(name):
            raise ConfigError(
                f"{name[:60]!r} is no name for a profile: use letters, digits, dot, dash and "
                "underscore, 32 at most, beginning with a letter or a digit"
            )
        path = self.folder / f"{name}.json"
        # A link would let a page write a file outside the home.
        if path.resolve().parent != self.folder.resolve():
            raise ConfigError(f"{path} leads out of its folder: put the file itself there")
        return path

    def history(self, name: str, limit: int = SHOWN_ENTRIES) -> list[HistoryEntry]:
        """Return the newest states of a profile, newest first, without broken ones."""
        numbers = sorted(self._numbers(name), reverse=True)[:limit]
        return [entry for number in numbers if (entry := self.entry(name, number))]

    def entry(self, name: str, number: int) -> HistoryEntry | None:
        """Return one state of the history; None when it is not there or broken."""
        try:
            row = json.loads(read_regular(self._entry_path(name, number)))
            return HistoryEntry(number, values=row.pop("profile"), **row)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def state(self, name: str, number: int) -> HistoryEntry:
        """Return a state of the history that can be put back; raises ConfigError without one."""
        for entry in self.history(name):
            if entry.number == number:
                return entry
        raise ConfigError(f"the history of {name} has no entry {number}: see its newest 50")

    # --- checking ---------------------------------------------------------------------------------

    def check(self, name: str, values: Any) -> SaveResult:
        """Check values against the models and against every instance that uses the profile."""
        now = self.read(name)
        base = self._base(now)
        try:
            profile = Profile.model_validate(values)
        except ValidationError as error:
            names = _setting_names(base) if base else set()
            return _invalid(now, [
                SettingFault(_blamed(place, names), text) for place, text in faults(Profile, error)
            ])  # fmt: skip
        after = canonical(profile)
        changes = compare(base, after) if base else ()
        objections, warnings = self._fits(name, profile, now.profile)
        idle, names = set_in_vain(profile), _setting_names(after)
        # Several instances may object in the same words.
        problems = [
            SettingFault(_setting_in(text, names), text) for text in dict.fromkeys(objections)
        ]
        valid = SaveResult("valid", "", now.digest, profile=profile)
        return replace(
            _invalid(now, problems) if problems else valid, changes=changes, idle=idle,
            warnings=(*_along(profile.agents.mode, changes), *warnings, *idle.values()),
        )  # fmt: skip

    def _fits(
        self, name: str, profile: Profile, before: Profile | None
    ) -> tuple[list[str], list[str]]:
        """Return what keeps a profile's instances from running with it, and warnings."""
        from torra.desk import wiring  # noqa: PLC0415  the pages load the desk's parts only when asked to
        from torra.desk.models.access import check_models  # noqa: PLC0415

        objections: list[str] = []
        warnings: list[str] = []
        users = self.users(name)
        for instance in users:
            try:
                wiring.check_profile(profile, instance, name)
            except ConfigError as error:
                objections.append(str(error))
        if users:
            try:
                check_models(self.home, profile.agents, self._variables)
            except ConfigError as error:
                (objections if self._desk_here else warnings).append(str(error))
            warnings += fixed(before, profile, users) if before else []
        return objections, [*warnings, *self._costs(before, profile, users)]

    def _costs(
        self, before: Profile | None, after: Profile, users: Sequence[Instance]
    ) -> Iterator[str]:
        """Yield why a profile's desk never runs, and what changed agents are expected to cost.

        Other checks tell of what is broken.
        """
        from torra.desk import costs  # noqa: PLC0415  as above
        from torra.desk.models.expected_cost import CostBasis, sentence  # noqa: PLC0415

        with suppress(ConfigError, ValueError):
            prices = PriceList.read(self.home / PRICES)
            if why := costs.never_runs(prices, after.agents, self._variables):
                yield why
        if before is not None and before.agents == after.agents:
            return
        with suppress(ConfigError, StoreUnavailable), ExitStack() as stack:
            database = None
            if has_database(self.home):  # a question makes no database
                database = stack.enter_context(closing(open_home(self.home)))
            prices = PriceList.read(self.home / PRICES)
            basis = CostBasis.of(database, users, prices, self._variables)
            expected = basis.expected(after)
            if before is None or expected != basis.expected(before):
                yield sentence(expected)

    # --- changing ---------------------------------------------------------------------------------

    def save(
        self, name: str, propose: Propose, *, digest: str | None, may: May, actor: str,
        action: str = "save", command: str = "",
    ) -> SaveResult:  # fmt: skip
        """Save what is proposed, if the file still has that digest (None: whichever it has).

        `command` is what to type where it would loosen, of an action that has its own. Raises
        ConfigError for a file that cannot be written.
        """
        now = self.read(name)
        if digest is not None and digest != now.digest:
            return self._conflict(now, digest)
        base = self._base(now)
        wish = self.check(name, propose(base or {}))
        if wish.profile is None:
            return wish
        answer = self.allowed(name, wish, may, blind=base is None, command=command)
        if answer.outcome != "saved":
            return answer
        # Of a broken file nothing can be equal: it is written anew also without a change.
        if now.profile and not wish.changes:
            return _unchanged(now)
        with self._exclusive():
            # Read again under the lock: another process may have saved since the check.
            fresh = self.read(name)
            if fresh.digest != now.digest:
                return self._conflict(fresh, now.digest)
            number = self._store(now, wish.profile, wish.changes, actor, action)
        return replace(answer, before=now.digest, digest=wish.profile.digest(), number=number)

    def undo(
        self, name: str, number: int, *, digest: str | None, may: May, actor: str
    ) -> SaveResult:
        """Save the whole state of an entry again, as a new entry; raises ConfigError without one.

        The rules of any change hold: where it would loosen, `command` does it on the command line.
        """
        entry = self.state(name, number)
        return self.save(
            name, lambda _: entry.values, digest=digest, may=may, actor=actor,
            action=f"undo to {number}", command=UNDO.format(name, number),
        )  # fmt: skip

    def preview_undo(
        self, name: str, entries: Iterable[HistoryEntry], may: May
    ) -> Iterator[SaveResult]:
        """Yield what putting each entry back would come to for a caller; nothing is saved.

        The `outcome` is "saved" where the caller may, else `reason` says why not.
        """
        now = self.read(name)
        base = self._base(now)
        for entry in entries:
            try:
                profile = Profile.model_validate(entry.values)
            except ValidationError as error:
                place, text = faults(Profile, error)[0]
                where = f"{'.'.join(place)}: {text}" if place else text
                reason = f"This entry does not fit this version: {where}"
                yield SaveResult("invalid", reason, now.digest)
                continue
            changes = compare(base, canonical(profile)) if base is not None else ()
            if base is not None and not changes:
                yield _unchanged(now)
                continue
            wish = SaveResult("valid", "", now.digest, changes=changes)
            by_hand = UNDO.format(name, entry.number)
            yield self.allowed(name, wish, may, blind=base is None, command=by_hand)

    def allowed(
        self, name: str, wish: SaveResult, may: May, *, blind: bool = False, command: str = ""
    ) -> SaveResult:
        """Return a wish as "saved" where a caller may make its changes, else with why it may not.

        `blind` means that nobody knows what the file held.
        """
        loose = loosening(wish.changes)
        guarded = [change for change in wish.changes if change.guarded]
        if may == "loosen" or not (blind or loose or (guarded and may == "harmless")):
            return replace(wish, outcome="saved")
        if not (blind or loose):
            reason = f"Only an administrator may change {_names(guarded)}."
            return replace(wish, outcome="scope", reason=reason)
        reason, usual = (
            f"Loosening {_names(loose)} needs the command line.", command_line(name, loose)
        )  # fmt: skip
        if blind:
            reason = (
                f"{name} is broken and has no history, so nobody can tell what this would loosen. "
                "Mend the file, or use the command line"
            )
            usual = f"torra profile check {name}"
        return replace(wish, outcome="loosens", reason=reason, command=command or usual)

    def _conflict(self, now: Loaded, digest: str) -> SaveResult:
        """Return a conflict, with what changed since the state of a digest, as far as known."""
        old = next((item for item in self.history(now.name) if item.digest == digest), None)
        changes = compare(old.values, canonical(now.profile)) if old and now.profile else ()
        return SaveResult(
            "conflict", f"Somebody changed {now.name} meanwhile. Load it again.",
            now.digest, digest, changes=changes,
        )  # fmt: skip

    def _base(self, now: Loaded) -> Mapping[str, Any] | None:
        """Return the values that a change is compared with: of a broken file its last good ones."""
        if now.profile is not None:
            return canonical(now.profile)
        newest = self.history(now.name, 1)
        return newest[0].values if newest else None

    def _store(
        self, now: Loaded, profile: Profile, changes: Iterable[Change], actor: str, action: str
    ) -> int:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            newest = self.history(now.name, 1)
            # A file edited by hand gets an entry of its own first: an undo can bring it back.
            if now.profile and (not newest or newest[0].digest != now.digest):
                changes_by_hand = (
                    compare(newest[0].values, canonical(now.profile)) if newest else ()
                )
                action_before = "shipped" if now.shipped else "found on the disk"
                self._keep(now.name, now.profile, changes_by_hand, "a file", action_before)
            # History before file: a crash leaves an entry too many, never a state without one.
            number = self._keep(now.name, profile, changes, actor, action)
            write_whole(self.path(now.name), as_json(canonical(profile)).encode())
        except OSError as error:
            raise ConfigError(
                f"cannot write {now.name}: {error.filename}: {error.strerror}"
            ) from error
        return number

    def _keep(
        self, name: str, profile: Profile, changes: Iterable[Change], actor: str, action: str
    ) -> int:
        numbers = self._numbers(name)
        number = max(numbers, default=0) + 1
        path = self._entry_path(name, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        entry = {
            "at": iso(self.now().replace(microsecond=0)),
            "actor": actor,
            "action": action,
            "digest": profile.digest(),
            "changes": [change.as_dict() for change in changes],
            "profile": canonical(profile),
        }
        write_whole(path, as_json(entry).encode())
        # The new entry is not among `numbers`, hence the + 1.
        for old in sorted(numbers)[: -KEPT_ENTRIES + 1]:
            self._entry_path(name, old).unlink(missing_ok=True)
        return number

    def _numbers(self, name: str) -> list[int]:
        # Only for its refusal: a bad name must not become part of a path.
        self.path(name)
        with suppress(OSError):
            stems = [path.stem for path in (self.folder / ".history" / name).glob("*.json")]
            # isascii: int() takes digits of other scripts as well.
            return [int(stem) for stem in stems if stem.isascii() and stem.isdigit()]
        return []

    def _entry_path(self, name: str, number: int) -> Path:
        return self.folder / ".history" / name / f"{number}.json"


def usable(name: str) -> bool:
    """Return whether a profile may have this name, on every system."""
    return bool(
        NAME.fullmatch(name)
        and not name.endswith(".")
        and name.partition(".")[0].upper() not in DEVICES
    )


def desk_rows(home: Path, desk: DeskSettings, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what the pages show of desk.json: instances and channels, a key only as set or not."""
    path = home / DESK
    return {
        "path": str(path.absolute()),
        "shipped": not path.exists(),
        "instances": [{**item.model_dump(mode="json"), "id": item.id} for item in desk.instances],
        "channels": [
            {"name": name, **item.model_dump(mode="json"),
             "key_set": bool(environment.get(item.key_variable))}
            for name, item in desk.channels.items()
        ],
    }  # fmt: skip


def as_json(values: Mapping[str, Any]) -> str:
    """Write values as a file has them."""
    return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _invalid(now: Loaded, problems: Sequence[SettingFault]) -> SaveResult:
    reason = "; ".join(fault.text for fault in problems)
    return SaveResult("invalid", reason, now.digest, faults=tuple(problems))


def _unchanged(now: Loaded) -> SaveResult:
    return SaveResult("unchanged", "Nothing differs from what is saved.", now.digest)


def _names(changes: Iterable[Change]) -> str:
    """Return settings as a trader and as the file calls them: Risk per trade (risk....)."""
    return listed([f"{called(change.name)} ({change.name})" for change in changes])


def _digest_of_bytes(path: Path) -> str:
    with suppress(OSError), open_regular(path) as file:
        # A broken file has no profile to hash; its bytes tell one state from another.
        return f"broken-{hashlib.sha256(file.read(LARGEST_FILE)).hexdigest()[:16]}"
    return "unreadable"


def _along(mode: str, changes: Iterable[Change]) -> list[str]:
    """Return in sentences what else changes with a new mode; nothing where the mode stays."""
    after = {change.name: shown(change.after) for change in changes}
    names = [f"agents.{name}" for name in MODES[mode].defaults.get("agents", {})]
    words = [f"{name} to {after[name]}" for name in names if name in after]
    if "agents.mode" not in after or not words:
        return []
    earns = f" A {mode} earns its influence first; agents.influence full lets it count now."
    first = earns if after.get("agents.influence") == "earned" else ""
    return [f"Mode {mode} also changes {listed(words)}.{first}"]


def _setting_names(values: Mapping[str, Any]) -> set[str]:
    return {item.name for item in settings(values)}


def _blamed(place: tuple[str, ...], names: set[str]) -> str:
    """Return the setting in which a fault's place lies."""
    for size in range(len(place), 0, -1):
        if (name := ".".join(place[:size])) in names:
            return name
    return ""


def _setting_in(text: str, names: set[str]) -> str:
    """Return the setting that a sentence names, the longest name if several fit."""
    return max((name for name in names if "." in name and name in text), key=len, default="")
