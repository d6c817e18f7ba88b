"""The files of the drop folder, byte for byte, and what becomes of the signals that they carry.

One desk trades the sample through an Expert Advisor from its first order on. Another one opens,
moves a stop, closes by hand and is refused. Every file is shown when it first lies there, with a
line for each field, so that the bytes are those of the text without its line ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.faults.sending_desk import SendingDesk
from tests.golden.exact import as_json, rows, with_machine
from tests.worlds import hands

CLOSES: Final = 4


class Watch:
    """The texts of a channel's files, in the order in which they came."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = set[str]()
        self.texts: list[str] = []

    def look(self, moment: str) -> None:
        """Note the files that came since the last look."""
        for name, content in sorted(self._new()):
            self.names.add(name)
            fields = content.decode("ascii").replace(',"', ',\n"').rstrip("\n")
            self.texts.append(f"== {moment} {name} ({len(content)} bytes)\n{fields}\n")

    def _new(self) -> Iterator[tuple[str, bytes]]:
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            if path.is_file() and name not in self.names:
                yield name, path.read_bytes()


def make(folder: Path) -> dict[str, str]:
    """Return the files of both desks and the rows of their signals."""
    (market := folder / "market").mkdir()
    texts: dict[str, str] = {}
    for name, watch, home in (_ticks(folder / "desk"), _by_hand(market)):
        texts[f"{name}.txt"] = "\n".join(watch.texts)
        stored = {table: rows(home, table) for table in ("signals", "signal_events")}
        texts[f"{name}.json"] = as_json(stored)
    return with_machine(texts)


def _ticks(home: Path) -> tuple[str, Watch, Path]:
    home.mkdir()
    desk = SendingDesk(home)
    watch = Watch(desk.folder)
    for _ in range(CLOSES):
        desk.step()
        watch.look(f"{desk.clock.now():%d %H:%M:%S} sent")
        desk.live()
        watch.look(f"{desk.clock.now():%d %H:%M:%S} answered")
    desk.close()
    return "ticks", watch, home


def _by_hand(home: Path) -> tuple[str, Watch, Path]:
    market = hands.Market(home)
    watch = Watch(market.stage.folder)

    def live(moment: str) -> None:
        for second in range(9):
            market.look()
            watch.look(f"{moment}, second {second + 1}")

    market.open()
    live("opened")
    hands.nudge(market.hand, "EURUSD", 1.1, 0.5)
    live("stop moved")
    market.close()
    live("closed")
    market.open(lots=5000.0)
    live("too large")
    market.courier.close()
    market.database.close()
    return "by_hand", watch, home
