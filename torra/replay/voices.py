"""Opens the provider that answers in a replay: the rules, the recorded replies, or a paid vendor.

A vendor is asked through the home's own ledger, under the name of the replay. Each stage is
reserved before it is asked, never past the sum that the user named. The transaction that books a
stage counts everything that was ever booked under that name, by this process or another, now or in
an earlier run (torra.tick.spending). When a whole tick does not fit any more, or the ledger cannot
be read, nobody is asked. A vendor without `max_cost`, or without a key, raises ConfigError.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from agent_config import AgentSettings
from agents.contracts import Request, Submit
from agents.registry import Agent
from instance_database import Database, TickKey, open_home
from torra.config import Instance, Profile, load_desk
from torra.desk.models.access import check_models, open_models
from torra.errors import ConfigError, StoreUnavailable
from torra.providers.recorded import RecordedProvider
from torra.providers.rules.provider import RulesProvider
from torra.replay.arms import Arm, only_scorer, silence
from torra.replay.runner import AgentSource
from torra.store.ledger import SUMMED
from torra.store.replay_queries import Recollection, journal_history
from torra.tick.debate import Payer
from torra.tick.degradation import UNASKED, DegradationLevel
from torra.tick.spending import EVER, HOUR, Purse, SpendingAccount

LONGEST: Final = 32
"""Characters of a name in the ledger, as of a profile's."""

log = logging.getLogger("torra")


@contextmanager
def opened(
    home: Path, profile: Profile, symbol: str, name: str, *, max_cost: float | None
) -> Iterator[Callable[[Arm], AgentSource]]:
    """Yield a function from an arm to its voice; raises ConfigError naming what to mend.

    `max_cost` is the sum in USD that a vendor may be paid under the replay's name, in all runs
    together.
    """
    provider = profile.agents.provider
    with ExitStack() as stack:
        if provider == "recorded":
            database = open_home(home)
            stack.callback(database.close)
            recorded = RecordedProvider(_recalled(home, database, symbol))
            yield _speaker(recorded.submit, recorded.name, None)
            return
        if not profile.agents.paid():
            rules = RulesProvider()
            yield _speaker(rules.submit, rules.name, None)
            return
        if max_cost is None:
            raise ConfigError(
                f"{provider} is paid for every call: say with --max-cost USD how much this replay "
                "may cost at most"
            )
        if not (math.isfinite(max_cost) and max_cost >= 0.0):
            raise ConfigError(f"--max-cost {max_cost}: say a sum of USD, 0 or more")
        check_models(home, profile.agents)
        database = open_home(home)
        # Before the models: closed after them, so that a call that ends then is booked.
        stack.callback(database.close)
        models = open_models(home, database, remember=False)
        stack.callback(models.close)
        models.apply_blocks()
        account = models.account(profile.agents, ledger_name(name))
        voice = models.provider(profile.agents)
        payer = Allowance(account, max_cost) if account else None
        yield _speaker(voice.submit, voice.name, payer)


def own_instances(home: Path, symbol: str) -> list[Instance]:
    """Return the instances of a desk that a symbol means: those that trade it, or the one so named.

    The desk's own stores, its journal among them, know an instance by its name.
    """
    return [item for item in load_desk(home).instances if symbol in (item.id, item.symbol)]


def _recalled(home: Path, database: Database, symbol: str) -> Recollection:
    """Return a function that answers from the journals of the desk's instances, first hit first."""
    names = [item.id for item in own_instances(home, symbol)] or [symbol]
    histories = [journal_history(database, name) for name in names]

    def recall(request: Request) -> Mapping[str, Any] | None:
        told = (history(request) for history in histories)
        return next((reply for reply in told if reply is not None), None)

    return recall


def ledger_name(name: str) -> str:
    """Return the name under which a replay's calls stand in the ledger: LONGEST characters at most.

    No two replays have the same. A name that is too long is replaced by its hash, after a "_": no
    replay's own name begins with that.
    """
    told = f"{SUMMED}{name}"
    if len(told) <= LONGEST:
        return told
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{SUMMED}_{digest}"[:LONGEST]


def rules_voice(arm: Arm) -> AgentSource:
    """Return the voice of an arm when the rules answer."""
    rules = RulesProvider()
    return _speaker(rules.submit, rules.name, None)(arm)


def _speaker(submit: Submit, name: str, payer: Payer | None) -> Callable[[Arm], AgentSource]:
    def voice(arm: Arm) -> AgentSource:
        if arm.voice == "nobody":
            return AgentSource()
        if arm.voice == "outage":
            return AgentSource(silence, arm.name)
        return AgentSource(only_scorer(submit) if arm.voice == "scorer" else submit, name, payer)

    return voice


class Allowance:
    """The account of a replay (torra.tick.debate.Payer): one sum for all of it."""

    def __init__(self, account: SpendingAccount, most: float) -> None:
        """Let `account` spend `most` USD in all; that is its ceiling, an hour has none."""
        self._account = replace(account, most=most)
        self._most = most

    def degradation_level(
        self,
        settings: AgentSettings,
        agents: Mapping[str, Agent] | None = None,
        *,
        reserved_usd: float = 0.0,
    ) -> DegradationLevel:
        """Return the level for the next tick: a desk whose worst case the rest of the sum covers.

        This only chooses. Bookings made meanwhile may leave less: then the purse refuses.
        """
        try:
            ceiling = self._ceiling()
        except StoreUnavailable:
            log.exception("ledger: nobody is asked for %s", self._account.profile)
            ceiling = 0.0
        if ceiling <= 0.0:
            return DegradationLevel(settings, UNASKED, calls_models=False)
        chosen = self._account.degradation_level(
            _under(settings, ceiling), agents, reserved_usd=reserved_usd
        )
        # The lowered ceiling was for the choice alone: the purse checks the whole sum itself.
        return replace(chosen, settings=_under(chosen.settings, self._most))

    def purse(
        self,
        key: TickKey,
        settings: AgentSettings,
        submit: Submit,
        *,
        monotonic: Callable[[], float],
        deadline: float,
    ) -> Purse:
        """Open the purse of a tick."""
        return self._account.purse(key, settings, submit, monotonic=monotonic, deadline=deadline)

    def _ceiling(self) -> float:
        """Return the ceiling of this hour that lets the rest of the sum be spent.

        The ladder subtracts what was spent within the hour.
        """
        account = self._account
        total = account.database.spent(account.profile, EVER)
        recent = account.database.spent(account.profile, account.now() - HOUR)
        return self._most - (total - recent)


def _under(settings: AgentSettings, ceiling: float) -> AgentSettings:
    return settings.model_copy(update={"max_api_cost_per_hour": ceiling})
