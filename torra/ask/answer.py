"""The values of Ask: an answer, its citations, and the plan behind it.

One model for the page, the command, the API, MCP and the store, with the names of document 002.
What an answer says are sentences of code alone; each cites the facts that it was made of.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

from torra.tools.contract import Value
from torra.tools.sentences import Sentence

LONGEST: Final = 500
"""Characters of a question."""

Quality = Literal["none", "low", "medium", "high"]

QUALITIES: Final[tuple[Quality, ...]] = get_args(Quality)

Mode = Literal["ai", "rules", "guarded", "blocked"]
"""Who chose the sentences: a model, code, code because a model's choice did not hold, and nobody,
for a request to act is not answered.
"""


class CitedFact(Value):
    """One fact that a sentence of the answer was made of; `where` is the store it was read from."""

    id: str
    value: float | str | None
    unit: str = ""
    as_of: str
    where: str


class PlanStep(Value):
    """One call of a tool: its arguments, what became of it, and how many facts it gave.

    `status` is ok, cached, error, refused or timeout; `code` is "" where it gave facts.
    """

    tool: str
    args: dict[str, Any]
    status: str
    code: str = ""
    facts: int = 0


class RetrievalPlan(Value):
    """What was read: the calls in their order, radar buckets cited, and named symbols held."""

    steps: tuple[PlanStep, ...] = ()
    buckets: tuple[str, ...] = ()
    portfolio_hits: tuple[str, ...] = ()


class ChatAnswer(Value):
    """The answer to one question.

    `answer` is the text of `sentences`, at most 8, in their order. `unknown` names what could not
    be answered, by codes of torra/words/ask.csv. `address` is the page or the command that does
    what Ask does not, "" where nothing was to be done. `comment` is a model's own, unchecked, ""
    without one. `fallback_trigger` says why no model chose, "" where none had to. `as_of` is ISO
    with Z, `elapsed_ms` real time.
    """

    session: str
    question: str
    intent: str
    symbols: tuple[str, ...] = ()
    timeframe: str = ""
    answer: str
    sentences: tuple[Sentence, ...] = ()
    citations: tuple[CitedFact, ...] = ()
    analysis_mode: Mode = "rules"
    portfolio_impact: str = ""
    evidence_quality: Quality = "none"
    retrieval_plan: RetrievalPlan = RetrievalPlan()
    unknown: tuple[str, ...] = ()
    address: str = ""
    comment: str = ""
    fallback_trigger: str = ""
    as_of: str
    cost_usd: float = 0.0
    elapsed_ms: float = 0.0
