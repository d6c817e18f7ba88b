"""`torra replay`, `ablate` and `sweep`: arms over a history, and how to judge them.

`torra replay --journal` does another thing: it runs the stored ticks of the home again, those of a
desk and of hosted streams, and says where today's program comes to something else; exit code 1
then.

Long work says beforehand how long it will take and shows its progress on standard error. The result
goes to standard output as a table or, with --json, as one document, to the page Replays and, with
--report, into one HTML file. An interrupted replay goes on where it was when it is started again;
the command says so and ends with exit code 130.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from torra.commands.answer import CommandAnswer, answering
from torra.commands.options import (
    ANY_FILE,
    clock_option,
    flag,
    leave_out_option,
    number,
    several,
)
from torra.commands.terminal import progress, say
from torra.desk_lock import is_locked
from torra.errors import ConfigError
from torra.exhibits.report import put
from torra.imports import freeze_gc
from torra.jobs import priority

USUAL_ARMS: Final = "l1,budget,full,placebo"

INTERRUPTED: Final = 130
"""Exit code of a command that Ctrl-C ended."""

GOES_ON: Final = "Stopped; the same command goes on from where it was."
BEGINS: Final = "Stopped; the same command begins again."

OF_THE_JOURNAL: Final = frozenset(("symbol", "journal", "timeframes", "begin", "end", "as_json"))
"""Parameters of `torra replay` that go with --journal."""

OF_TRADES: Final = frozenset(("name", "trades"))
"""Parameters of `torra replay` that go with --trades where no replay is run."""


REPORT: Final = (
    click.option("--report", type=ANY_FILE, help="Write HTML here."),
    flag("--full", "Print the statistics too."),
)
"""Where a result goes, and how much of it."""

seed_option = click.option(
    "--seed", type=click.IntRange(0), help="Fixes what is drawn by lot: the same gives the same."
)

RUN: Final = (
    click.option("--from", "begin", help="First close that is run, UTC, as 2024-05-01."),
    click.option("--to", "end", help="Last close that is run, UTC."),
    click.option("--timeframes", default="", help="Such as M15,H1; longer ones are put together."),
    clock_option,
    leave_out_option,
    click.option("--profile", help="Use this profile: a name or a file."),
    click.option("--costs", default="", help="spread,commission,slippage; empty: the profile's."),
    click.option(
        "--workers",
        "--jobs",
        "workers",
        type=click.IntRange(1, 64),
        help="Processes at once; default: one for each processor, beside a desk one fewer.",
    ),
    click.option("--cluster", "address", help="A Dask scheduler: loopback, or tls://HOST:PORT."),
    click.option("--name", help="What the result is called; default: made of symbol and settings."),
    *REPORT,
)
"""Options of a run: period, timeframes, costs, workers, and the name of the result."""


@click.command("replay")
@click.argument("symbol", required=False)
@flag("--journal", "Run the stored ticks again, hosted ones too: is each the same to the bit?")
@click.option(
    "--bars",
    "bars",
    multiple=True,
    help="A file of bars (CSV, also .gz), once for each timeframe; or store: the desk's own.",
)
@click.option(
    "--arms",
    "wanted",
    default=USUAL_ARMS,
    show_default=True,
    help="Who is compared, at most 8: l1 (no agents), desks, placebo (their words by lot).",
)
@click.option("--provider", help="Who answers for the agents: rules, recorded or a vendor.")
@click.option("--max-cost", type=float, help="USD that a vendor may be paid for all of it.")
@seed_option
@click.option(
    "--trades",
    type=ANY_FILE,
    help="Write the trades as CSV here; with --name alone those of a replay that was run.",
)
@click.option(
    "--teach",
    is_flag=True,
    help="Keep how often L1 won here, buys and sells apart: the desk then refuses an opening whose "
    "odds would lose money (docs/replaying.md).",
)
@several(RUN)
@answering
def replay(
    home: Path, /, symbol: str | None, journal: bool, full: bool, report: Path | None,
    trades: Path | None, **options: Any,
) -> CommandAnswer:  # fmt: skip
    """Trade a symbol's history with and without agents, and say what each came to in money."""
    from torra.replay import reporting  # noqa: PLC0415

    if journal:
        return _journal(home, symbol or "")
    if symbol is None and trades is not None and options["name"]:
        _only(OF_TRADES, "--trades without SYMBOL takes --name")
        write_file("trades", trades, reporting.trades_of(home, options["name"]))
        sys.exit(0)
    if symbol is None:
        raise ConfigError("name a symbol; only --journal, and --name with --trades, go without one")
    request = reporting.ReplayRequest(**options)
    _prepare(home)
    with _stopping(GOES_ON):
        finished = reporting.replayed(home, symbol.upper(), request, say=_say, progress=progress)
    if report is not None:
        write_file("report", report, finished.html())
    if trades is not None:
        write_file("trades", trades, finished.trades())
    return CommandAnswer(finished.as_json(), finished.text(full=full))


def write_file(what: str, path: Path, text: str) -> None:
    """Write what an option names a file for, and say so."""
    put(path, text)
    _say(f"{what}: {path}")


def _only(taken: Collection[str], says: str) -> dict[str, Any]:
    """Return the parameters that were given; raises ConfigError where others than `taken` were."""
    context = click.get_current_context()
    params = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    options = {str(param.name): param.opts[0] for param in context.command.params}
    if others := sorted(options[name] for name in params.keys() - taken):
        raise ConfigError(f"{says}, not {', '.join(others)}")
    return params


def _journal(home: Path, symbol: str) -> CommandAnswer:
    """Check the journal: exit code 1 where a tick is not the same."""
    from torra.replay.rerun import journal_check  # noqa: PLC0415

    taken = "--journal takes SYMBOL, --timeframes, --from, --to and --json"
    params = _only(OF_THE_JOURNAL, taken)
    with _stopping(BEGINS):
        check = journal_check.check(
            home,
            symbol,
            timeframes=params.get("timeframes", ""),
            begin=params.get("begin"),
            end=params.get("end"),
            progress=progress,
        )
    return CommandAnswer(check.as_json(), check.text(), int(not check.same))


@click.command("ablate")
@click.argument("name")
@click.option("--arm", default="", help="Whose words: a desk of the replay; empty: its largest.")
@click.option("--keep", default="", help="Analysts that are kept, comma-separated; empty: all.")
@click.option(
    "--drop",
    default="",
    help="Analysts, a researcher, the research manager, a swarm's judge or reader of the regime "
    "that are left out.",
)
@flag("--flat", "Let all experts of a swarm count alike.")
@flag("--no-debate", "Leave the researchers out.")
@click.option(
    "--gate",
    type=click.Choice(["recorded", "rules", "off"]),
    default="recorded",
    show_default=True,
    help="Which gate: as recorded, without the model's word, or none.",
)
@click.option("--bound", type=click.FloatRange(0, 0.3), help="Largest adjustment; recorded: 0.3.")
@click.option("--blend", type=click.FloatRange(0, 0.2), help="Share of the agents; recorded: 0.2.")
@click.option("--buy", type=float, help="Threshold of BUY.")
@click.option("--sell", type=float, help="Threshold of SELL.")
@click.option(
    "--weights", default="", help="Five weights of the composite, the record score's last."
)
@several(REPORT)
@answering
def ablate(
    home: Path, /, name: str, full: bool, report: Path | None, **options: Any
) -> CommandAnswer:
    """Say what a replay would have come to with other analysts or weights; asks no model."""
    from torra.replay import recomposing  # noqa: PLC0415

    request = recomposing.RecomposeRequest(**options)
    with _stopping(BEGINS):
        finished = recomposing.recomposed(home, name, request, progress=progress)
    if report is not None:
        write_file("report", report, finished.html())
    return CommandAnswer(finished.as_json(), finished.text(full=full))


@click.command("sweep")
@click.argument("symbols", nargs=-1, required=True)
@click.option(
    "--bars",
    "bars",
    multiple=True,
    help="A file of bars, SYMBOL=FILE where there are several symbols; or store.",
)
@click.option("--thresholds", default="", help="Of BUY and SELL alike, as .3:.7:.05 or .4,.5.")
@click.option(
    "--weights",
    multiple=True,
    help="NAME=AXIS: a vector, ath or a timeframe, as momentum=0:.5:.25.",
)
@number("--folds", 4, 1, 50, "Choose on the past and judge on what follows, so many times.")
@number("--purge", 100, 0, None, "Bars before such a border whose trades are left out.")
@number("--embargo", 20, 0, None, "Bars after it that are judged by nobody.")
@seed_option
@several(RUN)
@answering
def sweep(
    home: Path, /, symbols: tuple[str, ...], full: bool, report: Path | None, **options: Any
) -> CommandAnswer:
    """Try thresholds and weights on L1 alone, and say how much of the best one is luck."""
    from torra.replay import sweep_jobs  # noqa: PLC0415

    names = list(dict.fromkeys(symbol.upper() for symbol in symbols))
    if report is not None and len(names) > 1:
        raise ConfigError("--report is for one symbol; of several each has its page")
    request = sweep_jobs.SweepRequest(**options)
    _prepare(home)
    with _stopping(GOES_ON if request.address else BEGINS):
        sweeps = sweep_jobs.swept(home, names, request, say=_say, progress=progress)
    if report is not None:
        write_file("report", report, sweeps[0].html())
    documents = [dict(finished.found) for finished in sweeps]
    return CommandAnswer(
        documents[0] if len(documents) == 1 else documents,
        "\n\n".join(finished.text(full=full) for finished in sweeps),
    )


def _prepare(home: Path) -> None:
    """Get ready for long work, at the lowest place where a desk runs in the same home."""
    if is_locked(home):
        priority.step_back()
    freeze_gc()


@contextmanager
def _stopping(text: str) -> Iterator[None]:
    """Say what an interruption leaves behind, and end."""
    try:
        yield
    except KeyboardInterrupt:
        _say(text)
        sys.exit(INTERRUPTED)


def _say(text: str) -> None:
    say(text, err=True)
