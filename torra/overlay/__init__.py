"""The overlay for another program's scorer: `Overlay.score_chart()` in place of its single model.

    from torra.overlay import Overlay

    overlay = Overlay("scorer_home", profile="default", clock="new_york+7")
    chart = overlay.score_chart("XAUUSD", "M15", bars, scores=l1)

docs/overlay.md says what goes in and what comes out.
"""

from torra.overlay.answer import Hosted
from torra.overlay.overlay import Overlay
from torra.overlay.request import NoScores

__all__ = ["Hosted", "NoScores", "Overlay"]
