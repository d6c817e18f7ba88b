"""What becomes of a decision when its models fail: one tick for each fault, through the real SDK.

The faults are those that other programs were measured under: a call that takes a minute, three
errors in one call, errors in every call, another symbol in every answer, a last answer cut off.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agent_config import AgentSettings
from agents.contracts import VECTORS
from benchmarks.rows import ALWAYS, Part, Row, at_most, ready
from tests.doubles import vendor_line
from tests.doubles.vendor_server import ANTHROPIC, HONEST, Late, Reply, Status, VendorServer
from tests.worlds import vendor_desk
from tests.worlds.vendor_desk import Ticked

HANG: Final = 60.0
"""Seconds that the one call takes."""

ONE_OF_EACH: Final = ("technical", "bull_researcher", "risk_gate")
"""An agent of every stage of the budget desk, the last one last."""

TRIAL_DEADLINE: Final = 3.0
OTHER: Final = "XAUUSD"
OVER: Final = 0.5
"""Seconds that a tick may end after its deadline."""


def tick(script: Mapping[str, Any], settings: AgentSettings) -> Ticked:
    """Return what a tick left behind whose vendor plays the script."""
    with (
        VendorServer(script) as server,
        vendor_line.Line(vendor_line.environment(server), settings) as line,
        tempfile.TemporaryDirectory() as folder,
    ):
        found = vendor_desk.tick(Path(folder) / "home", line.provider, settings)
    vendor_desk.check_stored(found)
    return found


def others_kept(found: Ticked, out: str) -> bool:
    """Return whether the tick went on without one agent and kept what all others said."""
    said = {call["role"] for call in found.calls if call["status"] == "ok"}
    heard = found.record["source_type"] == "AGENT_PARTIAL"
    return heard and set(found.failures) == {out} and len(said) == 3 and out not in said


def equals_l1(found: Ticked) -> bool:
    """Return whether scores and composite are those of L1 to the last bit."""
    record = found.record
    pairs = [(found.row[name], record["l1"][name]) for name in VECTORS]
    pairs.append((record["composite"], record["l1_composite"]))
    return all(float(one).hex() == float(other).hex() for one, other in pairs)


def refused(calls: Sequence[Mapping[str, Any]], status: str) -> bool:
    """Return whether there are calls and every one is on record with this status."""
    return bool(calls) and all(call["status"] == status for call in calls)


def measure(trial: bool) -> dict[str, float]:
    """Return for each fault whether what should be was so, and the longest tick under a hang."""
    changes = {"timeout_seconds": TRIAL_DEADLINE} if trial else {}
    settings = vendor_line.agents(ANTHROPIC, **changes)
    hung = {role: tick({role: Late(HANG)}, settings) for role in ONE_OF_EACH}
    thrice = {role: tick({role: [*[Status(500)] * 3, HONEST]}, settings) for role in ONE_OF_EACH}
    dead = tick({"*": Status(500)}, settings)
    wrong = tick({"*": Reply(changes={"symbol": OTHER})}, settings)
    last = ONE_OF_EACH[-1]
    broken = tick({last: Reply(text='{"symbol": "EURUSD", ')}, settings)
    longest = max(one.elapsed for one in hung.values())
    return {
        "hang_s": longest,
        "over_s": longest - settings.timeout_seconds,
        "hang_kept": float(all(others_kept(one, role) for role, one in hung.items())),
        "thrice_skipped": float(all(others_kept(one, role) for role, one in thrice.items())),
        "dead_equal": float(equals_l1(dead) and dead.record["source_type"] == "L1_ONLY"),
        "wrong_refused": float(refused(wrong.calls, "wrong_symbol") and equals_l1(wrong)),
        "broken_recorded": float(others_kept(broken, last) and refused(broken.of(last), "garbage")),
    }


PART: Final = Part(
    "faults",
    "A decision whose models fail",
    ready(measure),
    (
        Row("hang_s", "a call hangs for 60 s: the tick takes, wall", "{:.2f} s"),
        Row("over_s", "of it after the deadline", "{:+.2f} s", at_most(OVER)),
        Row("hang_kept", "and what all others said is kept", target=ALWAYS),
        Row("thrice_skipped", "three 500s in one call: that agent is skipped", target=ALWAYS),
        Row("dead_equal", "every call fails: equal to L1 bit for bit", target=ALWAYS),
        Row("wrong_refused", "another symbol in every answer: all refused", target=ALWAYS),
        Row("broken_recorded", "broken JSON at the last step: refused, recorded", target=ALWAYS),
    ),
    "With the deadline of the default profile, 15 s; the longest of three ticks, each with an "
    "agent of another stage hanging. A stage has its own share of the deadline, so that one silent "
    "agent costs less than all of it. Three errors, likewise, at each stage.",
)

if __name__ == "__main__":
    print(measure(trial=True))
