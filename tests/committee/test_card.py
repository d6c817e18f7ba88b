"""Evidence that nothing later can move, the card that is made of it, and the command."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from agent_config import MODES
from tests.conftest import Scale
from tests.worlds import invented_company
from tests.worlds.invented_company import turned_folder
from torra.commands.command_line import main
from torra.committee.card import (
    RULES,
    CommitteeQuestion,
    DecisionCard,
    card_of,
    hash_of_evidence,
    name_of_question,
    read_card,
    recount,
    voters,
)
from torra.committee.deciding import by_rules as rules_vote
from torra.committee.deciding import example_card
from torra.committee.evidence import evidence
from torra.committee.example import AS_OF, FILES, SYMBOL, example_desk
from torra.committee.seats import by_rules
from torra.config import OutsideSettings
from torra.evidence.news_digest import NewsItem
from torra.evidence.outside_numbers import FactRow, SeriesRow
from torra.tools.desk_reader import DeskReader

DAY = timedelta(days=1)
DAILY = ("DFII10", "T10YIE", "DTWEXBGS")
"""Series of which gold's seats read a change and a rank."""

FRED = OutsideSettings(sources=("fred", "file"))


@pytest.fixture
def desk() -> Iterator[DeskReader]:
    with example_desk() as reader:
        yield reader


@pytest.fixture(scope="module")
def card() -> DecisionCard:
    return example_card("balanced")


# --- evidence -------------------------------------------------------------------------------------


def test_the_evidence_ends_with_the_last_daily_close(desk: DeskReader) -> None:
    known = evidence(desk, SYMBOL)
    assert known.until == AS_OF.replace(hour=0)
    assert {one.as_of for facts in known.facts.values() for one in facts} == {
        "2026-03-02T00:00:00Z"
    }
    assert known.missing == ("news.regulatory_score", "peers.valuation_rank")


def add_noise(desk: DeskReader, dice: random.Random) -> None:
    """Store what became known after the evidence ends: bars, reports, headlines."""
    # half of the bars are of the day that goes on
    most = dice.choice((80_000, 5_000_000))
    later = AS_OF.replace(hour=0) + timedelta(seconds=dice.randrange(1, most))
    day = pd.DatetimeIndex([pd.Timestamp(later).floor("D")], name="time")
    price = dice.uniform(1.0, 1_000.0)
    bars = pd.DataFrame(
        {"open": price, "high": price, "low": price, "close": price, "volume": 1.0}, index=day
    )
    desk.database.store_bars(SYMBOL, "D1", bars)
    ends = AS_OF.replace(month=1, day=1) - DAY
    figure = dice.choice(["net_income", "revenue", "equity"])
    begins = ends if figure == "equity" else ends.replace(month=1, day=1)
    row = FactRow(SYMBOL, figure, begins, ends, later, dice.uniform(-1e6, 1e6), "USD", "file")
    desk.database.store_facts([row], later)
    item = NewsItem(
        id=f"noise-{dice.random()}", source="invented", topic="invented",
        headline="Example Works is closed down", published=AS_OF - 3 * DAY, first_seen=later,
        score=-1.0, event="regulatory", tickers=(SYMBOL,),
    )  # fmt: skip
    desk.database.store_news([item])


def gold(desk: DeskReader) -> DeskReader:
    """Return the desk with gold in the symbol's place, live, and three years of its series."""
    profile = desk.profiles[SYMBOL].model_copy(update={"outside": FRED})
    spec = profile.symbols[SYMBOL].model_copy(update={"asset": "gold", "ticker": ""})
    first = AS_OF.replace(hour=0) - 1_095 * DAY
    for row in range(1_095):
        at = first + row * DAY
        rows = [
            SeriesRow(name, at, at + DAY, 2.0 + 0.001 * row + 0.1 * number, "fred")
            for number, name in enumerate(DAILY)
        ]
        desk.database.store_series(rows, at + DAY)
    instance = desk.settings.instances[0].model_copy(update={"feed": "mt5"})
    return replace(
        desk,
        settings=desk.settings.model_copy(update={"instances": (instance,)}),
        profiles={SYMBOL: profile.model_copy(update={"symbols": {SYMBOL: spec}})},
    )


def add_series(desk: DeskReader, dice: random.Random) -> None:
    """Store values that became known later: revised ones, late ones, and ones of days to come."""
    end = AS_OF.replace(hour=0)
    later = end + timedelta(seconds=dice.randrange(1, 5_000_000))
    at = end + dice.choice((-dice.randrange(1, 700), -1, 0, dice.randrange(1, 60))) * DAY
    known = dice.choice((later, at + DAY))
    row = SeriesRow(dice.choice(DAILY), at, known, dice.uniform(-50.0, 50.0), "fred")
    desk.database.store_series([row], later)


@pytest.mark.parametrize("asset", ["stock", "gold"])
def test_nothing_that_became_known_later_moves_a_byte_of_the_evidence(
    desk: DeskReader, scaled: Scale, asset: str
) -> None:
    """1,000 cut points at night."""
    dice = random.Random(7)
    desk = gold(desk) if asset == "gold" else desk
    before = evidence(desk, SYMBOL)
    assert len(before.facts) > 1
    for _ in range(scaled(1_000, least=20)):
        add_noise(desk, dice)
        add_series(desk, dice)
        assert evidence(desk, SYMBOL) == before
    assert hash_of_evidence(evidence(desk, SYMBOL)) == hash_of_evidence(before)


def test_the_noise_of_series_is_seen_once_it_is_known(desk: DeskReader) -> None:
    desk, dice = gold(desk), random.Random(7)
    before = evidence(desk, SYMBOL)
    for _ in range(20):
        add_noise(desk, dice)  # a bar of a later day moves the end of the evidence
        add_series(desk, dice)
    later = evidence(replace(desk, as_of=AS_OF + 60 * DAY), SYMBOL, AS_OF + 60 * DAY)
    assert {name for name in before.numbers if name.startswith("macro.")} - {
        name for name, value in later.numbers.items() if value == before.numbers.get(name)
    }
    assert evidence(replace(desk, as_of=AS_OF + 60 * DAY), SYMBOL, AS_OF) == before


def test_a_source_that_is_switched_off_does_not_vote(desk: DeskReader) -> None:
    desk = gold(desk)
    assert [one for one in evidence(desk, SYMBOL).numbers if one.startswith("macro.")]
    profile = desk.profiles[SYMBOL].model_copy(update={"outside": OutsideSettings()})
    known = evidence(replace(desk, profiles={SYMBOL: profile}), SYMBOL)
    assert not [one for one in known.numbers if one.startswith("macro.")]


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_of_the_ticks_is_nothing_to_the_committee(desk: DeskReader, mode: str) -> None:
    """Crypto's outside numbers are read by a firm's and a swarm's ticks alone; here always."""
    desk, end = gold(desk), AS_OF.replace(hour=0)
    profile = desk.profiles[SYMBOL]
    spec = profile.symbols[SYMBOL].model_copy(update={"asset": "crypto"})
    agents = profile.agents.model_copy(update={"mode": mode})
    changed = profile.model_copy(update={"symbols": {SYMBOL: spec}, "agents": agents})
    for name in ("DTWEXBGS", "NASDAQCOM"):
        days = [end - back * DAY for back in range(400, 0, -1)]
        rows = [SeriesRow(name, at, at + DAY, 2.0, "fred") for at in days]
        desk.database.store_series(rows, end)
    known = evidence(replace(desk, profiles={SYMBOL: changed}), SYMBOL)
    assert len(known.facts["fundamental"]) == 2


def test_the_noise_is_seen_once_it_is_known(desk: DeskReader) -> None:
    add_noise(desk, random.Random(7))
    later = DeskReader(
        desk.home, desk.database, desk.settings, desk.profiles, AS_OF + 90 * DAY, desk.now
    )
    assert evidence(later, SYMBOL) != evidence(desk, SYMBOL)
    assert evidence(later, SYMBOL, AS_OF) == evidence(desk, SYMBOL)


def test_an_address_of_a_headline_is_https_or_none(desk: DeskReader) -> None:
    for number, url in enumerate(
        ["https://news.example/a", "http://news.example/b", "javascript:alert(1)",
         "https://news.example/c d", "https://x\n.example"]
    ):  # fmt: skip
        seen = AS_OF - DAY
        item = NewsItem(
            id=f"url-{number}", source="invented", topic="invented",
            headline=f"Example Works does the thing that is number {number * 7919}",
            published=seen, first_seen=seen, url=url, tickers=(SYMBOL,),
        )  # fmt: skip
        desk.database.store_news([item])
    assert evidence(desk, SYMBOL).sources == ("https://news.example/a",)


# --- the card -------------------------------------------------------------------------------------


def test_the_card_says_who_dissents_and_why_it_is_hold(card: DecisionCard) -> None:
    assert (card.lean, card.decision, card.why) == ("buy", "hold", "NO_CONSENSUS")
    assert card.contested and not card.consensus_reached
    assert card.dissenting_opinions == (card.valuation_summary,)
    assert card.final_statement == (
        "EXAMPLE leans to buy. Decision: hold, as agreement 0.65 is under 0.70 and confidence 0.30 "
        "is under 0.60."
    )
    assert card.key_metrics.pe == pytest.approx(49.46, abs=0.01)
    assert card.source_type == "RULES" and card.cost_usd == 0.0


def test_the_same_evidence_is_the_same_card_and_other_evidence_another(card: DecisionCard) -> None:
    again = example_card("balanced")
    assert again.card_id == card.card_id and again.evidence_hash == card.evidence_hash
    turned = example_card("balanced", turned_folder())
    assert turned.card_id != card.card_id and turned.evidence_hash != card.evidence_hash


def test_who_is_asked_and_how_names_the_question(desk: DeskReader) -> None:
    """Another number of rounds, order, model or look is another question of the same evidence."""
    known = evidence(desk, SYMBOL)
    asked = CommitteeQuestion(("openai:a",), 2, "together")
    others = (
        asked._replace(models=("openai:b",)), asked._replace(rounds=1), asked._replace(again=1),
        asked._replace(order="in_turn"), asked._replace(hindsight=True), RULES,
    )  # fmt: skip
    names = {name_of_question(known, one) for one in (asked, *others)}
    assert len(names) == len(others) + 1


def test_every_field_is_required_and_survives_json(card: DecisionCard) -> None:
    schema = DecisionCard.model_json_schema()
    assert set(schema["required"]) == set(schema["properties"])
    assert DecisionCard.model_validate_json(card.model_dump_json()) == card
    for name in schema["required"]:
        part = card.model_dump(mode="json")
        del part[name]
        with pytest.raises(ValueError, match=name):
            DecisionCard.model_validate(part)


def test_a_seat_that_failed_is_an_opponent_and_all_failed_is_no_card(desk: DeskReader) -> None:
    known = evidence(desk, SYMBOL)
    good = by_rules("fundamental", known)
    made = card_of(known, {"fundamental": good, "valuation": None}, "balanced", now=AS_OF)
    assert made is not None
    assert made.final_statement == (
        "EXAMPLE: no quorum, fewer than two seats voted. Decision: hold."
    )
    assert made.weights == {"fundamental": 0.5, "sentiment": 0.0, "valuation": 0.5}
    assert (made.source_type, made.why, made.decision) == ("NO_QUORUM", "NO_QUORUM", "hold")
    assert [(one.failed, one.counted) for one in made.seats] == [
        (False, True), (False, False), (True, True),
    ]  # fmt: skip
    assert card_of(known, {"fundamental": None, "valuation": None}, "balanced", now=AS_OF) is None


def test_other_profiles_are_arithmetic_over_the_same_votes(card: DecisionCard) -> None:
    for profile in ("conservative", "aggressive"):
        other = example_card(profile)
        assert card.under_other_profiles[profile] == other.decision
        again = recount(card, profile)
        same = {"timestamp": "", "elapsed_ms": 0.0}
        assert again.model_copy(update=same) == other.model_copy(update=same)
    assert recount(card, "balanced") is card


def test_votes_to_buy_and_to_reduce_of_one_weight_lean_to_no_side(desk: DeskReader) -> None:
    known = evidence(desk, SYMBOL)
    good = by_rules("fundamental", known)
    bad = by_rules("valuation", known)
    made = card_of(known, {"fundamental": good, "valuation": bad}, "balanced", now=AS_OF)
    assert made is not None and (made.lean, made.agreement) == ("hold", 0.5)
    assert made.final_statement == (
        "EXAMPLE leans to no side. Decision: hold, as no two seats agree and agreement 0.50 is "
        "under 0.70 and confidence 0.00 is under 0.60."
    )


def test_rules_that_stand_in_have_a_card_of_their_own(desk: DeskReader) -> None:
    known = evidence(desk, SYMBOL)
    names = {
        rules_vote(desk, known, "balanced", question).card_id
        for question in (RULES, RULES._replace(stands_in=True), RULES._replace(again=1))
    }
    assert len(names) == 3


def test_a_card_that_was_altered_or_is_of_another_version_is_none(card: DecisionCard) -> None:
    document = card.model_dump_json()
    assert read_card(document) == card
    old = card.model_copy(update={"schema_version": "1.0"}).model_dump_json()
    for other in (
        "",
        "{}",
        "null",
        document[:-2],
        document.replace('"lean":"buy"', '"lean":"up"'),
        old,
    ):
        assert read_card(other) is None


# --- the command ----------------------------------------------------------------------------------


def test_the_example_needs_no_home_no_key_and_no_network(tmp_path: Path) -> None:
    words = ["--home", str(tmp_path / "none"), "committee", "--example", "--json"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0
    document: dict[str, Any] = json.loads(done.stdout)
    assert [one["stance"] for one in document["seats"]] == ["buy", "buy", "reduce"]
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("flag", [["--again"], ["--as-of", "2026-01-01"], ["--hindsight"]])
def test_the_example_refuses_what_it_cannot_mean(flag: list[str]) -> None:
    done = CliRunner().invoke(main, ["committee", "--example", *flag])
    assert done.exit_code == 2
    assert "--example takes --risk alone" in done.stderr


def test_the_shipped_files_are_those_of_the_arithmetic(tmp_path: Path) -> None:
    """Nobody edits a number of the invented company by hand."""
    invented_company.write(tmp_path)
    names = sorted(path.name for path in FILES.iterdir())
    assert names == sorted(path.name for path in tmp_path.iterdir())
    for name in names:
        assert (tmp_path / name).read_bytes() == (FILES / name).read_bytes()


def test_a_card_says_who_voted_and_that_rules_are_free(card: DecisionCard) -> None:
    assert voters(card) == "The rules voted: free."
    paid = card.model_copy(update={"models": ("a:b",), "cost_usd": 0.01, "hindsight": True})
    assert voters(paid) == (
        "a:b voted for 0.0100 USD. They may know what came after: it counts for nothing."
    )
    stood_in = card.model_copy(update={"source_type": "RULES_STOOD_IN"})
    assert voters(stood_in) == (
        "The rules stood in for free: no model could be asked, and `torra doctor` says why."
    )
