"""Notices for programs and for the browser: what was told, by number, oldest first.

The browser's own notifications (static/notices.js) are made of it. No page shows a list: `torra
notices` does. A dashboard without a database has none. Nothing here writes.
"""

from __future__ import annotations

from typing import Final

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.routes import Api, Fields
from torra.dashboard.view import list_query
from torra.dashboard.view.rendering import state
from torra.notices import listing

MOST_DIGITS: Final = 18
"""Digits of a number: more would not fit into an integer of SQLite."""


def api_notices() -> ResponseReturnValue:
    """Answer notices, oldest first; `newest` is what to ask as `after` then.

    Without `after` these are the newest ones.
    """
    text = request.args.get("after")
    if text is not None and not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        list_query.refuse("after is a number")
    behind = state().backing
    if behind is None:
        return jsonify(notices=[], newest=0, services=[])
    return jsonify(listing.document(behind.database, None if text is None else int(text)))


AFTER: Final[Fields] = {
    "after": {
        "type": "integer",
        "minimum": 0,
        "description": "Only notices with a greater number.",
    }
}

ROUTES = (Api("/api/v1/notices", "api_notices", api_notices, query=AFTER),)
