"""Why a reply ended: each word that a vendor documents has one of ours, with its own remedy."""

from __future__ import annotations

from typing import Any, Final, get_args

import httpx2
import pytest

from agents.contracts import ModelUnavailable, Request
from agents.texts import door
from tests.cases import cases
from tests.doubles.switchboards import VENDORS, a_request, bench, body
from tests.later import Later
from torra.desk.models.remedies import BROKEN, REMEDIES, explained
from torra.providers.vendors.addresses import key_sign
from torra.providers.vendors.table import stop_word, vendors

anthropic, google, openai = (
    Later("anthropic.types"),
    Later("google.genai.types"),
    Later("openai.types.chat.chat_completion"),
)

WORDS: Final = {vendor: vendors()[vendor].stops for vendor in VENDORS}
STOPS: Final = {
    vendor: {told: word for word, names in rows.items() for told in names.split()}
    for vendor, rows in WORDS.items()
}
ROWS: Final = [(vendor, told, word) for vendor in STOPS for told, word in STOPS[vendor].items()]
TEXT: Final = '{"symbol": "XAUUSD"}'
READ: Final = frozenset(("end", *door.ODD, "empty"))
"""Ends after which an object counts."""
TOLD: Final = frozenset((*door.UNUSABLE, *door.ODD, "empty"))
"""Ends that say why there is none."""


def documented(vendor: str) -> set[str]:
    """Return the words of a vendor, as the installed SDK has them."""
    if vendor == "anthropic":
        return set(get_args(anthropic.StopReason))
    if vendor == "google":
        return {reason.value for reason in google.FinishReason}
    return set(get_args(openai.Choice.model_fields["finish_reason"].annotation))


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_word_of_the_sdk_is_in_the_table(vendor: str) -> None:
    words = documented(vendor)
    assert words <= STOPS[vendor].keys(), "a new word of the vendor: give it one of ours"
    if vendor != "openai_compatible":  # other servers have words of their own
        assert words == STOPS[vendor].keys(), "a word that the vendor has no more"


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_word_stands_once_and_in_one_row(vendor: str) -> None:
    names = " ".join(WORDS[vendor].values()).split()
    assert len(names) == len(set(names)) == len(STOPS[vendor])
    assert set(WORDS[vendor]) <= READ | TOLD


@cases(("vendor", "told", "word"), ROWS)
def test_how_a_reply_ended_is_told_in_our_word(vendor: str, told: str, word: str) -> None:
    with bench(lambda _: httpx2.Response(200, json=body(vendor, TEXT, told))) as way:
        found = way.ask(vendor)
    assert (found.stop_reason, found.text) == (word, TEXT)
    request = a_request(found.model)
    if word in READ:
        assert door.answered(found, request, "XAUUSD")
    else:
        assert refusal(found, request).detail == word
    with bench(lambda _: httpx2.Response(200, json=body(vendor, "", told))) as way:
        found = way.ask(vendor)
    assert refusal(found, request).detail == ("empty" if word == "end" else word)


def refusal(completion: Any, request: Request) -> ModelUnavailable:
    with pytest.raises(ModelUnavailable) as caught:
        door.answered(completion, request, "XAUUSD")
    return caught.value


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_word_that_nobody_documents_is_other_and_not_kept(vendor: str) -> None:
    with bench(lambda _: httpx2.Response(200, json=body(vendor, TEXT, "sk-canary"))) as way:
        assert "sk-canary" not in repr(way.ask(vendor))
    assert stop_word(vendor, "sk-canary") == "other"
    assert stop_word(vendor, "") == "end"


def test_every_reason_for_which_google_blocks_a_prompt_is_the_filter() -> None:
    reasons = iter(google.BlockedReason)

    def answer(_: httpx2.Request) -> httpx2.Response:
        blocked = {"candidates": [], "promptFeedback": {"blockReason": next(reasons).value}}
        return httpx2.Response(200, json=body("google") | blocked)

    with bench(answer) as way:
        told = {way.ask("google").stop_reason for _ in google.BlockedReason}
    assert told == {"filter"}


# --- remedies -------------------------------------------------------------------------------------

SIGN: Final = key_sign("openai_compatible", {})
OURS: Final = (*sorted(TOLD), "echo", "two objects", "not JSON")


def told(reason: str, detail: str) -> tuple[str, str]:
    return explained(reason, detail, SIGN, 15.0)


@cases("detail", OURS)
def test_each_word_has_its_own_sentence_and_its_own_remedy(detail: str) -> None:
    said, remedy = told(door.UNUSABLE.get(detail, "garbage"), detail)
    assert (said, remedy) != BROKEN and "{" not in said + remedy
    others = [other for other in OURS if other != detail]
    others_told = [told(door.UNUSABLE.get(other, "garbage"), other) for other in others]
    assert said not in [one for one, _ in others_told]
    assert remedy not in [one for _, one in others_told]


def test_no_two_rows_share_a_sentence_or_a_remedy() -> None:
    for column in zip(*REMEDIES.values(), strict=True):
        assert len(set(column)) == len(REMEDIES)


@cases("symbol", ["429", "length", "echo", "", "401: the key was refused"])
def test_another_symbol_is_told_as_that_whatever_its_name(symbol: str) -> None:
    assert told("wrong_symbol", symbol)[0] == "the reply is about another symbol"


def test_a_detail_says_more_behind_its_word() -> None:
    behind = "length; anthropic: 429; asked in the form prompt"
    assert told("garbage", behind) == told("garbage", "length")
    assert told("garbage", "adjustments.momentum: float_type")[0] == "the reply cannot be read"
