"""The interface of a vendor's adapter, and how a vendor's failure is classified.

An adapter asks through the vendor's SDK and reads the reply from the body itself, field by field:
an SDK that finds a field it does not like raises and loses the usage, and usage is money. A failure
is a `VendorFault`: a `ModelUnavailable` that also knows whether the vendor is down for the tick and
whether it must not be asked for an hour. Its texts are ours; a vendor's may quote a key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol

from agents.contracts import JPEG, PNG, ModelUnavailable, Request
from torra.clock import System
from torra.providers.vendors.wire import RequestTrace

RETRY_S: Final = 0.5
"""How long a vendor that is busy or broken is left alone when it names no time itself."""

RECONNECT_S: Final = 0.2

REFUSED: Final[Mapping[int, str]] = {
    401: "401: the key was refused",
    402: "402: the account has no credit",
    403: "403: the key may not do this",
}
"""Answers after which the vendor is not asked for an hour."""

NOT_BEGUN: Final = frozenset((429, 503, 529))
"""How a vendor says that it is too busy to begin: nothing was made, and nothing is billed."""

CUT_SHORT: Final = 408
GONE: Final = 404

NO_COUNT: Final = 10**18
"""Stands for a value that is no count: more tokens than any request can have."""

SDK_TIMEOUT_S: Final = 900.0
"""A vendor's SDK's own limit, which never comes to bear: the call's is the one that counts."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the vendor counted them.

    `input` is all input, with what a cache supplied (`cached`) and what was written to one
    (`written`); `output` is all that is billed as output.
    """

    input: int
    output: int
    cached: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class VendorReply:
    """What a vendor answered.

    `stop` is one of our words (torra.providers.vendors.stops); `usage` is None when the server
    counted nothing, or what the request cannot have (torra.providers.vendors.switchboard). `detail`
    says in which form the model is asked, "" for the first.
    """

    text: str
    stop: str
    usage: Usage | None
    detail: str = ""


class Adapter(Protocol):
    """One vendor behind its SDK."""

    async def ask(self, model: str, request: Request, wire: RequestTrace) -> VendorReply:
        """Ask once and return the reply; raises VendorFault."""
        ...

    def exhausted(self, status: int, body: Mapping[str, Any]) -> str:
        """Return why the account can be asked no more today, "" when it can."""
        ...


class VendorFault(ModelUnavailable):
    """A vendor gave no answer.

    `down`: turn to another one for this tick. `blocks`: why the vendor is not to be asked for an
    hour, "" when it may be.
    """

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        again: float | None,
        billed: bool,
        down: bool = False,
        blocks: str = "",
    ) -> None:
        super().__init__(reason, detail, again=again, billed=billed)
        self.down = down
        self.blocks = blocks


async def exchange(sending: Awaitable[object], wire: RequestTrace) -> dict[str, Any]:
    """Let an SDK send its request and return the JSON object that came back.

    What the SDK makes of a successful reply does not matter. Raises whatever the SDK raised when
    there is no such reply, and VendorFault when the reply is no JSON object.
    """
    wire.restart()
    try:
        await sending
    except Exception:
        # A good reply is on the wire and paid for, whatever the SDK dislikes about it.
        if not wire.good:
            raise
    body = parsed(wire.body)
    if body is None:
        raise VendorFault("garbage", "the reply is no JSON object", again=RETRY_S, billed=True)
    return body


def written(body: Mapping[str, Any]) -> bytes:
    """Return a request body as the SDKs of Anthropic and OpenAI write it.

    Raises ValueError on text that has no UTF-8 and on a number that is not finite.
    """
    said = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return said.encode()


def parsed(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a body, None when it is none."""
    try:
        found = json.loads(body, object_pairs_hook=_marked)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; one with a duplicate key holds a number that no reply may hold."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else found | {"duplicate key": math.nan}


def wire_text(said: list[str], stop: str, calls: list[object], thoughts: list[str]) -> str:
    """Return the text of a reply by the wire's rows of the table (agents.texts.door).

    Where nothing is said it is the arguments of the one tool call, or the one thought of a reply
    that has ended by itself, if that is an object and nothing else.
    """
    text = "".join(said)
    if text.strip():
        return text
    if calls:
        given = calls[0] if len(calls) == 1 else ""
        return given if isinstance(given, str) else json.dumps(given)
    thought = thoughts[0].strip() if len(thoughts) == 1 and stop == "end" else ""
    return thought if thought.startswith("{") and thought.endswith("}") else text


def fault(wire: RequestTrace, error: Exception, adapter: Adapter) -> VendorFault:
    """Return what a failed request means, from what is on the wire."""
    if isinstance(error, VendorFault):
        return error
    if wire.status is not None and not 200 <= wire.status < 300:
        return _refusal(wire.status, wire, adapter)
    if wire.failure:
        return _broken(wire.failure)
    if wire.good:
        return VendorFault("garbage", type(error).__name__, again=RETRY_S, billed=True)
    return VendorFault("error", type(error).__name__, again=None, billed=wire.billed)


def _broken(failure: str) -> VendorFault:
    if failure == "connect":
        return VendorFault("error", "no connection", again=RECONNECT_S, billed=False, down=True)
    if failure == "long":
        return VendorFault("garbage", "the reply is too long", again=None, billed=True)
    if failure == "misdirected":
        return VendorFault("error", "not sent: not the vendor's address", again=None, billed=False)
    detail = "the reply cannot be read" if failure == "encoding" else "the connection broke"
    return VendorFault("error", detail, again=RETRY_S, billed=True)


def _refusal(status: int, wire: RequestTrace, adapter: Adapter) -> VendorFault:
    """Return what a status of failure means.

    A server or a proxy that breaks off may have begun, and its work so far may be billed.
    """
    body = parsed(wire.body) or {}
    # Before busy: an account that is used up answers 429 too, and waiting does not help.
    blocks = REFUSED.get(status, "") or adapter.exhausted(status, body)
    broken = status == CUT_SHORT or (status >= 500 and status not in NOT_BEGUN)
    if blocks:
        return VendorFault("error", blocks, again=None, billed=broken, down=True, blocks=blocks)
    if broken or status in NOT_BEGUN:
        again = retry_after(wire.headers, body)
        return VendorFault("error", str(status), again=again, billed=broken, down=True)
    return VendorFault("error", str(status), again=None, billed=False, down=status == GONE)


def retry_after(headers: Mapping[str, str], body: Mapping[str, Any]) -> float:
    """Return after how many seconds a busy vendor wants to be asked again, 0.5 if it says none.

    The sources are retry-after-ms, Retry-After in seconds or as a date, and Google's RetryInfo.
    """
    said = (
        _seconds(headers.get("retry-after-ms", ""), 1000.0),
        _seconds(headers.get("retry-after", ""), 1.0),
        _until(headers.get("retry-after", ""), headers.get("date", "")),
        _retry_info(body),
    )
    return next((seconds for seconds in said if seconds is not None), RETRY_S)


def _seconds(text: str, per_second: float) -> float | None:
    try:
        seconds = float(text) / per_second
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _until(text: str, date: str) -> float | None:
    """Return the seconds from the reply's own date, or else from now, to an HTTP date."""
    moment, sent = _http_date(text), _http_date(date)
    if moment is None:
        return None
    # Against the reply's own date the vendor's clock may be wrong and the wait is still right.
    return max(0.0, (moment - (sent or System().now())).total_seconds())


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # A date of HTTP is in GMT, also where it does not say so.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _retry_info(body: Mapping[str, Any]) -> float | None:
    for detail in items(mapping(body.get("error")).get("details")):
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (found := re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)s", delay)):
            return float(found[1])
    return None


def picture_type(picture: bytes | None) -> str:
    """Return the media type of a picture by its first bytes, "" for one that is none."""
    if picture is None:
        return ""
    if picture.startswith(PNG):
        return "image/png"
    return "image/jpeg" if picture.startswith(JPEG) else ""


def described(system: str, schema: Mapping[str, Any]) -> str:
    """Return the system text with the schema in it, for a model that is not held to one."""
    wanted = json.dumps(schema, separators=(",", ":"), sort_keys=True)
    return (
        f"{system}\n\nAnswer with one JSON object that fits this JSON schema, and with nothing "
        f"else:\n{wanted}"
    ).lstrip()


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects of a list, none for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Return text as it is, and none for anything else."""
    return value if isinstance(value, str) else ""


def count(source: Mapping[str, Any], *path: str) -> int:
    """Return a number of tokens that a server reports, NO_COUNT for anything that is none."""
    found: object = source
    for name in path:
        found = mapping(found).get(name)
    if found is None:
        return 0
    # Exactly int: True is one too.
    return found if type(found) is int and found >= 0 else NO_COUNT
