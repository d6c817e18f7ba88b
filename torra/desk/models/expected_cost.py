"""What a desk is expected to cost before it is paid: a tick, a day, the ticks of `earned`.

An `Estimate` lets the rules answer the very prompts of one tick and counts their characters. The
tick is the newest of the desk, or the shipped one (representative_tick.json, of the sample), whose
evidence every desk has. A seat that has no evidence in either is named, not counted. Tokens are
characters by a rule of thumb and no vendor's count. What happens on some ticks alone (a
rebuttal, a second look, a gate or a desk that is asked where a position can open) counts by the
share of ticks on which it does in the sample. Not counted are the trader, who is asked on 1 % of
them, pictures, retries, thoughts of a model that cannot but think, and caches: what all prompts
begin with is shorter than what vendors cache. Nothing is asked of a vendor here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import JsonValue

import agent_framework
from agent_config import MODES, VENDORS, AgentSettings, route
from agents.contracts import VECTORS, Completion, DebateContext, Feature, Request, synchronous
from agents.debate.debate import LOOK_AGAIN
from agents.registry import seated
from instance_database import Database
from torra.config import Instance, Profile
from torra.desk.costs import DAY, DECIMALS, Row, closes_a_day, local_by
from torra.evaluation.promotion_rule import LOOKS
from torra.providers.prices import PriceList, Usage
from torra.providers.rules.provider import RulesProvider
from torra.tick.degradation import Local
from torra.tick.spending import HOUR
from torra.tick.tick_record import FeatureRecord, Numbers, RecordPart, TickRecord, load

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


class ShippedTick(RecordPart):
    """What a tick of the sample sees."""

    symbol: str
    timeframe: str
    bar_time: str
    as_of: str
    close: float
    atr: float
    l1: Numbers
    notes: dict[str, str]
    memory: dict[str, JsonValue]
    features: tuple[FeatureRecord, ...]


@dataclass(frozen=True, slots=True)
class CostBasis:
    """What costs are estimated by: the evidence of a tick, the closes of a day, the prices."""

    tick: TickRecord | ShippedTick
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
    ) -> CostBasis:
        """Return the estimate for instances, by the newest tick of the first that has one."""
        streams = ((item.id, frame) for item in instances for frame in item.timeframes)
        records = (database.latest_tick(*one) for one in streams) if database else ()
        ticks = (load("", one) for one in records if one)
        tick = next((one for one in ticks if isinstance(one, TickRecord)), shipped_tick())
        return cls(tick, closes_a_day(instances), prices, local_by(environment))

    def expected(self, profile: Profile) -> Row:
        """Return what a profile is expected to cost with its models, in USD.

        `tick_usd` is of a tick, `day_usd` of a day of `closes`, which costs no more than its hours
        may, `earned_usd` of EARNED_TICKS. The three are None where `unpriced` names models, by
        VENDOR:MODEL, that have no price, and where nothing can be estimated: the desk cannot be
        seated, the tick holds numbers that no reply can, or all that is paid is `uncounted`. Those
        are the paid seats that are not asked on the tick, as a rule for want of evidence.
        """
        return self._cost(self._rehearsed(profile), profile.agents)

    def by_mode(self) -> list[Row]:
        """Return what every mode is expected to cost with every vendor."""
        rows: list[Row] = []
        for mode in MODES:
            profiles = [Profile().with_agents(mode=mode, provider=vendor) for vendor in VENDORS]
            calls = self._rehearsed(profiles[0])  # whoever reads them, the prompts are these
            for vendor, one in zip(VENDORS, profiles, strict=True):
                rows.append({"mode": mode, "vendor": vendor, **self._cost(calls, one.agents)})
        return rows

    def _cost(self, calls: Sequence[Call] | None, agents: AgentSettings) -> Row:
        tick = 0.0
        unpriced: set[str] = set()
        uncounted: list[str] = []
        for seat in () if calls is None else seated(agents):
            role = seat.role
            vendor, model = route(agents.model(role.id, role.tier), agents.provider)
            local = self.local(vendor)
            price = self.prices.per_million(vendor, model, local=local)
            made = [call for call in calls or () if call[0].role.id == role.id]
            # A model that nobody lists is booked at the dearest price: nobody expects that.
            if price is None:
                unpriced.add(f"{vendor}:{model}")
            elif price.input and not made:
                uncounted.append(role.id)
            for request, completion in made:
                read = f"{request.system}{request.user}{json.dumps(request.schema)}"
                usage = Usage(
                    round(len(read) / INPUT_CHARS), round(len(completion.text) / OUTPUT_CHARS)
                )
                tick += _share(agents, request) * self.prices.cost(
                    vendor, model, usage, local=local
                )
        day = min(tick * self.closes, DAY / HOUR * agents.max_api_cost_per_hour)
        unknown = calls is None or unpriced or (uncounted and not tick)
        one, whole, earned = (
            None if unknown else round(usd, DECIMALS) for usd in (tick, day, tick * EARNED_TICKS)
        )
        return {
            "closes": self.closes, "tick_usd": one, "day_usd": whole, "earned_usd": earned,
            "unpriced": sorted(unpriced), "uncounted": uncounted,
        }  # fmt: skip

    def _rehearsed(self, profile: Profile) -> list[Call] | None:
        """Return every call that a tick may make, answered by the rules; None where none can be."""
        rules = RulesProvider()
        calls: list[Call] = []

        @synchronous
        def submit(request: Request) -> Future[Completion]:
            answered = rules.submit(request)
            calls.append((request, answered.result()))
            return answered

        # No clock runs, so that any deadline is far.
        with suppress(ValueError):
            agent_framework.deliberate(
                _context(self.tick), profile.debate(), submit, monotonic=lambda: 0.0, deadline=1.0
            )
            # Read here, as there are numbers that no reply can hold.
            return [call for call in calls if call[1].text]
        return None


@cache
def shipped_tick() -> ShippedTick:
    """Return the tick that the program brings: bars alone, and the evidence of every mode."""
    path = Path(__file__).with_name("representative_tick.json")
    return ShippedTick.model_validate_json(path.read_bytes())


def figures(cost: Row) -> tuple[str, ...]:
    """Return what a tick, a day and EARNED_TICKS are expected to cost in USD, as text."""
    if cost["tick_usd"] is None:
        return ("no price" if cost["unpriced"] else "unknown",) * 3
    return f"{cost['tick_usd']:.4f}", f"{cost['day_usd']:.2f}", f"{cost['earned_usd']:.2f}"


def sentence(cost: Row) -> str:
    """Return an expected cost in words."""
    if cost["unpriced"]:
        names = ", ".join(cost["unpriced"])
        return f"no cost is expected: {names} has no price, and prices.json may give one"
    missing = ", ".join(cost["uncounted"])
    missing = missing and f"; not asked on that tick and not counted: {missing}"
    if cost["tick_usd"] is None:
        return f"no cost can be estimated{missing}"
    tick, day, earned = figures(cost)
    closes = f"a day of {cost['closes']:,} closes {day} USD, " if cost["closes"] else ""
    return (
        f"a tick is expected to cost {tick} USD, {closes}the {EARNED_TICKS:,} ticks that "
        f"agents.influence earned asks for {earned} USD{missing}"
    )


def cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return what modes are expected to cost as the lines of a table, its titles first."""
    titles = "mode", "vendor", "a tick", f"{rows[0]['closes']:,} closes", f"{EARNED_TICKS:,} ticks"
    return [titles, *((row["mode"], row["vendor"], *figures(row)) for row in rows)]


# --- details --------------------------------------------------------------------------------------


def _share(agents: AgentSettings, request: Request) -> float:
    """Return on which share of ticks a call is made."""
    share = 1.0
    if agents.call_policy == "pivotal":
        share = PIVOTAL + (1.0 - PIVOTAL) * agents.pivotal_sample
    if request.role.kind == "gate" and agents.gate_call == "openings":
        return PIVOTAL
    if request.round > 1 and agents.rebuts():
        share = max(PIVOTAL, REBUTTAL * share)
    again = agents.looks_again() and request.role.kind in LOOK_AGAIN
    return share * (1.0 + SECOND_LOOK) if again else share


def _context(tick: TickRecord | ShippedTick) -> DebateContext:
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
            if one.id and one.value is not None
        },
        memory=tick.memory,
        nonce="0" * 16,
        pivotal=True,
    )
