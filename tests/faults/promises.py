"""What Torra promises, what was seen of it, and the page that tells both.

promises.toml names each promise with its tests; docs/proofs.json holds what the newest nightly run
of them saw, docs/mutants.json which planted faults the tests noticed. `page` makes docs/promises.md
of the three and nothing else, so that it cannot say more than was run. Running is left to `prove`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests import ROOT

REGISTRY: Final = Path(__file__).with_name("promises.toml")
PROOFS: Final = ROOT / "docs" / "proofs.json"
MUTANTS: Final = ROOT / "docs" / "mutants.json"
PAGE: Final = ROOT / "docs" / "promises.md"

ORDERS: Final = "orders"
"""The record of the suite in random orders, which belongs to no single promise."""

HEAD: Final = """# Promises, and the trials behind them

Each row is a promise of this version and the tests that prove it. Every test runs in two sizes:
small in `make test`, before each change, and at its full count by night (`make nightly`, or `make
prove PROMISES="D1 L5"` for some). *Newest nightly run* is written by the harness itself: when, how
many tests passed, how many trials they made, what they saw. *On record* is what earlier full counts
saw, noted when they were run. A promise whose newest nightly run is "not yet" has been run at its
small size with every change, and at its full count only as far as the record says.
"""
TAIL: Final = """## Not provable here

A disk that lies about fsync, Windows, and a real MetaTrader terminal. Where a row depends on one of
them it says so.

## What nightly counts found that small ones had not

A bar that never came, between two that did, had no row. It is mended and has a test of its own
(`test_a_hole_in_the_feed_is_a_recorded_skip_though_later_bars_come`).

The first whole night (2026-11-22, 100 minutes on two cores that did other work too) found no fault
of the program and six of the tests: races of clicks that a rate limit had quietly ended, a witness
that took a fill of a past bar for an order sent after a halt, a page held against that of another
number of calls in the hour, a report that is rightly refused, ticks that were held up before they
came to ask, and a ctrl-c that a background job ignores. Each is mended.

The second one (2026-11-23, 93 minutes) found two faults of the program. Where a user's own price
list has a cached token dearer than plain input, a call could cost more than was reserved for it.
And the server of the pages watched its connections in a way that ends at a process's 1,024th open
file. Of the tests, a state machine met too few of the points it could die at, one counted workers
before they had come, and the walks of E5 had become so short that no arm on them was ever judged:
they now say how many are.

The third one (2026-11-23, 88 minutes) found nothing in the program: of 11,838 tests one failed, a
debate whose 5 s were gone though all answered at once. Why its process stood still was not
measured: a machine that is given no processor, or a garbage collection in the gigabytes that a
night's tests hold. A debate of the tests in which nobody hangs has a minute now.

The random orders found what no night had: two tests of 11,528 stood on real seconds that a busy
machine may not give, one in the 8th order, one in the 12th. So all processes of the suite were
stopped for a second at random moments, some hundred times a run, to find the others: 28 tests
failed in that way. Such a statement is now tried again where a witness beside it measured that the
machine stood still, and nowhere else (`tests/tries.py`). What has to hold however late a machine
is, as that nothing is doubled, is looked at in every try, and each try that was held up stands in
the records. One of the 28 was a fault of the program: a desk that was told to end while it was
suspended (SIGSTOP, SIGTERM, SIGCONT) did not end in half of the cases, because the system gave the
signal to another thread than the one that waited for it. The tenth order after that had a test
whose process stood still by itself: a full garbage collection over all that the suite holds took
0.8 s. It no longer looks at the tests themselves, and none falls into such a try.

Later orders found more. Bars of the Expert Advisor that went missing a second time were not told
again. A command of a page, pressed before the page's scripts had come, went off without its
question. A control that has to be caught writing in place was caught by luck alone: half a file is
now looked at each time. Of eight processes the one that works lost its lease of 0.6 s, on a machine
whose witnesses had nothing to tell: with a busy disk a renewal takes up to 0.25 s there, and a
witness at the disk stands beside that test as well.

On 2026-11-22 the rows of the full desk were run together: `pytest --nightly
tests/agents/test_full_desk_failures.py tests/evidence/test_look_ahead.py
tests/news/test_news_payloads.py tests/agents/test_desk_agents.py tests/agents/test_abstention.py
tests/agents/test_panel.py tests/agents/test_quorum.py tests/agents/test_prompts.py
tests/agents/test_gate.py tests/evidence/test_news_digest.py`: 445 passed in 562 s.
"""


@dataclass(frozen=True)
class Promise:
    """One promise. `tests` are files or `file::test`; `by_hand` is the command that runs them where
    the nightly suite does not; `not_here` says what of it is not in this version, or not provable.
    """

    id: str
    text: str
    tests: tuple[str, ...]
    note: str = ""
    not_here: str = ""
    by_hand: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """The files of its tests, each once."""
        return tuple(dict.fromkeys(test.partition("::")[0] for test in self.tests))


@dataclass(frozen=True)
class Registry:
    """All promises, in the order of the page, and the titles of their groups by letter."""

    groups: Mapping[str, str]
    promises: tuple[Promise, ...]

    def of(self, group: str) -> list[Promise]:
        """Return the promises of a letter."""
        return [promise for promise in self.promises if promise.id[0] == group]


def registry() -> Registry:
    """Return what promises.toml says; TypeError for a field that there is not."""
    found = tomllib.loads(REGISTRY.read_text(encoding="utf-8"))
    groups = found.pop("groups")
    return Registry(
        groups,
        tuple(
            Promise(name, **(fields | {"tests": tuple(fields["tests"])}))
            for name, fields in found.items()
        ),
    )


def read(path: Path, default: Any) -> Any:
    """Return what a JSON file holds, or the default where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else default


def write() -> None:
    """Write the page anew."""
    PAGE.write_text(page(registry(), read(PROOFS, {}), read(MUTANTS, [])), encoding="utf-8")


def page(
    known: Registry, proofs: Mapping[str, Mapping[str, Any]], mutants: Sequence[Mapping[str, Any]]
) -> str:
    """Return docs/promises.md."""
    parts = [HEAD + ran_with(proofs.values())]
    parts += [section(title, known.of(letter), proofs) for letter, title in known.groups.items()]
    if mutants:
        parts.append(planted(mutants))
    if ORDERS in proofs:
        parts.append(
            "## In any order\n\nThe suite in random orders, each of them a trial: "
            f"{told(proofs[ORDERS])}.\n"
        )
    return "\n".join([*parts, TAIL])


def ran_with(records: Iterable[Mapping[str, Any]]) -> str:
    """Return with which versions the records were made."""
    pairs = sorted({(record["python"], record["sqlite"]) for record in records})
    named = "; ".join(f"Python {python}, SQLite {sqlite}" for python, sqlite in pairs)
    return f"\nThe runs below were made with {named}.\n" if named else ""


def section(
    title: str, promises: Iterable[Promise], proofs: Mapping[str, Mapping[str, Any]]
) -> str:
    """Return the table of one group."""
    rows = [
        (
            one.id,
            one.text,
            tests(one),
            told(proofs[one.id]) if one.id in proofs else "not yet",
            seen(one),
        )
        for one in promises
    ]
    return table(title, ("id", "promise", "test", "newest nightly run", "on record"), rows)


def table(title: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a heading and a Markdown table."""
    lines = [names, ["---"] * len(names), *rows]
    drawn = "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in lines)
    return f"## {title}\n\n{drawn}\n"


def tests(promise: Promise) -> str:
    """Return the cell of the tests."""
    named = ", ".join(f"`{name}`" for name in promise.files)
    by_hand = f" (`{promise.by_hand}`)" if promise.by_hand else ""
    return f"{named}{by_hand}" or "none"


def seen(promise: Promise) -> str:
    """Return what stands on record by hand, and what is not in this version."""
    missing = f"Not here: {promise.not_here}" if promise.not_here else ""
    return " ".join(filter(None, (promise.note, missing)))


def told(record: Mapping[str, Any]) -> str:
    """Return one record in words: its date, what came of the tests, trials, time, what was seen."""
    return "; ".join(_told(record))


def _told(record: Mapping[str, Any]) -> Iterator[str]:
    failed = f"**{record['failed']:,} failed**, " if record["failed"] else ""
    skipped = f", {record['skipped']:,} skipped" if record["skipped"] else ""
    trials = f", {record['trials']:,} trials" if record["trials"] else ""
    outcome = f"{failed}{record['passed']:,} tests passed{skipped}{trials}"
    yield f"{record['date']}: {outcome} in {record['seconds']:,} s"
    if record.get("again"):  # what was recorded before tries were counted has none
        yield f"{record['again']:,} tries held up by the machine"
    yield from record["seen"]


def planted(mutants: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the planted faults (tests/faults/mutate.py)."""
    rows = [
        (
            one["promise"],
            one["what"],
            ", ".join(f"`{test.strip()}`" for test in one["test"].split(",")),
            f"{one['date']}: {'noticed' if one['killed'] else '**not noticed**'}",
        )
        for one in mutants
    ]
    said = (
        "What makes a promise hold, taken out of a copy of the program one at a time: the named "
        "tests have to fail (`make mutants`)."
    )
    drawn = table("Planted faults", ("id", "taken out or changed", "test", "outcome"), rows)
    return drawn.replace("\n\n", f"\n\n{said}\n\n", 1)
