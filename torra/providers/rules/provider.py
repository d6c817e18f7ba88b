"""The rules provider: it answers every seat at the desk by reading the evidence, without a model.

It needs no key and no network, costs nothing, and gives the same answer to the same evidence. It
reads the values of a request, never its prose. It answers in the JSON of the reply's shape, so that
the framework parses, bounds and checks it like any model's. `opinions` (analysts, researchers,
scorer), `judging` (research manager), `caution` (gate) and `thesis` (trader) work out what a role
says, from the table in `readings`. In a swarm `regime_reading`, `experts` and `deciding` (judge)
do.

The answer is there when `submit` returns. A seat that it does not know fails with ModelUnavailable
in the future, as a model would; missing evidence makes a role abstain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import cached_property
from typing import Any, Final

from agents.contracts import SIDES, Completion, Kind, ModelUnavailable, Request, synchronous
from torra.providers.rules.caution import gate
from torra.providers.rules.deciding import judge
from torra.providers.rules.expert_readings import EXPERT_TABLES
from torra.providers.rules.experts import expert
from torra.providers.rules.judging import arbiter
from torra.providers.rules.opinions import analyst, researcher, scorer
from torra.providers.rules.regime_reading import reader
from torra.providers.rules.thesis import trader

NAME: Final = "rules"


class RulesAnswer(Completion):
    """An answer whose text is written when it is first read: the framework takes the object."""

    @cached_property
    def text(self) -> str:
        """The reply as JSON."""
        return json.dumps(self.reply, allow_nan=False)


class RulesProvider:
    """Reads the evidence by fixed rules."""

    name = NAME

    @synchronous
    def submit(self, request: Request) -> Future[Completion]:
        """Return the finished answer to a request."""
        future: Future[Completion] = Future()
        try:
            reply = _seat(request.role.kind)(request)
        except ModelUnavailable as error:
            future.set_exception(error)
        else:
            answer = RulesAnswer("", request.model or NAME, NAME, final=True, reply=reply)
            del vars(answer)["text"]
            future.set_result(answer)
        return future

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _seat(kind: Kind) -> Callable[[Request], dict[str, Any]]:
    if kind not in SEATS:
        raise ModelUnavailable("error", f"the rules have no seat for a {kind}")
    return SEATS[kind]


def _analyst(request: Request) -> dict[str, Any]:
    return expert(request) if request.role.id in EXPERT_TABLES else analyst(request)


def _advocate(request: Request) -> dict[str, Any]:
    side = SIDES.get(request.role.id)
    if side is None:
        raise ModelUnavailable("error", f"the rules know no side for {request.role.id}")
    return researcher(request, side)


SEATS: Final[Mapping[Kind, Callable[[Request], dict[str, Any]]]] = {
    "analyst": _analyst,
    "researcher": _advocate,
    "reader": reader,
    "judge": judge,
    "arbiter": arbiter,
    "gate": gate,
    "trader": trader,
    "scorer": scorer,
}
"""The function that answers for each kind of role."""
