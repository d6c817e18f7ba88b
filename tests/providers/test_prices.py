"""What a call costs: the user's own list, then the packaged table, else the dearest; never less."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_config import MAX_PROMPT_BYTES, MODELS, OUTPUT_TOKENS, VENDORS
from agents.debate.replies import SHAPES, schema
from tests.cases import cases
from torra.config import ROOT
from torra.errors import ConfigError
from torra.providers.prices import (
    CHAT_TOKENS,
    MILLION,
    OUTPUT_ALLOWANCE,
    PICTURE_TOKENS,
    SCHEMA_TOKENS,
    UNKNOWN,
    PriceList,
    Usage,
)
from torra.providers.vendors.table import vendors

TODAY = datetime(2026, 11, 21, 12, tzinfo=UTC)
LIST = PriceList(now=lambda: TODAY)
NOBODY = ("anthropic", "claude-nobody-knows")
HAIKU = ("anthropic", "claude-haiku-5-5")
LUNA = ("openai_compatible", "gpt-6-luna")
IN, OUT, CACHED, WRITTEN = (
    Usage(MILLION, 0),
    Usage(0, MILLION),
    Usage(MILLION, 0, cached=MILLION),
    Usage(MILLION, 0, written=MILLION),
)


@cases(
    ("route", "usage", "usd"),
    [
        (("anthropic", "claude-sonnet-5-5"), Usage(MILLION // 10, 0), 0.2),
        (("anthropic", "claude-sonnet-5-5"), OUT, 10.0),
        (HAIKU, Usage(1000, 0, cached=1000), 0.00001),
        (HAIKU, Usage(200_000, 0), 0.1),  # x5 above 100k
        (HAIKU, Usage(6100, 0, cached=5000, written=1000), 0.000185),
        (("google", "gemini-3.8-flash"), Usage(1000, 0, cached=400), 0.00048),
        (LUNA, Usage(1000, 100), 0.00015),
    ],
)
def test_known_models_cost_what_their_vendor_asks(
    route: tuple[str, str], usage: Usage, usd: float
) -> None:
    assert LIST.cost(*route, usage) == pytest.approx(usd, rel=1e-9)


def test_a_dated_name_is_its_model_and_a_variant_costs_the_worst() -> None:
    assert LIST.per_million("anthropic", "claude-haiku-5-5-20261001")
    assert LIST.per_million("openai_compatible", "gpt-6-luna-2026-08-12")
    for model in ("claude-haiku-5-5-max", "gemini-3.8-flash-ultra", "gpt-6-luna-pro", ""):
        for vendor in VENDORS:
            assert LIST.per_million(vendor, model) is None
            assert LIST.cost(vendor, model, IN) == LIST.cost(*NOBODY, IN)


def test_an_unknown_model_costs_as_much_as_any_model_of_the_table() -> None:
    """Where the packaged table knows them and they are not shut down, at any mix of tokens."""
    models = [row for vendor in VENDORS for row in vendors()[vendor].models.values()]
    routes = [
        *(
            (row.vendor, row.model)
            for row in models
            if not row.retired or row.retired > TODAY.date()
        ),
        *((vendor, name) for vendor in VENDORS for name in MODELS[vendor].values()),
    ]
    known = [route for route in routes if LIST.per_million(*route)]
    assert len(known) >= 10
    for usage in (Usage(1000, 0), Usage(0, 1000), Usage(1000, 0, 1000), Usage(1000, 0, 0, 1000)):
        assert max(LIST.cost(*route, usage) for route in known) <= LIST.cost(*NOBODY, usage)


@given(
    model=st.sampled_from(
        [
            HAIKU,
            ("anthropic", "claude-sonnet-5-5"),
            ("google", "gemini-3.8-flash"),
            ("google", "gemini-4-argon"),
            ("openai_compatible", "gpt-6.1-terra"),
            ("openai_compatible", "mine"),
            ("openai_compatible", "dear_to_write"),
            NOBODY,
        ]
    ),
    limit=st.sampled_from([100, MAX_PROMPT_BYTES, 250_000]),
    picture=st.booleans(),
    shares=st.tuples(*[st.floats(0, 1)] * 4),
)
@example(("openai_compatible", "mine"), 100, False, (1.0, 1.0, 0.0, 0.0)).via("a dear cache")
@example(("openai_compatible", "dear_to_write"), 100, False, (1.0, 0.0, 1.0, 1.0)).via("written")
def test_no_cost_exceeds_its_worst_case(
    model: tuple[str, str], limit: int, picture: bool, shares: tuple[float, ...]
) -> None:
    listed = {
        "mine": {"input": 3, "output": 0, "cached": 9},
        "dear_to_write": {"input": 3, "output": 0, "cached": 3, "cache_write": 9},
    }
    own = PriceList(listed, now=lambda: TODAY)
    total = round((limit + SCHEMA_TOKENS + CHAT_TOKENS + PICTURE_TOKENS * picture) * shares[0])
    cached = round(total * shares[1])
    usage = Usage(
        total,
        round((OUTPUT_TOKENS["deep"] + OUTPUT_ALLOWANCE) * shares[3]),
        cached,
        round((total - cached) * shares[2]),
    )
    bound = own.worst_case(
        *model, prompt_bytes=limit, output_tokens=OUTPUT_TOKENS["deep"], picture=picture
    )
    assert own.cost(*model, usage) <= bound + 1e-15


def test_a_price_that_rises_tomorrow_is_in_todays_worst_case() -> None:
    """genai-prices doubles gemini-4-argon on 2026-12-01."""
    before, eve = (
        PriceList(now=partial(datetime, 2026, 11, day, 12, tzinfo=UTC)).worst_case(
            "google", "gemini-4-argon", prompt_bytes=1000, output_tokens=100
        )
        for day in (21, 30)
    )
    assert eve == pytest.approx(2 * before)


@cases(("vendor", "local"), [("openai_compatible", True), ("rules", False), ("recorded", False)])
def test_ones_own_machine_costs_nothing(vendor: str, local: bool) -> None:
    assert LIST.cost(vendor, "llama3:8b", IN, local=local) == 0.0
    assert LIST.worst_case(vendor, "x", prompt_bytes=9, output_tokens=9, local=local) == 0.0


def test_the_users_own_price_wins_and_the_vendors_name_decides(tmp_path: Path) -> None:
    dear = {"input": 4, "output": 8, "cached": 0, "cache_write": 9}
    path = tmp_path / "prices.json"
    assert PriceList.read(path).per_million(*NOBODY) is None, "it may be missing"
    path.write_text(json.dumps({LUNA[1]: {"input": 1, "output": 2}, ":".join(LUNA): dear}))
    own = PriceList.read(path)
    costs = [[own.cost(vendor, LUNA[1], usage) for usage in (IN, OUT, CACHED, WRITTEN)]
             for vendor in ("openai_compatible", "google")]  # fmt: skip
    assert costs == [[4.0, 8.0, 0.0, 9.0], [1.0, 2.0, 1.0, 1.25]]
    local = PriceList({"llama3:8b": {"input": 0.5, "output": 0.5}})
    assert local.cost("openai_compatible", "llama3:8b", IN, local=True) == 0.5


@cases(
    ("text", "trouble"),
    [
        ('{"m": {"input": 1}}', "output"),
        ('{"m": {"input": -1, "output": 2}}', "must be 0 or more"),
        ('{"m": {"input": 1, "output": 2, "cache": 3}}', "m.cache"),
        ('{"m": {"input": "1", "output": 2}}', "number"),
        ('{"m": {"input": 1e999, "output": 2}}', "finite"),
        ("[1]", "in braces"),
        ("{", "not JSON"),
    ],
)
def test_a_price_list_with_a_mistake_is_refused(tmp_path: Path, text: str, trouble: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=trouble) as caught:
        PriceList.read(path)
    assert str(path) in str(caught.value)


def test_the_allowances_are_above_what_they_allow_for() -> None:
    for shape in SHAPES:
        assert len(json.dumps(schema(shape), indent=2).encode()) <= SCHEMA_TOKENS
    assert UNKNOWN.cache_write and UNKNOWN.cache_write >= UNKNOWN.input


@pytest.mark.journey
def test_the_table_is_loaded_late_and_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys; from torra.providers.prices import PriceList, Usage; p = PriceList({});"
        "assert 'genai_prices' not in sys.modules;"
        "p.worst_case('rules', 'rules', prompt_bytes=1, output_tokens=1);"
        "p.cost('openai_compatible', 'x', Usage(1, 1), local=True);"
        "assert 'genai_prices' not in sys.modules; p.warm(); assert 'genai_prices' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
    monkeypatch.setattr(socket, "socket", None)
    monkeypatch.setattr(socket, "getaddrinfo", None)
    PriceList().warm()
