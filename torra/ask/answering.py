"""Answers a question about the desk: reading, plan, tools, and sentences of code with citations.

What is said are sentences of facts that tools gave; order.csv says which facts answer an intent,
the most telling first. A model may choose among them (torra.ask.model_choice), and writes none.
What cannot be answered is said by a code. Nothing here acts: a request to act gets the address of
the page or the command that does it. Written are the question with its answer, without what may be
a secret, the audit of the tools, and what a model cost.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from agents.features import rows_of
from instance_database import Database
from torra.ask import reading as texts
from torra.ask.answer import (
    QUALITIES,
    ChatAnswer,
    CitedFact,
    Mode,
    PlanStep,
    Quality,
    RetrievalPlan,
)
from torra.ask.model_choice import ModelChoice, choose
from torra.ask.planning import retrieve, without
from torra.ask.reading import Question
from torra.clock import System, duration, iso, parse, token
from torra.config import Instance
from torra.errors import ConfigError
from torra.store.hosted import hosted_instances
from torra.store.research import questions as chat_table
from torra.tools.contract import PLACE, Fact
from torra.tools.desk_reader import DeskReader
from torra.tools.executor import Executor
from torra.tools.records import address_of
from torra.tools.sentences import Cause, Choice, Sentence, text_of
from torra.words.ask import ASK_CODES
from torra.words.badge import capital

MOST: Final = 8
MOST_CANDIDATES: Final = 24
"""Sentences of an answer, and those from which they are chosen."""

SESSION: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
HELD: Final = re.compile(r"book\.(.+)\.(?:lots|r|stop_r)$")
BUCKET: Final = re.compile(r"radar\.(act|watch|exit_radar)\.")
"""Ids of facts that name a position, and a bucket of the radar."""

ORDER: Final = {
    intent: re.compile("|".join(f"({row['facts']})" for row in rows))
    for intent, rows in groupby(
        rows_of(Path(__file__).with_name("order.csv")), key=lambda row: row["intent"]
    )
}
"""Which facts answer an intent: the group that an id matches is its place."""

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

CAUSES: Final = {"verdict": "consensus", "reason": "gate.reasons", "consensus": "composite"}
"""Features of one tick of which the first holds because the second does, as its record says."""

SPAN_BONUS: Final = 8
WORD_BONUS: Final = 2
"""Places by which a fact of the named span comes first, and one for each word of the question.

Texts that tell how something is done come as they were found.
"""

STEMS: Final = re.compile("([a-z]{4,5})[a-z]*")
"""Letters by which a word of the question is one of a fact's name."""

OLD_BARS: Final = 2
"""Bars after the close of a tick from which on it is old."""

MONOTONIC: Final = System().monotonic


class AnswerDraft(NamedTuple):
    """What an answer is made from: the sentences to choose from, and what was read for them."""

    sentences: Sequence[Sentence] = ()
    causes: Sequence[Cause] = ()
    facts: Sequence[Fact] = ()
    steps: Sequence[PlanStep] = ()
    unknown: Sequence[str] = ()

    def cited(self, choice: Choice) -> list[Fact]:
        """Return the facts that chosen sentences were made of."""
        by_id = {one.id: one for one in self.facts}
        cites = (cite for one in self.said(choice) for cite in one.cites)
        return [by_id[cite] for cite in dict.fromkeys(cites)]

    def said(self, choice: Choice) -> list[Sentence]:
        """Return chosen sentences in their order."""
        by_id = {one.id: one for one in self.sentences}
        return [by_id[one] for one in choice.say]


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
    rows = chat_table.questions(database, person, session, limit=1)
    before = Question.model_validate_json(rows[0]["reading"]) if rows else None
    read, at = _about(reader, texts.read(question, names, before), about, known)
    draft = _draft(reader, database, read, known, at)
    row = {
        "person": person, "session": session, "reading": read.model_dump_json(exclude={"text"}),
    }  # fmt: skip
    number = chat_table.begin_question(database, row, chat.keep_days)
    own, model = _own_choice(read, draft), ModelChoice()
    if may_spend and chat.model and not read.kind:
        little = _quality(draft.cited(own), draft.steps, reader.as_of) in ("none", "low")
        model = ModelChoice(trigger="LITTLE") if little else choose(
            reader, database, number, read, draft.sentences, draft.causes
        )  # fmt: skip
    choice, unknown = model.choice or own, (*dict.fromkeys((*draft.unknown, *model.unknown)),)
    facts, more = draft.cited(choice), _more(read, unknown)
    held, impact = _impact(read, draft.facts, portfolio)
    guarded: Mode = "guarded" if model.trigger == "GARBAGE" else "rules"
    answer = ChatAnswer(
        session=session,
        question=read.text,
        intent=read.intent,
        symbols=read.symbols,
        timeframe=read.timeframe,
        answer=" ".join((*text_of(draft.sentences, choice), *(one.text for one in more))),
        sentences=(*draft.said(choice), *more),
        citations=tuple(
            CitedFact(id=one.id, value=one.value, unit=one.unit, as_of=one.as_of, where=one.source)
            for one in facts
        ),
        analysis_mode="blocked" if read.kind else "ai" if model.choice else guarded,
        portfolio_impact=impact,
        evidence_quality=_quality(facts, draft.steps, reader.as_of),
        retrieval_plan=RetrievalPlan(
            steps=(*draft.steps,), buckets=_named(BUCKET, draft.facts), portfolio_hits=held
        ),
        unknown=unknown,
        address=_address(read, facts),
        comment=model.comment,
        fallback_trigger=model.trigger,
        as_of=iso(reader.as_of),
        cost_usd=round(model.usd, 9),
        elapsed_ms=round((MONOTONIC() - began) * 1000, 3),
    )
    chat_table.end_question(database, number, answer.model_dump_json(), asked_model=model.asked)
    return answer


def _instances(reader: DeskReader) -> dict[str, Instance]:
    """Return the desk's instances by name and canonical symbol, hosted ones behind its own.

    Of several with one symbol that is the first.
    """
    every = (*hosted_instances(reader.database), *reversed(reader.instances))
    by_name = {one.id: one for one in every}
    return by_name | {texts.canonical(one.symbol): one for one in every}


def _about(
    reader: DeskReader, read: Question, about: str, known: Mapping[str, Instance]
) -> tuple[Question, datetime | None]:
    """Return a reading with the stream of the tick that it is about, and that tick's close."""
    if not about:
        return read, None
    match = PLACE.fullmatch(about)
    name, timeframe, bar_time = match.groups() if match else ("", "", "")
    try:
        at = parse(bar_time) + duration(timeframe)
    except (ValueError, OverflowError):
        raise ConfigError(
            "about: write INSTANCE|TIMEFRAME@TIME of a bar, such as a tick's page has"
        ) from None
    one = reader.instance(name)
    symbol = texts.canonical(one.symbol)
    symbol = symbol if known[symbol].id == one.id else one.id
    if read.symbols not in ((), (symbol,)):
        return read, None  # it asks about another one
    more = {"symbols": (symbol,), "timeframe": read.timeframe or timeframe}
    return read.model_copy(update=more), min(at, reader.as_of)


def _draft(
    reader: DeskReader,
    database: Database,
    read: Question,
    known: Mapping[str, Instance],
    at: datetime | None,
) -> AnswerDraft:
    """Return what is read for a question, in the order in which it answers."""
    here = [known[symbol] for symbol in read.symbols if symbol in known]
    absent = ["NOT_STORED"] * (len(here) < len(read.symbols))
    if read.kind:
        return AnswerDraft()
    if absent and not here and read.intent not in WITHOUT_SYMBOL:
        return AnswerDraft(unknown=absent)
    steps, facts = retrieve(reader, Executor(f"ask-{token(8)}", database), read, here, at)
    if here:
        others = {
            one.id
            for one in known.values()
            if not {one.id, texts.canonical(one.symbol)} & {*read.symbols}
        }
        facts = without(facts, others)
    telling = _ordered(read, facts)[:MOST_CANDIDATES]
    said = [*_greatest(read, telling), *((_text(one), (one.id,)) for one in telling)]
    numbers = {cites[0]: f"s{n}" for n, (_, cites) in enumerate(said, 1) if len(cites) == 1}
    return AnswerDraft(
        [Sentence(id=f"s{n}", text=text, cites=cites) for n, (text, cites) in enumerate(said, 1)],
        [*_causes(numbers)],
        facts,
        steps,
        [*(absent if here else ()), *_unknown(read, steps, telling)],
    )


def _ordered(read: Question, facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts that answer an intent, the most telling first."""
    words = {*STEMS.findall(read.text.lower())}

    def _place(fact: Fact, match: re.Match[str]) -> int:
        alike = words.intersection(STEMS.findall(fact.name.lower()))
        span = bool(read.span) and read.span in fact.id
        bonus = SPAN_BONUS * span + WORD_BONUS * len(alike) * (read.intent != "howto")
        return (match.lastindex or 0) - bonus

    found = ((one, ORDER[read.intent].search(one.id)) for one in facts if one.sentence)
    placed = [(_place(one, match), one) for one, match in found if match]
    return [fact for _, fact in sorted(placed, key=lambda one: one[0])]


def _text(fact: Fact) -> str:
    """Return the sentence of a fact, which names its stream."""
    place = PLACE.match(fact.id)
    if place is None or place[1] in fact.sentence:
        return fact.sentence
    return f"{place[1]} {place[2]}: {fact.sentence[0].lower()}{fact.sentence[1:]}"


def _greatest(read: Question, facts: Sequence[Fact]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield which of several streams has the greatest value of the first feature they share.

    Of a question about what is near it is the least distance.
    """
    near = NEAR.search(read.text)
    pick, word = (min, "least") if near else (max, "greatest")
    by_feature = defaultdict[str, list[tuple[float, str, Fact]]](list)
    for one in facts if read.intent == "compare" else ():
        stream, _, feature = one.id.partition("/")
        if feature and isinstance(one.value, float | int) and (not near or feature == DISTANCE):
            by_feature[feature].append((one.value, stream.partition("@")[0], one))
    for rows in by_feature.values():
        value, stream, most = pick(rows, key=lambda row: row[0])
        streams = len({name.partition("|")[0] for _, name, _ in rows})
        if streams > 1 and sum(row[0] == value for row in rows) == 1:
            text = f"{capital(most.name)} is {word} for {stream.replace('|', ' ')}."
            yield text, tuple(one.id for *_, one in rows)
            return


def _causes(numbers: Mapping[str, str]) -> Iterator[Cause]:
    """Yield pairs of sentences, by their facts, of which the first holds because of the second."""
    for fact, number in numbers.items():
        place, _, feature = fact.partition("/")
        cause = f"{place}/{CAUSES.get(feature)}"
        if cause in numbers:
            yield number, numbers[cause]


def _unknown(read: Question, steps: Sequence[PlanStep], telling: Sequence[Fact]) -> Iterator[str]:
    """Yield what cannot be answered, by the codes of ask.csv."""
    if not read.certain and not read.symbols:
        yield "NOT_UNDERSTOOD"
    if FUTURE.search(read.text):
        yield "FUTURE"
    if read.intent in ADDED_UP and read.span and not any(read.span in one.id for one in telling):
        yield "SPAN"
    codes = {step.code for step in steps} - {""}
    yield from sorted({code if code in ASK_CODES["unknown"] else "TOOL" for code in codes})
    if not (telling and any(one.facts or one.code for one in steps if one.tool == steps[0].tool)):
        yield "NO_TEXT" if read.intent == "howto" else "NO_FACT"


def _own_choice(read: Question, draft: AnswerDraft) -> Choice:
    """Return code's own choice: the first sentences, and their causes where it is asked why."""
    say = tuple(one.id for one in draft.sentences[:MOST])
    causes = (one for one in draft.causes if read.intent == "explain" and {*one} <= {*say})
    return Choice(say=say, because=tuple(causes))


def _more(read: Question, unknown: Iterable[str]) -> list[Sentence]:
    """Return the sentences without a fact: what is not known, and who does what was asked for."""
    words = {code: capital(ASK_CODES["unknown"][code].meaning) for code in unknown}
    if read.kind:
        words = {"": f"Ask only reads. {capital(ASK_CODES['request'][read.kind].meaning)}"}
    named = {"NOT_STORED": f": {', '.join(read.symbols)}"}
    return [
        Sentence(id=f"u{number}", text=f"{text}{named.get(code, '')}.")
        for number, (code, text) in enumerate(words.items(), 1)
    ]


def _address(read: Question, facts: Sequence[Fact]) -> str:
    """Return the page or the command that does what is asked for, or the text that tells how."""
    if read.kind:
        return ASK_CODES["address"][read.kind].word
    pages = [address_of(one.source) for one in facts if one.id.startswith("doc.")]
    return pages[0] if pages and read.intent == "howto" else ""


def _impact(
    read: Question, facts: Sequence[Fact], portfolio: Sequence[str]
) -> tuple[tuple[str, ...], str]:
    """Return the positions that a question touches, by instance or as said, and what they stand at.

    Of a question without a symbol that are all of them.
    """
    claimed = [
        one for one in map(texts.canonical, portfolio) if not read.symbols or one in read.symbols
    ]
    lines = [one.sentence for one in facts if one.sentence and HELD.match(one.id)]
    lines += [f"You say that you hold {', '.join(claimed)}."] * bool(claimed)
    return (*dict.fromkeys((*_named(HELD, facts), *claimed)),), " ".join(lines)


def _named(pattern: re.Pattern[str], facts: Iterable[Fact]) -> tuple[str, ...]:
    """Return what a pattern finds in the ids of facts, each once."""
    found = (pattern.match(one.id) for one in facts)
    return tuple(dict.fromkeys(one[1] for one in found if one))


def _quality(facts: Sequence[Fact], steps: Sequence[PlanStep], now: datetime) -> Quality:
    """Return how good the evidence is: citations and their sources, whole and fresh or one less."""
    sources = {one.source for one in facts}
    level = 3 if min(len(facts), len(sources)) >= 3 else min(len(facts), 2)
    whole = sum(step.facts > 0 for step in steps) * 2 >= len(steps)
    places = filter(None, (PLACE.match(one.id) for one in facts))
    ages = ((now - parse(one[3])) / duration(one[2]) for one in places)
    fresh = min(ages, default=0) <= OLD_BARS + 1
    return QUALITIES[level - (level > 1 and not (whole and fresh))]
