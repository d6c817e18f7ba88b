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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, cast

from agents.debate.deliberation import OUTAGE
from instance_database import Database
from torra.clock import Clock, duration, floor, iso, parse
from torra.config import NOTICE_LEVELS, Instance, NoticeSettings, Profile, SymbolSpec
from torra.errors import MALFORMED, ConfigError
from torra.market.closed_hours import SILENT_BARS, closed_at_most
from torra.money.open_positions import PAPER
from torra.notices.protocol import Level, Notice
from torra.notices.words import (
    TEXTS,
    NoticeFormatter,
    alarm_facts,
    facts_of,
    failing_models,
    harmless,
    span,
)
from torra.providers.call_health import health
from torra.store import ledger as ledger_table
from torra.store import notices as notice_table
from torra.store import radar_runs, tick_queries
from torra.store.notices import PATIENCE_SECONDS
from torra.store.standings import WarmUps
from torra.store.trade import signals as signal_table
from torra.store.trade.rows import ProposalRow, SignalRow
from torra.tick.sentence import NO_AGENT
from torra.verdict.signal_states import EXECUTED
from torra.words.badge import capital
from torra.words.radar import BUCKET_WORDS, words_of

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

STEPS: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(EXECUTED, ("fill", "opened_at")),
    **dict.fromkeys(("REJECTED", "EXPIRED"), ("refused", "")),
    "CLOSED": ("close", "closed_at"),
}
"""The notice of an order to open by the state that it has come to, and the field of its time."""

RADAR_PAUSE: Final = timedelta(hours=4)
"""Real time in which a row of the radar is told once."""

SKIPS: Final = 500
"""Skipped closes since the newest tick that are looked at."""


@dataclass(slots=True)
class NoticeRound:
    """One look at a desk: what it reads, what is new, and where each cursor stands now.

    `awake` is the desk time from which on its machine has been awake. `paper` is the currency of
    the paper account.
    """

    database: Database
    setups: Sequence[tuple[Instance, Profile]]
    formatter: NoticeFormatter
    paper: str
    now: datetime
    real: datetime
    awake: datetime
    notices: list[Notice] = field(default_factory=list)
    cursors: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        key: str,
        name: str,
        facts: Mapping[str, object],
        instance: str = "",
        *,
        subject: str = "",
        order: SignalRow | ProposalRow | None = None,
        desk_time: datetime | None = None,
    ) -> None:
        """Note something that is new, by the name of its notice and the facts that it tells.

        `subject` is the instance, or Torra, unless it is named. The notice of an `order` says so
        where models failed on the order's tick.
        """
        title, text = self.formatter.say(name, subject or instance or "Torra", **facts)
        if order is not None:
            tick = f"{order.instance}|{order.timeframe}|{order.bar_time}"
            words = tick_queries.words_of(self.database, [tick], ("flags", "action"))
            if OUTAGE in (words.get(tick, {}).get("flags") or ()):
                text = f"{text} {NO_AGENT.capitalize()}."
        kind, level = TEXTS[name]["kind"], cast(Level, TEXTS[name]["level"])
        at = desk_time or self.now
        self.notices.append(Notice(key, kind, level, title, text, instance, at, self.real))

    def cursor(self, name: str) -> str | None:
        """Return where a cursor stood, None before the first look."""
        return notice_table.notice_cursor(self.database, name)

    def names(self, name: str) -> frozenset[str]:
        """Return the names that a cursor holds."""
        return frozenset(json.loads(self.cursor(name) or "[]"))

    def set_names(self, name: str, names: Iterable[str]) -> None:
        """Let a cursor hold names."""
        self.cursors[name] = json.dumps(sorted(names))

    def spec(self, order: SignalRow | ProposalRow) -> SymbolSpec | None:
        """Return the conditions of an order's symbol, None where nothing is known of it."""
        for item, profile in self.setups:
            with suppress(ConfigError):
                if item.id == order.instance:
                    return profile.symbol(order.symbol)
        return None


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
        self._database = database
        self._settings = settings
        self._setups = setups
        self._clock = clock
        self._services = services
        self._paper = paper_currency
        self._slowly = float("-inf")
        self._checked_at: datetime | None = None
        self._awake: datetime | None = None

    def look(self) -> int:
        """Look once; return how many notices were written. Raises StoreUnavailable."""
        if not self._database.fence():
            return 0
        clock = self._clock()
        now, real, rules = clock.now(), clock.real_now(), [*RULES]
        if clock.monotonic() >= self._slowly + SLOWLY:
            self._slowly = clock.monotonic()
            if self._awake is None or (self._checked_at and real - self._checked_at > ASLEEP):
                self._awake = now
            self._checked_at = real
            rules += SLOW_RULES
        mark = PAST if clock.accelerated else ""
        formatter = NoticeFormatter(self._settings.detail == "short", mark)
        look = NoticeRound(
            self._database, [*self._setups()], formatter, self._paper, now, real, self._awake or now
        )
        for rule in rules:
            rule(look)
        if self._settings.radar:
            with suppress(*MALFORMED):  # a run of another version costs no other notice
                radar(look)
        return self._write(look)

    def _write(self, look: NoticeRound) -> int:
        """Write what was found with its cursors, all or nothing; most looks write nothing."""
        moved = {name: at for name, at in look.cursors.items() if look.cursor(name) != at}
        if not look.notices and not moved:
            return 0
        with self._database.transaction(PATIENCE_SECONDS):
            self._database.require_desk()
            count = sum(map(self._add, look.notices))
            for service in self._services() if count else ():
                lost = notice_table.trim_outbox(self._database, service, MOST_WAITING)
                if lost:
                    hour = iso(floor(look.real, "H1"))
                    notices = "1 notice was" if lost == 1 else f"{lost} notices were"
                    look.add(f"dropped:{service}:{hour}", "dropped", {"notices": notices})
                    self._add(look.notices[-1])
            for name, place in moved.items():
                notice_table.set_notice_cursor(self._database, name, place)
        return count

    def _add(self, notice: Notice) -> bool:
        level, least = (NOTICE_LEVELS.index(name) for name in (notice.level, self._settings.least))
        quiet = notice.level != "alarm" and self._settings.quiet_at(notice.at)
        row = {**asdict(notice), "silent": quiet or level < least}
        services = () if row["silent"] else self._services()
        return notice_table.add_notice(self._database, row, services)


# --- the rules: what is new -----------------------------------------------------------------------


def orders(look: NoticeRound) -> None:
    """Tell fills, refusals and ends of positions."""
    database, stood = look.database, look.cursor("steps")
    if stood is None:
        look.cursors["steps"] = str(signal_table.newest_step(database))
        return
    warm_ups = WarmUps(database)  # anew: a warm-up that runs has another end by now
    currencies: Mapping[str, str] | None = None
    for row in notice_table.steps_after(database, int(stood), AT_ONCE):
        look.cursors["steps"] = str(row.step)
        name, field_of_time = STEPS.get(row.to_state, ("", ""))
        if not name or row.kind != "open" or warm_ups.made(*row.bar):
            continue
        if name == "close" and currencies is None:
            from torra.money.book import known_currencies  # noqa: PLC0415 - few looks see a close

            currencies = known_currencies(database, look.paper)
        currency = (currencies or {}).get(str(row.bridge or PAPER), "")
        moment = getattr(row, field_of_time, None)
        look.add(
            f"{name}:{row.sid}",
            name,
            facts_of(row, look.spec(row), currency),
            row.instance,
            order=row if name == "fill" else None,
            desk_time=parse(moment) if moment else None,
        )


def proposals(look: NoticeRound) -> None:
    """Tell proposals that wait for a person."""
    announced, rows = look.names("proposals"), look.database.proposals("WAITING")
    look.set_names("proposals", (row.sid for row in rows))
    for row in rows:
        if row.sid not in announced:
            facts = look.formatter.proposal_facts(row, look.spec(row))
            look.add(f"proposal:{row.sid}", "proposal", facts, row.instance, order=row)


def alarms(look: NoticeRound) -> None:
    """Tell alarms that stand, of the instance that the key names, itself or by a signal."""
    announced = look.names("alarms")
    standing = {f"{row.key} {row.at}": row for row in look.database.alarms()}
    look.set_names("alarms", standing)
    for name, row in standing.items():
        if name not in announced:
            instance = row.key.rpartition(" ")[2]
            if instance not in [item.id for item, _ in look.setups]:
                signal = look.database.signal(instance)
                instance = str(signal["instance"]) if signal else ""
            look.add(f"alarm:{name}", "alarm", alarm_facts(row.kind), instance)


def states(look: NoticeRound) -> None:
    """Tell halts, reductions and that trading goes on."""
    stood = look.cursor("states")
    if stood is None:
        look.cursors["states"] = str(notice_table.newest_state(look.database))
        return
    for row in notice_table.states_after(look.database, int(stood), AT_ONCE):
        look.cursors["states"] = str(row.id)
        reason = harmless(row.reason)
        look.add(f"state:{row.id}", row.state, {"why": f"Why: {reason}. " if reason else ""})


def ceilings(look: NoticeRound) -> None:
    """Tell profiles that have used most of the hour's ceiling, once an hour each."""
    announced: dict[str, str] = json.loads(look.cursor("ceilings") or "{}")
    for name, profile in {item.profile: profile for item, profile in look.setups}.items():
        most = profile.agents.max_api_cost_per_hour
        if not profile.agents.paid() or most <= 0:
            continue
        spent = look.database.spent(name, look.real - HOUR, surely=True)
        before = announced.get(name)
        if spent < NEAR * most or (before and look.real - parse(before) < HOUR):
            continue
        announced[name] = iso(look.real.replace(microsecond=0))
        share = f"{spent / most:.0%}"
        facts = {"share": share, "profile": name, "spent": spent, "most": most}
        look.add(f"ceiling:{name}:{announced[name]}", "ceiling", facts)
        look.cursors["ceilings"] = json.dumps(announced)


def models(look: NoticeRound) -> None:
    """Tell each vendor whose models begin to fail, and that all of these are well again."""
    desks = {item.profile: profile.agents for item, profile in look.setups}.values()
    announced, standing, now = look.names("models"), set[str](), iso(look.real)
    # A model that nobody asks any more is not among them.
    reports = health(desks, partial(ledger_table.newest_calls, look.database))
    for vendor, group in groupby(reports, lambda row: row.vendor):
        own = [row for row in group if row.failing or row.name in announced]
        before = [row for row in own if row.name in announced]
        if before and all(row.well for row in own):
            look.add(f"well:{vendor}:{now}", "well", {}, subject=vendor)
            continue
        standing.update(row.name for row in own)
        # One that was told of and is not asked since keeps silent of no other.
        still = any(row.failing or (row.calls and not row.well) for row in before)
        if not still and any(row.failing for row in own):
            facts = {"models": failing_models(own)}
            look.add(f"failing:{vendor}:{now}", "failing", facts, subject=vendor)
    look.set_names("models", standing)


def silences(look: NoticeRound) -> None:
    """Tell feeds that have brought no bar for long, once for each silence."""
    for item, profile in look.setups:
        stream = (item.id, item.shortest)
        key, _ = tick_queries.newest_of(look.database, [stream])[stream]
        if key is None:
            continue
        bar_time, step = key.split("|")[2], duration(item.shortest)
        since = parse(bar_time) + step
        skips = tick_queries.skips_after(look.database, *stream, bar_time, SKIPS)
        if skips is None:
            patience = max(step * UNTOLD_BARS, SILENT_AT_LEAST)
        elif skips["reason"] != NO_BAR or skips["others"]:  # the feed fails
            patience = max(step * SILENT_BARS, SILENT_AT_LEAST)
        else:  # a market that is closed is silent for longer
            patience = closed_at_most(profile, item.symbol, step, since, look.now)
        if look.now - max(since, look.awake) >= patience:
            facts = {"timeframe": item.shortest, "span": span(look.now - since)}
            look.add(f"silent:{key}", "silent", facts, item.id)


def radar(look: NoticeRound) -> None:
    """Tell streams that enter `act` or `exit_radar`, each once in RADAR_PAUSE."""
    run, stood = radar_runs.newest_run(look.database), look.cursor("radar")
    last: dict[str, Any] = json.loads(stood or '{"run": 0, "rows": [], "told": {}}')
    if run is None or run["id"] == last["run"]:
        return
    document = json.loads(run["document"])
    rows = {
        f"{row['bucket']} {row['stream']}": row for row in document["act"] + document["exit_radar"]
    }
    pause = iso(look.real - RADAR_PAUSE)
    told = {name: at for name, at in last["told"].items() if at > pause}
    for name, row in rows.items() if stood else ():
        if name not in last["rows"] and name not in told:
            told[name] = iso(look.real)
            words = [words_of(code) for code in row["codes"]]
            facts = {
                "bucket": BUCKET_WORDS[row["bucket"]].lower(),
                "words": ", ".join(one.word for one in words),
                "meanings": capital("; ".join(one.meaning for one in words)),
            }
            instance = str(row["stream"]).partition("|")[0]
            look.add(f"radar:{name}:{run['id']}", "radar", facts, instance)
    look.cursors["radar"] = json.dumps({"run": run["id"], "rows": [*rows], "told": told})


RULES: Final = (orders, proposals, alarms, states)
SLOW_RULES: Final = (ceilings, models, silences)
"""What every look asks, and what one in SLOWLY seconds asks too: what changes slowly."""
