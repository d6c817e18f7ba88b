"""Notices through Apprise: mail, Telegram, Discord, Slack, ntfy, webhooks and many more.

TORRA_NOTICE_URLS holds the addresses, separated by spaces or line ends. An address often holds a
token, so none is ever logged, stored or shown: a way out is called by its number and its scheme.

Each notice is sent by a process of its own (`apprise_child`), which is ended when it takes too
long: a service that never answers, drips or sends without end costs neither a thread nor the memory
of the desk, and what the libraries below would log goes nowhere. The address is handed over by
standard input, where no list of processes shows it.

Without the extra `notices` (the package apprise) every notice waits, and the remedy is told.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from torra.errors import ConfigError
from torra.notices.protocol import Notice, NoticePlace, NoticeRefused, NoticeService

VARIABLE: Final = "TORRA_NOTICE_URLS"
MOST_ADDRESSES: Final = 16

SEND_SECONDS: Final = 20.0
"""Real seconds that a service has for one notice."""

CHILD: Final = Path(__file__).with_name("apprise_child.py")
ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,23})://\S+")
MISSING: Final = (
    "the extra `notices` is not installed: pip install apprise into the environment that runs torra"
)
WORDS: Final = {
    "sent": "",
    "refused": "not taken: unreachable, or it refused",
    "unknown": "Apprise does not know this kind of address",
    "missing": MISSING,
}
TYPES: Final = {"alarm": "failure", "decision": "warning", "trade": "success", "note": "info"}
"""The level as Apprise's types, which some services show as a colour."""


def installed() -> bool:
    """Return whether the package apprise is there."""
    return find_spec("apprise") is not None


def addresses(text: str) -> list[str]:
    """Return the addresses of the variable; ConfigError by number for what is none."""
    parts = text.split()
    if len(parts) > MOST_ADDRESSES:
        raise ConfigError(f"{VARIABLE} has more than {MOST_ADDRESSES} addresses: leave some out")
    for number, one in enumerate(parts, 1):
        if not ADDRESS.fullmatch(one):
            raise ConfigError(
                f"{VARIABLE}: address {number} is none: write SCHEME://..., as docs/notices.md "
                "shows, separated by spaces"
            )
    return parts


def open_services(place: NoticePlace) -> Sequence[NoticeService]:
    """Return one way out for each address of the environment; raises ConfigError."""
    return [
        AppriseAddress(f"{number} {address.partition('://')[0].lower()}", address)
        for number, address in enumerate(addresses(place.environment.get(VARIABLE, "")), 1)
    ]


@dataclass(frozen=True, slots=True)
class AppriseAddress:
    """One address; it is in no representation of this object."""

    name: str
    address: str = field(repr=False)
    seconds: float = SEND_SECONDS

    def send(self, notice: Notice) -> None:
        """Send a notice by a process of its own; raises NoticeRefused in words of ours."""
        message = {
            "address": self.address,
            "title": notice.title,
            "body": notice.text,
            "type": TYPES[notice.level],
        }
        word = ask_child(message, self.seconds)
        if word != "sent":
            raise NoticeRefused(WORDS.get(word, "the sender failed"))


def ask_child(message: dict[str, str], seconds: float) -> str:
    """Return the word of the process that sends; it is ended after so many seconds."""
    try:
        done = subprocess.run(  # noqa: S603 - a program of ours, nothing of the notice in it
            # -P: this folder is no place for imports
            [sys.executable, "-P", str(CHILD)],
            input=json.dumps(message).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # without Torra's own variables and the keys of vendors
            env={
                name: value
                for name, value in os.environ.items()
                if not (name.upper().startswith("TORRA_") or name.upper().endswith("_KEY"))
            },
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoticeRefused(f"no answer within {seconds:g} s") from None
    except OSError as error:
        raise NoticeRefused(f"the sender cannot be started ({type(error).__name__})") from None
    return done.stdout.decode("ascii", "replace").strip()[-20:]
