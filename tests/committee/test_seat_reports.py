"""What a seat says: rules by their limits, a reply by its fields, a second vote by new evidence."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import Scale
from tests.worlds.invented_company import turned_folder
from torra.committee.evidence import ROWS, CommitteeEvidence, SeatRow, evidence
from torra.committee.example import SYMBOL, example_desk
from torra.committee.seats import (
    DROPPED,
    STANCES,
    SWAYED,
    TRUSTS,
    UNGROUNDED,
    SeatReport,
    by_rules,
    falsifiers_of,
    leans,
    reply_schema,
    report_of,
    second_vote,
    vote_of,
)
from torra.committee.votes import SEATS, Seat


@pytest.fixture(scope="module")
def known() -> Iterator[CommitteeEvidence]:
    with example_desk() as reader:
        yield evidence(reader, SYMBOL)


@pytest.fixture(scope="module")
def turned() -> Iterator[CommitteeEvidence]:
    with example_desk(turned_folder()) as reader:
        yield evidence(reader, SYMBOL)


def reply(**changes: Any) -> dict[str, Any]:
    return {
        "stance": 1, "confidence": "medium", "claim": "It earns well.",
        "points_for": ["company.roic_pct"], "points_against": [], "falsifiers": [], **changes,
    }  # fmt: skip


def report(known: CommitteeEvidence, **changes: Any) -> SeatReport:
    found = report_of(reply(**changes), "fundamental", known)
    assert found is not None
    return found


# --- rules ----------------------------------------------------------------------------------------


def test_evidence_turned_round_turns_every_vote(
    known: CommitteeEvidence, turned: CommitteeEvidence
) -> None:
    votes = {seat: (by_rules(seat, known), by_rules(seat, turned)) for seat in SEATS}
    for seat, (good, bad) in votes.items():
        assert good is not None and bad is not None, seat
        assert good.stance == -bad.stance != 0, seat
        assert good.points_for and not good.flags


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.seat}-{row.asset}-{row.feature}")
def test_each_limit_leans_in_full_and_the_middle_not_at_all(row: SeatRow) -> None:
    assert row.lean(row.reduce) == pytest.approx(-1.0)
    assert row.lean(row.buy) == pytest.approx(1.0)
    assert row.lean((row.reduce + row.buy) / 2.0) == pytest.approx(0.0)
    assert row.lean(1e300) in (-1.0, 1.0)


def test_a_seat_of_which_nothing_is_known_abstains(known: CommitteeEvidence) -> None:
    assert by_rules("sentiment", _without(known, "sentiment")) is None


def _without(known: CommitteeEvidence, seat: Seat) -> CommitteeEvidence:
    facts = {name: those for name, those in known.facts.items() if name != seat}
    return replace(known, facts=facts)


# --- replies --------------------------------------------------------------------------------------


def test_a_vote_is_read_from_its_fields(known: CommitteeEvidence) -> None:
    found = report(known)
    assert (found.stance, found.trust, found.flags) == (1, "medium", ())
    assert found.points_for == ("company.roic_pct",)
    assert found.vote.weight == pytest.approx(0.75)


@pytest.mark.parametrize(
    "broken",
    [
        None, "buy", 1, [], {}, {"claim": "BUY, with high confidence"},
        reply(stance="1"), reply(stance=True), reply(stance=2), reply(stance=1.0),
        reply(confidence="HIGH"), reply(confidence=1), reply(confidence=["high"]),
    ],
)  # fmt: skip
def test_no_vote_comes_from_prose_or_another_shape(known: CommitteeEvidence, broken: Any) -> None:
    assert report_of(broken, "fundamental", known) is None


def test_a_citation_stands_on_the_side_to_which_its_fact_leans(known: CommitteeEvidence) -> None:
    found = report(known, points_for=[], points_against=["company.roic_pct"])
    assert found.points_for == ("company.roic_pct",)
    sold = report(known, stance=-1)
    assert sold.points_for == () and sold.points_against == ("company.roic_pct",)
    assert UNGROUNDED in sold.flags
    assert sold.vote.weight == pytest.approx(0.75 * 0.3)


def test_the_strongest_point_stands_first_in_whatever_order_a_model_names_it(
    known: CommitteeEvidence,
) -> None:
    found = leans("fundamental", known)
    names = [one for one in found if found[one] > 0.0]
    assert report(known, points_for=names[::-1]).points_for == tuple(names[:4])


@pytest.mark.parametrize("asset", sorted({row.asset for row in ROWS}))
def test_each_class_can_seat_every_seat_with_what_its_rows_read(asset: str) -> None:
    """A class with one row of a seat is not without that seat."""
    with example_desk() as reader:
        profile = reader.profiles[SYMBOL]
        spec = profile.symbols[SYMBOL].model_copy(update={"asset": asset})
        profiles = {SYMBOL: profile.model_copy(update={"symbols": {SYMBOL: spec}})}
        seated = evidence(replace(reader, profiles=profiles), SYMBOL).facts
    rows = [row for row in ROWS if row.asset == asset]
    assert {row.seat for row in rows} == {*SEATS}
    if sum(row.seat == "valuation" for row in rows) == 1:
        assert [one.id.partition("/")[2] for one in seated["valuation"]] == ["price.rank_3y"]


def test_a_dropped_citation_stays_dropped_when_a_vote_is_read_again(
    known: CommitteeEvidence,
) -> None:
    for found in (report(known), report(known, points_for=["company.roic_pct", "of my own"])):
        again = report_of(vote_of(found), "fundamental", known)
        assert again is not None and "of my own" not in str(vote_of(found))
        assert (again.vote, again.flags, again.cited) == (found.vote, found.flags, found.cited)


def test_what_the_evidence_does_not_hold_is_no_citation(known: CommitteeEvidence) -> None:
    found = report(known, points_for=["company.roic_pct", "company.magic", "news.score"])
    assert found.points_for == ("company.roic_pct",)
    assert found.flags == (DROPPED,)
    assert UNGROUNDED in report(known, points_for=["company.magic"]).flags


def test_the_schema_names_every_field_and_only_known_features(known: CommitteeEvidence) -> None:
    schema = reply_schema([*leans("fundamental", known)])
    assert set(schema["required"]) == set(schema["properties"]) == set(reply())
    assert "company.roic_pct" in schema["properties"]["points_for"]["items"]["enum"]


# --- the second round -----------------------------------------------------------------------------


def test_a_changed_vote_needs_a_new_citation_of_the_new_side(known: CommitteeEvidence) -> None:
    first = report(known, stance=0, points_for=["company.roic_pct"])
    swayed = second_vote(first, report(known, stance=1), known)
    assert (swayed.stance, swayed.flags) == (0, (SWAYED,))
    fresh = report(known, stance=1, points_for=["company.roic_pct", "company.f_score"])
    assert second_vote(first, fresh, known) == fresh


def test_a_higher_trust_needs_a_new_citation_and_a_lower_one_none(
    known: CommitteeEvidence,
) -> None:
    first = report(known)
    assert second_vote(first, report(known, confidence="high"), known).flags == (SWAYED,)
    lower = report(known, confidence="low")
    assert second_vote(first, lower, known) == lower


def test_hostile_replies_and_second_rounds_never_sway_or_rise_without_evidence(
    known: CommitteeEvidence, scaled: Scale
) -> None:
    """10,000 of each at night."""
    dice = random.Random(70)
    features = [*leans("fundamental", known), "company.magic", "BUY", "", None, 7]
    odd = [None, True, "1", 1.0, 2, -2, [], {}, "buy", "high", "HIGH", {"stance": 1}]
    for _ in range(scaled(10_000, least=300)):
        first, second = (
            report_of(_odd_reply(dice, features, odd), "fundamental", known) for _ in range(2)
        )
        if first is None or second is None:
            continue
        counted = second_vote(first, second, known)
        new = {*second.points_for, *second.points_against} - {
            *first.points_for, *first.points_against,
        }  # fmt: skip
        rose = TRUSTS.index(counted.trust) < TRUSTS.index(first.trust)
        if counted.stance != first.stance or rose:
            assert new, "a vote moved without new evidence"
            found = leans("fundamental", known)
            assert counted.stance == 0 or any(found[one] * counted.stance > 0 for one in new)


def _odd_reply(dice: random.Random, features: list[Any], odd: list[Any]) -> Any:
    if dice.random() < 0.1:
        return dice.choice(odd)
    made = reply(
        stance=dice.choice([*STANCES]),
        confidence=dice.choice(TRUSTS),
        points_for=dice.choices(features, k=dice.randrange(5)),
        points_against=dice.choices(features, k=dice.randrange(5)),
    )
    for name in dice.sample([*made], k=dice.choice((0, 0, 0, 1, 2))):
        made[name] = dice.choice(odd)
    return made


def test_a_citation_beyond_the_points_that_are_kept_is_not_new_in_the_second_round(
    known: CommitteeEvidence,
) -> None:
    """A seat that named everything in the first round has nothing new to name in the second."""
    every = [*leans("fundamental", known)]
    first = report(known, points_for=every)
    left = [one for one in every if one not in (*first.points_for, *first.points_against)]
    assert left and first.cited == tuple(every)
    for one in left:
        for changed in ({"confidence": "high"}, {"stance": -1}):
            second = report(known, points_for=[one], **changed)
            assert second_vote(first, second, known).flags == (*first.flags, SWAYED)
    again = report_of(vote_of(first), "fundamental", known)
    assert again is not None and (again.vote, again.cited) == (first.vote, first.cited)


# --- what would speak against it ------------------------------------------------------------------


def test_a_falsifier_is_where_a_point_stops_to_lean(known: CommitteeEvidence) -> None:
    """At the value that is named the feature leans nowhere, and just before it the vote's way."""
    assert falsifiers_of(report(known, points_for=["company.f_score"]), known) == (
        "The F-score falls to 4 of 9.",
    )
    found = by_rules("valuation", known)
    assert found is not None and found.stance == -1
    assert falsifiers_of(found, known)[0] == (
        "How dear the share is among its five years falls to 50 of 100."
    )
    for row in ROWS:
        assert row.lean(row.value_at(0.0)) == pytest.approx(0.0)
        assert row.lean(row.value_at(0.5)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("margin", "sentence"),
    [
        (33.0, "The gross margin rises to 38.34 %."),
        (32.0, "The gross margin falls to 26.66 %."),
        (43.0, "The gross margin falls to 38.33 %."),
    ],
)
def test_a_hold_is_falsified_by_a_clear_lean(
    known: CommitteeEvidence, margin: float, sentence: str
) -> None:
    name = "company.gross_margin_pct"
    facts = {
        seat: tuple(
            one.model_copy(update={"value": margin}) if one.id.endswith(name) else one
            for one in those
        )
        for seat, those in known.facts.items()
    }
    known = replace(known, facts=facts, numbers={**known.numbers, name: margin})
    held = report(known, stance=0).model_copy(update={"points_for": (name,)})
    assert falsifiers_of(held, known) == (sentence,)


def test_a_vote_for_which_nothing_speaks_has_no_falsifier(known: CommitteeEvidence) -> None:
    assert falsifiers_of(report(known, points_for=[]), known) == ()
