"""The promotion rule, by which agents earn influence: a pure state machine, fixed before its data.

A profile with `agents.influence` earned begins in shadow: its agents are asked and recorded, and L1
alone decides. The rule looks at them at fixed counts of pooled ticks and never between, so nobody
can wait for a lucky moment. torra.evaluation.promotion_evidence makes the evidence of a look.

    promoted   at a look, on all ticks so far, when BOTH hold:
               - information: the residual IC of the final adjustment is above 0 with its whole
                 interval, at a level that shares ALPHA among looks and settings (`level`);
               - flips: on ticks where the verdict with agents differs from that of L1, the mean net
                 difference beats the sign-flipped placebo and BEATEN of the shuffled ones.
    demoted    at a later look, on the ticks since the look before (which did not help to promote),
               when BOTH fail: the 95 % interval of the residual IC is not above 0, and the flips do
               not beat their placebos.

A count belongs to one setting of the desk (its fingerprint: prompts, models, settings that matter),
under any name and on any instances; a changed setting begins a count of its own, at 0. Agents that
know nothing are promoted with a probability of at most ALPHA, over all looks and all settings of a
database that come to a look. The first condition alone ensures that, by Bonferroni over looks and
by 1 / (t (t + 1)) over settings, which sums to 1.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

ALPHA: Final = 0.05
"""Probability, two-sided, with which agents that know nothing may ever be promoted: for all
profiles of a database together.
"""

LOOKS: Final = (3_000, 6_000, 12_000, 24_000)
"""Pooled ticks at which agents may be promoted. The first is the stop rule of the method and the
number at which an IC of 0.05 is found with a power of 80 % (3,140 ticks); the last finds 0.02.
"""

LATER: Final = 24_000
"""Pooled ticks from one look to the next after the last of LOOKS; they can only demote."""

DEMOTION_LEVEL: Final = 0.95
"""Level of the two-sided interval that promoted agents have to keep above 0."""

BEATEN: Final = 0.95
"""Share of the shuffled placebos that the flips must beat."""

LEAST_BLOCKS: Final = 20
"""Least blocks of days for an interval; fewer show nothing."""

LEAST_FLIPS: Final = 20
"""Least discordant ticks for their mean; fewer show nothing."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The numbers of the rule; the tests of its error rates run it with shorter looks."""

    looks: tuple[int, ...] = LOOKS
    later: int = LATER
    alpha: float = ALPHA
    demotion_level: float = DEMOTION_LEVEL
    beaten: float = BEATEN
    least_blocks: int = LEAST_BLOCKS
    least_flips: int = LEAST_FLIPS

    def count(self, number: int) -> int:
        """Return the pooled ticks at which look `number` (from 1) is taken."""
        extra = number - len(self.looks)
        return self.looks[number - 1] if extra <= 0 else self.looks[-1] + extra * self.later

    def level(self, trial: int) -> float:
        """Return the level of the interval at a look of the `trial`-th setting (from 1)."""
        # shares of alpha that sum to it, over all looks and over however many settings
        return 1.0 - self.alpha / (trial * (trial + 1)) / len(self.looks)


RULE: Final = Rule()


@dataclass(frozen=True, slots=True)
class PromotionStatus:
    """The state of a profile's agents: `look` is the number of looks, `reason` that of the last."""

    promoted: bool = False
    look: int = 0
    reason: str = "no look has been taken yet"


@dataclass(frozen=True, slots=True)
class InterimAnalysis:
    """A look that is due: its number, its pooled ticks [first, upto), and its level."""

    number: int
    first: int
    upto: int
    level: float


@dataclass(frozen=True, slots=True)
class PromotionEvidence:
    """The evidence of a look.

    `ic` is the residual IC with the interval [low, high] at the look's level, from so many `blocks`
    of days; `gain` the mean net difference of the `flips` discordant ticks, in ATR; `flipped` that
    of the adjustments with the other sign; `beats` the share of shuffled placebos with a smaller
    gain. None if there was too little to compute it.
    """

    ticks: int
    blocks: int
    ic: float | None
    low: float | None
    high: float | None
    flips: int
    gain: float | None
    flipped: float | None
    beats: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


def due(
    standing: PromotionStatus, ticks: int, trial: int = 1, rule: Rule = RULE
) -> InterimAnalysis | None:
    """Return the next look if `ticks` pooled ticks are enough for it.

    A look at agents that are not promoted takes all their ticks; at promoted ones, those since the
    look before. Agents that are not promoted by the last of the looks get no other.
    """
    number = standing.look + 1
    upto = rule.count(number)
    if ticks < upto or (not standing.promoted and number > len(rule.looks)):
        return None
    if standing.promoted:
        return InterimAnalysis(number, rule.count(standing.look), upto, rule.demotion_level)
    return InterimAnalysis(number, 0, upto, rule.level(trial))


def decide(
    standing: PromotionStatus, evidence: PromotionEvidence, rule: Rule = RULE
) -> PromotionStatus:
    """Return the standing of agents after the next look."""
    number = standing.look + 1
    informed, knows = _information(evidence, rule)
    paid, pays = _flips(evidence, rule)
    held = (informed or paid) if standing.promoted else (informed and paid)
    word = {
        (False, True): "promoted",
        (False, False): "stays in shadow",
        (True, True): "stays promoted",
        (True, False): "demoted",
    }[standing.promoted, held]
    return PromotionStatus(held, number, f"{word}: {knows}; {pays}")


def _information(seen: PromotionEvidence, rule: Rule) -> tuple[bool, str]:
    if seen.ic is None or seen.low is None or seen.high is None or seen.blocks < rule.least_blocks:
        return False, f"{seen.blocks} blocks of days are too few for the residual IC"
    held = seen.low > 0.0
    told = f"residual IC {seen.ic:+.3f}, interval {seen.low:+.3f} to {seen.high:+.3f}"
    return held, f"{told}, {'above' if held else 'not above'} 0"


def _flips(seen: PromotionEvidence, rule: Rule) -> tuple[bool, str]:
    gain, flipped, beats = seen.gain, seen.flipped, seen.beats
    if gain is None or flipped is None or beats is None or seen.flips < rule.least_flips:
        return False, f"{seen.flips} changed verdicts are too few to judge"
    held = gain > flipped and beats >= rule.beaten
    told = f"{seen.flips} changed verdicts gained {gain:+.3f} ATR each"
    other = f"{flipped:+.3f} with the other sign; more than {beats:.0%} of the shuffled placebos"
    return held, f"{told} ({other}), {'better' if held else 'not better'} than placebo"
