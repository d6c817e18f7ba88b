"""The page that adds a symbol: three steps, mistakes beside their fields, nothing lost, audited."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.doubles.page_reader import Page, check_policy
from tests.worlds import desks
from tests.worlds.desk_pages import Pages, open_pages
from torra.config import Instance
from torra.market.broker_clock import USUAL
from torra.store import audit as audit_chain

FORM = {"source": "files", "symbol": "XAUUSD", "broker": "XAUUSD", "as.XAUUSD_M15.csv": "M15"}
NUMBERS = {
    "digits": "2", "tick_size": "0.01", "tick_value": "1", "contract_size": "100",
    "lot_min": "0.01", "lot_step": "0.01", "lot_max": "50", "spread": "0.25", "stops_level": "0",
}  # fmt: skip
ALL = {**FORM, **NUMBERS, "profile": "new", "profile_name": "gold", "execution": "approve"}
JSON = {"Accept": "application/json"}
OWN = Instance(symbol="BTCUSD", timeframes=("M15", "H1"), feed="store")


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    """A desk of one's own that runs on the sample's bars but calls its feed another."""
    found = open_pages(tmp_path / "home", (desks.BTC,), steps=1)
    home = found.backing.home
    settings = found.backing.settings.model_copy(update={"instances": (OWN,)})
    vars(found.backing)["settings"] = settings
    one = OWN.model_dump(mode="json", exclude_defaults=True)
    (home / "desk.json").write_text(json.dumps({"instances": [one]}))
    (home / "uploads").mkdir()
    shutil.copy(ROOT / "sample_data" / "BTCUSD_M15.csv", home / "uploads" / "XAUUSD_M15.csv")
    yield found
    found.desk.close()


def fields(page: str) -> dict[str, str]:
    """Return every named field of a page's last form with its value."""
    form = page.rpartition("<form")[2]
    found = re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', form)
    return {unescape(name): unescape(value) for name, value in found}


def post(pages: Pages, address: str, **words: str) -> Any:
    return pages.client().post(f"/api/v1/{address}", data=words, headers={"Accept": "text/html"})


def test_an_uploaded_file_comes_with_its_timeframe(pages: Pages) -> None:
    folder = pages.backing.home / "uploads"
    (folder / "XAUUSD_M15.csv").rename(folder / "gold-export.csv")
    address = "/add-symbol?source=files&symbol=XAUUSD"
    assert 'value="M15" selected' in pages.text(address), "its bars tell, and it is the only file"
    shutil.copy(ROOT / "sample_data" / "BTCUSD_H1.csv", folder / "my_xauusd.csv")
    text = pages.text(address)
    assert 'value="H1" selected' in text and 'value="M15" selected' not in text
    (folder / "my_xauusd.csv").write_text("no bars")
    assert "selected" not in pages.text(address).partition("<fieldset")[2].partition("</field")[0]


def test_the_second_is_filled_in_with_what_is_known(pages: Pages) -> None:
    text = pages.text("/add-symbol?source=files&symbol=xauusd")
    page = Page(text)
    check_policy(page, forms=True)
    found = fields(text)
    assert (found["digits"], found["contract_size"]) == ("2", "100")
    assert found["profile_name"] == "xauusd" and "Torra's own notes" in page.text
    assert 'value="M15" selected' in text
    unknown = fields(pages.text("/add-symbol?source=files&symbol=GBPJPY"))
    assert unknown["digits"] == "" and unknown["currencies"] == "GBP, JPY"


def test_a_profile_that_sends_by_itself_is_neither_offered_nor_taken(pages: Pages) -> None:
    folder = pages.backing.home / "profiles"
    folder.mkdir(exist_ok=True)
    (folder / "sends.json").write_text('{"execution": "auto"}')
    (folder / "asks.json").write_text('{"execution": "approve"}')
    text = pages.text("/add-symbol?source=files&symbol=XAUUSD")
    assert '<option value="asks">' in text
    assert '<option value="sends">' not in text and '<option value="default">' not in text
    answer = post(pages, "symbols/check", **{**ALL, "profile": "sends"})
    assert answer.status_code == 422 and 'id="f-profile-fault"' in answer.text
    assert "sends orders by itself (execution: auto): take a new profile" in Page(answer.text).text
    assert "1 field needs attention" in Page(answer.text).text


@pytest.mark.journey
def test_a_symbol_is_shown_then_written(pages: Pages) -> None:
    home = pages.backing.home
    before = (home / "desk.json").read_text()
    shown = post(pages, "symbols/check", **ALL)
    assert shown.status_code == 200 and (home / "desk.json").read_text() == before
    words = Page(shown.text).text
    assert "What will be written" in words and "Stop the desk (Ctrl-C)" in words
    assert (
        "XAUUSD_M15.csv ends" in words and "days ago, and a desk ticks on new bars alone" in words
    )
    sent = fields(shown.text)
    assert sent.items() >= ALL.items()
    done = post(pages, "symbols", **sent)
    assert done.status_code == 200 and "XAUUSD is added" in Page(done.text).text
    added = json.loads((home / "desk.json").read_text())["instances"][1]
    assert (added["symbol"], added["bridge"], added["profile"]) == ("XAUUSD", "paper", "gold")
    (row,) = audit_chain.audit_entries(pages.database, limit=1)
    assert (row["action"], row["target"]) == ("add symbol", "XAUUSD")
    assert json.loads(row["before"])["desk"] == json.loads(before)


def test_a_mistake_stands_beside_its_field_and_nothing_is_lost(pages: Pages) -> None:
    answer = post(pages, "symbols/check", **{**ALL, "digits": "two", "capital": "much <b>"})
    assert answer.status_code == 422
    page = Page(answer.text)
    assert "'two' is not a whole number" in page.text
    assert "'much <b>' is not a number above 0" in page.text
    found = fields(answer.text)
    assert (found["digits"], found["capital"], found["lot_max"]) == ("two", "much <b>", "50")
    assert 'id="f-digits-fault"' in answer.text
    assert 'aria-describedby="f-digits-fault"' in answer.text


def file_of(pages: Pages, lines: list[str]) -> None:
    path = pages.backing.home / "uploads" / "XAUUSD_M15.csv"
    path.write_text("\n".join(lines) + "\n")


def asks_clock(answer: Any) -> str:
    """Require a refusal that asks for the clock beside its field; return what it says."""
    assert answer.status_code == 422
    assert 'aria-describedby="f-clock-fault"' in answer.text
    for clock in USUAL:
        assert f'<option value="{clock}"></option>' in answer.text.split('id="f-clocks"')[1]
    assert "1 field needs attention" in Page(answer.text).text
    return str(unescape(answer.text.split('id="f-clock-fault">')[1].split("<")[0]))


def test_an_export_of_metatrader_is_asked_for_its_clock_before_anything_is_shown(
    pages: Pages,
) -> None:
    head = "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>"
    rows = [f"2021.11.08\t{hour:02d}:00:00\t1\t1\t1\t1\t5\t0\t3" for hour in range(20)]
    file_of(pages, [head, *rows])
    told = asks_clock(post(pages, "symbols/check", **{**ALL, "as.XAUUSD_M15.csv": "H1"}))
    assert "XAUUSD_M15.csv does not say by which clock" in told and "new_york+7" in told
    given = {**ALL, "as.XAUUSD_M15.csv": "H1", "clock": "new_york+7"}
    assert post(pages, "symbols/check", **given).status_code == 200


def test_a_file_that_is_refused_late_for_its_clock_asks_for_it_too(pages: Pages) -> None:
    rows = [f"2099-11-08T{hour:02d}:00:00Z,1,1,1,1,5" for hour in range(20)]
    file_of(pages, ["time,open,high,low,close,volume", *rows])
    sent = fields(post(pages, "symbols/check", **{**ALL, "as.XAUUSD_M15.csv": "H1"}).text)
    told = asks_clock(post(pages, "symbols", **sent))
    assert "which is not yet: give the clock of the file in Clock of the files" in told


def test_what_was_changed_meanwhile_is_shown_again(pages: Pages) -> None:
    home = pages.backing.home
    sent = fields(post(pages, "symbols/check", **ALL).text)
    other = json.loads((home / "desk.json").read_text()) | {"keep_calls_days": 30}
    (home / "desk.json").write_text(json.dumps(other))
    answer = post(pages, "symbols", **sent)
    assert answer.status_code == 422
    assert "was changed since this was shown, and nothing was written" in Page(answer.text).text
    assert fields(answer.text)["profile_name"] == "gold"
    assert json.loads((home / "desk.json").read_text()) == other


@pytest.mark.journey
def test_a_program_gets_faults_by_field(pages: Pages) -> None:
    client = pages.client()
    bad = client.post("/api/v1/symbols/check", json={**ALL, "lot_min": "0"}, headers=JSON)
    assert bad.status_code == 422 and "must be above 0" in bad.json["faults"]["lot_min"]
    good = client.post("/api/v1/symbols/check", json=ALL, headers=JSON).json
    assert good["status"] == "done" and '"XAUUSD"' in good["after"]
    done = client.post(
        "/api/v1/symbols", json={**ALL, "version": good["version"]}, headers=JSON
    ).json
    assert done["status"] == "done" and done["instance"]["symbol"] == "XAUUSD"
