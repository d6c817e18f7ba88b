"""A committee as a job of the light lane: what a page, a program and the command ask for.

What decides is imported by the process that does the job.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

from torra.clock import EPOCH, iso, parse
from torra.committee.votes import RiskProfile
from torra.config import load_desk
from torra.errors import ConfigError
from torra.film.job import FILM
from torra.jobs.at_home import run_at_home
from torra.jobs.kinds import JobKind, JobRequest, JobResult, Parameters, Tell, by_name, key_of
from torra.radar.job import RADAR
from torra.replay import job_kinds
from torra.store.audit import has_asker
from torra.store.research import cards as card_table

PROFILES: Final[Sequence[str]] = get_args(RiskProfile)

FIELDS: Final = {
    "symbol": "the symbol of the desk that the committee is asked about",
    "again": "yes: ask once more of the same evidence",
    "as_of": "a moment of the past, ISO 8601; by rules alone, unless hindsight is yes",
    "hindsight": "yes: models may be asked of the past; such a card counts for nothing",
    "risk": f"the risk profile, one of {', '.join(PROFILES)}; default: that of desk.json",
}
"""What may be asked for, each a text."""

LONGEST: Final = 64
"""Characters of a field."""


def check(home: Path, asked: Parameters) -> JobRequest:
    """Return a request for a card; raises ConfigError that names the field."""
    from torra.tools.desk_reader import reading  # noqa: PLC0415

    if unknown := [*asked.keys() - FIELDS.keys()]:
        raise ConfigError(f"{unknown[0][:40]}: a committee has no such parameter")
    given = {name: asked.get(name) or "" for name in FIELDS}
    fields = {name: one for name, one in given.items() if isinstance(one, str)}
    if fields != given or any(len(one) > LONGEST for one in fields.values()):
        raise ConfigError(f"{', '.join(FIELDS)}: write texts of {LONGEST} characters at most")
    fields["risk"] = fields["risk"] or load_desk(home).committee.risk_profile
    if fields["risk"] not in PROFILES:
        raise ConfigError(f"risk: choose one of {', '.join(PROFILES)}")
    for name in ("again", "hindsight"):
        if fields[name] not in ("", "yes"):
            raise ConfigError(f"{name}: write yes, or leave it out")
    try:
        fields["as_of"] = iso(max(EPOCH, parse(fields["as_of"]))) if fields["as_of"] else ""
    except (ValueError, OverflowError) as error:
        raise ConfigError("as_of: write a moment such as 2026-01-05T10:00Z") from error
    with reading(home) as (reader, _):
        desk = reader()
        fields["symbol"] = desk.instance(fields["symbol"]).id
        now = iso(desk.as_of)
    if fields["as_of"] > now:
        raise ConfigError(f"as_of: {fields['as_of']} is not yet; it is {now} at the desk")
    if fields["hindsight"] and not fields["as_of"]:
        raise ConfigError("hindsight: it is of the past; name its moment with as_of")
    if fields["symbol"] not in desk.profiles:
        own = ", ".join(desk.profiles) or "none"
        raise ConfigError(f"{fields['symbol']} is hosted: name a symbol of the desk, of {own}")
    return JobRequest(fields, fields, fields["symbol"])


def run(home: Path, parameters: Parameters, tell: Tell) -> JobResult:
    """Decide and store the card; raises what `decide` raises."""
    from torra.committee.deciding import CommitteeDesk, CommitteeError, decide  # noqa: PLC0415
    from torra.committee.events import CommitteeStream  # noqa: PLC0415
    from torra.tools.desk_reader import reading  # noqa: PLC0415

    tell("reads the evidence")
    with reading(home) as (reader, database):
        key = key_of(COMMITTEE, parameters)
        stream = CommitteeStream(database, key)

        def happened(event: str, **fields: Any) -> None:
            stream.tell(event, **fields)
            if event == "agent_start":
                tell(f"{fields['agent']} seat, round {fields['round']}")

        as_of = str(parameters["as_of"])
        desk = CommitteeDesk(
            home, reader(), database, os.environ, happened, stream.votes, stream.has_begun,
            partial(has_asker, database, stream.job),
            again=parameters["again"] == "yes",
            as_of=parse(as_of) if as_of else None, hindsight=parameters["hindsight"] == "yes",
        )  # fmt: skip
        risk: Any = parameters["risk"]
        try:
            card = decide(desk, str(parameters["symbol"]), risk)
        except CommitteeError as error:
            stream.error(error.code, str(error), recoverable=False)
            raise
        except ConfigError as error:
            stream.error("REFUSED", str(error), recoverable=True)
            raise
        stream.decision(card)
    return JobResult(card.final_statement, card.card_id)


def at_home(home: Path, asked: Parameters) -> str:
    """Ask from the command line; return the card's document.

    Raises what `run_at_home` raises, and CommitteeError.
    """
    from instance_database import open_home  # noqa: PLC0415

    card_id = run_at_home(home, COMMITTEE, asked)
    with closing(open_home(home)) as database:
        row = card_table.card(database, card_id) or {"document": "{}"}
    return str(row["document"])


COMMITTEE: Final = JobKind("committee", "Committee", check, f"{__name__}:run", light=True)

KINDS: Final = by_name(*job_kinds.KINDS.values(), RADAR, FILM, COMMITTEE)
"""Every kind of job that this program knows."""
