"""What a try found, as rows of text: for its page and for `torra profile try`. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from torra.evaluation.wording import count
from torra.profiles.fields import shown
from torra.profiles.ten import called
from torra.replay.tried.estimate import Sums, Tried, amount, came_to, signed

IN_MONEY: Final = "the account's currency"
"""What is said where nobody has told the currency: of the account on paper."""

NOTHING: Final = "no difference"


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One figure as saved, with the changes, and the difference, "" where nothing was changed."""

    what: str
    before: str
    after: str
    difference: str


@dataclass(frozen=True, slots=True)
class AloneRow:
    """What one change by itself would have come to; `name` is the setting's, `title` its words."""

    name: str
    title: str
    change: str
    came_to: str
    difference: str


def tables(found: Tried) -> list[tuple[str, list[ChangeRow]]]:
    """Return the figures of each currency, with its name."""
    return [
        (before.currency or IN_MONEY, rows(before, after, found.capital, found.capital_after))
        for before, after in zip(found.before, found.after, strict=True)
    ]


def rows(before: Sums, after: Sums, capital: float, wanted: float) -> list[ChangeRow]:
    """Return the figures of one currency; the capital is the saved one, then the changed one."""
    unit = before.currency
    told = [
        ChangeRow("Trades", f"{before.trades:,}", f"{after.trades:,}",
            _whole(after.trades - before.trades)),
        ChangeRow("Won", _won(before), _won(after), _whole(after.won - before.won)),
        ChangeRow("Result", amount(before.money, unit), amount(after.money, unit),
            amount(after.money - before.money, unit)),
        ChangeRow("Result in R", f"{signed(before.r)} R", f"{signed(after.r)} R",
            f"{signed(after.r - before.r)} R"),
        ChangeRow("Deepest fall (% of capital)", _fall(before, capital), _fall(after, wanted),
            amount(after.fall - before.fall, unit)),
    ]  # fmt: skip
    if before.halts or after.halts:
        halts = _whole(after.halts - before.halts)
        told.append(ChangeRow("Desk halted itself", f"{before.halts:,}", f"{after.halts:,}", halts))
    return told


def alone(found: Tried) -> list[AloneRow]:
    """Return what each change by itself would have come to; a single change is the whole."""
    known: Mapping[str, Sequence[Sums]] = {one.name: one.sums for one in found.alone}
    if len(found.changes) == 1:
        known = {str(found.changes[0]["place"]): found.after}
    return [
        AloneRow(
            name=str(change["place"]),
            title=called(str(change["place"])),
            change=f"{shown(change['before'])} → {shown(change['after'])}",
            came_to="; ".join(map(came_to, known[str(change["place"])])),
            difference=difference(found.before, known[str(change["place"])]),
        )
        for change in found.changes
        if str(change["place"]) in known
    ]


def table(found: Tried) -> str:
    """Return everything as lines of text."""
    return "\n".join(_lines(found))


def _lines(found: Tried) -> Iterator[str]:
    yield found.says
    if found.before:
        yield f"Bars from {found.begin[:10]} to {found.end[:10]}, the arithmetic (L1) alone."
    for currency, told in tables(found):
        yield ""
        yield f"{currency:<28}{'as saved':>22}{_column('with the changes', found)}"
        for row in told:
            more = f"{row.after:>22}{row.difference:>18}" if found.changes else ""
            yield f"{row.what:<28}{row.before:>22}{more}"
    if found.alone:
        yield ""
        yield "Each change by itself:"
        yield from (f"  {one.name} {one.change}: {one.came_to}" for one in alone(found))
    if len(found.ran_on) > 1:
        yield ""
        yield from (_symbol(one, bool(found.changes)) for one in found.ran_on)
    yield ""
    yield from (f"left out: {one.instance}: {one.why}" for one in found.left_out)
    yield from (f"note: {note}" for note in found.notes)


def _column(head: str, found: Tried) -> str:
    return f"{head:>22}{'difference':>18}" if found.changes else ""


def _symbol(one: Any, changed: bool) -> str:
    told = f"{one.instance}: {came_to(one.before)}"
    return f"{told}; with the changes {came_to(one.after)}" if changed else told


def difference(before: Sequence[Sums], after: Sequence[Sums]) -> str:
    """Return how far sums lie apart: +42 trades, +12.30 USD; or that they do not."""
    told = [
        f"{count_apart(new.trades - old.trades)}, {amount(new.money - old.money, new.currency)}, "
        f"{signed(new.r - old.r)} R"
        for old, new in zip(before, after, strict=True)
        if new != old
    ]
    return "; ".join(told) or NOTHING


def count_apart(number: int) -> str:
    """Return how many trades more or fewer there are."""
    if not number:
        return "as many trades"
    return f"{count(abs(number), 'trade')} {'more' if number > 0 else 'fewer'}"


def _whole(number: int) -> str:
    return signed(number).removesuffix(".00") if number else "0"


def _won(one: Sums) -> str:
    return f"{one.won:,} ({100 * one.won / one.trades:.0f} %)" if one.trades else "0"


def _fall(one: Sums, capital: float) -> str:
    return f"{amount(one.fall, one.currency, sign=False)} ({100 * one.fall / capital:.1f} %)"
