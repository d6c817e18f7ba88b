"""What MetaTrader 5 says of itself, read from the folder of a channel: symbols, account, clock.

Only files that the Expert Advisor signed with the channel's key count. What cannot be read is told
as trouble, and nothing is asked or changed. `torra init` and the pages plan a desk with it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from torra.advisor_protocol import difference
from torra.clock import EPOCH
from torra.desk.setup.request import SetupRequest, TerminalFacts
from torra.errors import ConfigError
from torra.regular_files import read_regular

if TYPE_CHECKING:
    from torra.bridges.torra.messages import Heartbeat, Symbols

M = TypeVar("M", "Heartbeat", "Symbols")


def read_terminal_facts(request: SetupRequest, key: str) -> TerminalFacts:
    """Return what the Expert Advisor wrote into the channel's folder, as far as it can be read.

    Raises ConfigError when it is the Expert Advisor of another channel.
    """
    from torra.bridges.torra.book_rows import read_symbol  # noqa: PLC0415
    from torra.bridges.torra.messages import Heartbeat, Symbols  # noqa: PLC0415
    from torra.desk.setup.desk_plan import KEY_VARIABLE  # noqa: PLC0415

    if not request.needs_key:
        return TerminalFacts()
    if not key:
        return TerminalFacts(trouble=f"what MT5 wrote was not read, for {KEY_VARIABLE} is not set")
    symbols, pulse_file = (
        Path(request.folder) / "state" / name for name in ("symbols.json", "ea.json")
    )
    troubles: list[str] = []
    terms, listed = None, _message(request.channel, key, troubles, symbols, Symbols)
    try:
        if listed is not None:
            terms = {row.broker_symbol: row for row in map(read_symbol, listed.rows)}
    except ValueError as error:
        troubles.append(f"{symbols} has a wrong row ({error})")
    pulse = _message(request.channel, key, troubles, pulse_file, Heartbeat)
    facts = TerminalFacts(terms=terms, trouble="; ".join(troubles))
    if pulse is None:
        return facts
    if pulse.channel != request.channel:
        raise ConfigError(
            f"--channel: the Expert Advisor of {request.folder} has the channel {pulse.channel}, "
            f"not {request.channel}"
        )
    return replace(
        facts,
        account=pulse.account,
        trade_mode=pulse.trade_mode,
        offset=pulse.server_offset_s,
        at=EPOCH + timedelta(seconds=pulse.gmt),
        balance=float(pulse.balance),
    )


def _message(channel: str, key: str, troubles: list[str], path: Path, kind: type[M]) -> M | None:
    from torra.bridges.torra.messages import MessageError, decode  # noqa: PLC0415

    try:
        return decode(read_regular(path), kind, key)
    except OSError as error:
        troubles.append(f"cannot read {path}: {error.strerror}")
    except MessageError as error:
        old = error.reason == "version"
        text = difference(channel, *error.versions) if old else f"{path} is no message ({error})"
        if text not in troubles:  # each of its files says so
            troubles.append(text)
    return None
