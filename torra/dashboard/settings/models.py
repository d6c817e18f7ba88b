"""The screen Models: which can be asked and by whom, what they cost, and one small test question.

The figures are those of `torra models` (torra.desk.models.report). A key is found or missing, by
the name of its variable; no page ever holds its value. A test is a command like any other: it needs
the scope approve, is written to the audit log and is booked in the ledger before it is sent
(torra.desk.models.question). One runs at a time. What a model answers is a stranger's text.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue

from agent_config import VENDORS, full_name
from agents.registry import AGENTS
from torra.config import Profile
from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.trade.orders import person
from torra.dashboard.view.commanding import CommandOutcome, command, words
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.desk import costs as cost_report
from torra.desk.models import expected_cost, expert_standing
from torra.desk.models import report as model_report
from torra.desk.models.expert_standing import SeatRow
from torra.desk.models.report import (
    ModelReport,
    ModelRow,
    SpendingReport,
    TraderReport,
    VendorReport,
    ticks_that_asked,
)
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.words.badge import Badge

TESTS_PER_MINUTE: Final = 6

LONGEST_MODEL: Final = 100
"""Characters of a model's name: the whole of one that can be tested."""

KEYS: Final = {
    "found": Badge("●", "key found", "note"),
    "missing": Badge("○", "no key", "flat"),
    "not needed": Badge("●", "no key needed", "note"),
    "wrong": Badge("✕", "key cannot be used", "alert"),
}
"""How a card says what is known of a key."""

_ONE: Final = threading.Lock()
"""Held while a test runs."""


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model, as text."""

    model: str
    roles: list[str]
    price: str
    spent: str
    ending: str
    answers: str
    remedy: str


@dataclass(frozen=True, slots=True)
class TestLine:
    """The newest test of a vendor, as text."""

    ok: bool
    at: str
    model: str
    said: str
    remedy: str
    paid: str


@dataclass(frozen=True, slots=True)
class VendorCard:
    """A vendor, as a card shows it; `can` says whether a test may be tried."""

    vendor: str
    title: str
    key: Badge
    about: str
    used_by: str
    remedy: str
    rests: str
    models: list[ModelLine]
    test: TestLine | None
    can: bool


@dataclass(frozen=True, slots=True)
class SpendingLine:
    """What a profile's ticks cost, as text."""

    profile: str
    answers: str
    so_far: str
    tick: str
    day: str
    ceiling: str


@dataclass(frozen=True, slots=True)
class StandingLine:
    """A seat of a swarm in one regime, as text."""

    place: str
    regime: str
    seat: str
    calls: str
    right: str
    weight: str


def models() -> str:
    """Show which models can be asked, who asks them and what they cost."""
    told = _report() if state().backing else None
    return desk_page(
        "models.html",
        here=told is not None,
        vendors=[_card(row) for row in told["vendors"]] if told else [],
        spending=[_spending(row) for row in told["profiles"]] if told else [],
        traders=_traders(told["traders"]) if told else [],
        dear=_dear(told["profiles"]) if told else [],
        free=told is not None and not any(row["paid"] for row in told["profiles"]),
        standing=_standing(told.get("standing", [])) if told else [],
        swarm=told is not None and "standing" in told,
        expected=expected_cost.cells(told["expected"]) if told else [],
        usual=sorted({row["provider"] for row in told["profiles"]}) if told else [],
    )


def api_models() -> ResponseReturnValue:
    """Answer keys (found or missing), models, prices, cost and the newest test by vendor."""
    return jsonify(_report())


def test_model(vendor: str) -> ResponseReturnValue:
    """Ask one small question of a vendor's model: latency, tokens, cost, or what is wrong."""
    vendor = full_name(vendor)
    if vendor not in VENDORS:
        abort(404)

    def run() -> CommandOutcome:
        from torra.desk.models import question as model_question  # noqa: PLC0415  a page alone must not load the desk

        asked_for = words().get("model", "").strip()
        _refuse_unlisted(vendor, asked_for)
        if not _ONE.acquire(blocking=False):
            raise ConfigError("another test is under way: it ends within 15 seconds")
        try:
            known, who = backing(), person()
            asked = model_question.ask(
                known.home, known.database, vendor, asked_for, _profiles(), known.environment,
                known.settings.instances,
            )  # fmt: skip
        finally:
            _ONE.release()
        model_question.remember(known.database, asked, who.actor, who.address)
        shown = {**asked.document(), "answer": figures.sanitize(asked.answer, 200)}
        return CommandOutcome("done", _test_said(shown), more={"test": shown}, on_record=True)

    return command("test model", vendor, run, back=url_for(".models"))


def _refuse_unlisted(vendor: str, model: str) -> None:
    listed = model_report.listed(vendor, _profiles())
    if model and model not in listed:
        raise ConfigError(
            f"{figures.sanitize(model, 60)} is not listed for {vendor}: take {', '.join(listed)}, "
            "or name it in a profile first"
        )


# --- reading --------------------------------------------------------------------------------------


def _report() -> ModelReport:
    known = backing()
    instances = [*known.settings.instances, *known.database.hosted_instances()]
    # Pages that look at a desk of another process have none of its counts.
    past = getattr(known.desk, "past", None)
    return model_report.report(
        known.home, known.database, instances, _profiles(), known.environment, past
    )


def _profiles() -> dict[str, Profile]:
    """Return the profiles in use as the desk has them, or as their files say; none that is gone."""
    known = backing()
    found = {one.instance.profile: one.profile for one in known.desk.setups.values()}
    for item in known.database.hosted_instances():
        if item.profile not in found:
            try:
                profile = cost_report.profile_of(item.profile, known.home)
            except ConfigError:
                continue
            if profile is not None:
                found[item.profile] = profile
    return found


# --- arranging ------------------------------------------------------------------------------------


def _card(row: VendorReport) -> VendorCard:
    names = " or ".join(row["variables"])
    about = f"{row['server']}, key in {names}"
    if row["key"] == "not needed":
        about = f"{row['server']}; a key of its own may stand in {names}"
    users = ", ".join(row["used_by"])
    rests = ""
    if row["rests_until"]:
        why = figures.sanitize(row["rests_because"], 200)
        rests = f"Not asked until {figures.moment(row['rests_until'])}: {why}"
    return VendorCard(
        vendor=row["vendor"],
        title=row["title"],
        key=KEYS[row["key"]],
        about=about[:1].upper() + about[1:],
        used_by=f"Asked by the profile {users}" if users else "No profile asks it",
        remedy=_remedy(row),
        rests=rests,
        models=[_model(one) for one in row["models"]],
        test=_test(row["tested"]) if row["tested"] else None,
        can=row["key"] in ("found", "not needed") and not row["package"],
    )


def _remedy(row: VendorReport) -> str:
    """Return what to do so that a vendor can be asked, "" for nothing."""
    if row["key"] == "missing":
        first = row["variables"][0]
        return f"Set {first} in the environment of the desk, then restart the desk."
    if row["trouble"]:
        return f"{figures.sanitize(row['trouble'], 300)}. Mend it, then restart the desk."
    if row["package"]:
        return f"Install the package {row['package']}, then restart the desk."
    return ""


def _model(row: ModelRow) -> ModelLine:
    price = "not listed: booked at the dearest"
    if row["input"] is not None and row["output"] is not None:
        free = not row["input"] and not row["output"]
        price = "free" if free else f"{_usd(row['input'])} in, {_usd(row['output'])} out"
    spent = (
        f"{figures.money(row['usd'])}, {row['calls']:,} calls" if row["calls"] else "nothing booked"
    )
    return ModelLine(
        model=figures.sanitize(row["model"], LONGEST_MODEL),
        roles=[figures.sanitize(name, 80) for name in row["roles"]],
        price=price,
        spent=spent,
        ending=figures.sanitize(row["ending"], 200),
        answers=figures.sanitize(row["answers"], 300),
        remedy=figures.sanitize(row["remedy"], 300),
    )


def _usd(value: float) -> str:
    return f"${value:,.2f}" if value >= 0.1 else f"${value:,.3f}"


def _test(told: Mapping[str, Any]) -> TestLine:
    return TestLine(
        ok=told.get("ok") is True,
        at=figures.moment(told.get("at"), seconds=True),
        model=figures.sanitize(told.get("model"), 80),
        said=_test_said(told),
        remedy=figures.sanitize(told.get("remedy"), 300),
        paid=_paid(told),
    )


def _paid(told: Mapping[str, Any]) -> str:
    tokens = [told.get(name) for name in ("input_tokens", "output_tokens")]
    cost = figures.money(told.get("usd"), 6) if told.get("booked") else "free"
    return f"{figures.plain(tokens[0], 0)} tokens in, {figures.plain(tokens[1], 0)} out, {cost}"


def _test_said(told: Mapping[str, Any]) -> str:
    """Return what a test came to, in a sentence; the model's own words are cleaned."""
    said = figures.sanitize(told.get("answer"), 200)
    if told.get("ok") is True:
        return f"It answered “{said}” in {_took(told.get('seconds'))}."
    error = figures.sanitize(told.get("error"), 300)
    heard = f" It wrote: “{said}”." if said else ""
    return f"It failed: {error}.{heard}"


def _took(seconds: object) -> str:
    known = figures.number(seconds)
    if known is None:
        return figures.DASH
    return f"{1000 * known:.0f} ms" if known < 1 else f"{known:.1f} s"


def _spending(row: SpendingReport) -> SpendingLine:
    if not row["paid"]:
        answers = "The rules answer" if row["provider"] == "rules" else "Your own model answers"
        if row["expected"]["tick_usd"] is None:
            answers = figures.sanitize(expected_cost.sentence(row["expected"]), 400)
        nothing = figures.money(0.0, 2)
        return SpendingLine(
            row["profile"], answers, nothing, nothing, nothing, _dollars(row["ceiling_usd"])
        )
    mean, day = row["tick_usd"], row["day_usd"]
    known = "not known yet" if mean is None else figures.money(mean)
    expected = "not known yet" if day is None else _dollars(day)
    return SpendingLine(
        profile=figures.sanitize(row["profile"], 60),
        answers=figures.sanitize(
            f"{row['provider']} is asked: {expected_cost.sentence(row['expected'])}", 400
        ),
        so_far=f"{figures.money(row['day_so_far_usd'])} for {ticks_that_asked(row['ticks'])}",
        tick=f"{known}, at most {figures.money(row['tick_most_usd'])}",
        day=f"{expected}, at most {_dollars(row['day_most_usd'])} for {row['closes']:,} closes",
        ceiling=_dollars(row["ceiling_usd"]),
    )


def _traders(rows: Sequence[TraderReport]) -> list[tuple[str, str]]:
    """Return each profile whose desk asks a trader, and how often it was asked."""
    told = [(figures.sanitize(row["profile"], 60), model_report.trader_line(row)) for row in rows]
    return [(name, f"{line[:1].upper()}{line[1:]}.") for name, line in told]


def _standing(rows: Sequence[SeatRow]) -> list[StandingLine]:
    """Return how often each seat was right, as text."""
    return [
        StandingLine(
            place=f"{figures.sanitize(row['instance'], 60)} {row['timeframe']}",
            regime=row["regime"].replace("_", " "),
            seat=AGENTS[row["agent"]].role.title,
            calls=f"{row['calls']:,}",
            right=figures.DASH if row["hit_share"] is None else f"{100 * row['hit_share']:.1f} %",
            weight=expert_standing.weight(row) or figures.DASH,
        )
        for row in rows
    ]


def _dear(rows: Sequence[SpendingReport]) -> list[str]:
    """Return why desks never run, a sentence each."""
    told = (figures.sanitize(line, 400) for line in model_report.ladder_lines(rows))
    return [f"{line[:1].upper()}{line[1:]}." for line in told]


def _dollars(usd: float) -> str:
    return figures.money(usd, 2)


_BODY: Final[Fields] = {
    "model": {
        "type": "string",
        "maxLength": LONGEST_MODEL,
        "description": "A model of that vendor; default: the quick one that a profile asks.",
    }
}

ROUTES = (
    Route("/models", "models", models),
    Route("/api/v1/models", "api_models", api_models, reply="json"),
    Route(
        "/api/v1/models/<vendor>/test", "test_model", test_model,
        methods=("POST",), scope="approve", reply="json", per_minute=TESTS_PER_MINUTE, body=_BODY,
    ),
)  # fmt: skip
