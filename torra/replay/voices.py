"""Who answers in a replay: the rules, what was recorded, or a vendor's models for money.

A vendor is asked through the home's own ledger, under the name of the replay, each stage reserved
before it is asked, and never past the sum that the user named: `Allowance` lowers the hourly
ceiling by what older hours have cost, and where a whole tick does not fit any more nobody is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from agent_config import VENDORS, AgentSettings
from agents.contracts import Submit
from agents.registry import Agent
from instance_database import TickKey
from torra import wiring
from torra.config import Profile
from torra.errors import ConfigError
from torra.journal_store import journal_history
from torra.providers.recorded import RecordedProvider
from torra.providers.rules import RulesProvider
from torra.replay.arms import Arm, only_scorer, silence
from torra.replay.runner import Voice
from torra.spending import HOUR, UNASKED, Account, Purse, Rung
from torra.tick_debate import Payer

LEDGER_PREFIX: Final = "replay."
"""Begins the name under which a replay's calls stand in the ledger."""

EVER: Final = datetime.fromisoformat("2000-01-01T00:00:00+00:00")
"""Before any call."""


def is_paid(profile: Profile) -> bool:
    """Return whether a replay with this profile asks somebody who may have to be paid."""
    return bool(set(profile.agents.vendors()) & set(VENDORS))


@contextmanager
def opened(
    home: Path, profile: Profile, symbol: str, name: str, *, max_cost: float | None
) -> Iterator[Callable[[Arm], Voice]]:
    """Yield who speaks in each arm; raises ConfigError naming what to mend."""
    provider = profile.agents.provider
    with ExitStack() as stack:
        if provider == "recorded":
            database = wiring.open_database(home)
            stack.callback(database.close)
            recorded = RecordedProvider(journal_history(database, symbol))
            yield _speaker(recorded.submit, recorded.name, None)
            return
        if not is_paid(profile):
            rules = RulesProvider()
            yield _speaker(rules.submit, rules.name, None)
            return
        if max_cost is None:
            raise ConfigError(
                f"{provider} is paid for every call: say with --max-cost USD how much this replay "
                "may cost at most"
            )
        wiring.check_models(home, profile.agents)
        database = wiring.open_database(home)
        stack.callback(database.close)
        models = wiring.open_models(home, database, remember=False)
        stack.callback(models.close)
        models.heed()
        account = models.account(profile.agents, f"{LEDGER_PREFIX}{name}"[:32])
        voice = models.provider(profile.agents)
        payer = Allowance(account, max_cost) if account else None
        yield _speaker(voice.submit, voice.name, payer)


def rules_voice(arm: Arm) -> Voice:
    """Return who speaks in an arm when the rules answer."""
    rules = RulesProvider()
    return _speaker(rules.submit, rules.name, None)(arm)


def _speaker(submit: Submit, name: str, payer: Payer | None) -> Callable[[Arm], Voice]:
    def voice(arm: Arm) -> Voice:
        if arm.voice == "nobody":
            return Voice()
        if arm.voice == "outage":
            return Voice(silence, arm.name)
        return Voice(only_scorer(submit) if arm.voice == "scorer" else submit, name, payer)

    return voice


class Allowance:
    """The account of a replay (torra.tick_debate.Payer): one sum for all of it."""

    def __init__(self, account: Account, most: float) -> None:
        """Let `account` spend `most` USD in all."""
        self._account = account
        self._most = most

    def rung(self, settings: AgentSettings, agents: Mapping[str, Agent] | None = None) -> Rung:
        """Return what the next tick is run with: what is left of the sum is its ceiling."""
        left = self._left()
        if left <= 0:
            return Rung(settings, UNASKED, asked=False)
        return self._account.rung(_under(settings, left), agents)

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

    def _left(self) -> float:
        """Return the ceiling of this hour: the sum less what was spent in hours before it.

        The ledger counts what was spent within the hour.
        """
        now = self._account.now()
        total = self._account.database.spent(self._account.profile, EVER)
        recent = self._account.database.spent(self._account.profile, now - HOUR)
        return self._most - (total - recent)


def _under(settings: AgentSettings, ceiling: float) -> AgentSettings:
    return settings.model_copy(update={"max_api_cost_per_hour": ceiling})
