"""Text that is written when somebody first reads it, as a field of a frozen value.

A prompt is long, and with a provider that reads values and no prose nobody may ever look at it. So
a field that `texts` names may be given `later(write)` in place of its text: whoever reads the field
gets the text, written then and kept. To everybody else such a field is text: comparison, hash,
repr, `replace`, `asdict`, copies and pickles read it. `write` must give the same text whenever it
is called; two threads that read at once may both call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")


def later(write: Callable[[], str]) -> str:
    """Return what stands in a field of text until it is read; nowhere else is it text."""
    return cast(str, _Later(write))


def texts(*names: str) -> Callable[[type[T]], type[T]]:
    """Let the named fields of a dataclass with slots take `later`."""

    def decorate(owner: type[T]) -> type[T]:
        for name in names:
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
            self._set(instance, value)
        return value

    def __set__(self, instance: object, value: object) -> None:
        self._set(instance, value)
