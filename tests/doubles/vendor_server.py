"""A loopback server that speaks the wire protocols of Anthropic, Google Gemini and OpenAI.

It answers by a script and records every request. A script maps a role (`technical`), a stage
(`research`) or `*` to an entry, or to a list of them, one for each request of a role; the last one
repeats. A role without a row gets honest replies. The entries are

    HONEST            a reply that fits the role's schema and cites what the prompt shows
    Reply(...)        a reply with other text, another stop reason, or several of it
    Status(...)       an error in the vendor's own words, with headers
    Hang, HalfHead, Drip, Endless, Reset, Truncated, SlowClose, Redirect, Raw, Huge
                      what goes wrong below the protocol
    Late(seconds, entry)    the same, later
    a function of Exchange  whatever it returns, of the above

Whatever a vendor refuses is refused here too, with its 400: `objection` says what.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, NamedTuple, Self

from tests.doubles import scripted
from tests.doubles.loopback import Loopback
from tests.doubles.vendor_rules import objection

ANTHROPIC: Final = "anthropic"
GOOGLE: Final = "google"
OPENAI: Final = "openai_compatible"
VENDORS: Final = (ANTHROPIC, GOOGLE, OPENAI)
PATHS: Final = {
    ANTHROPIC: re.compile(r"/v1/messages$"),
    GOOGLE: re.compile(r"/v1(?:beta)?/models/([^/:]+):generateContent$"),
    OPENAI: re.compile(r"/v1/chat/completions$"),
}

TITLES: Final = {
    "technical analyst": "technical",
    "sentiment analyst": "sentiment",
    "news analyst": "news",
    "key levels analyst": "key_levels",
    "momentum analyst": "momentum",
    "bull researcher": "bull_researcher",
    "bear researcher": "bear_researcher",
    "risk gate": "risk_gate",
    "chart scorer": "chart_scorer",
    "reviewer": "reviewer",
    "reader of the regime": "regime_reader",
    "liquidity expert": "liquidity",
    "microstructure expert": "microstructure",
    "macro and options expert": "macro",
    "chart geometry expert": "geometry",
    "judge": "judge",
}
STAGES: Final = {
    **dict.fromkeys(
        ("technical", "sentiment", "news", "fundamental", "key_levels", "momentum"), "analysts"
    ),
    "bull_researcher": "research",
    "bear_researcher": "research",
    "research_manager": "decision",
    "risk_gate": "gate",
    "trader": "thesis",
    "chart_scorer": "fallback",
    "reviewer": "review",
}

MAX_REQUEST: Final = 8 * 1024 * 1024
"""Bytes of a request that are read."""
MAX_CONNECTIONS: Final = 512
LONGEST: Final = 120.0
"""Seconds after which even a hanging answer is given up."""
HUGE: Final = 10 * 1024 * 1024


class Usage(NamedTuple):
    """Tokens of every reply, as Torra counts them: cached and written are parts of the input."""

    input: int = 1000
    cached: int = 200
    written: int = 100
    output: int = 120
    thoughts: int = 20


USAGE: Final = Usage()


@dataclass(frozen=True)
class Reply:
    """A model's reply. `stop` is end, length, refusal, filter, or prompt (Google's block)."""

    text: str | None = None
    stop: str = "end"
    usage: Usage | None = USAGE
    changes: Mapping[str, Any] = field(default_factory=dict)
    fenced: bool = False


HONEST: Final = Reply()


@dataclass(frozen=True)
class Status:
    """An error. `kind` picks the vendor's body: "" as the code says, or quota, or bad_key."""

    code: int
    kind: str = ""
    retry_after: str | None = None
    echo: bool = False


@dataclass(frozen=True)
class Hang:
    """No byte ever comes."""


@dataclass(frozen=True)
class HalfHead:
    """A part of the head, and no more."""


@dataclass(frozen=True)
class Endless:
    """White space before the body, for ever: something always comes."""


@dataclass(frozen=True)
class Drip:
    """An honest reply, a few bytes at a time: no read ever times out."""

    every: float = 0.05


@dataclass(frozen=True)
class Reset:
    """The connection is reset, before the first byte or in the middle of the body."""

    midway: bool = False


@dataclass(frozen=True)
class Truncated:
    """The connection ends before the body does."""


@dataclass(frozen=True)
class SlowClose:
    """The whole body, whose end only the close of the connection would tell, and no close."""


@dataclass(frozen=True)
class Redirect:
    """Another server's address."""

    to: str
    code: int = 307


@dataclass(frozen=True)
class Raw:
    """Bytes that may be no JSON at all, with status 200."""

    body: bytes
    kind: str = "application/json"


@dataclass(frozen=True)
class Huge:
    """A reply of ten megabytes; `how` is plain, chunked or gzip (small on the wire)."""

    how: str = "plain"
    size: int = HUGE


@dataclass(frozen=True)
class Late:
    """An entry after so many seconds."""

    seconds: float
    entry: Any = HONEST


@dataclass
class Exchange:
    """A request as it arrived. `number` counts the requests of its role from 1."""

    vendor: str
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    role: str
    number: int
    at: float
    refused: str = ""
    hung_up: bool = False
    raw: bytes = b""

    @property
    def stage(self) -> str:
        return STAGES.get(self.role, "")

    @property
    def model(self) -> str:
        found = PATHS[GOOGLE].search(self.path) if self.vendor == GOOGLE else None
        return found[1] if found else str(self.body.get("model", ""))

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The schema that the reply is held to, None without one."""
        return schema_of(self.vendor, self.body)

    @property
    def text(self) -> str:
        """Everything that the model would read as text."""
        return "\n".join(texts(self.body))


class VendorServer(Loopback):
    """See the module. Use it in a `with`; `exchanges` is what was asked, in order of arrival."""

    def __init__(self, script: Mapping[str, Any] | None = None, *, strict: bool = True) -> None:
        super().__init__(_Conversation)
        self.script: Mapping[str, Any] = script or {}
        self.strict = strict
        self.exchanges: list[Exchange] = []
        self.connections = 0
        self._open = 0
        self._lock = threading.Lock()
        self._counts: dict[str, itertools.count[int]] = {}

    def base(self, vendor: str) -> str:
        """Return the base URL as the vendor's SDK wants it."""
        return f"{self.url}/v1" if vendor == OPENAI else self.url

    def play(self, script: Mapping[str, Any]) -> Self:
        """Begin anew with another script; nothing may be under way."""
        with self._lock:
            self.script = script
            self.exchanges = []
            self._counts = {}
        return self

    def asked(self, role: str) -> list[Exchange]:
        return [exchange for exchange in self.exchanges if exchange.role == role]

    def record(self, exchange: Exchange) -> None:
        with self._lock:
            counter = self._counts.setdefault(exchange.role, itertools.count(1))
            exchange.number = next(counter)
            self.exchanges.append(exchange)

    def entry(self, exchange: Exchange) -> Any:
        """Return what the script has for a request."""
        for name in (exchange.role, exchange.stage, "*"):
            if name in self.script:
                entries = self.script[name]
                if isinstance(entries, list):
                    entries = entries[min(exchange.number, len(entries)) - 1]
                return entries
        return HONEST

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self.connections += 1
            self._open += 1
            crowded = self._open > MAX_CONNECTIONS
        if crowded:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open -= 1
        super().shutdown_request(request)


class _Conversation(BaseHTTPRequestHandler):
    """One connection: reads requests and plays entries."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    timeout = LONGEST
    server: VendorServer

    def log_message(self, *_: Any) -> None:
        """Say nothing: what was asked is in `exchanges`."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        exchange = self._read()
        self.server.record(exchange)
        if not exchange.vendor:
            self._send(404, b'{"error": "no such path"}')
            return
        if self.server.strict and (refused := objection(exchange)):
            exchange.refused = refused
            self._send(400, error_body(exchange.vendor, 400, "", refused))
            return
        entry = self.server.entry(exchange)
        while callable(entry) or isinstance(entry, Late):
            if isinstance(entry, Late):
                self._pause(exchange, entry.seconds)
                entry = entry.entry
            else:
                entry = entry(exchange)
        self._play(entry, exchange)

    def _read(self) -> Exchange:
        length = min(int(self.headers.get("content-length") or 0), MAX_REQUEST)
        raw = self.rfile.read(length)
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {}
        path = self.path.partition("?")[0]
        vendor = next((name for name, form in PATHS.items() if form.search(path)), "")
        return Exchange(
            vendor=vendor if self.command == "POST" else "",
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
            role=role_of(body),
            number=0,
            at=time.monotonic(),
            raw=raw,
        )

    def _play(self, entry: Any, exchange: Exchange) -> None:
        match entry:
            case Reply():
                self._send(200, completion(exchange, entry))
            case Status():
                self._refuse(entry, exchange)
            case Raw():
                self._send(200, entry.body, **{"content-type": entry.kind})
            case Redirect():
                self._send(entry.code, b"", location=entry.to + self.path)
            case Hang():
                self._pause(exchange, LONGEST)
                self.close_connection = True
            case HalfHead():
                self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-ty")
                self.wfile.flush()
                self._pause(exchange, LONGEST)
                self.close_connection = True
            case Endless():
                self._head(200, {"transfer-encoding": "chunked"})
                with suppress(OSError):
                    while not self._pause(exchange, 0.02):
                        self.wfile.write(b"1\r\n \r\n")
                        self.wfile.flush()
                self.close_connection = True
            case Drip():
                self._drip(entry, exchange)
            case Reset():
                self._reset(entry, exchange)
            case Truncated():
                body = completion(exchange, HONEST)
                self._send(200, body[: len(body) // 2], **{"content-length": str(len(body))})
                self.close_connection = True
            case SlowClose():
                self._head(200, {"connection": "close"})
                self.wfile.write(completion(exchange, HONEST))
                self.wfile.flush()
                self._pause(exchange, LONGEST)
            case Huge():
                self._flood(entry, exchange)
            case _:
                raise TypeError(f"no entry: {entry!r}")

    def _send(self, code: int, body: bytes, **headers: str) -> None:
        self._head(code, {"content-length": str(len(body)), **headers})
        with suppress(OSError):
            self.wfile.write(body)
            self.wfile.flush()

    def _head(self, code: int, headers: Mapping[str, str]) -> None:
        self.send_response(code)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _refuse(self, entry: Status, exchange: Exchange) -> None:
        said = "it did not work"
        if entry.echo:
            sent = [exchange.headers.get(name, "") for name in KEY_HEADERS]
            said = f"Incorrect API key provided: {' '.join(sent)}. Path {exchange.path}"
        headers = {} if entry.retry_after is None else {"retry-after": entry.retry_after}
        body = error_body(exchange.vendor, entry.code, entry.kind, said)
        self._send(entry.code, body, **headers)

    def _drip(self, entry: Drip, exchange: Exchange) -> None:
        body = completion(exchange, HONEST)
        self._head(200, {"content-length": str(len(body))})
        with suppress(OSError):
            for at in range(0, len(body), 2):
                self.wfile.write(body[at : at + 2])
                self.wfile.flush()
                if self._pause(exchange, entry.every):
                    break
        self.close_connection = True

    def _reset(self, entry: Reset, exchange: Exchange) -> None:
        if entry.midway:
            body = completion(exchange, HONEST)
            self._send(200, body[: len(body) // 2], **{"content-length": str(len(body))})
            self._pause(exchange, 0.02)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        # The stream objects hold the socket open: closing them all is what sends the RST.
        self.rfile.close()
        self.wfile.close()
        self.connection.close()
        self.wfile, self.rfile = _Gone(), _Gone()  # type: ignore[assignment]

    def _flood(self, entry: Huge, exchange: Exchange) -> None:
        body = completion(exchange, Reply(changes={"claim": "@@", "reasoning": "@@"}))
        body = body.replace(b"@@", b"very long " * (entry.size // 10))
        if entry.how == "gzip":
            self._send(200, gzip.compress(body, 1), **{"content-encoding": "gzip"})
            return
        chunked = entry.how == "chunked"
        size = {"transfer-encoding": "chunked"} if chunked else {"content-length": str(len(body))}
        self._head(200, size)
        with suppress(OSError):
            for at in range(0, len(body), 65536):
                part = body[at : at + 65536]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
            if chunked:
                self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
            return
        exchange.hung_up = True
        self.close_connection = True

    def _pause(self, exchange: Exchange, seconds: float) -> bool:
        """Wait, and no longer than somebody listens; tell whether to stop."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.server.released.is_set():
                return True
            readable, _, _ = select.select([self.connection], [], [], min(left, 0.05))
            if readable and not _listening(self.connection):
                exchange.hung_up = True
                return True
        return False


class _Gone:
    """Stands in for the streams of a connection that was reset."""

    closed = True

    def close(self) -> None: ...

    def flush(self) -> None: ...

    def write(self, _: bytes) -> int:
        raise ConnectionResetError


def _listening(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except OSError:
        return False


# --- reading a request ----------------------------------------------------------------------------

KEY_HEADERS: Final = ("authorization", "x-api-key", "x-goog-api-key")
ROLE: Final = re.compile(r"you are the (" + "|".join(TITLES) + ")", re.IGNORECASE)
NAMED: Final = re.compile("|".join(TITLES), re.IGNORECASE)
SYMBOL: Final = re.compile(r"\bSymbol:? ([A-Z0-9][\w.]*)")
FACT: Final = re.compile(
    r"^\W*((?:technical|component|scores|market)\.\w+) = (-?\d+(?:\.\d+)?)\b", re.MULTILINE
)


def texts(value: Any) -> Iterator[str]:
    """Yield every text of a request, schemas and pictures left out."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name in ("text", "content", "system") and isinstance(item, str):
                yield item
            elif name not in ("output_config", "generationConfig", "response_format", "data"):
                yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def role_of(body: Any) -> str:
    """Return the id of the role that a prompt speaks to, "" for none."""
    text = "\n".join(texts(body))
    found = ROLE.findall(text) or NAMED.findall(text)
    return TITLES[found[-1].lower()] if found else ""


def schema_of(vendor: str, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON schema of a request in a vendor's own place for it."""
    if vendor == ANTHROPIC:
        found = body.get("output_config", {}).get("format", {}).get("schema")
    elif vendor == GOOGLE:
        settings = body.get("generationConfig", {})
        found = settings.get("responseJsonSchema") or settings.get("responseSchema")
    else:
        found = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return found


# --- writing a reply ------------------------------------------------------------------------------


def honest(exchange: Exchange, changes: Mapping[str, Any] | None = None) -> str:
    """Return the text of a reply that fits the schema, about the symbol that the prompt names."""
    symbol = SYMBOL.search(exchange.text)
    about: dict[str, Any] = {"symbol": symbol[1] if symbol else "?"}
    properties = (exchange.schema or {}).get("properties") or _shape_asked(exchange.text)
    if "adjustments" in properties:
        cited = [{"id": name, "value": float(value)} for name, value in FACT.findall(exchange.text)]
        reply = scripted.report(evidence=cited[:2], **scripted.SWARM_FIELDS, **about)
    elif "multiplier" in properties:
        reply = scripted.ruling(**about)
    elif "winner" in properties:
        reply = scripted.judgement(evidence=[], **about)
    elif "budget_pct" in properties:
        reply = scripted.regime(evidence=[], **about)
    elif "invalidation" in properties:
        reply = scripted.thesis(evidence=[], **about)
    else:
        reply = scripted.chart() | about
    wanted = properties if exchange.schema else reply
    return json.dumps({name: reply[name] for name in reply if name in wanted} | dict(changes or {}))


ASKED: Final = ("adjustments", "multiplier", "winner", "budget_pct", "invalidation")
"""Fields of which each shape of a reply has one of its own."""


def _shape_asked(text: str) -> tuple[str, ...]:
    return tuple(name for name in ASKED if f'"{name}"' in text)


def completion(exchange: Exchange, reply: Reply) -> bytes:
    """Return a whole reply as the vendor sends it."""
    text = honest(exchange, reply.changes) if reply.text is None else reply.text
    if reply.fenced:
        text = f"```json\n{text}\n```"
    elif reply.stop == "length":
        text = text[: len(text) // 2]
    form = {ANTHROPIC: _anthropic, GOOGLE: _google, OPENAI: _openai}[exchange.vendor]
    return json.dumps(form(exchange, reply, text)).encode()


def _anthropic(exchange: Exchange, reply: Reply, text: str) -> dict[str, Any]:
    reasons = {"end": "end_turn", "length": "max_tokens", "refusal": "refusal", "filter": "refusal"}
    refused = reply.stop in ("refusal", "filter", "prompt")
    usage = reply.usage
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": text, "citations": None},
    ]
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": exchange.model,
        "content": [] if refused else blocks,
        "stop_reason": reasons.get(reply.stop, reply.stop if not refused else "refusal"),
        "stop_sequence": None,
        "usage": None
        if usage is None
        else {
            "input_tokens": usage.input - usage.cached - usage.written,
            "cache_creation_input_tokens": usage.written,
            "cache_read_input_tokens": usage.cached,
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.written,
                "ephemeral_1h_input_tokens": 0,
            },
            "output_tokens": usage.output,
            "service_tier": "standard",
        },
    }


def _google(exchange: Exchange, reply: Reply, text: str) -> dict[str, Any]:
    reasons = {"end": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY", "filter": "RECITATION"}
    refused = reply.stop in ("refusal", "filter")
    usage = reply.usage
    candidate: dict[str, Any] = {
        "finishReason": reasons.get(reply.stop, reply.stop),
        "index": 0,
    }
    if not refused:
        candidate["content"] = {
            "role": "model",
            "parts": [{"text": "Hm.", "thought": True}, {"text": text}],
        }
    body: dict[str, Any] = {"modelVersion": exchange.model, "responseId": "r1"}
    if reply.stop == "prompt":
        body["promptFeedback"] = {"blockReason": "PROHIBITED_CONTENT"}
    else:
        body["candidates"] = [candidate]
    if usage is not None:
        body["usageMetadata"] = {
            "promptTokenCount": usage.input,
            "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.output - usage.thoughts,
            "thoughtsTokenCount": usage.thoughts,
            "totalTokenCount": usage.input + usage.output,
        }
    return body


def _openai(exchange: Exchange, reply: Reply, text: str) -> dict[str, Any]:
    reasons = {"end": "stop", "length": "length", "refusal": "stop", "filter": "content_filter"}
    refused = reply.stop in ("refusal", "filter", "prompt")
    usage = reply.usage
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if refused:
        message["content"] = None
        message["refusal"] = "I cannot help with that." if reply.stop != "filter" else None
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": exchange.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": reasons.get(reply.stop, "stop" if refused else reply.stop),
            }
        ],
    }
    if usage is not None:
        body["usage"] = {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {
                "cached_tokens": usage.cached,
                "cache_write_tokens": usage.written,
            },
            "completion_tokens_details": {"reasoning_tokens": usage.thoughts},
        }
    return body


ANTHROPIC_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
GOOGLE_STATES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


def error_body(vendor: str, code: int, kind: str, said: str) -> bytes:
    """Return an error as the vendor words it."""
    if vendor == ANTHROPIC:
        word = "billing_error" if kind == "quota" else ANTHROPIC_TYPES.get(code, "api_error")
        error: dict[str, Any] = {
            "type": "error",
            "error": {"type": word, "message": said},
            "request_id": "req_01",
        }
    elif vendor == GOOGLE:
        error = {"error": _google_error(code, kind, said)}
    else:
        word = "insufficient_quota" if kind == "quota" else None
        error = {
            "error": {
                "message": said,
                "type": word or "invalid_request_error",
                "param": None,
                "code": word or ("invalid_api_key" if code == 401 else None),
            }
        }
    return json.dumps(error).encode()


def _google_error(code: int, kind: str, said: str) -> dict[str, Any]:
    error: dict[str, Any] = {
        "code": code,
        "message": said,
        "status": GOOGLE_STATES.get(code, "UNKNOWN"),
    }
    if kind == "quota":
        error["message"] = "You exceeded your current quota, please check your plan. " + said
        error["details"] = [
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [
                    {
                        "quotaMetric": "generativelanguage.googleapis.com/generate_requests",
                        "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
                        "quotaValue": "250",
                    }
                ],
            },
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"},
        ]
    if kind == "bad_key":
        error["details"] = [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
            }
        ]
    return error


QUOTA: Final = {
    ANTHROPIC: Status(402, "quota"),
    GOOGLE: Status(429, "quota"),
    OPENAI: Status(429, "quota"),
}
"""How each vendor says that the money, or the day's quota, is used up."""


# --- other servers --------------------------------------------------------------------------------


class Trap(Loopback):
    """A server to which nothing may ever come: a proxy, a redirect's target, another address.

    `seen` holds the first bytes of every connection.
    """

    def __init__(self) -> None:
        super().__init__(BaseHTTPRequestHandler)
        self.seen: list[bytes] = []

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(1.0)
        with suppress(OSError):
            self.seen.append(request.recv(65536))
            request.sendall(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")


Entry = Reply | Status | Hang | Drip | Reset | Truncated | Redirect | Raw | Huge | Late
Scripting = Callable[[Exchange], Entry]
