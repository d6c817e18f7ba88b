"""Notices for programs and for the browser: what was told, by number, oldest first.

The browser's own notifications (static/notices.js) are made of it. No page shows a list: `torra
notices` does. Every text is cleaned again, for a database may have been written by others. A
dashboard without a database has none. Nothing here writes.
"""

from __future__ import annotations

from typing import Final

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.routes import Api, Fields
from torra.dashboard.view import list_query
from torra.dashboard.view.rendering import state
from torra.exhibits import figures
from torra.store import notices as notice_table

AT_ONCE: Final = 50
MOST_DIGITS: Final = 18
"""Digits of a number: more would not fit into an integer of SQLite."""

LONGEST: Final = 600
TEXTS: Final = ("key", "kind", "level", "title", "text", "instance", "desk_time", "at")
"""Columns of a notice that are text; `silent` ones are listed, and nobody is called for them."""


def api_notices() -> ResponseReturnValue:
    """Answer notices, oldest first; `newest` is what to ask as `after` then.

    Without `after` these are the newest ones.
    """
    text = request.args.get("after")
    if text is not None and not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        list_query.refuse("after is a number")
    behind = state().backing
    if behind is None:
        return jsonify(notices=[], newest=0)
    newest = notice_table.newest_notice(behind.database)
    after = max(0, newest - AT_ONCE) if text is None else int(text)
    rows = notice_table.notices_after(behind.database, after, AT_ONCE)
    return jsonify(
        # a smaller number than `after`: another database is there, such as one that was restored
        notices=[
            {name: figures.sanitize(row[name], LONGEST) for name in TEXTS}
            | {"id": row["id"], "silent": bool(row["silent"])}
            for row in rows
        ],
        newest=rows[-1]["id"] if rows else newest,
    )


AFTER: Final[Fields] = {
    "after": {
        "type": "integer",
        "minimum": 0,
        "description": "Only notices with a greater number.",
    }
}

ROUTES = (Api("/api/v1/notices", "api_notices", api_notices, query=AFTER),)
