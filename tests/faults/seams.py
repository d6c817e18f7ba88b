"""What a planted fault puts around a public name: the effect of a safeguard that is missing.

`planting.Seam` adds the line to a copy of the program, `send = seams.skips()(send)`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import Any
from unittest.mock import patch

Function = Callable[..., Any]
Wrapper = Callable[[Function], Function]


def becomes(other: Function) -> Wrapper:
    """Call another function in the place of this one."""
    return lambda function: wraps(function)(other)


def skips(result: object = None) -> Wrapper:
    """Do nothing, and return the same result each time."""
    return becomes(lambda *_, **__: result)


def gives(change: Callable[[Any], Any]) -> Wrapper:
    """Return what the change makes of the result."""
    return lambda function: wraps(function)(
        lambda *args, **named: change(function(*args, **named)),
    )


def passes(**changes: Callable[[Any], Any]) -> Wrapper:
    """Call the function with what the changes make of its arguments, each by its name."""

    def wrap(function: Function) -> Function:
        form = signature(function)

        @wraps(function)
        def call(*args: object, **named: object) -> object:
            values = form.bind(*args, **named)
            values.apply_defaults()
            for name, change in changes.items():
                values.arguments[name] = change(values.arguments[name])
            return function(*values.args, **values.kwargs)

        return call

    return wrap


def rewrites(pattern: str, by: str) -> Wrapper:
    """Rewrite the statements of each connection that the function opens."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            return super().execute(re.sub(pattern, by, sql), *values)

    def wrap(connect: Function) -> Function:
        @wraps(connect)
        def call(*args: object, **named: object) -> object:
            with patch("sqlite3.connect", partial(sqlite3.connect, factory=Connection)):
                return connect(*args, **named)

        return call

    return wrap
