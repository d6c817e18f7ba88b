"""A reply that was cut off is asked again once, with twice the output, where that is granted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from agent_config import CAPS, OUTPUT_TOKENS
from agents.contracts import CallBound, Completion, ModelUnavailable, Request
from agents.debate.deliberation import Deliberation
from tests.cases import cases
from tests.doubles.scripted import Scripted, debate, honest, settings

ROLE: Final = "technical"
MOST: Final = CAPS["output_tokens"][1]


def cut(request: Request) -> Completion:
    """Return a reply that ended at its output limit."""
    text = json.dumps(honest(request))
    tokens = request.max_output_tokens
    return Completion(text[:-20], "m", "scripted", 1000, tokens, 0.001, stop_reason="length")


class Grants:
    """Grants every stage, and of what is asked for within one what it is told to."""

    def __init__(self, within: Callable[[], object] = lambda: True) -> None:
        self.within = within
        self.asked: list[tuple[str, CallBound]] = []

    def __call__(self, stage: str, bounds: tuple[CallBound, ...]) -> Any:
        if all(bound.attempt == 1 for bound in bounds):
            return True
        self.asked += [(stage, bound) for bound in bounds]
        return self.within()


def told(provider: Scripted, grants: Any = None, **how: Any) -> Deliberation:
    return debate(provider, reserve=grants, **how)


def limits(provider: Scripted, role: str = ROLE) -> list[int]:
    return [request.max_output_tokens for request in provider.asked(role)]


def test_it_is_asked_again_with_twice_the_output() -> None:
    provider, grants = Scripted({ROLE: [cut, honest]}), Grants()
    record = told(provider, grants)
    usual = OUTPUT_TOKENS["quick"]
    assert limits(provider) == [usual, 2 * usual] and ROLE not in record.failures
    first, second = (call for call in record.calls if call.role_id == ROLE)
    assert (first.status, first.detail, first.stop_reason) == ("garbage", "length", "length")
    assert (second.status, second.attempt) == ("ok", 2)
    ((stage, bound),) = grants.asked
    assert stage == "analysts"
    assert (bound.role_id, bound.attempt, bound.requests) == (ROLE, 2, 1)
    assert bound.output_tokens == 2 * usual
    assert provider.requests[0].user == provider.asked(ROLE)[1].user


def test_it_is_asked_once_more_and_not_twice() -> None:
    provider, grants = Scripted({ROLE: [cut, cut, honest]}), Grants()
    record = told(provider, grants)
    assert len(limits(provider)) == 2 and record.failures[ROLE] == "garbage"
    assert len(grants.asked) == 1


@cases(
    ("cap", "sent"),
    [(200, [200, 400]), (3_999, [3_999, 7_998]), (5_000, [5_000, MOST]), (MOST, [MOST])],
)
def test_the_output_is_never_above_the_largest_cap(cap: int, sent: list[int]) -> None:
    provider, grants = Scripted({ROLE: [cut, honest]}), Grants()
    record = told(provider, grants, config=settings(role_caps={ROLE: {"output_tokens": cap}}))
    assert limits(provider) == sent
    assert (ROLE in record.failures) == (len(sent) == 1), "at the largest there is nothing to gain"
    assert len(grants.asked) == len(sent) - 1


def raises(error: BaseException) -> Callable[[], object]:
    def within() -> object:
        raise error

    return within


REFUSALS: Final[dict[str, Callable[[], object]]] = {
    "no room": lambda: False,
    "another value": lambda: 1,
    "a failure": raises(OSError("locked")),
    "a refusal": raises(ModelUnavailable("budget")),
}


@cases("how", REFUSALS)
def test_without_leave_it_is_not_asked_again(how: str) -> None:
    provider, grants = Scripted({ROLE: [cut, honest]}), Grants(REFUSALS[how])
    record = told(provider, grants)
    assert len(limits(provider)) == 1 and len(grants.asked) == 1
    assert record.failures == {ROLE: "garbage"}
    (call,) = (call for call in record.calls if call.role_id == ROLE)
    assert call.detail == "length"


def test_where_nothing_is_reserved_it_is_asked_again() -> None:
    provider = Scripted({ROLE: [cut, honest]})
    assert told(provider).failures == {} and len(limits(provider)) == 2


def test_another_failure_is_asked_again_with_the_same_output() -> None:
    provider, grants = Scripted({ROLE: ["no JSON", honest]}), Grants()
    assert told(provider, grants).failures == {}
    assert limits(provider) == [OUTPUT_TOKENS["quick"]] * 2 and grants.asked == []
