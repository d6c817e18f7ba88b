"""The work behind `torra tick`: the very run_tick, in a throw-away copy of the desk's database.

The copy knows what the desk knew at `as_of` and nothing later; the clock stands at `as_of`. Nothing
is published, and nothing of the desk changes but its ledger: the cost of a trial counts under the
profile's ceiling like any other call. A vendor that the desk does not ask now is not asked here
either; one that refuses a trial is still asked by the desk. `run` returns the record of the tick,
with the action and the signal that would have been. It raises ConfigError for a mistake and
DataUnavailable for a tick that cannot be run.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

import pandas as pd

from agents.contracts import VECTORS
from agents.debate.scoring import DIRECTIONS
from instance_database import Database, TickKey, open_home
from torra.clock import Simulated, System, duration, floor, iso, parse
from torra.config import NAME, Instance, Profile, load_desk, load_profile, validate
from torra.desk import wiring
from torra.desk.memory.experts_past import ExpertsPast
from torra.desk.memory.shelves import DeskLessons
from torra.desk.models.access import Models, check_models, open_models
from torra.desk.outlook import ContextFeeds, with_invented
from torra.desk.promotion import fingerprint
from torra.errors import ConfigError, DataUnavailable
from torra.evaluation.wording import count
from torra.evidence.companion_readings import Companions
from torra.exhibits.beyond import outside_words
from torra.feeds.bar_file import admit
from torra.feeds.companions import CompanionReader
from torra.feeds.frame import FrameFeed
from torra.feeds.protocol import Feed
from torra.home import BACKUP_FOLDER, DATABASE
from torra.providers.registry import Provider
from torra.store import bars as bar_table
from torra.store import standings as standing_table
from torra.tick.bar_window import LiveWindow
from torra.tick.degradation import DegradationLevel
from torra.tick.edges import TickDeps
from torra.tick.marks import INVENTED, LEAN_AGAINST
from torra.tick.record import TickResult
from torra.tick.sentence import page_text
from torra.tick.spending import Purse, SpendingAccount
from torra.tick.tick_record import Damaged, TickRecord, load
from torra.tick.words import swarm_words, thesis_words
from torra.time_limit import SHARE_SECONDS
from torra_trader import run_tick

EARLIEST: Final = parse("1990-01-01")
COUNTING: Final = 30.0
"""Longest wait for the past calls of a desk to be counted, in seconds, before the tick is due."""

DOCUMENT_KEYS: Final = (
    "sentence", "symbol", "timeframe", "bar_time", "l1", "agents", "scores", "source_type", "ath",
    "ath_price", "low_price", "records_since", "composite",
    "consensus", "l1_consensus", "verdict", "l1_verdict", "action", "reason", "denied", "gate",
    "signal", "calls", "cost_usd", "elapsed_ms", "provider", "regime", "agreement",
    "abstained", "failures", "reports", "flags", "news", "events", "outside",
)  # fmt: skip
"""What `torra tick --json` prints, in this order."""


def run(
    home: Path,
    symbol: str,
    timeframe: str,
    *,
    as_of: str | None = None,
    bars: Path | None = None,
    clock: str | None = None,
    profile: str | None = None,
    mode: str | None = None,
    provider: str | None = None,
    settings: Profile | None = None,
    on_result: Callable[[TickResult], None] | None = None,
) -> Mapping[str, Any]:
    """Return the record of one tick; raises ConfigError or DataUnavailable.

    `clock` is that of the file `bars`. `settings` are a profile that lies in no file; what it costs
    is booked for the instance's own. `on_result` gets the result of the tick as values.
    """
    instance = instance_of(home, symbol, timeframe, from_file=bars is not None)
    settings = settings or profile_of(home, instance, profile, mode, provider)
    wiring.check_profile(settings, instance, profile or instance.profile)
    check_models(home, settings.agents)
    if profile:
        instance = instance.model_copy(update={"profile": _ledger_name(profile)})
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="torra-tick-"))
        database = _copy(home / DATABASE, Path(folder))
        stack.callback(database.close)
        if settings.agents.paid():
            _refuse_older(home / DATABASE, Path(folder))
        books = stack.enter_context(ExitStack())  # closed last: a call that ends then is booked
        models = open_models(home, database, remember=False)
        stack.callback(models.close)
        models.apply_blocks()
        voice = models.provider(settings.agents)  # its SDK is imported while the bars are read
        feed = _feed(home, instance, timeframe, bars, clock, database)
        moment = _moment(as_of, instance, timeframe, feed, database)
        account = _Payer(home, models, settings, instance.profile, books)
        paying = cast(SpendingAccount, account) if settings.agents.paid() else None
        companions = None if bars else _companions(home, instance, database)
        if companions is not None:
            stack.callback(companions.close)
        # It only reads: nothing is collected for a trial.
        outlook = ContextFeeds(home, database, dict(os.environ), [settings], now=System().now)
        return _tick(
            instance,
            timeframe,
            moment,
            settings,
            feed,
            database,
            voice,
            paying,
            outlook,
            on_result,
            companions=companions,
            ready=models.clients.ready,
        )


class _Payer:
    """The account of a trial: books in the desk's own ledger.

    The desk's database is opened, and made where there is none, when the first call is near.
    """

    def __init__(
        self, home: Path, models: Models, profile: Profile, name: str, stack: ExitStack
    ) -> None:
        self._home = home
        self._models = models
        self._profile = profile
        self._name = name
        self._stack = stack
        self._opened: SpendingAccount | None = None

    def degradation_level(self, *args: Any, **named: Any) -> DegradationLevel:
        return self._account().degradation_level(*args, **named)

    def purse(self, *args: Any, **named: Any) -> Purse:
        return self._account().purse(*args, **named)

    def _account(self) -> SpendingAccount:
        if self._opened is None:
            books = open_home(self._home)
            self._stack.callback(books.close)
            found = replace(self._models, database=books).account(self._profile.agents, self._name)
            if found is None:
                raise ValueError("a profile that asks no vendor has no account")
            self._opened = found
        return self._opened


def _ledger_name(profile: str) -> str:
    """Return the name by which the ledger knows a profile."""
    name = Path(profile).stem if _is_file(profile) else profile
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"--profile {profile}: the ledger keeps a profile by its file's name; rename the file "
            "with letters, digits, _ . - only, 32 at most"
        )
    return name


def _refuse_older(path: Path, folder: Path) -> None:
    """Raise ConfigError when the desk's database is older than this program.

    Its copy was migrated, and then left a backup beside it. The desk's own is for the desk to
    migrate.
    """
    if (folder / BACKUP_FOLDER).exists():
        raise ConfigError(
            f"{path} was made by an older Torra, and what a trial costs is booked in it; start the "
            "desk once, which brings it up to date after a backup, or try in a copy with --home"
        )


def _tick(
    instance: Instance,
    timeframe: str,
    as_of: datetime,
    profile: Profile,
    feed: Feed,
    database: Database,
    voice: Provider,
    account: SpendingAccount | None,
    outlook: ContextFeeds,
    on_result: Callable[[TickResult], None] | None = None,
    *,
    companions: Companions | None = None,
    ready: Callable[[], object],
) -> Mapping[str, Any]:
    clock = Simulated(as_of)
    # The copy is of the present: what came after `as_of` must not be known.
    database.rewind(instance.id, as_of, timeframe)
    window = LiveWindow(instance, feed, database)
    window.fill(as_of)
    past = ExpertsPast(database)
    past.prepare([(instance, profile, voice.name, feed)], as_of, within=COUNTING)
    edges = TickDeps(
        database=database,
        window=window,
        submit=voice.submit,
        provider=voice.name,
        clock=clock,
        account=account,
        news=outlook.news(instance, profile),
        events=outlook.events(instance, profile),
        outside=outlook.outside(instance, profile),
        lessons=DeskLessons(database).of(profile, feed),
        standing=past.of(profile, voice.name, feed),
        companions=companions,
        flow=window.flow if profile.outside.sources else None,
        promoted=lambda: standing_table.agents_promoted(database, fingerprint(profile)),
    )
    edges = with_invented(edges, instance, profile, feed, database)
    # Paid agents are asked on the tick of the trial alone.
    before = edges if account is None else replace(edges, submit=None)
    # The ticks before this one are for the consensus: they must not trade.
    silent = profile.model_copy(update={"execution": "off"})
    for other in _before(instance, timeframe, as_of, feed):
        clock.set(other.close_time)
        run_tick(
            instance, other.timeframe, other.bar_time, clock.monotonic(),
            profile=silent, edges=before,
        )  # fmt: skip
    clock.set(as_of)
    bar_time = as_of - duration(timeframe)
    ready()  # before the tick is due: the import of an SDK is not part of its time
    outcome = run_tick(
        instance, timeframe, bar_time, clock.monotonic(), profile=profile, edges=edges
    )
    if outcome.record is None:
        raise DataUnavailable(outcome.reason, outcome.detail)
    if on_result is not None and outcome.result is not None:
        on_result(outcome.result)
    stored = database.tick(outcome.key) or {}
    record = load(outcome.key.text, stored)
    if isinstance(record, Damaged):
        raise DataUnavailable("error", record.reason)
    said, spoken = stored["deliberation"], record.deliberation
    agreed = {side: spoken.panel.agreement(side) for side in DIRECTIONS}
    return {
        **outcome.record,
        "regime": record.regime.name,
        "agreement": {side: asdict(agreement) for side, agreement in agreed.items()},
        "abstained": {one.agent_id: one.reason for one in spoken.reports if one.abstained},
        "failures": _failures(record),
        "reports": said["reports"],
        "flags": [*record.flags, *spoken.flags],
        **{name: said[name] for name in ("consulted", "swarm") if name in said},
        "judge": spoken.judge and {name: getattr(spoken.judge, name) for name in JUDGED},
        "record": record,
        "told": page_text(record),
        "beyond": record.outside and outside_words.in_a_line(record.symbol, record.outside),
        "swarm_told": swarm_words.rows(spoken, record.verdict, record.features, record.gate),
        "firm": thesis_words.rows(
            spoken, record.flags, timeframe, profile.agents.escalation, record.stored_calls
        ),
    }


JUDGED: Final = ("winner", "confidence", "claim", "counter", "falsifiers", "win_share", "close")
"""What `--json` tells of a judge's report."""


def _failures(record: TickRecord) -> dict[str, str]:
    """Return why each agent that gave no report failed, in one line."""
    details = {call.role_id: call.detail for call in record.made_calls}
    return {
        agent: f"{reason} ({details[agent]})" if details.get(agent) else reason
        for agent, reason in record.deliberation.failures.items()
    }


def _before(instance: Instance, timeframe: str, as_of: datetime, feed: Feed) -> Iterator[TickKey]:
    """Yield the newest tick of each other timeframe that ran before this one, for the consensus.

    Where two close together the longer runs first. One that the desk has run already stays as it
    is; one that it has not sends no signal; one without bars does not take part.
    """
    for other in reversed(instance.timeframes):
        step = duration(other)
        last = floor(as_of, other)
        # It closes together with this tick and runs after it: only the one before is known.
        if last == as_of and step <= duration(timeframe):
            last -= step
        if other != timeframe and len(feed.bars(instance.symbol, other, last, 1)):
            yield TickKey(instance.id, other, last - step)


def instance_of(home: Path, symbol: str, timeframe: str, *, from_file: bool) -> Instance:
    """Return the instance of the desk, or one made for a file; raises ConfigError."""
    try:
        duration(timeframe)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if from_file:
        values = {"symbol": symbol, "timeframes": [timeframe], "feed": "store"}
        return validate(Instance, values, "the command line")
    instance = load_desk(home).instance(symbol)
    if timeframe not in instance.timeframes:
        known = ", ".join(instance.timeframes)
        raise ConfigError(f"{instance.id} is not watched on {timeframe}; the desk watches {known}")
    return instance


def profile_of(
    home: Path, instance: Instance, named: str | None, mode: str | None, provider: str | None
) -> Profile:
    """Return the profile of a trial with what the user changed in it; raises ConfigError."""
    is_file = named is not None and _is_file(named)
    profile = load_profile(Path(named) if named and is_file else named or instance.profile, home)
    changes = {
        name: value for name, value in (("mode", mode), ("provider", provider)) if value is not None
    }
    return profile.with_agents(**changes) if changes else profile


def _is_file(profile: str) -> bool:
    return profile.endswith(".json") or Path(profile).is_file()


def _copy(path: Path, folder: Path) -> Database:
    copy = folder / DATABASE
    if path.exists():
        Database.copy(path, copy)
    return Database.open(copy, now=System().real_now)


def _feed(
    home: Path,
    instance: Instance,
    timeframe: str,
    file: Path | None,
    clock: str | None,
    database: Database,
) -> Feed:
    if file is None:
        return wiring.open_feeds([instance], load_desk(home), home, database)[instance.id]
    taken = admit(file, timeframe, clock=clock, symbol=instance.symbol)
    return FrameFeed({timeframe: taken.frame})


def _companions(home: Path, instance: Instance, database: Database) -> CompanionReader | None:
    """Return the reader of an instance's companions; a trial may take its time to wait for them."""
    found = wiring.open_companions(
        [instance], load_desk(home), home, database, keep=False, wait=SHARE_SECONDS
    )
    return found.get(instance.id)


def _moment(
    text: str | None, instance: Instance, timeframe: str, feed: Feed, database: Database
) -> datetime:
    step = duration(timeframe)
    if text is not None:
        return _close(text, timeframe)
    newest = bar_table.newest_bar(database, instance.id, timeframe)
    if isinstance(feed, FrameFeed) or newest is None:
        frame: pd.DataFrame = feed.bars(instance.symbol, timeframe, _latest(feed), 1)
        if not len(frame):
            raise ConfigError(
                f"no bars of {instance.symbol} {timeframe}: bring some with "
                f"torra import FILE --symbol {instance.symbol} --timeframe {timeframe}"
            )
        newest = frame.index[-1].to_pydatetime()
    return newest + step


def _close(text: str, timeframe: str) -> datetime:
    try:
        moment = parse(text)
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"--as-of {text}: write a UTC time as 2021-12-01T10:00Z") from error
    if not EARLIEST <= moment <= System().now():
        raise ConfigError(f"--as-of {text} is before {iso(EARLIEST)} or not yet")
    nearest = floor(moment, timeframe)
    if moment != nearest:
        raise ConfigError(
            f"--as-of {text} is not a close of {timeframe}; the one before is {iso(nearest)}"
        )
    return moment


def _latest(feed: Feed) -> datetime:
    period = feed.period()
    return System().now() if period is None else period[1]


def document(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document that --json prints."""
    # Where no lesson was known there is none, as in the record.
    lessons = {"lessons": record["lessons"]} if record.get("lessons") else {}
    more = {
        name: record[name] for name in ("consulted", "swarm", "judge", INVENTED) if record.get(name)
    }
    return {key: record[key] for key in DOCUMENT_KEYS} | lessons | more


def table(record: Mapping[str, Any]) -> str:
    """Return the record as a table for a terminal."""
    return "\n".join(
        [
            record["told"],
            "",
            *_heading(record),
            *_vectors(record),
            "",
            *_decision(record),
        ]
    )


def _outside(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows on news, events and numbers, where the profile asks for them."""
    rows: dict[str, str] = {}
    if news := record["news"]:
        score = "" if news["score"] is None else f", score {news['score']:+.2f}"
        rows["news"] = f"{news['status']}, {news['unique']} headlines{score}"
    if events := record["events"]:
        near = [
            f"{said} {events[name]:.0f} min{after}: {_named(events, record['as_of'], name)}"
            for name, said, after in (("to_next", "next in", ""), ("since_last", "last", " ago"))
            if events[name] is not None
        ]
        status = events["status"].replace("_", " and ")
        rows["events"] = f"{status}, {'; '.join(near) or 'none within a day'}"
    if record["beyond"]:
        rows["outside"] = record["beyond"]
    if record.get(INVENTED):
        rows[INVENTED] = "what news and outside tell, and the spreads"
    if lessons := record.get("lessons"):
        rows["lessons"] = _lessons(lessons)
    return rows


def _lessons(told: Mapping[str, Any]) -> str:
    """Return what was told of earlier trades, in a line."""
    numbers, notes = told["numbers"], count(len(told["notes"]), "note")
    known = f"{count(told['corpus'], 'lesson')} known, {notes} told"
    similar, mean = numbers.get("similar"), numbers.get("mean_r")
    if not similar:
        return f"{known}; no similar trade"
    worth = "" if mean is None else f", mean {mean:+.2f} R as a {numbers['side']}"
    return f"{known}; {count(round(similar), 'similar trade')}{worth}"


def _named(events: Mapping[str, Any], as_of: str, which: str) -> str:
    """Return the events that are the next or the last, as the calendar calls them."""
    close = parse(as_of)
    times = [parse(row["time"]) for row in events["events"]]
    if which == "to_next":
        moment = min(time for time in times if time > close)
    else:
        moment = max(time for time in times if time <= close)
    found = (row for row, time in zip(events["events"], times, strict=True) if time == moment)
    return ", ".join(f"{row['name']} ({row['currency']})" for row in found)


def _heading(record: Mapping[str, Any]) -> list[str]:
    closed = f"bar of {record['bar_time']}, closed {record['as_of']}"
    columns = f"{'vector':<14}{'L1':>9}{'agents':>9}{'blended':>9}  note"
    return [f"{record['symbol']} {record['timeframe']}: {closed}", "", columns]


def _vectors(record: Mapping[str, Any]) -> list[str]:
    return [
        f"{vector:<14}{record['l1'][vector]:>+9.3f}{record['agents'][vector]:>+9.3f}"
        f"{record['scores'][vector]['score']:>+9.3f}  {record['notes'].get(vector, '')}"
        for vector in VECTORS
    ]


def _records(record: Mapping[str, Any]) -> str:
    """Return the record score, and the records that it was made of."""
    high, low = (record[name] for name in ("ath_price", "low_price"))
    since = f", since {record['records_since'][:10]}" if record["records_since"] else ""
    return f"{record['ath']:+.3f}   (high {high:,.7g}, low {low:,.7g}{since})"


def _decision(record: Mapping[str, Any]) -> list[str]:
    gate, limits, signal = record["gate"], record["thresholds"], record["signal"]
    reasons = f" ({', '.join(gate['reasons'])})" if gate["reasons"] else ""
    denied = f"; denied: {', '.join(record['denied'])}" if record["denied"] else ""
    rows = {
        "source": f"{record['source_type']}, {record['calls']} calls by {record['provider']}, "
        f"{record['cost_usd']:.4f} USD, {record['elapsed_ms']:.0f} ms",
        "gate": f"multiplier {gate['multiplier']:.2f}, veto {_vetoed(gate)}{reasons}",
        "record": _records(record),
        "composite": f"{record['composite']:+.3f}   (L1 {record['l1_composite']:+.3f})",
        "consensus": f"{record['consensus']:+.3f}   (L1 {record['l1_consensus']:+.3f}) "
        f"of {', '.join(name for name, part in record['composites'].items() if part['fresh'])}; "
        f"BUY from {limits['buy']:+.2f}, SELL to {-limits['sell']:+.2f}",
        "verdict": f"{record['verdict']}   (L1 {record['l1_verdict']})",
        "action": f"{record['action']}: {record['reason']}{denied}",
        "regime": record["regime"],
    }
    if told := _convictions(record):
        rows["conviction"] = told
    rows |= record.get("swarm_told", {})
    rows |= record.get("firm", {})
    if degraded := [flag for flag in record["flags"] if flag.startswith("degraded:")]:
        rows["DEGRADED"] = f"{degraded[0].removeprefix('degraded:').replace('_', ' ')} analysts"
    rows |= _outside(record)
    if record["abstained"]:
        silent = (
            f"{agent}: {swarm_words.silence(why)}" for agent, why in record["abstained"].items()
        )
        rows["abstained"] = "; ".join(silent)
    if record["failures"]:
        failed = (f"{agent}: {reason}" for agent, reason in record["failures"].items())
        rows["failed"] = "; ".join(failed)
    if signal:
        rows["signal"] = (
            f"{signal['kind']} {signal['side']} {signal['lots']} lots, stop {signal['stop']}, "
            f"target {signal['target']} (not sent: this was a trial)"
        )
    return [f"{name:<11}{text}" for name, text in rows.items()]


def _vetoed(gate: Mapping[str, Any]) -> str:
    """Return which openings the gate vetoes: all, those of a side, or none."""
    sides = ", ".join(gate.get("veto_sides") or ())
    return "yes" if gate["veto"] else f"of {sides}" if sides else "no"


def _convictions(record: Mapping[str, Any]) -> str:
    """Return the conviction behind the verdict, without one that behind either side."""
    told = record["agreement"]
    sides = [side for side in told if record["verdict"] in (side, "HOLD")]
    parts = [f"{told[side]['conviction']:.2f}   (raw {told[side]['raw']:.2f})" for side in sides]
    if len(parts) == 1:
        against = "; the agents lean against it" if LEAN_AGAINST in record["flags"] else ""
        return f"{parts[0]}{against}"
    return ", ".join(f"{side} {part}" for side, part in zip(sides, parts, strict=True))
