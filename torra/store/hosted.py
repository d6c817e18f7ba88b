"""Stores what other scorers asked at a bar, who debates it, and what was answered.

A question is a key and a hash of everything that was handed over with it. It is claimed by a
process before it is debated, so that one of many debates it; a claim ends with its time, and at
once with its process. An answer that was debated is final. Any other may be asked for anew. The
ticks of hosted streams stand in the tables of the desk's, each key once: what a newer question took
the place of stays here with its record.

Hosted streams have no lease, no epoch and no row in `ticks`: no desk owes them anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Literal

from torra.clock import iso, parse
from torra.config import Instance
from torra.errors import StoreUnavailable
from torra.store.connection import AFTER_ALL, KEY_END, RowDict, Store, TickKey, to_json

HOST: Final = "host:"
"""How the instance of a hosted stream begins: no instance of a desk can be called so."""

FEED: Final = "host"
"""What its feed is called: the bars come with each question."""

HOSTS: Final = (HOST, "host;")
"""What such names lie between, in the order of the tables."""


def is_hosted(name: str) -> bool:
    """Return whether an instance, or the key of a tick, is another scorer's."""
    return name.startswith(HOST)


def hosted_instance(name: str, timeframes: Sequence[str], profile: str = "default") -> Instance:
    """Return the instance of a hosted stream by its name, host:<overlay>:<symbol>."""
    shown = Instance(symbol=name.rpartition(":")[2], timeframes=tuple(timeframes), profile=profile)
    # No desk can give such a name, nor such a feed.
    return shown.model_copy(update={"name": name, "feed": FEED})


@dataclass(frozen=True, slots=True)
class HostedAnswer:
    """What a question was answered before: the dict, its number, and the record if it moved."""

    chart: RowDict
    revision: int
    record: RowDict | None
    final: bool = True


def ask_hosted(
    store: Store,
    key: TickKey,
    question: str,
    owner: str,
    expires: datetime,
    lives: Callable[[str], bool],
    profile: str = "default",
    *,
    waited: bool = False,
) -> HostedAnswer | Literal["ours", "taken"]:
    """Return the final answer of a question; else claim it, unless somebody living has it.

    A claim counts until its time, and not when `lives` says that its owner is gone. `profile`
    is the name of the one that counts for the question. Who `waited` for another one's answer
    takes it though no agent was heard: where a vendor is down nobody asks it again at once.
    """
    with store.transaction():
        row = store.row(
            "SELECT * FROM hosted WHERE torra_key = ? AND asked = ?", key.text, question
        )
        final = row is not None and row["state"] == "final"
        if row is not None and (final or (waited and row["state"] == "open")):
            record = json.loads(row["record"]) if row["record"] else None
            chart = json.loads(row["chart"])
            return HostedAnswer(chart, int(row["revision"]), record, final)
        if row is not None and row["state"] == "claimed" and row["owner"] != owner:
            alive = parse(row["expires"]) > store.now() and lives(str(row["owner"]))
            if alive:
                return "taken"
        store.change(
            "INSERT INTO hosted (torra_key, asked, profile, state, owner, expires, revision, "
            "chart, record, at) VALUES (?, ?, ?, 'claimed', ?, ?, 0, '', '', ?) "
            "ON CONFLICT (torra_key, asked) DO UPDATE SET state = 'claimed', "
            "owner = excluded.owner, expires = excluded.expires, at = excluded.at",
            key.text, question, profile, owner, iso(expires), store.moment(),
        )  # fmt: skip
        return "ours"


def hosted_revision(store: Store, key: TickKey, question: str, owner: str) -> int:
    """Return the number of the answer that is about to be stored, the first is 1.

    First in the transaction that stores it: raises StoreUnavailable when the claim is not
    `owner`'s any more.
    """
    if not store.value(
        "SELECT 1 FROM hosted WHERE torra_key = ? AND asked = ? AND state = 'claimed' "
        "AND owner = ?",
        key.text, question, owner,
    ):  # fmt: skip
        raise StoreUnavailable(f"claim lost: {key.text} is debated by another process by now")
    newest = store.value("SELECT max(revision) FROM hosted WHERE torra_key = ?", key.text)
    return 1 + int(newest or 0)


def put_aside(store: Store, key: TickKey) -> None:
    """Take the newest tick of a key out of the tables, so that a newer answer has its place.

    A final answer keeps its record.
    """
    row = store.row("SELECT record FROM journal WHERE torra_key = ?", key.text)
    if row is not None:
        question = str((json.loads(row["record"]).get("hosted") or {}).get("asked", ""))
        store.change(
            "UPDATE hosted SET record = ? WHERE torra_key = ? AND asked = ? "
            "AND state = 'final'",
            row["record"], key.text, question,
        )  # fmt: skip
    # The chain before its sentiment row, which it references.
    for table in ("journal", "calls", "chains", "sentiment"):
        store.change(f"DELETE FROM {table} WHERE torra_key = ?", key.text)  # noqa: S608


def keep_answer(
    store: Store,
    key: TickKey,
    question: str,
    chart: Mapping[str, Any],
    revision: int,
    *,
    final: bool,
) -> None:
    """Store the answer of a claimed question, inside the transaction that stores its tick."""
    store.change(
        "UPDATE hosted SET state = ?, owner = '', revision = ?, chart = ?, record = '', at = ? "
        "WHERE torra_key = ? AND asked = ?",
        "final" if final else "open", revision, to_json(chart), store.moment(),
        key.text, question,
    )  # fmt: skip


def came_late(store: Store, key: TickKey) -> None:
    """Note in the record of a tick that its host had gone on with L1 before it was stored."""
    store.change(
        "UPDATE journal SET record = json_set(record, '$.hosted.late', json('true')) "
        "WHERE torra_key = ?",
        key.text,
    )


def give_back(store: Store, key: TickKey, question: str, owner: str) -> None:
    """End a claim of ours that led to no answer."""
    store.change(
        "DELETE FROM hosted WHERE torra_key = ? AND asked = ? AND owner = ? "
        "AND state = 'claimed' AND revision = 0",
        key.text, question, owner,
    )  # fmt: skip
    store.change(
        "UPDATE hosted SET state = 'open', owner = '' WHERE torra_key = ? AND asked = ? "
        "AND owner = ? AND state = 'claimed'",
        key.text, question, owner,
    )  # fmt: skip


def hosted_instances(store: Store) -> list[Instance]:
    """Return every hosted stream that has a tick, by name, with the profile that it names."""
    return [
        hosted_instance(name, timeframes, _profile_of(store, name))
        for name, timeframes in hosted_streams(store).items()
    ]


def _profile_of(store: Store, instance: str) -> str:
    # The keys of a stream lie between its name with a bar behind it and the sign after the bar.
    profile = store.value(
        "SELECT profile FROM hosted WHERE torra_key > ? AND torra_key < ? "
        "ORDER BY torra_key DESC LIMIT 1",
        f"{instance}|", f"{instance}{KEY_END}",
    )  # fmt: skip
    return str(profile or "default")


def hosted_streams(store: Store) -> dict[str, list[str]]:
    """Return the timeframes of every hosted stream that has a tick, by its instance."""
    rows = store.tuples(
        "SELECT instance, timeframe FROM verdict_tallies WHERE instance >= ? AND instance < ? "
        "AND ticks > 0 ORDER BY instance, timeframe",
        *HOSTS,
    )
    return {
        instance: [timeframe for _, timeframe in group]
        for instance, group in groupby(rows, itemgetter(0))
    }


def hosted_answer(store: Store, torra_key: str, question: str) -> RowDict | None:
    """Return the chart that answers a question again; None where none is stored."""
    chart = store.value(
        "SELECT chart FROM hosted WHERE torra_key = ? AND asked = ? AND revision > 0",
        torra_key, question,
    )  # fmt: skip
    return json.loads(chart) if chart else None


def hosted_ends(
    store: Store,
    instance: str,
    timeframes: Collection[str] = (),
    begin: datetime | None = None,
    end: datetime | None = None,
) -> list[RowDict]:
    """Return how many answers of a stream stand (done) and were put aside by a newer one.

    The rows are those of `replay_queries.tick_ends`, of the same choice.
    """
    rows = store.rows(
        # Answers are numbered from 1, and the newest one stands.
        "SELECT timeframe, count(*) AS done, coalesce(sum((SELECT max(revision) - 1 FROM hosted h "
        "WHERE h.torra_key = c.torra_key)), 0) AS put_aside FROM chains c WHERE instance = ? "
        "AND close_time BETWEEN ? AND ? GROUP BY timeframe ORDER BY timeframe",
        instance, begin or "", end or AFTER_ALL,
    )  # fmt: skip
    return [
        {"timeframe": row["timeframe"], "state": state, "reason": "", "number": row[state]}
        for row in rows
        if not timeframes or row["timeframe"] in timeframes
        for state in ("done", "put_aside")
        if row[state]
    ]


def tell_outcome(store: Store, torra_key: str, verdict: str, r: float | None) -> bool:
    """Store what the host did at a tick and what it came to; False when it was told before.

    Raises LookupError for a key that has no tick, StoreUnavailable, and ValueError when
    something else was told of it before.
    """
    with store.transaction():
        stored = store.row("SELECT verdict, r FROM hosted_outcomes WHERE torra_key = ?", torra_key)
        if stored is not None:
            if (stored["verdict"], stored["r"]) != (verdict, r):
                raise ValueError(
                    f"{torra_key} was told as {stored['verdict']}, R {stored['r']}, and what was "
                    "told stays"
                )
            return False
        if store.row("SELECT 1 FROM chains WHERE torra_key = ?", torra_key) is None:
            raise LookupError(f"{torra_key} is no tick that is on record")
        store.add(
            "hosted_outcomes",
            {"torra_key": torra_key, "verdict": verdict, "r": r, "at": store.moment()},
        )
        return True


def hosted_outcomes(store: Store, instance: str) -> list[RowDict]:
    """Return what a host told of a stream's bars, oldest first.

    Each row has torra_key, verdict, r, at, and the tick's consensus and l1_consensus.
    """
    return store.rows(
        "SELECT o.torra_key, o.verdict, o.r, o.at, c.consensus, c.l1_consensus FROM chains c "
        "JOIN hosted_outcomes o ON o.torra_key = c.torra_key WHERE c.instance = ? "
        "ORDER BY c.close_time",
        instance,
    )


def hosted_outcome(store: Store, torra_key: str) -> RowDict | None:
    """Return what a host told of a tick: verdict, r and when; None if it told nothing."""
    return store.row("SELECT verdict, r, at FROM hosted_outcomes WHERE torra_key = ?", torra_key)
