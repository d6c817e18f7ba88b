"""Takes `torra sweep` from its options to its documents, with one job for each symbol.

The plan of every symbol is checked, and all of its configurations are logged as trials, before the
first one runs. A mistake raises ConfigError that says what to mend. A job carries its own bars and
settings and returns the finished document, so the result is the same wherever it ran. A lost worker
costs one symbol, which runs again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from torra.clock import System, iso, parse
from torra.config import Profile
from torra.errors import ConfigError
from torra.evaluation.wording import count
from torra.exhibits import report
from torra.exhibits.documents import MOST_SUMMARY, Document
from torra.replay import grids, reporting
from torra.replay.caveats import PAPER, conditions
from torra.replay.grids import GridCell
from torra.replay.l1.sweep import refuse_calendar
from torra.replay.recomposing import Progress, quiet
from torra.replay.replaying import FOLDER, ReplayPlan
from torra.replay.reporting import WORTH_PROCESSES, ReplayRequest
from torra.replay.shards import cluster, cores, executors, parcels, trials
from torra.replay.shards.history import STORE
from torra.replay.shards.shards import Job, run_all
from torra.replay.sweeps import EMBARGO, FOLDS, PURGE, check_folds, summary, sweep_cells

BARS_A_SECOND: Final = 1_000_000
"""What one configuration does in a second of one processor (docs/performance.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest(ReplayRequest):
    """What is asked of a sweep, in the words of the command's options; L1 is the one arm of it.

    `bars` are files, SYMBOL=FILE where there are several symbols, or "store". Purge and embargo are
    in bars.
    """

    thresholds: str = ""
    weights: Sequence[str] = ()
    folds: int = FOLDS
    purge: int = PURGE
    embargo: int = EMBARGO


@dataclass(frozen=True, slots=True)
class FinishedSweep(report.Reported):
    """A sweep of one symbol that has ended: its document, and every configuration with it."""

    document: Document
    found: Mapping[str, Any]


def swept(
    home: Path,
    symbols: Sequence[str],
    asked: SweepRequest,
    *,
    say: Callable[[str], None],
    progress: Progress = quiet,
) -> list[FinishedSweep]:
    """Sweep symbols and write their documents; raises ConfigError naming what to mend.

    `progress` is that of this process; workers elsewhere are told of by `say`.
    """
    if asked.name is not None and len(symbols) > 1:
        raise ConfigError("--name is for one symbol; several are named by themselves")
    walk = (asked.folds, asked.purge, asked.embargo)
    planned = []
    for symbol in dict.fromkeys(symbols):
        bars = _bars_of(symbol, asked.bars, symbols)
        plan = reporting.planned(home, symbol, replace(asked, bars=bars))
        refuse_calendar(plan.profile)
        cells = grids.cells(plan.profile, asked.thresholds, asked.weights)
        check_folds(plan.history, plan.begin, plan.end, walk)
        planned.append((plan, cells))
        frames = ", ".join(plan.history.timeframes)
        say(f"{count(len(cells), 'configuration')} of {symbol} {frames}")
    # Only now: a mistake in the last symbol must not leave trials of the first in the log.
    jobs = [_job(home, plan, cells, walk, asked.name, asked.profile) for plan, cells in planned]
    finished = []
    cells_in_all = sum(len(cells) for _, cells in planned)
    workers = _workers(home, asked, planned, say)
    here = workers == 1 and asked.address is None
    with (progress if here else quiet)(cells_in_all, "configurations") as forward:
        found = _run(home, jobs, asked.address, workers, say, forward)
    for told in found:
        document = Document.model_validate(told["document"])
        report.write(home, document, overwrite=True)
        finished.append(FinishedSweep(document, told["found"]))
    return finished


def run_job(
    spec: Mapping[str, Any], on_cells: Callable[[int], None] = lambda _: None
) -> dict[str, Any]:
    """Run the sweep of one symbol in a worker; what comes back is its document and findings.

    In this process `on_cells` hears of each configuration that is done.
    """
    history = parcels.history_of(spec["history"])
    cells = [
        GridCell(name, settings, Profile.model_validate_json(text))
        for name, settings, text in spec["cells"]
    ]
    found = sweep_cells(
        history,
        cells,
        begin=parse(spec["begin"]) if spec["begin"] else None,
        end=parse(spec["end"]) if spec["end"] else None,
        commission=spec["commission"],
        walk=tuple(spec["walk"]),
        logged=spec["logged"],
        seed=spec["seed"],
        on_cells=on_cells,
    )
    frames = ", ".join(history.timeframes)
    document = report.document(
        spec["name"],
        "replay",
        f"{history.symbol} {frames}: a sweep of {count(len(cells), 'configuration')}, no agents",
        summary(found.rows)[:MOST_SUMMARY],
        found.period,
        ["l1"],
        found.exhibits,
        spec["warnings"],
        parse(spec["at"]),
        spec["settings"],
    )
    return {
        "document": document.model_dump(mode="json", by_alias=True),
        "found": found.as_json(),
    }


def _job(
    home: Path,
    plan: ReplayPlan,
    cells: Sequence[GridCell],
    walk: tuple[int, int, int],
    named: str | None,
    profile: str | None,
) -> Job:
    """Log the trials of a sweep and return what a worker needs for it."""
    name = named or _name(plan, cells, walk)
    logged = trials.log(home, plan.history.symbol, _trials(plan, cells), f"sweep {name}")
    spec = {
        "name": name,
        "history": parcels.packed_history(plan.history),
        "cells": [[cell.name, dict(cell.settings), _text(cell)] for cell in cells],
        "begin": iso(plan.begin) if plan.begin else "",
        "end": iso(plan.end) if plan.end else "",
        "commission": plan.costs.commission,
        "walk": list(walk),
        "logged": logged,
        "seed": plan.seed,
        "settings": reporting.settings_told(
            plan, reporting.named_profile(home, plan.history.symbol, profile)
        ),
        "warnings": [conditions(plan), *plan.history.warnings, f"A sweep asks no agent. {PAPER}"],
        "at": iso(System().real_now()),
    }
    return Job(name, spec)


def _workers(
    home: Path,
    asked: SweepRequest,
    planned: Sequence[tuple[ReplayPlan, Sequence[GridCell]]],
    say: Callable[[str], None],
) -> int:
    """Return how many processes sweep: one for each symbol at most.

    Unless somebody named their number, one for work that is shorter than the start of others.
    """
    given = cores.cores(home, asked.workers)
    if given.beside:
        say(given.says())
    bars = [len(cells) * sum(map(len, plan.history.frames.values())) for plan, cells in planned]
    if not given.named and sum(bars) < BARS_A_SECOND * WORTH_PROCESSES:
        return 1
    return min(given.workers, len(planned))


def _run(
    home: Path,
    jobs: Sequence[Job],
    address: str | None,
    workers: int,
    say: Callable[[str], None],
    forward: Callable[[int], None],
) -> list[Mapping[str, Any]]:
    work, opened = run_job, executors.synchronous_executor()
    if address:
        opened = cluster.open_cluster(address)
    elif workers > 1:
        opened = executors.processes(workers)
    else:
        work = partial(run_job, on_cells=forward)
    with opened as executor:
        return run_all(
            jobs,
            work,
            executor,
            keep=home / FOLDER / "kept" if address else None,
            on_done=lambda done: say(done.line()),
            on_wait=lambda done: say(done.line()),
        )


def _bars_of(symbol: str, bars: Sequence[str], symbols: Sequence[str]) -> list[str]:
    """Return the bars of one of several symbols."""
    own = [text.partition("=")[2] for text in bars if text.startswith(f"{symbol}=")]
    if own or len(symbols) == 1:
        return own or list(bars)
    if STORE in bars:
        return [STORE]
    raise ConfigError(
        f"several symbols: say with --bars {symbol}=FILE which file is {symbol}'s, or --bars store"
    )


def _text(cell: GridCell) -> str:
    return cell.profile.model_dump_json()


def _name(plan: ReplayPlan, cells: Sequence[GridCell], walk: tuple[int, int, int]) -> str:
    told = json.dumps([plan.name, [cell.name for cell in cells], walk])
    return f"{plan.history.symbol.lower()}-sweep-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def _trials(plan: ReplayPlan, cells: Sequence[GridCell]) -> list[str]:
    """Return the name of each configuration in the log of trials."""
    # Another version of the program is no other trial.
    identity = {**plan.identity(plan.arms[0]), "program": ""}
    symbol, digest = plan.history.symbol, plan.history.digest
    return [
        trials.name_of("cell", symbol, digest, {**identity, "profile": cell.profile.digest()})
        for cell in cells
    ]
