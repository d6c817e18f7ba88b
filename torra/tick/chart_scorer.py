"""score_chart(): the single-model scorer that the debate replaced, kept as its fallback.

One call with the interpretive prompt. When the model does not answer, ModelUnavailable passes
through and L1 stands. What the answer may move is bounded by the framework.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agents.contracts import DebateContext, Prompt
from scoring_rubric import build_interpretive_prompt


def score_chart(
    context: DebateContext, ask: Callable[[Prompt], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return one model's four scores {score, note}; raises ModelUnavailable when it gives none."""
    return ask(build_interpretive_prompt(context))
