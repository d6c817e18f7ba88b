"""What fixed ticks of every mode come to: scores, verdicts, orders and fills, to the last bit.

Each case is a desk that lives through a few closes of the sample. Its file has what was handed to
save_sentiment(), and the rows of the scores, the signals and the lessons, read by plain SQL. Where
the rules provider speaks, one tick's prompts and replies stand beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from agent_config import MODES
from agents.contracts import Completion, Request
from instance_database import Database
from scoring_rubric import request_hash
from tests.doubles.scripted import Scripted
from tests.golden import bytes_debates
from tests.golden.exact import as_json, rows, with_machine
from tests.golden.frozen import frozen
from tests.worlds import desks, firm_ticks, rule_outcomes, swarm_ticks
from torra.config import Instance, Profile, validate
from torra.providers.rules.provider import RulesProvider

LOW: Final[Mapping[str, Any]] = {"thresholds": {"buy": 0.1, "sell": 0.1}, "on_opposite": "reverse"}


KEPT: Final = (
    "source_type", "adjustments", "analyst_avg", "debate", "ruling", "rule_ruling", "panel",
    "failures", "flags", "swarm",
)  # fmt: skip
"""What is numbers and words of a kind in `agent_deliberation`; reports follow from the replies."""


class Log:
    """The rules provider, and what it was asked and answered."""

    name = "rules"

    def __init__(self) -> None:
        self.rules = RulesProvider()
        self.replies: dict[tuple[str, ...], str] = {}

    def submit(self, request: Request) -> Future[Completion]:
        """Answer as the rules do."""
        answer = self.rules.submit(request)
        bar = (request.symbol, request.bar_time, request.timeframe)
        seat = f"{request.role.id}_{request.round}_{request.attempt}"
        text = f"{request.system}\n\n{request.user}\n\n{answer.result().text}"
        self.replies[(*bar, seat, request_hash(request))] = text
        return answer

    def close(self) -> None:
        """It holds nothing open."""


class Case(NamedTuple):
    """A desk: settings, who answers, instances, and how many closes it lives through."""

    profile: Mapping[str, Any]
    voice: Callable[[], Any]
    closes: int = 2
    instances: tuple[Instance, ...] = (desks.BTC,)


def _of(mode: str, answers: str = "varied", **agents: Any) -> Case:
    profile = {**LOW, "agents": {"mode": mode, "influence": "full", **agents}}
    return Case(profile, partial(Scripted, bytes_debates.script(mode, answers)))


def _of_firm(script: Mapping[str, Any]) -> Case:
    seats = dict.fromkeys((*MODES["firm"].seats[:-1], "trader"), firm_ticks.reply)
    profile = {**firm_ticks.FIRM, "execution": "auto"}
    return Case(profile, partial(Scripted, {**seats, **script}), 1)


def _of_swarm(script: Mapping[str, Any]) -> Case:
    seats = {
        "regime_reader": swarm_ticks.read,
        "judge": swarm_ticks.decided,
        **dict.fromkeys(swarm_ticks.LEANS, swarm_ticks.found),
    }
    profile = {**swarm_ticks.SWARM, "execution": "auto"}
    return Case(profile, partial(Scripted, {**seats, **script}), 1)


def _ruled(mode: str, closes: int) -> Case:
    return Case({**LOW, "agents": {"mode": mode, "influence": "full"}}, Log, closes)


CASES: Final[Mapping[str, Case]] = {
    "rules_budget": Case(rule_outcomes.PROFILES["budget"], Log, 16, (desks.BTC, desks.EUR)),
    "rules_full": _ruled("full", 6),
    "rules_firm": _ruled("firm", 6),
    "rules_swarm": _ruled("swarm", 6),
    "rounds_full": Case(rule_outcomes.PROFILES["full"], Log, 3),
    **{mode: _of(mode) for mode in MODES},
    **{
        f"{mode}_{answers}": _of(mode, answers)
        for mode in MODES
        for answers in ("garbage", "vetoed", "degraded")
    },
    "shadow": _of("budget", influence="shadow"),
    "pivotal": _of("full", call_policy="pivotal"),
    "firm_written": _of_firm({}),
    "firm_declined": _of_firm(firm_ticks.declining()),
    "firm_silent": _of_firm({"trader": bytes_debates.GARBAGE}),
    **{f"swarm_{name}": _of_swarm(script) for name, script in swarm_ticks.SCRIPTS.items()},
}


def make(folder: Path) -> dict[str, str]:
    """Return a file for each case, and the prompts of a tick for each mode."""
    texts: dict[str, str] = {}
    for name, case in CASES.items():
        home, voice = folder / name, case.voice()
        home.mkdir()
        with frozen():  # each case has its own time and tokens
            texts[f"{name}.json"] = as_json(_lived(home, case, voice))
        if isinstance(voice, Log):
            texts |= _prompts(f"{name}_prompts", voice)
    return with_machine(texts)


def _lived(home: Path, case: Case, voice: Any) -> dict[str, Any]:
    """Let the desk live; return what it handed to the brain and what stands in its tables."""
    brain: list[dict[str, Any]] = []
    save = Database.save_sentiment

    def noted(database: Database, scores: Mapping[str, Any], **more: Any) -> Any:
        plain = ("l1", "ath", "ungated", "source_type", "timeframes")
        brain.append({"scores": scores, **{name: more[name] for name in plain}})
        return save(database, scores, **more)

    profile = validate(Profile, dict(case.profile), "a golden")
    desk = desks.open_desk(home, case.instances, profile=profile, provider=voice)
    desks.open_for_work(desk)
    with patch.object(Database, "save_sentiment", noted):
        for _ in range(case.closes):
            desks.step(desk)
    desk.close()
    tables = ("sentiment", "signals", "lesson_facts", "lesson_words")
    stored = {name: rows(home, name) for name in tables}
    for row in stored["sentiment"]:
        debate = row["agent_deliberation"]
        row["agent_deliberation"] = {name: debate[name] for name in KEPT if name in debate}
    return {"save_sentiment": brain, **stored}


def _prompts(place: str, voice: Log) -> dict[str, str]:
    """Return prompts and replies of the tick that asked most seats, and the hashes of all."""
    ticks: dict[tuple[str, ...], dict[str, str]] = {}
    for (*bar, seat, _), text in sorted(voice.replies.items()):
        ticks.setdefault(tuple(bar), {})[seat] = text
    fullest = max(ticks.values(), key=len)
    hashes = as_json(sorted(" ".join(request) for request in voice.replies))
    files = {f"{place}/{seat}.txt": text for seat, text in fullest.items()}
    return {**files, f"{place}/requests.json": hashes}
