"""What the vendors' adapters share: one request on its way, its reply, and what a failure means.

An adapter asks through the vendor's SDK and reads the reply from the body itself, field by field:
an SDK that finds a field it does not like raises and loses the usage, and usage is money. The
transport notes on a `RequestTrace` how far a request came and what came back: it is the same for
every SDK, also where one turns the answer into an exception of its own and drops the rest. A
failure is a `VendorFault`. Its texts are ours; a vendor's may quote a key.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from agents.contracts import JPEG, PNG, ModelUnavailable, Request
from torra.clock import System
from torra.providers.prices import Usage
from torra.providers.vendors.addresses import Address
from torra.providers.vendors.table import Capability, vendors

if TYPE_CHECKING:
    import httpx2

RETRY_S: Final = 0.5
"""How long a vendor that is busy or broken is left alone when it names no time itself."""

REFUSALS: Final = {
    401: ("AUTH_REFUSED", "the key was refused"),
    402: ("NO_CREDIT", "the account has no credit"),
    403: ("AUTH_REFUSED", "the key may not do this"),
}
"""Answers after which any vendor is not asked for an hour (table.VendorRow.refusals has more)."""

NOT_BEGUN: Final = frozenset((429, 503, 529))
"""How a vendor says that it is too busy to begin: nothing was made, and nothing is billed."""

CUT_SHORT: Final = 408
GONE: Final = 404

NO_COUNT: Final = 10**18
"""Stands for a value that is no count: more tokens than any request can have."""

NO_KEY: Final = "placeholder"
"""What an SDK is given as key: the transport alone puts the real one in."""


@dataclass(frozen=True, slots=True)
class VendorReply:
    """What a vendor answered.

    `stop` is one of our words (table.VendorRow.stops); `usage` has no tokens when the server
    counted none. `detail` says in which form the model is asked, "" for the first.
    """

    text: str
    stop: str
    usage: Usage
    detail: str = ""


class VendorFault(ModelUnavailable):
    """A vendor gave no answer.

    `down`: turn to another one for this tick. `blocks`: it is not to be asked for an hour. `code`
    says what a refusal is, by its status and the fields of its body: AUTH_REFUSED, NO_CREDIT,
    QUOTA, BUSY, "" for any other fault.
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
        code: str = "",
    ) -> None:
        super().__init__(reason, detail, again=again, billed=billed)
        self.down, self.blocks, self.code = down, blocks, code


@dataclass(slots=True)
class RequestTrace:
    """One request on its way. `until` is when nobody waits any longer, in the loop's time."""

    address: Address
    until: float
    stage: Literal["new", "connecting", "sent", "answered"] = "new"
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def billed(self) -> bool:
        """Whether the vendor may have begun: it has the request, or part of it."""
        return self.stage in {"sent", "answered"}

    @property
    def good(self) -> bool:
        """Whether a whole reply with a status of success is here."""
        return self.stage == "answered" and 200 <= self.status < 300


CURRENT: ContextVar[RequestTrace] = ContextVar("torra_request")
"""The request that the running task makes; the transport sends nothing without one."""


Adapter = Callable[[str, Request], Awaitable[VendorReply]]
"""One vendor behind its SDK, which its module's `connect` opens.

It asks a model once, and raises VendorFault or what the SDK raises.
"""


def sdk_options(address: Address, http: httpx2.AsyncClient) -> dict[str, Any]:
    """Return how an SDK's client is opened.

    Asking again is decided elsewhere, and its own limit of time never comes to bear.
    """
    return {
        "api_key": NO_KEY,
        "base_url": address.base_url,
        "max_retries": 0,
        "timeout": 900.0,
        "http_client": http,
    }


async def exchange(sending: Awaitable[object]) -> dict[str, Any]:
    """Let an SDK send its request and return the JSON object that came back.

    What the SDK makes of a successful reply does not matter. Raises whatever the SDK raised when
    there is no such reply, and VendorFault when the reply is no JSON object.
    """
    trace = CURRENT.get()
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


def reply_of(
    vendor: str,
    answer: Mapping[str, Any],
    stop: str,
    texts: Sequence[object] = (),
    calls: Sequence[object] = (),
    thoughts: Sequence[object] = (),
) -> VendorReply:
    """Return a reply from its parts, and from the fields in which its vendor counts tokens."""
    fields = vendors()[vendor].usage.items()
    tokens = {
        name: sum(count(value) for path in paths.split() for value in values(answer, path))
        for name, paths in fields
    }
    return VendorReply(wire_text(texts, stop, calls, thoughts), stop, Usage(**tokens))


def wire_text(
    texts: Sequence[object], stop: str, calls: Sequence[object], thoughts: Sequence[object]
) -> str:
    """Return the text of a reply by the wire's rows of the table (agents.texts.door).

    Without any words it is the arguments of the one tool call, or the one thought of a reply that
    has ended by itself, if that is an object and nothing else.
    """
    words = "".join(map(text, texts))
    if words.strip():
        return words
    if calls:
        arguments = calls[0] if len(calls) == 1 else ""
        return arguments if isinstance(arguments, str) else json.dumps(arguments)
    thought = text(thoughts[0]).strip() if len(thoughts) == 1 and stop == "end" else ""
    return thought if thought.startswith("{") and thought.endswith("}") else words


def fault(trace: RequestTrace, error: Exception) -> VendorFault:
    """Return what a failed request means."""
    if trace.status and not 200 <= trace.status < 300:
        return _refusal(trace)
    for cause in (error, error.__cause__):  # an SDK may wrap the transport's in its own
        if isinstance(cause, VendorFault):
            return cause
    return VendorFault("error", type(error).__name__, billed=trace.billed)


def _refusal(trace: RequestTrace) -> VendorFault:
    """Return what a status of failure means.

    A server or a proxy that breaks off may have begun, and its work so far may be billed.
    """
    status, body = trace.status, parsed(trace.body) or {}
    broken = status == CUT_SHORT or (status >= 500 and status not in NOT_BEGUN)
    # Before busy: an account that is used up answers 429 too, and waiting does not help.
    if refusal := REFUSALS.get(status) or _cause(trace.address.vendor, status, body):
        code, meaning = refusal
        return VendorFault(
            "error", f"{status}: {meaning}", billed=broken, down=True, blocks=True, code=code
        )
    busy = broken or status in NOT_BEGUN
    again = retry_after(trace.headers, body) if busy else None
    return VendorFault(
        "error", str(status), again=again, billed=broken, down=busy or status == GONE,
        code="BUSY" if busy else "",
    )  # fmt: skip


def _cause(vendor: str, status: int, body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return code and meaning of a refusal by the words of its cause; None where none is known.

    No other field counts: a server may quote the prompt, in which strangers' headlines stand.
    """
    row = vendors()[vendor]
    causes = (value for path in row.causes.split() for value in values(body, path))
    codes = "\n".join(map(text, causes)).lower()
    refusals = (
        (code, meaning)
        for when, words, code, meaning in row.refusals
        if when in {0, status} and words in codes
    )
    return next(refusals, None)


def retry_after(headers: Mapping[str, str], body: Mapping[str, Any]) -> float:
    """Return after how many seconds a busy vendor wants to be asked again, 0.5 if it says none.

    The sources are retry-after-ms, Retry-After in seconds or as a date, and Google's RetryInfo.
    """
    stated = headers.get("retry-after", "")
    waits = (
        _seconds(headers.get("retry-after-ms", ""), 1000.0),
        _seconds(stated),
        _until(stated, headers.get("date", "")),
        *(
            _seconds(text(delay).removesuffix("s"))
            for delay in values(body, "error.details.retryDelay")
        ),
    )
    return next((seconds for seconds in waits if seconds is not None), RETRY_S)


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


def _http_date(words: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(words)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # A date of HTTP is in GMT, also where it does not say so.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def picture_of(request: Request, can: Capability) -> tuple[str, str]:
    """Return the media type of a request's picture, by its first bytes, and its data in base64.

    The type is "" where there is none, or a model that does not see.
    """
    data = request.picture or b""
    kinds = {PNG: "image/png", JPEG: "image/jpeg"}
    kind = next((kind for sign, kind in kinds.items() if data.startswith(sign)), "")
    return (kind, base64.b64encode(data).decode()) if kind and can.picture else ("", "")


def items(*sources: object) -> list[dict[str, Any]]:
    """Return the JSON objects among these values, and those in a list among them."""
    return [
        item
        for source in sources
        for item in (source if isinstance(source, list) else [source])
        if isinstance(item, dict)
    ]


def values(source: object, path: str) -> list[Any]:
    """Return what stands at a path such as details.reason, for each object of a list on it."""
    nodes = [source]
    for name in path.split("."):
        nodes = [item.get(name) for item in items(*nodes)]
    return nodes


def arguments(calls: Sequence[object], path: str) -> list[Any]:
    """Return what stands at a path of each tool call; None for one that has none there."""
    return [next(iter(values(call, path)), None) for call in calls]


def text(value: object) -> str:
    """Return text as it is, and none for anything else."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """Return a number of tokens that a server reports, NO_COUNT for anything that is none."""
    if value is None:
        return 0
    # Exactly int: True is one too.
    return value if type(value) is int and value >= 0 else NO_COUNT
