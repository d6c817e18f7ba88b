"""Profiles on the disk: what is read, checked, compared, saved, kept in a history and undone."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.conftest import Scale
from torra.config import ROOT, DeskSettings, Instance, Profile, validate
from torra.errors import ConfigError
from torra.profiles import book as profile_book
from torra.profiles.book import ProfileBook, usable
from torra.profiles.fields import (
    ABSENT,
    DEFAULT,
    Place,
    along_with_mode,
    canonical,
    changed,
    flat,
    place_of,
    read,
    shown,
    written,
)
from torra.profiles.fields import settings as every_setting
from torra.profiles.guard import (
    LEVERAGE_CAPS,
    LOOSENS,
    SECTIONS,
    command_line,
    compare,
    direction,
    leads_out,
)

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
DESK = DeskSettings(instances=(Instance(symbol="BTCUSD"),))
POSITIONS = ("risk", "max_positions")
BY_HAND = '{"sentiment_weights": {"momentum": 0.9}}'
MOMENTUM, STRUCTURE = ("sentiment_weights", "momentum"), ("sentiment_weights", "structure")


def open_book(home, desk=DESK, **more):
    return ProfileBook(home, desk, now=lambda: NOW, environment={}, **more)


def save(book, changes, may="guarded", name="default", digest=None, actor="ann"):
    digest = book.read(name).digest if digest is None else digest
    return book.save(
        name, lambda values: changed(values, changes), digest=digest, may=may, actor=actor
    )


def loaded(book, name="default"):
    return canonical(book.read(name).profile)


@pytest.fixture
def book(tmp_path: Path) -> ProfileBook:
    return open_book(tmp_path)


# --- settings one by one --------------------------------------------------------------------------


def test_every_leaf_of_the_profile_is_one_setting() -> None:
    names = [item.place for item in every_setting(DEFAULT)]
    assert len(names) == len(set(names))
    assert set(flat(DEFAULT)) <= set(names)
    more = set(names) - set(flat(DEFAULT))
    # entries that may come
    assert {place[0] for place in more} == {"timeframe_weights", "agents", "risk"}
    assert {place[1] for place in more if place[0] == "risk"} == {"leverage_caps"}


RICH = changed(
    DEFAULT,
    {
        ("symbols", "XAU.m"): {**DEFAULT["symbols"]["XAUUSD"], "digits": 3},
        ("agents", "role_models"): {"technical": "google:gemini-3.8-flash", "odd \u202e": 'a "b"'},
        ("agents", "role_caps"): {
            "technical": {"output_tokens": 700},
            "odd \u202e": {"prompt_bytes": 9_000},
        },
        ("agents", "active_agents"): ["technical", " spaced", "[json]"],
        ("symbols", "BTCUSD", "news_terms"): ["bit\ncoin", "x"],
        ("news", "file"): "tab\tname",
        ("agents", "quick_think_model"): '"quoted"',
        ("markov", "cut_points"): [-0.5, -1e-7, 0.1, 1.0],
    },
)


@pytest.mark.parametrize("values", [DEFAULT, RICH], ids=["default", "rich"])
def test_what_is_written_into_a_form_is_read_back_as_it_was(values: dict[str, Any]) -> None:
    here = flat(values)
    again = {
        item.place: read(item, written(here.get(item.place, ABSENT)))
        for item in every_setting(values)
    }
    assert {place: value for place, value in again.items() if value is not ABSENT} == here
    assert changed(values, again) == values
    assert json.dumps(changed(values, again)) == json.dumps(values)  # the order too: the digest


def test_what_a_form_shows_cannot_turn_the_reading_direction() -> None:
    for item in every_setting(RICH):
        value = flat(RICH).get(item.place, ABSENT)
        for line in (*written(value).split("\n"), item.name, shown(value)):
            assert line.isprintable(), item.place


@given(st.text(max_size=40))
@settings(max_examples=10)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    item = next(item for item in every_setting(DEFAULT) if item.name == "news.file")
    assert read(item, written(text)) == text
    words = next(item for item in every_setting(DEFAULT) if item.name == "agents.active_agents")
    assert read(words, written([text])) == [text]


@cases(
    ("name", "text", "value"),
    [
        ("risk.max_positions", "5", 5),
        ("risk.max_positions", "5.5", 5.5),
        ("risk.max_positions", "five", "five"),
        ("risk.max_positions", "", ""),
        ("risk.max_positions", "\u0665", "\u0665"),
        ("risk.max_positions", "1_0", "1_0"),
        ("risk.max_positions", "9" * 5000, "9" * 5000),
        ("risk.capital", "1e4", 10_000.0),
        ("risk.capital", "NaN", "NaN"),
        ("timeframe_weights.M5", " ", ABSENT),
        ("agents.include_news", "true", True),
        ("agents.include_news", "maybe", "maybe"),
        ("agents.active_agents", "technical\r\n\r\nnews\r\n", ["technical", "news"]),
        ("agents.active_agents", '["a", 1]', ["a", 1]),
        ("agents.active_agents", "[broken", "[broken"),
        ("markov.cut_points", "-0.4, -0.1,0.1 ,x", [-0.4, -0.1, 0.1, "x"]),
    ],
)
def test_what_a_person_writes_is_read_or_handed_on(name: str, text: str, value: Any) -> None:
    item = next(item for item in every_setting(DEFAULT) if item.name == name)
    assert read(item, text) == value


@cases(
    ("name", "place"),
    [
        ("execution", ("execution",)),
        ("risk.max_positions", ("risk", "max_positions")),
        ("symbols.XAU.m.digits", ("symbols", "XAU.m", "digits")),
        ("symbols.NEW", ("symbols", "NEW")),
        ("agents.role_models.bull_researcher", ("agents", "role_models", "bull_researcher")),
        (
            "agents.role_caps.reviewer.prompt_bytes",
            ("agents", "role_caps", "reviewer", "prompt_bytes"),
        ),
        ("agents.escalation.at", ("agents", "escalation", "at")),
        ("agents.memory.use", ("agents", "memory", "use")),
        ("risk.leverage_caps.M15", ("risk", "leverage_caps", "M15")),
        ("no.such.thing", ("no", "such.thing")),
    ],
)
def test_a_name_stands_for_a_place(name: str, place: tuple[Any, ...]) -> None:
    assert place_of(DEFAULT, name) == place


# --- what loosens ---------------------------------------------------------------------------------


def test_every_setting_of_a_guarded_section_has_its_own_direction() -> None:
    for item in every_setting(DEFAULT):
        place, last = item.place, item.place[-1]
        place = (place[0], "*", last) if place[0] == "symbols" else place
        pattern = ".".join((*LEVERAGE_CAPS, "*") if place[:-1] == LEVERAGE_CAPS else place)
        if item.place[0] in SECTIONS:
            assert pattern in LOOSENS, f"say in LOOSENS which way {pattern} loosens"
    known = {item.name for item in every_setting(DEFAULT)}
    for name in LOOSENS:
        shape = re.compile(re.escape(name).replace(r"\*", "[^.]+"))
        assert any(shape.fullmatch(one) for one in known), f"{name} is no setting any more"


LESS_IS_LOOSER = {
    "thresholds.buy", "thresholds.sell", "agents.escalation.at", "agents.none_cost",
    "agents.quorum",
    "risk.cooldown_bars", "gate.min_valid_bars", "gate.event_before_minutes",
    "gate.event_after_minutes", "symbols.*.tick_value", "symbols.*.contract_size",
    "symbols.*.lot_min", "symbols.*.spread", "symbols.*.slippage", "symbols.*.stops_level",
}  # fmt: skip
"""A lower score lets more trades through; fewer bars or minutes of caution; a judge without a side
that costs less, a debate by fewer analysts; a position that is said to be worth or to cost less."""


def test_numbers_loosen_upwards_but_for_those_that_are_a_safety_themselves() -> None:
    down = {name for name, way in LOOSENS.items() if way == "down"}
    up = {name for name, way in LOOSENS.items() if way == "up"}
    assert down == LESS_IS_LOOSER
    assert {name.partition(".")[0] for name in up} == {"risk", "gate", "symbols", "agents"}
    assert {name for name in up if name.startswith("symbols")} == {
        "symbols.*.tick_size", "symbols.*.lot_max",
    }  # fmt: skip


def test_a_setting_that_is_new_in_a_guarded_section_is_taken_for_loosening() -> None:
    assert direction(("risk", "something_new")) == "any"
    assert direction(MOMENTUM) is None


def ways(place: Place, before: Any, after: Any) -> set[str]:
    """Return which ways the change of one setting goes."""
    one, other = (changed(DEFAULT, {place: value}) for value in (before, after))
    return {change.way for change in compare(one, other)}


LADDERS: dict[Place, tuple[Any, ...]] = {
    POSITIONS: (2, 3, 4),
    ("risk", "cooldown_bars"): (6, 5, 4),
    ("execution",): ("off", "approve", "auto"),
    ("symbols", "BTCUSD", "tick_value"): (0.1, 0.01, 0.001),
    ("symbols", "EURUSD", "currencies"): (["EUR", "USD", "GBP"], ["EUR", "USD"], ["EUR"]),
    ("agents", "memory", "roles"): ([], ["bull_researcher"]),
    ("agents", "memory", "use"): ("off", "auto", "on"),
    ("agents", "memory", "review"): ("rules", "model"),
    ("risk", "leverage_caps", "M15"): (2.5, 3.0, 3.5, ABSENT),
    ("agents", "role_caps", "technical", "prompt_bytes"): (8_000, ABSENT, 12_000, 24_000),
    ("agents", "role_caps", "technical", "output_tokens"): (ABSENT, 1_000),
    ("agents", "role_caps", "bull_researcher", "output_tokens"): (1_000, ABSENT),
    ("agents", "role_caps", "reviewer", "output_tokens"): (ABSENT, 1_700),
    ("agents", "rebuttal"): ("never", "auto", "always"),
    ("agents", "escalation", "when"): ("off", "pivotal", "conviction"),
    ("agents", "judge_hold"): ("veto", "size"),
    ("agents", "judge_close"): ("off", "propose"),
    ("agents", "gate_call"): ("always", "openings"),
    ("agents", "standing"): ("off", "on"),
}
"""Values from the tightest to the loosest."""


@cases("place", LADDERS)
def test_each_step_up_loosens_and_each_step_down_tightens(place: Place) -> None:
    for before, after in pairwise(LADDERS[place]):
        assert ways(place, before, after) == {"loosens"}
        assert ways(place, after, before) == {"tightens"}


ALIKE: dict[Place, tuple[Any, ...]] = {
    ("agents", "trust"): ("prior", "flat"),
    ("agents", "influence"): ("full", "earned", "shadow"),
    ("agents", "mode"): ("budget", "full", "firm", "swarm"),
    ("agents", "active_agents"): ([], ["technical"], ["technical", "momentum"]),
    ("agents", "memory", "roles"): (["bull_researcher"], ["bear_researcher"]),
    ("agents", "memory", "embedder"): ("hashed", "models/potion"),
}


@cases("place", ALIKE)
def test_any_change_of_whose_word_counts_loosens(place: Place) -> None:
    for before, after in permutations(ALIKE[place], 2):
        assert ways(place, before, after) == {"loosens"}


@cases(
    ("place", "before", "after", "way"),
    [
        *((("news", "file"), "a.jsonl", path, "loosens")
          for path in ("../b.jsonl", "\\\\host\\b", "c:b.jsonl")),
        *((("news", "file"), "a.jsonl", path, "tightens") for path in ("b", "sub\\b.jsonl")),
        (("events", "calendar"), "", "/etc/events.csv", "loosens"),
        (("events", "calendar"), "", "events.csv", "tightens"),
        (("events", "calendar"), "events.csv", "", "loosens"),
        (("events", "calendar"), "events.csv", "other.csv", "loosens"),
    ],
)  # fmt: skip
def test_a_path_loosens_where_it_leads_out_and_a_calendar_once_there_is_one(
    place: Place, before: str, after: str, way: str
) -> None:
    assert ways(place, before, after) == {way}
    named = compare(DEFAULT, changed(DEFAULT, {place: "../out"}))
    assert leads_out(named) == [".".join(place)]


def test_a_symbol_that_comes_or_goes_needs_the_command_line() -> None:
    more = changed(DEFAULT, {("symbols", "NEW"): DEFAULT["symbols"]["BTCUSD"]})
    for before, after in ((DEFAULT, more), (more, DEFAULT)):
        assert {item.way for item in compare(before, after)} == {"loosens", "free"}


def test_the_command_line_that_is_told_can_be_typed() -> None:
    changes = compare(
        DEFAULT,
        changed(DEFAULT, {POSITIONS: 5, ("symbols", "EURUSD", "currencies"): ["U SD'"],
                          ("timeframe_weights", "M15"): ABSENT}),
    )  # fmt: skip
    assert command_line("mine", changes) == (
        "torra profile set mine risk.max_positions=5 "
        "'symbols.EURUSD.currencies=[\"U SD'\"'\"'\"]' --unset timeframe_weights.M15 --yes"
    )


# --- checking -------------------------------------------------------------------------------------


NUMBERS = [item for item in every_setting(DEFAULT) if item.kind in ("number", "whole")]


@st.composite
def edits(draw):
    items = draw(
        st.lists(
            st.sampled_from(every_setting(DEFAULT)), max_size=4, unique_by=lambda item: item.name
        )
    )
    found = {}
    for item in items:
        if item.kind in ("number", "whole"):
            odd = st.sampled_from(["", "x", "1e999", "NaN"])
            near = st.one_of(st.integers(-2, 400), st.floats(-2, 2).map(lambda x: round(x, 3)))
            found[item.place] = read(item, str(draw(near | odd)))
        elif item.kind in ("choice", "switch"):
            known = (*item.choices, "true", "false", "what")
            found[item.place] = read(item, draw(st.sampled_from(known)))
        else:
            found[item.place] = read(
                item, draw(st.sampled_from(["", "a", "technical", "EUR", "0"]))
            )
    return found


def test_a_check_accepts_what_the_models_accept_and_nothing_else(
    tmp_path: Path, scaled: Scale
) -> None:
    book = open_book(tmp_path, DeskSettings(instances=(Instance(symbol="XAUUSD", profile="no"),)))

    @settings(max_examples=scaled(5000, least=10), deadline=None)
    @given(edits())
    def hold(found: Any) -> None:
        values = changed(DEFAULT, found)
        try:
            wanted = validate(Profile, values, "it")
        except ConfigError:
            wanted = None
        checked = book.check("default", values)
        assert (checked.profile is None) == (wanted is None)
        if wanted is None:
            assert checked.faults
        else:
            assert checked.profile.digest() == wanted.digest()
            assert {item.place for item in checked.changes} == {
                place for place, value in flat(canonical(wanted)).items()
                if value != flat(DEFAULT).get(place)
            } | (set(flat(DEFAULT)) - set(flat(canonical(wanted))))  # fmt: skip

    hold()


def test_faults_stand_at_their_setting_with_place_value_and_remedy(book: ProfileBook) -> None:
    found = book.check(
        "default",
        changed(DEFAULT, {("risk", "max_position"): 2, ("agents", "debate_rounds"): 9,
                          ("news", "sources"): ["finnhub", "radio"]}),
    )  # fmt: skip
    told = {fault.name: fault.text for fault in found.faults}
    assert found.profile is None
    assert told[""] == "unknown key risk.max_position; did you mean max_positions?"
    assert "must be 3 at most (found 9)" in told["agents.debate_rounds"]
    assert "news.sources.1" in told["news.sources"]


@pytest.mark.parametrize(
    ("change", "name", "text"),
    [
        ({("timeframe_weights", "M15"): ABSENT}, "timeframe_weights.M15", "gives it no weight"),
        ({("agents", "active_agents"): ["nobody"]}, "", "not there: nobody"),
        ({("agents", "role_models"): {"ghost": "m"}}, "", "role_models names ghost"),
        (
            {("agents", "role_caps"): {"ghost": {"prompt_bytes": 9_000}}},
            "",
            "role_caps names ghost",
        ),
    ],
    ids=["timeframe", "agents", "roles", "caps"],
)
def test_a_check_holds_the_profile_against_its_instances(
    book: ProfileBook, change: dict[Any, Any], name: str, text: str
) -> None:
    (fault,) = book.check("default", changed(DEFAULT, change)).faults
    assert fault.name == name
    assert text in fault.text


def test_a_missing_key_is_a_fault_where_the_desk_runs_and_else_a_warning(tmp_path: Path) -> None:
    values = changed(DEFAULT, {("agents", "provider"): "anthropic"})
    elsewhere = open_book(tmp_path).check("default", values)
    assert elsewhere.profile is not None
    missing, cost = elsewhere.warnings
    assert "ANTHROPIC_API_KEY" in missing and "is expected to cost" in cost
    here = open_book(tmp_path, desk_here=True).check("default", values)
    assert here.profile is None


def test_a_check_warns_of_a_desk_that_the_ceiling_never_lets_run(book: ProfileBook) -> None:
    def notes(ceiling: float, **agents: Any) -> list[str]:
        told = {"provider": "anthropic", "max_api_cost_per_hour": ceiling} | agents
        return [text for text in book.check("default", {"agents": told}).warnings if "runs" in text]

    (note,) = notes(0.0, mode="firm")
    assert note.startswith("a tick of the firm desk can cost ")
    assert "more than the 0.00 that an hour may cost, so it never runs and nobody is asked" in note
    enough = float(re.search(r"raise agents.max_api_cost_per_hour to ([\d.]+) or more", note)[1])
    assert not notes(enough, mode="firm") and notes(enough - 0.02, mode="firm")
    assert not notes(0.0, mode="firm", provider="rules")


def test_a_check_warns_of_what_waits_for_the_next_start(book: ProfileBook) -> None:
    found = book.check("default", changed(DEFAULT, {("agents", "include_news"): True}))
    assert found.warnings == ("agents.include_news takes effect at the next start of the desk",)


# --- saving ---------------------------------------------------------------------------------------


def test_a_save_is_whole_kept_and_told(book: ProfileBook, tmp_path: Path) -> None:
    before = book.read("default")
    assert before.shipped
    saved = save(book, {POSITIONS: 2, MOMENTUM: 0.6})
    after = book.read("default")
    assert (saved.outcome, saved.before, saved.digest) == ("saved", before.digest, after.digest)
    assert not after.shipped
    assert after.path == tmp_path / "profiles" / "default.json"
    assert loaded(book)["risk"]["max_positions"] == 2
    newest, found = book.history("default")
    assert (newest.number, newest.actor, newest.action) == (2, "ann", "save")
    assert (newest.at, newest.digest) == ("2026-11-20T09:30:00Z", after.digest)
    assert [row["way"] for row in newest.changes] == ["", "tightens"]
    assert (found.action, found.digest) == ("shipped", before.digest)
    shipped = ROOT / "profiles" / "default.json"
    assert Profile.model_validate_json(shipped.read_text()).digest() == before.digest
    assert not list((tmp_path / "profiles").rglob("*.partial"))


def test_nothing_to_save_saves_nothing(book: ProfileBook, tmp_path: Path) -> None:
    assert save(book, {}).outcome == "unchanged"
    assert not (tmp_path / "profiles").exists()


def test_a_save_on_an_old_page_is_refused_with_what_the_other_changed(book: ProfileBook) -> None:
    page = book.read("default").digest
    assert save(book, {MOMENTUM: 0.7}, digest=page, actor="bob").outcome == "saved"
    late = save(book, {STRUCTURE: 0.8}, digest=page)
    assert late.outcome == "conflict"
    assert [(item.name, item.after) for item in late.changes] == [
        ("sentiment_weights.momentum", 0.7)
    ]
    weights = loaded(book)["sentiment_weights"]
    assert (weights["momentum"], weights["structure"]) == (0.7, 0.2)


def test_a_file_that_changes_during_a_save_is_not_overwritten(tmp_path: Path) -> None:
    book = open_book(tmp_path)
    save(book, {MOMENTUM: 0.7})

    class Meanwhile:
        def __enter__(self) -> None:
            (tmp_path / "profiles" / "default.json").write_text(BY_HAND)

        def __exit__(self, *_: object) -> None:
            return None

    racing = open_book(tmp_path, exclusive=Meanwhile)
    assert save(racing, {STRUCTURE: 0.8}).outcome == "conflict"
    weights = loaded(book)["sentiment_weights"]
    assert (weights["momentum"], weights["structure"]) == (0.9, 0.2)


def test_a_file_that_was_edited_by_hand_is_kept_before_it_is_replaced(
    book: ProfileBook, tmp_path: Path
) -> None:
    save(book, {MOMENTUM: 0.7})
    (tmp_path / "profiles" / "default.json").write_text(BY_HAND)
    save(book, {STRUCTURE: 0.8})
    newest, found, *_ = book.history("default")
    assert found.action == "found on the disk"
    assert [(row["place"], row["after"]) for row in found.changes] == [
        ("sentiment_weights.momentum", 0.9)
    ]
    assert [row["place"] for row in newest.changes] == ["sentiment_weights.structure"]


@pytest.mark.parametrize(
    ("may", "change", "outcome"),
    [
        ("harmless", {MOMENTUM: 0.6}, "saved"),
        ("harmless", {POSITIONS: 2}, "scope"),
        ("harmless", {("agents", "provider"): "google"}, "scope"),
        ("harmless", {POSITIONS: 4}, "loosens"),
        ("guarded", {POSITIONS: 2}, "saved"),
        ("guarded", {POSITIONS: 4}, "loosens"),
        ("guarded", {POSITIONS: 2, ("risk", "daily_loss_cap_pct"): 2.5}, "loosens"),
        ("guarded", {("agents", "influence"): "shadow"}, "loosens"),
        ("loosen", {POSITIONS: 4}, "saved"),
        ("loosen", {("risk", "capital"): -1.0}, "invalid"),
    ],
)
def test_who_may_save_what(
    book: ProfileBook, may: str, change: dict[Any, Any], outcome: str
) -> None:
    before = book.read("default").digest
    saved = save(book, change, may=may)
    assert saved.outcome == outcome
    assert (book.read("default").digest != before) == (outcome == "saved")
    if outcome == "loosens":
        told = [f"torra profile set default {'.'.join(place)}=" for place in change]
        assert saved.command.startswith(told[-1])


def test_the_history_keeps_the_newest(book: ProfileBook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_book, "KEPT_ENTRIES", 4)
    for number in range(6):
        save(book, {MOMENTUM: round(0.3 + number / 100, 2)})
    assert [entry.number for entry in book.history("default")] == [7, 6, 5, 4]


def test_a_broken_entry_is_left_out(book: ProfileBook, tmp_path: Path) -> None:
    save(book, {MOMENTUM: 0.7})
    (tmp_path / "profiles" / ".history" / "default" / "2.json").write_text("{")
    assert [entry.number for entry in book.history("default")] == [1]
    save(book, {MOMENTUM: 0.8})
    assert book.history("default")[0].number == 4  # 3 is what was found on the disk


# --- broken files ---------------------------------------------------------------------------------


def test_a_broken_file_is_told_and_mended_from_its_history(
    book: ProfileBook, tmp_path: Path
) -> None:
    good = save(book, {POSITIONS: 2}).digest
    (tmp_path / "profiles" / "default.json").write_text('{"risk": {"max_positions": -1}}')
    broken = book.read("default")
    assert broken.profile is None
    assert "risk.max_positions" in broken.trouble
    assert broken.digest.startswith("broken-")
    assert save(book, {POSITIONS: 3}).outcome == "loosens"  # against the last good one
    mended = book.undo("default", 2, digest=broken.digest, may="guarded", actor="ann")
    assert (mended.outcome, book.read("default").digest) == ("saved", good)


def test_a_broken_file_without_a_history_needs_the_command_line(
    book: ProfileBook, tmp_path: Path
) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "default.json").write_text("{")
    assert save(book, {POSITIONS: 2}).outcome == "loosens"
    assert (tmp_path / "profiles" / "default.json").read_text() == "{"


def test_a_profile_that_an_instance_names_and_nobody_wrote_is_told(tmp_path: Path) -> None:
    book = open_book(tmp_path, DeskSettings(instances=(Instance(symbol="BTCUSD", profile="mine"),)))
    assert book.names() == ["default", "demo_approve", "mine"]
    assert book.read("mine").digest == "missing"
    with pytest.raises(ConfigError, match="there are default, demo_approve, mine"):
        book.read("other")


@pytest.mark.parametrize(
    "name",
    ["", ".hidden", "../up", "a/b", "a\\b", "con", "NUL.txt", "Com1", "lpt9.x", "a.", "x" * 33, "ä",
     "a\n", "a b", "a:b"],
)  # fmt: skip
def test_names_that_no_profile_may_have(book: ProfileBook, name: str) -> None:
    assert not usable(name)
    with pytest.raises(ConfigError, match="no name for a profile"):
        book.read(name)


def test_a_file_that_leads_out_of_its_folder_is_refused(book: ProfileBook, tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "elsewhere.json").write_text("{}")
    (tmp_path / "profiles" / "mine.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(ConfigError, match="leads out"):
        book.read("mine")


def test_a_new_mode_brings_its_own_settings_where_a_profile_has_the_usual_ones() -> None:
    before = json.loads(Profile().model_dump_json())
    firm = changed(before, {("agents", "mode"): "firm"})
    along = along_with_mode(before, firm)["agents"]
    assert (along["influence"], along["timeout_seconds"]) == ("earned", 30.0)
    named = along_with_mode(before, firm, [("agents", "influence")])["agents"]
    assert (named["influence"], named["timeout_seconds"]) == ("full", 30.0)
    shadow = changed(before, {("agents", "influence"): "shadow"})
    kept = along_with_mode(shadow, changed(shadow, {("agents", "mode"): "firm"}))["agents"]
    assert kept["influence"] == "shadow", "what was set stays"
    back = along_with_mode({"agents": along}, {"agents": {**along, "mode": "budget"}})["agents"]
    assert back == {**along, "mode": "budget"}, "nothing is loosened on the way back"
    for odd in ({}, {"agents": 5}):
        assert along_with_mode(before, odd) == odd
        assert along_with_mode(odd, firm) == firm
