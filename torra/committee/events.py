"""What happens while a committee sits: a stream of events in the envelope of all streams.

The events are document 004's: committee_start, agent_start, agent_complete, agent_error and
debate_round, then `decision` or `error`, the one terminal event. Sentences are code's; no words of
a model are in them. A stream is found by the key of its job. A second attempt of the job goes on in
a stream that has no end yet. torra.store.streams numbers events without a gap, and the pages serve
them (torra.dashboard.screens.streaming).
"""

from __future__ import annotations

from typing import Any, Final

from torra.clock import token
from torra.committee.card import DecisionCard
from torra.store import streams as stream_table
from torra.store.connection import Store
from torra.store.envelopes import Shaped, failure, written

KIND: Final = "committee"

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
        self.id = f"{KIND}-{token(8)}" if row is None or row["ended"] else str(row["stream_id"])
        stream_table.open_stream(store, self.id, KIND, job_key, job_key)

    def tell(self, event: str, **fields: Any) -> None:
        """Append an event; raises StoreUnavailable."""
        phase = {"phase": "debate" if fields.get("round", 1) > 1 else "analysis"}
        self._append(Shaped(event, {**phase, **fields}))

    def decision(self, card: DecisionCard) -> None:
        """End the stream with a card."""
        fields = card.model_dump(mode="json", include=set(DECIDED))
        self._append(Shaped("decision", {"phase": "decision", **fields}, terminal=True))

    def error(self, code: str, message: str, *, recoverable: bool) -> None:
        """End the stream without a card."""
        self._append(failure(code, message, recoverable))

    def _append(self, event: Shaped) -> None:
        stream_table.append_events(self._store, self.id, self._key, [written(event)])
