"""The inputs of each agent in one sitting, and the calls by which it was asked.

For each agent: the features that its prompt listed; what it saw of other agents (always their
numbers, their prose only fenced and cut, and never a word of the news agent's); whether it saw
headlines, memory or a picture; and every request with its reply and its cost. The overlay's own
rules of what may enter a prompt (scoring_rubric) decide what is listed. The prompt as it was sent
stands beside it for as long as it is kept. Pure functions; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from os.path import commonprefix
from typing import Final, Literal, NotRequired, TypedDict

from agents.contracts import VECTORS, AgentReport, DebateContext, Feature
from agents.registry import AGENTS, SCORER
from scoring_rubric import NUMBERS_ONLY, visible
from torra.dashboard.record import citations
from torra.dashboard.record.rows import TranscriptCall, TranscriptPicture
from torra.dashboard.record.transcript import DebateStage
from torra.exhibits import figures
from torra.tick.tick_record import StoredCall, TickRecord, is_gate

TEXT_CHARS: Final = (12_000, 8_000, 6_000, 5_000, 4_000, 3_200, 2_500, 1_800, 1_200, 500)
"""Longest prompt and reply on the page, in characters: the first of these with which all of them
together keep to `PAGE_CHARS`. The record as JSON has the rest.
"""

PAGE_CHARS: Final = 34_000
USUAL_CALLS: Final = 8
CALL_CHARS: Final = 1_500
"""Room that each call beyond the usual number takes from texts: it has rows of its own."""

Text = Literal["system", "user", "added", "reply"]
TEXTS: Final[tuple[Text, ...]] = ("system", "user", "added", "reply")
LEAST_COMMON: Final = 200
"""Least characters that all instructions must share at their start to be shown once for all."""

LONGEST: Final = 70_000
"""Characters of a text that are looked at."""

HASH: Final = re.compile(r"[0-9a-f]{64}")
READS: Final = {
    "research": ("analysts",),
    "judgement": ("experts",),
    "gate": ("analysts", "research", "experts", "judgement"),
    "decision": ("analysts", "research"),
    "thesis": ("analysts", "research", "decision"),
}
"""Of which stages each stage is shown the reports."""


class Quoted(TypedDict):
    """A report as other agents were shown it, and whom to; `round` of an earlier case."""

    who: str
    numbers: str
    quoted: str
    confidence: NotRequired[str]
    round: bool
    to: list[str]


class Inputs(TypedDict):
    """The inputs of an agent."""

    who: str
    name: str
    count: int
    blocks: str
    memory: bool
    news: bool
    picture: TranscriptPicture | None
    others: list[str]
    calls: list[TranscriptCall]
    known: bool


def by_agent(
    record: TickRecord,
    stages: Sequence[DebateStage],
    quoted: Sequence[Quoted],
    calls: Sequence[TranscriptCall],
    shown: Mapping[str, Mapping[str, Feature]],
) -> list[Inputs]:
    """Return the inputs of each agent of the transcript, in the order in which they were asked.

    `quoted` are the rows of `quotations`, `calls` those of `call_rows`, `shown` the features that
    each agent's prompt lists.
    """
    names = dict.fromkeys(entry.name for stage in stages for entry in stage.entries)
    return [_one(name, record, quoted, calls, shown.get(name, {})) for name in names]


def call_rows(calls: Iterable[StoredCall]) -> tuple[list[TranscriptCall], str]:
    """Return every call with its texts, status and use, and the lines that all instructions share.

    A text that repeats one of the same agent's earlier calls, or only adds to its end, is not
    repeated: `added` holds the new part, `user` is then empty, and `as` names the earlier call.
    """
    rows: list[TranscriptCall] = []
    before: dict[str, TranscriptCall] = {}
    for told in calls:
        row = _call(told)
        # a copy: the row itself loses below what it repeats
        earlier = before.setdefault(row["name"], row.copy())
        if earlier["try"] != row["try"]:
            _told_once(row, earlier)
        rows.append(row)
    common = _common([row["system"] for row in rows if row["system"]])
    for row in rows:
        row["system"] = row["system"][len(common) :]
    _cut(rows)
    return rows, common


def _told_once(row: TranscriptCall, earlier: TranscriptCall) -> None:
    """Remove from a call the texts that repeat an earlier one of the same agent."""
    if earlier["user"] and row["user"].startswith(earlier["user"]):
        row["added"] = row["user"][len(earlier["user"]) :].strip()
        row["user"], row["as"] = "", earlier["try"]
    if earlier["system"] and row["system"] == earlier["system"]:
        row["system"], row["as"] = "", earlier["try"]


def _common(texts: Sequence[str]) -> str:
    """Return the whole lines that all of several texts begin with, if they are worth it."""
    if len(texts) < 2:
        return ""
    shared = commonprefix(list(texts))  # noqa: RUF071  texts, no paths
    lines = shared[: shared.rfind("\n") + 1]
    return lines if len(lines) >= LEAST_COMMON else ""


def _cut(rows: Sequence[TranscriptCall]) -> None:
    lengths = [len(row[name]) for row in rows for name in TEXTS]
    room = PAGE_CHARS - CALL_CHARS * max(0, len(rows) - USUAL_CALLS)
    fits = (c for c in TEXT_CHARS if sum(min(length, c) for length in lengths) <= room)
    longest = next(fits, TEXT_CHARS[-1])
    for row in rows:
        row["cut"] = any(len(row[name]) > longest for name in TEXTS)
        for name in TEXTS:
            row[name] = figures.sanitize(row[name], longest)


def picture(record: TickRecord) -> TranscriptPicture | None:
    """Return the hash of the chart that was shown, and whom to; None where there was none."""
    name = record.picture
    if name is None or not HASH.fullmatch(name):
        return None
    roles = [seat.role for seat in AGENTS.values() if seat.role.picture]
    return TranscriptPicture(name, name[:12], [role.id for role in (*roles, SCORER)])


def quotations(
    record: TickRecord, stages: Sequence[DebateStage], features: Mapping[str, Feature]
) -> list[Quoted]:
    """Return each report as other agents were shown it, and whom to: numbers, and cut prose."""
    spoke = {e.name: stage.record.name for stage in stages for e in stage.entries}
    asked = {e.name for stage in stages for e in stage.entries if e.calls}
    rows = [
        _seen(told, features, _readers(told.agent_id, spoke, asked))
        for told in record.deliberation.reports
        if not is_gate(told)
    ]
    for told in record.deliberation.earlier:
        others = [n for n, name in spoke.items() if name == "research" and n != told.agent_id]
        rows.append(_seen(told, features, others, earlier=True))
    return [row for row in rows if row["to"]]


def _readers(author: str, spoke: Mapping[str, str], asked: Collection[str]) -> list[str]:
    """Return the agents that were shown an agent's final report."""
    own = spoke.get(author, "")
    return [name for name, stage in spoke.items() if name in asked and own in READS.get(stage, ())]


def _one(
    name: str,
    record: TickRecord,
    quoted: Sequence[Quoted],
    calls: Sequence[TranscriptCall],
    shown: Mapping[str, Feature],
) -> Inputs:
    role = citations.role_of(name)
    own = [call for call in calls if call["name"] == name]
    seen = picture(record)
    return {
        "who": figures.title(name),
        "name": name,
        "count": len(shown),
        "blocks": _blocks(shown.values()),
        "memory": role is SCORER or (role is not None and "memory." in role.evidence),
        "news": name in NUMBERS_ONLY,
        "picture": seen if seen is not None and name in seen.to and own else None,
        "others": list(dict.fromkeys(row["who"] for row in quoted if name in row["to"])),
        "calls": own,
        "known": role is not None,
    }


def _blocks(shown: Iterable[Feature]) -> str:
    """Count the features of each block: technical 47, scores 4."""
    counts: dict[str, int] = {}
    for feature in shown:
        counts[feature.block] = counts.get(feature.block, 0) + 1
    return ", ".join(f"{figures.sanitize(block, 30)} {count}" for block, count in counts.items())


def _seen(
    told: AgentReport, features: Mapping[str, Feature], to: list[str], *, earlier: bool = False
) -> Quoted:
    """Return a report as the others are shown it."""
    whole = AgentReport(
        told.agent_id,
        told.adjustments,
        told.confidence,
        figures.sanitize(told.said),
        told.key_points or tuple(figures.sanitize(point.says, 300) for point in told.points_for),
        told.evidence,
        abstained=told.abstained,
    )
    context = DebateContext("", "", "", "", {}, features=features, nonce=citations.NONCE)
    shown = visible(whole, context)
    numbers = [
        f"{figures.title(v).lower()} {figures.format_signed(value, 2)}"
        for v in VECTORS
        if (value := shown.adjustments.get(v)) is not None
    ]
    return {
        "who": figures.title(told.agent_id),
        "numbers": "abstained" if told.abstained else ", ".join(numbers) or "no score",
        "confidence": told.confidence,
        "quoted": "" if told.abstained else " · ".join(filter(None, _prose(shown))),
        "round": earlier,
        "to": to,
    }


def _prose(shown: AgentReport) -> tuple[str, ...]:
    return tuple(figures.sanitize(text, 300) for text in (shown.reasoning, *shown.key_points))


def numbered(call: StoredCall) -> str:
    """Return the round and the attempt of a call as one word."""
    told = (
        figures.DASH if number is None else str(number) for number in (call.round, call.attempt)
    )
    return ".".join(told)


def _call(call: StoredCall) -> TranscriptCall:
    return {
        "name": figures.sanitize(call.role_id, 40),
        "role": figures.title(call.role_id),
        "stage": figures.sanitize(call.stage, 40),
        "try": numbered(call),
        "status": figures.sanitize(call.status, 40),
        "good": call.status == "ok",
        "detail": figures.sanitize(call.detail, 400),
        "model": figures.sanitize(call.model, 60),
        "vendor": figures.sanitize(call.provider, 40),
        "stop": figures.sanitize(call.stop_reason, 40),
        "ms": figures.plain(call.elapsed_ms, 0),
        "tokens": f"{figures.plain(call.input_tokens, 0)} / {figures.plain(call.output_tokens, 0)}",
        "cached": figures.plain(call.cached_tokens, 0) if call.cached_tokens else "",
        "cost": figures.money(call.cost_usd),
        "system": figures.sanitize(call.system, LONGEST),
        "user": figures.sanitize(call.user, LONGEST),
        "reply": figures.sanitize(call.reply, LONGEST),
        "hash": figures.sanitize(call.request_hash, 16),
        "added": "",
        "as": "",
        "cut": False,
    }
