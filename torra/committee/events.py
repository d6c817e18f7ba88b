"""What happens while a committee sits: a stream of events in the envelope of all streams.

The events are document 004's: committee_start, agent_start, thinking (a busy vendor is asked again
in so many seconds), insight_extracted (the vote of a reply, as soon as it is there),
agent_complete, agent_error and debate_round, then `decision` or `error`, the one terminal event.
Sentences are code's; no words of a model are in them. A job has one stream, which its key owns:
where the job ends first, its stream ends with it (torra.store.jobs). A second attempt goes on in
it. Votes that were stored are not paid again, whichever job had them.
torra.store.streams numbers events without a gap, and the pages serve them
(torra.dashboard.screens.streaming).
"""

from __future__ import annotations

from typing import Any, Final

from torra.clock import token
from torra.committee.card import DecisionCard
from torra.store import jobs as job_table
from torra.store import streams as stream_table
from torra.store.connection import Store
from torra.store.envelopes import Shaped, failure, written
from torra.store.journal import json_object

KIND: Final = "committee"

DECIDED: Final = (
    "card_id", "decision", "lean", "why", "agreement", "confidence", "consensus_reached",
    "contested", "dissenting_opinions", "source_type", "cost_usd", "final_statement",
)  # fmt: skip
"""Fields of the card that its last event has."""


def stream_of_job(number: int) -> str:
    """Return the id of the stream of a job."""
    return f"{KIND}-{number}"


class CommitteeStream:
    """One stream, written by one attempt of a job at a time."""

    def __init__(self, store: Store, job_key: str) -> None:
        """Go on in the stream of the job of a key that runs, or begin it.

        A command that asks without a job goes on in the open stream of the key, or begins one.
        Raises StoreUnavailable.
        """
        self._store, self._key = store, job_key
        row = stream_table.newest_stream(store, KIND, job_key)
        job = job_table.newest_job(store, key=job_key, state="running")
        self.job = job["id"] if job else 0
        if self.job:
            self.id = stream_of_job(self.job)
        else:
            self.id = f"{KIND}-{token(8)}" if row is None or row["ended"] else row["stream_id"]
        stream_table.open_stream(store, self.id, KIND, job_key, job_key)

    def tell(self, event: str, **fields: Any) -> None:
        """Append an event; raises StoreUnavailable."""
        phase = {"phase": "debate" if fields.get("round", 1) > 1 else "analysis"}
        self._append(Shaped(event, {**phase, **fields}))

    def votes(self, asked: str) -> dict[tuple[str, int], dict[str, Any]]:
        """Return what is stored of a question by seat and round: vote and model."""
        return {
            (payload["agent"], payload["round"]): payload
            for _, payload in self._payloads("insight_extracted", asked)
        }

    def has_begun(self, asked: str) -> bool:
        """Return whether this stream has begun with a question: an attempt before asked it."""
        return any(
            stream_id == self.id for stream_id, _ in self._payloads("committee_start", asked)
        )

    def _payloads(self, event: str, asked: str) -> list[tuple[str, dict[str, Any]]]:
        rows = stream_table.events_named(self._store, KIND, event, "asked", asked)
        return [(row["stream_id"], json_object(row["payload"])) for row in rows]

    def decision(self, card: DecisionCard) -> None:
        """End the stream with a card."""
        fields = card.model_dump(mode="json", include=set(DECIDED))
        self._append(Shaped("decision", {"phase": "decision", **fields}, terminal=True))

    def error(self, code: str, message: str, *, recoverable: bool) -> None:
        """End the stream without a card."""
        self._append(failure(code, message, recoverable))

    def _append(self, event: Shaped) -> None:
        stream_table.append_events(self._store, self.id, self._key, [written(event)])
