"""The screens Profiles and Profile: every setting, its check, its difference, its history.

A page shows the file as it is on the disk, and the profile that each instance runs with. A save
names the digest of the file that the page was made from. If the save is refused, the answer repeats
what was entered and gives the command to type instead. A change of a guarded setting needs the
scope admin; one that loosens a guarded setting needs the command line, whoever asks.
The saved file is handed to the running desk only if it changes nothing there that this visitor may
not change: the file may hold somebody's changes for the next start, and the page shows where it
differs from what runs. What the running desk cannot take at once waits for its next start, and the
answer says so. Pages without the home of a desk say so too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.access import visitor
from torra.dashboard.doors.routes import Api, Command, Route
from torra.dashboard.record.shown import WATCH_ONLY
from torra.dashboard.settings import handover, main_settings, profile_form, tried, trying
from torra.dashboard.settings.history_lines import THEN, ProfileChange, entry_told
from torra.dashboard.settings.profile_form import ChangeLine, CheckLines, Values
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.commanding import CommandOutcome, command, given, wants_json
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.desk.promotion import watch_only
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.profiles.book import (
    HistoryEntry,
    Loaded,
    ProfileBook,
    SaveResult,
    SettingFault,
    desk_rows,
)
from torra.profiles.fields import DEFAULT, EXACT, canonical, flat
from torra.profiles.guard import May, compare
from torra.store import ticks as claim_table

CODES: Final = {"scope": 403, "loosens": 403, "invalid": 422, "conflict": 409}
"""HTTP codes of refused saves, by outcome."""


SHOWN_ENTRIES: Final = 5
"""Entries of the history that stand unfolded."""

DAYS: Final = 30
"""Days of stored bars on which settings are tried."""


@dataclass(frozen=True, slots=True)
class Use:
    """An instance that uses a profile.

    `running` is the digest of the profile that it runs with, applied at `applied_at`; `changes` is
    how the file differs from it.
    """

    instance: str
    running: str | None
    runs_this: bool
    applied_at: str | None
    changes: list[ChangeLine]


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """A profile as a list shows it.

    `waiting` are the instances that do not run with it; `pending` is how many settings wait for
    them. `differences` are those from the default, None for a broken file.
    """

    profile: str
    digest: str
    path: str
    shipped: bool
    broken: bool
    trouble: str
    users: list[Use]
    waiting: list[str]
    pending: int
    pending_guarded: bool
    differences: int | None
    saved_at: str | None
    saved_by: str | None


@dataclass(frozen=True, slots=True)
class SaveLines:
    """The outcome of a save, as text; `command` is what to type instead."""

    outcome: str
    reason: str
    command: str
    digest: str
    changes: list[ChangeLine]
    faults: list[SettingFault]
    warnings: list[str]


# --- pages ----------------------------------------------------------------------------------------


def profiles() -> str:
    """Show every profile and who uses it."""
    known = state().backing
    shown = listed(known) if known else None
    return desk_page("profiles.html", shown=shown)


def api_profiles() -> ResponseReturnValue:
    """List every profile with its users, digest and difference to the default."""
    return jsonify(listed(backing()))


def profile(name: str) -> ResponseReturnValue:
    """Show one profile as a form, with its history."""
    return _profile_page(_loaded(name))


def api_profile(name: str) -> ResponseReturnValue:
    """Return one profile: values, difference to the default, users, history."""
    loaded = _loaded(name)
    values = canonical(loaded.profile) if loaded.profile else None
    entries = book().history(name)
    return jsonify(
        {
            **asdict(summary(backing(), loaded)),
            "values": values,
            "differs": [item.told() for item in compare(DEFAULT, values)] if values else [],
            "history": _history(name, entries),
        }
    )


def listed(known: PageContext) -> dict[str, Any]:
    """Return every profile, and the rows of desk.json about the instances."""
    shelf = book()
    rows = [summary(known, shelf.read(name)) for name in shelf.names()]
    desk = desk_rows(known.home, known.settings, known.environment)
    return {"profiles": rows, "desk": desk}


def summary(known: PageContext, loaded: Loaded) -> ProfileLine:
    """Return the fields that a list shows of a profile."""
    differs = compare(DEFAULT, canonical(loaded.profile)) if loaded.profile else ()
    users = [_use(known, item.id, loaded) for item in book().users(loaded.name)]
    entries = book().history(loaded.name, 1)
    return ProfileLine(
        profile=loaded.name,
        digest=loaded.digest,
        path=str(loaded.path.absolute()),
        shipped=loaded.shipped,
        broken=loaded.profile is None,
        trouble=figures.sanitize(loaded.trouble, 600),
        users=users,
        waiting=[use.instance for use in users if not use.runs_this],
        pending=len({item.place for use in users for item in use.changes}),
        pending_guarded=any(item.guarded for use in users for item in use.changes),
        differences=len(differs) if loaded.profile else None,
        saved_at=entries[0].at if entries else None,
        saved_by=figures.sanitize(entries[0].actor, 80) if entries else None,
    )


def _use(known: PageContext, instance: str, loaded: Loaded) -> Use:
    """Return which profile an instance runs with, since when, and how the file differs from it."""
    setup = known.desk.setups.get(instance)
    running = setup.profile.digest() if setup else None
    applied = claim_table.applied_profile(known.database, instance) or {}
    since = applied.get("applied_at") if applied.get("digest") == running else None
    changes = profile_form.changes_shown(handover.gap(known, instance, loaded.profile))
    return Use(instance, running, running == loaded.digest, since, changes)


def _profile_page(
    loaded: Loaded,
    *,
    values: Values | None = None,
    checked: SaveResult | None = None,
    saved: SaveResult | None = None,
) -> str:
    """Render a profile; `values` are what was entered, else what is saved."""
    known, shelf = backing(), book()
    entries = shelf.history(loaded.name)
    usual = canonical(loaded.profile) if loaded.profile else None
    here = values if values is not None else usual
    seats = profile_form.voices(loaded.profile) if loaded.profile else ([], "")
    users = shelf.users(loaded.name)
    faults = checked.faults if checked else saved.faults if saved else ()
    job, newest_try = trying.newest(loaded.name, loaded.digest) or (None, None)
    currency = known.currency_of(users)
    made = checked.profile if checked else loaded.profile if values is None else None
    every = profile_form.sections(here, usual or here, faults, made) if here else []
    main, rest = main_settings.taken_out(every, flat(usual or here or {}), currency)
    return desk_page(
        "profile.html",
        name=loaded.name,
        about=summary(known, loaded),
        main=main,
        sections=rest,
        tried=newest_try,
        job=job,
        days=DAYS,
        exact=EXACT,
        then=THEN,
        shown_entries=SHOWN_ENTRIES,
        voices=seats[0],
        voices_fault=seats[1],
        instances=[item.id for item in users],
        history=_history(loaded.name, entries),
        newest=entries[0].number if entries else None,
        checked=_check_told(loaded.name, checked) if checked else None,
        saved=_saved_told(saved) if saved else None,
        may_save=visitor().may("approve"),
        admin=visitor().may("admin"),
        watch_only=WATCH_ONLY
        if loaded.profile and watch_only(known.database, loaded.profile)
        else "",
    )


def _history(name: str, entries: Sequence[HistoryEntry]) -> list[ProfileChange]:
    """Return the entries of a history, each with what putting it back does for this visitor."""
    found = book().preview_undo(name, entries, _may())
    return [entry_told(entry, one) for entry, one in zip(entries, found, strict=True)]


# --- commands -------------------------------------------------------------------------------------


def profile_check(name: str) -> ResponseReturnValue:
    """Check settings without storing anything: faults by field, the difference, warnings."""
    loaded = _loaded(name)
    try:
        values = profile_form.proposal(given(), _base(loaded))
    except ConfigError as error:
        return jsonify(status="failed", reason=str(error)), 400
    checked = book().check(name, values)
    if not wants_json():
        return _profile_page(loaded, values=values, checked=checked)
    return jsonify(
        {"status": "done", "digest": loaded.digest, **asdict(_check_told(name, checked))}
    )


def profile_save(name: str) -> ResponseReturnValue:
    """Save changed settings and let the desk take them; needs the digest they were made from."""
    loaded = _loaded(name)
    # command() returns an answer only: run() leaves its result here
    held: list[SaveResult] = []

    def run() -> CommandOutcome:
        said = given()
        digest = str(said.get("digest") or "")
        if not digest:
            raise ConfigError("name the digest of the profile that was changed")
        found = book().save(
            name,
            lambda values: profile_form.proposal(said, values),
            digest=digest,
            may=_may(),
            actor=visitor().actor,
        )
        held.append(found)
        return _told(name, found)

    return _answered(command("profile.save", name, run, back=_back(name)), held, loaded)


def profile_undo(name: str) -> ResponseReturnValue:
    """Put an earlier state of a profile back, as a new one."""
    loaded = _loaded(name)
    held: list[SaveResult] = []

    def run() -> CommandOutcome:
        said = given()
        number = str(said.get("number", ""))
        if not number.isascii() or not number.isdigit() or len(number) > 9:
            raise ConfigError("name the number of the entry to go back to")
        digest = str(said.get("digest") or "") or None
        found = book().undo(name, int(number), digest=digest, may=_may(), actor=visitor().actor)
        held.append(found)
        return _told(name, found)

    return _answered(command("profile.undo", name, run, back=_back(name)), held, loaded)


def profile_try(name: str) -> ResponseReturnValue:
    """Try settings, saved or not, on the last days of the desk's stored bars: a job of the desk."""
    return trying.start(name, _base(_loaded(name)))


def profile_adopt(name: str) -> ResponseReturnValue:
    """Let the running desk take a profile as it is on the disk."""
    loaded = _loaded(name)

    def run() -> CommandOutcome:
        if loaded.profile is None:
            raise ConfigError(loaded.trouble)
        # whoever loosened it sat at the desk's own machine
        found = handover.apply_profile(backing(), book(), name, "loosen")
        return CommandOutcome(
            found.status, found.reason, found.before(), {"digest": loaded.digest, **found.after()}
        )

    return command("profile.adopt", name, run, back=_back(name))


# --- details --------------------------------------------------------------------------------------


def book() -> ProfileBook:
    """Return the profiles of the home behind the pages."""
    known = backing()
    return ProfileBook(
        known.home,
        known.settings,
        now=known.desk.clock.real_now,
        exclusive=known.database.transaction,
        environment=known.environment,
        desk_here=known.adopt is not None,
    )


def _loaded(name: str) -> Loaded:
    try:
        return book().read(name)
    except ConfigError:
        abort(404)


def _base(loaded: Loaded) -> Values:
    if loaded.profile:
        return canonical(loaded.profile)
    newest = book().history(loaded.name, 1)
    return newest[0].values if newest else DEFAULT


def _may() -> May:
    return "guarded" if visitor().may("admin") else "harmless"


def _back(name: str) -> str:
    return url_for("torra_agents.profile", name=name)


def _check_told(name: str, checked: SaveResult) -> CheckLines:
    """Return a check for the page, with the way that is open to this visitor."""
    answer = book().allowed(name, checked, _may()) if checked.profile else None
    stop = answer if answer and answer.outcome != "saved" else None
    _, newest_try = trying.newest(name, book().read(name).digest) or (None, None)
    more = tried.more_trades(checked.changes, newest_try)
    if stop is not None:
        from torra.replay.changed.last_days import last_days  # noqa: PLC0415

        more += last_days(book(), name, checked.changes)
    return profile_form.checked_shown(checked, stop, more)


def _saved_told(saved: SaveResult) -> SaveLines:
    return SaveLines(
        outcome=saved.outcome,
        reason=figures.sanitize(saved.reason, 600),
        command=figures.sanitize(saved.command, 2000),
        digest=saved.digest,
        changes=profile_form.changes_shown(saved.changes),
        faults=profile_form.faults_shown(saved.faults),
        warnings=[figures.sanitize(text, 300) for text in saved.warnings],
    )


def _told(name: str, saved: SaveResult) -> CommandOutcome:
    """Return the outcome of a save; a saved file is handed to the desk first."""
    more = {key: value for key, value in asdict(_saved_told(saved)).items() if key != "reason"}
    before = {"digest": saved.before, **{item.name: item.before for item in saved.changes}}
    after = {"digest": saved.digest, **{item.name: item.after for item in saved.changes}}
    if saved.outcome == "unchanged":
        return CommandOutcome("done", saved.reason, more=more)
    if saved.outcome != "saved":
        wish = {item.name: item.after for item in saved.changes}
        return CommandOutcome("failed", _with_command(saved), after={"wish": wish}, more=more)
    found = handover.apply_profile(backing(), book(), name, _may())
    return CommandOutcome(
        found.status, f"Saved. {found.reason}", {**before, **found.before()},
        {**after, **found.after()}, {**more, "number": saved.number},
    )  # fmt: skip


def _with_command(saved: SaveResult) -> str:
    said = figures.sanitize(saved.reason, 600)
    if not saved.command:
        return said
    return f"{said.rstrip('.')}: {figures.sanitize(saved.command, 2000)}. {THEN}"


def _answered(
    reply: ResponseReturnValue, held: list[SaveResult], loaded: Loaded
) -> ResponseReturnValue:
    """Give a refusal its HTTP code; show a form without scripts again, with what was entered."""
    if not held or held[0].outcome not in CODES:
        return reply
    saved = held[0]
    code = CODES[saved.outcome]
    if wants_json():
        return (reply[0], code) if isinstance(reply, tuple) else reply
    try:
        values: Values | None = profile_form.proposal(given(), _base(loaded))
    except ConfigError:
        values = None
    # after a conflict the form must be made from the newer file, else the next save fails as well
    known = loaded if saved.outcome != "conflict" else book().read(loaded.name)
    return _profile_page(known, values=values, saved=saved), code


FIELDS: Final = {
    "digest": {"type": "string", "description": "digest of the profile that was changed"},
    "settings": {
        "type": "object",
        "description": "value by place, such as risk.max_positions; null takes an entry out",
    },
}
NUMBER: Final = {
    "number": {"type": "integer", "description": "entry of the history"},
    "digest": {"type": "string", "description": "digest of the profile that was looked at"},
}
TRY: Final = {
    **FIELDS,
    "days": {"type": "integer", "description": "days of stored bars, 1 to 366; 30 by default"},
}

ROUTES = (
    Route("/profiles", "profiles", profiles),
    Route("/profiles/<name>", "profile", profile),
    Api("/api/v1/profiles", "api_profiles", api_profiles),
    Api("/api/v1/profiles/<name>", "api_profile", api_profile),
    Command(
        "/api/v1/profiles/<name>/check",
        "profile_check",
        profile_check,
        per_minute=240,
        body=FIELDS,
    ),
    Command(
        "/api/v1/profiles/<name>/save",
        "profile_save",
        profile_save,
        scope="approve",
        per_minute=30,
        body=FIELDS,
    ),
    Command(
        "/api/v1/profiles/<name>/undo",
        "profile_undo",
        profile_undo,
        scope="approve",
        per_minute=30,
        body=NUMBER,
    ),
    Command(
        "/api/v1/profiles/<name>/adopt",
        "profile_adopt",
        profile_adopt,
        scope="admin",
        per_minute=30,
    ),
    Command(
        "/api/v1/profiles/<name>/try",
        "profile_try",
        profile_try,
        scope="approve",
        per_minute=10,
        body=TRY,
    ),
)
