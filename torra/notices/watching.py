"""Finds out what is new in a desk's database and puts it into the outbox, about once a second.

It reads what others have stored: steps of signals, proposals, alarms, changes of the trading state,
the ledger, and which closes brought no bar. It keeps where it stood in the database, in the very
transaction that writes the notices, so a restart tells nothing twice and forgets nothing. The first
look ever begins at now: what is past is not told, what stands (alarms, proposals) is.

Trades of the warm-up are never told. Only the desk that has its home's lock looks and writes. A
database that fails raises StoreUnavailable, and the next look tries again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, cast

from agents.debate.deliberation import OUTAGE
from instance_database import Database
from torra.clock import Clock, duration, floor, iso, parse
from torra.config import NOTICE_LEVELS, Instance, NoticeSettings, Profile, SymbolSpec
from torra.errors import ConfigError
from torra.market.closed_hours import SILENT_BARS, closed_at_most
from torra.money.open_positions import PAPER
from torra.notices.protocol import Level, Notice
from torra.notices.words import (
    TEXTS,
    NoticeFormatter,
    NoticeText,
    alarm_facts,
    facts_of,
    failing_models,
    harmless,
    span,
)
from torra.providers.call_health import health
from torra.store import ledger as ledger_table
from torra.store import notices as notice_table
from torra.store import tick_queries
from torra.store.notices import PATIENCE_SECONDS
from torra.store.standings import WarmUps
from torra.store.trade import signals as signal_table
from torra.store.trade.rows import ProposalRow, SignalRow
from torra.tick.sentence import NO_AGENT
from torra.verdict.signal_states import EXECUTED

Order = SignalRow | ProposalRow
"""A signal, or the proposal of one."""

if TYPE_CHECKING:
    from torra.money.book import Setups

MOST_WAITING: Final = 500
"""Notices that may wait for one service; alarms come on top and are never dropped."""

AT_ONCE: Final = 500
"""Steps of signals that one look reads."""

NEAR: Final = 0.8
"""Share of the hour's ceiling from which it is told."""

HOUR: Final = timedelta(hours=1)

PAST: Final = "DEMO "
"""Begins every title of a desk that replays the past."""

SLOWLY: Final = 15.0
"""Real seconds between two looks at what changes slowly: the ledger and the bars."""

ASLEEP: Final = timedelta(minutes=2)
"""Real time between two looks after which a machine has slept: no silence is counted over it."""

SILENT_AT_LEAST: Final = timedelta(minutes=30)

UNTOLD_BARS: Final = 3.5
"""The same while no close is written off yet: whether the feed fails is not known before."""

NO_BAR: Final = "no_bar"
"""Reason of a skipped close for which the feed brought no bar (torra.desk.schedule)."""

REFUSED: Final = frozenset(("REJECTED", "EXPIRED"))
"""States in which an order ends that opened nothing and that nobody took back."""

SKIPS: Final = 500
"""Skipped closes since the newest tick that are looked at."""


@dataclass(slots=True)
class WatchResult:
    """What one look has found: notices, and where each cursor stands now."""

    now: datetime
    real: datetime
    found: list[Notice] = field(default_factory=list)
    cursors: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        key: str,
        name: str,
        text: NoticeText,
        instance: str = "",
        desk_time: datetime | None = None,
    ) -> None:
        """Note something that is new, by the name of its notice."""
        kind, level, at = TEXTS[name]["kind"], TEXTS[name]["level"], desk_time or self.now
        self.found.append(Notice(key, kind, cast(Level, level), *text, instance, at, self.real))


class Watcher:
    """The look of one desk. One thread calls it."""

    def __init__(
        self,
        database: Database,
        settings: NoticeSettings,
        setups: Callable[[], Setups],
        clock: Callable[[], Clock],
        services: Callable[[], Sequence[str]],
        paper_currency: str = "",
    ) -> None:
        """Watch a desk; `services` are the names of who brings notices."""
        self._paper = paper_currency
        self._database = database
        self._settings = settings
        self._setups = setups
        self._clock = clock
        self._services = services
        self._slowly = float("-inf")
        self._seen: datetime | None = None
        self._awake: datetime | None = None

    def look(self) -> int:
        """Look once; return how many notices were written. Raises StoreUnavailable."""
        if not self._database.fence():
            return 0
        clock = self._clock()
        look = WatchResult(clock.now(), clock.real_now())
        tongue = NoticeFormatter(
            self._settings.detail == "short", PAST if clock.accelerated else ""
        )
        setups = list(self._setups())
        self._signals(look, tongue, setups)
        self._proposals(look, tongue, setups)
        self._alarms(look, tongue)
        self._states(look, tongue)
        if clock.monotonic() >= self._slowly + SLOWLY:
            self._slowly = clock.monotonic()
            self._ceilings(look, tongue, setups)
            self._models(look, tongue, setups)
            self._silences(look, tongue, setups)
        return self._write(look, tongue)

    # --- writing ------------------------------------------------------------------------------

    def _write(self, look: WatchResult, tongue: NoticeFormatter) -> int:
        """Write what was found with its cursors, all or nothing; most looks write nothing."""
        moved = {
            name: place
            for name, place in look.cursors.items()
            if notice_table.notice_cursor(self._database, name) != place
        }
        if not look.found and not moved:
            return 0
        count = 0
        with self._database.transaction(PATIENCE_SECONDS):
            self._database.require_desk()
            for notice in look.found:
                count += self._add(notice)
            for service in self._services():
                if count and (
                    lost := notice_table.trim_outbox(self._database, service, MOST_WAITING)
                ):
                    hour = iso(floor(look.real, "H1"))
                    notices = "1 notice was" if lost == 1 else f"{lost} notices were"
                    said = tongue.say("dropped", "Torra", notices=notices)
                    key = f"dropped:{service}:{hour}"
                    self._add(Notice(key, "dropped", "decision", *said, "", look.now, look.real))
            for name, place in moved.items():
                notice_table.set_notice_cursor(self._database, name, place)
        return count

    def _add(self, notice: Notice) -> bool:
        level, least = (NOTICE_LEVELS.index(one) for one in (notice.level, self._settings.least))
        called = level >= least
        quiet = notice.level != "alarm" and self._settings.quiet_at(notice.at)
        row = {**asdict(notice), "silent": quiet or not called}
        return notice_table.add_notice(
            self._database, row, self._services() if not row["silent"] else ()
        )

    # --- what is new --------------------------------------------------------------------------

    def _signals(self, look: WatchResult, tongue: NoticeFormatter, setups: Setups) -> None:
        """Tell fills and ends of positions."""
        stood = notice_table.notice_cursor(self._database, "steps")
        if stood is None:
            look.cursors["steps"] = str(signal_table.newest_step(self._database))
            return
        rows = notice_table.steps_after(self._database, int(stood), AT_ONCE)
        if not rows:
            return
        look.cursors["steps"] = str(rows[-1].step)
        warm_ups = WarmUps(self._database)  # anew: a warm-up that runs has another end by now
        currencies: dict[str, str] | None = None
        for row in rows:
            if row.kind != "open" or warm_ups.made(*row.bar):
                continue
            if row.to_state in EXECUTED:
                name, when = "fill", row.opened_at
            elif row.to_state in REFUSED:
                name, when = "refused", None
            elif row.to_state == "CLOSED":
                name, when = "close", row.closed_at
            else:
                continue
            if name == "close" and currencies is None:
                currencies = _currencies(self._database, self._paper)
            currency = (currencies or {}).get(str(row.bridge or PAPER), "")
            text = tongue.say(name, row.instance, **facts_of(row, _spec(setups, row), currency))
            text = self._cut(text, row) if name == "fill" else text
            look.add(f"{name}:{row.sid}", name, text, row.instance, _moment(when))

    def _proposals(self, look: WatchResult, tongue: NoticeFormatter, setups: Setups) -> None:
        """Tell proposals that wait for a person."""
        told = _names(notice_table.notice_cursor(self._database, "proposals"))
        rows = self._database.proposals("WAITING")
        look.cursors["proposals"] = _names_text(row.sid for row in rows)
        for row in rows:
            if row.sid not in told:
                said = self._cut(tongue.proposal(row, _spec(setups, row)), row)
                key = f"proposal:{row.sid}"
                look.add(key, "proposal", said, row.instance)

    def _cut(self, said: NoticeText, row: Order) -> NoticeText:
        """Return a notice of an order that says so where models failed on the order's tick."""
        key = f"{row.instance}|{row.timeframe}|{row.bar_time}"
        found = tick_queries.words_of(self._database, [key], ("flags", "action")).get(key, {})
        outage = OUTAGE in (found.get("flags") or ())
        return said._replace(text=f"{said.text} {NO_AGENT.capitalize()}.") if outage else said

    def _alarms(self, look: WatchResult, tongue: NoticeFormatter) -> None:
        """Tell alarms that stand."""
        told = _names(notice_table.notice_cursor(self._database, "alarms"))
        stands = {f"{row.key} {row.at}": row for row in self._database.alarms()}
        look.cursors["alarms"] = _names_text(stands)
        for name, row in stands.items():
            if name not in told:
                concerned = self._concerned(row.key)
                said = tongue.say("alarm", concerned or "Torra", **alarm_facts(row.kind))
                look.add(f"alarm:{name}", "alarm", said, concerned)

    def _concerned(self, key: str) -> str:
        """Return the instance that the key of an alarm names, itself or by a signal; else ""."""
        word = key.rpartition(" ")[2]
        if any(word == item.id for item, _ in self._setups()):
            return word
        signal = self._database.signal(word)
        return str(signal["instance"]) if signal else ""

    def _states(self, look: WatchResult, tongue: NoticeFormatter) -> None:
        """Tell halts, reductions and that trading goes on."""
        stood = notice_table.notice_cursor(self._database, "states")
        if stood is None:
            look.cursors["states"] = str(notice_table.newest_state(self._database))
            return
        for row in notice_table.states_after(self._database, int(stood), AT_ONCE):
            look.cursors["states"] = str(row.id)
            why = f"Why: {harmless(row.reason)}. " if harmless(row.reason) else ""
            look.add(f"state:{row.id}", row.state, tongue.say(row.state, "Torra", why=why))

    def _ceilings(self, look: WatchResult, tongue: NoticeFormatter, setups: Setups) -> None:
        """Tell profiles that have used most of the hour's ceiling, once an hour each."""
        told = _object(notice_table.notice_cursor(self._database, "ceilings"))
        for name, profile in {item.profile: profile for item, profile in setups}.items():
            most = profile.agents.max_api_cost_per_hour
            if not profile.agents.paid() or most <= 0:
                continue
            spent = self._database.spent(name, look.real - HOUR, surely=True)
            before = told.get(name)
            if spent < NEAR * most or (before and look.real - parse(before) < HOUR):
                continue
            told[name] = iso(look.real.replace(microsecond=0))
            said = tongue.say(
                "ceiling",
                "Torra",
                share=f"{spent / most:.0%}",
                profile=name,
                spent=spent,
                most=most,
            )
            look.add(f"ceiling:{name}:{told[name]}", "ceiling", said)
            look.cursors["ceilings"] = json.dumps(told)

    def _models(self, look: WatchResult, tongue: NoticeFormatter, setups: Setups) -> None:
        """Tell each vendor whose models begin to fail, and that all of these are well again."""
        desks = {item.profile: profile.agents for item, profile in setups}.values()
        told = _names(notice_table.notice_cursor(self._database, "models"))
        stand, now = set[str](), iso(look.real)
        # A model that nobody asks any more is not among them.
        found = health(desks, partial(ledger_table.newest_calls, self._database))
        for vendor, models in groupby(found, lambda one: one.vendor):
            own = [one for one in models if one.failing or one.name in told]
            known = [one for one in own if one.name in told]
            if known and all(one.well for one in own):
                look.add(f"well:{vendor}:{now}", "well", tongue.say("well", vendor))
                continue
            stand.update(one.name for one in own)
            # One that was told of and is not asked since keeps silent of no other.
            before = any(one.failing or (one.calls and not one.well) for one in known)
            if not before and any(one.failing for one in own):
                said = tongue.say("failing", vendor, models=failing_models(own))
                look.add(f"failing:{vendor}:{now}", "failing", said)
        look.cursors["models"] = _names_text(stand)

    def _silences(self, look: WatchResult, tongue: NoticeFormatter, setups: Setups) -> None:
        """Tell feeds that have brought no bar for long, once for each silence."""
        if self._awake is None or (self._seen and look.real - self._seen > ASLEEP):
            self._awake = look.now
        self._seen = look.real
        for item, profile in setups:
            key, since = self._newest(item)
            if since is None:
                continue
            quiet_for = look.now - max(since, self._awake)
            if quiet_for >= self._patience(item, profile, since, look.now):
                facts = {"timeframe": item.shortest, "span": span(look.now - since)}
                look.add(f"silent:{key}", "silent", tongue.say("silent", item.id, **facts), item.id)

    def _newest(self, item: Instance) -> tuple[str, datetime | None]:
        """Return the key and the close of the newest tick of an instance's shortest timeframe."""
        stream = (item.id, item.shortest)
        key, _ = tick_queries.newest_of(self._database, [stream])[stream]
        if key is None:
            return "", None
        return key, parse(key.split("|")[2]) + duration(item.shortest)

    def _patience(
        self, item: Instance, profile: Profile, since: datetime, now: datetime
    ) -> timedelta:
        """Return how long a feed may be silent: a market that is closed is silent for longer."""
        step = duration(item.shortest)
        bar_time = iso(since - step)
        skips = tick_queries.skips_after(self._database, item.id, item.shortest, bar_time, SKIPS)
        fails = skips is not None and (skips["reason"] != NO_BAR or bool(skips["others"]))
        if skips is None:
            return max(step * UNTOLD_BARS, SILENT_AT_LEAST)
        if fails:
            return max(step * SILENT_BARS, SILENT_AT_LEAST)
        return closed_at_most(profile, item.symbol, step, since, now)


def _currencies(database: Database, paper: str) -> dict[str, str]:
    from torra.money.book import known_currencies  # noqa: PLC0415 - few looks see a trade closed

    return known_currencies(database, paper)


def _spec(setups: Iterable[tuple[Instance, Profile]], row: Order) -> SymbolSpec | None:
    for item, profile in setups:
        if item.id == row.instance:
            return _terms(profile, row.symbol)
    return None


def _terms(profile: Profile, symbol: str) -> SymbolSpec | None:
    try:
        return profile.symbol(symbol)
    except ConfigError:
        return None


def _moment(told: object) -> datetime | None:
    return parse(told) if isinstance(told, str) else None


def _names(told: str | None) -> frozenset[str]:
    return frozenset(json.loads(told)) if told else frozenset()


def _names_text(names: Iterable[object]) -> str:
    return json.dumps(sorted(str(name) for name in names))


def _object(told: str | None) -> dict[str, str]:
    found = json.loads(told) if told else {}
    return {str(name): str(value) for name, value in found.items()}
