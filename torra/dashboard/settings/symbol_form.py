"""The form of a new symbol: what is there to choose from, what is known of it, what it would write.

A page alone must not load the desk, so torra.dashboard.settings.new_symbol imports this only when
it is asked. Names of a broker and of files are a stranger's and are cleaned.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, Final

from instance_database import open_home
from torra.clock import TIMEFRAMES
from torra.dashboard.view.rendering import backing
from torra.desk.setup import adding, bar_sources, wishes
from torra.desk.setup.adding import Addition, SymbolHome
from torra.desk.setup.bar_sources import BarSource
from torra.exhibits import figures
from torra.home import UPLOADS, has_database
from torra.market.broker_clock import USUAL
from torra.replay import uploads
from torra.trading import channels

Words = Mapping[str, str]

FIRST_STEP: Final = ("source", "symbol", "broker")
"""The fields of the first step."""

LISTED_NAMES: Final = 2_000
"""Names of a broker that the form offers."""


@dataclass(frozen=True, slots=True)
class SymbolForm:
    """The desk to which a symbol is added, and where its bars may come from."""

    place: SymbolHome
    sources: Mapping[str, BarSource]
    files: list[str]

    @classmethod
    def open(cls) -> SymbolForm:
        """Return the form of the desk behind the pages; raises ConfigError for a broken file."""
        context = backing()
        return cls(
            adding.place_of(context.home, context.settings),
            bar_sources.sources(context.settings, context.environment, channels.terminal),
            uploads.names(context.home),
        )

    def fill(self, wish: Words) -> tuple[dict[str, str], Words]:
        """Return the form for a symbol with what is known of it, and what is wrong with its name.

        A symbol or a source that is not named yet leaves the form as it is.
        """
        source, symbol = self.sources.get(wish["source"]), wish["symbol"].upper()
        if not symbol or source is None:
            return {**wish}, {}
        broker = wish["broker"] or symbol
        named = {**wish, "symbol": symbol, "broker": broker}
        _, faults = wishes.read(named, self.sources, self.files)
        wrong = {name: text for name, text in faults.items() if name in FIRST_STEP}
        settings = self.place.settings
        if settings and symbol in [item.id for item in settings.instances]:
            wrong["symbol"] = f"the desk watches {symbol} already"
        terms, _ = bar_sources.known_terms(symbol, broker, source)
        first = next(iter(backing().desk.setups.values()), None)
        own = [name for name in self.files if symbol in name.upper()]
        if not own and len(self.files) == 1:
            own = self.files
        return {
            "timeframes": "M15,H1",
            "execution": "approve",
            "profile": wishes.NEW,
            "risk": "0.5",
            **terms,
            **{f"{wishes.AS}{name}": uploads.timeframe_of(backing().home, name) for name in own},
            **named,
            "capital": f"{first.profile.risk.capital:g}" if first else "10000",
            "profile_name": symbol.lower(),
            "clock": "",
        }, wrong

    def plan(self, entered: Words) -> tuple[Addition | None, Words]:
        """Return what would be written, or what is wrong by field."""
        setup, faults = wishes.read(entered, self.sources, self.files)
        if setup is None:
            return None, faults
        with ExitStack() as stack:
            stored = None if self.place.separate else backing().database
            if self.place.separate and has_database(self.place.home):
                stored = stack.enter_context(closing(open_home(self.place.home)))
            try:
                return adding.plan(self.place, setup, stored), {}
            except wishes.FieldError as error:
                return None, {error.name: str(error)}

    def add(self, entered: Words) -> tuple[Addition | None, Words]:
        """Write a symbol, or return what is wrong by field; raises ConfigError."""
        plan, faults = self.plan(entered)
        if plan is None:
            return None, faults
        try:
            version = entered.get("version", "")
            return adding.write(plan, version, backing().database.transaction), {}
        except wishes.FieldError as error:
            return None, {error.name: str(error)}

    def context(self, entered: Words, faults: Words) -> dict[str, Any]:
        """Return what the template reads; `source` is there once the symbol and it are context."""
        symbol = entered.get("symbol", "")
        source = self.sources.get(entered.get("source", "")) if symbol else None
        broker = entered.get("broker", "")
        names = sorted({name for source in self.sources.values() for name in source.terms})
        return {
            "entered": {name: figures.sanitize(text, 400) for name, text in entered.items()},
            "faults": {name: figures.sanitize(text, 400) for name, text in faults.items()},
            "sources": [*self.sources.values()],
            "names": names[:LISTED_NAMES],
            "files": self.files,
            "clocks": USUAL,
            "uploads": str(backing().home.absolute() / UPLOADS),
            "timeframes": TIMEFRAMES,
            "profiles": adding.offered(self.place),
            "demo": self.place.separate,
            "source": source,
            "from_files": source is not None and source.key == bar_sources.FILES,
            "origin": bar_sources.known_terms(symbol, broker, source)[1] if source else "",
        }
