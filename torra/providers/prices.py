"""The price of a call to a model, and the most that it could cost.

Prices come from the user's own list (TORRA_HOME/prices.json), else from genai-prices, whose table
lies in its package: nothing is fetched. A model that neither knows costs the price of the dearest
model listed, so that a ceiling holds for it too. A variant that genai-prices only recognises by the
beginning of its name counts as not known. A local server and a provider that is no language model
cost nothing.

`worst_case` bounds every `cost` of a request that was held to its prompt and output limits. A token
is at least one byte of text, and what a vendor adds stays below the allowances named here. A cache
write costs more than plain input, in a user's list a cached token may cost more as well, and a long
prompt may cost more per token: all are counted.

A price list with mistakes raises ConfigError; reading prices raises nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field, RootModel

from agent_config import VENDORS, ModelName, Section, may_cost
from torra.clock import System
from torra.config import read, validate
from torra.providers.vendors.table import vendors
from torra.regular_files import lies

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import PriceCalculation

MILLION: Final = 1_000_000

SCHEMA_TOKENS: Final = 5_200
"""More than any reply's JSON schema has bytes, with what a vendor writes around it."""

CHAT_TOKENS: Final = 1_000
"""More than a vendor adds for roles, turns and its own instructions on structured output."""

PICTURE_TOKENS: Final = 6_000
"""More than a picture of the chart counts for: 4,784 at most with Claude's high resolution, 2,833
with OpenAI's low detail, 2,240 with Gemini's highest resolution.
"""

OUTPUT_ALLOWANCE: Final = 16
"""Tokens past the output limit that a vendor may count, such as the end of the turn."""

CACHE_WRITE: Final = 1.25
"""Price of writing to a prompt cache over the price of input (facts: 5 minutes)."""

TOMORROW: Final = timedelta(days=1)
"""A price may change between a reservation and its answer."""

DATED: Final = re.compile(r"(-latest|[-@]?\d{4}-?\d{2}-?\d{2})?")
"""Suffixes with which a name still is the listed model's."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as its vendor counts them.

    `input` is all input, with what a cache supplied (`cached`) and what was written to one
    (`written`), which together are at most all of it; `output` is all that is billed as output.
    """

    input: int
    output: int
    cached: int = 0
    written: int = 0


class Price(Section):
    """Prices of one model in USD per million tokens."""

    input: float = Field(ge=0, description="input that no cache supplied")
    output: float = Field(ge=0, description="output, thinking included")
    cached: float | None = Field(None, ge=0, description="input from a cache; by default input's")
    cache_write: float | None = Field(
        None, ge=0, description="input written to a cache; by default 1.25 x input's"
    )

    def cost(self, usage: Usage) -> float:
        """Return what this usage costs in USD."""
        cached = self.input if self.cached is None else self.cached
        written = CACHE_WRITE * self.input if self.cache_write is None else self.cache_write
        plain = usage.input - usage.cached - usage.written
        total = (
            self.input * plain
            + cached * usage.cached
            + written * usage.written
            + self.output * usage.output
        )
        return total / MILLION


UNKNOWN: Final = Price(input=30.0, output=180.0, cached=30.0, cache_write=37.5)
"""Price of a model that is not listed: that of the dearest listed one that can still be asked.

That is gpt-5.5-pro. At a usual ceiling such a model is not asked at all until the user's list names
its price.
"""


FREE: Final = Price(input=0.0, output=0.0, cached=0.0)
"""Price of a model that nobody is paid for: the rules', or one on a server of one's own."""


PriceFile = RootModel[dict[ModelName, Price]]
"""The user's price list: "vendor:model" or "model" to prices; the former wins."""


class PriceList:
    """The prices of models. Any thread may use it; `now` is real time, for prices that change."""

    def __init__(
        self,
        override: Mapping[str, Any] | None = None,
        *,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        """Take a price list as prices.json has it; raises ConfigError when it has mistakes."""
        self._own = validate(PriceFile, override or {}, "prices").root
        self._now = now or System().real_now
        self._bounds: dict[tuple[object, ...], float] = {}

    @classmethod
    def read(cls, path: Path, *, now: Callable[[], datetime] | None = None) -> PriceList:
        """Read a price list; a file that is not there is an empty one. Raises ConfigError."""
        return cls(read(PriceFile, path).root if lies(path) else None, now=now)

    def warm(self) -> None:
        """Load the table of prices (0.5 s), so that the first tick need not."""
        self.per_million(VENDORS[0], "")

    def per_million(self, vendor: str, model: str, *, local: bool = False) -> Price | None:
        """Return what a million tokens of a model cost today; None for one that nobody lists."""
        own = self._own_price(vendor, model, local=local)
        if own or _table_name(vendor, model) is None:
            return own
        # A thousand of each: a long prompt may cost more per token.
        usages = Usage(1000, 0), Usage(1000, 0, cached=1000), Usage(0, 1000)
        plain, cached, output = (
            round(1000 * self.cost(vendor, model, usage), 6) for usage in usages
        )
        return Price(input=plain, cached=cached, output=output)

    def cost(self, vendor: str, model: str, usage: Usage, *, local: bool = False) -> float:
        """Return what a call cost in USD."""
        return self._usd(vendor, model, usage, self._now(), local=local)

    def worst_case(
        self,
        vendor: str,
        model: str,
        *,
        prompt_bytes: int,
        output_tokens: int,
        picture: bool = False,
        local: bool = False,
    ) -> float:
        """Return the most that one request can cost in USD, by today's and tomorrow's prices.

        `prompt_bytes` bounds its text in UTF-8, `output_tokens` what it may answer.
        """
        now = self._now()
        tokens, output = most_tokens(prompt_bytes, output_tokens, picture=picture)
        # With the date: from midnight on, tomorrow is another day with other prices.
        key = (vendor, model, local, tokens, output, now.date())
        if key not in self._bounds:
            self._bounds[key] = max(
                self._usd(vendor, model, usage, moment, local=local)
                # Nobody knows which part a cache will take or write: the dearest counts.
                for usage in (
                    Usage(tokens, output),
                    Usage(tokens, output, cached=tokens),
                    Usage(tokens, output, written=tokens),
                )
                for moment in (now, now + TOMORROW)
            )
        return self._bounds[key]

    def _own_price(self, vendor: str, model: str, *, local: bool) -> Price | None:
        """Return the price in the user's list, or FREE; None for what the table has to say."""
        own = self._own.get(f"{vendor}:{model}") or self._own.get(model)
        return FREE if not may_cost(vendor) or (local and own is None) else own

    def _usd(
        self, vendor: str, model: str, usage: Usage, moment: datetime, *, local: bool
    ) -> float:
        own = self._own_price(vendor, model, local=local)
        name = None if own else _table_name(vendor, model)
        if name is None:
            return (own or UNKNOWN).cost(usage)
        return float(_calculated(vendor, name, usage, moment).total_price)


def most_tokens(prompt_bytes: int, output_tokens: int, *, picture: bool) -> tuple[int, int]:
    """Return the most tokens of input and of output that a request within these limits has."""
    pictured = PICTURE_TOKENS if picture else 0
    total = prompt_bytes + SCHEMA_TOKENS + CHAT_TOKENS + pictured
    return total, output_tokens + OUTPUT_ALLOWANCE


@lru_cache(maxsize=256)
def _table_name(vendor: str, model: str) -> str | None:
    """Return the model's name in genai-prices; None for one that is not in it as itself.

    Kept as long as the process lives, as is the table: nothing fetches another.
    """
    try:
        # Only the name is wanted: the price of no tokens finds it.
        name = _calculated(vendor, model, Usage(0, 0)).model.id
    except (LookupError, ValueError):
        return None
    # The table matches by beginnings, so a dearer variant may pass for a cheaper model.
    rest = model.lower().removeprefix(name.lower())
    return name if DATED.fullmatch(rest) else None


def _calculated(
    vendor: str, model: str, usage: Usage, moment: datetime | None = None
) -> PriceCalculation:
    from genai_prices import Usage as Tokens  # noqa: PLC0415 - 0.3 s, and only who pays needs it

    tokens = Tokens(
        input_tokens=usage.input,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.written,
        output_tokens=usage.output,
    )
    return _table().calc(tokens, model, vendors()[vendor].price_list, None, moment)


@cache
def _table() -> DataSnapshot:
    """Return the table of genai-prices: what a program around Torra fetched changes no price."""
    from genai_prices.data import providers  # noqa: PLC0415
    from genai_prices.data_snapshot import DataSnapshot  # noqa: PLC0415

    return DataSnapshot(providers, from_auto_update=False)
