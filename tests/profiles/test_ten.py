"""The ten settings that matter most: they exist, once each, and a trader has a word for each."""

from __future__ import annotations

from tests.cases import cases
from torra.profiles.fields import DEFAULT, settings
from torra.profiles.ten import TEN, called

KNOWN = {setting.name: setting for setting in settings(DEFAULT)}


def test_they_are_ten_settings_of_a_profile() -> None:
    names = [one.name for one in TEN]
    assert len(names) == len(set(names)) == 10
    assert set(names) <= set(KNOWN)
    assert len({one.title for one in TEN}) == 10


@cases("one", TEN, ids=lambda one: one.name)
def test_each_says_what_it_does_in_whole_sentences(one) -> None:
    assert one.says.endswith(".")
    assert one.name not in one.says and "_" not in one.title
    # A percentage of the capital is told in money beside it.
    assert one.share == one.name.endswith("_pct") == (one.unit == "% of capital")


def test_every_other_setting_is_called_by_its_section_and_name() -> None:
    assert called("risk.cooldown_bars") == "Risk: cooldown bars"
    assert called("on_opposite") == "On opposite"
    assert called("symbols.BTCUSD.spread") == "Symbols: BTCUSD spread"
    assert all(called(name) for name in KNOWN)
