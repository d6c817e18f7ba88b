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

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from flask import abort, jsonify, render_template, request, url_for
from flask.typing import ResponseReturnValue

from torra.config import Profile
from torra.dashboard.doors.access import visitor
from torra.dashboard.doors.routes import Api, Command, Route
from torra.dashboard.record.shown import WATCH_ONLY
from torra.dashboard.screens import jobs
from torra.dashboard.settings import handover, profile_form, tried
from torra.dashboard.settings.profile_form import THEN, Values
from torra.dashboard.trade.orders import person
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.commanding import CommandOutcome, command, given, wants_json
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.desk.promotion import watch_only
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.profiles.book import Loaded, ProfileBook, SaveResult, desk_rows
from torra.profiles.fields import DEFAULT, canonical
from torra.profiles.guard import May, compare
from torra.store import ticks as claim_table

CODES: Final = {"scope": 403, "loosens": 403, "invalid": 422, "conflict": 409}
"""HTTP codes of refused saves, by outcome."""

PART: Final = "X-Torra-Part"
"""The header by which a script asks for the outcome of a form without the page around it."""


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
    changes: list[dict[str, Any]]


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


# --- pages ----------------------------------------------------------------------------------------


def profiles() -> str:
    """Show every profile and who uses it."""
    context = state().backing
    return desk_page("profiles.html", shown=every(context) if context else None)


def api_profiles() -> ResponseReturnValue:
    """List every profile with its users, digest and difference to the default."""
    return jsonify(every(backing()))


def profile(name: str) -> ResponseReturnValue:
    """Show one profile as a form, with its history."""
    loaded = _loaded(name)
    return _page(loaded, None, loaded.profile)


def api_profile(name: str) -> ResponseReturnValue:
    """Return one profile: values, difference to the default, users, history."""
    return jsonify(document(backing(), _loaded(name)))


def every(context: PageContext) -> dict[str, Any]:
    """Return every profile, and the rows of desk.json about the instances."""
    shelf = book_of(context)
    return {
        "profiles": [asdict(_summary(context, shelf.read(name))) for name in shelf.names()],
        "desk": desk_rows(context.home, context.settings, context.environment),
    }


def document(context: PageContext, loaded: Loaded) -> dict[str, Any]:
    """Return one profile: what a list shows of it, its values, its differences, its history."""
    values = canonical(loaded.profile) if loaded.profile else None
    return {
        **asdict(_summary(context, loaded)),
        "values": values,
        "differs": [item.as_dict() for item in compare(DEFAULT, values)] if values else [],
        "history": [entry.as_json() for entry in book_of(context).history(loaded.name)],
    }


def _summary(context: PageContext, loaded: Loaded) -> ProfileLine:
    """Return the fields that a list shows of a profile."""
    shelf = book_of(context)
    differs = compare(DEFAULT, canonical(loaded.profile)) if loaded.profile else ()
    users = [_use(context, item.id, loaded) for item in shelf.users(loaded.name)]
    waits = [item for use in users for item in use.changes]
    entries = shelf.history(loaded.name, 1)
    return ProfileLine(
        profile=loaded.name,
        digest=loaded.digest,
        path=str(loaded.path.absolute()),
        shipped=loaded.shipped,
        broken=loaded.profile is None,
        trouble=figures.sanitize(loaded.trouble, 600),
        users=users,
        waiting=[use.instance for use in users if not use.runs_this],
        pending=len({item["place"] for item in waits}),
        pending_guarded=any(item["guarded"] for item in waits),
        differences=len(differs) if loaded.profile else None,
        saved_at=entries[0].at if entries else None,
        saved_by=figures.sanitize(entries[0].actor, 80) if entries else None,
    )


def _use(context: PageContext, instance: str, loaded: Loaded) -> Use:
    """Return which profile an instance runs with, since when, and how the file differs from it."""
    try:
        setup = context.desk.setups.get(instance)
    except ConfigError:  # a desk that never ran cannot start with a broken profile
        setup = None
    running = setup.profile.digest() if setup else None
    applied = claim_table.applied_profile(context.database, instance) or {}
    since = applied.get("applied_at") if applied.get("digest") == running else None
    gap = handover.gap(context, instance, loaded.profile) if setup else ()
    changes = [item.as_dict() for item in gap]
    return Use(instance, running, running == loaded.digest, since, changes)


def _page(
    loaded: Loaded,
    entered: Values | None,
    profile: Profile | None,
    result: SaveResult | None = None,
    **outcome: Any,
) -> str:
    """Render a profile with what was entered, else what is saved; `profile` is what those make.

    `result` is that of a check or a save, and `outcome` what the page says of it.
    """
    context, name = backing(), loaded.name
    saved = canonical(loaded.profile) if loaded.profile else None
    values = entered if entered is not None else saved
    faults = result.faults if result else ()
    form = profile_form.context(values, saved or values, faults, profile) if values else {}
    users = book().users(name)
    job = tried.newest(name)
    return desk_page(
        "profile.html",
        name=name,
        about=_summary(context, loaded),
        change_lines=profile_form.change_lines,
        users=users,
        currency=context.currency_of(users),
        tried=job and tried.lines(job, loaded.digest),
        job=job and jobs.shown([job]),
        history=_history(name),
        then=THEN,
        watch_only=WATCH_ONLY
        if loaded.profile and watch_only(context.database, loaded.profile)
        else "",
        **_voices(loaded.profile),
        **form,
        **outcome,
    )


def _voices(profile: Profile | None) -> dict[str, Any]:
    """Return whom each role asks with these settings; or no roles, and why."""
    if profile is None:
        return {}
    try:
        roles = profile_form.voices(profile.agents)
    except ValueError as error:
        return {"voices_fault": str(error)}
    return {"voices": roles, "agents": profile.agents, "decided_by": profile_form.decided_by}


def _history(name: str) -> list[dict[str, Any]]:
    """Return the entries of a history, each with what putting it back does for this visitor."""
    entries = book().history(name)
    undos = book().preview_undo(name, entries, _may())
    return [*map(profile_form.entry_lines, entries, undos)]


# --- commands -------------------------------------------------------------------------------------


def profile_check(name: str) -> ResponseReturnValue:
    """Check settings without storing anything: faults by field, the difference, warnings."""
    loaded = _loaded(name)
    try:
        values = profile_form.proposal(given(), _base(loaded))
    except ConfigError as error:
        return jsonify(status="failed", reason=str(error)), 400
    result = book().check(name, values)
    check = _check_lines(loaded, result)
    if wants_json():
        return jsonify(status="done", digest=loaded.digest, **check)
    if PART in request.headers:
        return _outcome_alone(name, check=check)
    return _page(loaded, values, result.profile, result, check=check)


def profile_save(name: str) -> ResponseReturnValue:
    """Save changed settings and let the desk take them; needs the digest they were made from."""

    def save(sent: Values) -> SaveResult:
        digest = str(sent.get("digest") or "")
        if not digest:
            raise ConfigError("name the digest of the profile that was changed")
        return book().save(
            name,
            lambda values: profile_form.proposal(sent, values),
            digest=digest,
            may=_may(),
            actor=visitor().actor,
        )

    return _saved("profile.save", name, save)


def profile_undo(name: str) -> ResponseReturnValue:
    """Put an earlier state of a profile back, as a new one."""

    def undo(sent: Values) -> SaveResult:
        number = str(sent.get("number", ""))
        if not number.isascii() or not number.isdigit() or len(number) > 9:
            raise ConfigError("name the number of the entry to go back to")
        digest = str(sent.get("digest") or "") or None
        return book().undo(name, int(number), digest=digest, may=_may(), actor=visitor().actor)

    return _saved("profile.undo", name, undo)


def profile_try(name: str) -> ResponseReturnValue:
    """Try settings, saved or not, on the last days of the desk's stored bars: a job of the desk."""
    from torra.jobs import asking  # noqa: PLC0415
    from torra.replay.job_kinds import SETTINGS  # noqa: PLC0415

    base = _base(_loaded(name))

    def run() -> CommandOutcome:
        sent, context = given(), backing()
        wish = tried.wish(sent, base, profile_form.proposal(sent, base))
        done = asking.ask(
            context.database, context.home, SETTINGS, {"profile": name, **wish}, person()
        )
        return jobs.queued(done, works=context.database.desk_runs())

    return command("job", tried.KIND, run, back=f"{_back(name)}#tried")


def profile_adopt(name: str) -> ResponseReturnValue:
    """Let the running desk take a profile as it is on the disk."""
    loaded = _loaded(name)

    def run() -> CommandOutcome:
        if loaded.profile is None:
            raise ConfigError(loaded.trouble)
        # whoever loosened it sat at the desk's own machine
        taken = handover.apply_profile(backing(), book(), name, "loosen")
        return replace(taken, after={"digest": loaded.digest, **taken.after})

    return command("profile.adopt", name, run, back=_back(name))


# --- details --------------------------------------------------------------------------------------


def book() -> ProfileBook:
    """Return the profiles of the home behind the pages."""
    return book_of(backing())


def book_of(context: PageContext) -> ProfileBook:
    """Return the profiles of a home."""
    return ProfileBook(
        context.home,
        context.settings,
        now=context.desk.clock.real_now,
        exclusive=context.database.transaction,
        environment=context.environment,
        desk_here=context.adopt is not None,
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


def _check_lines(loaded: Loaded, result: SaveResult) -> dict[str, Any]:
    """Return what a check says; `refused` is why this visitor may not save it, `command` the way.

    More trades and the last days are told first, where the change is about them.
    """
    name = loaded.name
    answer = book().allowed(name, result, _may()) if result.profile else None
    stop = answer if answer and answer.outcome != "saved" else None
    job = tried.newest(name)
    more = tried.more_trades(result.changes, job and tried.lines(job, loaded.digest))
    if stop:
        from torra.replay.changed.last_days import last_days  # noqa: PLC0415

        more += last_days(book(), name, result.changes)
    return {
        "ok": result.profile is not None,
        **profile_form.result_lines(result, more),
        "refused": figures.sanitize(stop.reason, 600) if stop else "",
        "command": figures.sanitize(stop.command, 2000) if stop else "",
    }


def _save_lines(result: SaveResult) -> dict[str, Any]:
    """Return what a save says besides its reason; `command` is what to type instead."""
    return {
        "outcome": result.outcome,
        "command": figures.sanitize(result.command, 2000),
        "digest": result.digest,
        **profile_form.result_lines(result),
    }


def _saved(action: str, name: str, save: Callable[[Values], SaveResult]) -> ResponseReturnValue:
    """Run a save and answer; a refusal has its HTTP code, and shows a form what was entered."""
    loaded = _loaded(name)
    # command() returns an answer only: run() leaves its result here
    results: list[SaveResult] = []

    def run() -> CommandOutcome:
        results.append(save(given()))
        return _outcome(name, results[0])

    reply = command(action, name, run, back=_back(name))
    if not results or results[0].outcome not in CODES:
        return reply
    result = results[0]
    code = CODES[result.outcome]
    if wants_json():
        return (reply[0], code) if isinstance(reply, tuple) else reply
    refusal = {**_save_lines(result), "reason": figures.sanitize(result.reason, 600)}
    if PART in request.headers:
        return _outcome_alone(name, refusal=refusal), code
    try:
        values: Values | None = profile_form.proposal(given(), _base(loaded))
    except ConfigError:
        values = None
    # after a conflict the form must be made from the newer file, else the next save fails as well
    shown = loaded if result.outcome != "conflict" else book().read(name)
    profile = shown.profile if values is None else None
    return _page(shown, values, profile, result, saved=refusal), code


def _outcome(name: str, result: SaveResult) -> CommandOutcome:
    """Return the outcome of a save; a saved file is handed to the desk first."""
    more = _save_lines(result)
    wished = {item.name: item.after for item in result.changes}
    if result.outcome == "unchanged":
        return CommandOutcome("done", result.reason, more=more)
    if result.outcome != "saved":
        reason = figures.sanitize(result.reason, 600)
        if result.command:
            reason = f"{reason.rstrip('.')}: {more['command']}. {THEN}"
        return CommandOutcome("failed", reason, after={"wish": wished}, more=more)
    taken = handover.apply_profile(backing(), book(), name, _may())
    before = {item.name: item.before for item in result.changes}
    return CommandOutcome(
        taken.status,
        f"Saved. {taken.reason}",
        {"digest": result.before, **before, **taken.before},
        {"digest": result.digest, **wished, **taken.after},
        {**more, "number": result.number},
    )


def _outcome_alone(name: str, **outcome: Mapping[str, Any]) -> str:
    """Render what a check or a refused save says, without the page around it."""
    template = "torra_agents/profile_outcome.html"
    return render_template(template, name=name, then=THEN, **outcome)


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
