"""A replay's report says what became of its openings, and warns where lots round to nothing."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from torra.commands.command_line import main
from torra.config import ROOT
from torra.exhibits.documents import Document

BARS = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]
PERIOD = ["--from", "2021-11-20", "--to", "2021-11-23"]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, Document]:
    """Return what a replay with hardly any capital says: its text, its HTML, its document."""
    home = tmp_path_factory.mktemp("small")
    profile = home / "small.json"
    profile.write_text(json.dumps({"risk": {"capital": 200.0}}), encoding="utf-8")
    words = ["--home", str(home), "replay", "BTCUSD", "--bars", BARS[0], "--bars", BARS[1]]
    words += [*PERIOD, "--arms", "l1", "--name", "small", "--profile", str(profile)]
    ran = CliRunner().invoke(main, [*words, "--full", "--report", str(home / "small.html")])
    assert ran.exit_code == 0, ran.output
    document = Document.model_validate_json((home / "replays" / "small.json").read_text())
    return ran.stdout, (home / "small.html").read_text(), document


def test_openings_refused_stand_by_reason_in_text_page_and_document(
    told: tuple[str, str, Document],
) -> None:
    text, page, document = told
    (table,) = (one for one in document.tables if one.name == "openings")
    ((arm, buys, sells, made, refused, reasons),) = table.rows
    assert (arm, made) == ("l1", 0)
    assert isinstance(refused, int) and refused > 0
    assert str(reasons).startswith(f"SIZE_ZERO {refused} (")
    assert str(buys).endswith(" %") and str(sells).endswith(" %")
    for form in (text, page):
        assert "SIZE_ZERO" in form and "BUY on" in form
    assert "openings refused, by reason" in page


@pytest.mark.journey
def test_the_verdict_stands_first_and_the_warning_above_the_numbers(
    told: tuple[str, str, Document],
) -> None:
    text, _, document = told
    (warning,) = (one for one in document.warnings if one.startswith("Lot rounding decides"))
    assert "200 in account currency" in warning
    assert document.tables[0].name == "claims"
    assert text.index("! Lot rounding") < text.index("How this is computed")
