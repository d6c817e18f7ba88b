"""The rules provider: it answers every seat at the desk by reading the evidence, without a model.

It needs no key and no network, costs nothing, and gives the same answer to the same evidence. It
reads the values of a request, never its prose. It answers in the JSON of the reply's shape, so that
the framework parses, bounds and checks it like any model's. `engine` reads a request by the rows of
`rules.csv`, `argument` puts what it read into words, and a function a seat works out what its role
says: `analyst_rules` (analysts, experts, researchers, scorer), `gate_rules`, `firm_rules` (research
manager, trader) and `swarm_rules` (reader of the regime, judge).

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
from torra.providers.rules.analyst_rules import analyst, researcher, scorer
from torra.providers.rules.firm_rules import arbiter, trader
from torra.providers.rules.gate_rules import gate
from torra.providers.rules.swarm_rules import judge, reader

NAME: Final = "rules"

SEATS: Final[Mapping[Kind, Callable[[Request], dict[str, Any]]]] = {
    "analyst": analyst,
    "researcher": researcher,
    "reader": reader,
    "judge": judge,
    "arbiter": arbiter,
    "gate": gate,
    "trader": trader,
    "scorer": scorer,
}
"""The function that answers for each kind of role."""


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
        role = request.role
        if role.kind not in SEATS or (role.kind == "researcher" and role.id not in SIDES):
            why = f"the rules have no seat for a {role.kind} {role.id}"
            future.set_exception(ModelUnavailable("error", why))
            return future
        reply = {"symbol": request.symbol, **SEATS[role.kind](request)}
        answer = RulesAnswer("", request.model or NAME, NAME, final=True, reply=reply)
        del vars(answer)["text"]
        future.set_result(answer)
        return future

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
