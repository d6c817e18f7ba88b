"""The screen that adds a symbol: where its bars come from, how it is traded, what is written.

Three steps on one address: the symbol and its bars; the rest, filled in with what the broker's list
or Torra's own notes know; and what would be written, before and after, with a button that writes
it (torra.desk.setup.adding). A mistake stands beside its field, and what was typed stays. Adding
needs the scope admin and is in the audit log. The desk takes a symbol at its next start, and the
page says with which command. Names of a broker and of files are a stranger's and are cleaned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from flask import jsonify, request, url_for
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from torra.dashboard.doors.access import visitor
from torra.dashboard.doors.routes import Command, Fields, Route
from torra.dashboard.view.commanding import CommandOutcome, command, wants_json, words
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.market.broker_clock import USUAL

if TYPE_CHECKING:
    from torra.desk.setup.adding import Addition, SymbolHome
    from torra.desk.setup.bar_sources import BarSource
    from torra.desk.setup.request import SetupRequest

PER_MINUTE: Final = 30
LISTED_NAMES: Final = 2_000
"""Names of a broker that the form offers."""

ACTION: Final = "add symbol"
"""How the audit log calls it."""

NUMBERS: Final = (
    ("digits", "Decimals of a price", "2"),
    ("tick_size", "Smallest price step", "0.01"),
    ("tick_value", "Value of one step for one lot, account currency", "1"),
    ("contract_size", "Units in one lot", "100"),
    ("lot_min", "Smallest order, lots", "0.01"),
    ("lot_step", "Step of an order, lots", "0.01"),
    ("lot_max", "Largest order, lots", "50"),
    ("spread", "Usual spread, price units", "0.25"),
    ("stops_level", "Least distance of stop and target, points", "0"),
)
"""Numbers of a symbol's terms: name of the field, its word, an example."""

ASSETS: Final = (
    ("", "not said"), ("fx", "currencies"), ("gold", "gold"), ("index", "index"), ("oil", "oil"),
    ("crypto", "crypto"), ("stock", "stock"),
)  # fmt: skip

EXECUTIONS: Final = (
    ("approve", "only after my yes (approve)"),
    ("off", "nobody: verdicts are only written down (off)"),
)


Words = Mapping[str, str]


def new_symbol() -> str:
    """Show the form that adds a symbol."""
    if state().backing is None:
        return _page(None)
    asked = {name: request.args.get(name, "").strip() for name in ("source", "symbol", "broker")}
    faults: dict[str, str] = {}
    entered = dict(asked)
    try:
        place, known = _place(), _sources()
        if asked["symbol"] and asked["source"] in known:
            entered, faults = _filled(place, known, asked)
    except ConfigError as error:
        return _page(None, trouble=str(error))
    return _page(_form(place, known, entered, faults))


def check_symbol() -> ResponseReturnValue:
    """Show what would be written for a new symbol, or what is wrong by field; writes nothing."""
    entered: Words = {}
    try:
        entered = words()
        found, faults, place, known = _planned(entered)
    except ConfigError as error:
        return _refused(str(error), {"": str(error)}, entered)
    if found is None:
        return _refused("look at what is marked", faults, entered)
    if wants_json():
        return jsonify(
            status="done",
            reason="",
            version=place.version,
            **found.document(),
            before=found.before,
            after=found.after,
        )
    return _page(_form(place, known, entered, {}), plan=found)


def add_symbol() -> ResponseReturnValue:
    """Add a symbol to the desk: import its bars, write desk.json and its profile."""
    held: list[Addition] = []
    faults: dict[str, str] = {}
    entered: dict[str, str] = {}

    def run() -> CommandOutcome:
        from torra.desk.setup import adding, wishes  # noqa: PLC0415  a page alone must not load the desk

        try:
            entered.update(words())
            found, wrong, _, _ = _planned(entered)
            faults.update(wrong)
            if found is not None:
                held.append(
                    adding.write(found, entered.get("version", ""), backing().database.transaction)
                )
        except ConfigError as error:
            faults[error.name if isinstance(error, wishes.FieldError) else ""] = str(error)
        if not held:
            return CommandOutcome("failed", _first(faults), more={"faults": {**faults}})
        done = held[0]
        told = done.document()
        before = {"desk": {**done.place.values}}
        said = f"{done.request.symbol} is in {done.place.home}. {done.steps[0]}"
        return CommandOutcome("done", said, before, {"desk": {**done.desk}, **told}, told)

    symbol = figures.sanitize(request.form.get("symbol", ""), 40)
    answer = command(ACTION, symbol, run, back=url_for(".new_symbol"))
    if wants_json():
        return answer
    return _page(None, done=held[0]) if held else _refused("", faults, entered)


# --- reading --------------------------------------------------------------------------------------


def _place() -> SymbolHome:
    from torra.desk.setup import adding  # noqa: PLC0415

    return adding.place_of(backing().home, backing().settings)


def _sources() -> dict[str, BarSource]:
    from torra.desk.setup import bar_sources  # noqa: PLC0415
    from torra.trading import channels  # noqa: PLC0415

    known = backing()
    return bar_sources.sources(known.settings, known.environment, channels.terminal)


def _uploads() -> list[str]:
    from torra.replay import uploads  # noqa: PLC0415

    return uploads.names(backing().home)


def _filled(
    place: SymbolHome, known: Mapping[str, BarSource], asked: Words
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the form for a symbol with what is known of it, and what is wrong with its name."""
    from torra.desk.setup import bar_sources, wishes  # noqa: PLC0415

    source, symbol = known[asked["source"]], asked["symbol"].upper()
    broker = asked["broker"] or symbol
    _, faults = wishes.read({**asked, "symbol": symbol, "broker": broker}, known, _uploads())
    found = {name: said for name, said in faults.items() if name in ("source", "symbol", "broker")}
    settings = place.settings
    if settings and symbol in [item.id for item in settings.instances]:
        found["symbol"] = f"the desk watches {symbol} already"
    terms, _ = bar_sources.known_terms(symbol, broker, source)
    usual = {"timeframes": "M15,H1", "execution": "approve", "profile": "new", "risk": "0.5"}
    first = next(iter(backing().desk.setups.values()), None)
    capital = f"{first.profile.risk.capital:g}" if first else "10000"
    from torra.replay import uploads  # noqa: PLC0415

    there = _uploads()
    own = [name for name in there if symbol in name.upper()] or there * (len(there) == 1)
    files = {f"as.{name}": uploads.timeframe_of(backing().home, name) for name in own}
    return {
        **usual, **terms, **files, **asked, "symbol": symbol, "broker": broker,
        "capital": capital, "profile_name": symbol.lower(), "clock": "",
    }, found  # fmt: skip


def _planned(
    entered: Words,
) -> tuple[Addition | None, dict[str, str], SymbolHome, Mapping[str, BarSource]]:

    from torra.desk.setup import wishes  # noqa: PLC0415

    place, known = _place(), _sources()
    setup, faults = wishes.read(entered, known, _uploads())
    if setup is None:
        return None, faults, place, known
    try:
        return _plan(place, setup), {}, place, known
    except wishes.FieldError as error:
        return None, {error.name: str(error)}, place, known


def _plan(place: SymbolHome, request: SetupRequest) -> Addition:
    from instance_database import open_home  # noqa: PLC0415
    from torra.desk.setup import adding  # noqa: PLC0415
    from torra.home import DATABASE  # noqa: PLC0415

    if not place.apart:
        return adding.plan(place, request, backing().database)
    if not (place.home / DATABASE).is_file():
        return adding.plan(place, request, None)
    own = open_home(place.home)
    try:
        return adding.plan(place, request, own)
    finally:
        own.close()


# --- arranging ------------------------------------------------------------------------------------


def _form(
    place: SymbolHome, known: Mapping[str, BarSource], entered: Words, faults: Words
) -> dict[str, Any]:
    """Return the form with what was entered; `second`: the symbol and its bars are known."""
    from torra.clock import TIMEFRAMES  # noqa: PLC0415
    from torra.desk.setup import adding, bar_sources  # noqa: PLC0415
    from torra.home import UPLOADS  # noqa: PLC0415

    source = known.get(entered.get("source", ""))
    symbol, broker = entered.get("symbol", ""), entered.get("broker", "")
    second = source is not None and bool(symbol)
    told = bar_sources.known_terms(symbol, broker, source)[1] if source and symbol else ""
    names = sorted({name for one in known.values() for name in one.terms})[:LISTED_NAMES]
    trouble = [one.trouble for one in known.values() if one.trouble]
    return {
        "entered": {name: figures.sanitize(value, 400) for name, value in entered.items()},
        "faults": {name: figures.sanitize(said, 400) for name, said in faults.items()},
        "sources": [(one.key, figures.sanitize(one.says, 80)) for one in known.values()],
        "trouble": figures.sanitize("; ".join(trouble), 400),
        "names": [figures.sanitize(name, 40) for name in names],
        "files": _uploads(),
        "clocks": USUAL,
        "uploads": figures.sanitize(str(backing().home.absolute() / UPLOADS), 300),
        "timeframes": list(TIMEFRAMES),
        "profiles": [figures.sanitize(name, 40) for name in adding.offered(place)],
        "known": told,
        "second": second,
        "from_files": source is not None and source.key == bar_sources.FILES,
    }


def _page(
    form: dict[str, Any] | None, *, plan: Addition | None = None, done: Addition | None = None,
    trouble: str = "",
) -> str:  # fmt: skip
    known = state().backing
    shown = plan or done
    return desk_page(
        "new_symbol.html",
        here=known is not None,
        form=form,
        plan=plan,
        done=done,
        trouble=figures.sanitize(trouble, 400),
        demo=bool(known and any(one.feed == "sample" for one in known.settings.instances)),
        numbers=NUMBERS,
        assets=ASSETS,
        executions=EXECUTIONS,
        home=figures.sanitize(str(shown.place.home), 300) if shown else "",
        admin=visitor().may("admin"),
    )


def _refused(reason: str, faults: Words, entered: Words) -> ResponseReturnValue:
    if wants_json():
        said = reason or _first(faults)
        return jsonify(status="failed", reason=said, faults=dict(faults)), 422
    try:
        form = _form(_place(), _sources(), entered, faults)
    except ConfigError as error:
        return _page(None, trouble=str(error)), 422
    return _page(form), 422


def _first(faults: Words) -> str:
    name, said = next(iter(faults.items()), ("", "something is wrong"))
    return f"{name}: {said}" if name else said


_TEXT: Final[Mapping[str, JsonValue]] = {"type": "string", "maxLength": 400}
REQUEST: Final[Fields] = {
    "source": {**_TEXT, "description": "files, store, or a channel: mt5_files main"},
    "symbol": {**_TEXT, "description": "such as XAUUSD"},
    "broker": {**_TEXT, "description": "what the broker calls it; default: the symbol"},
    "timeframes": {**_TEXT, "description": "such as M15,H1; of files, each says its own"},
    "as.FILE": {**_TEXT, "description": "timeframe of a file in the folder uploads"},
    "clock": {**_TEXT, "description": "clock of the files' times, such as new_york+7"},
    "profile": {**_TEXT, "description": "new (default), or one that is there"},
    "profile_name": {**_TEXT, "description": "name of the new one; default: the symbol"},
    "execution": {"type": "string", "enum": ["approve", "off"], "default": "approve"},
    "capital": {**_TEXT, "description": "account currency; default 10000"},
    "risk": {**_TEXT, "description": "loss at the stop, percent of capital; default 0.5"},
    **{name: {**_TEXT, "description": word} for name, word, _ in NUMBERS},
    "asset": {"type": "string", "enum": [*dict(ASSETS)]},
    "currencies": {**_TEXT, "description": "whose events concern it, such as USD"},
    "version": {**_TEXT, "description": "of the desk file that the check was made from"},
}

ROUTES = (
    Route("/add-symbol", "new_symbol", new_symbol, scope="admin"),
    Command(
        "/api/v1/symbols/check",
        "check_symbol",
        check_symbol,
        scope="admin",
        per_minute=PER_MINUTE,
        body=REQUEST,
    ),
    Command(
        "/api/v1/symbols",
        "add_symbol",
        add_symbol,
        scope="admin",
        per_minute=PER_MINUTE,
        body=REQUEST,
    ),
)
