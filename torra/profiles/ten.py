"""The ten settings that matter most to a trader, each in plain words.

Chosen by what moves trades and money (docs/editing.md has the figures): both thresholds and the
widest spread decide how many trades there are; the risk of a trade, the largest position, the loss
cap of a day and the number of positions decide what they may cost; then who sends orders, whether
agents count, and what models may cost. The other settings follow by section.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


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


NOT_ASKED: Final = "Stored bars cannot show it: a try asks no agent."
ONE_SYMBOL: Final = "Stored bars cannot show it: a try runs each symbol by itself."

TEN: Final = (
    MainSetting(
        "thresholds.buy",
        "Buy from",
        "A buy opens when all timeframes together (the consensus) reach this score. The lower, "
        "the more trades.",
        "of 1",
    ),
    MainSetting(
        "thresholds.sell",
        "Sell from",
        "A sell opens when they fall to minus this score. The lower, the more trades.",
        "of 1",
    ),
    MainSetting(
        "gate.max_spread_atr",
        "Widest spread",
        "Nothing opens while the spread is a larger share of the usual range of a bar (ATR) than "
        "this. The higher, the more trades.",
        "of ATR",
    ),
    MainSetting(
        "risk.risk_per_trade_pct",
        "Risk per trade",
        "What one trade may lose at its stop. It decides the size.",
        "% of capital",
        share=True,
    ),
    MainSetting(
        "risk.max_notional_pct",
        "Largest position",
        "What one position may be worth. On currencies this often decides the size, and not the "
        "risk.",
        "% of capital",
        share=True,
    ),
    MainSetting(
        "risk.daily_loss_cap_pct",
        "Loss cap of a day",
        "After losing this much since midnight (UTC) the desk opens nothing more that day.",
        "% of capital",
        share=True,
    ),
    MainSetting(
        "risk.max_positions",
        "Positions at once",
        "How many positions the whole desk may hold.",
        "positions",
        dead=ONE_SYMBOL,
    ),
    MainSetting(
        "execution",
        "Who sends orders",
        "auto: the desk by itself. approve: the desk, after your yes. off: nobody.",
    ),
    MainSetting(
        "agents.influence",
        "Do agents count",
        "full: what they say counts. shadow: it is only recorded. earned: it is recorded until "
        "they have proved their worth.",
        dead=NOT_ASKED,
    ),
    MainSetting(
        "agents.max_api_cost_per_hour",
        "Most that models cost",
        "What models may cost in any hour. Without a paid model it costs nothing.",
        "USD an hour",
        dead=NOT_ASKED,
    ),
)

TITLES: Final = {one.name: one.title for one in TEN}


def called(name: str) -> str:
    """Return what a trader calls a setting: one of the ten by its title, else its section and it.

    risk.cooldown_bars is "Risk: cooldown bars".
    """
    if name in TITLES:
        return TITLES[name]
    section, _, rest = name.partition(".")
    words = (part.replace("_", " ").replace(".", " ") for part in (section, rest) if part)
    told = ": ".join(words)
    return told[:1].upper() + told[1:]
