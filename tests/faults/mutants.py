"""Every planted fault: what makes the promises hold, taken out one piece at a time.

`python -m tests.faults.mutate` plants each of them alone in a copy of the program; the tests that
it names must then fail. A cheap test sees that no row rots: each text is in its file exactly once,
each test is there. Whoever adds a safeguard adds its row.
"""

from __future__ import annotations

from typing import Final

from tests.faults.planted_debate import DEBATE
from tests.faults.planted_pages import PAGES
from tests.faults.planted_start import START
from tests.faults.planted_storage import STORAGE
from tests.faults.planted_trading import TRADING
from tests.faults.planting import Fault

FAULTS: Final[tuple[Fault, ...]] = (*STORAGE, *START, *DEBATE, *TRADING, *PAGES)
"""In the order of the page."""
