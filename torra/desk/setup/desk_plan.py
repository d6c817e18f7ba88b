"""The plan of a desk: a desk.json and a profile from a request, and the writing of both.

What is planned has been checked by the models that read the files later, so nothing is planned that
could not be loaded. The profile names only what differs from the shipped default. `torra init`
plans with `plan`: the caller hands in what MetaTrader 5 said of itself (symbols with their trading
conditions, the server's offset, the account), and an answer that does not fit it raises
ConfigError. The page that adds a symbol plans with torra.desk.setup.adding.

desk.json is written last, so it never names a profile that is not there: what a kill or a full disk
between the two leaves is a profile more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from torra.clock import TIMEFRAMES, iso
from torra.config import Channel, DeskSettings, Profile, validate
from torra.desk.setup.broker_symbols import conditions, kind_of, lookup, shipped, spread_of
from torra.desk.setup.request import SetupRequest, TerminalFacts
from torra.errors import ConfigError
from torra.home import DESK
from torra.market.broker_clock import USUAL, ServerClock, check, detect
from torra.whole_files import write_whole

KEY_VARIABLE: Final[str] = Channel.model_fields["key_variable"].default
"""Environment variable of the channel key, unless a channel names another."""


SMALL: Final = re.compile(r"(?m)(?<=: )\d+(?:\.\d+)?e-\d+(?=,?$)")
"""A number that JSON writes with an exponent."""


@dataclass(frozen=True, slots=True)
class DeskPlan:
    """The two files as they would be, with notes for the user and the next steps.

    `profile` is None where one that is there is used.
    """

    home: Path
    request: SetupRequest
    desk: Mapping[str, Any]
    profile: Mapping[str, Any] | None
    notes: tuple[str, ...]
    steps: tuple[str, ...]

    @property
    def desk_path(self) -> Path:
        """Where desk.json is."""
        return self.home / DESK

    @property
    def profile_path(self) -> Path:
        """Where the profile is."""
        return self.home / "profiles" / f"{self.request.profile_name}.json"

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


def plan(home: Path, request: SetupRequest, terminal: TerminalFacts) -> DeskPlan:
    """Return what would be written; raises ConfigError naming the answer and the remedy."""
    _refuse_clashes(request)
    notes = [terminal.trouble] if terminal.trouble else []
    # Sizes are computed from the capital: above the balance every risk is larger than it says.
    if 0 < terminal.balance < request.capital:
        notes.append(f"the account's balance is {terminal.balance:.2f}, below the capital")
    profile = profile_values(
        request,
        {
            symbol: _conditions(symbol, broker, request, terminal, notes)
            for symbol, broker in request.symbols
        },
        notes,
    )
    instances = [instance_values(request, *pair) for pair in request.symbols]
    desk: dict[str, Any] = {"instances": instances}
    if request.needs_channel:
        desk["channels"] = {request.channel: _channel(request, terminal, notes)}
    # Raises here what `torra run` would raise: a plan that cannot be loaded is none.
    settings = validate(DeskSettings, desk, DESK)
    validate(Profile, profile, f"profile {request.profile_name}")
    return DeskPlan(home, request, desk, profile, tuple(notes), _steps(request, settings))


def instance_values(request: SetupRequest, symbol: str, broker: str) -> dict[str, Any]:
    """Return the entry of desk.json for a symbol."""
    companions = {
        name: other for name, other in request.companions if other not in (symbol, broker)
    }
    return {
        "symbol": symbol,
        "timeframes": list(request.timeframes),
        "profile": request.profile_name,
        "feed": request.feed,
        "bridge": request.bridge,
        **({"channel": request.channel} if request.needs_channel else {}),
        **({"broker_symbol": broker} if broker != symbol else {}),
        **({"companions": companions} if companions else {}),
    }


def profile_values(
    request: SetupRequest, symbols: Mapping[str, Mapping[str, Any]], notes: list[str]
) -> dict[str, Any]:
    """Return what differs from the shipped profile; `symbols` are trading conditions."""
    usual = Profile()
    values = {
        "risk": {"capital": request.capital, "risk_per_trade_pct": request.risk_per_trade},
        "symbols": symbols,
        "agents": {"provider": request.provider},
        "execution": request.execution,
    }
    if not set(request.timeframes) <= set(usual.timeframe_weights):
        notes.append("every timeframe weighs the same: see timeframe_weights in the profile")
        values = {"timeframe_weights": dict.fromkeys(request.timeframes, 1.0)} | values
    return differing(values, usual.model_dump(mode="json"))


def advisor_inputs(desk: DeskSettings, channel: str) -> str:
    """Return the inputs of a channel's Expert Advisor that say which bars a desk reads."""
    items = [item for item in desk.instances if item.channel == channel]
    traded = dict.fromkeys(item.broker_name for item in items)
    # In this order: what ticks is written before what is only read beside it.
    names = traded | dict.fromkeys(name for item in items for name in item.companions.values())
    used = {name for item in items for name in item.timeframes}
    frames = [name for name in TIMEFRAMES if name in used]
    # Nobody reads the order flow of companions.
    flow = f", flow_symbols {','.join(traded)}" if len(names) > len(traded) else ""
    return f"bar_symbols {','.join(names)}, bar_timeframes {','.join(frames)}{flow}"


def _refuse_clashes(request: SetupRequest) -> None:
    if not request.symbols:
        raise ConfigError("give --symbols, such as XAUUSD=XAUUSD.m,EURUSD")
    for at, whose in ((0, "symbol"), (1, "broker's symbol")):
        names = [pair[at] for pair in request.symbols]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise ConfigError(f"--symbols: the {whose} {twice} is there twice")
    if request.needs_key and not request.folder:
        raise ConfigError("give --folder, the folder that Torra and MetaTrader 5 share")
    if request.needs_channel and request.account < 1:
        raise ConfigError("give --account, the number of the account at the broker")


def _channel(request: SetupRequest, terminal: TerminalFacts, notes: list[str]) -> dict[str, Any]:
    if terminal.account and terminal.account != request.account:
        raise ConfigError(
            f"--account: MetaTrader 5 is logged in to {terminal.account}, not {request.account}; "
            "log in to the right account, or give its number"
        )
    if terminal.trade_mode == "real" and request.bridge != "paper" and not request.live:
        notes.append(
            f"account {request.account} holds real money: no order goes there until "
            f"channels.{request.channel}.live is true"
        )
    return {
        **({"folder": str(Path(request.folder).expanduser().absolute())} if request.folder else {}),
        "account": request.account,
        "live": request.live,
        "server_clock": server_clock(request.server_clock, terminal, notes),
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
    clocks = detect(terminal.offset, terminal.at)
    if not clocks:
        raise ConfigError(
            f"MT5 says that its server is {terminal.offset} s from UTC, which no clock is: set the "
            "clock of its computer right, or give --server-clock"
        )
    also = f" ({', '.join(clocks[1:])} would fit as well)" if clocks[1:] else ""
    notes.append(f"server_clock is {clocks[0]}, by what MT5 said at {iso(terminal.at)}{also}")
    return clocks[0]


def _conditions(
    symbol: str, broker: str, request: SetupRequest, terminal: TerminalFacts, notes: list[str]
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
    terms = lookup(symbol, broker, terminal.terms)
    if terms.trade_mode in {"disabled", "close_only"} and request.bridge != "paper":
        raise ConfigError(
            f"the broker lets nobody open {broker} (trade mode {terms.trade_mode}): leave it out, "
            "or use the paper bridge"
        )
    if terms.trade_mode != "full":
        notes.append(f"{symbol}: the broker's trade mode is {terms.trade_mode}")
    if spread_of(terms) is not None:
        notes.append(f"{symbol}: symbols.{symbol}.spread is that of one quote; is it the usual?")
    if not kind_of(symbol)[0]:
        notes.append(f"{symbol}: symbols.{symbol}.asset may tell the agents of what kind it is")
    return conditions(symbol, terms)


def differing(values: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that differ from the usual ones, without empty sections."""
    changed: dict[str, Any] = {}
    for name, value in values.items():
        # A profile replaces the timeframe weights as a whole: an entry left out as usual would be
        # gone.
        if isinstance(value, Mapping) and name != "timeframe_weights":
            if inner := differing(value, usual.get(name) or {}):
                changed[name] = inner
        elif value != usual.get(name):
            changed[name] = value
    return changed


def _steps(request: SetupRequest, desk: DeskSettings) -> tuple[str, ...]:
    stream = f"--symbol {request.symbol} --timeframe {request.timeframes[0]}"
    steps = [f"Start MetaTrader 5 on this computer and log in to account {request.account}."]
    if request.needs_key:
        inputs = f"channel {request.channel}, account {request.account}"
        if request.feed == "mt5_files":
            inputs += f", {advisor_inputs(desk, request.channel)}"
        steps = [
            f"Set {KEY_VARIABLE} where Torra runs (torra init --make-key shows a fresh one), and "
            f"in the Expert Advisor the same text as channel_key, {inputs}."
        ]
    elif not request.needs_channel:
        steps = [f"Import bars, for every stream: torra import FILE {stream} --clock new_york+7"]
    # Imported bars are the whole feed of `store`; beside another feed they are its past.
    if request.feed != "store":
        steps.append(
            "Import years of bars, for every stream, so that the desk knows the record high and "
            f"low: torra import FILE {stream} --clock new_york+7 (docs/mt5.md)"
        )
    goes = "on paper" if request.bridge == "paper" else f"for account {request.account}"
    return (
        *steps, "torra doctor says what is still missing.", f"torra run starts the desk, {goes}."
    )  # fmt: skip


# --- the writing ----------------------------------------------------------------------------------


def write(plan: DeskPlan, *, force: bool = False) -> None:
    """Write the profile and then desk.json; raises ConfigError naming the file that cannot be.

    Without `force` files that are there already stay, and nothing is written.
    """
    if not force:
        refuse_overwriting(plan.desk_path, plan.profile_path)
    for path, values in ((plan.profile_path, plan.profile), (plan.desk_path, plan.desk)):
        if values is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, as_text(values).encode())
        except OSError as error:
            raise ConfigError(
                f"cannot write {path}: {error.strerror}; once that is mended, do it again "
                "(torra init asks for --force then)"
            ) from error


def refuse_overwriting(*paths: Path) -> None:
    """Raise ConfigError when one of the files exists."""
    for path in paths:
        if path.exists():
            raise ConfigError(f"{path} is there already: add --force to replace it")


def as_text(values: Mapping[str, Any]) -> str:
    """Write a settings file as JSON, without exponents."""
    # A person reads and edits this: 0.00001, not 1e-05.
    text = json.dumps(values, indent=2, allow_nan=False)
    return SMALL.sub(lambda number: format(Decimal(number[0]), "f"), text) + "\n"
