"""What happens while a committee sits: a stream of events in the envelope of all streams.

The events are document 004's: committee_start, agent_start, thinking (a busy vendor is asked again
in so many seconds), insight_extracted (the vote of a reply, as soon as it is there),
agent_complete, agent_error and debate_round, then `decision` or `error`, the one terminal event.
Sentences are code's; no words of a model are in them. A stream is found by the key of its job and
owned by it: where the job ends first, its stream ends with it (torra.store.jobs). A second attempt
goes on in a stream that has no end yet. Votes that were stored are not paid again.
torra.store.streams numbers events without a gap, and the pages serve them
(torra.dashboard.screens.streaming).
"""

from __future__ import annotations

from typing import Any, Final

from torra.clock import token
from torra.committee.card import DecisionCard
from torra.store import streams as stream_table
from torra.store.connection import Store
from torra.store.envelopes import Shaped, failure, written
from torra.store.journal import json_object

KIND: Final = "committee"

MOST: Final = 1_000
"""Events that are read of a stream: an attempt has 40 at most."""

DECIDED: Final = (
    "card_id", "decision", "lean", "why", "agreement", "confidence", "consensus_reached",
    "contested", "dissenting_opinions", "source_type", "cost_usd", "final_statement",
)  # fmt: skip
"""Fields of the card that its last event has."""


class CommitteeStream:
    """One stream, written by one attempt of a job at a time."""

    def __init__(self, store: Store, job_key: str) -> None:
        """Go on in the open stream of a job, or begin one; raises StoreUnavailable."""
        self._store, self._key = store, job_key
        row = stream_table.newest_stream(store, KIND, job_key)
        self._before = "" if row is None else str(row["stream_id"])
        self.id = f"{KIND}-{token(8)}" if row is None or row["ended"] else self._before
        stream_table.open_stream(store, self.id, KIND, job_key, job_key)

    def tell(self, event: str, **fields: Any) -> None:
        """Append an event; raises StoreUnavailable."""
        phase = {"phase": "debate" if fields.get("round", 1) > 1 else "analysis"}
        self._append(Shaped(event, {**phase, **fields}))

    def votes(self, asked: str) -> dict[tuple[str, int], dict[str, Any]]:
        """Return the votes that the attempt before had on the same question, by seat and round."""
        found: dict[tuple[str, int], dict[str, Any]] = {}
        is_same = False
        for row in stream_table.events_after(self._store, self._before, 0, MOST):
            payload = json_object(row.payload)
            if row.event == "committee_start":
                is_same = payload["asked"] == asked
            elif is_same and row.event == "insight_extracted":
                found[payload["agent"], payload["round"]] = payload["vote"]
        return found

    def decision(self, card: DecisionCard) -> None:
        """End the stream with a card."""
        fields = card.model_dump(mode="json", include=set(DECIDED))
        self._append(Shaped("decision", {"phase": "decision", **fields}, terminal=True))

    def error(self, code: str, message: str, *, recoverable: bool) -> None:
        """End the stream without a card."""
        self._append(failure(code, message, recoverable))

    def _append(self, event: Shaped) -> None:
        stream_table.append_events(self._store, self.id, self._key, [written(event)])
