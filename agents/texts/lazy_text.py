"""Lazy text fields of frozen values: the text is written when somebody first reads it.

A prompt is long, and a provider that reads values and no prose never looks at it. So a field that
`texts` names may be given `later(write)` in place of its text: the first read calls `write` and
keeps the result. In every other respect such a field is text: comparison, hash, repr, `replace`,
`asdict`, copies and pickles read it. `write` must always give the same text; two threads that read
at once may both call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")


def lazy_text(write: Callable[[], str]) -> str:
    """Return a stand-in that only a lazy text field may hold, and that becomes text when read."""
    return cast(str, _Later(write))


def texts(*names: str) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that lets the named fields of a slotted dataclass take `later`."""

    def decorate(owner: type[T]) -> type[T]:
        for name in names:
            # The slot stays underneath and keeps the value; only reading it goes another way.
            setattr(owner, name, _Text(owner.__dict__[name]))
        return owner

    return decorate


class _Later:
    """A text that is not written yet."""

    __slots__ = ("write",)

    def __init__(self, write: Callable[[], str]) -> None:
        self.write: Final = write


class _Text:
    """The slot of a field, read as text."""

    __slots__ = ("_get", "_set")

    def __init__(self, slot: Any) -> None:
        self._get = slot.__get__
        self._set = slot.__set__

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = self._get(instance, owner)
        if type(value) is _Later:
            value = value.write()
            # Through the slot: the dataclass is frozen and would refuse.
            self._set(instance, value)
        return value

    def __set__(self, instance: object, value: object) -> None:
        self._set(instance, value)
