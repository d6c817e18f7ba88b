"""What Torra promises, what was seen of it, and the page that tells both.

promises.toml names each promise with its tests, and is written by hand, as the planted faults are.
What was seen is kept in docs/: proofs.json has the newest nightly run of each promise's tests,
mutants.json which planted faults were noticed, nightly.json how long each part of a night took,
baseline.json how many small changes of a room its tests notice.
`page` makes docs/promises.md of all these and nothing else, so that it cannot say more than was
run. Running is left to `nightly`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests import ROOT
from tests.faults import risk_mutants
from tests.faults.named_tests import resolved
from tests.faults.planted import FAULTS

REGISTRY: Final = Path(__file__).with_name("promises.toml")
PROOFS: Final = ROOT / "docs" / "proofs.json"
MUTANTS: Final = ROOT / "docs" / "mutants.json"
NIGHTS: Final = ROOT / "docs" / "nightly.json"
BASELINE: Final = ROOT / "docs" / "baseline.json"
PAGE: Final = ROOT / "docs" / "promises.md"

ORDERS: Final = "orders"
"""The record of the suite in random orders, which belongs to no single promise."""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Promise:
    """One promise. `tests` are names of tests and of files; `by_hand` is the command that runs them
    where the nightly suite does not; `not_here` says what of it is not in this version, or not
    provable.
    """

    id: str
    text: str
    tests: tuple[str, ...]
    note: str = ""
    not_here: str = ""
    by_hand: str = ""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Its tests as pytest names them."""
        return tuple(map(resolved, self.tests))

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files of its tests, each once."""
        paths = (node.partition("::")[0] for node in self.nodes)
        return tuple(dict.fromkeys(path.rpartition("/")[2] for path in paths))


@dataclass(frozen=True)
class Registry:
    """All promises, in the order of the page, the titles of their groups by letter, and with what
    the page begins and ends.
    """

    groups: Mapping[str, str]
    promises: tuple[Promise, ...]
    head: str = ""
    tail: str = ""

    def of(self, group: str) -> list[Promise]:
        """Return the promises of a letter."""
        return [promise for promise in self.promises if promise.id[0] == group]


class Planted(NamedTuple):
    """A planted fault, or all the changes of mutmut, as the page tells it."""

    id: str
    promise: str
    what: str
    tests: tuple[str, ...]


def registry() -> Registry:
    """Return what promises.toml says; TypeError for a field that there is not."""
    found = tomllib.loads(REGISTRY.read_text(encoding="utf-8"))
    groups, around = found.pop("groups"), found.pop("page")
    promises = (
        Promise(name, **(fields | {"tests": tuple(fields["tests"])}))
        for name, fields in found.items()
    )
    return Registry(groups, tuple(promises), **around)


# --- records --------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Any]:
    """Return the records of a file, none where there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def keep(path: Path, fresh: Mapping[str, Any], order: Iterable[str]) -> None:
    """Put records in the place of the older ones of the same names, and write the page anew.

    Names that are not among `order` leave.
    """
    held = {**read(path), **fresh}
    kept = {name: held[name] for name in order if name in held}
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write()


# --- the page -------------------------------------------------------------------------------------


def write() -> None:
    """Write the page anew."""
    text = page(registry(), read(PROOFS), read(MUTANTS), read(BASELINE))
    PAGE.write_text(text, encoding="utf-8")


def page(
    known: Registry,
    proofs: Mapping[str, Record],
    mutants: Mapping[str, Record],
    baseline: Mapping[str, Record],
) -> str:
    """Return docs/promises.md."""
    parts = [known.head + ran_with(proofs.values())]
    parts += [section(title, known.of(letter), proofs) for letter, title in known.groups.items()]
    if mutants:
        parts.append(faults(mutants))
    if rows := small_changes(baseline):
        parts.append(table("Small changes", ("room", "noticed by its tests", "seconds"), rows))
    if ORDERS in proofs:
        parts.append(
            "## In any order\n\nThe suite in random orders, each of them a trial: "
            f"{told(proofs[ORDERS])}.\n"
        )
    return "\n".join([*parts, known.tail])


def ran_with(records: Iterable[Record]) -> str:
    """Return with which versions the records were made."""
    pairs = sorted({(record["python"], record["sqlite"]) for record in records})
    named = "; ".join(f"Python {python}, SQLite {sqlite}" for python, sqlite in pairs)
    return f"\nThe runs below were made with {named}.\n" if named else ""


def section(title: str, promises: Iterable[Promise], proofs: Mapping[str, Record]) -> str:
    """Return the table of one group."""
    rows = [
        (
            one.id,
            one.text,
            tests(one),
            told(proofs[one.id]) if one.id in proofs else NOT_YET,
            seen(one),
        )
        for one in promises
    ]
    return table(title, ("id", "promise", "test", "newest nightly run", "on record"), rows)


NOT_YET: Final = "not yet"


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


def told(record: Record) -> str:
    """Return one record in words: its date, what came of the tests, trials, time, what was seen."""
    return "; ".join(_told(record))


def _told(record: Record) -> Iterator[str]:
    failed = f"**{record['failed']:,} failed**, " if record["failed"] else ""
    skipped = f", {record['skipped']:,} skipped" if record["skipped"] else ""
    trials = f", {record['trials']:,} trials" if record["trials"] else ""
    outcome = f"{failed}{record['passed']:,} tests passed{skipped}{trials}"
    yield f"{record['date']}: {outcome} in {record['seconds']:,} s"
    if record.get("again"):  # what was recorded before tries were counted has none
        yield f"{record['again']:,} tries held up by the machine"
    yield from record["seen"]


def noticed(record: Record) -> str:
    """Return what came of a planted fault."""
    return f"{record['date']}: {'noticed' if record['noticed'] else '**not noticed**'}"


def faults(mutants: Mapping[str, Record]) -> str:
    """Return the table of the planted faults that were run."""
    rows = [
        (
            one.promise,
            one.what,
            ", ".join(f"`{name}`" for name in one.tests),
            noticed(mutants[one.id]),
        )
        for one in everything_planted(mutants)
        if one.id in mutants
    ]
    said = (
        "What makes a promise hold, taken out of a copy of the program one at a time: the named "
        "tests have to fail (`make mutants`)."
    )
    drawn = table("Planted faults", ("id", "taken out or changed", "test", "outcome"), rows)
    return drawn.replace("\n\n", f"\n\n{said}\n\n", 1)


def small_changes(baseline: Mapping[str, Record]) -> list[tuple[str, str, str]]:
    """Return the rows of the rooms whose tests were tried on small changes (`baseline`)."""
    return [
        (room, f"{one['killed']} of {one['mutants']} ({one['share']:.0%})", f"{one['seconds']:,}")
        for room, one in baseline.items()
        if "killed" in one
    ]


def everything_planted(mutants: Mapping[str, Record]) -> Iterator[Planted]:
    """Yield the planted faults in the order of the page, the changes of mutmut last."""
    for one in FAULTS:
        yield Planted(one.id, one.promise, one.what, one.tests)
    counts = mutants.get(risk_mutants.ID, {}).get("seen", "")
    yield Planted(risk_mutants.ID, risk_mutants.PROMISE, counts, risk_mutants.TESTS)
