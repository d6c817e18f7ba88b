"""The files of the drop folder, byte for byte, and what becomes of the signals that they carry.

One desk trades the sample through an Expert Advisor from its first order on. Another one opens,
moves a stop, closes by hand and is refused. A third one sells, closes as a tick does, and is
flattened. Every file is shown when it first lies there, and DESK whenever it is another one, with a
line for each field, so that the bytes are those of the text without its line ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.faults.sending_desk import SendingDesk
from tests.golden.exact import as_json, rows, with_machine
from tests.worlds import hands
from torra.trading import hand_close
from torra.verdict.risk_engine import Levels, SignalDraft

CLOSES: Final = 4

DESK: Final = "state/torra.json"
"""The file that the desk writes again and again; the Advisor's own ones are shown once."""

SHORT: Final = SignalDraft("open", "SELL", 0.1, Levels(1.1, 1.11, 1.08, 0.005))


class Watch:
    """The texts of a channel's files, in the order in which they came."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.contents: dict[str, bytes] = {}
        self.texts: list[str] = []

    def look(self, moment: str) -> None:
        """Note the files that came since the last look."""
        for name, content in sorted(self._new()):
            self.contents[name] = content
            fields = content.decode("ascii").replace(',"', ',\n"').rstrip("\n")
            self.texts.append(f"== {moment} {name} ({len(content)} bytes)\n{fields}\n")

    def _new(self) -> Iterator[tuple[str, bytes]]:
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            if not path.is_file() or (name in self.contents and name != DESK):
                continue
            if (content := path.read_bytes()) != self.contents.get(name):
                yield name, content


class Scene:
    """A market that a test moves, and the watch of its channel."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self.home = home
        self.market = hands.Market(home)
        self.watch = Watch(self.market.stage.folder)

    def live(self, moment: str) -> None:
        """Live through nine seconds, and note what came in each."""
        for second in range(9):
            self.market.look()
            self.watch.look(f"{moment}, second {second + 1}")

    def close(self) -> None:
        """Close the desk and its database."""
        self.market.courier.close()
        self.market.database.close()


def make(folder: Path) -> dict[str, str]:
    """Return the files of the desks and the rows of their signals."""
    texts: dict[str, str] = {}
    scenes = (_ticks(folder / "desk"), _by_hand(folder / "market"), _both_sides(folder / "sides"))
    for name, watch, home in scenes:
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
    scene = Scene(home)
    market = scene.market
    market.open()
    scene.live("opened")
    hands.nudge(market.hand, "EURUSD", 1.1, 0.5)
    scene.live("stop moved")
    market.close()
    scene.live("closed")
    market.open(lots=5000.0)
    scene.live("too large")
    scene.close()
    return "by_hand", scene.watch, home


def _both_sides(home: Path) -> tuple[str, Watch, Path]:
    scene = Scene(home)
    market = scene.market
    opening = market.decide(SHORT)
    scene.live("sold")
    market.decide(SignalDraft("close", "BUY", SHORT.lots, closes=opening))
    scene.live("closed by a tick")
    market.open()
    scene.live("bought")
    hand_close.flatten(market.hand, hands.SOMEBODY)
    scene.live("flattened")
    scene.close()
    return "both_sides", scene.watch, home
