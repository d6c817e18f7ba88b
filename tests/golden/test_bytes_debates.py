"""Debates ask and answer what they did, to the byte."""

from __future__ import annotations

from tests.golden import parts


def test_debates_ask_and_answer_the_same_bytes() -> None:
    parts.check("bytes_debates")
