"""Apprise against a web hook that takes, refuses, hangs, drips, floods, garbles or is dead."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.doubles.notice_server import WebHook
from tests.worlds.hands import torra
from torra.config import NoticeSettings
from torra.desk.checks import table
from torra.errors import ConfigError
from torra.notices import apprise_service
from torra.notices.apprise_service import VARIABLE, AppriseAddress, addresses
from torra.notices.protocol import Notice, NoticePlace, NoticeRefused

NOW = datetime(2026, 2, 13, 12, tzinfo=UTC)
NOTICE = Notice("k", "halt", "alarm", "Torra: HALTED", "Why: <b>x</b> *y*.", "", NOW, NOW)

needs_apprise = pytest.mark.skipif(
    find_spec("apprise") is None, reason="the extra notices is not installed: pip install apprise"
)


def place(told: str) -> NoticePlace:
    return NoticePlace({VARIABLE: told}, Path(), NoticeSettings())


@pytest.mark.journey
@needs_apprise
def test_a_notice_arrives_as_plain_text() -> None:
    with WebHook() as hook:
        (service,) = apprise_service.open_services(place(hook.address()))
        service.send(NOTICE)
    assert service.name == "1 json"
    (got,) = hook.got
    assert (got["title"], got["message"], got["type"]) == (NOTICE.title, NOTICE.text, "failure")


@needs_apprise
@pytest.mark.nightly
@pytest.mark.parametrize("how", ["refuses", "garbles"])
def test_a_service_that_refuses_is_told_in_words_of_ours(how: str) -> None:
    """By day the test command below asks one that refuses."""
    with WebHook(how) as hook:  # type: ignore[arg-type]
        with pytest.raises(NoticeRefused, match=r"^not taken: unreachable, or it refused$"):
            AppriseAddress("1 json", hook.address("secret"), 20.0).send(NOTICE)
        assert hook.paths == ["/secret"]


@pytest.mark.journey
@needs_apprise
def test_a_service_that_leads_elsewhere_is_not_followed() -> None:
    with WebHook("leads on") as hook:
        with pytest.raises(NoticeRefused):
            AppriseAddress("1 json", hook.address("hook"), 20.0).send(NOTICE)
        assert hook.paths == ["/hook"]


@pytest.mark.journey
@needs_apprise
def test_a_dead_service_and_a_kind_that_nobody_knows_are_refused() -> None:
    with WebHook() as hook:
        dead = hook.address()
    with pytest.raises(NoticeRefused, match="unreachable"):
        AppriseAddress("1 json", dead, 20.0).send(NOTICE)
    with pytest.raises(NoticeRefused, match="does not know this kind"):
        AppriseAddress("1 nope", "nope://x/y", 20.0).send(NOTICE)


@needs_apprise
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("hangs", marks=pytest.mark.nightly),
        "drips",  # by day: the one that no limit between two bytes ends
        pytest.param("floods", marks=pytest.mark.nightly),
    ],
)
def test_a_service_without_an_end_is_left_after_its_limit(how: str) -> None:
    with WebHook(how) as hook:  # type: ignore[arg-type]
        begun = time.monotonic()
        with pytest.raises(NoticeRefused):
            AppriseAddress("1 json", hook.address(), 2.0).send(NOTICE)
        took = time.monotonic() - begun
    assert took < 15, "it was ended: it would have gone on for as long as the server does"


def test_addresses_are_taken_apart_and_judged_by_number_alone() -> None:
    assert addresses("") == [] and addresses(" \n ") == []
    assert addresses("ntfy://a/b\n mailto://c:d@e  ") == ["ntfy://a/b", "mailto://c:d@e"]
    with pytest.raises(ConfigError, match="address 2 is none: write SCHEME://") as caught:
        addresses("ntfy://a/b topsecret ntfy://c")
    assert "topsecret" not in str(caught.value)
    with pytest.raises(ConfigError, match="more than 16"):
        addresses("ntfy://a " * 17)
    assert "hidden" not in repr(AppriseAddress("1 json", "json://hidden"))


@pytest.mark.journey
@needs_apprise
def test_the_test_command_tries_every_address_and_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WebHook() as good, WebHook("refuses") as bad:
        monkeypatch.setenv(VARIABLE, f"{good.address('tok')} {bad.address('tok')}")
        done = torra(tmp_path, "notices", "test")
        assert done.exit_code == 1
        assert done.output.splitlines() == [
            "1 json: taken", "2 json: failed: not taken: unreachable, or it refused",
        ]  # fmt: skip
        monkeypatch.setenv(VARIABLE, good.address("tok"))
        done = torra(tmp_path, "notices", "test", "--json")
    assert done.exit_code == 0
    assert json.loads(done.output) == {"services": [{"service": "1 json", "failed": ""}]}
    assert [got["title"] for got in good.got] == ["Torra: a test"] * 2
    assert list(tmp_path.iterdir()) == [], "a home without a desk stays without one"


def test_without_addresses_or_with_a_wrong_one_the_remedy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    done = torra(tmp_path, "notices", "test")
    assert done.exit_code == 0 and "put addresses into TORRA_NOTICE_URLS" in done.output
    monkeypatch.setenv(VARIABLE, "not-an-address")
    done = torra(tmp_path, "notices", "test")
    assert done.exit_code == 2 and "address 1 is none" in done.output
    assert "not-an-address" not in done.output


def test_without_the_extra_everything_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apprise_service, "installed", lambda: False)
    monkeypatch.setattr(apprise_service, "ask_child", lambda *_: "missing")
    monkeypatch.setenv(VARIABLE, "json://127.0.0.1:9/canary")
    done = torra(tmp_path, "notices", "test")
    assert done.exit_code == 1 and "1 json: failed: the extra `notices` is not" in done.output
    found = table.quick(tmp_path, {VARIABLE: "json://127.0.0.1:9/canary"})
    (told,) = [item for item in found if item.name == "notices"]
    assert told.level == "warn" and "pip install apprise" in told.remedy
    assert "canary" not in str(found)


def test_doctor_says_nothing_of_notices_that_nobody_set(tmp_path: Path) -> None:
    assert not [item for item in table.quick(tmp_path, {}) if item.name == "notices"]
    (told,) = [item for item in table.quick(tmp_path, {VARIABLE: "x"}) if item.name == "notices"]
    assert told.level == "alert" and "address 1 is none" in told.detail
