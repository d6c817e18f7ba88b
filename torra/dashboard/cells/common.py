"""Cells that several screens share: a verdict, a position, an age, a warning, as finished text.

A cell is {"text", "tone", "title"}. It may also carry "set" (attributes of an SVG element or a
link) and "hidden". A missing number is a dash with the reason as its title. Pure functions over
what a DeskView returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from torra.dashboard.cells import skips, sources
from torra.dashboard.record import agreement, summary, vetoes
from torra.dashboard.record.reasoning import headline, why
from torra.dashboard.record.stored import Row, mapping
from torra.exhibits import figures
from torra.exhibits.figures import cell

Cells = dict[str, Row]
TickLink = Callable[[str, str, str], str]
"""Returns the address of a tick's page from instance, timeframe and bar_time."""

NO_TICK: Final = "no tick yet"


def warning_cells(instances: Sequence[Mapping[str, Any]]) -> Cells:
    """Return the warnings of calendar and news, hidden when there is nothing to warn of."""
    told = {
        "calendar": sources.calendar_warning(instances),
        "news": sources.news_warning(instances),
    }
    return {
        f"warning.{name}": words(f"! {said}.", "warn") | showing(said)
        for name, said in told.items()
    }


def verdict_cells(key: str, latest: Any, link: TickLink) -> Cells:
    """Return verdict, action, consensus, reason and link of an instance's newest tick."""
    if not latest:
        empty = {
            name: dash()
            for name in ("verdict", "l1_verdict", "action", "consensus", "l1_consensus", "source")
        }
        cells = {f"{key}.{name}": value for name, value in empty.items()}
        why = "No tick has run yet: the first comes with the close of the next bar."
        cells[f"{key}.reason"] = words(why)
        cells[f"{key}.when"] = dash()
        return cells | bar_cells(f"{key}.consensus", None, None)
    address = link(latest["instance"], latest["timeframe"], latest["bar_time"])
    consensus, l1 = latest.get("consensus"), latest.get("l1_consensus")
    close = figures.moment(latest.get("as_of"))
    cells = {
        "verdict": state_cell(latest.get("verdict")),
        "l1_verdict": state_cell(latest.get("l1_verdict")),
        "action": action_cell(latest),
        "consensus": cell(consensus),
        "l1_consensus": cell(l1),
        "source": source_cell(latest.get("source_type")),
        "reason": words(reason(latest)),
        "when": words(f"{latest['timeframe']} tick of {close}") | {"set": {"href": address}},
    }
    return {f"{key}.{name}": value for name, value in cells.items()} | bar_cells(
        f"{key}.consensus", consensus, l1
    )


def voice_cells(key: str, tick: Mapping[str, Any]) -> Cells:
    """Return a tick's regime and which voices it lacks; a cell with nothing to say is hidden."""
    name = mapping(tick.get("regime")).get("name")
    deliberation = mapping(tick.get("deliberation"))
    why, silent = agreement.degraded(deliberation), agreement.silence(deliberation)
    badge = f"{figures.mark('DEGRADED').text}, {silent}" if why and silent else silent
    short = words(badge, "warn" if why else "flat", why or "of the desk's agents")
    regime = state_cell(name or "") | {"title": "the regime of the market"}
    return {
        f"{key}.regime": {**regime, **showing(name)},
        f"{key}.short": short | showing(badge),
    }


def age_cells(key: str, stream: Mapping[str, Any]) -> Cells:
    """Return how old a stream is, whether that is too old, and the wait for its next tick."""
    age, stale = stream.get("age_seconds"), bool(stream.get("stale"))
    badge = words("◷ stale", "warn", "the newest tick is older than one and a half bars")
    if stream.get("quiet"):
        badge = words("◦ no bars", "flat", skips.NO_BARS)
    left = figures.number(stream.get("next_in_seconds"))
    wait = words(figures.countdown(left))
    if left is not None:
        wait["set"] = {"data-countdown": round(left, 1)}
    return {
        f"{key}.age": words(figures.span(age), "warn" if stale else "", "" if age else NO_TICK),
        f"{key}.stale": badge | showing(stale or bool(stream.get("quiet"))),
        f"{key}.next": wait,
    }


def position_cells(key: str, instance: Mapping[str, Any]) -> Cells:
    """Return an instance's position, its levels, and the result of closing it now."""
    position = instance.get("position")
    if not position:
        return {
            f"{key}.position": words("flat", "flat"),
            f"{key}.levels": words("nothing is held or opening"),
        }
    digits = digits_of(instance)
    side = figures.mark(side_of(position.get("side")))
    state = str(position.get("state") or "")
    opening = "" if state in ("", "FILLED") else f" ({figures.clean(state, 20).lower()})"
    lots = figures.plain(position.get("lots"), 2)
    price = figures.plain(position.get("entry"), digits)
    held = f"{side.text} {lots} at {price}{opening}{_gain(position)}"
    return {
        f"{key}.position": words(held, side.tone),
        f"{key}.levels": words(
            f"stop {figures.plain(position.get('stop'), digits)}, "
            f"target {figures.plain(position.get('target'), digits)}{_leave(position, digits)}",
            title="what a close at the newest bar's close would get: a long leaves at the bid, "
            "a short pays the spread on top of it",
        ),
    }


def _gain(position: Mapping[str, Any]) -> str:
    if figures.number(position.get("profit")) is None:
        return ""
    money, r = figures.signed(position["profit"], 2), figures.signed(position.get("r_multiple"), 2)
    return f", {money}, {r}\u00a0R"


def _leave(position: Mapping[str, Any], digits: int) -> str:
    if figures.number(position.get("leave")) is None:
        return ""
    return f", closing now at {figures.plain(position['leave'], digits)}"


def changes_cell(changes: Any) -> Row:
    """Return how many verdicts the agents changed."""
    known = changes or {}
    changed, every = (figures.plain(known.get(name), 0) for name in ("changed", "all"))
    told = f"agents changed {changed} of {every} verdicts"
    return words(told, title="ticks whose verdict is not the one of L1 alone")


def skip_cell(tick: Mapping[str, Any], skipped: Any, stream: Mapping[str, Any]) -> Row:
    """Return the skips since the newest tick; hidden without any."""
    told, tone = skips.note(tick, skipped, stream)
    return words(told, tone) | showing(bool(told))


def reason(latest: Mapping[str, Any]) -> str:
    """Return the headline of a tick: where the consensus stands, the action and its reason."""
    told, veto = why(latest), vetoes.cause(latest)
    if summary.proposed(latest):
        told = f"{summary.PROPOSED_WORDS.capitalize()}."
    denied = ", ".join(figures.clean(reason, 40) for reason in latest.get("denied") or ())
    # the reason often names the denial already: it is not said twice
    more = told if not denied or denied in told else f"{told} ({denied})" if told else denied
    if veto and veto not in more:
        more += f" {figures.mark('VETO').text} of openings: {veto}."
    return f"{headline(latest)} {more}".strip()


def bar_cells(key: str, value: Any, l1: Any) -> Cells:
    """Return the fill of a signed bar, and the thin line of L1 alone."""
    place = figures.position_on_axis(l1)
    known = figures.number(l1) is not None
    return {
        f"{key}.bar": words("", figures.tone(value)) | {"set": figures.signed_bar(value)},
        f"{key}.mark": words("")
        | {"set": {"x1": place, "x2": place, "opacity": 1 if known else 0}},
    }


def limits(thresholds: Any) -> Row:
    """Return the thresholds as numbers on the score axis and as places on a signed bar."""
    known = thresholds or {}
    buy, sell = figures.number(known.get("buy")), figures.number(known.get("sell"))
    # the profile has the sell threshold as a size: a SELL lies at minus that
    low = None if sell is None else -sell
    return {
        "buy": buy,
        "sell": low,
        "buy_x": None if buy is None else figures.position_on_axis(buy),
        "sell_x": None if low is None else figures.position_on_axis(low),
        "buy_y": None if buy is None else round((1 - buy) / 2 * figures.SPARK_HEIGHT, 2),
        "sell_y": None if low is None else round((1 - low) / 2 * figures.SPARK_HEIGHT, 2),
    }


def digits_of(data: Mapping[str, Any]) -> int:
    """Return the decimals of a symbol's prices; 5 when they are not known."""
    digits = data.get("digits")
    return 5 if digits is None else int(digits)


def side_of(side: Any) -> Any:
    """Return BUY and SELL as the position that they make."""
    return {"BUY": "LONG", "SELL": "SHORT"}.get(str(side), side)


def words(text: str, tone: str = "", title: str = "") -> Row:
    """Return a cell of words."""
    return {"text": text, "tone": tone, "title": title}


def state_cell(name: Any) -> Row:
    """Return a state with its glyph and tone."""
    shown = figures.mark(name)
    return words(shown.text.strip(), shown.tone)


def action_cell(tick: Mapping[str, Any]) -> Row:
    """Return the action of a tick; one that was proposed to a person is no HOLD."""
    if summary.proposed(tick):
        return words("◔ proposed", "warn", summary.PROPOSED_WORDS)
    return state_cell(tick.get("action"))


def worded(name: Any, word: str | None) -> Row:
    """Return a state with another word than its own."""
    shown = figures.mark(name)
    return words(f"{shown.glyph} {word or shown.word}".strip(), shown.tone)


def source_cell(name: Any) -> Row:
    """Return a source type, its meaning as the title."""
    return state_cell(name) | {"title": figures.SOURCES.get(str(name), "")}


def dash(reason: str = NO_TICK) -> Row:
    """Return the cell of a number that is not known."""
    return words(figures.DASH, "", reason)


def showing(yes: Any) -> Row:
    """Return whether a cell is hidden."""
    return {"hidden": not yes}
