"""The kinds of jobs of this program, and the first of them: a replay as `torra replay` runs it.

A request is checked as the command checks it, before a job is queued. Its period and its name are
fixed then: bars that come while it waits change neither. The rules answer for the agents, unless
the request says how much a vendor may be paid. Bars are those that the desk has stored, the shipped
sample, or files in the folder `uploads` of the home; a job reads nothing from anywhere else. A
mistake raises ConfigError that begins with the parameter's name.

A desk that knows the kinds does not replay: what does is imported where a request is checked, and
by the process that does the job.

A job that is stopped leaves the folder of its replay as Ctrl-C leaves it: the same request goes on
from there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torra.clock import iso
from torra.config import ROOT
from torra.errors import ConfigError
from torra.evaluation.wording import MEANINGLESS, listed, the_arm
from torra.exhibits.documents import allowed
from torra.home import UPLOADS
from torra.jobs.kinds import JobKind, JobRequest, JobResult, Parameters, Tell, by_name
from torra.replay import uploads
from torra.replay.arms import CONTROL
from torra.replay.changed.worth import WORTH
from torra.replay.shards.history import STORE

if TYPE_CHECKING:
    from torra.replay.replaying import ReplayPlan
    from torra.replay.reporting import ReplayRequest

SAMPLE: Final = "sample"
"""In place of a file: the shipped bars of the symbol."""

BARS_WORDS: Final = {STORE: "those stored", SAMPLE: "the shipped sample"}
"""What a person calls bars that are no file."""

USUAL_ARMS: Final = f"{CONTROL},budget"
"""What is compared unless the request says otherwise: L1 and the small desk."""

TEXTS: Final = (
    "symbol", "bars", "clock", "leave_out", "timeframes", "from", "to", "arms", "profile", "name",
)  # fmt: skip
SUM: Final = "max_cost"
SYMBOL: Final = re.compile(r"[A-Z0-9][A-Z0-9._:#-]{0,39}")
LONGEST: Final = 400
"""Characters of a parameter."""

ABOUT: Final = {
    "clock": r"\bclock",
    "leave_out": r"leave.out",
    "bars": rf"\b{UPLOADS}[/\\]|no column|cannot read|holds no (database|bars)",
    "from": r"--from|in that period",
    "to": r"--to\b|fewer than",
    "max_cost": r"--max-cost",
    "arms": r"--arms",
    "name": r"--name",
    "timeframes": r"timeframe|bars of every|no [A-Z]+\d+ bars of",
    "profile": r"profile|agents\.",
    "symbol": r"symbol|instance",
}
"""Which parameter a mistake is about, by the first pattern that its message has."""


def check(home: Path, asked: Parameters) -> JobRequest:
    """Return a request for a replay, checked and fixed; raises ConfigError."""
    from torra.replay import reporting  # noqa: PLC0415

    told = _texts(asked)
    with _about("symbol"):
        plan = reporting.planned(home, told["symbol"], _request(home, told))
    # In one form, whichever way round it was written: the same request is the same job.
    told["arms"] = ",".join(arm.name for arm in plan.arms)
    begin, end = plan.history.period
    fixed = told | {
        "from": iso(plan.begin or begin),
        "to": iso(plan.end or end),
        "timeframes": ",".join(plan.history.timeframes),
        "profile": reporting.named_profile(home, told["symbol"], told["profile"] or None),
    }
    if not told["name"]:
        with _about("symbol"):
            fixed["name"] = reporting.planned(home, told["symbol"], _request(home, fixed)).name
    return JobRequest(told, fixed, title(plan, fixed))


def title(plan: ReplayPlan, fixed: Mapping[str, Any]) -> str:
    """Return what a replay is about: symbol, period, bars, profile and who trades."""
    from torra.replay.caveats import thresholds_told  # noqa: PLC0415

    timeframes = fixed["timeframes"].replace(",", ", ")
    names = [arm.name for arm in plan.arms]
    who = listed([the_arm(name, names) for name in names if name not in MEANINGLESS])
    return (
        f"{plan.history.symbol} {timeframes}, {fixed['from'][:10]} to {fixed['to'][:10]}; bars: "
        f"{BARS_WORDS.get(fixed['bars'], fixed['bars'].replace(',', ', '))}; profile "
        f"{fixed['profile']} ({thresholds_told(plan.profile)}); {who}"
    )


def run(home: Path, parameters: Parameters, tell: Tell) -> JobResult:
    """Run a replay; raises what `torra replay` raises."""
    from torra.replay import reporting  # noqa: PLC0415

    told: Any = parameters
    tell("reads the bars")

    @contextmanager
    def progress(total: int, _: str) -> Iterator[Callable[[int], None]]:
        done = 0

        def forward(number: int) -> None:
            nonlocal done
            done += number
            tell("runs the ticks", done, total)

        yield forward

    found = reporting.replayed(
        home, told["symbol"], _request(home, told), say=tell, progress=progress
    )
    return JobResult(found.document.summary, found.plan.name)


def _texts(asked: Parameters) -> dict[str, Any]:
    """Return what was asked in one form, whichever way it was written; raises ConfigError."""
    for name, value in asked.items():
        if name not in (*TEXTS, SUM):
            raise ConfigError(f"{name[:40]}: a replay has no such parameter")
        if not isinstance(value, str) or len(value) > LONGEST:
            raise ConfigError(f"{name}: write a text of {LONGEST} characters at most")
    told = {name: str(asked.get(name, "")).strip() for name in TEXTS}
    told["symbol"] = told["symbol"].upper()
    if not SYMBOL.fullmatch(told["symbol"]):
        raise ConfigError("symbol: name one, such as BTCUSD")
    told["bars"] = ",".join(_several(told["bars"])) or STORE
    told["timeframes"] = ",".join(sorted(set(_several(told["timeframes"].upper()))))
    told["arms"] = ",".join(_several(told["arms"].lower())) or USUAL_ARMS
    if told["profile"] and not allowed(told["profile"]):
        raise ConfigError("profile: name one of the home's, such as default")
    return told | {SUM: _sum(str(asked.get(SUM, "")).strip())}


def _several(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _sum(text: str) -> float | None:
    if not text:
        return None
    try:
        usd = float(text)
    except ValueError:
        usd = math.nan
    if not 0.0 <= usd < math.inf:
        raise ConfigError(f"{SUM}: {text[:40]} is no sum of USD, such as 0.50")
    return usd


def _request(home: Path, told: Mapping[str, Any]) -> ReplayRequest:
    from torra.replay.reporting import ReplayRequest  # noqa: PLC0415

    most = told[SUM]
    return ReplayRequest(
        bars=_bars(home, told["symbol"], _several(told["bars"])),
        begin=told["from"] or None,
        end=told["to"] or None,
        timeframes=told["timeframes"],
        clock=told["clock"] or None,
        leave_out=told["leave_out"],
        wanted=told["arms"],
        profile=told["profile"] or None,
        # Nobody is paid without a ceiling.
        provider="rules" if most is None else None,
        max_cost=most,
        name=told["name"] or None,
    )


def _bars(home: Path, symbol: str, named: list[str]) -> list[str]:
    """Return the bars as the command takes them; raises ConfigError for a file of elsewhere."""
    if named == [STORE]:
        return named
    if named == [SAMPLE]:
        found = sorted((ROOT / "sample_data").glob(f"{symbol}_*.csv"))
        if not found:
            raise ConfigError(f"bars: the shipped sample has none of {symbol}")
        return [str(path) for path in found]
    known = uploads.names(home)
    for name in named:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "it holds none"
            raise ConfigError(
                f"bars: {name[:80]} is no file of bars in {home / UPLOADS}: {there}; or take "
                f"{STORE} or {SAMPLE}"
            )
    return [str(home / UPLOADS / name) for name in named]


@contextmanager
def _about(usual: str) -> Iterator[None]:
    """Let a mistake begin with the parameter that it is about."""
    try:
        yield
    except ConfigError as error:
        told = str(error)
        if told.startswith("bars: "):
            raise
        name = next((name for name, said in ABOUT.items() if re.search(said, told)), usual)
        plain = re.sub(rf"^--{name} ", "", re.sub(r"--(\w)", r"\1", told))
        raise ConfigError(f"{name}: {plain.removeprefix(f'{name} ')}") from error


def _check_settings(home: Path, asked: Parameters) -> JobRequest:
    from torra.replay.tried import kind  # noqa: PLC0415

    return kind.check(home, asked)


REPLAY: Final = JobKind("replay", "Replay", check, f"{__name__}:run")

SETTINGS: Final = JobKind("settings", "Settings", _check_settings, "torra.replay.tried.kind:run")

KINDS: Final = by_name(REPLAY, SETTINGS, WORTH)
"""Every kind of job that this program knows."""
