"""`torra tick --mode M` is a tick of a profile in that mode: a mode brings its own defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from agent_config import MODES
from tests.cases import cases
from tests.tries import Tries
from torra.config import Instance, Profile
from torra.replay.rerun import lookahead, trial_tick
from torra.tick.tick_record import TickRecord

TIMES: Final = {"elapsed_ms", "ms", "id", "at"}
"""What no two ticks share."""


def exact(value: Any) -> Any:
    """Return a record to the bit, without the times and ids of its tick."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, TickRecord):
        return exact(value.as_json())
    if isinstance(value, Mapping):
        return {str(name): exact(one) for name, one in value.items() if name not in TIMES}
    if isinstance(value, list | tuple):
        return [exact(one) for one in value]
    return value


def profile_file(folder: Path, agents: Mapping[str, Any]) -> str:
    folder.mkdir(parents=True)
    path = folder / "mine.json"
    path.write_text(json.dumps({"agents": agents}))
    return str(path)


def tick(folder: Path, agents: Mapping[str, Any], mode: str | None = None) -> Any:
    record = trial_tick.run(
        folder / "home",
        "BTCUSD",
        "M15",
        as_of="2021-10-28T01:30:00Z",
        profile=profile_file(folder / "profiles", agents),
        mode=mode,
    )
    return exact(record)


@pytest.mark.parametrize("mode", MODES)
def test_a_tick_in_a_mode_is_a_tick_of_a_profile_in_that_mode(
    tmp_path: Path, mode: str, tries: Tries
) -> None:
    """The base is another mode's profile: its defaults give way. Memory has its own deadline."""
    base = next(name for name in reversed(MODES) if name != mode)
    for attempt in tries():
        folder = attempt.folder(tmp_path)
        trial = tick(folder / "trial", {"mode": base}, mode)
        assert trial["calls"] > 0
        with attempt:
            assert trial == tick(folder / "written", {"mode": mode})


WRITTEN: Final = {"quorum": 2, "influence": "full", "timeout_seconds": 21.0, "debate_rounds": 2}


@cases("base", [{}, *({"mode": name} for name in MODES)])
def test_what_a_file_writes_stays_in_another_mode(base: dict[str, Any], tmp_path: Path) -> None:
    instance = Instance.model_validate({"symbol": "EURUSD"})
    for number, (mode, own) in enumerate((m, o) for m in MODES for o in ({}, WRITTEN)):
        folder = tmp_path / str(number) / base.get("mode", "none")
        named = profile_file(folder, {**base, **own})
        found = trial_tick.profile_of(tmp_path, instance, named, mode, None)
        assert found == Profile.model_validate({"agents": {**base, **own, "mode": mode}}), mode
        spoken = trial_tick.profile_of(tmp_path, instance, named, mode, "recorded").agents
        assert spoken == found.agents.model_copy(update={"provider": "recorded"})


@cases("mode", list(MODES))
def test_the_shipped_profile_in_a_mode_is_that_mode(mode: str, tmp_path: Path) -> None:
    instance = Instance.model_validate({"symbol": "EURUSD"})
    found = trial_tick.profile_of(tmp_path, instance, None, mode, None)
    assert found.agents == Profile.model_validate({"agents": {"mode": mode}}).agents


def test_a_look_ahead_is_looked_for_at_the_mode_s_own_desk() -> None:
    found = lookahead._for(Profile(), "firm").agents
    assert (found.quorum, found.timeout_seconds) == (3, 30.0)
    assert (found.influence, found.call_policy, found.provider) == ("full", "always", "rules")
