"""Cells that several screens share: a verdict, a position, an age, a warning, as finished text.

A cell is {"text", "tone", "title"}. It may also carry "set" (attributes of an SVG element or a
link) and "hidden". A missing number is a dash with the reason as its title. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypedDict

from torra.dashboard.cells import skips, sources
from torra.dashboard.cells.tick_words import page_sentence, reason
from torra.dashboard.record import agreement
from torra.dashboard.record.shown import Decision
from torra.dashboard.view.desk_values import (
    ChangeCount,
    OverviewSymbol,
    Skip,
    StreamStatus,
    SymbolStatus,
)
from torra.exhibits import figures
from torra.exhibits.figures import Cell, cell
from torra.feeds.sample import SHOWN_AS
from torra.tick.marks import PROPOSED
from torra.tick.tick_record import ThresholdsRecord, TickRecord
from torra.verdict.trade_outcome import CloseValue
from torra.words.deny_reasons import DenyReason
from torra.words.orders import REASONS

Cells = dict[str, Cell]
TickLink = Callable[[str, str, str], str]
"""Returns the address of a tick's page from instance, timeframe and bar_time."""

NO_TICK: Final = "no tick yet"


class ThresholdPlaces(TypedDict):
    """The thresholds as numbers on the score axis, and as places on a spark."""

    buy: float | None
    sell: float | None
    buy_y: float | None
    sell_y: float | None


def warning_cells(instances: Sequence[OverviewSymbol]) -> Cells:
    """Return the warnings of calendar and news, hidden when there is nothing to warn of."""
    told = {
        "calendar": sources.calendar_warning(instances),
        "news": sources.news_warning(instances),
    }
    return {
        f"warning.{name}": words(f"! {said}.", "warn") | showing(said)
        for name, said in told.items()
    }


def verdict_cells(key: str, latest: TickRecord | None, link: TickLink) -> Cells:
    """Return verdict, action, consensus, reason and link of an instance's newest tick."""
    if not latest:
        empty = {
            name: dash()
            for name in ("verdict", "l1_verdict", "action", "consensus", "l1_consensus", "source")
        }
        cells = {f"{key}.{name}": value for name, value in empty.items()}
        why = "No tick yet: the first comes with the close of the next bar."
        cells[f"{key}.reason"] = words(why)
        cells[f"{key}.sentence"] = words("") | showing(False)
        cells[f"{key}.when"] = dash()
        return cells | bar_cells(f"{key}.consensus", None, None)
    address = link(latest.instance, latest.timeframe, latest.bar_time)
    consensus, l1 = latest.consensus, latest.l1_consensus
    said = page_sentence(latest)
    told: Cells = {
        "verdict": state_cell(latest.verdict),
        "l1_verdict": state_cell(latest.l1_verdict),
        "action": action_cell(latest),
        "consensus": cell(consensus),
        "l1_consensus": cell(l1),
        "source": source_cell(latest.source_type),
        "sentence": words(said) | showing(said),
        "reason": words(reason(latest)),
        "when": words(f"{latest.timeframe} tick of {figures.moment(latest.as_of)}")
        | {"set": {"href": address}},
    }
    return {f"{key}.{name}": value for name, value in told.items()} | bar_cells(
        f"{key}.consensus", consensus, l1
    )


def voice_cells(key: str, tick: TickRecord | None) -> Cells:
    """Return a tick's regime and which voices it lacks; a cell with nothing to say is hidden."""
    name, why, silent = "", "", ""
    if tick:
        name, debate = tick.regime.name, tick.deliberation
        why, silent = agreement.degraded(debate), agreement.silence(debate)
    badge = f"{figures.mark('DEGRADED').text}, {silent}" if why and silent else silent
    short = words(badge, "warn" if why else "flat", why or "of the desk's agents")
    regime = state_cell(name) | {"title": "the regime of the market"}
    return {
        f"{key}.regime": regime | showing(name),
        f"{key}.short": short | showing(badge),
    }


def age_cells(key: str, stream: StreamStatus) -> Cells:
    """Return how old a stream is, whether that is too old, and the wait for its next tick."""
    age, stale = stream.age_seconds, stream.stale
    badge = words("◷ stale", "warn", "no tick comes, and no closed market explains it")
    if stream.quiet and not stale:
        badge = words("◦ no bars", "flat", skips.NO_BARS)
    left = stream.next_in_seconds
    wait = words(figures.countdown(left))
    if left is not None:
        wait["set"] = {"data-countdown": round(left, 1)}
    return {
        f"{key}.age": words(figures.span(age), "warn" if stale else "", "" if age else NO_TICK),
        f"{key}.stale": badge | showing(stale or stream.quiet),
        f"{key}.next": wait,
    }


def position_cells(key: str, instance: SymbolStatus) -> Cells:
    """Return an instance's position, its levels, and the result of closing it now."""
    held = instance.held
    if instance.hosted:
        return {
            f"{key}.position": words("your scorer's", "flat"),
            f"{key}.gain": words(""),
            f"{key}.levels": words("Torra sends nothing here, and knows no position"),
        }
    if not held:
        small = instance.latest is not None and DenyReason.SIZE_ZERO in instance.latest.denied
        return {
            f"{key}.position": words("no position: too small" if small else "no position", "flat"),
            f"{key}.gain": words(""),
            f"{key}.levels": words(""),
        }
    digits = instance.decimals
    position, now = held
    side = figures.mark(position.side)
    state = position.state
    opening = "" if state in ("", "FILLED") else f" ({figures.sanitize(state, 20).lower()})"
    lots = figures.plain(position.lots, 2)
    price = figures.plain(position.entry, digits)
    return {
        f"{key}.position": words(f"{side.text} {lots} at {price}{opening}"),
        f"{key}.gain": words(_gain(now, instance.currency), figures.tone(now and now.profit, 2)),
        f"{key}.levels": words(
            f"stop {figures.plain(position.stop, digits)}, "
            f"target {figures.plain(position.target, digits)}"
            + (f", closing now at {figures.plain(now.price, digits)}" if now else ""),
            title="what a close at the newest bar's close would get: a long leaves at the bid, "
            "a short pays the spread on top of it",
        ),
    }


def _gain(now: CloseValue | None, currency: str) -> str:
    if now is None:
        return ""
    money, r = figures.format_signed(now.profit, 2), figures.format_signed(now.r, 2)
    amount = f"{money}\u00a0{figures.sanitize(currency, 8)}" if currency else money
    return f"{amount}, {r}\u00a0R"


def origin_cell(instance: SymbolStatus) -> Cell:
    """Return of when the shipped bars of a symbol truly are, where the demo moves their dates."""
    year = instance.true_year
    return words(f"prices of {year}, dated {SHOWN_AS}" if year else "") | showing(year)


def changes_cell(changes: ChangeCount) -> Cell:
    """Return how many verdicts the agents changed."""
    changed, every = figures.plain(changes.changed, 0), figures.plain(changes.every, 0)
    told = f"agents changed {changed} of {every} verdicts"
    return words(told, title="ticks on which the verdict would have been another without agents")


def skip_cell(skipped: Skip | None, stream: StreamStatus) -> Cell:
    """Return the skips since the newest tick; hidden without any."""
    told, tone = skips.note(stream, skipped)
    return words(told, tone) | showing(bool(told))


def bar_cells(key: str, value: float | None, l1: float | None) -> Cells:
    """Return the fill of a signed bar, and the thin line of L1 alone."""
    place, bar = figures.position_on_axis(l1), figures.signed_bar(value)
    return {
        f"{key}.bar": words("", figures.tone(value))
        | {"set": {"x": bar["x"], "width": bar["width"]}},
        f"{key}.mark": words("")
        | {"set": {"x1": place, "x2": place, "opacity": 0 if l1 is None else 1}},
    }


def limits(thresholds: ThresholdsRecord | None) -> ThresholdPlaces:
    """Return the thresholds as numbers on the score axis and as places on a spark."""
    # the profile has the sell threshold as a size: a SELL lies at minus that
    buy, low = (thresholds.buy, -thresholds.sell) if thresholds else (None, None)
    return {
        "buy": buy,
        "sell": low,
        "buy_y": None if buy is None else round((1 - buy) / 2 * figures.SPARK_HEIGHT, 2),
        "sell_y": None if low is None else round((1 - low) / 2 * figures.SPARK_HEIGHT, 2),
    }


def zone_cells(key: str, data: SymbolStatus) -> Cells:
    """Return the ends of a signed bar that lie past a threshold; not known ones have no width."""
    known = data.limits
    buy = figures.position_on_axis(known.buy if known else 1.0)
    sell = figures.position_on_axis(-known.sell if known else -1.0)
    return {
        f"{key}.buy": words("") | {"set": {"x": buy, "width": round(figures.BAR_WIDTH - buy, 2)}},
        f"{key}.sell": words("") | {"set": {"x": 0.0, "width": sell}},
    }


def words(text: str, tone: str = "", title: str = "") -> Cell:
    """Return a cell of words."""
    return {"text": text, "tone": tone, "title": title}


def state_cell(name: str | None) -> Cell:
    """Return a state with its glyph and tone."""
    shown = figures.mark(name)
    return words(shown.text.strip(), shown.tone)


def action_cell(tick: Decision) -> Cell:
    """Return the action of a tick; one that was proposed to a person is no HOLD."""
    if tick.reason == PROPOSED:
        return words("◔ proposed", "warn", REASONS[PROPOSED])
    return state_cell(tick.action)


def source_cell(name: str | None) -> Cell:
    """Return a source type, its meaning as the title."""
    return state_cell(name) | {"title": figures.mark(name).meaning}


def dash(reason: str = NO_TICK) -> Cell:
    """Return the cell of a number that is not known."""
    return words(figures.DASH, "", reason)


def showing(yes: object) -> Cell:
    """Return whether a cell is hidden."""
    return {"hidden": not yes}
