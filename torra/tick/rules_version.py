"""The version of the rules: of everything that makes other outputs of the same inputs of a tick.

Rules are the scores, the evidence, the prompts, the rules provider, the synthesis, the gate, the
brain, the risk checks and the paper bridge. A record carries the version that made it, and a tick
of another version is told, not run again (`torra replay --journal`).

Whoever changes what comes of a tick adds a row here. tests/tick/test_rules_version.py fails when
the outcomes of its fixed ticks change without one.
"""

from __future__ import annotations

from typing import Final

RULES: Final = {
    1: "the rules of the first records that carry a version",
    2: "what closes together on an instance debates on the state before that close",
    3: "the record score counts the record low beside the record high",
    4: "a headline is scored by Torra's own list of words",
    5: "conviction hears every opinion: which way its own words push, for or against an opening",
    6: "outside numbers and the spread are evidence, and a fundamental analyst may be seated",
    7: "what a company reports, what its price pays for it, companions and order flow are evidence",
    8: "TA-Lib computes the recursive indicators: their last digits differ, no compared score does",
    9: "an opening is smaller while models fail: who abstains is not heard, and none is heard then",
    10: "no side costs less than the other one, and a swarm's officer counts from the first tick",
    11: "ADX and DI count equal moves as equal, the spread's limit is exact, changes outlive holes",
    12: "what a headline says after 'as' has no tone; a stored report has its reasoning",
}
"""By number, what each version changed, in one line."""

RULES_VERSION: Final = max(RULES)
