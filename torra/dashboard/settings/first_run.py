"""First run: six short steps beside the real pages, shown on Home until they are done or skipped.

What is done is read from what happened: a proposal that a person decided, a replay that ended, a
symbol that was added, a model that was tested. That a page was opened is noted by its script, in
FIRST_RUN in the home, with what was skipped: the steps are the home's, not a browser's. A broken
note is none. Nothing is changed by looking. The strip is for whoever may approve, and only in a
home that is young: a desk that has lived for weeks is not taught. `practice` makes the third step
possible.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal

from flask import g, jsonify, request, url_for
from flask.typing import ResponseReturnValue

from agent_config import VENDORS
from torra.clock import parse
from torra.dashboard.cells.common import Cells, words
from torra.dashboard.doors.access import Visitor
from torra.dashboard.doors.routes import Api, Command, Fields, Route
from torra.dashboard.settings import practice
from torra.dashboard.settings.new_symbol import ACTION as ADDED
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.commanding import CommandOutcome, command
from torra.dashboard.view.commanding import words as sent_words
from torra.dashboard.view.rendering import (
    EXTENSION,
    backing,
    desk_page,
    state,
    tick_link,
)
from torra.errors import MALFORMED, ConfigError, StoreUnavailable
from torra.home import FIRST_RUN, LIVED
from torra.profiles.practice import EASY
from torra.providers.vendors.addresses import key_sign
from torra.regular_files import read_regular
from torra.store import audit as audit_chain
from torra.store import jobs as job_table
from torra.whole_files import write_whole

YOUNG: Final = timedelta(days=14)
"""How long a home is young, real time."""

JOBS_READ: Final = 50
PER_MINUTE: Final = 60

TESTED: Final = "test model"
"""What the audit log calls the test of a model."""

SEEN: Final = {"overview": "home", "tick": "tick", "models": "model"}
"""Steps that are done by opening a page, by its endpoint."""

_noting: Final = threading.Lock()
"""Held from reading the note to writing it: of two pages at once none may lose its mark."""

Mark = Literal["done", "skipped", "open"]


@dataclass(frozen=True, slots=True)
class StepText:
    """The words of a step: its title, why it is worth a minute, and what leads to its page."""

    name: str
    title: str
    why: str
    link: str


STEPS: Final = (
    StepText("home", "Look at Home",
         "Money first: what was won or lost today, and what is at risk.",
         "Home"),
    StepText("tick", "Open a tick", "It says why the desk did what it did, and who disagreed.",
         "The newest tick"),
    StepText("approval", "Approve a trade", "You see what it may cost before you say yes.",
         "Approvals"),
    StepText("replay", "Run a replay", "It shows on past bars whether the agents were worth it.",
         "Replays"),
    StepText("symbol", "Add your own symbol", "From the broker's list or from a file; it begins on "
         "paper.", "Add a symbol"),
    StepText("model", "Look at the models", "Without a key rules answer, free; a test shows what a "
         "model costs.", "Models"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """A step as it stands; `note` says more of how it was done."""

    told: StepText
    mark: Mark
    address: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """The note of a home."""

    seen: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tour:
    """What the pages show of the first run: `seen` is the step that this page does, "" for none."""

    steps: list[ChecklistItem] = field(default_factory=list)
    seen: str = ""

    @property
    def done(self) -> int:
        """How many steps are done."""
        return sum(one.mark == "done" for one in self.steps)

    @property
    def next(self) -> ChecklistItem | None:
        """The first step that is neither done nor skipped."""
        return next((one for one in self.steps if one.mark == "open"), None)


def first_run() -> str:
    """Show the six first steps, what is done of them, and the practice of an approval."""
    if state().backing is None:
        return desk_page("first_run.html", here=False)
    known = backing()
    steps = _steps(known)
    on = practice.going(known)
    waiting = known.database.proposals(limit=1)
    return desk_page(
        "first_run.html",
        live=True,
        cells=_cells(known),
        here=True,
        steps=steps,
        shown=Tour(steps),
        demo=known.desk.clock.accelerated,
        asks=any(one.profile.execution == "approve" for one in known.desk.setups.values()),
        practising=on is not None,
        cannot=practice.refusal(known),
        within=practice.likely_within(known),
        proposal=url_for(".approval", sid=waiting[0].sid) if waiting else "",
    )


def api_first_run() -> ResponseReturnValue:
    """Answer the first steps: which are done, skipped or open, and whether practice goes on."""
    known = backing()
    steps = _steps(known)
    return jsonify(
        version=_version(steps, known),
        steps=[{"step": one.told.name, "mark": one.mark, "note": one.note} for one in steps],
        practising=practice.going(known) is not None,
        likely_within_seconds=practice.likely_within(known),
    )


def tour() -> dict[str, Any]:
    """Return what every page of ours gets: the tour where it is shown, or where it notes a page."""
    endpoint = (request.endpoint or "").removeprefix(f"{EXTENSION}.")
    visitor: Visitor | None = g.get("torra_visitor")
    known = state().backing
    if endpoint not in SEEN or known is None or not (visitor and visitor.may("approve")):
        return {"tour": None}
    try:
        noted = _noted(known)
        name = SEEN[endpoint]
        unseen = name if name not in noted.seen else ""
        # The strip itself is on Home alone.
        here = Noted((*noted.seen, name), noted.skipped)
        steps = _steps(known, here) if endpoint == "overview" and _young(known) else []
    except StoreUnavailable:
        return {"tour": None}
    found = Tour(steps if any(one.mark == "open" for one in steps) else [], unseen)
    return {"tour": found if found.steps or found.seen else None}


# --- commands -------------------------------------------------------------------------------------


def first_run_note() -> ResponseReturnValue:
    """Note that a step was seen, or skip steps, or take that back."""

    def run() -> CommandOutcome:
        told = sent_words()
        known = backing()
        what, name = told.get("what", ""), told.get("step", "")
        with _noting:
            before = _noted(known)
            after = _changed(before, what, name)
            _keep(known, after)
        said = {"seen": "noted", "skip": "skipped", "again": "the steps are shown again"}[what]
        return CommandOutcome("done", said, asdict(before), asdict(after))

    return command("first run", "", run, back=url_for(".first_run"))


def practice_begin() -> ResponseReturnValue:
    """Let the demo ask before each order, soon, until the first decision: nothing is written."""

    def run() -> CommandOutcome:
        begun = practice.begin(backing())
        soon = _soon(practice.likely_within(backing()), "seconds")
        return CommandOutcome(
            "done", f"The demo asks you now. A proposal is likely {soon}.",
            after={"profiles": list(begun.eased), "execution": "approve",
                   "thresholds": EASY},
        )  # fmt: skip

    return command("practice", "begin", run, back=url_for(".first_run"))


def practice_end() -> ResponseReturnValue:
    """End the practice: the demo goes on with the profiles that ran before."""

    def run() -> CommandOutcome:
        if not practice.end(backing()):
            raise ConfigError("no practice goes on")
        when = " when the tick that runs has ended" if practice.going(backing()) else ""
        return CommandOutcome("done", f"The demo goes on with its own profiles{when}.")

    return command("practice", "end", run, back=url_for(".first_run"))


def _changed(noted: Noted, what: str, name: str) -> Noted:
    every = [one.name for one in STEPS]
    if what == "again":
        return Noted(noted.seen)
    if what == "skip" and name == "all":
        return Noted(noted.seen, tuple(every))
    if what not in ("seen", "skip") or name not in every:
        raise ConfigError(f"what: seen, skip or again; step: {', '.join(every)}, or all to skip")
    if what == "seen":
        return Noted(tuple(dict.fromkeys((*noted.seen, name))), noted.skipped)
    return Noted(noted.seen, tuple(dict.fromkeys((*noted.skipped, name))))


# --- the note -------------------------------------------------------------------------------------


def _noted(known: PageContext) -> Noted:
    try:
        told = json.loads(read_regular(known.home / FIRST_RUN))
        names = {one.name for one in STEPS}
        lists = [[name for name in told[part] if name in names] for part in ("seen", "skipped")]
        return Noted(tuple(lists[0]), tuple(lists[1]))
    except (OSError, *MALFORMED):
        return Noted()


def _keep(known: PageContext, noted: Noted) -> None:
    try:
        write_whole(known.home / FIRST_RUN, (json.dumps(asdict(noted)) + "\n").encode())
    except OSError as error:
        raise ConfigError(f"cannot write {known.home / FIRST_RUN}: {error.strerror}") from error


def _young(known: PageContext) -> bool:
    """Return whether a desk has lived here for a short time only."""
    try:
        since = parse(json.loads(read_regular(known.home / LIVED))["since"])
    except (OSError, *MALFORMED):
        return known.desk.clock.accelerated
    return known.desk.clock.real_now() - since < YOUNG


# --- the steps ------------------------------------------------------------------------------------


def _steps(known: PageContext, noted: Noted | None = None) -> list[ChecklistItem]:
    noted = noted or _noted(known)
    found = []
    for told in STEPS:
        judge = _DONE.get(told.name)
        done, note = judge(known, noted) if judge else (told.name in noted.seen, "")
        skipped: Mark = "skipped" if told.name in noted.skipped else "open"
        page = _PAGES.get(told.name)
        address = url_for(page) if page else _newest_tick(known)
        found.append(ChecklistItem(told, "done" if done else skipped, address, note))
    return found


def _approval(known: PageContext, _: Noted) -> tuple[bool, str]:
    rows = [row for one in practice.DECIDED for row in known.database.proposals(one, 1)]
    return bool(rows), ""


def _replay(known: PageContext, _: Noted) -> tuple[bool, str]:
    rows = job_table.jobs(known.database, JOBS_READ)
    return any(row["kind"] == "replay" and row["state"] == "done" for row in rows), ""


def _symbol(known: PageContext, _: Noted) -> tuple[bool, str]:
    if any(item.feed != "sample" for item in known.settings.instances):
        return True, "This desk watches symbols of your own."
    rows = audit_chain.audit_entries(known.database, limit=20, action=ADDED)
    added = next((row for row in rows if str(row["outcome"]).startswith("done")), None)
    return added is not None, ""


def _model(known: PageContext, noted: Noted) -> tuple[bool, str]:
    rows = audit_chain.audit_entries(known.database, limit=20, action=TESTED)
    if any(json.loads(row["after"]).get("ok") is True for row in rows):
        return True, "A model has answered."
    if any(key_sign(name, known.environment).variable for name in VENDORS):
        return False, "A key is set: test its model."
    return "model" in noted.seen, "No key: rules decide, that is fine."


def _newest_tick(known: PageContext) -> str:
    for one in known.desk.setups.values():
        for timeframe in one.instance.timeframes:
            record = known.database.latest_tick(one.instance.id, timeframe)
            if record:
                return tick_link(one.instance.id, timeframe, str(record["bar_time"]))
    return url_for(".symbols")


_DONE: Final[Mapping[str, Callable[[PageContext, Noted], tuple[bool, str]]]] = {
    "approval": _approval,
    "replay": _replay,
    "symbol": _symbol,
    "model": _model,
}
"""How a step is done other than by opening its page: whether it is, and a note."""

_PAGES: Final = {
    "home": ".overview", "approval": ".approvals", "replay": ".replays", "symbol": ".new_symbol",
    "model": ".models",
}  # fmt: skip


def _cells(known: PageContext) -> Cells:
    return {"practice.soon": words(_soon(practice.likely_within(known), "s"))}


def _soon(seconds: int | None, unit: str) -> str:
    """Return when a proposal is likely, to stand behind that word."""
    return f"within {seconds} {unit}" if seconds else "with one of the next closes"


def _version(steps: list[ChecklistItem], known: PageContext) -> str:
    """Return what changes with the page: marks, practice, a proposal that waits."""
    marks = "".join(one.mark[0] for one in steps)
    waits = bool(known.database.proposals(limit=1))
    return f"{marks} {practice.going(known) is not None} {waits}"


NOTE_BODY: Final[Fields] = {
    "what": {"type": "string", "enum": ["seen", "skip", "again"]},
    "step": {"type": "string", "enum": [*(one.name for one in STEPS), "all"]},
}

ROUTES = (
    Route("/first-run", "first_run", first_run),
    Api("/api/v1/first-run", "api_first_run", api_first_run),
    Command(
        "/api/v1/first-run/note",
        "first_run_note",
        first_run_note,
        scope="approve",
        per_minute=PER_MINUTE,
        body=NOTE_BODY,
    ),
    Command(
        "/api/v1/practice/begin",
        "practice_begin",
        practice_begin,
        scope="admin",
        per_minute=10,
    ),
    Command(
        "/api/v1/practice/end",
        "practice_end",
        practice_end,
        scope="admin",
        per_minute=10,
    ),
)
