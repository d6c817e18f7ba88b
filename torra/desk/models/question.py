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
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from agent_config import MODELS, VENDORS, AgentSettings, full_name, route
from agents.contracts import CallBound, Completion, ModelUnavailable, Prompt, Request, Role
from agents.texts.door import answered
from instance_database import Database, TickKey, open_home
from torra.clock import System, iso
from torra.config import Instance, Profile, load_desk, load_profile
from torra.desk.models.access import Models, open_models
from torra.desk.models.remedies import explained
from torra.errors import ConfigError
from torra.providers.vendors.addresses import key_sign
from torra.store import audit as audit_chain
from torra.tick.spending import OffTickAccount, Purse, only_model, streams_of

CLOCK: Final = System()
"""Real time: a question to a vendor lasts as long on a fast desk."""

DEADLINE: Final = 15.0
"""Seconds for which anybody waits, the loading of a vendor's SDK included."""

WARMING: Final = 8.0
"""Seconds of them that the loading may take."""

GRACE: Final = 1.0
"""Seconds after the deadline until a provider that says nothing is given up."""

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
        provider = _provider(models, settings, vendor, environment)
        models.clients.ready(WARMING)
        account = OffTickAccount(
            models.database, models.prices, name, models.local, CLOCK.real_now,
            kind=STAGE, agents=profile.agents, streams=streams_of(instances, name),
        )  # fmt: skip
        purse = account.purse(
            TickKey("models", STAGE, CLOCK.real_now().replace(microsecond=0)),
            settings,
            provider.submit,
            monotonic=CLOCK.monotonic,
            deadline=end,
        )
        bound = CallBound(
            ROLE.id,
            model,
            prompt_bytes=len(f"{SYSTEM}{USER}".encode()),
            output_tokens=settings.caps(ROLE.id, ROLE.tier)[1],
            requests=1,
            tier=ROLE.tier,
        )
        if not purse.reserve(STAGE, [bound]):
            raise ConfigError(
                f"the test of {vendor} was not sent: {account.refusal()}; test later, or raise "
                "agents.max_api_cost_per_hour"
            )
        return _sent(purse, vendor, bound, name, environment, end)
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


def _provider(
    models: Models, settings: AgentSettings, vendor: str, environment: Mapping[str, str]
) -> Any:
    try:
        return models.provider(settings)
    except ConfigError as error:
        if key_sign(vendor, environment).variable:
            raise
        raise ConfigError(
            f"{error}. A key is read when the desk starts: set it, then restart the desk"
        ) from error


def _sent(
    purse: Purse,
    vendor: str,
    bound: CallBound,
    profile: str,
    environment: Mapping[str, str],
    end: float,
) -> ModelTest:
    """Send the question and wait for its answer until `end` of the monotonic clock."""
    begun, now = CLOCK.monotonic(), iso(CLOCK.real_now().replace(microsecond=0))
    result: dict[str, Any] = {"ok": False}
    try:
        left = max(0.1, end - begun)
        request = Request(
            ROLE, 1, 1, "TEST", STAGE, now, bound.model, PROMPT, SCHEMA,
            features={}, reports=(), scores={},
            max_output_tokens=bound.output_tokens, limit_s=left,
        )  # fmt: skip
        completion = purse.submit(request).result(timeout=left + GRACE)
        result |= {
            "input_tokens": completion.input_tokens,
            "output_tokens": completion.output_tokens,
            "answer": completion.text.strip()[:LONGEST_ANSWER],
        }
        result |= {"ok": True, "answer": _answer(completion, request)[:LONGEST_ANSWER]}
    except (ModelUnavailable, NoAnswer) as error:
        reason, detail = "timeout", ""
        if isinstance(error, ModelUnavailable):
            reason, detail = error.reason, error.detail
        sign = key_sign(vendor, environment)
        result["error"], result["remedy"] = explained(reason, detail, sign, DEADLINE)
    return ModelTest(
        vendor=vendor,
        model=bound.model,
        profile=profile,
        at=iso(CLOCK.real_now().replace(microsecond=0)),
        seconds=round(CLOCK.monotonic() - begun, 3),
        usd=round(purse.paid(), 9),
        booked=purse.booked,
        **result,
    )


def _answer(completion: Completion, request: Request) -> str:
    """Return the answer of a reply, read as a tick reads it; raises ModelUnavailable."""
    answer = answered(completion, request, None).get("answer")
    if not isinstance(answer, str):
        raise ModelUnavailable("garbage", "not JSON of this schema")
    return answer


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
