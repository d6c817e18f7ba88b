"""docs/orders.md alone is enough: composite, consensus, levels and lots, without Torra's formulas.

What is computed here is what the page says, in exact fractions. Nothing of torra.verdict is used
for it; two tests ask it at the edges of the page's rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any, Final

from agent_config import EXPERTS, tabled_trust
from tests.worlds import desks
from tests.worlds.rule_outcomes import PROFILES, Steady
from torra.clock import parse
from torra.config import ROOT, Profile, validate
from torra.replay.rerun import trial_tick
from torra.store import replay_queries
from torra.store.connection import TickKey

PAGE: Final = (ROOT / "docs" / "orders.md").read_text("utf-8")
MINUTES: Final = {"M15": 15, "H1": 60}
TICKS: Final = 10
CLOSES: Final = 80

Levels = tuple[Fraction, Fraction, Fraction]


def plain(number: float) -> Fraction:
    """Return the decimal that a number is written as."""
    return Fraction(Decimal(repr(float(number))))


def rounded(number: Fraction) -> Decimal:
    """Return it with 8 decimals."""
    quotient = Decimal(number.numerator) / Decimal(number.denominator)
    return quotient.quantize(Decimal("1e-8"), ROUND_HALF_EVEN)


def mean(pairs: list[tuple[float, float]]) -> Decimal:
    """Return sum(w x value) / sum(w) of weights and values; 0 without any."""
    if not pairs:
        return Decimal(0)
    total = sum((plain(weight) * plain(value) for weight, value in pairs), Fraction(0))
    return rounded(total / sum((plain(weight) for weight, _ in pairs), Fraction(0)))


def composite(record: Mapping[str, Any]) -> Decimal:
    scores = {name: told["score"] for name, told in record["scores"].items()}
    scores["ath"] = record["ath"]
    return mean([(weight, scores[name]) for name, weight in record["weights"].items()])


def fresh(timeframe: str, close: str, as_of: str) -> bool:
    closed, now = datetime.fromisoformat(close), datetime.fromisoformat(as_of)
    return closed <= now <= closed + 2 * timedelta(minutes=MINUTES[timeframe])


def consensus(record: Mapping[str, Any]) -> Decimal:
    told = record["composites"].items()
    heard = [one for name, one in told if fresh(name, one["close_time"], record["as_of"])]
    return mean([(one["weight"], one["composite"]) for one in heard if one["weight"]])


def levels(side: str, close: float, atr: float, tick: float) -> Levels:
    """Return entry, stop and target."""
    size = plain(tick)
    distance, entry = round(2 * plain(atr) / size), round(plain(close) / size)
    way = 1 if side == "BUY" else -1
    return entry * size, (entry - way * distance) * size, (entry + way * 2 * distance) * size


def lots(
    entry: Fraction, stop: Fraction, share: float, spec: Mapping[str, Any], risk: Mapping[str, Any]
) -> tuple[int, int, int]:
    """Return the three floors, in steps."""
    capital, step = plain(risk["capital"]), plain(spec["lot_step"])
    worth = plain(spec["tick_value"]) / plain(spec["tick_size"])
    left = plain(share)
    at_risk = capital * plain(risk["risk_per_trade_pct"]) / 100 * left
    most = capital * plain(risk["max_notional_pct"]) / 100 * left
    return (
        floor(at_risk / (abs(entry - stop) * worth * step)),
        floor(most / (entry * worth * step)),
        floor(plain(spec["lot_max"]) * left / step),
    )


def whole(steps: tuple[int, int, int], spec: Mapping[str, Any]) -> Fraction:
    found = min(steps) * plain(spec["lot_step"])
    return found if found >= plain(spec["lot_min"]) else Fraction(0)


# --- ticks of a desk ------------------------------------------------------------------------------


def records(folder: Path, profile: Profile) -> Iterator[dict[str, Any]]:
    """Yield the stored ticks of a desk that trades often."""
    desk = desks.open_desk(folder, (desks.BTC, desks.EUR), profile=profile, provider=Steady())
    desks.open_for_work(desk)
    for _ in range(CLOSES):
        desks.step(desk)
    for instance in desk.setups:
        for key in replay_queries.journalled(desk.database, instance):
            record, _ = replay_queries.journal_row(desk.database, key)
            place = TickKey(instance, record["timeframe"], parse(record["bar_time"]))
            told = desk.database.tick(place) or {}
            yield {**record, "deliberation": told["deliberation"]}
    desk.close()


def test_what_a_desk_recorded_is_computed_again(tmp_path: Path) -> None:
    changes = {**PROFILES["budget"], "risk": {"capital": 100_000.0, "exposure_cap_pct": 900.0}}
    profile = validate(Profile, changes, "a test")
    opened, sides = 0, set()
    ticks = list(records(tmp_path, profile))
    for record in ticks:
        assert composite(record) == rounded(plain(record["composite"])), record["bar_time"]
        assert consensus(record) == rounded(plain(record["consensus"])), record["bar_time"]
        for name, one in record["composites"].items():
            assert one["fresh"] is fresh(name, one["close_time"], record["as_of"])
        for signal in record["signals"]:
            if signal["kind"] != "open":
                continue
            spec = profile.symbol(record["symbol"]).model_dump()
            found = levels(signal["side"], record["close"], record["atr"], spec["tick_size"])
            assert [float(one) for one in found] == [
                signal["entry"], signal["stop"], signal["target"]
            ]  # fmt: skip
            panel = record["deliberation"]["panel"][signal["side"].lower()]
            share = record["gate"]["multiplier"] * panel["conviction"]
            steps = lots(found[0], found[1], share, spec, profile.risk.model_dump())
            assert float(whole(steps, spec)) == signal["lots"] > 0
            opened += 1
            sides.add(signal["side"])
    assert len(ticks) > TICKS and opened >= TICKS and sides == {"BUY", "SELL"}


# --- the example of the page ----------------------------------------------------------------------


def example() -> str:
    return PAGE[PAGE.index("## An example") :]


def table(head: str) -> dict[str, list[str]]:
    """Return the rows of the example's table with this head, by their first cell."""
    text = example()
    lines = text[text.index(head) :].splitlines()[2:]
    rows = [line.strip("| ").split(" | ") for line in lines[: lines.index("")]]
    return {row[0]: row[1:] for row in rows}


def bold() -> list[str]:
    return re.findall(r"\*\*([\d.]+)\*\*", example())


def test_the_example_of_the_page_is_right() -> None:
    scores = table("| score | value | weight |")
    own = mean([(float(weight), float(value)) for value, weight in scores.values()])
    frames = table("| timeframe | composite | close | weight |")
    both = mean([(float(weight), float(value)) for value, _, weight in frames.values()])
    told = {name: float(value[0]) for name, value in table("| number | value |").items()}
    entry, stop, target = levels("BUY", told["close"], told["atr"], told["tick_size"])
    share = told["gate.multiplier"] * told["conviction"]
    steps = lots(entry, stop, share, told, told)
    found = (own, both, *map(float, (entry, stop, target)), float(whole(steps, told)))
    assert bold() == [str(one) for one in found]
    assert f"m = 0.74 x 0.86936502 = {share:.10f}" in example()
    for name, count in zip(("risk", "notional", "largest"), steps, strict=True):
        assert re.search(rf"{name} = floor\([^=]*\) = {count}\b", example()), name
    assert float(whole(steps, told) * entry) == 3910.4994


def test_the_example_of_the_page_is_that_of_the_tick(tmp_path: Path) -> None:
    record = trial_tick.run(tmp_path / "home", "BTCUSD", "M15", as_of="2021-11-08T03:00:00Z")
    signal = record["signal"]
    names = ("entry", "stop", "target", "lots")
    told = [record["composite"], record["consensus"], *(signal[name] for name in names)]
    assert bold() == [str(one) for one in told]
    for name, (value, weight) in table("| score | value | weight |").items():
        score = record["ath"] if name == "ath" else record["scores"][name]["score"]
        assert (float(value), float(weight)) == (score, record["weights"][name])
    numbers = {name: float(cells[0]) for name, cells in table("| number | value |").items()}
    assert (numbers["close"], numbers["atr"]) == (record["close"], record["atr"])
    assert numbers["gate.multiplier"] == record["gate"]["multiplier"]
    assert numbers["conviction"] == record["agreement"]["BUY"]["conviction"]


# --- experts --------------------------------------------------------------------------------------


def factors_of_the_page() -> dict[tuple[str, str], list[Fraction]]:
    """Return the factors that docs/agents.md has, by table and row."""
    text = (ROOT / "docs" / "agents.md").read_text("utf-8")
    part = text[text.index("## Whose word counts how much in a swarm") :]
    rows = re.findall(r"^\| (HIERARCHY|TRUST) \| (\w+) \| (.+) \|$", part, re.MULTILINE)
    return {
        (name, row): [Fraction(Decimal(cell)) for cell in cells.split(" | ")]
        for name, row, cells in rows
    }


def test_the_weight_of_an_expert_is_that_of_the_tables() -> None:
    page = factors_of_the_page()
    regimes = [row for name, row in page if name == "TRUST"]
    for regime in regimes:
        for row, timeframes in (("short", ("M1", "M15", "H1")), ("long", ("H4", "D1"))):
            pairs = zip(page["HIERARCHY", row], page["TRUST", regime], strict=True)
            found = [rounded(max(Fraction(1, 4), one * other)) for one, other in pairs]
            for timeframe in timeframes:
                weights = tabled_trust(timeframe, regime)
                assert found == [rounded(plain(weights[name])) for name in EXPERTS]
    assert len(regimes) == 5 and len(page) == 7
