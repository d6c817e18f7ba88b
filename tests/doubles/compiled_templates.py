"""Templates, compiled once for all apps of a test run, and strict about names that nobody gave."""

from __future__ import annotations

from jinja2 import StrictUndefined
from jinja2.bccache import Bucket, BytecodeCache


class CompiledTemplates(BytecodeCache):
    """Keeps what was compiled in this process; the key and the checksum are Jinja's own."""

    def __init__(self) -> None:
        self.known: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.known:
            bucket.bytecode_from_string(self.known[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.known[bucket.key] = bucket.bytecode_to_string()


class NobodyGave(StrictUndefined):
    """A name that a template uses and no code gives: it may be asked for, and nothing else.

    In a desk it would be written as nothing, and nobody would see that a word is missing.
    """

    __slots__ = ()

    def __bool__(self) -> bool:  # type: ignore[override]
        return False
