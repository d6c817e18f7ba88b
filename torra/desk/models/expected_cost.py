"""What a desk is expected to cost before it is paid: a tick, a day, the ticks of `earned`.

An `Estimate` lets the rules answer the very prompts of one tick and counts their characters. The
tick is the newest of the desk, or the shipped one (representative_tick.json, of the sample), whose
evidence every desk has. So a seat that has no evidence is not counted, as it is not asked. Tokens
are characters by a rule of thumb and no vendor's count. What happens on some ticks alone (a
rebuttal, a second look, a gate or a desk that is asked where a position can open) counts by the
share of ticks on which it does in the sample. Not counted are the trader, who is asked on 1 % of
them, pictures, retries, thoughts of a model that cannot but think, and caches: what all prompts
begin with is shorter than what vendors cache. Nothing is asked of a vendor here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TypedDict

import agent_framework
from agent_config import MODES, VENDORS, AgentSettings, route
from agents.contracts import VECTORS, Completion, DebateContext, Feature, Request, immediate
from agents.debate.asking import LOOK_AGAIN
from instance_database import Database
from torra.config import Instance, Profile
from torra.desk.costs import DAY, DECIMALS, closes_a_day, local_by
from torra.evaluation.promotion_rule import LOOKS
from torra.providers.prices import PriceList
from torra.providers.rules.provider import RulesProvider
from torra.tick.spending import HOUR, Local
from torra.tick.tick_record import TickRecord

EARNED_TICKS: Final = LOOKS[0]
"""Ticks after which agents whose influence is `earned` are looked at for the first time."""

INPUT_CHARS: Final = 3.3
OUTPUT_CHARS: Final = 2.9
"""Characters of a token, in prompts with their schemas and in replies, which are full of numbers:
measured with a public byte-pair encoding (o200k) on the prompts of all modes.
"""

REBUTTAL: Final = 1 / 3
"""Share of ticks with a rebuttal that is `auto`: 0.51 with the rules' opinions on 251 ticks of the
sample, 0.12 with opinions that never differ.
"""

SECOND_LOOK: Final = 0.1
"""Share of reports that are thought over once more where a desk does so. None of the replies of a
model that docs/transcripts.md keeps is of low confidence; of the rules' own, 0.42 are.
"""

PIVOTAL: Final = 0.12
"""Share of ticks on which agents may change the verdict, or an opening stands."""


Call = tuple[Request, Completion]


class ExpectedCost(TypedDict):
    """Expected cost in USD of a tick, of a day of `closes` and of EARNED_TICKS.

    A day costs no more than its hours may. The three are None where `unpriced` names models, by
    VENDOR:MODEL, that have no price.
    """

    closes: int
    tick_usd: float | None
    day_usd: float | None
    earned_usd: float | None
    unpriced: list[str]


class ModeCost(ExpectedCost):
    """The same of a mode with a vendor's default models."""

    mode: str
    vendor: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """What costs are estimated by: the evidence of a tick, the closes of a day, the prices."""

    tick: TickRecord
    closes: int
    prices: PriceList
    local: Local

    @classmethod
    def of(
        cls,
        database: Database | None,
        instances: Sequence[Instance],
        prices: PriceList,
        environment: Mapping[str, str],
    ) -> Estimate:
        """Return the estimate for instances, by the newest tick of the first that has one."""
        streams = ((item.id, frame) for item in instances for frame in item.timeframes)
        found = (database.latest_tick(*one) for one in streams) if database else ()
        ticks = (TickRecord.read(one or {}) for one in found)
        tick = next((one for one in ticks if one.features), shipped_tick())
        return cls(tick, closes_a_day(instances), prices, local_by(environment))

    def expected(self, profile: Profile) -> ExpectedCost:
        """Return what a profile is expected to cost with its models."""
        return self._cost(_rehearsed(profile, self.tick), profile.agents)

    def by_mode(self) -> list[ModeCost]:
        """Return what every mode is expected to cost with every vendor."""
        found: list[ModeCost] = []
        for mode in MODES:
            profiles = [Profile().with_agents(mode=mode, provider=vendor) for vendor in VENDORS]
            calls = _rehearsed(profiles[0], self.tick)  # whoever reads them, the prompts are these
            for vendor, one in zip(VENDORS, profiles, strict=True):
                found.append({"mode": mode, "vendor": vendor, **self._cost(calls, one.agents)})
        return found

    def _cost(self, calls: Iterable[Call], agents: AgentSettings) -> ExpectedCost:
        tick = 0.0
        unpriced: list[str] = []
        for request, completion in calls:
            role, texts = (
                request.role,
                f"{request.system}{request.user}{json.dumps(request.schema)}",
            )
            vendor, model = route(agents.model(role.id, role.tier), agents.provider)
            cost = self.prices.cost(
                vendor,
                model,
                input_tokens=round(len(texts) / INPUT_CHARS),
                output_tokens=round(len(completion.text) / OUTPUT_CHARS),
                local=self.local(vendor),
            )
            # A model that nobody lists is booked at the dearest price: nobody expects that.
            if self.prices.per_million(vendor, model, local=self.local(vendor)) is None:
                unpriced.append(f"{vendor}:{model}")
            tick += cost * _share(agents, request)
        day = min(tick * self.closes, DAY / HOUR * agents.max_api_cost_per_hour)
        one, whole, earned = (
            None if unpriced else round(usd, DECIMALS) for usd in (tick, day, tick * EARNED_TICKS)
        )
        return {
            "closes": self.closes, "tick_usd": one, "day_usd": whole, "earned_usd": earned,
            "unpriced": sorted(set(unpriced)),
        }  # fmt: skip


@cache
def shipped_tick() -> TickRecord:
    """Return the tick that the program brings: bars alone, and the evidence of every mode."""
    path = Path(__file__).with_name("representative_tick.json")
    return TickRecord.read(json.loads(path.read_text(encoding="utf-8")))


def figures(told: ExpectedCost) -> tuple[str, ...]:
    """Return what a tick, a day and EARNED_TICKS are expected to cost in USD, as text."""
    if told["unpriced"]:
        return ("no price",) * 3
    return f"{told['tick_usd']:.4f}", f"{told['day_usd']:.2f}", f"{told['earned_usd']:.2f}"


def sentence(told: ExpectedCost) -> str:
    """Return an expected cost in words."""
    if told["unpriced"]:
        names = ", ".join(told["unpriced"])
        return f"no cost is expected: {names} has no price, and prices.json may give one"
    tick, day, earned = figures(told)
    return (
        f"a tick is expected to cost {tick} USD, a day of {told['closes']:,} closes {day} USD, the "
        f"{EARNED_TICKS:,} ticks that agents.influence earned asks for {earned} USD"
    )


def cells(rows: Sequence[ModeCost]) -> list[tuple[str, ...]]:
    """Return what modes are expected to cost as the lines of a table, its titles first."""
    titles = "mode", "vendor", "a tick", f"{rows[0]['closes']:,} closes", f"{EARNED_TICKS:,} ticks"
    return [titles, *((row["mode"], row["vendor"], *figures(row)) for row in rows)]


# --- details --------------------------------------------------------------------------------------


def _share(agents: AgentSettings, request: Request) -> float:
    """Return on which share of ticks a call is made."""
    asked = 1.0
    if agents.call_policy == "pivotal":
        asked = PIVOTAL + (1.0 - PIVOTAL) * agents.pivotal_sample
    if request.role.kind == "gate" and agents.gate_call == "openings":
        return PIVOTAL
    if request.round > 1 and agents.rebuts():
        asked = max(PIVOTAL, REBUTTAL * asked)
    again = agents.looks_again() and request.role.kind in LOOK_AGAIN
    return asked * (1.0 + SECOND_LOOK) if again else asked


def _rehearsed(profile: Profile, tick: TickRecord) -> list[Call]:
    """Return every call that a tick may make, answered by the rules."""
    rules = RulesProvider()
    calls: list[Call] = []

    @immediate
    def submit(request: Request) -> Future[Completion]:
        answered = rules.submit(request)
        calls.append((request, answered.result()))
        return answered

    # No clock runs, so that any deadline is far.
    with suppress(ValueError):  # a desk that cannot be seated asks nobody
        agent_framework.deliberate(
            _context(tick), profile.debate(), submit, monotonic=lambda: 0.0, deadline=1.0
        )
    return calls


def _context(tick: TickRecord) -> DebateContext:
    """Return what agents are shown of a tick, where anything that is asked for may be asked."""
    return DebateContext(
        symbol=str(tick.symbol),
        timeframe=str(tick.timeframe),
        bar_time=str(tick.bar_time),
        as_of=str(tick.as_of),
        scores={name: tick.l1.get(name) or 0.0 for name in VECTORS},
        # Of another mode the desk's own tick may have worked out less, so the shipped one fills in.
        features={
            one.id: Feature(one.id, one.value, one.unit or "")
            for one in (*shipped_tick().features, *tick.features)
            if one.id
        },
        memory=tick.memory,
        nonce="0" * 16,
        pivotal=True,
    )
