"""The table of checks and its views: `torra doctor`, the start of a desk, the page Health.

`start` refuses, begins HALTED, or says something. The answer depends on what can still be relied
on. If the database cannot be (damaged, gone, half restored, of a newer program), the desk does not
start: ConfigError, with the command that repairs it. A damaged one also puts the HALT files down,
for terminals must not go on with what a desk without a memory has sent. If the machine cannot be
(hardly any disk, a clock that is wrong), or the newest steps of the desk are lost, it starts, shows
its pages and is HALTED, until a person has repaired that and resumes. What is merely worth knowing
is said. torra.desk.wiring refuses bad settings, keys and channels; torra.store.connection refuses a
disk that cannot keep a write-ahead log.

A check that breaks is a finding too. Only a start changes something: those HALT files and the
rights of others to a home; and a database of an older version is migrated by `doctor`, as at any
start, after its backup. No secret is shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from torra.backup.restore import command
from torra.config import load_desk
from torra.desk.checks import machine, outside, settings
from torra.desk.checks.result import MEND, CheckResult, Context, worst
from torra.desk.checks.stored import stored
from torra.errors import ConfigError, TorraError
from torra.trading.kill_switch import files_to_halt, put_down

Run = Callable[[Context], Iterator[CheckResult]]


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    `at_start` says what an alert does to a desk that starts; its other findings are said there, and
    a check without it is not run. `fix` runs at a start in the place of `run`. A `quick` one
    neither opens nor reads the whole database.
    """

    name: str
    run: Run
    at_start: Literal["", "refuse", "halt"] = ""
    fix: Run | None = None
    quick: bool = True


CHECKS: Final = (
    # First, and never in a desk's own process: whoever opens the database makes the log's index
    # anew (torra.backup.log_end).
    Check("log", machine.log, "halt", quick=False),
    Check("python", machine.python),
    Check("packages", machine.packages),
    Check("sqlite", machine.sqlite, "halt"),
    Check("restore", machine.restore, "refuse"),
    Check("rights", machine.rights, "halt", machine.take_rights),
    Check("disk", machine.disk, "halt"),
    Check("clock", machine.clock, "halt"),
    Check("channel", settings.open_channels),
    Check("settings", settings.instances),
    Check("plug-ins", settings.plug_ins),
    Check("providers", settings.providers),
    Check("news", outside.news),
    Check("outside", outside.outside),
    Check("events", outside.events),
    Check("notices", settings.notices),
    Check("sample", machine.sample),
    # What follows reads the database: `doctor` ends where it is not sound.
    Check("database", machine.database, "refuse", quick=False),
    Check("strangers", machine.strangers, "halt", quick=False),
    Check("orders", machine.orders, "halt", quick=False),
    Check("database", stored, quick=False),
)


def doctor(home: Path) -> list[CheckResult]:
    """Run every check; reads the whole database."""
    return findings(Context(home, os.environ), CHECKS)


def quick(home: Path, environment: Mapping[str, str]) -> list[CheckResult]:
    """Run the checks that neither open nor read the database: for a page, in a second or two."""
    return findings(Context(home, environment), (check for check in CHECKS if check.quick))


def findings(context: Context, checks: Iterable[Check]) -> list[CheckResult]:
    """Run checks. One that breaks is a finding; the same error of several is reported once."""
    reported: list[CheckResult] = []
    errors: set[str] = set()
    for check in checks:
        before = len(reported)
        try:
            reported += check.run(context)  # one by one: what was found before an error stays
        except TorraError as error:
            if str(error) not in errors:  # every check reads the profiles; one word is enough
                reported.append(CheckResult(check.name, "alert", str(error), MEND))
            errors.add(str(error))
        if check.run == machine.database and any(
            item.level == "alert" for item in reported[before:]
        ):
            break
    return reported


def start(home: Path, say: Callable[[str], None]) -> str:
    """Return why a desk must begin HALTED, "" when it need not; raises ConfigError to refuse.

    `say` is called with what is worth knowing.
    """
    context = Context(home, os.environ, partial(_halt, home))
    reasons = []
    for check in CHECKS:
        for finding in (check.fix or check.run)(context) if check.at_start else ():
            if finding.level == "alert" and check.at_start == "refuse":
                raise ConfigError(f"the desk does not start: {finding.line}")
            if finding.level == "alert":
                reasons.append(f"start: {finding.line}, then: {command(home, 'resume')}")
            elif finding.level != "ok":
                say(f"note: {finding.line}")
    return "; ".join(reasons)


def take_rights(home: Path, say: Callable[[str], None]) -> None:
    """Take the rights of others away from a home with a database, and say so."""
    for finding in machine.take_rights(Context(home, os.environ)):
        say(f"note: {finding.line}")


def _halt(home: Path, why: str) -> None:
    put_down(files_to_halt(home, lambda: load_desk(home)), why)


# --- torra doctor ---------------------------------------------------------------------------------

MARKS: Final = {"alert": "ERROR", "warn": "warning"}
"""Levels as a terminal has them; every other one is its own word."""


def document(results: Sequence[CheckResult]) -> dict[str, Any]:
    """Return findings for --json, each as Health answers it, and the worst of their levels."""
    return {"status": worst(results), "checks": [asdict(result) for result in results]}


def table(report: Mapping[str, Any]) -> str:
    """Return a document of findings for a terminal."""
    return "\n".join(
        f"{MARKS.get(row['level'], row['level']):<7}  {row['name']:<12} {row['detail']}"
        + (f"  -> {row['remedy']}" if row["remedy"] else "")
        for row in report["checks"]
    )
