"""The plan of `torra init`: a desk.json and a profile from a user's answers. Pure.

The caller hands in what MetaTrader 5 said of itself (symbols with their trading conditions, the
server's offset, the account); an answer that does not fit it raises ConfigError. The plan has been
checked by the models that read the files later, so nothing is planned that could not be loaded. The
profile names only what differs from the shipped default. torra.commands.init asks, reads and
writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from torra.bridges.protocol import SymbolTerms
from torra.clock import EPOCH, iso
from torra.config import Channel, DeskSettings, Profile, validate
from torra.desk.setup.broker_symbols import conditions, kind_of, lookup, shipped, spread_of
from torra.errors import ConfigError
from torra.home import DESK
from torra.market.broker_clock import USUAL, ServerClock, check, detect

KEY_VARIABLE: Final[str] = Channel.model_fields["key_variable"].default
"""Environment variable of the channel key, unless a channel names another."""


@dataclass(frozen=True, slots=True)
class TerminalFacts:
    """What MetaTrader 5 said of itself; None, 0 or "" where nothing is known.

    `offset` is by how many seconds the server was ahead of UTC at `at`. `terms` are the symbols
    that the broker trades. `trouble` says why something is not known.
    """

    terms: Mapping[str, SymbolTerms] | None = None
    account: int = 0
    trade_mode: str = ""
    offset: int | None = None
    at: datetime = EPOCH
    balance: float = 0.0
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class InitAnswers:
    """The user's answers. `symbols` pairs canonical names with the broker's.

    `companions` pairs own names with the broker's: every symbol gets those that are not it itself.
    An empty `server_clock` is derived from the server's offset.
    """

    symbols: tuple[tuple[str, str], ...] = ()
    companions: tuple[tuple[str, str], ...] = ()
    timeframes: tuple[str, ...] = ("M15", "H1")
    feed: str = "mt5_files"
    bridge: str = "paper"
    channel: str = "main"
    folder: str = ""
    account: int = 0
    live: bool = False
    server_clock: str = ""
    capital: float = 10_000.0
    risk_per_trade: float = 0.5
    execution: str = "auto"
    provider: str = "rules"
    profile_name: str = "mine"

    @property
    def needs_channel(self) -> bool:
        """Whether the desk talks to MetaTrader 5."""
        return self.feed != "store" or self.bridge != "paper"

    @property
    def needs_key(self) -> bool:
        """Whether Torra and MetaTrader 5 share a folder, and sign their messages there."""
        return self.feed == "mt5_files" or self.bridge == "torra_files"


@dataclass(frozen=True, slots=True)
class DeskPlan:
    """The two files as they would be, with notes for the user and the next steps."""

    desk_path: Path
    desk: Mapping[str, Any]
    profile_path: Path
    profile: Mapping[str, Any]
    notes: tuple[str, ...]
    steps: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the plan for --json."""
        return {
            "files": [str(self.desk_path), str(self.profile_path)],
            "desk": self.desk,
            "profile": self.profile,
            "notes": list(self.notes),
            "next": list(self.steps),
        }

    def table(self) -> str:
        """Return the plan for a terminal."""
        lines = [f"wrote {self.desk_path} and {self.profile_path}"]
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"{number}. {step}" for number, step in enumerate(self.steps, start=1)]
        return "\n".join(lines)


def plan(home: Path, answers: InitAnswers, terminal: TerminalFacts) -> DeskPlan:
    """Return what would be written; raises ConfigError naming the answer and the remedy."""
    _refuse_clashes(answers)
    notes = [terminal.trouble] if terminal.trouble else []
    # Sizes are computed from the capital: above the balance every risk is larger than it says.
    if 0 < terminal.balance < answers.capital:
        notes.append(f"the account's balance is {terminal.balance:.2f}, below the capital")
    profile = {
        **weights(answers.timeframes, notes),
        "risk": {"capital": answers.capital, "risk_per_trade_pct": answers.risk_per_trade},
        "symbols": {
            symbol: _conditions(symbol, broker, answers, terminal, notes)
            for symbol, broker in answers.symbols
        },
        "agents": {"provider": answers.provider},
        "execution": answers.execution,
    }
    desk: dict[str, Any] = {"instances": [_instance(answers, *pair) for pair in answers.symbols]}
    if answers.needs_channel:
        desk["channels"] = {answers.channel: _channel(answers, terminal, notes)}
    values = differing(profile, Profile().model_dump(mode="json"))
    # Raises here what `torra run` would raise: a plan that cannot be loaded is none.
    validate(DeskSettings, desk, "desk.json")
    validate(Profile, values, f"profile {answers.profile_name}")
    return DeskPlan(
        desk_path=home / DESK,
        desk=desk,
        profile_path=home / "profiles" / f"{answers.profile_name}.json",
        profile=values,
        notes=tuple(notes),
        steps=_steps(answers),
    )


def _refuse_clashes(answers: InitAnswers) -> None:
    if not answers.symbols:
        raise ConfigError("give --symbols, such as XAUUSD=XAUUSD.m,EURUSD")
    for at, whose in ((0, "symbol"), (1, "broker's symbol")):
        names = [pair[at] for pair in answers.symbols]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise ConfigError(f"--symbols: the {whose} {twice} is there twice")
    if answers.needs_key and not answers.folder:
        raise ConfigError("give --folder, the folder that Torra and MetaTrader 5 share")
    if answers.needs_channel and answers.account < 1:
        raise ConfigError("give --account, the number of the account at the broker")


def _instance(answers: InitAnswers, symbol: str, broker: str) -> dict[str, Any]:
    beside = {name: other for name, other in answers.companions if other not in (symbol, broker)}
    return {
        "symbol": symbol,
        "timeframes": list(answers.timeframes),
        "profile": answers.profile_name,
        "feed": answers.feed,
        "bridge": answers.bridge,
        **({"channel": answers.channel} if answers.needs_channel else {}),
        **({"broker_symbol": broker} if broker != symbol else {}),
        **({"companions": beside} if beside else {}),
    }


def _channel(answers: InitAnswers, terminal: TerminalFacts, notes: list[str]) -> dict[str, Any]:
    if terminal.account and terminal.account != answers.account:
        raise ConfigError(
            f"--account: MetaTrader 5 is logged in to {terminal.account}, not {answers.account}; "
            "log in to the right account, or give its number"
        )
    if terminal.trade_mode == "real" and answers.bridge != "paper" and not answers.live:
        notes.append(
            f"account {answers.account} holds real money: no order goes there until "
            f"channels.{answers.channel}.live is true"
        )
    return {
        **({"folder": str(Path(answers.folder).expanduser().absolute())} if answers.folder else {}),
        "account": answers.account,
        "live": answers.live,
        "server_clock": server_clock(answers.server_clock, terminal, notes),
    }


def server_clock(given: str, terminal: TerminalFacts, notes: list[str]) -> str:
    """Return the clock that was given or, without one, the likeliest that fits the server's offset.

    Raises ConfigError for an unknown clock, and for one that the server's offset contradicts.
    """
    if given:
        clock = ServerClock.parse(given)
        if terminal.offset is not None and (fault := check(clock, terminal.offset, terminal.at)):
            raise ConfigError(fault)
        return given
    if terminal.offset is None:
        notes.append(
            f"server_clock is {USUAL[0]}, as of most brokers; if yours has another, its bars will "
            "be refused with the clock to take"
        )
        return USUAL[0]
    found = detect(terminal.offset, terminal.at)
    if not found:
        raise ConfigError(
            f"MT5 says that its server is {terminal.offset} s from UTC, which no clock is: set the "
            "clock of its computer right, or give --server-clock"
        )
    also = f" ({', '.join(found[1:])} would fit as well)" if found[1:] else ""
    notes.append(f"server_clock is {found[0]}, by what MT5 said at {iso(terminal.at)}{also}")
    return found[0]


def weights(timeframes: Iterable[str], notes: list[str]) -> dict[str, Any]:
    """Return equal weights where the shipped profile lacks one of the timeframes."""
    if set(timeframes) <= set(Profile().timeframe_weights):
        return {}
    notes.append("every timeframe weighs the same: see timeframe_weights in the profile")
    return {"timeframe_weights": dict.fromkeys(timeframes, 1.0)}


def _conditions(
    symbol: str, broker: str, answers: InitAnswers, terminal: TerminalFacts, notes: list[str]
) -> dict[str, Any]:
    """Return a symbol's section of the profile: from the broker's list, or nothing."""
    if terminal.terms is None:
        if not shipped(symbol):
            raise ConfigError(
                f"nothing is known of {symbol}: run the Expert Advisor first, whose list of "
                "symbols is then read, or give the broker's trading conditions with --terms FILE"
                + (f" ({terminal.trouble})" if terminal.trouble else "")
            )
        notes.append(f"{symbol}: shipped trading conditions; check them against your broker's")
        return {}
    found = lookup(symbol, broker, terminal.terms)
    if found.trade_mode in {"disabled", "close_only"} and answers.bridge != "paper":
        raise ConfigError(
            f"the broker lets nobody open {broker} (trade mode {found.trade_mode}): leave it out, "
            "or use the paper bridge"
        )
    if found.trade_mode != "full":
        notes.append(f"{symbol}: the broker's trade mode is {found.trade_mode}")
    if spread_of(found) is not None:
        notes.append(f"{symbol}: symbols.{symbol}.spread is that of one quote; is it the usual?")
    if not kind_of(symbol)[0]:
        notes.append(f"{symbol}: symbols.{symbol}.asset may tell the agents of what kind it is")
    return conditions(symbol, found)


def differing(values: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that differ from the usual ones, without empty sections."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        # A profile replaces the timeframe weights as a whole: an entry left out as usual would be
        # gone.
        if isinstance(value, Mapping) and name != "timeframe_weights":
            if inner := differing(value, usual.get(name) or {}):
                found[name] = inner
        elif value != usual.get(name):
            found[name] = value
    return found


def _steps(answers: InitAnswers) -> tuple[str, ...]:
    stream = f"--symbol {answers.symbols[0][0]} --timeframe {answers.timeframes[0]}"
    first = f"Start MetaTrader 5 on this computer and log in to account {answers.account}."
    if answers.needs_key:
        inputs = [f"channel {answers.channel}", f"account {answers.account}"]
        if answers.feed == "mt5_files":
            # In this order: what ticks is written before what is only read beside it.
            names = dict.fromkeys(broker for _, broker in (*answers.symbols, *answers.companions))
            inputs.append(f"bar_symbols {','.join(names)}")
            inputs.append(f"bar_timeframes {','.join(answers.timeframes)}")
            traded = [broker for _, broker in answers.symbols]
            if len(names) > len(traded):  # nobody reads the order flow of companions
                inputs.append(f"flow_symbols {','.join(traded)}")
        first = (
            f"Set {KEY_VARIABLE} where Torra runs (torra init --make-key shows a fresh one), and "
            f"in the Expert Advisor the same text as channel_key, {', '.join(inputs)}."
        )
    elif not answers.needs_channel:
        first = f"Import bars, for every stream: torra import FILE {stream} --clock new_york+7"
    goes = "on paper" if answers.bridge == "paper" else f"for account {answers.account}"
    history = (
        "Import years of bars, for every stream, so that the desk knows the record high and low: "
        f"torra import FILE {stream} --clock new_york+7 (docs/mt5.md)"
    )
    return (
        first,
        # Imported bars are the whole feed of `store`; beside another feed they are its past.
        *([] if answers.feed == "store" else [history]),
        "torra doctor says what is still missing.",
        f"torra run starts the desk, {goes}.",
    )
