"""Claims of the docs that once were not true: each is held to the code that it speaks of."""

from __future__ import annotations

import re

import numpy as np
import pytest

from agent_config import MODES, TRADER_ID, AgentSettings
from agents.contracts import SourceType
from agents.debate.replies import SHAPES
from agents.evidence import COMPANIONS, FLOW
from agents.registry import AGENTS
from torra.config import ROOT
from torra.profiles.fields import described
from torra.providers.rules.engine import TABLES
from torra.store.envelopes import PHASES
from torra.tick.rules_version import RULES
from torra.words.market import TRIAGE


def page(name: str) -> str:
    """Return a page of the docs, its lines joined."""
    return " ".join((ROOT / "docs" / name).read_text("utf-8").split())


def modes(which: str) -> list[str]:
    """Return the modes whose row says yes to something."""
    return [name for name, row in MODES.items() if getattr(row, which)]


def readers(family: str) -> list[str]:
    """Return the seats of which a row of the rules reads a feature of a family."""
    return [
        seat
        for seat, table in TABLES.items()
        if any(
            name.startswith(family) for rows in table.values() for row in rows for name in row.reads
        )
    ]


def test_memory_names_the_modes_that_ask_for_lessons() -> None:
    asking = modes("memory")
    others = [name for name in MODES if name not in asking]
    assert asking == ["firm", "swarm"] and others == ["budget", "full"]
    told = page("memory.md")
    assert "of the modes `firm` and `swarm` ask for lessons" in told
    assert "`budget` and `full` do not" in told
    assert "`auto`: in modes `firm` and `swarm` |" in told
    assert not AgentSettings().remembers()


def test_outside_names_who_is_seated_and_who_reads() -> None:
    told = page("outside.md")
    assert [name for name, row in MODES.items() if "fundamental" in row.seats] == ["firm"]
    assert "Mode `firm` seats the fundamental analyst." in told
    assert not readers(COMPANIONS)
    assert "Of the rules only that expert reads them" in told
    assert readers(FLOW) == ["microstructure"]
    assert "of the rules' agents these two alone read it" in told
    shown = {name for name, one in AGENTS.items() for got in one.role.evidence if got == COMPANIONS}
    named = {"technical", "momentum", "fundamental", "bull_researcher", "bear_researcher", "macro"}
    assert shown - {"regime_reader"} == named | {"research_manager", "risk_gate"}


def test_debate_names_the_modes_of_a_second_look_and_every_source() -> None:
    assert modes("second_look") == ["full", "firm"]
    assert "`auto` (in modes `full` and `firm`, where the profile names no agents)" in page(
        "debate.md"
    )
    description = str(described(AgentSettings)["second_look"].description)
    assert "(auto: in modes full and firm)" in description and description in page("profiles.md")
    for source in SourceType:
        assert f"`{source}`" in page("debate.md"), source


def test_debate_names_where_a_risk_officer_sits() -> None:
    assert modes("officer") == ["swarm"]
    told = page("debate.md")
    assert "whose profile is in mode `swarm`, from the first tick" in told
    assert "In no other arm that asks nobody or another desk do they hold" in page("replaying.md")


def test_agents_names_who_says_a_horizon() -> None:
    row = next(cell for cell in page("agents.md").split(" | ") if "`horizon` in the modes" in cell)
    says = {name for name, shape in SHAPES.items() if "horizon" in shape.model_fields}
    plain = {"report", "case", "news"}
    assert modes("ahead") == ["firm"] and not says & plain
    assert {"finding", "geometry", "decision", "judgement"} <= says
    assert "`horizon` in the modes firm and swarm" in row
    assert "budget and full say none" in row
    assert "`horizon_bars`" in row and MODES["firm"].consults == TRADER_ID


def test_streams_names_every_phase() -> None:
    stages = {stage.name for row in MODES.values() for stage in row.stages}
    told = re.search(r"`phase` \(([^)]*)\)", page("streams.md"))
    assert told is not None
    named = set(re.split(r", |; of a swarm ", told[1]))
    assert named == {PHASES.get(name, name) for name in stages} | {"fallback", "thesis"}


@pytest.mark.parametrize(("most", "whole"), [(2.0**25, True), (2.0**27, False)])
def test_scores_tells_where_whole_points_end(most: float, whole: bool) -> None:
    """Prices of two decimals in the upper half of what lies below a bound."""
    cents = np.random.default_rng(3).integers(int(50 * most), int(100 * most), 20_000)
    points = np.rint(cents / 100.0 * 1e8)
    assert bool(np.all(points == cents * 1_000_000)) is whole
    assert "above a price of 3.3e7 (2^25) such points are no longer whole" in page("scores.md")
    assert 3.3e7 < 2**25 < 3.4e7


def test_scores_tells_which_digits_a_small_price_keeps() -> None:
    assert len(str(int(np.rint(9.99e-6 * 1e8)))) == 3
    assert "below 1e-5 they have three digits at most" in page("scores.md")


def test_the_table_of_the_newest_bar_is_one_table() -> None:
    lines = (ROOT / "docs" / "scores.md").read_text("utf-8").splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("| range_spike |"))
    table = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        table.append(line.split("|")[1].strip())
    assert set(table) == set(TRIAGE)


@pytest.mark.parametrize("name", ["evidence.md", "agents.md"])
def test_figures_of_replays_name_the_version_of_the_rules(name: str) -> None:
    """They are not made anew with each version, so that they say which one they are of."""
    text = page(name)
    versions = {int(found) for found in re.findall(r"rules version (\d+)", text)}
    assert versions and versions <= set(RULES)
    for found in re.finditer(
        r"with the rules provider and the default profile, run on [\d-]+", text
    ):
        assert "(rules version " in text[found.end() : found.end() + 20], found[0]
    for found in re.finditer(r"python -m benchmarks\.desk_shares [^`]*`", text):
        assert "rules version" in text[found.start() : found.start() + 700], found[0]


def test_the_table_beside_ta_lib_is_of_indicators_that_agree() -> None:
    told = page("performance.md")
    section = told[told.index("## The indicators beside TA-Lib") :]
    section = section[: section.index("## Replays")]
    assert "**missed**" not in section and "| columns that both have | 23 |" in section
    assert 'make bench BENCH="--only indicators"' in section


def test_every_file_that_the_docs_name_by_its_path_is_there() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    named = {
        (page.name, path)
        for page in pages
        for path in re.findall(r"`((?:\w+/)+\w+\.py)`", page.read_text("utf-8"))
    }
    assert len(named) > 200
    assert not [(name, path) for name, path in named if not (ROOT / path).exists()]
