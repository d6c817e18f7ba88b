"""Pages in a real browser: Chromium by Playwright, over a waitress on the loopback.

`chromium()` lends the browser of this process (a test module keeps it in a fixture: while it is
borrowed, this thread belongs to it); `Site` serves an app; `Visit` is one person's look at it, and
collects what no page may do: errors on the console, breaches of the policy, exceptions, requests to
another host.
TORRA_CHROMIUM names another binary. Without any browser the tests are skipped, unless
TORRA_REQUIRE_BROWSER is set: then they fail.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

from tests.doubles import loopback
from tests.doubles.lent_browser import lent
from tests.doubles.visitors import ACCESS
from tests.examples import examples

NAMES = ("chromium-headless-shell", "chromium", "google-chrome", "msedge")
BROWSER = os.environ.get("TORRA_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
WITH_WINDOWS = next(filter(None, map(shutil.which, NAMES[1:])), None)
"""A browser that is no headless shell, if there is one: a shell has no notifications."""

REQUIRED = bool(os.environ.get("TORRA_REQUIRE_BROWSER"))

needs_browser = pytest.mark.skipif(
    BROWSER is None and not REQUIRED,
    reason="no Chromium on this machine: apt install chromium-headless-shell",
)
"""For every test in a browser."""

EVIL = "evil.test"
"""A name of somebody else that leads to this machine."""

SWITCHES = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-sandbox",
    f"--host-resolver-rules=MAP {EVIL} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip

DESK = {"width": 1366, "height": 768}
PHONE = {"width": 390, "height": 844}

AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PATIENCE = 30_000
"""Milliseconds that anything in the browser may take."""

EVENTS = "/api/v1/events"
"""The shared stream. It is refused with 503 while too many are open, such as those of tabs that
were closed a moment ago; a page then asks every few seconds. So that alone is no error."""

STREAMS_END = 12.0
"""Seconds within which the desk sees that a reader has gone: a heartbeat, and more."""

NOT_LOADED = re.compile(
    r"Failed to load resource: (?:the server responded with a status of (\d+)|net::(\w+))"
)
"""What the console says of an answer that is an error, and of none."""

BREACHES = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
"""


def only_nightly(scaled: Any) -> None:
    """Skip the test by day: what it looks at seldom breaks, and a browser takes its time."""
    if not scaled.whole:
        pytest.skip("looked at nightly: make nightly")


def chromium() -> AbstractContextManager[Any]:
    """Borrow the browser of this process: BROWSER, with no page open."""
    return lent.lend(chromium_alone)


@contextmanager
def chromium_alone(binary: str | None = None) -> Iterator[Any]:
    """Open a browser, BROWSER unless another is named; it is gone with the block."""
    from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415  a third of a second

    expect.set_options(timeout=30_000)  # a machine with much else to do
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=binary or BROWSER, args=list(SWITCHES))
        try:
            yield browser
        finally:
            browser.close()


class Site:
    """An app that is served, below `prefix` if there is one; ends with its `with`."""

    def __init__(self, app: Any, prefix: str = "") -> None:
        self.app = app
        self.prefix = prefix
        self.server = loopback.open_warm(app, prefix)
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    @property
    def port(self) -> int:
        return int(self.server.effective_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wait_for_streams()
        loopback.end(self.server)
        self.thread.join(10)
        self.server.task_dispatcher.shutdown()

    def _wait_for_streams(self) -> None:
        """Let the streams of closed tabs end: a thread that still writes has no server left."""
        known = self.app.extensions.get("torra_agents")
        slots = known.backing.slots if known and known.backing else None
        end = time.monotonic() + STREAMS_END
        while slots and slots.taken and time.monotonic() < end:
            time.sleep(0.05)


@dataclass(frozen=True)
class Fault:
    """What went wrong on a page, and at which address.

    `what` is the status of an answer ("404"), the name of a failure of the network ("ERR_FAILED"),
    "request" for one to another host, or else the words of the console or of the exception.
    """

    what: str
    url: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.url}".strip()

    def is_at(self, where: str) -> bool:
        """Return whether the address is `where`: a whole one, or a path of 127.0.0.1.

        What is asked there, after a question mark, does not count.
        """
        parts = urlsplit(self.url)
        if not where.startswith("/"):
            return fnmatchcase(parts._replace(query="", fragment="").geturl(), where)
        return parts.hostname == "127.0.0.1" and fnmatchcase(parts.path, where)


def unfold(page: Any) -> None:
    """Open what hangs from the header: times, display, keys, the state of the desk."""
    page.evaluate("document.getElementById('more').open = true")


class Visit:
    """A browser's context with one page: who looks, on what screen, and what went wrong."""

    def __init__(
        self,
        browser: Any,
        *,
        screen: dict[str, int] = DESK,
        scheme: str = "light",
        cookies: Any = None,
        preferences: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        self.seen: list[Fault] = []
        self.pardons: list[tuple[str, str]] = []
        self.without_stream = 0
        self.context = browser.new_context(viewport=screen, color_scheme=scheme, **more)
        self.context.set_default_timeout(PATIENCE)
        self.context.add_init_script(BREACHES)
        if preferences:
            self.context.add_init_script(
                f"localStorage.setItem('torra-preferences', JSON.stringify({preferences!r}));"
            )
        if cookies:
            self.context.add_cookies(cookies)
        self.page = self.context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.seen.append(Fault(f"exception: {error}")))
        self.page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            failed = NOT_LOADED.match(message.text)
            what = failed[1] or failed[2] if failed else f"console: {message.text}"
            fault = Fault(what, (message.location or {}).get("url", ""))
            if what == "503" and fault.is_at(EVENTS):
                self.without_stream += 1
                return
            self.seen.append(fault)

    def _asked(self, request: Any) -> None:
        where = urlsplit(request.url)
        if where.scheme not in ("data", "blob") and where.hostname != "127.0.0.1":
            self.seen.append(Fault("request", request.url))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.context.close()
        if kind is None:
            self.judge()

    @property
    def wrong(self) -> list[str]:
        """What went wrong since the last judgement and is not forgiven."""
        return [
            str(fault)
            for fault in self.seen
            if not any(_is_meant(fault, *pardon) for pardon in self.pardons)
        ]

    def judge(self) -> None:
        """Raise AssertionError if something went wrong since the last time; pardons end here."""
        wrong = self.wrong
        self.seen, self.pardons = [], []
        if wrong:
            raise AssertionError("\n".join(wrong))

    def leave(self) -> None:
        """Forget what was chosen; raises AssertionError if something went wrong."""
        self.page.unroute_all()
        self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.goto("about:blank")
        self.judge()

    def forgive(self, what: str, *where: str) -> list[str]:
        """Forgive what is expected to go wrong at these addresses, and return what did so far.

        It holds until the next judgement, whenever the browser tells of it. `what` is that of a
        Fault, an address is as in `Fault.is_at`, both may have a * for anything; "" is the address
        of what has none.
        """
        pardons = [(what, address) for address in where or ("",)]
        self.pardons += pardons
        return [
            str(fault)
            for fault in self.seen
            if any(_is_meant(fault, *pardon) for pardon in pardons)
        ]

    def enter(self, site: Site, scope: str = "admin") -> list[Any]:
        """Log in as a person does, by the link that `torra run` prints; returns the cookies."""
        self.page.goto(f"{site.url}/login#token={ACCESS.tokens[scope]}")
        self.page.wait_for_url(f"{site.url}/")
        assert "token" not in self.page.url
        return list(self.context.cookies())

    def admit(self, site: Site, scope: str = "admin") -> list[Any]:
        """Give the browser the session of somebody who has logged in; returns the cookies.

        By day no page is loaded for that: the login's own tests `enter`.
        """
        if examples.whole:
            return self.enter(site, scope)
        told = self.context.request.post(
            f"{site.url}/login",
            data={"token": ACCESS.tokens[scope], "next": "/"},
            headers={"Origin": site.url, "Sec-Fetch-Site": "same-origin"},
        )
        assert told.ok, told.status_text
        return list(self.context.cookies())

    def overhang(self) -> int:
        """Return by how many pixels the page can be scrolled sideways."""
        return int(
            self.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )


SMALL = """
(least) => [...document.querySelectorAll("a[href], button, summary, input, select, textarea")]
  .filter((one) => one.type !== "hidden" && one.checkVisibility({ visibilityProperty: true }))
  .filter((one) => !one.closest(".skip, .quiet, [inert]"))
  .map((one) => {
    const target = one.closest("label:not(:has(select))") ?? one;
    return [one, target.getBoundingClientRect()];
  })
  .filter(([one, box]) => box.width > 0 && (box.height < least - 0.5 || box.width < least - 0.5))
  .filter(([one]) => {
    // a link within a sentence is as high as its line
    const around = one.parentElement.textContent.trim().length;
    const inline = getComputedStyle(one).display === "inline";
    const more = around > one.textContent.trim().length + 20;
    return !(inline && one.closest("p, li, td, dd, figcaption") && more);
  })
  .map(([one, box]) =>
    `${one.tagName.toLowerCase()} ${one.id || one.className} ` +
    `"${one.textContent.trim().slice(0, 30)}" ` +
    `${Math.round(box.width)}x${Math.round(box.height)} in ${one.parentElement.tagName}`)
"""
LEAST_TARGET = 24
"""Pixels that whatever is pressed has at least, wide and high (WCAG 2.5.8)."""


def small_targets(page: Any) -> list[str]:
    """Return what is pressed and is smaller than LEAST_TARGET, apart from links in a text."""
    return [f"a small target: {one}" for one in page.evaluate(SMALL, LEAST_TARGET)]


def _is_meant(fault: Fault, what: str, where: str) -> bool:
    return fnmatchcase(fault.what, what) and fault.is_at(where)


def findings(page: Any) -> list[str]:
    """Return what axe finds, of any level: rule, elements and why."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    options = {"runOnly": AXE_TAGS, "resultTypes": ["violations"]}
    told = Axe().run(page, options=options).response
    return [
        f"{found['id']} ({found['impact']}): {node['target'][0]}: {node['failureSummary']}"
        for found in told["violations"]
        for node in found["nodes"][:4]
    ]
