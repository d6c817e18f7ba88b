"""What the app of a state answers to the requests of requests.json, as texts.

A state has a list of requests, in the order in which they are sent. `"GET /trades"` is a person's,
who is logged in as an admin. Every other request is an object: `post` or `get` names its address;
`form` is a body that the person sends, `json` one of a program with the admin's token; `as` names
another scope, "" nobody; `headers` are its own. Three files come of a state: its pages as a reader
gets them (tests.golden.visible), its JSON and events with the golden names of fields, and its
downloads. Each page has a structure that a screen reader can follow, and nothing that its policy
forbids. `<field>` in a request stands for that field of the last JSON.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from flask import Flask
from werkzeug.wrappers import Response

from tests import ROOT
from tests.doubles.page_reader import Page, check_policy, check_structure
from tests.doubles.visitors import ACCESS, bearer
from tests.golden import states, visible
from tests.golden.brevity import Known, brief, shortened
from tests.golden.exact import with_machine
from tests.golden.frozen import PACKAGES, WORDING, frozen, masked
from tests.golden.projection import projected

REQUESTS: Final = Path(__file__).with_name("requests.json")
OURS: Final = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
"""What a browser says of a request from our own page."""

HEADERS: Final = ("Location", "Content-Disposition", "Retry-After", "Allow", "WWW-Authenticate")
"""Headers that stand beside a status."""

FRAMES: Final = 12
"""Frames that are read of a stream of events at most."""

DESK_FRAMES: Final = 3
"""... of the desk's own, which never ends."""

PATIENCE: Final = 30.0
"""Real seconds for the work that a request begins."""

MACHINE: Final[Mapping[str, str]] = {
    re.escape(str(ROOT)): "<root>",
    WORDING: r"\1<wording>",
    rf"\b({PACKAGES})(\"?:? \"?| \| )\d+\.\d+[\w.]*": r"\1\2<version>",
    r"\b(free|size|write-ahead log)(\", \"| )\d[\d.,]* [kKMGT]?B\b": r"\1\2<bytes>",
    r": \d+ MB free": ": <bytes> free",
    r"\d[\d.,]* [KMGT]B are free": "<bytes> are free",
}
"""Patterns of what differs between machines, each with what stands in its place."""


def requests() -> dict[str, list[Any]]:
    """Return the requests by state."""
    by_state: dict[str, list[Any]] = json.loads(REQUESTS.read_text(encoding="utf-8"))
    return by_state


def texts(names: Iterable[str], folder: Path) -> dict[str, str]:
    """Return the files of some states: NAME.txt, NAME.json and NAME.csv, where not empty."""
    files: dict[str, str] = {}
    known = Known()
    for name in names:
        with frozen(), states.opened(name, folder) as app:
            visit = _Visit(name, app, known, folder)
            for request in requests()[name]:
                visit.send({"get": request[4:]} if isinstance(request, str) else request)
        files |= {f"{name}.{ending}": text for ending, text in visit.files().items() if text}
    return with_machine(files)


class _Visit:
    """A person and a program at the pages of one state."""

    def __init__(self, state: str, app: Flask, known: Known, folder: Path) -> None:
        self.state, self.app, self.known, self.folder = state, app, known, folder
        self.pages: list[str] = []
        self.answers: dict[str, Any] = {}
        self.downloads: list[str] = []
        self.csrf = ""
        self.last: Mapping[str, Any] = {}
        app.config["PROPAGATE_EXCEPTIONS"] = False
        self.person = app.test_client()
        token = {"token": ACCESS.tokens["admin"]}
        assert self.person.post("/login", data=token, headers=OURS).status_code == 303

    def files(self) -> dict[str, str]:
        """Return what was answered, by the ending of its file's name."""
        answers = json.dumps(self.answers, indent=1, sort_keys=True, ensure_ascii=False)
        return {
            "txt": "\n".join(self.pages),
            "json": answers if self.answers else "",
            "csv": "\n".join(self.downloads),
        }

    def send(self, request: Mapping[str, Any]) -> None:
        """Send a request and keep its answer."""
        running = set(threading.enumerate())
        method = "POST" if "post" in request else "GET"
        who = f" as {request['as'] or 'nobody'}" if "as" in request else ""
        with self._answer(self._filled(request)) as answer:
            self._keep(f"{method} {request.get('post', request.get('get'))}{who}", answer, request)
        for thread in set(threading.enumerate()) - running:
            if thread.daemon:
                thread.join(PATIENCE)

    def _filled(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        text = re.sub(r"<(\w+)>", lambda field: str(self.last[field[1]]), json.dumps(request))
        filled: Mapping[str, Any] = json.loads(text)
        return filled

    def _answer(self, request: Mapping[str, Any]) -> Response:
        headers = {**OURS, **request.get("headers", {})}
        if "get" in request and "as" not in request:
            return self.person.get(request["get"], headers=headers)
        if "form" in request:
            form = {"csrf": self.csrf, **request["form"]}
            return self.person.post(request["post"], data=form, headers=headers)
        scope = request.get("as", "admin")
        headers = {**request.get("headers", {}), **(bearer(scope) if scope else {})}
        stranger = self.app.test_client()
        if "get" in request:
            return stranger.get(request["get"], headers=headers)
        return stranger.post(request["post"], json=request.get("json"), headers=headers)

    def _keep(self, line: str, answer: Response, request: Mapping[str, Any]) -> None:
        body = json.dumps(request.get("json", request.get("form")), sort_keys=True)
        line = self._masked(f"{line} {body}" if body != "null" else line)
        headers = [f"{name}: {answer.headers[name]}" for name in HEADERS if name in answer.headers]
        head = self._masked("; ".join([f"{answer.status_code} {answer.mimetype}", *headers]))
        if answer.mimetype == "text/html":
            html = answer.get_data(as_text=True)
            self.csrf = "".join(re.findall(r'data-csrf="(\w+)"', html)) or self.csrf
            if answer.status_code == 200 and "Content-Disposition" not in answer.headers:
                page = Page(html)
                check_structure(page)
                check_policy(page, forms=True)
            self.pages += [f"======== {line}: {head}", *self._page(line, html), ""]
        elif answer.mimetype == "text/csv":
            text = self._masked(answer.get_data(as_text=True))
            self.downloads += [f"======== {line}: {head}", text]
        else:
            most = FRAMES if "<stream_id>" in line else DESK_FRAMES
            self._keep_answer(line, head, content(answer, most))

    def _page(self, line: str, html: str) -> Iterable[str]:
        """Yield a page's lines; a section that stands elsewhere is named by its place."""
        for inside, text, elements in visible.read(html):
            title, *words = text or [""]
            rows = [*brief(words, _cells), *["--"][: len(elements)], *brief(elements, _tag)]
            section = self._masked("\n".join(rows))
            place = self.known.elsewhere(section, f"{self.state}, {line}")
            mark = "----" if inside else "----(frame)"
            yield f"{mark} {self._masked(title)}" + (f" (as in {place})" if place else "")
            if section and not place:
                yield section

    def _keep_answer(self, line: str, head: str, value: Any) -> None:
        number = sum(one.partition(" #")[0] == line for one in self.answers) + 1
        line = line if number == 1 else f"{line} #{number}"
        newest = value[0] if isinstance(value, list) and value else value
        self.last = newest if isinstance(newest, dict) else {}
        value = projected({"content": value}, "api")["content"]
        value = json.loads(self._masked(json.dumps(value, sort_keys=True)))
        fields = value.items() if isinstance(value, dict) else ()
        contents = {name: self._once(item, f"{line}, {name}") for name, item in fields}
        self.answers[line] = {"answer": head, "content": contents or self._once(value, line)}

    def _once(self, value: Any, place: str) -> Any:
        text = json.dumps(value, sort_keys=True)
        first = self.known.elsewhere(text, f"{self.state}, {place}")
        return f"as in {first}" if first else shortened(value)

    def _masked(self, text: str) -> str:
        text = masked(text, self.folder / self.state, self.folder)
        for pattern, word in MACHINE.items():
            text = re.sub(pattern, word, text)
        return text


def content(answer: Response, frames: int) -> Any:
    """Return an answer that is no page: its JSON, its first events, or its size."""
    if answer.mimetype == "application/json":
        return answer.get_json()
    if answer.mimetype == "text/event-stream":
        return [event(frame.decode()) for frame in islice(answer.iter_encoded(), frames)]
    return {"bytes": len(answer.get_data())}


def event(frame: str) -> dict[str, Any]:
    """Return a frame of a stream by its fields, its data as JSON."""
    lines = (line.partition(":") for line in frame.strip().splitlines())
    return {
        name: json.loads(value) if name == "data" else value.strip() for name, _, value in lines
    }


def _cells(line: str) -> object:
    """A row's number of cells; any other line is of a kind of its own."""
    return line.count(" | ") or line


def _tag(line: str) -> object:
    return line.partition(" ")[0]
