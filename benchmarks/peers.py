"""What one decision costs in other programs, and where Torra's figure of the same stands.

Measured 2026-11-21 on 2 cores with Python 3.11.7, the model replaced by a local server of fixed
latency; their figures are not measured again. A cell is text; Torra's is a figure of a part.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MEASURED: Final = "2026-11-21"

PROGRAMS: Final = (
    "TradingAgents 0.3.0, default",
    "its cheapest setting",
    "ai-hedge-fund 2.2.0, example",
    "its 5-persona fund",
)


class Peer(NamedTuple):
    """A row of the comparison: what, the four programs' cells, and Torra's figures, (part, figure).

    With two figures the cell shows both. `values` are the cells as numbers, for the picture.
    """

    what: str
    cells: tuple[str, str, str, str]
    figures: tuple[tuple[str, str], ...]
    values: tuple[float, ...] = ()


PEERS: Final = (
    Peer("LLM calls", ("17", "12", "3", "5"), (("debate", "calls"),), (17, 12, 3, 5)),
    Peer("longest chain of calls", ("17", "12", "3", "5"), (("debate", "chain"),)),
    Peer(
        "most calls in flight; all of a stage at once",
        ("1", "1", "1", "1"),
        (("debate", "together"), ("debate", "stages")),
    ),
    Peer(
        "wall at 1.0 s per call",
        ("19.9 s", "12.6 s", "3.12 s", "5.22 s"),
        (("debate", "budget_s"),),
        (19.9, 12.6, 3.12, 5.22),
    ),
    Peer(
        "wall at 0 s per call",
        ("2,710 ms", "570 ms", "88 ms", "181 ms"),
        (("debate", "zero_ms"),),
        (2710, 570, 88, 181),
    ),
    Peer(
        "CPU outside the LLM",
        ("530 ms", "540 ms", "83 ms", "175 ms"),
        (("debate", "zero_cpu_ms"),),
        (530, 540, 83, 175),
    ),
    Peer(
        "prompt characters",
        ("226,691", "133,218", "13,864", "23,632"),
        (("debate", "characters"),),
        (226_691, 133_218, 13_864, 23_632),
    ),
    Peer(
        "peak RSS",
        ("189 MB", "189 MB", "148 MB", "156 MB"),
        (("process", "peak_mb"),),
        (189, 189, 148, 156),
    ),
    Peer(
        "import and construct",
        ("1.86 s", "1.86 s", "1.48 s", "1.48 s"),
        (("process", "ready_s"),),
        (1.86, 1.86, 1.48, 1.48),
    ),
    Peer("installed packages", ("110", "", "93", ""), (("desk", "packages"),)),
    Peer("installed size", ("560 MB", "", "647 MB", ""), (("desk", "installed_mb"),)),
    Peer(
        "a 60 s hang of one call: after the deadline; the result is kept",
        ("waits 60.7 s; for ever if it hangs for ever", "", "60.6 to 120.7 s", ""),
        (("faults", "over_s"), ("faults", "hang_kept")),
    ),
    Peer(
        "three 500s in one call: that agent is skipped",
        ("the decision raises", "", "that persona abstains", ""),
        (("faults", "thrice_skipped"),),
    ),
    Peer(
        "every call fails: equals L1 bit for bit",
        ("raises", "", "sells to flat", ""),
        (("faults", "dead_equal"),),
    ),
    Peer(
        "wrong symbol in every answer: refused",
        ("accepted", "", "accepted", ""),
        (("faults", "wrong_refused"),),
    ),
    Peer(
        "broken JSON at the last step: refused, recorded",
        ('silent "Hold"', "", "abstains", ""),
        (("faults", "broken_recorded"),),
    ),
)
