"""A person's hand on a desk in a test: what a close by hand needs to reach it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from instance_database import Database
from torra.config import Channel, DeskSettings, Instance, Profile
from torra.trading.by_hand import Person, Reach
from torra.trading.kill_switch import KillSwitch

SOMEBODY = Person("somebody", "127.0.0.1")


def hand_on(
    database: Database,
    instances: Sequence[Instance],
    now: Callable[[], datetime],
    *,
    profile: Profile | None = None,
    kill_switch: KillSwitch | None = None,
) -> Reach:
    """Return the reach of a person on a desk of these instances."""
    known = profile or Profile()
    channels = {item.channel: Channel(account=1001) for item in instances if item.bridge != "paper"}
    return Reach(
        Path(database.path).parent,
        database,
        DeskSettings(instances=tuple(instances), channels=channels),
        profile=lambda _: known,
        now=now,
        environment={},
        kill_switch=kill_switch or KillSwitch({}, database),
    )
