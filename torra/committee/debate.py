"""Two rounds of three seats with models: blind and together, then each with the others' votes.

A seat's reply is a vote of fields (torra.committee.seats). In the second round a seat reads the
numbers of the others and their claims as quotes; what moves its vote is new evidence alone. Whoever
asks hands in a function; a call, a round and the whole have their time, the least of which counts.
A seat that gives no usable answer in the first round has failed; in the second one its first report
stands. Nothing here raises for what a model does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from agents.contracts import Prompt, Role
from agents.texts.fence import clean
from scoring_rubric import EVIDENCE, OPENED, QUOTES, REPLY
from torra.clock import Clock, iso, token
from torra.committee import fundamental_seat, sentiment_seat, valuation_seat
from torra.committee.evidence import CommitteeEvidence
from torra.committee.seats import (
    LONGEST_CLAIM,
    NO_SECOND,
    STANCES,
    SeatReport,
    feature_of,
    leans,
    reply_schema,
    report_of,
    second_vote,
    statement_of,
)
from torra.committee.votes import SEATS, Seat
from torra.desk.models.off_tick import ACCOUNT_FAULTS, OffTickReply
from torra.services import in_background
from torra.time_limit import settle

ROLES: Final[Mapping[Seat, Role]] = {
    "fundamental": fundamental_seat.ROLE,
    "sentiment": sentiment_seat.ROLE,
    "valuation": valuation_seat.ROLE,
}

WHOLE_S: Final = 120.0
ROUND_S: Final = 45.0
CALL_S: Final = 30.0
"""Real seconds of a committee, of a round, of a call; the least that is left counts."""

LATE: Final = 1.1
"""Part of a call's time within which its end is booked."""

PAUSES_S: Final = (1.0, 2.0, 4.0)
"""Real seconds before a busy vendor is asked again."""

STANDS_IN: Final = frozenset(("BUSY", "NETWORK", *ACCOUNT_FAULTS))
"""Failures of a vendor after which the next one of the profile is asked."""

FORM: Final = (
    'The reply: {"stance": 1 buy, 0 hold or -1 reduce, "confidence": "high"|"medium"|"low", '
    '"claim": one sentence of at most 40 words, "points_for": ids of listed evidence for your '
    'stance, "points_against": ids against it, "falsifiers": up to 3 sentences, what would prove '
    "you wrong}"
)
SECOND: Final = (
    "Second round. A changed stance or a higher confidence counts only with evidence that you have "
    "not cited yet. Answer anew, in full."
)

NOBODY: Final = OffTickReply(None)
"""The reply of nobody: no vendor stands in."""

Tell = Callable[..., None]
"""Takes an event of a committee: its name, then its fields by name."""


class AskSeat(Protocol):
    """Asks a seat's model once, and waits until a moment of the clock's monotonic seconds."""

    def __call__(
        self,
        role: Role,
        prompt: Prompt,
        schema: Mapping[str, Any],
        number: int,
        deadline: float,
        *,
        stands_in: bool = False,
    ) -> OffTickReply:
        """Return what became of the request; never raises for a vendor's fault.

        `stands_in`: ask who stands in for the seat's vendor; NOBODY where nobody does.
        """
        ...


@dataclass(frozen=True, slots=True)
class SeatDebate:
    """What the seats said: in the first round, and what counts after the last one.

    None is a seat that failed; `triggers` has the code of its failure. `models` are those whose
    answers were votes.
    """

    first: Mapping[Seat, SeatReport | None]
    last: Mapping[Seat, SeatReport | None]
    triggers: Mapping[Seat, str] = field(default_factory=dict)
    models: tuple[str, ...] = ()


def debate(
    known: CommitteeEvidence,
    ask: AskSeat,
    clock: Clock,
    *,
    rounds: int = 2,
    in_turn: bool = False,
    tell: Tell = lambda *_, **__: None,
    whole_s: float = WHOLE_S,
    round_s: float = ROUND_S,
    call_s: float = CALL_S,
) -> SeatDebate:
    """Return what the seats say that have evidence; each is asked once a round.

    They are asked together, or `in_turn`: then each reads what those before it said.
    """
    end = clock.monotonic() + whole_s
    seated = [seat for seat in SEATS if seat in known.facts]
    asking = partial(
        _round, known, ask, clock, in_turn=in_turn, tell=tell, end=end, round_s=round_s,
        call_s=call_s,
    )  # fmt: skip
    replies, first = asking(1, seated, {})
    models = {replies[seat].model for seat in seated if first[seat]}
    triggers = {seat: replies[seat].trigger or "GARBAGE" for seat in seated if not first[seat]}
    last = dict(first)
    spoke = {seat: report for seat, report in first.items() if report is not None}
    # a fault of the account meets every further call
    goes_on = rounds > 1 and len(spoke) > 1 and not {*triggers.values()} & ACCOUNT_FAULTS
    if goes_on and clock.monotonic() < end:
        replies, second = asking(2, [*spoke], spoke)
        for seat, report in second.items():
            models |= {replies[seat].model} if report else set()
            flags = (*spoke[seat].flags, NO_SECOND)
            last[seat] = report or spoke[seat].model_copy(update={"flags": flags})
    return SeatDebate(first, last, triggers, tuple(sorted(models)))


def _round(
    known: CommitteeEvidence,
    ask: AskSeat,
    clock: Clock,
    number: int,
    seats: Sequence[Seat],
    spoke: Mapping[Seat, SeatReport],
    *,
    in_turn: bool,
    tell: Tell,
    end: float,
    round_s: float,
    call_s: float,
) -> tuple[dict[Seat, OffTickReply], dict[Seat, SeatReport | None]]:
    """Ask seats that know what was said; one whose answer is not there at the round's end has none.

    Each is asked alone where they speak in turn, and all at once where they do not. A report of the
    second round is the vote that counts then.
    """
    until = min(end, clock.monotonic() + round_s)
    replies, reports = dict[Seat, OffTickReply](), dict[Seat, SeatReport | None]()
    said, statements = dict(spoke), list[str]()
    for group in ([seat] for seat in seats) if in_turn else [seats]:
        answers: dict[Seat, Future[OffTickReply]] = {}
        for seat in group:
            tell("agent_start", agent=seat, round=number)
            answers[seat] = Future()
            prompt = _prompt(seat, known, said, is_second=number > 1)
            work = partial(_reply, known, ask, clock, tell, seat, prompt, number, until, call_s)
            in_background("seat", partial(settle, answers[seat], work))
        left = min(until - clock.monotonic(), LATE * call_s)
        wait(answers.values(), max(0.0, left))
        for seat, answer in answers.items():
            replies[seat] = _result(answer)
            report = report_of(replies[seat].document, seat, known)
            if report and seat in spoke:
                report = second_vote(spoke[seat], report, known)
            reports[seat] = report
            if report is None:
                error = replies[seat].trigger or "GARBAGE"
                tell("agent_error", agent=seat, round=number, error=error)
            else:
                said[seat] = report
                statements.append(statement_of(report, known))
                tell("agent_complete", agent=seat, round=number, summary=statements[-1])
    tell("debate_round", round=number, statements=statements)
    return replies, reports


def _result(answer: Future[OffTickReply]) -> OffTickReply:
    """Return an answer that is there in time, and else why there is none."""
    if not answer.done():
        return OffTickReply(None, "TIMEOUT", "no answer in time")
    error = answer.exception()
    if error is not None:
        return OffTickReply(None, "NETWORK", type(error).__name__)
    return answer.result()


def _reply(
    known: CommitteeEvidence,
    ask: AskSeat,
    clock: Clock,
    tell: Tell,
    seat: Seat,
    prompt: Prompt,
    number: int,
    until: float,
    call_s: float,
) -> OffTickReply:
    """Ask one seat, within the call's time.

    A busy vendor is asked again after a pause. Then the one that stands in for it is asked.
    """
    deadline = min(until, clock.monotonic() + call_s)
    schema = reply_schema([*leans(seat, known)])
    asking = partial(ask, ROLES[seat], prompt, schema, number, deadline)
    reply = asking()
    for pause in PAUSES_S:
        if reply.trigger != "BUSY" or clock.monotonic() + pause >= deadline:
            break
        tell("thinking", agent=seat, round=number, seconds=pause)
        clock.sleep(pause)
        reply = asking()
    if reply.trigger in STANDS_IN and clock.monotonic() < deadline:
        stood_in = asking(stands_in=True)
        reply = reply if stood_in is NOBODY else stood_in
    return reply


# --- prompts --------------------------------------------------------------------------------------


def _prompt(
    seat: Seat, known: CommitteeEvidence, said: Mapping[Seat, SeatReport], *, is_second: bool
) -> Prompt:
    """Return the question to a seat: its evidence, then what was said, its own vote among it.

    Of the others it reads the votes, and their claims as quotes.
    """
    role = ROLES[seat]
    task = " ".join(role.task.split())
    system = f"You are the {role.title}.\n{task}\n{EVIDENCE}\n{QUOTES}\n{REPLY}\n{FORM}"
    listed = {feature_of(one): one for one in known.facts[seat]}
    lines = [
        f"Symbol {clean(known.symbol, 60)}, {known.asset or 'no asset class'}",
        f"Evidence until {iso(known.until)}:",
        *(f"{name} = {one.value} {one.unit}".strip() for name, one in listed.items()),
    ]
    nonce = token()
    if is_second:
        lines.append(SECOND)
    if seat in said:
        lines.append(f"Your last answer: {_vote(said[seat])}")
    if said:
        lines.append(f"Random word: {nonce}")
    for other, report in said.items():
        if other != seat:
            claim = clean(report.claim, LONGEST_CLAIM, nonce)
            lines += [f"{other}: {_vote(report)}", f"{OPENED}{nonce} {other}", claim]
            lines.append(f"QUOTE>>> {nonce}")
    return Prompt(system, "\n".join(lines), "report", tuple(listed))


def _vote(report: SeatReport) -> str:
    cited = ", ".join(report.cited) or "nothing"
    return f"{STANCES[report.stance]}, {report.trust}; it cited {cited}"
