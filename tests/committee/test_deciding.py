"""The committee with models over each vendor's wire: the card, its price, and what stands in."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from agent_config import AgentSettings
from instance_database import Database
from tests.conftest import Scale
from tests.doubles import vendor_line
from tests.doubles.vendor_line import CANARIES, environment
from tests.doubles.vendor_server import (
    ANTHROPIC,
    GOOGLE,
    OPENAI,
    VENDORS,
    Drip,
    Endless,
    Exchange,
    HalfHead,
    Hang,
    Late,
    Raw,
    Reply,
    Reset,
    SlowClose,
    Status,
    VendorServer,
)
from tests.faults import kills
from tests.tries import Tries
from tests.worlds import desks
from torra.committee import debate
from torra.committee.debate import ROLES
from torra.committee.deciding import CommitteeDesk, CommitteeError, decide
from torra.committee.events import KIND, CommitteeStream
from torra.committee.example import AS_OF, SYMBOL, example_desk
from torra.config import CommitteeSettings
from torra.errors import ConfigError
from torra.store import streams as stream_table
from torra.store.research import cards as card_table
from torra.tick.spending import HOUR

CITES: Final = {"fundamental": "company.f_score", "sentiment": "news.score",
                "valuation": "company.valuation_rank"}  # fmt: skip
TITLES: Final = {role.title: seat for seat, role in ROLES.items()}


@pytest.fixture(scope="module")
def server() -> Iterator[VendorServer]:
    with VendorServer() as found:
        yield found


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(desks.open_database(tmp_path)) as found:
        yield found


Decide = Callable[..., Any]


@pytest.fixture
def sit(database: Database, tmp_path: Path, server: VendorServer) -> Iterator[Decide]:
    """Let the committee sit on the invented company, with models at the server."""
    with example_desk() as reader:

        def run(vendor: str = OPENAI, risk: Any = "balanced", **more: Any) -> Any:
            profile = reader.profiles[SYMBOL]
            agents = more.pop("agents", None) or vendor_line.agents(vendor)
            paid = profile.model_copy(update={"agents": agents})
            where = more.pop("where", environment(server))
            asked: dict[str, Any] = {
                name: more.pop(name) for name in ("again", "as_of", "hindsight") if name in more
            }
            if key := more.pop("key", ""):
                stream = CommitteeStream(database, key)
                asked |= {
                    "tell": stream.tell, "votes": stream.votes, "has_begun": stream.has_begun,
                }  # fmt: skip
            settings = reader.settings.model_copy(update={"committee": CommitteeSettings(**more)})
            desk = replace(reader, profiles={SYMBOL: paid}, settings=settings)
            found = CommitteeDesk(tmp_path, desk, database, where, **asked)
            return decide(found, SYMBOL, risk)

        yield run


def seat_of(exchange: Exchange) -> str:
    return next(TITLES[title] for title in TITLES if f"You are the {title}" in exchange.text)


def voting(faults: Mapping[tuple[str, int], Any], asked: list[str], exchange: Exchange) -> Any:
    """Return what a vendor answers a seat: a vote to buy, or the fault of that call."""
    seat = seat_of(exchange)
    asked.append(seat)
    fault = faults.get((seat, 1 + ("Second round" in exchange.text)))
    vote = {
        "stance": 1, "confidence": "high", "claim": f"The {seat} seat is for it.",
        "points_for": [CITES[seat]], "points_against": [], "falsifiers": [],
    }  # fmt: skip
    if seat == "valuation":
        vote["stance"] = -1
    return fault or Reply(text=json.dumps(vote))


@pytest.mark.parametrize("vendor", VENDORS)
def test_three_seats_of_each_vendor_make_a_card(
    sit: Decide, server: VendorServer, database: Database, vendor: str
) -> None:
    asked: list[str] = []
    server.play({"*": partial(voting, {}, asked)})
    card = sit(vendor)
    assert len(asked) == 6
    assert (card.source_type, card.lean, card.decision) == ("COMMITTEE", "buy", "hold")
    assert card.contested and card.models[0].startswith(vendor)
    assert (card.cost_usd > 0.0) == (vendor != OPENAI), "a server of one's own is free"
    booked = database.spent("default", database.now() - HOUR, stages=("committee",))
    assert booked == pytest.approx(card.cost_usd)
    assert card.fundamental_summary == "Fundamental leans to buy. The F-score is 8 of 9."
    stored = card_table.cards(database)
    assert [row["card_id"] for row in stored] == [card.card_id]
    assert "is for it" not in stored[0]["document"], "words of a model are not kept"
    assert not [key for key in CANARIES if key in card.model_dump_json()]


def hangs() -> Iterator[Any]:
    """Yield each call of each vendor; of a call one vendor is tried each day."""
    for at, (seat, number) in enumerate((seat, number) for seat in CITES for number in (1, 2)):
        for place, vendor in enumerate(VENDORS):
            marks = () if place == at % len(VENDORS) else pytest.mark.journey
            yield pytest.param(vendor, (seat, number), marks=marks, id=f"{vendor}-{seat}-{number}")


HANGS: Final = (
    Hang(), HalfHead(), Drip(every=1.0), Endless(), SlowClose(), Late(1.4, Reset()),
)  # fmt: skip
"""No byte, half a head, two bytes a second, a body without end, no close, dropped at last."""

LIMITS: Final[dict[str, Any]] = {
    name: seconds / 20.0
    for name, seconds in (
        ("whole_s", debate.WHOLE_S), ("round_s", debate.ROUND_S), ("call_s", debate.CALL_S)
    )
}  # fmt: skip
"""Times of a committee, a twentieth part of the real ones."""

AT_ONCE: Final = 4
"""Committees that hang beside each other."""


def sit_alone(
    home: Path, server: VendorServer, vendor: str, barrier: threading.Barrier, number: int
) -> tuple[Any, float]:
    """Let a committee sit in a home of its own; return its card or None, and the seconds."""
    with example_desk() as reader, closing(desks.open_database(home / str(number))) as database:
        agents = vendor_line.agents(vendor)
        paid = reader.profiles[SYMBOL].model_copy(update={"agents": agents})
        desk = replace(reader, profiles={SYMBOL: paid})
        barrier.wait(60.0)
        begun = time.monotonic()
        card = None
        with suppress(CommitteeError):
            card = decide(
                CommitteeDesk(home, desk, database, environment(server)), SYMBOL, "balanced"
            )
        return card, time.monotonic() - begun


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("vendor", "call"), [*hangs()])
def test_a_hang_at_any_call_is_over_in_time(
    tmp_path: Path, server: VendorServer, monkeypatch: Any, tries: Tries, scaled: Scale,
    vendor: str, call: tuple[str, int],
) -> None:  # fmt: skip
    """200 at each call of each vendor at night, over by 120.5 s."""
    monkeypatch.setattr("torra.committee.deciding.debate", partial(debate.debate, **LIMITS))
    left, wave = scaled(200), 0
    while left > 0:
        count, wave = min(left, AT_ONCE), wave + 1
        for attempt in tries():
            turn = itertools.count([*CITES].index(call[0]) + wave)
            # each committee meets the next kind: they ask beside each other
            server.play({
                "*": lambda exchange, turn=turn: voting(
                    {call: HANGS[next(turn) % len(HANGS)]}
                    if (seat_of(exchange), 1 + ("Second round" in exchange.text)) == call
                    else {}, [], exchange,
                )
            })  # fmt: skip
            home = tmp_path / f"{wave}-{attempt.number}"
            barrier = threading.Barrier(count)
            with ThreadPoolExecutor(count) as pool:
                one = partial(sit_alone, home, server, vendor, barrier)
                ends = [*pool.map(one, range(count))]
            with attempt:
                for card, took in ends:
                    assert card is not None, "no seat answered"
                    assert took <= LIMITS["whole_s"] + 0.5
                    failed = [seat.seat for seat in card.seats if seat.failed]
                    assert failed == ([call[0]] if call[1] == 1 else [])
                    assert card.source_type == ("PARTIAL" if failed else "COMMITTEE")
        left -= count


FAILURES: Final = (
    Status(401), Status(429), Status(500), Reset(), Raw(b"no JSON"), Reply(text="{}"), Hang(),
)  # fmt: skip


def test_every_mix_of_failures_is_no_card(
    sit: Decide, server: VendorServer, database: Database, monkeypatch: Any, scaled: Scale
) -> None:
    """Each mix at each vendor at night."""
    monkeypatch.setattr("torra.committee.deciding.debate", partial(debate.debate, **LIMITS))
    monkeypatch.setattr(debate, "PAUSES_S", (0.01, 0.02, 0.04))
    mixes = [*itertools.product(VENDORS, itertools.combinations_with_replacement(FAILURES, 3))]
    chance = random.Random(404)
    for vendor, mix in chance.sample(mixes, scaled(len(mixes), least=3)):
        faults = {(seat, 1): fault for seat, fault in zip(CITES, mix, strict=True)}
        server.play({"*": partial(voting, faults, [])})
        with pytest.raises(CommitteeError, match="ALL_FAILED") as found:
            sit(vendor, agents=vendor_line.agents(vendor, max_api_cost_per_hour=5_000.0))
        assert found.value.code == "ALL_FAILED"
        assert card_table.cards(database) == []
        assert not [one for one in server.exchanges if "Second round" in one.text]


def test_the_same_evidence_asks_no_model_twice_under_any_profile(
    sit: Decide, server: VendorServer, database: Database
) -> None:
    server.play({"*": partial(voting, {}, [])})
    card = sit(risk="balanced")
    server.play({"*": Status(500)})
    assert sit(risk="balanced") == card
    for risk in ("conservative", "aggressive"):
        other = sit(risk=risk)
        assert other.decision == card.under_other_profiles[risk]
        assert (other.risk_profile, other.cost_usd) == (risk, card.cost_usd)
        assert [one.first_stance for one in other.seats] == [one.first_stance for one in card.seats]
    assert server.exchanges == []
    assert len({row["card_id"] for row in card_table.cards(database)}) == 3
    assert [row["symbol"] for row in card_table.cards(database, 2)] == [SYMBOL] * 2
    before = AS_OF - timedelta(days=1)
    assert len(card_table.cards_since(database, SYMBOL, before)) == 3
    assert card_table.cards_since(database, "OTHER", before) == []
    assert card_table.cards_since(database, SYMBOL, AS_OF) == []


def test_again_asks_once_more_of_the_same_evidence(
    sit: Decide, server: VendorServer, database: Database
) -> None:
    asked: list[str] = []
    server.play({"*": partial(voting, {}, asked)})
    first, second = sit(), sit(again=True)
    assert len(asked) == 12
    assert first.card_id != second.card_id and first.evidence_hash == second.evidence_hash
    assert sit() == first and len(asked) == 12
    assert len(card_table.cards(database)) == 2


def test_a_job_that_was_lost_after_its_card_asks_once_more_only_once(
    sit: Decide, server: VendorServer, database: Database
) -> None:
    """Its second attempt finds the card that its first one made, also where it asks again."""
    asked: list[str] = []
    server.play({"*": partial(voting, {}, asked)})
    sit(key="monday")
    first = sit(again=True, key="again")
    assert len(asked) == 12
    assert sit(again=True, key="again") == first and len(asked) == 12
    sit(again=True, key="another")
    assert len(asked) == 18 and len(card_table.cards(database)) == 3


@pytest.mark.parametrize("risk", ["balanced", "aggressive"])
def test_a_seat_that_failed_is_asked_again_and_no_other_is_paid_twice(
    sit: Decide, server: VendorServer, database: Database, risk: str
) -> None:
    server.play({"*": partial(voting, {("sentiment", 1): Status(400)}, [])})
    part = sit(ANTHROPIC, key="first")
    assert part.source_type == "PARTIAL" and [one.failed for one in part.seats] == [0, 1, 0]
    asked: list[str] = []
    server.play({"*": partial(voting, {}, asked)})
    whole = sit(ANTHROPIC, risk, key=risk)
    assert asked == ["sentiment", "sentiment"] and whole.source_type == "COMMITTEE"
    booked = database.spent("default", database.now() - HOUR, stages=("committee",))
    assert whole.cost_usd == pytest.approx(booked)
    assert sit(ANTHROPIC, risk, key="third") == whole and len(asked) == 2
    cards = card_table.cards(database)
    assert [row["card_id"] for row in cards if row["asked"] == cards[0]["asked"]].count(
        whole.card_id
    ) == 1


def test_votes_that_were_paid_count_though_the_job_was_lost_before_its_card(
    sit: Decide, server: VendorServer, monkeypatch: Any
) -> None:
    """The card of the job before, of which a seat had failed, is not taken for its own."""
    server.play({"*": partial(voting, {("sentiment", 1): Status(400)}, [])})
    assert sit(key="first").source_type == "PARTIAL"
    asked: list[str] = []
    server.play({"*": partial(voting, {}, asked)})
    with monkeypatch.context() as patch:
        patch.setattr(card_table, "add_card", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sit(key="second")
    assert asked == ["sentiment", "sentiment"]
    assert sit(key="second").source_type == "COMMITTEE" and len(asked) == 2


def test_without_a_key_the_card_of_the_same_evidence_stands_though_a_seat_had_failed(
    sit: Decide, server: VendorServer, database: Database
) -> None:
    server.play({"*": partial(voting, {("sentiment", 1): Status(400)}, [])})
    part = sit(key="first")
    for risk in ("balanced", "aggressive"):
        again = sit(risk=risk, where={}, key=risk)
        assert again.source_type == "PARTIAL" and again.models == part.models
    assert again.decision == part.under_other_profiles["aggressive"]
    stored = [row["card_id"] for row in card_table.cards(database)]
    assert stored == [again.card_id, part.card_id]
    server.play({"*": partial(voting, {}, [])})
    whole = sit(key="last")
    newest = card_table.cards(database)[0]
    assert newest["card_id"] == whole.card_id == part.card_id, "the newest stands first"


def test_a_card_costs_what_the_ledger_has_of_its_question(
    sit: Decide, server: VendorServer, database: Database
) -> None:
    """Also replies that were no votes, and those of an attempt that was lost."""
    server.play({"*": partial(voting, {("sentiment", 1): Reply(text="{}")}, [])})
    part = sit(ANTHROPIC, key="first")
    server.play({"*": partial(voting, {}, [])})
    whole = sit(ANTHROPIC, key="second")
    booked = database.spent("default", database.now() - HOUR, stages=("committee",))
    assert whole.cost_usd == pytest.approx(booked)
    assert 0.0 < part.cost_usd < whole.cost_usd


def test_again_asks_also_where_the_card_cannot_be_read(
    sit: Decide, server: VendorServer, database: Database
) -> None:
    asked: list[str] = []
    server.play({"*": partial(voting, {}, asked)})
    first = sit(key="first")
    database.change("UPDATE cards SET document = '{}'")
    assert sit(again=True, key="again").card_id != first.card_id and len(asked) == 12


@pytest.mark.parametrize("document", ["{}", "null", '{"schema_version": "1.0"}'])
def test_a_card_that_cannot_be_read_is_made_anew(
    sit: Decide, server: VendorServer, database: Database, document: str
) -> None:
    asked: list[str] = []
    server.play({"*": partial(voting, {}, asked)})
    card = sit(key="first")
    database.change("UPDATE cards SET document = ?", document)
    again = sit(key="second")
    assert len(asked) == 6, "its votes are stored"
    assert again.card_id == card.card_id and again.final_statement == card.final_statement
    (row,) = card_table.cards(database)
    assert json.loads(row["document"])["card_id"] == card.card_id


def test_a_card_names_who_voted_and_a_question_who_is_asked(
    sit: Decide, server: VendorServer, monkeypatch: Any
) -> None:
    """After its pauses a busy vendor is stood in for; a seat may have a model of its own."""
    monkeypatch.setattr(debate, "PAUSES_S", (0.01, 0.02))
    asked: list[str] = []

    def answers(exchange: Exchange) -> Any:
        busy = exchange.vendor == ANTHROPIC
        asked.append(f"{exchange.vendor} {seat_of(exchange)}")
        return Status(429) if busy else voting({}, [], exchange)

    server.play({"*": answers})
    own = {"role_models": {"committee.valuation": "google:gemini-3.8-flash"}}
    spares = {"fallback_models": ("openai:one",)}
    card = sit(agents=vendor_line.agents(ANTHROPIC, **own, **spares), rounds=1)
    assert card.models == ("google:gemini-3.8-flash", "openai_compatible:one")
    assert asked.count(f"{ANTHROPIC} sentiment") == 3
    assert asked.count(f"{OPENAI} sentiment") == 1 and asked.count(f"{GOOGLE} valuation") == 1
    other = sit(agents=vendor_line.agents(ANTHROPIC, **spares), rounds=1)
    assert other.card_id != card.card_id and other.models == ("openai_compatible:one",)
    assert sit(agents=vendor_line.agents("rules", **own)).source_type == "RULES"


def test_a_card_of_the_past_is_of_the_rules_or_marked_as_hindsight(
    sit: Decide, server: VendorServer
) -> None:
    server.play({"*": partial(voting, {}, [])})
    past = AS_OF - timedelta(days=10)
    with pytest.raises(ConfigError, match=r"may know what came after.*--hindsight"):
        sit(as_of=past)
    assert server.exchanges == []
    by_rules = sit(as_of=past, model=False)
    assert by_rules.evidence_until == "2026-02-20T00:00:00Z" and not by_rules.hindsight
    card = sit(as_of=past, hindsight=True)
    assert card.hindsight and sit(as_of=past, hindsight=True, risk="aggressive").hindsight
    assert not sit().hindsight


def test_hindsight_of_the_same_evidence_stands_in_for_no_card(
    sit: Decide, server: VendorServer
) -> None:
    server.play({"*": partial(voting, {}, [])})
    assert sit(as_of=AS_OF - timedelta(hours=1), hindsight=True).hindsight
    assert not sit().hindsight


def test_rules_that_stood_in_keep_no_model_from_being_asked(
    sit: Decide, server: VendorServer
) -> None:
    asked: list[str] = []
    server.play({"*": partial(voting, {}, asked)})
    assert sit(where={}).source_type == "RULES_STOOD_IN" and not asked
    assert sit().source_type == "COMMITTEE" and len(asked) == 6
    stood_in = sit(where={}, again=True)
    assert stood_in.card_id.split("-")[1] == "1"


def test_every_seat_that_fails_is_no_card_and_one_request_each(
    sit: Decide, server: VendorServer
) -> None:
    server.play({"*": Status(401)})
    with pytest.raises(CommitteeError, match=r"ALL_FAILED.*fundamental AUTH_REFUSED"):
        sit()
    assert len(server.exchanges) <= 3


def test_without_a_key_the_rules_stand_in(
    database: Database, tmp_path: Path, server: VendorServer
) -> None:
    with example_desk() as reader:
        profile = reader.profiles[SYMBOL].model_copy(update={"agents": vendor_line.agents(OPENAI)})
        desk = CommitteeDesk(tmp_path, replace(reader, profiles={SYMBOL: profile}), database, {})
        card = decide(desk, SYMBOL, "balanced")
    assert (card.source_type, card.cost_usd, card.models) == ("RULES_STOOD_IN", 0.0, ())


def test_a_desk_of_rules_or_with_the_model_off_asks_nobody(
    sit: Decide, server: VendorServer
) -> None:
    server.play({"*": Status(500)})
    assert sit(agents=AgentSettings()).source_type == "RULES"
    assert sit(model=False).source_type == "RULES"
    assert server.exchanges == []


def test_one_round_asks_each_seat_once(sit: Decide, server: VendorServer) -> None:
    asked: list[str] = []
    server.play({"*": partial(voting, {}, asked)})
    sit(rounds=1)
    assert sorted(asked) == sorted(CITES)


def test_a_purse_that_grants_nothing_is_no_card_and_no_request(
    sit: Decide, server: VendorServer
) -> None:
    server.play({"*": Status(500)})
    with pytest.raises(CommitteeError, match="BUDGET"):
        sit(agents=vendor_line.agents(ANTHROPIC, off_tick_share=0.0))
    assert server.exchanges == []


@pytest.mark.timeout(900)
def test_after_a_kill_there_is_one_card_one_stream_and_no_stored_vote_is_asked_again(
    database: Database, tmp_path: Path, server: VendorServer, scaled: Scale
) -> None:
    """After 200 kills at night."""
    chance, lost, saved = random.Random(70), 0, 0
    for number in range(scaled(200, least=4)):
        key = f"job-{number}"

        def sit() -> None:
            with example_desk() as reader, closing(desks.open_database(tmp_path)) as own:
                agents = vendor_line.agents(ANTHROPIC, max_api_cost_per_hour=5_000.0)
                paid = reader.profiles[SYMBOL].model_copy(update={"agents": agents})
                stream = CommitteeStream(own, key)  # noqa: B023 - called within its turn
                stream.decision(decide(
                    CommitteeDesk(
                        tmp_path, replace(reader, profiles={SYMBOL: paid}), own,
                        environment(server), stream.tell, stream.votes,
                    ), SYMBOL, "balanced",
                ))  # fmt: skip

        for table in ("cards", "streams", "stream_events", "ledger"):
            database.change(f"DELETE FROM {table}")
        server.play({"*": partial(slowly, partial(voting, {}, []))})
        kills.run_for(chance.uniform(0.3, 1.6), sit)
        row = stream_table.newest_stream(database, KIND, key)
        told = stream_table.events_after(database, row["stream_id"], 0) if row else []
        stored = {
            (one["agent"], one["round"])
            for event in told
            if event.event == "insight_extracted" and (one := json.loads(event.payload))
        }
        lost, saved = lost + (not row or not row["ended"]), saved + len(stored)
        asked: list[str] = []
        server.play({"*": partial(voting, {}, asked)})
        if not (row and row["ended"]):
            sit()
        assert len(asked) == (0 if row and row["ended"] else 6 - len(stored))
        (card,) = card_table.cards(database)
        assert json.loads(card["document"])["source_type"] == "COMMITTEE"
        (stream_id,) = database.column("SELECT stream_id FROM streams")
        events = stream_table.events_after(database, stream_id, 0)
        assert [event.seq for event in events] == [*range(1, len(events) + 1)]
        assert [event.event for event in events if event.terminal] == ["decision"]
    assert lost and saved


def slowly(answers: Callable[[Exchange], Any], exchange: Exchange) -> Any:
    """Return an answer after a moment, longer for one seat than for another."""
    return Late(0.1 + 0.15 * [*CITES].index(seat_of(exchange)), answers(exchange))
