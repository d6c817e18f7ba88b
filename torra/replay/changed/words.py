"""What `torra effect` and History say of a tick that agents changed, of a page, of two paths.

Amounts are in the account's currency. Where its name is known they carry it; else the text says
whose currency it is. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from torra.evaluation.wording import count
from torra.exhibits import figures, numbers, outcome
from torra.exhibits.money import IN_MONEY
from torra.replay.changed.listing import ChangedPage, Paths
from torra.replay.changed.without_agents import CameTo, ChangedTick, Outcome
from torra.tick.marks import EXECUTION_OFF, PROPOSED
from torra.words.orders import ACTIONS, HOLD_REASONS

NOT_ADDED: Final = (
    "Each line is its own counterfactual: one change decides whether the next could happen, so the "
    "lines do not add up."
)
RENEWED: Final = (
    "The desk works out anew what they were worth whenever it has a tenth more ticks. "
    "`torra effect` compares the whole path of the desk with the one without agents."
)
KEPT_BACK: Final = {PROPOSED: "asked you to {}", EXECUTION_OFF: "wanted to {}, not sent"}
"""How an order is told that the execution of the profile did not send by itself."""

ASKED: Final = (
    "You were asked about {}: only what you approved is in the path with agents, while the one "
    "without has every order. So the difference is your doing too."
)
CAME: Final = {"open": "still open", "none": "no trade", "unknown": "not known"}


def did(course: Outcome) -> str:
    """Return what a course does: its order with its size, and why it holds."""
    if course.action is None:
        return "not known"
    told = ACTIONS.get(course.action, figures.sanitize(course.action, 40))
    if course.lots is not None:
        told = f"{told} {figures.plain(course.lots)} lots"
    if course.action != "HOLD" and course.reason in KEPT_BACK:
        return KEPT_BACK[course.reason].format(told)
    if course.lots is not None:
        return told
    if not course.reason:
        return told
    return f"{told}, {HOLD_REASONS.get(course.reason) or figures.sanitize(course.reason, 40)}"


def came(came_to: CameTo, currency: str = "") -> str:
    """Return what an opening came to, as R and money."""
    if came_to.state != "closed":
        return CAME[came_to.state]
    return f"{figures.format_signed(came_to.r, 2)} R, {_amount(came_to.money, currency)}"


def _amount(value: float | None, currency: str) -> str:
    return f"{figures.format_signed(value, 2)} {currency}".rstrip()


def empty(page: ChangedPage, what: Sequence[str]) -> str:
    """Return why a page lists nothing."""
    kinds = " or ".join(what)
    if page.next:
        return f"None of the ticks looked through has another {kinds}; older ones are not read yet."
    return f"The agents changed no {kinds} so far, on {page.of:,} ticks."


def of_paths(told: Paths, currency: str = "") -> str:
    """Return the sentences on a desk's whole path beside that of L1 alone."""
    left = f" {told.left_out.capitalize()}." if told.left_out else ""
    if told.money is None:
        return f"Profile {figures.sanitize(told.profile, 60)}: {told.says}{left}"
    between = (
        told.says
        if told.low is None
        else f"95 % interval {figures.format_signed(told.low, 2)} to "
        f"{figures.format_signed(told.high, 2)}."
    )
    trades, alone = count(told.trades, "trade"), count(told.l1_trades, "trade")
    traded = r_a_trade(told, f" ({trades}{_warmed(told)})", f" ({alone}, on paper)")
    return (
        f"Profile {figures.sanitize(told.profile, 60)}: {traded}. At the same mean size the path "
        f"with agents less the one without is {_amount(told.money, currency or IN_MONEY)}. "
        f"{between}{' ' + ASKED.format(count(told.asked, 'order')) if told.asked else ''}{left}"
    )


def r_a_trade(told: Paths, of_desk: str = "", of_l1: str = "") -> str:
    """Return what a trade came to with and without agents, as a sentence begins."""
    who = "what you approved" if told.asked else "this desk"
    return outcome.r_a_trade([(f"the bars alone{of_l1}", told.l1_r), (f"{who}{of_desk}", told.r)])


def _warmed(told: Paths) -> str:
    """Return how many trades of a path no result of the desk counts."""
    number = told.warmed.trades
    if not number:
        return ""
    return f", {'all' if number == told.trades else f'{number:,}'} in the warm-up"


def table(page: ChangedPage, paths: Sequence[Paths], what: Sequence[str]) -> str:
    """Return `torra effect` for a terminal: first what a trade came to, then the ticks."""
    lines = [*map(of_paths, paths), *([""] if paths else []), page.says]
    if page.ticks:
        lines += ["", *_lines(page.ticks), "", f"Amounts are {IN_MONEY}. {NOT_ADDED}"]
    elif page.of:
        lines.append(empty(page, what))
    if page.next:
        lines.append(f'Older ticks: --before "{page.next}"')
    return "\n".join(lines)


def _lines(ticks: Sequence[ChangedTick]) -> list[str]:
    head = ("close (UTC)", "stream", "changed", "without agents", "came to", "was done", "came to")
    return numbers.aligned([head, *map(_line, ticks)])


def _line(one: ChangedTick) -> tuple[str, ...]:
    return (
        figures.moment(one.close_time),
        f"{one.instance} {one.timeframe}",
        ", ".join(one.changed),
        f"{one.l1.verdict}: {did(one.l1)}",
        came(one.l1.came_to),
        f"{one.done.verdict}: {did(one.done)}",
        came(one.done.came_to),
    )
