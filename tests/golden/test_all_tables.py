"""The tables of a desk's database, after a few ticks, are those of the goldens."""

from __future__ import annotations

import json

from tests.golden import parts

EMPTY = {
    *("account_marks", "agent_standing", "fundamentals", "hosted", "hosted_outcomes", "latches"),
    *("notices", "notice_outbox", "notice_services", "provider_blocks", "radar_runs", "spreads"),
    *("stream_events", "streams", "tool_calls", "trade_notes", "trade_tags", "veto_stretches"),
    *("cards", "chats", "vetoed_openings", "win_rates"),
}
"""Tables in which no desk of this part has a row."""


def test_the_tables_are_as_in_the_goldens() -> None:
    parts.check("tables")


def test_every_table_but_those_has_a_row_in_a_golden() -> None:
    known, filled = set[str](), set[str]()
    for name, text in parts.committed("tables").items():
        if name.endswith(".json") and name != parts.MADE_WITH:
            desk = json.loads(text)
            known |= {*desk}
            filled |= {
                table
                for table, rows in desk.items()
                if (rows["rows"] if isinstance(rows, dict) else rows)
            }
    assert known - filled == EMPTY
