"""One way to ask a model beside the ticks: booked first, held to its caps, read by the one door.

A review, a test question, the radar and Ask use it. Each request is reserved in the account of its
kind before it is sent (torra.tick.spending), and nobody waits for its answer beyond the deadline.
Whatever a vendor, a ledger or a budget does is a reply with a trigger; nothing of it raises. The
trigger is read from the status and the body field of a refusal, never from the words of a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent_config import VENDORS, AgentSettings, route
from agents.contracts import CallBound, Completion, ModelUnavailable, Prompt, Request, Role
from agents.debate.deliberation import Call
from agents.texts import door
from instance_database import Database
from torra.clock import Clock, System
from torra.config import Instance, Profile
from torra.desk.models.access import Models, open_models
from torra.errors import StoreUnavailable
from torra.store import ledger as ledger_table
from torra.store.connection import Keyed
from torra.tick.spending import OffTickAccount, OffTickKind, Purse, only_model

ACCOUNT_FAULTS: Final = frozenset(("AUTH_REFUSED", "NO_CREDIT", "QUOTA", "BLOCKED"))
"""Triggers after which no request to that vendor helps."""

TRIGGERS: Final[Mapping[str, str]] = {
    "timeout": "TIMEOUT", "deadline": "TIMEOUT", "blocked": "BLOCKED", "budget": "BUDGET",
    "garbage": "GARBAGE", "refused": "GARBAGE", "wrong_symbol": "GARBAGE",
}  # fmt: skip
"""Triggers by the reason of a failure that has no code of its own; else it is NETWORK."""

ANSWERED: Final = "ok"

WARMING: Final = 8.0
"""Seconds that the loading of a vendor's SDK may take beside the answer."""

LEAVE_SECONDS: Final = 0.2
"""Real seconds within which a wait for an answer sees that nobody wants it any more."""


class OffTickKey(NamedTuple):
    """What calls and bookings of a kind are made for: a trade, a run, a question."""

    kind: OffTickKind
    name: str

    @property
    def text(self) -> str:
        """The key as the tables hold it."""
        return f"{self.kind}|{self.name}"


class OffTickReply(NamedTuple):
    """What became of a request.

    `document` is the object that was replied; None where `trigger` says why there is none, "" else.
    `status` is that of the call, "" where nothing was sent; `usd` is what the ledger counts.
    `model` is the VENDOR:MODEL that gave the document. `call` is for the table of calls, its
    `paid_usd` None where the ledger has no row of it.
    """

    document: dict[str, Any] | None
    trigger: str = ""
    detail: str = ""
    usd: float = 0.0
    status: str = ""
    call: Call | None = None
    model: str = ""


@dataclass(kw_only=True)
class OffTickModel:
    """A model that one kind asks, and the profile that pays; raises ConfigError when opened.

    `agents` are the settings of the paying profile and `streams` how many of its ticks come first.
    `settings` open the model and who stands in for it. `is_over` says that nobody waits any more.
    """

    models: Models
    database: Database
    profile: str
    agents: AgentSettings
    settings: AgentSettings
    kind: OffTickKind
    key: Keyed
    streams: int = 1
    clock: Clock = field(default_factory=System)
    is_over: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        """Open the provider; nothing is sent."""
        self._provider = self.models.provider(self.settings)

    def ask(
        self,
        prompt: Prompt,
        schema: Mapping[str, Any],
        *,
        role: Role,
        deadline: float,
        symbol: str = "",
        timeframe: str = "",
        bar_time: str = "",
        round: int = 1,  # noqa: A002 - the word of requests and records
        nonce: str = "",
    ) -> OffTickReply:
        """Ask once and wait until `deadline`, a moment of the clock's monotonic seconds.

        With a `symbol` the reply must be about it. Raises ConfigError for a desk that cannot be
        seated.
        """
        most, output_tokens = self.settings.caps(role.id, role.tier)
        size = len(f"{prompt.system}{prompt.user}".encode("utf-8", "backslashreplace"))
        if size > most:
            return OffTickReply(None, "BUDGET", f"its facts take more than {most:,} bytes")
        started = self.clock.monotonic()
        request = Request(
            role, round, 1, symbol, timeframe, bar_time, self.settings.model(role.id, role.tier),
            prompt, schema, features={}, reports=(), scores={}, max_output_tokens=output_tokens,
            limit_s=max(0.1, deadline - started), nonce=nonce,
        )  # fmt: skip
        bound = CallBound(
            role.id, request.model, prompt_bytes=size, output_tokens=output_tokens, requests=1,
            round=round, tier=role.tier,
        )  # fmt: skip
        account = OffTickAccount(
            self.database, self.models.prices, self.profile, self.models.local, self.clock.real_now,
            kind=self.kind, agents=self.agents, streams=self.streams,
        )  # fmt: skip
        purse = account.purse(
            self.key, self.settings, self._provider.submit,
            monotonic=self.clock.monotonic, deadline=deadline,
        )  # fmt: skip
        try:
            if not purse.reserve(self.kind, [bound]):
                return OffTickReply(None, "BUDGET", account.refusal())
        except StoreUnavailable as error:
            return OffTickReply(None, "LEDGER", f"the database cannot be used: {error}")
        return self._sent(purse, Call(request, self.kind, started), deadline)

    def _sent(self, purse: Purse, call: Call, deadline: float) -> OffTickReply:
        document, trigger, model = None, "", ""
        try:
            call.completion = self._completion(purse, call, deadline)
            document = door.answered(call.completion, call.request, call.request.symbol or None)
            call.status = ANSWERED
            model = f"{call.completion.provider}:{call.completion.model}"
        except ModelUnavailable as error:
            call.status, call.detail, trigger = error.reason, error.detail, trigger_of(error)
        call = call.recorded(self.clock.monotonic())
        paid = purse.paid()
        call = replace(call, paid_usd=paid if purse.booked else None)
        return OffTickReply(document, trigger, call.detail, paid, call.status, call, model)

    def _completion(self, purse: Purse, call: Call, deadline: float) -> Completion:
        """Send a request and wait for its answer; raises ModelUnavailable and only that.

        A provider and its future may raise anything.
        """
        try:
            call.future = future = purse.submit(call.request)
            while (left := deadline - self.clock.monotonic()) > 0:
                if wait([future], min(LEAVE_SECONDS, left)).done or self.is_over():
                    break
            completion = future.result() if future.done() else None
        except ModelUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - as said above
            raise ModelUnavailable("error", type(error).__name__) from None
        if completion is None:
            future.cancel()
            raise ModelUnavailable("timeout", "no answer in time", again=None)
        if not isinstance(completion, Completion):
            raise ModelUnavailable("error", f"{type(completion).__name__} is no completion")
        return completion


def trigger_of(error: ModelUnavailable) -> str:
    """Return the trigger of a failure: the code of its vendor's refusal, else by its reason."""
    return getattr(error, "code", "") or TRIGGERS.get(error.reason, "NETWORK")


def alone(settings: AgentSettings, role: Role, **more: Any) -> AgentSettings:
    """Return settings with which nobody but a role's model is opened, and who stands in for it."""
    model = settings.model(role.id, role.tier)
    return only_model(settings, route(model, settings.provider)[0], model, **more)


def payer(
    instances: Iterable[Instance], profiles: Mapping[str, Profile], *roles: Role
) -> tuple[str, AgentSettings] | None:
    """Return the first profile of instances whose models of roles are a vendor's; else None."""
    for item in instances:
        agents = profiles[item.id].agents
        models = (agents.model(role.id, role.tier) for role in roles)
        if {route(model, agents.provider)[0] for model in models} <= {*VENDORS}:
            return item.profile, agents
    return None


@contextmanager
def open_off_tick(
    home: Path,
    database: Database,
    environment: Mapping[str, str],
    paying: tuple[str, AgentSettings],
    key: OffTickKey,
    *roles: Role,
    streams: int,
    **more: Any,
) -> Iterator[dict[str, OffTickModel]]:
    """Open the model of each role, by the role's id, with `more` settings of their own.

    `paying` is the profile that pays, with its settings. Raises ConfigError.
    """
    profile, agents = paying
    models = open_models(home, database, environment)
    try:
        models.apply_blocks()
        asks = {
            role.id: OffTickModel(
                models=models, database=database, profile=profile, agents=agents,
                settings=alone(agents, role, **more), kind=key.kind, key=key, streams=streams,
            )
            for role in roles
        }  # fmt: skip
        models.clients.ready(WARMING)
        yield asks
    finally:
        models.close()


def write_call(database: Database, key: Keyed, call: Call) -> Call:
    """Store a call by its key, behind those that it has; raises StoreUnavailable."""
    # Another asker may have had an answer meanwhile: no call is written over it.
    last = ledger_table.last_round(database, key.text)
    call = replace(call, stored_round=max(call.round, last + 1))
    database.write_calls(key, [call])
    return call
