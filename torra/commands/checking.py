"""`torra lookahead` and `torra consistency`: check whether measurements can be believed.

Both change nothing of the desk. Long work shows its progress on standard error; the result goes to
standard output as a table or, with --json, as one document. A mistake is one line and exit code 2;
exit code 1 means that something was found which must be mended.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from torra.commands.answer import CommandAnswer, answering
from torra.commands.options import ONE_TICK, clock_option, leave_out_option, number, several
from torra.commands.terminal import progress, say
from torra.errors import ConfigError
from torra.evaluation.exhibits import Exhibit
from torra.exhibits.numbers import aligned

LOOKAHEAD_POINTS: Final = 20
SHIPPED: Final = {"BTCUSD": ("BTCUSD_M15.csv", "BTCUSD_H1.csv"), "EURUSD": ("EURUSD_H1.csv",)}
"""Symbols and files that are probed when none is named."""


@click.command()
@click.argument("symbol")
@click.argument("timeframe")
@click.option("--as-of", help="Close of the bar, UTC; default: the newest bar.")
@several(ONE_TICK)
@answering
def tick(home: Path, /, symbol: str, timeframe: str, **options: Any) -> CommandAnswer:
    """Run one tick without changing or publishing anything."""
    from torra.replay.rerun import trial_tick  # noqa: PLC0415

    record = trial_tick.run(home, symbol.upper(), timeframe.upper(), **options)
    return CommandAnswer(trial_tick.document(record), trial_tick.table(record))


@click.command("lookahead")
@click.argument("symbol", required=False)
@click.option("--bars", multiple=True, help="A file of bars, once for each timeframe; or store.")
@click.option("--timeframes", default="", help="Such as M15,H1; longer ones are put together.")
@clock_option
@leave_out_option
@click.option("--profile", "name", default="default", show_default=True, help="A name or a file.")
@number("--points", LOOKAHEAD_POINTS, 1, 10_000, "Moments that are checked.")
@number("--seed", 8, 0, None, "Fixes which moments are drawn.")
@answering
def lookahead(
    home: Path, /, symbol: str | None, bars: tuple[str, ...], timeframes: str,
    clock: str | None, leave_out: str, name: str, points: int, seed: int,
) -> CommandAnswer:  # fmt: skip
    """Check that no score knows the future: later bars are changed, and no number may move.

    Without SYMBOL the shipped bars are checked.
    """
    from torra.config import ROOT, Instance, load_profile  # noqa: PLC0415
    from torra.desk import wiring  # noqa: PLC0415
    from torra.replay.outlook_then import only_series  # noqa: PLC0415
    from torra.replay.rerun import lookahead  # noqa: PLC0415
    from torra.replay.shards import history  # noqa: PLC0415

    if symbol is None and bars:
        raise ConfigError("name a symbol: torra lookahead SYMBOL --bars FILE")
    sample = ROOT / "sample_data"
    probed: dict[str, Sequence[str]] = {
        which: [str(sample / file) for file in files] for which, files in SHIPPED.items()
    }
    if symbol is not None:
        symbol = symbol.upper()
        probed = {symbol: bars or probed.get(symbol, ["store"])}
    profile = load_profile(Path(name) if name.endswith(".json") else name, home)
    wanted = [part.strip().upper() for part in timeframes.split(",") if part.strip()]
    subjects = []
    for which, files in probed.items():
        loaded = history.load(
            home, which, files, timeframes=wanted, clock=clock, leave_out=leave_out
        )
        instance = Instance(symbol=loaded.symbol, timeframes=loaded.timeframes)
        outlook = only_series(home, instance, profile, *loaded.period)
        lessons = lookahead.lessons_of(home, profile)
        subjects.append(lookahead.LookaheadSubject.of(loaded, profile, outlook, lessons))
    for subject in subjects:
        # All before the first probe, which takes long: a mistake is told at once.
        wiring.check_profile(profile, subject.instance, name)
    probes = []
    for subject in subjects:
        with progress(points, subject.instance.symbol) as forward:
            probes.append(lookahead.probe(subject, points=points, seed=seed, on_point=forward))
    exhibits = [lookahead.exhibit(probe) for probe in probes]
    clean = all(probe.clean for probe in probes)
    document = {
        "clean": clean,
        "probes": [
            {"symbol": probe.symbol, "points": probe.points, **_document(exhibit)}
            for probe, exhibit in zip(probes, exhibits, strict=True)
        ],
    }
    return CommandAnswer(document, "\n\n".join(map(table, exhibits)), int(not clean))


@click.command("consistency")
@click.argument("symbol")
@click.argument("timeframe", required=False)
@number("--runs", 5, 2, 100, "How often each tick is asked.")
@number("--ticks", 20, 1, 1000, "How many ticks, the newest.")
@several(ONE_TICK)
@click.option("--max-cost", type=click.FloatRange(min=0.0), help="USD that a vendor may be paid.")
@answering
def consistency(home: Path, /, symbol: str, timeframe: str | None, **options: Any) -> CommandAnswer:
    """Ask the same tick several times and say whether the agents repeat themselves."""
    from torra.evaluation.observations import as_json  # noqa: PLC0415
    from torra.replay.rerun import consistency  # noqa: PLC0415

    plan = consistency.plan(home, symbol.upper(), timeframe and timeframe.upper(), **options)
    say(plan.line(), err=True)
    with progress(plan.total, "runs") as forward:
        answers = consistency.repeat(plan, on_run=lambda _: forward(1))
    exhibit = consistency.exhibit(answers)
    document = {
        "symbol": plan.instance.id,
        "timeframe": plan.timeframe,
        "provider": plan.profile.agents.provider,
        "runs": [[as_json(tick) for tick in own] for own in answers.runs],
        "identical": answers.identical,
        "calls": answers.calls,
        "cost_usd": answers.cost_usd,
        "stopped": answers.stopped,
        **_document(exhibit),
    }
    cost = f", {answers.cost_usd:.4f} USD" if plan.paid else ""
    return CommandAnswer(document, f"{table(exhibit)}\n{answers.calls} calls{cost}")


# --- how both answer ------------------------------------------------------------------------------


def table(exhibit: Exhibit) -> str:
    """Return an exhibit for a terminal: title, rows under their columns, and its conclusion."""

    def cell(value: Any) -> str:
        if isinstance(value, bool) or value is None:
            return {None: "-", True: "yes", False: "no"}[value]
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    rows = [[cell(value) for value in row] for row in exhibit.rows]
    lines = aligned([exhibit.columns, *rows]) if rows else []
    return "\n".join([exhibit.title, *lines, exhibit.says])


def _document(exhibit: Exhibit) -> dict[str, Any]:
    fields = exhibit.model_dump(mode="json", exclude={"plots"})
    return {"exhibit": fields.pop("name"), **fields}
