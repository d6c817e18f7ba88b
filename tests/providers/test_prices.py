"""What a call costs: the user's own list, then the packaged table, else the dearest; never less."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from genai_prices import Usage, calc_price
from genai_prices.data import providers
from hypothesis import example, given
from hypothesis import strategies as st

from agent_config import MAX_PROMPT_BYTES, MODELS, OUTPUT_TOKENS, VENDORS
from agents.debate.replies import SHAPES, schema
from tests.cases import cases
from torra.config import ROOT
from torra.errors import ConfigError
from torra.providers import prices
from torra.providers.prices import (
    CHAT_TOKENS,
    OUTPUT_ALLOWANCE,
    PICTURE_TOKENS,
    SCHEMA_TOKENS,
    SOURCE,
    UNKNOWN,
    BilledTokens,
    PriceList,
)
from torra.providers.vendors.capabilities import MODELS_KNOWN

TODAY = datetime(2026, 11, 21, 12, tzinfo=UTC)
LIST = PriceList(now=lambda: TODAY)
MILLION = 1_000_000
NOBODY = ("anthropic", "claude-nobody-knows")


def of_a_million(vendor: str, model: str, prices: PriceList = LIST, **kind: Any) -> float:
    usage: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0, **kind}
    return prices.cost(vendor, model, **usage)


@cases(
    ("vendor", "model", "tokens", "usd"),
    [
        ("anthropic", "claude-sonnet-5-5", {"input_tokens": MILLION // 10}, 0.2),
        ("anthropic", "claude-sonnet-5-5", {"output_tokens": MILLION}, 10.0),
        ("anthropic", "claude-haiku-5-5", {"input_tokens": 1000, "cached_tokens": 1000}, 0.00001),
        ("anthropic", "claude-haiku-5-5", {"input_tokens": 200_000}, 0.1),  # x5 above 100k
        (
            "anthropic",
            "claude-haiku-5-5",
            {"input_tokens": 6100, "cached_tokens": 5000, "cache_write_tokens": 1000},
            0.000185,
        ),
        ("google", "gemini-3.8-flash", {"input_tokens": 1000, "cached_tokens": 400}, 0.00048),
        ("openai_compatible", "gpt-6-luna", {"input_tokens": 1000, "output_tokens": 100}, 0.00015),
    ],
)
def test_known_models_cost_what_their_vendor_asks(
    vendor: str, model: str, tokens: dict[str, Any], usd: float
) -> None:
    assert of_a_million(vendor, model, **tokens) == pytest.approx(usd, rel=1e-9)


def test_a_dated_name_is_its_model_and_a_variant_is_not() -> None:
    assert LIST.known("anthropic", "claude-haiku-5-5-20261001")
    assert LIST.known("openai_compatible", "gpt-6-luna-2026-08-12")
    for model in ("claude-haiku-5-5-max", "gemini-3.8-flash-ultra", "gpt-6-luna-pro", ""):
        for vendor in VENDORS:
            assert not LIST.known(vendor, model)


def test_a_variant_known_by_its_beginning_only_costs_the_worst() -> None:
    plain = of_a_million("google", "gemini-3.8-flash", input_tokens=1000)
    assert of_a_million("google", "gemini-3.8-flash-ultra", input_tokens=1000) > 10 * plain


def test_an_unknown_model_costs_as_much_as_any_model_of_the_table_of_capabilities() -> None:
    """Where the packaged table knows them and they are not shut down, at any mix of tokens."""
    models = [
        (row.vendor, row.model)
        for row in MODELS_KNOWN
        if row.retired is None or row.retired > TODAY.date()
    ]
    models += [(vendor, name) for vendor in VENDORS for name in MODELS[vendor].values()]
    known = [pair for pair in models if LIST.known(*pair)]
    assert len(known) >= 10
    for pair in known:
        for kind in ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens"):
            whole = {"input_tokens": 1000} if kind.startswith("cache") else {}
            usage: dict[str, Any] = {**whole, kind: 1000}
            assert of_a_million(*pair, **usage) <= of_a_million(*NOBODY, **usage), (pair, kind)


@given(
    model=st.sampled_from(
        [
            ("anthropic", "claude-haiku-5-5"),
            ("anthropic", "claude-sonnet-5-5"),
            ("google", "gemini-3.8-flash"),
            ("google", "gemini-4-argon"),
            ("openai_compatible", "gpt-6.1-terra"),
            ("openai_compatible", "mine"),
            NOBODY,
        ]
    ),
    limit=st.sampled_from([100, MAX_PROMPT_BYTES, 250_000]),
    picture=st.booleans(),
    shares=st.tuples(*[st.floats(0, 1)] * 4),
)
@example(("openai_compatible", "mine"), 100, False, (1.0, 1.0, 0.0, 0.0)).via("a dear cache")
def test_no_cost_exceeds_its_worst_case(
    model: tuple[str, str], limit: int, picture: bool, shares: tuple[float, ...]
) -> None:
    prices = PriceList({"mine": {"input": 3, "output": 0, "cached": 9}}, now=lambda: TODAY)
    most = limit + SCHEMA_TOKENS + CHAT_TOKENS + PICTURE_TOKENS * picture
    total = round(most * shares[0])
    cost = prices.cost(
        *model,
        input_tokens=total,
        cached_tokens=round(total * shares[1]),
        cache_write_tokens=round(total * shares[2]),
        output_tokens=round((OUTPUT_TOKENS["deep"] + OUTPUT_ALLOWANCE) * shares[3]),
    )
    bound = prices.worst_case(
        *model, prompt_bytes=limit, output_tokens=OUTPUT_TOKENS["deep"], picture=picture
    )
    assert cost <= bound + 1e-15


def test_a_price_that_rises_tomorrow_is_in_todays_worst_case() -> None:
    """genai-prices doubles gemini-4-argon on 2026-12-01."""
    wanted: dict[str, Any] = {"prompt_bytes": 1000, "output_tokens": 100}
    before, eve = (
        PriceList(now=partial(datetime, 2026, 11, day, 12, tzinfo=UTC)).worst_case(
            "google", "gemini-4-argon", **wanted
        )
        for day in (21, 30)
    )
    assert eve == pytest.approx(2 * before)


@pytest.mark.parametrize(
    ("vendor", "local"), [("openai_compatible", True), ("rules", False), ("recorded", False)]
)
def test_ones_own_machine_costs_nothing(vendor: str, local: bool) -> None:
    assert LIST.cost(vendor, "llama3:8b", input_tokens=9, output_tokens=9, local=local) == 0.0
    assert LIST.worst_case(vendor, "x", prompt_bytes=9, output_tokens=9, local=local) == 0.0


def test_the_users_own_price_wins_and_the_vendors_name_decides() -> None:
    prices = PriceList(
        {
            "gpt-6-luna": {"input": 1, "output": 2},
            "openai_compatible:gpt-6-luna": {
                "input": 4,
                "output": 8,
                "cached": 0,
                "cache_write": 9,
            },
            "llama3:8b": {"input": 0.5, "output": 0.5},
        }
    )
    assert of_a_million("openai_compatible", "gpt-6-luna", prices, output_tokens=MILLION) == 8.0
    assert of_a_million("google", "gpt-6-luna", prices, output_tokens=MILLION) == 2.0
    assert of_a_million("openai_compatible", "llama3:8b", prices, input_tokens=MILLION) == 0.5
    cached = {"input_tokens": MILLION, "cached_tokens": MILLION}
    written = {"input_tokens": MILLION, "cache_write_tokens": MILLION}
    assert of_a_million("openai_compatible", "gpt-6-luna", prices, **cached) == 0.0
    assert of_a_million("openai_compatible", "gpt-6-luna", prices, **written) == 9.0
    assert of_a_million("google", "gpt-6-luna", prices, **cached) == 1.0
    assert of_a_million("google", "gpt-6-luna", prices, **written) == 1.25


def test_usage_that_contradicts_itself_is_cut_not_refused() -> None:
    odd: dict[str, Any] = {"input_tokens": 100, "cached_tokens": 300, "cache_write_tokens": 900}
    cost = of_a_million("anthropic", "claude-haiku-5-5", **odd, output_tokens=-5)
    assert 0 < cost <= of_a_million("anthropic", "claude-haiku-5-5", input_tokens=100)


@pytest.mark.parametrize(
    ("text", "said"),
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
def test_a_price_list_with_a_mistake_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said) as caught:
        PriceList.read(path)
    assert str(path) in str(caught.value)


def test_a_price_list_is_read_and_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    assert not PriceList.read(path).known(*NOBODY)
    path.write_text(json.dumps({NOBODY[1]: {"input": 1, "output": 2}}), encoding="utf-8")
    prices = PriceList.read(path)
    assert prices.known(*NOBODY)
    assert of_a_million(*NOBODY, prices, output_tokens=MILLION) == 2.0


def test_the_allowances_are_above_what_they_allow_for() -> None:
    for shape in SHAPES:
        assert len(json.dumps(schema(shape), indent=2).encode()) <= SCHEMA_TOKENS
    assert UNKNOWN.cache_write and UNKNOWN.cache_write >= UNKNOWN.input


@pytest.mark.journey
def test_the_table_is_loaded_late_and_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys; from torra.providers.prices import PriceList; p = PriceList({});"
        "assert 'genai_prices' not in sys.modules;"
        "p.worst_case('rules', 'rules', prompt_bytes=1, output_tokens=1);"
        "p.cost('openai_compatible', 'x', input_tokens=1, output_tokens=1, local=True);"
        "assert 'genai_prices' not in sys.modules; p.warm(); assert 'genai_prices' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
    monkeypatch.setattr(socket, "socket", None)
    monkeypatch.setattr(socket, "getaddrinfo", None)
    PriceList().warm()


def test_the_vendors_that_are_kept_cost_what_the_whole_table_says() -> None:
    """Every model of theirs, by its name in the table, and one that another vendor lends them."""
    named = {name: vendor for vendor, name in SOURCE.items()}
    models = [
        (named[one.id], model.id) for one in providers if one.id in named for model in one.models
    ]
    compared = 0
    for vendor, model in [*models, ("google", "claude-haiku-5-5")]:
        tokens = Usage(input_tokens=2000, cache_read_tokens=1000, output_tokens=1000)
        try:
            found = calc_price(
                tokens, model, provider_id=SOURCE[vendor], genai_request_timestamp=TODAY
            )
        except LookupError:
            assert prices._table_name(vendor, model) is None
            continue
        usage = BilledTokens(plain=1000, cached=1000, written=0, output=1000)
        whole = float(found.total_price)
        assert prices._by_table(vendor, model, usage, TODAY) == whole, (vendor, model)
        compared += 1
    assert compared > 100


@pytest.mark.journey
@pytest.mark.parametrize("before", [False, True], ids=["alone", "beside a host that reads it"])
def test_the_rest_of_the_table_is_let_go_unless_a_host_reads_it(before: bool) -> None:
    code = (
        f"import gc, sys; {before} and __import__('genai_prices.data');"
        "from torra.providers.prices import PriceList; PriceList().warm();"
        f"assert ('genai_prices.data' in sys.modules) is {before};"
        "from genai_prices.types import Provider;"
        "kept = [one.id for one in gc.get_objects() if isinstance(one, Provider)];"
        f"assert (len(kept) > 20) is {before} and kept.count('openai') == 1 + {before}, kept;"
        "from genai_prices.data import providers; assert len(providers) > 20"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_a_version_that_keeps_its_table_elsewhere_still_tells_prices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = BilledTokens(plain=1000, cached=0, written=0, output=1000)
    asked = ("anthropic", "claude-haiku-5-5", usage, TODAY)
    told = prices._by_table(*asked)
    monkeypatch.setattr(prices, "find_spec", lambda _: None)
    monkeypatch.setattr(prices, "_table", prices._table.__wrapped__)
    assert prices._by_table(*asked) == told > 0.0
