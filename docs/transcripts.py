"""Writes docs/transcripts.md: four ticks of the sample, word for word, by the rules and by a model.

A desk runs the sample's first day twice: with the rules, and with what a real small model replied
on the four ticks, as `docs/transcripts.json` keeps it. A test compares the page with what is
rendered here; `python -m docs.generate` writes it anew. `python -m docs.transcripts` asks the model
once more (`make test-local-llm` installs it) and keeps its replies.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agent_config import AgentSettings
from agents.contracts import VECTORS, AgentReport, Completion, Point, Request, synchronous
from agents.registry import AGENTS
from instance_database import TickKey
from tests.doubles import local_model
from tests.worlds import desks
from torra.clock import parse
from torra.config import ROOT, Profile, validate
from torra.desk.outlook import ContextFeeds
from torra.exhibits import figures
from torra.providers.prices import PriceList
from torra.providers.registry import Provider, open_provider
from torra.providers.rules.provider import RulesProvider
from torra.providers.vendors.clients import VendorClients
from torra.tick import sentence
from torra.tick.tick_record import TickRecord

PAGE: Final = ROOT / "docs" / "transcripts.md"
REPLIES: Final = ROOT / "docs" / "transcripts.json"
CALENDAR: Final = "time,currency,impact,name\n2021-11-10T14:00:00Z,USD,high,A made-up speech\n"
STEPS: Final = 44
"""Closes until the last of the four ticks."""

TIMEOUT_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """A tick of the page: why it is there, and which one it is."""

    title: str
    instance: str
    timeframe: str
    bar_time: str

    @property
    def key(self) -> str:
        """The key under which its replies are kept."""
        return f"{self.instance}|{self.timeframe}|{self.bar_time}"


TICKS: Final = (
    Chosen("In a trend", "EURUSD", "H1", "2021-11-10T09:00:00Z"),
    Chosen("In a range", "BTCUSD", "M15", "2021-11-10T10:00:00Z"),
    Chosen("Vetoed", "BTCUSD", "M15", "2021-11-10T13:45:00Z"),
    Chosen("Agents prevented a trade", "BTCUSD", "M15", "2021-11-10T20:45:00Z"),
)
KEYS: Final = {tick.key for tick in TICKS}

HEAD: Final = """# Transcripts

Four ticks of the shipped sample, word for word, so that you can judge what the agents say before
you trade on it. The desk is the budget desk with thresholds of 0.30, which the sample reaches more
often than the usual 0.50; the event of the vetoed tick is made up.

Each tick stands here twice: as the **rules** argue, which need no key and no network, and as a
**real, very small model** replied ({model}, {when}). It is far too small for the
work; what it makes of the desk is told in [models.md](models.md). What became of its replies is
what [debate.md](debate.md) says: a point whose fact is not true or has no side goes, an invented
citation costs trust, and a reply that breaks its shape is a failed agent, never a vote.

"""
TAIL: Final = (
    "This page is written from the desk itself: `python -m docs.generate`; `python -m "
    "docs.transcripts` asks the model anew.\n"
)


def key_of(request: Request) -> str:
    """Return the key of the tick that a request belongs to."""
    return f"{request.symbol}|{request.timeframe}|{request.bar_time}"


class Recalled:
    """The kept replies on the four ticks, the rules on all others."""

    name = "rules"

    def __init__(self, kept: Mapping[str, Mapping[str, str]]) -> None:
        self._kept = kept
        self._rules = RulesProvider()

    @synchronous
    def submit(self, request: Request) -> Future[Completion]:
        """Return the reply of then; one that was not asked for then is no JSON."""
        if key_of(request) not in KEYS:
            return self._rules.submit(request)
        told = self._kept.get(key_of(request), {})
        future: Future[Completion] = Future()
        text = told.get(f"{request.role.id}.{request.attempt}", "not asked then")
        future.set_result(Completion(text, request.model, "rules"))
        return future

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class Asked:
    """A real model on the four ticks, the rules on all others; keeps what it replied."""

    name = "openai_compatible"

    def __init__(self, model: Provider) -> None:
        self.kept: dict[str, dict[str, str]] = {}
        self._model = model
        self._rules = RulesProvider()
        self._lock = threading.Lock()

    def submit(self, request: Request) -> Future[Completion]:
        """Return the model's answer, or the rules'."""
        if key_of(request) not in KEYS:
            return self._rules.submit(request)
        future = self._model.submit(request)
        future.add_done_callback(lambda ended: self._keep(request, ended))
        return future

    def close(self) -> None:
        """Close the line to the model."""
        self._model.close()

    def _keep(self, request: Request, ended: Future[Completion]) -> None:
        if ended.cancelled() or ended.exception() is not None:
            return
        with self._lock:
            told = self.kept.setdefault(key_of(request), {})
            told[f"{request.role.id}.{request.attempt}"] = ended.result().text


def records(
    provider: Provider,
    settings: AgentSettings | None = None,
    ticks: Sequence[Chosen] = TICKS,
) -> dict[str, TickRecord]:
    """Run the sample with a provider until the last of `ticks`; return their records by key."""
    agents = settings or AgentSettings(mode="budget")
    profile = validate(
        Profile,
        {
            "agents": agents.model_dump(),
            "thresholds": {"buy": 0.3, "sell": 0.3},
            "events": {"calendar": "events.csv"},
        },
        "the transcripts",
    )
    found: dict[str, TickRecord] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "events.csv").write_text(CALENDAR, encoding="utf-8")
        desk = desks.open_desk(
            home,
            (desks.EUR, desks.BTC),
            profile=profile,
            provider=provider,
        )
        outlook = ContextFeeds(home, desk.database, {}, [profile], now=desk.clock.now)
        desk.roster.setups = {
            name: replace(setup, events=outlook.events(setup.instance, profile))
            for name, setup in desk.setups.items()
        }
        desks.open_for_work(desk)
        wanted = {
            tick.key: TickKey(tick.instance, tick.timeframe, parse(tick.bar_time)) for tick in ticks
        }
        for _ in range(STEPS):
            desks.step(desk)
            if all(desk.database.tick(key) for key in wanted.values()):
                break
        for name, key in wanted.items():
            found[name] = TickRecord.parse(desk.database.tick(key) or {})
        desk.close()
    return found


# --- the page -------------------------------------------------------------------------------------


def render(ticks: Sequence[Chosen] = TICKS) -> str:
    """Return the page, or what it were with some of its ticks alone."""
    kept = json.loads(REPLIES.read_text(encoding="utf-8"))
    by_rules = records(RulesProvider(), ticks=ticks)
    by_model = records(Recalled(kept["replies"]), ticks=ticks)
    parts = [HEAD.format(model=kept["model"], when=kept["when"])]
    for tick in ticks:
        about = f"{tick.instance} {tick.timeframe}, bar of {tick.bar_time}"
        parts.append(f"## {tick.title}: {about}\n\n")
        parts.append("### The rules\n\n" + "".join(_told(by_rules[tick.key])))
        parts.append("### The small model\n\n" + "".join(_told(by_model[tick.key])))
    return "".join([*parts, TAIL])


def _told(record: TickRecord) -> Iterator[str]:
    yield f"> {sentence.page_text(record)}\n\n"
    debate = record.deliberation
    reports = {report.agent_id: report for report in debate.reports}
    for name in AgentSettings(mode="budget").desk():
        title = AGENTS[name].role.title
        if name in reports:
            yield from _report(title, reports[name])
        else:
            why = debate.failures.get(name) or debate.unasked.get(name) or "not asked"
            yield f"**The {title}** gave no usable answer ({why}).\n\n"
    yield _became(record)


def _report(title: str, report: AgentReport) -> Iterator[str]:
    moves = ", ".join(
        f"{figures.title(vector).lower()} {_signed(value)}"
        for vector in VECTORS
        if (value := report.adjustments.get(vector)) is not None
    )
    if report.abstained:
        yield f"**The {title}** abstains: {_plain(report.reason)}.\n\n"
        return
    flags = "".join(f", flagged `{figures.sanitize(flag, 40)}`" for flag in report.flags)
    numbers = f"{moves}; " if moves else ""
    said = _plain(report.main_claim) or "*no claim*"
    yield f"**The {title}** ({numbers}{report.confidence} confidence{flags}):\n{said}\n"
    lines = [
        *(f"Why: {_point(point)}" for point in report.points_for),
        *(
            f"{'Grants' if told.grants else 'Answers'} the other side: {_plain(told.says)}"
            for told in report.rebuttals
        ),
        *(f"But: {_point(point)}" for point in report.points_against),
        *(f"Proved wrong by {_plain(text)}." for text in report.falsifiers),
    ]
    yield "\n" + "".join(f"- {line}\n" for line in lines)
    if lines:
        yield "\n"


def _point(point: Point) -> str:
    why = f", {_plain(point.why)}" if point.why else ""
    return f"{_plain(point.says)}{why}. `{figures.sanitize(point.id, 60)}`"


def _became(record: TickRecord) -> str:
    """Return what the scores and the verdict became of it."""
    moved = ", ".join(
        f"{figures.title(vector).lower()} {_signed(value)}"
        for vector in VECTORS
        if (value := record.adjustments.get(vector)) is not None
    )
    return (
        f"*What became of it*: adjustments {moved or 'none'}; consensus {record.consensus:+.3f} "
        f"where the bars alone have {record.l1_consensus:+.3f}; verdict {record.verdict} "
        f"(L1 {record.l1_verdict}), action {record.action}"
        + (f" ({record.reason})" if record.reason else "")
        + f"; source {record.source_type}.\n\n"
    )


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.3f}"


def _plain(text: str | None) -> str:
    """Return a text as one line that Markdown shows as it is."""
    line = " ".join(figures.sanitize(text).split())
    return "".join(f"\\{letter}" if letter in r"\`*_<>[]|#" else letter for letter in line)


# --- asking the model -----------------------------------------------------------------------------


@contextmanager
def _small_model() -> Iterator[tuple[Asked, AgentSettings]]:
    settings = AgentSettings(
        mode="budget",
        provider="openai_compatible",
        quick_think_model=local_model.NAME,
        deep_think_model=local_model.NAME,
        timeout_seconds=TIMEOUT_S,
    )
    with local_model.LocalModel() as running:
        clients = VendorClients({"TORRA_OPENAI_BASE_URL": running.base_url}, prices=PriceList())
        try:
            yield Asked(open_provider(settings, clients)), settings
        finally:
            clients.close()


def record_replies(when: str, say: Callable[[str], object] = sys.stderr.write) -> None:
    """Ask the small model on the four ticks and keep what it replied."""
    if why := local_model.missing():
        raise SystemExit(why)
    with _small_model() as (asked, settings):
        found = records(asked, settings)
    usable = Counter(
        name
        for record in found.values()
        for name in (r.agent_id for r in record.deliberation.reports)
    )
    say(f"usable replies: {dict(usable)}\n")
    kept = {"model": "Gemma 3 270M at 4 bits", "when": when, "replies": asked.kept}
    REPLIES.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    from datetime import UTC, datetime

    record_replies(datetime.now(UTC).date().isoformat())
