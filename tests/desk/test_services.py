"""The runner of a desk: a service goes on whatever its turns raise, and ends within its limit."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from tests.tries import until
from torra.errors import StoreUnavailable
from torra.services import Service, Services

HOUR = 3600.0


def failing(*errors: Exception | None, private: bool = False) -> Service:
    """Return a service whose turns raise these errors, one after the other."""
    left = [*errors]

    def turn() -> None:
        error = left.pop(0)
        if error is not None:
            raise error

    service = Service("odd", HOUR, turn, private=private)
    for _ in errors:
        assert service.turn() == HOUR
    return service


def test_a_failure_is_told_once_of_a_kind_and_again_after_a_turn_that_worked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    locked, odd = StoreUnavailable("locked"), ValueError("odd")
    failing(locked, locked, odd, odd, locked, None, locked)
    assert [record.levelno for record in caplog.records] == [
        logging.WARNING, logging.ERROR, logging.WARNING, logging.WARNING,
    ]  # fmt: skip


def test_of_what_may_hold_a_secret_its_type_alone_is_told(caplog: pytest.LogCaptureFixture) -> None:
    failing(ValueError("https://host/?token=CANARY"), private=True)
    assert "ValueError" in caplog.text and "CANARY" not in caplog.text


def test_without_its_fence_no_turn_is_taken() -> None:
    turns: list[bool] = []
    fences = iter((False, True))
    service = Service("fenced", HOUR, lambda: turns.append(True), fence=lambda: next(fences))
    service.turn()
    assert not turns
    service.turn()
    assert turns


def test_it_turns_when_it_is_woken_and_never_after_its_end() -> None:
    turns: list[str] = []
    service = Service("woken", HOUR, lambda: turns.append(threading.current_thread().name))
    service.start()
    assert not turns and service.running
    service.wake()
    until(lambda: turns == ["woken"])
    service.close()
    service.wake()
    service.start()
    assert turns == ["woken"] and not service.running


def test_services_begin_in_order_and_end_in_the_other_one_whoever_hangs() -> None:
    seen: list[str] = []
    hangs, inside = threading.Event(), threading.Event()

    class Noted(Service):
        def open(self) -> None:
            seen.append(f"open {self.name}")

        def shut(self) -> None:
            seen.append(f"shut {self.name}")

    def turn() -> None:
        inside.set()
        hangs.wait(30)

    services = Services(Noted("a", HOUR, lambda: None), Noted("b", HOUR, turn, at_once=True))
    services.start()
    assert inside.wait(10)
    services.close(0.05)
    assert seen == ["open a", "open b", "shut b", "shut a"]
    hangs.set()


def test_all_that_hang_share_one_wait() -> None:
    """A stop takes as long as its limit, however many hang (3 s in all for a desk)."""
    hangs, inside = threading.Event(), threading.Semaphore(0)

    def turn() -> None:
        inside.release()
        hangs.wait(30)

    services = Services(*(Service(str(at), HOUR, turn, at_once=True) for at in range(5)))
    services.start()
    for _ in range(5):
        assert inside.acquire(timeout=10)
    begun = time.monotonic()
    services.close(1.0)
    assert time.monotonic() - begun < 2.0
    hangs.set()
