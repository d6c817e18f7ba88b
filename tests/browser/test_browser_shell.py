"""What surrounds every page, in a real browser: choices, times, keys, commands, messages, doors."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from flask import Flask, abort, before_render_template, request
from playwright.sync_api import Browser

from tests.conftest import Scale
from tests.doubles.browser import (
    DESK,
    EVENTS,
    EVIL,
    PHONE,
    Site,
    Visit,
    needs_browser,
    only_nightly,
    unfold,
)
from tests.doubles.visitors import ACCESS
from tests.worlds.demo_view import ScriptedView
from torra.dashboard.app import create_app
from torra.dashboard.view.desk_values import DeskStatus

pytestmark = needs_browser

PALETTES = ("blue-orange", "classic", "red-up")
PUT_FORM = """([action, attributes]) => {
  const form = document.createElement("form");
  form.method = "post";
  form.action = action;
  form.setAttribute("data-command", "Try it");
  for (const [name, value] of Object.entries(attributes)) form.setAttribute(name, value);
  const button = document.createElement("button");
  button.textContent = "Try it";
  const amount = document.createElement("input");
  amount.name = "lots";
  amount.value = "0.10";
  form.append(amount, button);
  document.getElementById("main").prepend(form);
  button.focus();
}"""
HIDDEN_BY_HEADER = """() => {
  const element = document.activeElement;
  if (!element || element === document.body || element.closest(".top, .skip")) return false;
  const box = element.getBoundingClientRect();
  const header = document.querySelector(".top").getBoundingClientRect();
  return box.bottom > 0 && box.bottom <= header.bottom;
}"""
FIRST_FRAME = """
const look = () => {
  if (!document.body || !document.querySelector(".top")) return requestAnimationFrame(look);
  const { scheme, palette } = document.documentElement.dataset;
  const style = getComputedStyle(document.documentElement);
  window.firstFrame = [scheme, palette, style.getPropertyValue("--up")];
};
requestAnimationFrame(look);
"""


class Waiting(ScriptedView):
    """The scripted desk with proposals that wait."""

    def desk(self) -> DeskStatus:
        return replace(super().desk(), waiting_by={"EURUSD": 2})


class Answers:
    """Commands that answer what a test says, and keep what they were sent."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.sent: list[Any] = []
        self.released = threading.Event()
        self.released.set()

    def __call__(self):
        form = {name: value for name, value in request.form.items() if name != "csrf"}
        kept = {name: request.headers.get(name) for name in ("Accept", "X-Torra-CSRF")}
        self.sent.append((request.path, form, kept, request.form.get("csrf")))
        self.released.wait(20)
        code, told = self.told.pop(0)
        return told, code


class Module:
    """The module of the commands, which comes when a test lets it, or not at all."""

    def __init__(self) -> None:
        self.there = True
        self.released = threading.Event()
        self.released.set()

    def stands_before(self, give):
        """Return the view of own files with this one in front of it."""

        def view(filename):
            if filename == "commands.js":
                self.released.wait(20)
                if not self.there:
                    abort(404)
            return give(filename=filename)

        return view


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers()


@pytest.fixture(scope="module")
def module() -> Module:
    return Module()


@pytest.fixture(autouse=True)
def _no_answers_left(answers: Answers, module: Module) -> None:
    answers.told.clear()
    answers.sent.clear()
    module.there = True
    module.released.set()


def take_orders(_: object, context: Any, **__: object) -> None:
    """Show the pages as those of a desk that can be given orders: the answers above are it."""
    context["ordered"] = True


@pytest.fixture(scope="module")
def site(answers: Answers, module: Module) -> Iterator[Site]:
    app = create_app(Waiting(), access=ACCESS)
    own_file = app.view_functions["torra_agents.static"]
    app.view_functions["torra_agents.static"] = module.stands_before(own_file)
    app.add_url_rule("/api/v1/try", "try", answers, methods=["POST"])
    app.view_functions["torra_agents.halt"] = answers
    with before_render_template.connected_to(take_orders, app), Site(app) as served:
        yield served


@pytest.fixture(scope="module")
def cookies(browser: Browser, site: Site) -> list[dict[str, Any]]:
    with Visit(browser) as visit:
        return visit.enter(site)


@pytest.fixture(scope="module")
def regular(browser: Browser, site: Site, cookies: list[dict[str, Any]]) -> Iterator[Visit]:
    """The browser of somebody who comes every day: it has the files already."""
    with Visit(browser, cookies=cookies) as visit:
        yield visit


@pytest.fixture
def look(
    browser: Browser, site: Site, cookies: list[dict[str, Any]], regular: Visit
) -> Iterator[Callable[..., Any]]:
    """Open a page as somebody who is logged in; with options, in a new browser."""
    with contextlib.ExitStack() as visits:

        def open_page(address="/", **more):
            visit = (
                visits.enter_context(Visit(browser, cookies=cookies, **more)) if more else regular
            )
            if not more:
                visits.callback(visit.leave)
            visit.page.goto(site.url + address)
            return visit

        yield open_page


def toast(page):
    page.wait_for_selector(".toast")
    return page.inner_text(".toasts .toast:last-child p")


def close_dialog(page: Any) -> None:
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")


# --- who sees what ---


def test_a_stranger_sees_the_login_page_and_nothing_of_the_desk(
    browser: Browser, site: Site
) -> None:
    with Visit(browser, screen=PHONE) as visit:
        visit.page.goto(site.url + "/symbol/BTCUSD")
        assert "/login?next=/symbol/BTCUSD" in visit.page.url
        text = visit.page.inner_text("body")
        assert "BTCUSD" not in text
        assert visit.page.locator("nav, .strip, #tools, .toasts").count() == 0
        assert visit.overhang() <= 0
        assert visit.page.evaluate("document.documentElement.dataset.scheme") == "light"


@pytest.mark.parametrize(("scope", "shown"), [("read", 0), ("approve", 1)])
def test_only_who_may_halt_sees_the_button(
    browser: Browser, site: Site, scope: str, shown: int, scaled: Scale
) -> None:
    only_nightly(scaled)
    with Visit(browser) as visit:
        visit.enter(site, scope)
        assert visit.page.locator(".halt button").count() == shown
        unfold(visit.page)
        assert visit.page.get_by_role("button", name="Log out").count() == 1


def test_a_rebound_name_is_refused(browser: Browser, site: Site) -> None:
    with Visit(browser) as visit:
        foreign = f"http://{EVIL}:{site.port}/*"
        for what in ("request", "400", "console: *"):  # of the page and of each of its files
            visit.forgive(what, foreign)
        answer = visit.page.goto(foreign[:-1])
        assert answer.status == 400
        assert "BTCUSD" not in visit.page.content()
        assert visit.forgive("400", foreign)


def test_a_form_of_another_port_is_refused(
    browser: Browser, site: Site, cookies: list[dict[str, Any]]
) -> None:
    other = Flask("other")

    @other.get("/")
    def form() -> str:
        return (
            f"<form method='post' action='{site.url}/logout'><button>Win</button></form>"
            f"<form method='post' action='{site.url}/login'><input name='token' "
            f"value='{ACCESS.tokens['admin']}'><button>Lose</button></form>"
        )

    with Site(other) as stranger, Visit(browser, cookies=cookies) as visit:
        visit.forgive("404", f"{stranger.url}/favicon.ico")  # which some browsers ask for
        visit.forgive("403", f"{site.url}/logout", f"{site.url}/login")
        for name in ("Win", "Lose"):
            visit.page.goto(stranger.url)
            with visit.page.expect_navigation() as seen:
                visit.page.get_by_role("button", name=name).click()
            assert seen.value.url.startswith(site.url)
            assert seen.value.status == 403
            assert "Nothing was changed" in visit.page.inner_text("main")
        assert visit.page.goto(site.url + "/help").url.endswith("/help")  # still logged in


# --- choices ---


@pytest.mark.journey
def test_a_choice_holds_on_every_page_from_the_first_frame(look: Callable[..., Any]) -> None:
    visit = look(screen=DESK)
    page = visit.page
    unfold(page)
    page.click("#open-display")
    page.get_by_label("dark", exact=True).check()
    page.get_by_label("red is up").check()
    assert page.evaluate("document.documentElement.dataset.scheme") == "dark"
    close_dialog(page)
    assert page.evaluate("document.activeElement.id") == "open-display"
    visit.context.add_init_script(FIRST_FRAME)
    page.goto(page.url + "help")
    page.wait_for_function("() => window.firstFrame")
    assert page.evaluate("window.firstFrame") == ["dark", "red-up", "#f5827e"]
    kept = json.loads(page.evaluate("localStorage.getItem('torra-preferences')"))
    assert (kept["theme"], kept["palette"], kept["zone"]) == ("dark", "red-up", "utc")


def test_palettes_follow_the_scheme_and_stay_apart(look: Callable[..., Any], scaled: Scale) -> None:
    only_nightly(scaled)
    page = look().page
    seen = {}
    for palette in PALETTES:
        for theme in ("light", "dark"):
            seen[palette, theme] = tuple(
                page.evaluate(
                    """([palette, theme]) => {
                      const { dataset } = document.documentElement;
                      [dataset.palette, dataset.theme] = [palette, theme];
                      document.dispatchEvent(new CustomEvent("torra:preferences"));
                      const style = getComputedStyle(document.documentElement);
                      const named = ["--up", "--down"].map((name) => style.getPropertyValue(name));
                      return [...named, style.colorScheme];
                    }""",
                    [palette, theme],
                )
            )
    assert len(set(seen.values())) == len(seen)
    assert all(colours[2] == theme for (_, theme), colours in seen.items())
    assert seen["red-up", "dark"][:2] == seen["classic", "dark"][1::-1]


@pytest.mark.journey
def test_the_system_decides_until_somebody_chooses(look: Callable[..., Any], scaled: Scale) -> None:
    only_nightly(scaled)
    page = look(scheme="dark").page
    told = "document.documentElement.dataset.scheme"
    assert page.evaluate(told) == "dark"
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"() => {told} === 'light'")


def test_nothing_moves_where_motion_is_unwelcome(look: Callable[..., Any], scaled: Scale) -> None:
    only_nightly(scaled)
    page = look(reduced_motion="reduce").page
    assert page.evaluate("document.getAnimations().length") == 0
    assert page.evaluate(
        "getComputedStyle(document.querySelector('.fill')).transitionDuration"
    ) in (
        "0s",
        "",
    )


# --- times ---


def moments(years):
    """Every half hour around what moves a wall clock: USA and Europe, spring and autumn."""
    for year in range(2026 - years, 2026):
        for month, day in ((3, 5), (3, 24), (10, 23), (10, 30)):
            start = datetime(year, month, day, tzinfo=UTC)
            yield from (start + timedelta(minutes=30) * step for step in range(48 * 10))


@pytest.mark.journey
def test_clocks_agree_with_the_tz_database(look: Callable[..., Any], scaled: Scale) -> None:
    clocks = ("utc", "new_york+7", "Europe/Athens", "America/St_Johns", "Asia/Kathmandu", "+03:00",
              "-04:30")  # fmt: skip
    asked = list(moments(scaled(12)))
    told = look(timezone_id="Australia/Lord_Howe").page.evaluate(
        """async ([clocks, moments]) => {
          const { ahead } = await import(document.querySelector("[src$='shell.js']").src
            .replace("shell.js", "times.js"));
          return [...clocks, "local"].map((clock) => moments.map((one) => ahead(clock, one)));
        }""",
        [clocks, [round(one.timestamp() * 1000) for one in asked]],
    )
    for clock, minutes in zip((*clocks, "Australia/Lord_Howe"), told, strict=True):
        zone, more = ("America/New_York", 420) if clock == "new_york+7" else (clock, 0)
        fixed = re.fullmatch(r"([+-])(\d\d):(\d\d)", clock)
        if fixed:
            size = int(fixed[2]) * 60 + int(fixed[3])
            expected = [size if fixed[1] == "+" else -size] * len(asked)
        else:
            known = UTC if clock == "utc" else ZoneInfo(zone)
            expected = [
                one.astimezone(known).utcoffset().total_seconds() / 60 + more for one in asked
            ]
        assert minutes == expected, clock


def test_a_time_that_there_is_none_of_stops_no_other(look: Callable[..., Any]) -> None:
    page = look("/", timezone_id="Asia/Kolkata").page
    unfold(page)
    page.click("#live-freeze")  # no refresh may write the cell while the test does
    page.select_option("#zone-choice", "local")
    cell = page.locator(".chip .roomy span")
    cell.evaluate(
        "(cell) => { cell.textContent = '2021-13-45 25:61 UTC, then 2021-12-31 20:00 UTC'; }"
    )
    page.wait_for_function(
        '(text) => document.querySelector(".chip .roomy span").innerText === text',
        arg="2021-13-45 25:61 UTC, then 2022-01-01 01:30 local UTC+5:30",
    )


def test_one_switch_moves_every_time_and_live_ones_too(look: Callable[..., Any]) -> None:
    page = look("/", timezone_id="Asia/Kolkata").page
    cell = page.locator(".chip .roomy span")
    assert cell.inner_text() == "2021-12-01 10:17:30 UTC"
    unfold(page)
    page.click("#live-freeze")  # no refresh may write the cell while the test does
    page.select_option("#zone-choice", "broker")
    assert cell.inner_text() == "2021-12-01 17:17:30 broker UTC+2".replace("17:", "12:", 1)
    assert "broker's server (New York + 7 h)" in page.inner_text("#zone-told")
    unfold(page)
    page.select_option("#zone-choice", "local")
    assert cell.inner_text() == "2021-12-01 15:47:30 local UTC+5:30"
    assert page.locator(".chip .roomy span time").get_attribute("title").split("\n") == [
        "2021-12-01 10:17:30 UTC",
        "2021-12-01 12:17:30 broker UTC+2",
        "2021-12-01 15:47:30 local UTC+5:30",
    ]
    cell.evaluate("(cell) => { cell.textContent = 'as of 2021-12-31 20:00 UTC, 2021-12-01 UTC'; }")
    expected = "as of 2022-01-01 01:30 local UTC+5:30, 2021-12-01 UTC"
    page.wait_for_function(
        '(text) => document.querySelector(".chip .roomy span").innerText === text',
        arg=expected,
    )
    page.evaluate(
        """() => {
          const said = document.createElement("p");
          said.className = "said";
          said.id = "said";
          said.textContent = "buy at 2021-12-31 20:00 UTC";
          document.getElementById("main").append(said);
        }"""
    )
    assert page.inner_text("#said") == "buy at 2021-12-31 20:00 UTC"
    left = page.evaluate(
        r"document.body.innerText.match(/\d{4}-\d{2}-\d{2} \d{2}:\d{2}(:\d{2})? UTC(?![+−])/g)"
    )
    assert left == ["2021-12-31 20:00 UTC"]
    unfold(page)
    page.select_option("#zone-choice", "utc")
    assert "local" not in cell.inner_text()


def test_a_time_stays_when_a_renewal_changes_what_is_around_it(look: Callable[..., Any]) -> None:
    """Two rows of one time change places: their links change, and the words of both stay."""
    page = look("/symbol/EURUSD/H1").page
    link = page.locator("main th[scope=row] a").first
    before = page.locator("main th[scope=row] a").all_inner_texts()
    assert " UTC" in before[0]
    page.wait_for_function("link => link.querySelector('time')", arg=link.element_handle())

    def changed(route: Any) -> None:
        answer = route.fetch()
        text = answer.text().replace(
            '<th scope="row"><a href="', '<th scope="row"><a rel="next" href="'
        )
        route.fulfill(response=answer, body=text)

    page.route("**/symbol/EURUSD/H1", changed)
    page.evaluate("document.dispatchEvent(new CustomEvent('torra:command'))")
    page.wait_for_selector("main th a[rel=next]")
    assert page.locator("main th[scope=row] a").all_inner_texts() == before


# --- keys ---


def test_the_dialog_lists_the_keys(look: Callable[..., Any]) -> None:
    page = look().page
    page.keyboard.press("?")
    listed = page.inner_text("dialog")
    for word in ("next row", "filter", "freeze or unfreeze"):
        assert word in listed
    page.keyboard.press("j")  # a dialog is open: nothing happens below it
    close_dialog(page)
    assert page.evaluate("document.activeElement.getAttribute('href')") is None


ROWS = """[...document.querySelectorAll("main :is([data-row], [data-step], tbody tr)")]
  .filter((row) => row.checkVisibility())
  .map((row) => row.querySelector("a[href], button, summary"))
  .filter((one) => one?.checkVisibility())
  .filter((one, place, all) => one !== all[place - 1])
  .map((one) => one.getAttribute("href"))"""


def test_rows_are_walked_and_opened_by_keys(look: Callable[..., Any]) -> None:
    page = look().page
    where = "document.activeElement.getAttribute('href')"
    rows = page.evaluate(ROWS)
    assert len(rows) > 4
    assert any(row.endswith("/H1") for row in rows)
    walked = []
    for key in "j" * (len(rows) + 1) + "kk":
        page.keyboard.press(key)
        walked.append(page.evaluate(where))
    assert walked == [*rows, rows[-1], *rows[-2:-4:-1]]  # to the end, no farther, and back
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.evaluate("location.pathname + location.search") == walked[-1]


def test_keys_are_letters_while_somebody_types_and_can_be_switched_off(
    look: Callable[..., Any],
) -> None:
    page = look().page
    page.evaluate(PUT_FORM, ["/api/v1/nothing", {"data-filter": ""}])
    page.focus("[name=lots]")
    page.keyboard.type("ga?.")
    assert page.input_value("[name=lots]").endswith("ga?.")
    assert page.locator("dialog").count() == 0
    page.keyboard.press("Escape")
    page.keyboard.press(".")
    page.wait_for_selector("#live-freeze[aria-pressed=true]", state="attached")
    assert page.text_content("#live-freeze") == "Unfreeze page"
    assert page.inner_text("#live-state") == "‖ frozen"
    page.keyboard.press(".")
    page.keyboard.press("Control+a")
    unfold(page)
    page.click("#open-display")
    page.get_by_label("off", exact=True).check()
    close_dialog(page)
    for key in ("?", "j", "."):
        page.keyboard.press(key)
    assert page.locator("dialog, [aria-pressed=true]").count() == 0
    unfold(page)
    page.click("#open-keys")
    assert "switched off" in page.inner_text("dialog")


def test_no_key_presses_the_button_of_a_command(look: Callable[..., Any], scaled: Scale) -> None:
    only_nightly(scaled)
    page = look().page
    sent = []
    page.on("request", lambda request: request.method == "POST" and sent.append(request.url))
    page.evaluate(PUT_FORM, ["/api/v1/nothing", {}])
    page.evaluate("document.activeElement.blur()")
    for key in "agxjk[]/.,y1 ":
        page.keyboard.press(key)
        page.evaluate("document.activeElement.blur()")
    assert sent == []


# --- commands ---


OUTCOMES: tuple[tuple[int, dict[str, str], str], ...] = (
    (200, {"status": "done", "reason": "sent as T-1"}, "Try it: done. Sent as T-1"),
    (202, {"status": "accepted", "reason": ""}, "Try it: accepted."),
    (409, {"status": "failed", "reason": "expired at 10:15"}, "failed. Expired at 10:15"),
    (403, {"error": "Not allowed", "advice": "This token may not do that"}, "may not do that"),
    (429, {}, "failed. Too often"),
    (418, {}, "failed. The desk answered 418"),
)


def test_what_became_of_a_command_is_said_with_its_reason(
    look: Callable[..., Any], answers: Answers
) -> None:
    visit = look()
    page = visit.page
    page.evaluate(PUT_FORM, ["/api/v1/try", {"data-then": "none"}])
    answers.told.extend((code, told) for code, told, _ in OUTCOMES)
    for _, _, expected in OUTCOMES:
        page.keyboard.press("Enter")
        assert expected in toast(page)
        assert page.evaluate("document.activeElement.textContent") == "Try it"
        assert page.locator("[aria-disabled=true]").count() == 0
        assert page.locator("#toasts[role=status] .toast").count() == 1
        page.keyboard.press("Escape")
        assert page.locator(".toast").count() == 0
    csrf = page.evaluate("document.documentElement.dataset.csrf")
    headers = {"Accept": "application/json", "X-Torra-CSRF": csrf}
    assert csrf
    assert answers.sent[0] == ("/api/v1/try", {"lots": "0.10"}, headers, None)
    assert len(answers.sent) == len(OUTCOMES)
    for code, *_ in OUTCOMES:
        visit.forgive(str(code), "/api/v1/try")


@pytest.mark.journey
def test_a_command_that_reached_nobody_is_said_so(look: Callable[..., Any]) -> None:
    visit = look()
    # Not set_offline: a request through a connection that is already open may still get out. And
    # a page that is open already may send one past a route that is new: it holds from a reload on.
    visit.page.route("**/api/v1/try", lambda route: route.abort("internetdisconnected"))
    visit.page.reload()
    visit.page.evaluate(PUT_FORM, ["/api/v1/try", {}])
    visit.page.keyboard.press("Enter")
    said = toast(visit.page)
    assert "could not be reached" in said
    assert "not known whether the command arrived" in said
    visit.forgive("ERR_INTERNET_DISCONNECTED", "/api/v1/try")


def test_a_command_that_runs_says_so_and_is_not_sent_twice(
    look: Callable[..., Any], answers: Answers
) -> None:
    page = look().page
    page.evaluate(PUT_FORM, ["/api/v1/try", {}])
    answers.told.append((200, {"status": "done"}))
    answers.released.clear()
    try:
        for _ in range(3):
            page.keyboard.press("Enter")
        assert "running" in toast(page)
        assert page.locator("form[aria-busy=true] [aria-disabled=true]").count() == 1
        assert len(answers.sent) == 1
    finally:
        answers.released.set()
    page.wait_for_function(
        "() => document.querySelector('.toast p')?.textContent === 'Try it: done.'"
    )


def test_a_question_is_asked_first_and_a_reload_keeps_message_and_focus(
    look: Callable[..., Any], answers: Answers
) -> None:
    page = look("/help").page
    answers.told.append((200, {"status": "done", "reason": "it is undone"}))
    attributes = {"data-then": "reload", "data-confirm": "Really?"}
    page.evaluate(PUT_FORM, ["/api/v1/try", attributes])
    page.keyboard.press("Enter")
    assert "Really?" in page.inner_text("dialog")
    assert page.evaluate("document.activeElement.textContent") == "Cancel"
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")
    assert page.locator(".toast").count() == 0
    assert page.evaluate("document.activeElement.textContent") == "Try it"
    assert answers.sent == []
    page.keyboard.press("Enter")
    with page.expect_navigation():
        page.locator("dialog").get_by_role("button", name="Try it").click()
    assert toast(page) == "Try it: done. It is undone"
    assert page.evaluate("document.activeElement.id") == "main"  # the form is gone
    page.keyboard.press("Escape")
    assert page.locator(".toast").count() == 0


def test_a_halt_is_never_asked_about_and_told_at_once(
    look: Callable[..., Any], answers: Answers
) -> None:
    page = look(preferences={"confirm": "every"}).page
    answers.told.append((200, {"status": "done", "reason": "no signal is sent"}))
    page.click(".halt button")
    page.wait_for_selector("#toasts-urgent[role=alert] .toast")
    assert toast(page) == "Halt: done. No signal is sent"
    ((path, _, headers, csrf),) = answers.sent
    assert path == "/api/v1/halt"
    assert csrf == headers["X-Torra-CSRF"]
    page.evaluate(PUT_FORM, ["/api/v1/try", {}])
    page.keyboard.press("Enter")
    assert page.locator("dialog").count() == 1  # everything else is asked about


def put_early(visit, module):
    """Load the page anew, and put a command on it that asks first, before its module comes."""
    module.released.clear()
    visit.page.reload(wait_until="commit")
    visit.page.wait_for_selector("#main")
    visit.page.evaluate(PUT_FORM, ["/api/v1/try", {"data-confirm": "Really?", "data-then": "none"}])
    return visit.page


@contextlib.contextmanager
def heard(page, *, accept):
    """Give what the browser itself asks meanwhile; each question is answered alike."""
    questions = []

    def answer(dialog) -> None:
        questions.append((dialog.type, dialog.message))
        if accept:
            dialog.accept()
        else:
            dialog.dismiss()

    page.on("dialog", answer)
    yield questions
    page.remove_listener("dialog", answer)


def test_a_command_given_before_its_module_runs_is_asked_about(
    look: Callable[..., Any], answers: Answers, module: Module
) -> None:
    answers.told.append((200, {"status": "done", "reason": "it is undone"}))
    page = put_early(look("/help"), module)
    for _ in range(2):
        page.keyboard.press("Enter")
    assert page.locator("dialog").count() == 0
    module.released.set()
    page.locator("dialog", has_text="Really?").wait_for()
    assert answers.sent == []
    page.locator("dialog").get_by_role("button", name="Try it").click()
    assert toast(page) == "Try it: done. It is undone"
    ((_, form, headers, _),) = answers.sent
    assert form == {"lots": "0.10"}
    assert headers["Accept"] == "application/json"


@pytest.mark.journey
@pytest.mark.parametrize("accept", [False, True])
def test_the_browser_asks_when_the_module_does_not_come(
    look: Callable[..., Any], answers: Answers, module: Module, accept: bool
) -> None:
    answers.told.append((200, {"status": "done"}))
    visit = look("/help")
    module.there = False
    page = put_early(visit, module)
    with heard(page, accept=accept) as questions:
        page.keyboard.press("Enter")
        assert questions == []
        module.released.set()
        if accept:
            page.wait_for_url("**/api/v1/try")
            assert [form for _, form, _, _ in answers.sent] == [{"lots": "0.10"}]
        else:
            page.wait_for_load_state("load")
            page.keyboard.press("Enter")
            assert answers.sent == []
    assert questions == [("confirm", "Really?")] * (1 if accept else 2)
    visit.forgive("404", "/assets/commands.js")


@pytest.mark.journey
def test_a_module_that_hangs_holds_a_command_for_three_seconds(
    look: Callable[..., Any], answers: Answers, module: Module
) -> None:
    answers.told.append((200, {"status": "done"}))
    visit = look("/help", preferences={"theme": "dark"})
    visit.page.clock.install()
    page = put_early(visit, module)
    # It stands from here on: what a busy machine takes between two calls is none of the seconds.
    page.clock.pause_at(page.evaluate("Date.now()") + 1_000)
    with heard(page, accept=True) as questions:
        page.keyboard.press("Enter")
        page.clock.fast_forward(2900)
        assert questions == []
        page.clock.fast_forward(200)
        page.wait_for_url("**/api/v1/try")
        assert questions == [("confirm", "Really?")]


def test_a_halt_waits_for_no_module(
    look: Callable[..., Any], answers: Answers, module: Module
) -> None:
    answers.told.append((200, {"status": "done"}))
    page = put_early(look("/help"), module)
    page.click(".halt button", no_wait_after=True)
    page.wait_for_url("**/api/v1/halt")
    assert [path for path, *_ in answers.sent] == ["/api/v1/halt"]


SETTLED = "new Promise((then) => setTimeout(then, 200))"
"""Until a page has said what was kept for it: its own timer is shorter, and runs before this one.
"""

KEEP = """([text, age]) => sessionStorage.setItem("torra-toasts",
  JSON.stringify([{ text, tone: "done", at: performance.timeOrigin + performance.now() - age }]))"""


@pytest.mark.journey
def test_a_kept_message_is_said_once_and_only_while_it_is_news(look: Callable[..., Any]) -> None:
    page = look("/help").page
    # a page looks once, a moment after it came: what is kept before that is this page's own
    page.evaluate(SETTLED)
    page.evaluate(KEEP, ["old news", 31_000])
    page.reload()
    page.evaluate(SETTLED)
    assert page.evaluate("sessionStorage.getItem('torra-toasts')") is None
    assert page.locator(".toast").count() == 0
    page.evaluate(KEEP, ["fresh news", 20_000])
    page.reload()
    assert toast(page) == "fresh news"
    page.reload()
    page.evaluate(SETTLED)
    assert page.locator(".toast").count() == 0


KEEP_ANEW = """async (text) => {
  const shell = document.querySelector("[src$='shell.js']").src;
  (await import(shell.replace("shell.js", "toast.js"))).keep(text, "done");
}"""


@pytest.mark.journey
def test_a_page_that_is_left_at_once_leaves_what_it_kept_to_the_next(
    look: Callable[..., Any],
) -> None:
    page = look("/help", screen=DESK).page
    page.clock.install()
    page.clock.pause_at(datetime(2040, 1, 1, tzinfo=UTC))
    page.reload()
    page.evaluate(KEEP_ANEW, "for the next page")
    page.clock.run_for(1_000)
    assert page.locator(".toast").count() == 0
    page.reload()
    page.clock.run_for(1_000)
    assert toast(page) == "for the next page"


# --- a session that ended, a desk that is gone ---

ASK = "document.dispatchEvent(new CustomEvent('torra:changed'))"
FOLLOW = """async () => {
  document.documentElement.dataset.events = "/api/v1/desk";
  const shell = document.querySelector("[src$='shell.js']").src;
  await import(shell.replace("shell.js", "stream.js?own"));
}"""


@pytest.mark.by_day(1)
@pytest.mark.parametrize("how", [f"() => {ASK}", FOLLOW], ids=["figures", "stream"])
def test_who_is_logged_out_is_told_so_and_nothing_asks_on(
    look: Callable[..., Any], how: str, scaled: Scale
) -> None:
    visit = look("/symbol/BTCUSD?x=1", screen=DESK)
    page = visit.page
    page.wait_for_selector("[data-connection=live]")
    visit.context.clear_cookies()
    if how == FOLLOW:  # the figures find nothing out: the stream has to
        page.route("**/symbol/**", lambda route: route.abort())
    page.evaluate(how)
    link = page.locator("#logged-out a")
    link.wait_for()
    assert page.inner_text("#logged-out") == "logged out: log in again"
    assert page.inner_text("#live-state") == "✕ logged out"
    assert page.inner_text(".chip [data-current]") == "? unknown"
    assert page.evaluate("document.getElementById('live-freeze').hidden")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for _ in range(3 if scaled.whole else 1):
        page.evaluate(ASK)
        page.wait_for_timeout(250)
    assert asked == []
    link.click()
    page.wait_for_url("**/login?next=*")
    assert page.input_value("[name=next]") == "/symbol/BTCUSD?x=1"
    visit.forgive("401", EVENTS, "/api/v1/desk")
    visit.forgive("ERR_FAILED", "/symbol/*", "/api/v1/symbol/*")  # the route above


def test_a_lost_desk_is_of_unknown_state_until_it_answers_again(look: Callable[..., Any]) -> None:
    visit = look(screen=DESK)
    page = visit.page
    page.wait_for_selector("[data-connection=live]")
    unfold(page)
    cells = [page.locator(f"{place} [data-current]") for place in (".strip", ".chip")]
    before = [cell.inner_text() for cell in cells]
    assert before[1] == "● active"
    visit.context.set_offline(True)
    try:
        for _ in range(2):
            page.evaluate(ASK)
            page.wait_for_timeout(300)
        page.wait_for_selector("[data-connection=lost]")
        assert [cell.inner_text() for cell in cells] == ["? unknown"] * 2
        assert cells[1].get_attribute("title").endswith("last: ● active")
    finally:
        visit.context.set_offline(False)
    page.evaluate(ASK)
    page.wait_for_selector("[data-connection=live]")
    assert [cell.inner_text() for cell in cells] == before
    visit.forgive("ERR_INTERNET_DISCONNECTED", EVENTS, "/")


def test_halt_is_not_offered_while_it_holds(look: Callable[..., Any]) -> None:
    page = look().page
    page.wait_for_selector("[data-connection=live]")
    unfold(page)
    page.click("#live-freeze")  # no refresh may write the banner while the test does
    page.focus(".halt button")
    page.evaluate("document.getElementById('trading-halted').hidden = false")
    page.wait_for_selector(".halt button:disabled")
    assert page.inner_text(".halt button") == "⊘ halted"
    assert page.evaluate("document.activeElement.textContent") == "Orders: resume"
    page.evaluate("document.getElementById('trading-halted').hidden = true")
    page.wait_for_selector(".halt button:enabled")
    assert page.inner_text(".halt button") == "⊘ Halt"


# --- what is in sight ---


def test_the_title_tells_how_many_wait(look: Callable[..., Any], scaled: Scale) -> None:
    only_nightly(scaled)
    page = look().page
    assert page.title() == "(2) Home · Torra DEMO"
    page.wait_for_selector("[data-connection=live]")  # the next refresh is seconds away
    for change, title in (
        ("cell.textContent = '3'", "(3) Home · Torra DEMO"),
        ("cell.hidden = true", "Home · Torra DEMO"),
    ):
        page.evaluate(
            f"""() => {{
              const cell = document.querySelector(".rooms .count");
              {change};
            }}"""
        )
        page.wait_for_function("(title) => document.title === title", arg=title)


@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
def test_the_focus_is_never_below_the_header(
    look: Callable[..., Any], screen: dict[str, int], scaled: Scale
) -> None:
    only_nightly(scaled)
    page = look("/symbol/BTCUSD/M15", screen=screen).page
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    seen = set()
    for key in ["k"] * 20 + ["Shift+Tab"] * 40:
        page.keyboard.press(key)
        assert not page.evaluate(HIDDEN_BY_HEADER), key
        seen.add(page.evaluate("document.activeElement.getAttribute('href')"))
    assert len(seen) > 15


def test_everything_to_press_is_large_enough(look: Callable[..., Any], scaled: Scale) -> None:
    only_nightly(scaled)
    page = look(screen=PHONE).page
    small = page.evaluate(
        """() => [...document.querySelectorAll(".top :is(a, button, select), .toasts button")]
          .map((one) => [one.textContent.trim(), one.getBoundingClientRect()])
          .filter(([, box]) => box.height < 24 || box.width < 24)
          .map(([text]) => text)"""
    )
    assert small == []
