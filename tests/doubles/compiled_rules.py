"""Rules of addresses, compiled once for all apps of a test run.

For every rule of every app werkzeug writes and compiles two functions that build an address. What
they are depends on nothing but the rule, and the apps of a run share one table of a hundred rules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from werkzeug.routing import Rule

Builder = Callable[..., tuple[str, str]]


@cache
def share() -> None:
    """Let all rules of this process that read alike have the same functions."""
    compiled: Callable[[Rule, bool], Builder] = Rule._compile_builder
    known: dict[tuple[Any, ...], Builder] = {}

    def once(rule: Rule, append_unknown: bool = True) -> Builder:
        if rule.defaults:
            return compiled(rule, append_unknown)
        key = (rule.rule, *rule._trace, append_unknown)
        if key not in known:
            known[key] = compiled(rule, append_unknown)
        return known[key]

    rules: Any = Rule
    rules._compile_builder = once
