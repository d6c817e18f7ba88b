"""A report with every kind of exhibit, as the evaluation of a replay makes them: made-up figures.

Equity and drawdown by arm, discordant ticks, contributions, calibration and states, over a seeded
walk; the same every time. `EXHIBITS` and `demo_document()`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import numpy as np

from torra.clock import parse
from torra.evaluation.exhibits import Exhibit, Plot, PlotLine
from torra.exhibits.documents import Document
from torra.exhibits.report import document

BEGIN = parse("2021-11-15T00:00:00Z")
END = parse("2021-12-31T00:00:00Z")
ARMS = (
    "L1 alone", "legacy single shot", "analysts only", "budget", "full", "placebo: shuffled",
    "placebo: sign-flipped", "placebo: random entries",
)  # fmt: skip
AGENTS = (
    "technical", "price action", "momentum", "fundamental", "news", "bull researcher",
    "bear researcher", "gate",
)  # fmt: skip
STATES = ("STRONG_BULLISH", "BULLISH", "NEUTRAL", "BEARISH", "STRONG_BEARISH")
FEW = (
    "The sample is too small to show anything: 31 discordant ticks, and it would take about 420 "
    "to find a difference of 0.1 R."
)


def line_of(
    name: str, points: Iterable[Any], low: Iterable[Any] = (), high: Iterable[Any] = ()
) -> PlotLine:
    """Return a line of a plot."""
    return PlotLine(name=name, points=points, low=low, high=high)


def plot_of(
    title: str, kind: str, lines: Iterable[PlotLine], x: str = "", y: str = "", **more: Any
) -> Plot:
    """Return a plot."""
    return Plot(title=title, kind=kind, lines=lines, x=x, y=y, **more)


def exhibit_of(
    name: str, title: str, columns: Iterable[str], rows: Iterable[Any], says: str, **more: Any
) -> Exhibit:
    """Return an exhibit."""
    return Exhibit(name=name, title=title, columns=columns, rows=rows, says=says, **more)


def walks(count=900):
    """Return (times, {arm: equity in R})."""
    chance = np.random.default_rng(7)
    times = [BEGIN + (END - BEGIN) * at / (count - 1) for at in range(count)]
    drift = dict(zip(ARMS, (0.012, 0.004, 0.02, 0.03, 0.034, 0.0, -0.02, -0.01), strict=True))
    return times, {arm: np.cumsum(chance.normal(drift[arm], 0.3, count)) for arm in ARMS}


def arms_table(equity):
    chance = np.random.default_rng(11)
    columns = (
        "arm", "trades", "hit rate, %", "expectancy, R", "low", "high", "return, %", "drawdown, R",
        "Sharpe", "deflated", "in market, %", "model cost, USD", "false signals, %",
    )  # fmt: skip
    rows = tuple(
        (
            arm, int(chance.integers(38, 240)), float(chance.uniform(38, 56)),
            float(line[-1] / 120), float(line[-1] / 120 - 0.21), float(line[-1] / 120 + 0.21),
            float(line[-1] * 0.9), float((np.maximum.accumulate(line) - line).max()),
            float(chance.normal(0.4, 0.6)), None if at > 4 else float(chance.uniform(0.1, 0.9)),
            float(chance.uniform(12, 60)), 0.0 if at < 1 else float(chance.uniform(0, 14)),
            float(chance.uniform(4, 18)),
        )
        for at, (arm, line) in enumerate(equity.items())
    )  # fmt: skip
    return columns, rows


def exhibits():
    """Return one exhibit of each kind."""
    chance = np.random.default_rng(3)
    times, equity = walks()
    columns, rows = arms_table(equity)
    means = [float(line[-1] / 120) for line in equity.values()]
    drawdown = {arm: line - np.maximum.accumulate(line) for arm, line in equity.items()}
    difference = np.cumsum(chance.normal(0.02, 0.25, 60))
    spread = np.sqrt(np.arange(1, 61)) * 0.4
    ticks = [BEGIN + timedelta(hours=18 * at) for at in range(60)]
    bins = [0.1 * at + 0.05 for at in range(10)]
    lower = tuple((place, 0.17 + 0.5 * place) for place in bins)
    hits = [min(0.95, 0.22 + 0.5 * place + float(chance.normal(0, 0.06))) for place in bins]
    states = [[str(state) for state in chance.choice(STATES, 150)] for _ in range(2)]
    hours = [BEGIN + timedelta(hours=7 * at) for at in range(150)]
    steady = [state for state in states[0][:50] for _ in range(3)]
    return (
        exhibit_of(
            "arms", "All arms", columns, rows,
            "The full desk earned 0.25 R a trade, L1 alone 0.09 R; the intervals overlap, so this "
            "period does not show that the agents are worth their cost.",
            figures={"expectancy.full": means[4], "deflated.full": None},
            plots=(
                plot_of("Equity by arm", "line",
                     tuple(line_of(arm, tuple(zip(times, map(float, line), strict=True)))
                           for arm, line in equity.items()), y="equity, R, after costs"),
                plot_of("Drawdown", "line",
                     tuple(line_of(arm, tuple(zip(times, map(float, drawdown[arm]),
                     strict=True)))
                           for arm in (ARMS[0], ARMS[3], ARMS[4])), y="below the highest, R"),
                plot_of("Expectancy with its interval", "dots",
                     (line_of("mean R", tuple(zip(ARMS, means, strict=True)),
                           tuple(m - 0.21 for m in means), tuple(m + 0.21 for m in means)),),
                     y="R a trade, with its 95 % interval"),
            ),
        ),
        exhibit_of(
            "discordant", "Ticks on which the full desk and L1 alone differ",
            ("kind", "ticks", "mean outcome, R", "p"),
            (("agents opened, L1 held", 11, 0.121, 0.31), ("agents held, L1 opened", 17, -0.204,
             0.08), ("opposite sides", 3, None, None)), FEW, enough=False,
            plots=(
                plot_of("Difference on discordant ticks, summed", "step",
                     (line_of("full less L1 alone",
                           tuple(zip(ticks, map(float, difference), strict=True)),
                           tuple(map(float, difference - spread)),
                           tuple(map(float, difference + spread))),), y="R"),
                plot_of("Discordant ticks by week", "bars",
                     (line_of("ticks", tuple((BEGIN + timedelta(days=7 * w), float(n)) for w, n
                     in
                                          enumerate((4, 7, 3, 9, 5, 3)))),), y="ticks"),
            ),
        ),
        exhibit_of(
            "agents", "What each agent adds", ("agent", "asked", "IC", "low", "high", "Shapley, R"),
            tuple((agent, 1204, float(chance.normal(0.03, 0.04)), -0.05, 0.11,
                   float(chance.normal(0.4, 2))) for agent in AGENTS),
            "Momentum and the gate carry most of it; news cannot be told from nothing.",
            plots=(
                plot_of("Shapley value by agent", "bars",
                     (line_of("all ticks", tuple((agent, float(chance.normal(0.6, 2)))
                                              for agent in AGENTS)),
                      line_of("without news days", tuple((agent, float(chance.normal(0.4, 1.5)))
                                                      for agent in AGENTS))), y="R"),
                plot_of("Leaving one out", "bars",
                     (line_of("loss", tuple((agent, float(chance.normal(0.2, 0.3))) for agent in
                                         AGENTS), (-0.4,) * 8, (1.1,) * 8),), y="R lost"),
            ),
        ),
        exhibit_of(
            "calibration", "Calibration of confidence", ("said", "ticks", "right"),
            (("low", 311, 0.49), ("medium", 702, 0.53), ("high", 191, 0.58)),
            "Confidence is told too wide: what is called 0.9 comes true in 0.67.",
            plots=(
                plot_of("Reliability", "dots",
                     (line_of("full", tuple(zip(bins, hits, strict=True)),
                           tuple(h - 0.09 for h in hits), tuple(h + 0.09 for h in hits)),
                      line_of("budget", lower)),
                     x="confidence said", y="share that came true", diagonal=True),
                plot_of("Right by confidence", "line",
                     (line_of("full", (("low", 0.49), ("medium", 0.53), ("high", 0.58))),
                      line_of("budget", (("low", 0.5), ("medium", None), ("high", 0.52)))),
                      y="share"),
            ),
        ),
        exhibit_of(
            "states", "States of the consensus", ("arm", "states", "longest, h"),
            (("L1 alone", 5, 41), ("full", 5, 63)),
            "Both stay in a state for about a day; the full desk changes it less often.",
            plots=(
                plot_of("State timeline", "bands",
                     (line_of("L1 alone", tuple(zip(hours, states[0], strict=True))),
                      line_of("full", tuple(zip(hours, steady, strict=True))))),
            ),
        ),
        exhibit_of(
            "criteria", "Criteria of success", ("criterion", "wanted", "measured", "met"),
            (("false signals, change in %", "-20 or less", -12.4, False),
             ("latency of a tick, ms", "15,000 at most", 412.7, True),
             ("same verdict under repetition, %", "90 at least", 100.0, True),
             ("fallback without loss, trades changed", "0", 0, True)),
            "Three of four are met; false signals fell by less than was wanted.",
        ),
    )  # fmt: skip


def demo_document(name: str = "btc-december", **changes: Any) -> Document:
    told = {
        "kind": "replay",
        "title": "BTCUSD M15, eight arms",
        "summary": "The full desk ended 30 R ahead of L1 alone on 1,204 paired ticks; with 31 "
        "discordant ticks that may be chance.",
        "period": (BEGIN, END),
        "arms": ARMS,
        "exhibits": exhibits(),
        "warnings": (
            "31 discordant ticks are few: the difference may be chance.",
            "The agents were the rules provider: no model was asked.",
        ),
        "created_at": parse("2026-11-22T08:00:00Z"),
    }
    return document(name, **{**told, **changes})
