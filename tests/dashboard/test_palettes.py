"""Colours: every text can be read on every ground, every line and edge seen, in every palette."""

from __future__ import annotations

import re

import pytest

from tests.cases import cases
from torra.config import ROOT

STATIC = ROOT / "static"
PAIR = re.compile(r"--([\w-]+): (#[0-9a-f]{6})")
READ, SEEN = 4.5, 3.0
"""Least contrasts by WCAG 2.2: of text (1.4.3) and of what must be seen (1.4.11)."""

INKS = ("ink", "muted", "up", "down", "note", "warn", "alert", "link")
GROUNDS = ("surface", "ground", "note-ground")
CHOSEN = ("classic", "red-up")


def read_colours():
    """Return the colours by (palette, scheme), as the sheets cascade."""
    torra = (STATIC / "torra.css").read_text(encoding="utf-8")
    light, dark = (dict(PAIR.findall(b)) for b in re.findall(r":root \{(.*?)\}", torra, re.DOTALL))
    found = {("blue-orange", "light"): light, ("blue-orange", "dark"): {**light, **dark}}
    for palette in CHOSEN:
        for scheme in ("light", "dark"):
            own = block(f':root[data-scheme="{scheme}"][data-palette="{palette}"]')
            assert set(own) == {"up", "down", "up-ground", "down-ground"}
            found[palette, scheme] = {**found["blue-orange", scheme], **own}
    return found


def block(selector):
    sheet = (STATIC / "torra.css").read_text(encoding="utf-8")
    (text,) = re.findall(re.escape(selector) + r" \{(.*?)\}", sheet, re.DOTALL)
    return dict(PAIR.findall(text))


COLOURS = read_colours()


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_is_computed_rightly() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#0072b2", "#ffffff") == pytest.approx(5.19, abs=0.01)  # measured before


@cases(("palette", "scheme"), COLOURS, ids=" ".join)
def test_every_text_can_be_read_on_every_ground(palette: str, scheme: str) -> None:
    colours = COLOURS[palette, scheme]
    pairs = [(ink, ground) for ink in INKS for ground in GROUNDS]
    pairs += [(ink, f"{ink}-ground") for ink in ("up", "down", "note", "warn", "alert")]
    pairs += [("ink", f"{name}-ground") for name in ("up", "down", "note", "warn", "alert")]
    pairs += [("surface", "link")]  # a primary button
    for ink, ground in pairs:
        assert contrast(colours[ink], colours[ground]) >= READ, (ink, ground)


@cases(("palette", "scheme"), COLOURS, ids=" ".join)
def test_every_line_bar_and_edge_can_be_seen(palette: str, scheme: str) -> None:
    colours = COLOURS[palette, scheme]
    pairs = [(ink, ground) for ink in ("up", "down", "ink") for ground in ("track", "zone")]
    pairs += [(edge, ground) for edge in ("edge", "focus") for ground in ("surface", "ground")]
    for ink, ground in pairs:
        assert contrast(colours[ink], colours[ground]) >= SEEN, (ink, ground)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chosen_scheme_is_the_systems_own(scheme: str) -> None:
    own = block(f':root[data-scheme="{scheme}"]')
    expected = {**COLOURS["blue-orange", scheme]}
    assert {**expected, **own} == expected
    assert set(own) == set(expected)


def test_up_and_down_are_told_apart_in_every_palette() -> None:
    for (palette, scheme), colours in COLOURS.items():
        assert colours["up"] != colours["down"]
        swapped = COLOURS["red-up", scheme]
        if palette == "classic":
            assert (colours["up"], colours["down"]) == (swapped["down"], swapped["up"])
