"""`openai` is short for `openai_compatible` wherever a provider is named; records have the full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result
from pydantic import ValidationError

from agent_config import SHORT_NAMES, VENDORS, AgentSettings, full_name
from tests.cases import cases
from tests.worlds import demo_orders
from torra.commands.command_line import main
from torra.config import ROOT, load_profile
from torra.overlay import Overlay
from torra.providers.prices import PriceList

SHORT: Final = "openai"
FULL: Final = "openai_compatible"
BARS: Final = str(ROOT / "sample_data" / "EURUSD_H1.csv")


def torra(home: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), *words], catch_exceptions=False)


@cases(
    ("given", "full"),
    [
        (SHORT, FULL),
        (FULL, FULL),
        ("openai:gpt-6-luna", "openai_compatible:gpt-6-luna"),
        ("openai:a:b", "openai_compatible:a:b"),
        ("openai-gpt", "openai-gpt"),
        ("llama3:openai", "llama3:openai"),
        ("", ""),
    ],
)
def test_only_a_whole_word_before_the_colon_is_written_out(given: str, full: str) -> None:
    assert full_name(given) == full
    assert set(SHORT_NAMES.values()) <= set(VENDORS) and not SHORT_NAMES.keys() & set(VENDORS)


@cases(
    ("field", "short", "full"),
    [
        ("provider", SHORT, FULL),
        ("quick_think_model", "openai:m", f"{FULL}:m"),
        ("deep_think_model", "openai:m", f"{FULL}:m"),
        ("chief_think_model", "openai:m", f"{FULL}:m"),
        ("role_models", {"technical": "openai:m"}, {"technical": f"{FULL}:m"}),
        ("fallback_models", ["google", "openai:m"], ("google", f"{FULL}:m")),
    ],
)
def test_every_setting_that_names_a_provider_takes_it(field: str, short: Any, full: Any) -> None:
    settings = AgentSettings(**{field: short})
    assert getattr(settings, field) == full
    assert settings == AgentSettings(**{field: full})


@cases(
    ("settings", "trouble"),
    [
        ({"fallback_models": (SHORT, f"{FULL}:m")}, "name each vendor once"),
        *(
            ({"provider": wrong}, "'google', 'openai_compatible' or the PACKAGE")
            for wrong in ("open_ai", 5, None)
        ),
    ],
)
def test_a_vendor_under_both_names_is_one_and_what_is_none_is_refused(
    settings: dict[str, Any], trouble: str
) -> None:
    with pytest.raises(ValidationError, match=trouble):
        AgentSettings(**settings)


def test_files_and_commands_take_it(tmp_path: Path) -> None:
    mine = tmp_path / "profiles" / "mine.json"
    mine.parent.mkdir()
    mine.write_text(json.dumps({"agents": {"provider": SHORT}}))
    assert load_profile("mine", tmp_path).agents.provider == FULL
    overlay = Overlay(tmp_path, profile="mine")
    assert overlay.health()["provider"] == FULL
    overlay.close()
    done = torra(tmp_path, "profile", "set", "default", "agents.provider", SHORT, "--yes")
    assert done.exit_code == 0, done.output
    shown = json.loads(torra(tmp_path, "profile", "show", "default", "--json").stdout)
    assert shown["values"]["agents"]["provider"] == FULL
    price = PriceList({"openai:my-model": {"input": 1.0, "output": 2.0}})
    row = price.per_million(FULL, "my-model")
    assert row is not None and (row.input, row.output) == (1.0, 2.0)


def test_init_takes_it(tmp_path: Path) -> None:
    flags = ("--yes", "--feed", "store", "--bridge", "paper", "--symbols", "EURUSD")
    done = torra(tmp_path, "init", *flags, "--provider", SHORT)
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "profiles" / "mine.json").read_text())
    assert written["agents"] == {"provider": FULL}
    wrong = torra(tmp_path, "init", *flags, "--force", "--provider", "gpt")
    assert wrong.exit_code == 2 and "'gpt' is none of rules, anthropic, google" in wrong.stderr


@cases(
    "words",
    [
        ("tick", "BTCUSD", "M15", "--provider", "{}"),
        ("models", "--test", "{}"),
        ("models", "--test", "{}:gpt-6-luna"),
        ("replay", "EURUSD", "--bars", BARS, "--provider", "{}", "--max-cost", "1"),
        ("consistency", "BTCUSD", "--provider", "{}", "--max-cost", "1"),
    ],
)
def test_every_command_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    short, full = (
        torra(tmp_path, *(word.format(name) for word in words)) for name in (SHORT, FULL)
    )
    assert short.exit_code == full.exit_code == 2
    assert short.stderr == full.stderr and "set OPENAI_API_KEY" in short.stderr


def test_the_page_of_models_takes_it(tmp_path: Path) -> None:
    backing = demo_orders.build(tmp_path / "home")
    pages = demo_orders.open_pages(backing, "admin").test_client()
    json_reply = {"Accept": "application/json"}
    answer = pages.post(f"/api/v1/models/{SHORT}/test", json={}, headers=json_reply)
    assert answer.status_code == 409 and "set OPENAI_API_KEY" in answer.get_json()["reason"]
    backing.database.close()
