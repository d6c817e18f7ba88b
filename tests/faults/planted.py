"""Every planted fault: what makes the promises hold, taken out one piece at a time.

`make mutants` plants each of them alone in a copy of the program; the tests that it names must then
fail. A cheap test sees that no row rots: each change fits its place, each test is there. Whoever
adds a safeguard adds its row, unless a row has the same guard out already.
"""

from __future__ import annotations

from typing import Final

from tests.faults.planted_ask import ASK
from tests.faults.planted_committee import COMMITTEE
from tests.faults.planted_debate import DEBATE
from tests.faults.planted_doors import DOORS
from tests.faults.planted_firm import FIRM
from tests.faults.planted_hosted import HOSTED
from tests.faults.planted_lessons import LESSONS
from tests.faults.planted_radar import RADAR
from tests.faults.planted_storage import STORAGE
from tests.faults.planted_swarm import SWARM
from tests.faults.planted_texts import TEXTS
from tests.faults.planted_tools import TOOLS
from tests.faults.planted_trading import TRADING
from tests.faults.planting import Fault, faults

FAULTS: Final[tuple[Fault, ...]] = (
    *faults(
        STORAGE,
        DEBATE,
        HOSTED,
        LESSONS,
        FIRM,
        SWARM,
        TRADING,
        TEXTS,
        DOORS,
        TOOLS,
        RADAR,
        ASK,
        COMMITTEE,
    ),
)
"""In the order of the page."""
