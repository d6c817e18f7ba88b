"""One browser for all: who borrows it finds it empty, and who gave it back has the thread back."""

from __future__ import annotations

import asyncio

import pytest

from tests.doubles.browser import chromium, needs_browser

pytestmark = needs_browser


async def something() -> str:
    await asyncio.sleep(0)
    return "done"


def test_it_is_lent_empty_and_leaves_the_thread() -> None:
    with chromium() as first:
        page = first.new_context().new_page()
        page.goto("data:text/html,<title>left open</title>")
        assert page.title() == "left open"
        with pytest.raises(RuntimeError, match="is lent"), chromium():
            pass
    assert asyncio.run(something()) == "done"
    with chromium() as second:
        assert second is first and second.contexts == []
        assert second.new_page().title() == ""
