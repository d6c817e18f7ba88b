"""One closed trade reviewed at once, from outside the desk: for `torra lessons show`.

The desk may run meanwhile: both book in the same ledger, so the ceiling holds for both together.
Raises nothing; what keeps a trade from being reviewed is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from instance_database import Database
from torra.clock import System
from torra.config import Instance, load_profile
from torra.desk.memory.reviews import Paying, Reviewed, ReviewRequest, alone, refused, review_now
from torra.desk.wiring import open_models
from torra.errors import TorraError
from torra.lessons.lesson import Lesson

WARMING: Final = 8.0
"""Seconds that the loading of a vendor's SDK may take beside the answer."""

AHEAD: Final = timedelta(minutes=30)
"""Desk time that the clock of a sample may have run on since the desk last told it."""


class DeskTime(System):
    """Real time, but for a desk on the sample: that one lives in the time which it told last."""

    def __init__(self, database: Database, instance: Instance) -> None:
        told = database.desk_time() if instance.feed == "sample" else None
        self._told = None if told is None else told + AHEAD

    def now(self) -> datetime:
        """Return the desk's time."""
        return self._told or super().now()


def ask_now(
    home: Path,
    database: Database,
    instances: Iterable[Instance],
    lesson: Lesson,
    environment: Mapping[str, str],
) -> Reviewed:
    """Ask the model of a trade's profile about it and store what it says."""
    facts = lesson.facts
    instance = next((one for one in instances if one.id == facts.instance), None)
    if instance is None:
        return Reviewed(None, f"the desk names {facts.instance} no more, so no profile would pay")
    try:
        paying = Paying(instance.profile, load_profile(instance.profile, home).agents)
        models = open_models(home, database, environment, remember=False)
    except TorraError as error:
        return Reviewed(None, str(error))
    try:
        asking = ReviewRequest(database, models, DeskTime(database, instance))
        if not refused(lesson, paying, asking):
            # A cold SDK takes a second to import, which is not the model's.
            models.provider(alone(paying.agents))
            models.clients.ready(WARMING)
        return review_now(lesson, paying, asking)
    except TorraError as error:
        return Reviewed(None, str(error))
    finally:
        models.close()
