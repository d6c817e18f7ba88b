"""Answers a question about the desk: reading, plan, tools, and sentences of code with citations.

What is said are sentences of facts that tools gave; order.csv says which facts answer an intent,
the most telling first. A model may choose among them (torra.ask.model_choice), and writes none.
What cannot be answered is said by a code. Nothing here acts: a request to act gets the address of
the page or the command that does it. Written are the question with its answer, without what may be
a secret, the audit of the tools, and what a model cost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from agents.features import rows_of
from instance_database import Database
from torra.ask import reading as texts
from torra.ask.answer import ChatAnswer, CitedFact, Mode, PlanStep, Quality, RetrievalPlan
from torra.ask.model_choice import ModelChoice, choose
from torra.ask.planning import Retrieval, retrieve, without
from torra.ask.reading import REFUSED, Question
from torra.clock import System, duration, iso, parse, token
from torra.config import Instance
from torra.errors import ConfigError
from torra.store.hosted import hosted_instances
from torra.store.research import questions as chat_table
from torra.tools.contract import Fact
from torra.tools.desk_reader import DeskReader
from torra.tools.executor import Executor
from torra.tools.sentences import Cause, Choice, Sentence, text_of
from torra.words.ask import ASK_CODES
from torra.words.badge import capital

MOST: Final = 8
MOST_CANDIDATES: Final = 24
"""Sentences of an answer, and those from which they are chosen."""

SESSION: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
ABOUT: Final = re.compile(r"([^|@]{1,64})\|([A-Z0-9]{2,3})@(\S{16,32})")
PLACE: Final = re.compile(r"([^|@]+)\|([A-Z0-9]+)@([^/]+)/")
"""Where the id of a fact begins with a stream and its bar."""

ORDER: Final[Mapping[str, Sequence[re.Pattern[str]]]] = {
    intent: [re.compile(row["facts"]) for row in rows]
    for intent, rows in groupby(
        rows_of(Path(__file__).with_name("order.csv")), key=lambda row: row["intent"]
    )
}

SPANS: Final = {
    "today": "today", "week": "week", "last hour": "last_hour", "last 24 hours": "last_24_hours",
    "whole": "whole",
}  # fmt: skip
"""How ids of facts call the spans for which results and costs are added up."""

NEAR: Final = re.compile(r"\b(clos(e|er|est) to|near\w*|about to)\b", re.IGNORECASE)
DISTANCE: Final = "distance"
"""How a question asks what lacks least to a verdict, and the feature that says it."""

ADDED_UP: Final = ("money", "cost")
WITHOUT_SYMBOL: Final = ("howto", "cost")
"""Intents whose facts are of spans, and those answered for a symbol that is not there."""

FUTURE: Final = re.compile(
    r"\b(will|gonna|going to)\b.{0,40}\b(rise|fall|up|down|drop|crash|rally|reach|hit|recover|pump|"
    r"bounce)\b|\b(predict\w*|forecasts?|price targets?)\b",
    re.IGNORECASE,
)

CAUSES: Final = (
    ("verdict", "consensus"), ("reason", "gate.reasons"), ("consensus", "composite"),
)  # fmt: skip
"""Features of one tick of which the first holds because the second does, as its record says."""

SPAN_BONUS: Final = 8
WORD_BONUS: Final = 2
"""Places by which a fact of the named span comes first, and one for each word of the question."""

STEM: Final = 5
"""Letters by which a word of the question is one of a fact's name."""

OLD_BARS: Final = 2
"""Bars after the close of a tick from which on it is old."""

QUALITIES: Final[tuple[Quality, ...]] = ("none", "low", "medium", "high")

MONOTONIC: Final = System().monotonic


class Material(NamedTuple):
    """What an answer is made from: the sentences to choose from, with their facts by id."""

    candidates: Sequence[Sentence] = ()
    causes: Sequence[Cause] = ()
    facts: Mapping[str, Fact] = {}
    evidence: Retrieval = Retrieval()
    unknown: Sequence[str] = ()


def ask(
    desk: Callable[[], DeskReader],
    database: Database,
    question: str,
    *,
    session: str = "",
    person: str = "",
    about: str = "",
    portfolio: Sequence[str] = (),
    may_spend: bool = False,
) -> ChatAnswer:
    """Answer a question and store it; `desk` returns the desk as it stands now.

    `session` is one that `person` may have begun, "" begins one; `about` is `<stream>@<bar>`, the
    tick that is asked about; `portfolio` are symbols held elsewhere, as the person says; without
    `may_spend` no model is asked. Raises ConfigError for a question that cannot be read, and where
    Ask is off; StoreUnavailable.
    """
    began, reader = MONOTONIC(), desk()
    chat = reader.settings.chat
    if not chat.enabled:
        raise ConfigError("Ask is off: set chat.enabled to true in desk.json")
    session = session if SESSION.fullmatch(session) else token(8)
    known = _instances(reader)
    names = [name for one in known.values() for name in (one.id, one.symbol, one.broker_name)]
    read = texts.read(question, names, _before(database, person, session))
    read, at = _about(reader, read, about, known)
    draft = _draft(reader, database, read, known, at)
    answer = _answer(read, draft, _choice(read, draft), reader, portfolio, session)
    model = ModelChoice()
    if may_spend and chat.model and answer.analysis_mode == "rules":
        model = _by_model(reader, database, read, draft, answer, person)
    if model.choice:
        draft = draft._replace(unknown=[*dict.fromkeys((*draft.unknown, *model.unknown))])
        answer = _answer(read, draft, model.choice, reader, portfolio, session)
    answer = answer.model_copy(
        update={
            "analysis_mode": _mode(answer, model),
            "comment": model.comment,
            "fallback_trigger": model.trigger,
            "cost_usd": round(model.usd, 9),
            "elapsed_ms": round((MONOTONIC() - began) * 1000, 3),
        }
    )
    row = {
        "person": person,
        "session": session,
        "reading": read.model_dump_json(exclude={"text"}),
        "document": answer.model_dump_json(),
        "asked_model": int(model.asked),
    }
    chat_table.add_question(database, row, chat.keep_days)
    return answer


def _by_model(
    reader: DeskReader,
    database: Database,
    read: Question,
    draft: Material,
    answer: ChatAnswer,
    person: str,
) -> ModelChoice:
    """Return a model's choice where there is enough to choose from."""
    if answer.evidence_quality in ("none", "low"):
        return ModelChoice(trigger="LITTLE")
    return choose(reader, database, read, draft.candidates, draft.causes, person)


def _mode(answer: ChatAnswer, model: ModelChoice) -> Mode:
    if model.choice:
        return "ai"
    return "guarded" if model.trigger == "GARBAGE" else answer.analysis_mode


def _instances(reader: DeskReader) -> dict[str, Instance]:
    """Return the desk's instances by name and canonical symbol, hosted ones behind its own.

    Of several with one symbol that is the first.
    """
    every = (*hosted_instances(reader.database), *reversed(reader.instances))
    by_name = {one.id: one for one in every}
    return by_name | {texts.canonical(one.symbol): one for one in every}


def _before(database: Database, person: str, session: str) -> Question | None:
    """Return what the last question of a person's session asked for."""
    rows = chat_table.questions(database, person, session, limit=1)
    return Question.model_validate_json(rows[0]["reading"]) if rows else None


def _about(
    reader: DeskReader, read: Question, about: str, known: Mapping[str, Instance]
) -> tuple[Question, datetime | None]:
    """Return a reading with the stream of the tick that it is about, and that tick's close."""
    if not about:
        return read, None
    match = ABOUT.fullmatch(about)
    try:
        at = parse(match[3]) + duration(match[2]) if match else None
    except (ValueError, OverflowError):
        at = None
    if match is None or at is None:
        raise ConfigError(
            "about: write INSTANCE|TIMEFRAME@TIME of a bar, such as a tick's page has"
        )
    one = reader.instance(match[1])
    symbol = texts.canonical(one.symbol)
    symbol = symbol if known[symbol].id == one.id else one.id
    if read.symbols not in ((), (symbol,)):
        return read, None  # it asks about another one
    more = {"symbols": (symbol,), "timeframe": read.timeframe or match[2]}
    return read.model_copy(update=more), min(at, reader.as_of)


def _draft(
    reader: DeskReader,
    database: Database,
    read: Question,
    known: Mapping[str, Instance],
    at: datetime | None,
) -> Material:
    """Return what is read for a question, in the order in which it answers."""
    absent = [symbol for symbol in read.symbols if symbol not in known]
    here = [known[symbol] for symbol in read.symbols if symbol in known]
    if read.intent == REFUSED:
        return Material()
    if absent and not here and read.intent not in WITHOUT_SYMBOL:
        return Material(unknown=("NOT_STORED",))
    executor = Executor(f"ask-{token(8)}", database)
    evidence = retrieve(reader, executor, read, here, at)
    if here:
        others = {
            one.id
            for one in known.values()
            if not {one.id, texts.canonical(one.symbol)} & {*read.symbols}
        }
        evidence = without(evidence, others)
    facts = _ordered(read, evidence.facts)[:MOST_CANDIDATES]
    sentences = [*_greatest(read, facts), *((_text(one), (one.id,)) for one in facts)]
    candidates = [
        Sentence(id=f"s{number}", text=text, cites=cites)
        for number, (text, cites) in enumerate(sentences, 1)
    ]
    unknown = [*(["NOT_STORED"] if absent and here else []), *_unknown(read, evidence, facts)]
    return Material(
        candidates, _causes(candidates), {one.id: one for one in facts}, evidence, unknown
    )


def _ordered(read: Question, facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts that answer an intent, the most telling first."""
    order, span = ORDER[read.intent], SPANS.get(read.span)
    words = {word[:STEM] for word in re.findall("[a-z]{4,}", read.text.lower())}
    placed = []
    for fact in facts:
        place = next((n for n, one in enumerate(order) if one.search(fact.id)), None)
        if place is None or not fact.sentence:
            continue
        alike = {word[:STEM] for word in re.findall("[a-z]{4,}", fact.name.lower())} & words
        bonus = SPAN_BONUS if span and span in fact.id else 0
        placed.append((place - bonus - WORD_BONUS * len(alike), fact))
    return [fact for _, fact in sorted(placed, key=lambda one: one[0])]


def _text(fact: Fact) -> str:
    """Return the sentence of a fact, which names its stream."""
    place = PLACE.match(fact.id)
    if place is None or place[1] in fact.sentence:
        return fact.sentence
    return f"{place[1]} {place[2]}: {fact.sentence[0].lower()}{fact.sentence[1:]}"


def _greatest(read: Question, facts: Sequence[Fact]) -> list[tuple[str, tuple[str, ...]]]:
    """Return which of several streams has the greatest value of the first feature they share.

    Of a question about what is near it is the least distance.
    """
    if read.intent != "compare":
        return []
    is_near = NEAR.search(read.text) is not None
    choose, word = (min, "least") if is_near else (max, "greatest")
    by_key: dict[str, list[tuple[float, Fact]]] = {}
    for one in facts:
        if PLACE.match(one.id) and isinstance(one.value, float | int):
            by_key.setdefault(one.id.partition("/")[2], []).append((float(one.value), one))
    for key, rows in by_key.items():
        if is_near and key != DISTANCE:
            continue
        if len({one.id.partition("|")[0] for _, one in rows}) > 1:
            value, most = choose(rows, key=lambda row: row[0])
            place = PLACE.match(most.id)
            if place and sum(other == value for other, _ in rows) == 1:
                text = f"{capital(most.name)} is {word} for {place[1]} {place[2]}."
                return [(text, tuple(one.id for _, one in rows))]
    return []


def _causes(candidates: Iterable[Sentence]) -> list[Cause]:
    """Return pairs of sentences of which the first holds because the second does."""
    at = {one.cites[0]: one.id for one in candidates if len(one.cites) == 1}
    return [
        (at[cite], at[cite.removesuffix(first) + second])
        for cite in at
        for first, second in CAUSES
        if cite.endswith(f"/{first}") and cite.removesuffix(first) + second in at
    ]


def _unknown(read: Question, evidence: Retrieval, facts: Sequence[Fact]) -> list[str]:
    """Return what cannot be answered, by the codes of ask.csv."""
    unknown = []
    if not read.certain and not read.symbols:
        unknown.append("NOT_UNDERSTOOD")
    if FUTURE.search(read.text):
        unknown.append("FUTURE")
    span = SPANS.get(read.span, read.span)
    if read.intent in ADDED_UP and span and not any(span in one.id for one in facts):
        unknown.append("SPAN")
    codes = {step.code for step in evidence.steps if step.code}
    first = [one for one in evidence.steps if one.tool == evidence.steps[0].tool]
    empty = not any(one.facts or one.code for one in first)
    known = ASK_CODES["unknown"]
    unknown += sorted({code if code in known else "TOOL" for code in codes})
    if empty or not facts:
        unknown.append("NO_TEXT" if read.intent == "howto" else "NO_FACT")
    return unknown


def _choice(read: Question, draft: Material) -> Choice:
    """Return code's own choice: the first sentences, and their causes where it is asked why."""
    say = tuple(one.id for one in draft.candidates[:MOST])
    causes = [one for one in draft.causes if {*one} <= {*say}]
    return Choice(say=say, because=tuple(causes) if read.intent == "explain" else ())


def _answer(
    read: Question,
    draft: Material,
    choice: Choice,
    reader: DeskReader,
    portfolio: Sequence[str],
    session: str,
) -> ChatAnswer:
    """Return an answer of chosen sentences."""
    by_id = {one.id: one for one in draft.candidates}
    said = [by_id[one] for one in choice.say]
    cited = dict.fromkeys(cite for one in said for cite in one.cites)
    more = _more(read, draft)
    facts = [draft.facts[cite] for cite in cited]
    held, impact = _impact(read, draft, portfolio)
    lines = (*text_of(draft.candidates, choice), *(one.text for one in more))
    return ChatAnswer(
        session=session,
        question=read.text,
        intent=read.intent,
        symbols=read.symbols,
        timeframe=read.timeframe,
        answer=" ".join(lines),
        sentences=(*said, *more),
        citations=tuple(
            CitedFact(id=one.id, value=one.value, unit=one.unit, as_of=one.as_of, where=one.source)
            for one in facts
        ),
        analysis_mode="blocked" if read.kind else "rules",
        portfolio_impact=impact,
        evidence_quality=_quality(facts, draft.evidence.steps, reader.as_of),
        retrieval_plan=RetrievalPlan(
            steps=draft.evidence.steps, buckets=_buckets(draft.evidence), portfolio_hits=held
        ),
        unknown=tuple(draft.unknown),
        address=_address(read, facts),
        as_of=iso(reader.as_of),
    )


def _more(read: Question, draft: Material) -> list[Sentence]:
    """Return the sentences without a fact: what is not known, and who does what was asked for."""
    if read.kind:
        lines = [f"Ask only reads. {capital(ASK_CODES['request'][read.kind].meaning)}."]
    else:
        lines = []
        for code in draft.unknown:
            line = capital(ASK_CODES["unknown"][code].meaning)
            named = f": {', '.join(read.symbols)}" if code == "NOT_STORED" else ""
            lines.append(f"{line}{named}.")
    return [Sentence(id=f"u{number}", text=line) for number, line in enumerate(lines, 1)]


def _address(read: Question, facts: Sequence[Fact]) -> str:
    """Return the page or the command that does what is asked for, or the text that tells how."""
    if read.kind:
        return ASK_CODES["address"][read.kind].word
    pages = [one.source.partition("#")[0] for one in facts if one.id.startswith("doc.")]
    if read.intent != "howto" or not pages:
        return ""
    return "/help" if pages[0] == "glossary" else f"docs/{pages[0].removesuffix('.md')}.md"


def _impact(
    read: Question, draft: Material, portfolio: Sequence[str]
) -> tuple[tuple[str, ...], str]:
    """Return the positions that a question touches, by instance or as said, and what they stand at.

    Of a question without a symbol that are all of them.
    """
    facts = [one for one in draft.evidence.facts if re.match(r"book\..+\.(lots|r|stop_r)$", one.id)]
    held = dict.fromkeys(one.id.split(".", 1)[1].rpartition(".")[0] for one in facts)
    lines = [one.sentence for one in facts if one.sentence]
    claimed = [
        one for one in map(texts.canonical, portfolio) if not read.symbols or one in read.symbols
    ]
    if claimed:
        lines.append(f"You say that you hold {', '.join(claimed)}.")
    return tuple(dict.fromkeys((*held, *claimed))), " ".join(lines)


def _buckets(evidence: Retrieval) -> tuple[str, ...]:
    rows = (re.match(r"radar\.(act|watch|exit_radar)\.", one.id) for one in evidence.facts)
    return tuple(dict.fromkeys(one[1] for one in rows if one))


def _quality(facts: Sequence[Fact], steps: Sequence[PlanStep], now: datetime) -> Quality:
    """Return how good the evidence is: citations and their sources, whole and fresh or one less."""
    sources = {one.source for one in facts}
    level = 3 if min(len(facts), len(sources)) >= 3 else min(len(facts), 2)
    whole = sum(step.facts > 0 for step in steps) * 2 >= len(steps)
    places = filter(None, (PLACE.match(one.id) for one in facts))
    closes = [(parse(one[3]), duration(one[2])) for one in places]
    fresh = not closes or any(now - at <= (OLD_BARS + 1) * step for at, step in closes)
    return QUALITIES[level if whole and fresh else min(level, max(1, level - 1))]
