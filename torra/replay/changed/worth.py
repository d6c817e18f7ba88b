"""What the agents were worth so far, as a job: the desk's whole path less that of L1 alone.

Home tells the newest answer. `keep_up` asks for another one when the desk has a tenth more ticks
than it had at the last one, so that the work of all of them together stays a small multiple of the
last; a person may ask at any time. The job runs in the process of jobs, beside the desk. Nothing
is stored but the sentence of its result.
"""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from instance_database import Database, open_home
from torra.config import load_desk
from torra.errors import ConfigError
from torra.evaluation.wording import count
from torra.jobs.kinds import (
    JobKind,
    JobRequest,
    JobResult,
    Parameters,
    Tell,
    key_of,
    parameters_of,
)
from torra.store import jobs as job_table
from torra.store import tick_listing
from torra.store.connection import to_json

if TYPE_CHECKING:
    from torra.replay.changed import listing

FIRST: Final = 100
"""Ticks after which it is asked for the first time, and more of them at least until the next."""

GROWTH: Final = 1.1
"""How many times as many ticks as at the last time there must be until the next."""


def check(home: Path, asked: Parameters) -> JobRequest:
    """Return the request; raises ConfigError for a parameter, since it takes none."""
    if asked:
        raise ConfigError(f"{next(iter(asked))[:40]}: this job takes no parameter")
    with closing(open_home(home)) as database:
        ticks = _ticks(database)
    return JobRequest({}, {"ticks": ticks}, _title(ticks))


def run(home: Path, parameters: Parameters, tell: Tell) -> JobResult:  # noqa: ARG001  as any job
    """Compare the two paths of each profile of the desk; raises StoreUnavailable."""
    # Here: the desk, which asks for the job, does not do it.
    from torra.money.book import known_currencies  # noqa: PLC0415
    from torra.replay import live  # noqa: PLC0415
    from torra.replay.changed import listing  # noqa: PLC0415

    settings, found = load_desk(home), list[str]()
    with closing(open_home(home)) as database:
        currencies = known_currencies(database, settings.paper_currency)
        subjects = live.subjects(home, settings)
        for number, subject in enumerate(subjects):
            tell("compares the two paths", number, len(subjects))
            paths = listing.paths(database, subject)
            routes = {currencies.get(one.route, "") for one in subject.instances}
            told = sentence(paths, routes.pop() if len(routes) == 1 else "")
            found.append(told if len(subjects) == 1 else f"{paths.profile}: {told}")
    return JobResult(" ".join(found))


def sentence(paths: listing.Paths, currency: str) -> str:
    """Return what the agents of a profile were worth in few words: R a trade, money at one size.

    Where a person was asked, orders went out by the answers: then it speaks of those, not of the
    agents. It names how many ticks were compared and their mode, as a page shows it also after
    the setting has changed, and whether ticks of the warm-up are among them, which no result of the
    desk counts.
    """
    from torra.exhibits import figures  # noqa: PLC0415
    from torra.replay.changed import words  # noqa: PLC0415

    if paths.money is None:
        return paths.says
    after = f" {currency}" if currency else ""
    over = f" over {count(paths.ticks, 'tick')} in mode {paths.mode}" if paths.ticks else ""
    over += ", warm-up included" if paths.ticks and paths.warmed.ticks else ""
    over += f" ({paths.left_out})" if paths.left_out else ""
    if not paths.trades and not paths.l1_trades:
        return f"No trade is closed yet{over}, with agents or without."
    known = round(paths.money, 2)
    amount = f"{figures.plain(abs(paths.money), 2)}{after}" if known else "nothing"
    if paths.asked:
        more = f"{amount} {'less' if paths.money < 0.0 else 'more'}" if known else "the same"
    else:
        more = f"the agents {'cost' if paths.money < 0.0 else 'earned'} {amount}"
    told = f"{words.r_a_trade(paths)}: {more} at the same mean size"
    told += over
    if paths.low is None or paths.high is None:
        return f"{told}. {paths.says}".strip()
    low, high = figures.format_signed(paths.low, 2), figures.format_signed(paths.high, 2)
    return f"{told}, 95 % {low} to {high}."


def keep_up(database: Database) -> None:
    """Ask for the job when the desk has grown enough since the last; raises StoreUnavailable."""
    last = job_table.newest_job(database, kind=WORTH.name)
    before = int((parameters_of(last) or {}).get("ticks", 0)) if last else 0
    ticks = _ticks(database)
    if ticks >= max(before + FIRST, before * GROWTH):
        told = to_json({"ticks": ticks})
        with suppress(ConfigError):  # the queue is full: it is asked for at a later turn
            job_table.queue_job(database,
                WORTH.name, key_of(WORTH, {}), title=_title(ticks), parameters=told,
                actor=job_table.THE_DESK,
            )  # fmt: skip


def _ticks(database: Database) -> int:
    return sum(kind.ticks for kind in tick_listing.tick_kinds(database))


def _title(ticks: int) -> str:
    return f"with agents against the bars alone, {ticks:,} ticks"


WORTH: Final = JobKind("worth", "What the agents were worth", check, f"{__name__}:run", keep_up)
