"""What the vendors' adapters share: one request on its way, its reply, and what a failure means.

An adapter asks through the vendor's SDK and reads the reply from the body itself, field by field:
an SDK that finds a field it does not like raises and loses the usage, and usage is money. The
transport notes on a `RequestTrace` how far a request came and what came back: it is the same for
every SDK, also where one turns the answer into an exception of its own and drops the rest. A
failure is a `VendorFault`. Its texts are ours; a vendor's may quote a key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal

from agents.contracts import JPEG, PNG, ModelUnavailable, Request
from torra.clock import System
from torra.providers.prices import Usage
from torra.providers.vendors.addresses import Address
from torra.providers.vendors.table import Capability, vendors

RETRY_S: Final = 0.5
"""How long a vendor that is busy or broken is left alone when it names no time itself."""

REFUSALS: Final = (
    (401, "", "refused", "the key was refused"),
    (402, "", "refused", "the account has no credit"),
    (403, "", "refused", "the key may not do this"),
)
"""Answers after which any vendor is not asked for an hour (table.Vendor.refusals)."""

NOT_BEGUN: Final = frozenset((429, 503, 529))
"""How a vendor says that it is too busy to begin: nothing was made, and nothing is billed."""

CUT_SHORT: Final = 408
GONE: Final = 404

NO_COUNT: Final = 10**18
"""Stands for a value that is no count: more tokens than any request can have."""

NO_KEY: Final = "placeholder"
"""What an SDK is given as key: the transport alone puts the real one in."""

SDK_TIMEOUT_S: Final = 900.0
"""A vendor's SDK's own limit, which never comes to bear: the call's is the one that counts."""


@dataclass(frozen=True, slots=True)
class VendorReply:
    """What a vendor answered.

    `stop` is one of our words (table.Vendor.stops); `usage` is None when the server counted
    nothing. `detail` says in which form the model is asked, "" for the first.
    """

    text: str
    stop: str
    usage: Usage | None
    detail: str = ""


class VendorFault(ModelUnavailable):
    """A vendor gave no answer.

    `down`: turn to another one for this tick. `blocks`: it is not to be asked for an hour.
    """

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        again: float | None = None,
        billed: bool = False,
        down: bool = False,
        blocks: bool = False,
    ) -> None:
        super().__init__(reason, detail, again=again, billed=billed)
        self.down = down
        self.blocks = blocks


@dataclass(slots=True)
class RequestTrace:
    """One request on its way. `until` is when nobody waits any longer, in the loop's time.

    `fault` is what the transport knows about a failure.
    """

    address: Address
    until: float
    stage: Literal["new", "connecting", "sent", "answered"] = "new"
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)
    fault: VendorFault | None = None

    def restart(self) -> None:
        """Forget what came back: another request begins."""
        self.stage, self.status, self.headers, self.body, self.fault = "new", 0, {}, b"", None

    @property
    def good(self) -> bool:
        """Whether a whole reply with a status of success is here."""
        return self.stage == "answered" and 200 <= self.status < 300


CURRENT: ContextVar[RequestTrace] = ContextVar("torra_request")
"""The request that the running task makes; the transport sends nothing without one."""


Adapter = Callable[[str, Request, RequestTrace], Awaitable[VendorReply]]
"""One vendor behind its SDK, which its module's `connect` opens.

It asks a model once, and raises VendorFault or what the SDK raises.
"""


async def exchange(sending: Awaitable[object], trace: RequestTrace) -> dict[str, Any]:
    """Let an SDK send its request and return the JSON object that came back.

    What the SDK makes of a successful reply does not matter. Raises whatever the SDK raised when
    there is no such reply, and VendorFault when the reply is no JSON object.
    """
    trace.restart()
    try:
        await sending
    except Exception:
        # A good reply is here and paid for, whatever the SDK dislikes about it.
        if not trace.good:
            raise
    body = parsed(trace.body)
    if body is None:
        raise VendorFault("garbage", "the reply is no JSON object", again=RETRY_S, billed=True)
    return body


def parsed(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a body, None when it is none."""
    try:
        value = json.loads(body, object_pairs_hook=_marked)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; one with a duplicate key holds a number that no reply may hold."""
    value = dict(pairs)
    return value if len(value) == len(pairs) else value | {"duplicate key": math.nan}


def wire_text(texts: list[str], stop: str, calls: list[object], thoughts: list[str]) -> str:
    """Return the text of a reply by the wire's rows of the table (agents.texts.door).

    Without any words it is the arguments of the one tool call, or the one thought of a reply that
    has ended by itself, if that is an object and nothing else.
    """
    text = "".join(texts)
    if text.strip():
        return text
    if calls:
        given = calls[0] if len(calls) == 1 else ""
        return given if isinstance(given, str) else json.dumps(given)
    thought = thoughts[0].strip() if len(thoughts) == 1 and stop == "end" else ""
    return thought if thought.startswith("{") and thought.endswith("}") else text


def fault(trace: RequestTrace, error: Exception) -> VendorFault:
    """Return what a failed request means."""
    if isinstance(error, VendorFault):
        return error
    if trace.status and not 200 <= trace.status < 300:
        return _refusal(trace)
    if trace.fault:
        return trace.fault
    name = type(error).__name__
    if trace.good:
        return VendorFault("garbage", name, again=RETRY_S, billed=True)
    return VendorFault("error", name, billed=trace.stage == "sent")


def _refusal(trace: RequestTrace) -> VendorFault:
    """Return what a status of failure means.

    A server or a proxy that breaks off may have begun, and its work so far may be billed.
    """
    status, body = trace.status, parsed(trace.body) or {}
    codes = _codes(trace.address.vendor, body)
    broken = status == CUT_SHORT or (status >= 500 and status not in NOT_BEGUN)
    # Before busy: an account that is used up answers 429 too, and waiting does not help.
    for code, words, _, meaning in (*REFUSALS, *vendors()[trace.address.vendor].refusals):
        if code in {0, status} and words in codes:
            detail = f"{status}: {meaning}"
            return VendorFault("error", detail, billed=broken, down=True, blocks=True)
    if broken or status in NOT_BEGUN:
        again = retry_after(trace.headers, body)
        return VendorFault("error", str(status), again=again, billed=broken, down=True)
    return VendorFault("error", str(status), down=status == GONE)


def _codes(vendor: str, body: Mapping[str, Any]) -> str:
    """Return what a refusal names as its cause, in lower case.

    No other field counts: a server may quote the prompt, in which strangers' headlines stand.
    """
    error = mapping(body.get("error"))
    details = items(error, "details")
    quotas = [quota for detail in details for quota in items(detail, "violations")]
    values = [error.get("code"), error.get("type")]
    values += [detail.get("reason") for detail in details]
    values += [quota.get("quotaId") for quota in quotas]
    if vendor == "anthropic":  # it has no code for an account without credit
        values.append(error.get("message"))
    return "\n".join(map(text, values)).lower()


def retry_after(headers: Mapping[str, str], body: Mapping[str, Any]) -> float:
    """Return after how many seconds a busy vendor wants to be asked again, 0.5 if it says none.

    The sources are retry-after-ms, Retry-After in seconds or as a date, and Google's RetryInfo.
    """
    details = items(mapping(body.get("error")), "details")
    waits = (
        _seconds(headers.get("retry-after-ms", ""), 1000.0),
        _seconds(headers.get("retry-after", "")),
        _until(headers.get("retry-after", ""), headers.get("date", "")),
        *(float(delay[1]) for detail in details if (delay := _delay(detail.get("retryDelay")))),
    )
    return next((seconds for seconds in waits if seconds is not None), RETRY_S)


def _delay(value: object) -> re.Match[str] | None:
    return re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)s", text(value))


def _seconds(number: str, per_second: float = 1.0) -> float | None:
    try:
        seconds = float(number) / per_second
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _until(date: str, sent: str) -> float | None:
    """Return the seconds from the reply's own date, or else from now, to an HTTP date."""
    moment, start = _http_date(date), _http_date(sent)
    if moment is None:
        return None
    # Against the reply's own date the vendor's clock may be wrong and the wait is still right.
    return max(0.0, (moment - (start or System().now())).total_seconds())


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # A date of HTTP is in GMT, also where it does not say so.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def picture_of(request: Request, can: Capability) -> tuple[str, bytes]:
    """Return the media type of a request's picture, by its first bytes, and its data.

    The type is "" where there is none, or a model that does not see.
    """
    data = request.picture or b""
    kinds = {PNG: "image/png", JPEG: "image/jpeg"}
    kind = next((kind for sign, kind in kinds.items() if data.startswith(sign)), "")
    return kind if can.picture else "", data


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items(parent: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a list by its name, none for anything else."""
    value = parent.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Return text as it is, and none for anything else."""
    return value if isinstance(value, str) else ""


def count(source: Mapping[str, Any], *path: str) -> int:
    """Return a number of tokens that a server reports, NO_COUNT for anything that is none."""
    value: object = source
    for name in path:
        value = mapping(value).get(name)
    if value is None:
        return 0
    # Exactly int: True is one too.
    return value if type(value) is int and value >= 0 else NO_COUNT
