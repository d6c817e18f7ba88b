"""Why no reply could be used: each word has a sentence and a remedy of its own."""

from __future__ import annotations

from typing import Final

from agents.texts import door
from tests.cases import cases
from torra.desk.models.remedies import BROKEN, REMEDIES, explained
from torra.providers.vendors.addresses import key_sign

SIGN: Final = key_sign("openai_compatible", {})
WORDS: Final = sorted({*door.UNUSABLE, *door.ODD, "empty", "echo", "two objects", "not JSON"})


def sentences(reason: str, detail: str) -> tuple[str, str]:
    return explained(reason, detail, SIGN, 15.0)


def test_each_word_has_its_own_sentence_and_its_own_remedy() -> None:
    rows = [sentences(door.UNUSABLE.get(word, "garbage"), word) for word in WORDS]
    assert BROKEN not in rows and "{" not in str(rows)
    for column in (*zip(*rows, strict=True), *zip(*REMEDIES.values(), strict=True)):
        assert len(set(column)) == len(column)


@cases("symbol", ["429", "length", "echo", "", "401: the key was refused"])
def test_another_symbol_is_that_whatever_its_name(symbol: str) -> None:
    assert sentences("wrong_symbol", symbol)[0] == "the reply is about another symbol"


def test_a_detail_says_more_behind_its_word() -> None:
    behind = "length; anthropic: 429; asked in the form prompt"
    assert sentences("garbage", behind) == sentences("garbage", "length")
    garbage = sentences("garbage", "adjustments.momentum: float_type")
    assert garbage[0] == "the reply cannot be read"
