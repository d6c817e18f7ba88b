"""A committee's job that tells two events and then does as its parameters say, in its process."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.worlds import cards, desks
from torra.committee.events import CommitteeStream
from torra.committee.job import COMMITTEE
from torra.jobs.kinds import JobRequest, JobResult, Parameters, Tell, key_of


def work(home: Path, parameters: Parameters, tell: Tell) -> JobResult:
    with closing(desks.open_database(home)) as database:
        stream = CommitteeStream(database, key_of(COMMITTEE, parameters))
        for name in ("fundamental", "sentiment"):
            stream.tell("agent_start", agent=name, round=1)
        tell("works")
        if parameters["how"] == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        while parameters["how"] == "hang" and not (home / "go on").exists():
            time.sleep(0.02)
        stream.decision(cards.stored(database))
    return JobResult("It is decided.", "a card")


def check(_: Path, asked: Parameters) -> JobRequest:
    told: Any = {"symbol": "EXAMPLE", "how": "hang", **asked}
    return JobRequest(told, told, "EXAMPLE")


SCRIPTED = replace(COMMITTEE, check=check, work=f"{__name__}:work")
