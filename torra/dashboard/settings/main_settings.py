"""The ten settings that matter most, as the top of a profile's form (torra.profiles.ten).

They are taken out of their sections, so every setting is in the form once. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torra.dashboard.settings.profile_form import FormSection, SettingRow
from torra.exhibits import figures
from torra.profiles.fields import Place
from torra.profiles.ten import TEN, MainSetting

CAPITAL = ("risk", "capital")


@dataclass(frozen=True, slots=True)
class MainRow:
    """One of the ten: its row, what it says to a trader, and what the saved value is in money."""

    row: SettingRow
    main: MainSetting
    money: str


def taken_out(
    sections: Sequence[FormSection], saved: Mapping[Place, Any], currency: str
) -> tuple[list[MainRow], list[FormSection]]:
    """Return the ten in their order, and the sections without them; empty ones are gone."""
    rows = {row.setting.name: row for section in sections for row in section.rows}
    main = [
        MainRow(rows[one.name], one, _money(one, saved, currency))
        for one in TEN
        if one.name in rows
    ]
    taken = {one.main.name for one in main}
    left = [
        replace(section, rows=[row for row in section.rows if row.setting.name not in taken])
        for section in sections
    ]
    return main, [section for section in left if section.rows]


def _money(one: MainSetting, saved: Mapping[Place, Any], currency: str) -> str:
    """Return what a percentage of the capital comes to: 50.00 USD of 10,000.00 USD."""
    share = figures.number(saved.get(tuple(one.name.split("."))))
    capital = figures.number(saved.get(CAPITAL))
    if not one.share or share is None or capital is None:
        return ""
    told = f"{share * capital / 100:,.2f} of {capital:,.2f}"
    return f"{told} {currency}" if currency else f"{told} in the account's currency"
