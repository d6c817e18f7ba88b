"""One small question to one vendor's model: whether the key works, how fast, and what it costs.

It goes the way of every call: through the provider that a profile would open, held to the same
prompt and output limits, and booked in the ledger before it is sent. Its money is the hour's of the
profile that asks that vendor, and only what its ticks can spare (torra.tick.spending). Nobody waits
longer than DEADLINE. A vendor that refuses is not blocked by it, and one that rests is asked all
the same: a person wants to know.

What keeps a question from being asked raises ConfigError with the remedy. An answer of any kind, or
none in time, is a `ModelTest`. No text of it holds a key: a reply is veiled where it arrives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from agent_config import MODELS, VENDORS, AgentSettings, full_name, route
from agents.contracts import Prompt, Role
from agents.debate.deliberation import Call
from instance_database import Database, TickKey, open_home
from torra.clock import System, iso
from torra.config import Instance, Profile, load_desk, load_profile
from torra.desk.models.access import Models, open_models
from torra.desk.models.off_tick import ANSWERED, WARMING, OffTickModel, OffTickReply
from torra.desk.models.remedies import explained
from torra.errors import ConfigError
from torra.providers.vendors.addresses import key_sign
from torra.store import audit as audit_chain
from torra.tick.spending import only_model, streams_of

CLOCK: Final = System()
"""Real time: a question to a vendor lasts as long on a fast desk."""

DEADLINE: Final = 15.0
"""Seconds for which anybody waits, the loading of a vendor's SDK included."""

STAGE: Final = "test"
"""Stage of its row in the ledger."""

ACTION: Final = "test model"
"""How the audit log calls it."""

MODEL: Final = re.compile(r"[\w.:/@+-]{1,100}")
"""The name of a model that is asked: it is booked and stays on record."""

EXPECTED: Final = "ready"
LONGEST_ANSWER: Final = 200
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
SYSTEM: Final = (
    "This is a test of the connection. Answer with one JSON object and nothing else. Its only "
    f'field is "answer", a text: the word {EXPECTED}.'
)
USER: Final = "Are you there?"
PROMPT: Final = Prompt(SYSTEM, USER, "scores")
ROLE: Final = Role(
    "model_test", "Test of a model", "scorer", "quick", focus={}, needs=(), evidence=()
)


@dataclass(frozen=True, slots=True)
class ModelTest:
    """What became of a question.

    `ok` says that the model answered as an agent must; `error` and `remedy` are "" then. `usd` is
    what the ledger counts, `booked` whether there is a row of it: a server of one's own is free.
    """

    vendor: str
    model: str
    profile: str
    at: str
    ok: bool
    seconds: float
    answer: str = ""
    error: str = ""
    remedy: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    booked: bool = False

    def document(self) -> dict[str, Any]:
        """Return it for JSON and for the audit log."""
        return asdict(self)

    def line(self) -> str:
        """Return it in one sentence."""
        took = f"{self.vendor} {self.model}, {self.seconds:.1f} s"
        paid = f"{self.usd:.6f} USD" if self.booked else "free"
        if not self.ok:
            return f"{took}: {self.error}. Remedy: {self.remedy}. Booked: {paid}."
        tokens = f"{self.input_tokens} tokens in, {self.output_tokens} out"
        return f'{took}: it answers "{self.answer}". {tokens}, {paid}.'


def chosen(vendor: str, model: str, profiles: Mapping[str, Profile]) -> tuple[str, str, Profile]:
    """Return which model is asked, and the profile whose hour pays for it, with its name.

    Without a model it is the quick one of the first profile that asks that vendor, else the
    vendor's usual one. Raises ConfigError for what is no vendor.
    """
    if vendor not in VENDORS:
        raise ConfigError(f"there is no vendor {vendor[:40]!r}: take {', '.join(VENDORS)}")
    if not profiles:
        raise ConfigError("no profile is in use, so no hour could pay: write a desk.json first")
    users = {name: one for name, one in profiles.items() if vendor in one.agents.vendors()}
    name, profile = next(iter((users or profiles).items()))
    routes = [label for who, label in profile.agents.routes() if who == vendor]
    return model or (routes[0] if routes else MODELS[vendor]["quick"]), name, profile


def ask(
    home: Path,
    database: Database,
    vendor: str,
    model: str,
    profiles: Mapping[str, Profile],
    environment: Mapping[str, str],
    instances: Iterable[Instance] = (),
) -> ModelTest:
    """Ask one small question; raises ConfigError for one that cannot be asked.

    `instances` are the desk's: all streams of a profile may close together.
    """
    model, name, profile = chosen(vendor, model, profiles)
    if not MODEL.fullmatch(model):
        raise ConfigError(
            f"{model[:60]!r} is no name of a model: use letters, digits and . : / @ + - _, 100 "
            "characters at most"
        )
    if route(model, vendor) != (vendor, model):
        raise ConfigError(f"{model[:60]!r} is no model of {vendor}")
    end = CLOCK.monotonic() + DEADLINE
    models = open_models(home, database, environment, remember=False)
    try:
        settings = only_model(profile.agents, vendor, model, fallback_models=())
        asks = _opened(models, settings, vendor, environment, {
            "profile": name, "agents": profile.agents, "streams": streams_of(instances, name),
        })  # fmt: skip
        models.clients.ready(WARMING)
        begun = CLOCK.monotonic()
        reply = asks.ask(PROMPT, SCHEMA, role=ROLE, deadline=end)
        if reply.call is None:
            raise ConfigError(
                f"the test of {vendor} was not sent: {reply.detail}; test later, or raise "
                "agents.max_api_cost_per_hour"
            )
        seconds = round(CLOCK.monotonic() - begun, 3)
        return _test_of(reply, reply.call, seconds, vendor, name, environment)
    finally:
        models.close()


def remember(database: Database, test: ModelTest, actor: str, address: str = "") -> None:
    """Write a test to the audit log."""
    database.audit(
        actor=actor,
        address=address,
        action=ACTION,
        target=f"{test.vendor}:{test.model}"[:120],
        outcome="done" if test.ok else f"done: {test.error}"[:300],
        after=test.document(),
    )


def newest(database: Database) -> dict[str, dict[str, Any]]:
    """Return the newest test of each vendor, as the audit log has it."""
    tests: dict[str, dict[str, Any]] = {}
    for row in audit_chain.audit_entries(database, limit=100, action=ACTION):
        document = json.loads(row["after"])
        if isinstance(document, dict) and "seconds" in document:
            tests.setdefault(str(document.get("vendor")), document)
    return tests


# --- details --------------------------------------------------------------------------------------


def _opened(
    models: Models,
    settings: AgentSettings,
    vendor: str,
    environment: Mapping[str, str],
    payer: Mapping[str, Any],
) -> OffTickModel:
    key = TickKey("models", STAGE, CLOCK.real_now().replace(microsecond=0))
    try:
        return OffTickModel(
            models=models, database=models.database, settings=settings, kind=STAGE, key=key,
            clock=CLOCK, **payer,
        )  # fmt: skip
    except ConfigError as error:
        if key_sign(vendor, environment).variable:
            raise
        raise ConfigError(
            f"{error}. A key is read when the desk starts: set it, then restart the desk"
        ) from error


def _test_of(
    reply: OffTickReply,
    call: Call,
    seconds: float,
    vendor: str,
    profile: str,
    environment: Mapping[str, str],
) -> ModelTest:
    """Return what became of a question that was sent."""
    answer, reason, detail = call.reply.strip(), reply.status, reply.detail
    error = remedy = ""
    if reply.document is not None:
        words = reply.document.get("answer")
        if isinstance(words, str):
            answer = words
        else:
            reason, detail = "garbage", "not JSON of this schema"
    if reason != ANSWERED:
        error, remedy = explained(reason, detail, key_sign(vendor, environment), DEADLINE)
    return ModelTest(
        vendor=vendor,
        model=call.request.model,
        profile=profile,
        at=iso(CLOCK.real_now().replace(microsecond=0)),
        ok=not error,
        seconds=seconds,
        answer=answer[:LONGEST_ANSWER],
        error=error,
        remedy=remedy,
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        usd=round(reply.usd, 9),
        booked=call.paid_usd is not None,
    )


def profiles_of(home: Path) -> dict[str, Profile]:
    """Return the profiles that a home's instances use, by name; raises ConfigError."""
    names = dict.fromkeys(item.profile for item in load_desk(home).instances)
    return {name: load_profile(name, home) for name in names}


def run(home: Path, vendor: str, environment: Mapping[str, str]) -> ModelTest:
    """Ask for the command line, which names a vendor or VENDOR:MODEL; raises ConfigError."""
    name, _, model = full_name(vendor).partition(":")
    profiles = profiles_of(home)
    chosen(name, model, profiles)
    with closing(open_home(home)) as database:
        instances = load_desk(home).instances
        test = ask(home, database, name, model, profiles, environment, instances)
        remember(database, test, "command line")
        return test
