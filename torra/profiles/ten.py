"""The ten settings that matter most to a trader, each in plain words.

Chosen by what moves trades and money (docs/editing.md has the figures): both thresholds and the
widest spread decide how many trades there are; the risk of a trade, the largest position, the loss
cap of a day and the number of positions decide what they may cost; then who sends orders, whether
agents count, and what models may cost. The other settings follow by section.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agents.features import rows_of


@dataclass(frozen=True, slots=True)
class MainSetting:
    """One of the ten: its name, what a trader calls it, and what it does.

    `share` says that it is a percentage of the capital, `dead` why trying it on stored bars shows
    no difference, "" where it may.
    """

    name: str
    title: str
    says: str
    unit: str = ""
    share: bool = False
    dead: str = ""


TEN: Final = tuple(
    MainSetting(
        row["name"], row["title"], row["says"], row["unit"], row["share"] == "yes", row["dead"]
    )
    for row in rows_of(Path(__file__).with_name("ten.csv"))
)

TITLES: Final = {setting.name: setting.title for setting in TEN}


def called(name: str) -> str:
    """Return what a trader calls a setting: one of the ten by its title, else its section and it.

    risk.cooldown_bars is "Risk: cooldown bars".
    """
    if name in TITLES:
        return TITLES[name]
    section, _, rest = name.partition(".")
    words = (part.replace("_", " ").replace(".", " ") for part in (section, rest) if part)
    text = ": ".join(words)
    return text[:1].upper() + text[1:]
