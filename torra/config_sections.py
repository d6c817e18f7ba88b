"""The sections of a profile and of the desk that torra.config puts together.

Weights, thresholds, states, news, numbers from beside the chart, events, channels and notices: each
setting with its meaning, default and limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Annotated, Final, Literal, TypeVar
from zoneinfo import ZoneInfo

from pydantic import Field, StrictStr, field_validator, model_validator

from agent_config import Section, or_plug_in

T = TypeVar("T")
R = TypeVar("R")

LONGEST_NEWS_HOURS: Final = 720
"""No headline counts longer than this."""


def as_path(value: str) -> str:
    """Return a path that can be printed; raises ValueError."""
    if not value.isprintable():
        raise ValueError("write a path of characters that can be printed")
    return value


REMEMBERED: Final = 16
"""Number of profiles whose answer `once` keeps: those that a process runs at a time."""


def once(ask: Callable[[T], R]) -> Callable[[T], R]:
    """Make a method of frozen settings compute its answer once per object, not on every tick.

    The answer belongs to the very object, which is kept with it, so a changed copy has its own.
    """
    answers: dict[int, tuple[T, R]] = {}

    @wraps(ask)
    def cached(settings: T) -> R:
        answer = answers.get(id(settings))
        # An id can be given again to another object; `is` tells them apart.
        if answer is None or answer[0] is not settings:
            if len(answers) >= REMEMBERED:
                answers.clear()
            answer = answers[id(settings)] = settings, ask(settings)
        return answer[1]

    return cached


Weight = Annotated[float, Field(ge=0, le=1e6)]


class SentimentWeights(Section):
    """Weights of the composite; they need not sum to one."""

    price_action: Weight = Field(0.25, description="weight of price action in the composite")
    key_levels: Weight = Field(0.20, description="weight of key levels in the composite")
    momentum: Weight = Field(0.25, description="weight of momentum in the composite")
    structure: Weight = Field(0.20, description="weight of structure in the composite")
    ath: Weight = Field(0.10, description="weight of the record score in the composite")

    @model_validator(mode="after")
    def _some_weight(self) -> SentimentWeights:
        if sum(self.model_dump().values()) <= 0:
            raise ValueError("at least one weight must be positive")
        return self


class Thresholds(Section):
    """Where a consensus becomes a verdict."""

    buy: float = Field(0.50, gt=0, le=1, description="BUY at or above this consensus")
    sell: float = Field(0.50, gt=0, le=1, description="SELL at or below minus this consensus")


class Markov(Section):
    """Ranges of the consensus, from strong bearish to strong bullish."""

    # strict=False, here and below: JSON has lists only, and a strict tuple takes none.
    cut_points: tuple[float, float, float, float] = Field(
        (-0.40, -0.15, 0.15, 0.40), strict=False, description="borders between the five states"
    )
    smoothing: float = Field(1.0, gt=0, description="added to every transition count")

    @field_validator("cut_points")
    @classmethod
    def _ascending(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if list(value) != sorted(set(value)):
            raise ValueError("cut points must ascend")
        return value


class NewsSettings(Section):
    """Where headlines come from and how long they count (agents.include_news switches them on)."""

    sources: tuple[
        Annotated[
            Literal["finnhub", "alpha_vantage", "file"] | StrictStr,
            or_plug_in("finnhub", "alpha_vantage", "file"),
        ],
        ...,
    ] = Field(
        ("finnhub", "alpha_vantage"),
        strict=False,
        min_length=1,
        description="who is asked; a vendor without a key in the environment is left out",
    )
    file: str = Field(
        "", description="JSON lines of headlines for the source file; relative to TORRA_HOME"
    )
    max_age_hours: float = Field(
        24.0,
        gt=0,
        le=LONGEST_NEWS_HOURS,
        description="older headlines are not evidence any more",
    )
    half_life_hours: float = Field(
        6.0, gt=0, le=720, description="after this time a headline weighs half"
    )
    max_items: int = Field(
        12, ge=1, le=20, description="headlines that the news agent is shown, the weightiest first"
    )

    _path = field_validator("file")(as_path)

    @model_validator(mode="after")
    def _file_named(self) -> NewsSettings:
        if "file" in self.sources and not self.file:
            raise ValueError("the source file needs news.file, the path of its JSON lines")
        if self.file and "file" not in self.sources:
            raise ValueError(
                'news.file is named and not read: add "file" to news.sources, or take it out'
            )
        return self


class OutsideSettings(Section):
    """Where numbers from beside the chart come from (docs/outside.md)."""

    sources: tuple[Literal["fred", "cftc", "edgar", "file"], ...] = Field(
        ("file",),
        strict=False,
        description="who is asked for yields, the dollar, VIX, positions (fred, cftc) and the "
        "filings of companies (edgar); file = what was read with torra data import; empty = no "
        "agent sees such a number; companions are read all the same",
    )


class EventSettings(Section):
    """Scheduled events; the windows around them are in `gate`."""

    calendar: str = Field(
        "",
        description="CSV or JSON file of scheduled events (docs/events.md), relative to "
        "TORRA_HOME; empty = none",
    )

    _path = field_validator("calendar")(as_path)


class Channel(Section):
    """One account at MetaTrader 5 and the way to it."""

    folder: str = Field(
        "",
        description="folder that Torra and MT5 share: Torra/NAME in the Common Files for "
        "torra_files; empty for mt5_direct",
    )
    account: int = Field(ge=1, description="account number; orders for another one are refused")
    live: bool = Field(False, description="true lets orders go to an account with real money")
    server_clock: str = Field(
        "new_york+7",
        description="wall clock of the broker's server: new_york+7, a zone or +03:00",
    )
    key_variable: str = Field(
        "TORRA_CHANNEL_KEY",
        description="environment variable that holds the channel key (torra_files)",
    )
    sides: Literal["both", "long_only", "short_only"] = Field(
        "both", description="which openings this account takes; a close is always taken"
    )
    max_notional: float = Field(
        0.0,
        ge=0,
        description="most that one position is worth here, account currency; 0 = as the profile "
        "says",
    )

    leverage: float = Field(
        0.0,
        ge=0,
        description="most that one position is worth here, times the capital, or the account's "
        "equity where that is lower; 0 = as the profile says",
    )

    _path = field_validator("folder")(as_path)

    @field_validator("key_variable")
    @classmethod
    def _variable(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Z][A-Z0-9_]{2,63}", value):
            raise ValueError("name a variable in capitals, digits and underscore")
        return value


class RadarSettings(Section):
    """The radar: which symbols deserve a look now (docs/radar.md)."""

    enabled: bool = Field(True, description="false: nothing is scanned, by nobody")
    every: Literal["H1", "M15", "off"] = Field(
        "H1", description="scan after the ticks of each close of this timeframe; off = when asked"
    )
    watch: tuple[str, ...] = Field(
        (),
        strict=False,
        max_length=40,
        description="symbols of the desk's feeds that are scanned beside its own, never traded: by "
        "the feed's name",
    )
    near: float = Field(
        0.10, gt=0, le=1, description="a consensus this close to a threshold is near it"
    )
    agents: Literal["off", "on"] = Field(
        "off",
        description="on = three agents go over what a scan found, by the models of the first "
        "profile that asks a vendor; they demote and put in order, and never promote",
    )


class CommitteeSettings(Section):
    """The committee: three seats, a vote and a card (docs/committee.md)."""

    model: bool = Field(
        True,
        description="false: the rules vote; else the deep model of the symbol's profile, where it "
        "asks a vendor",
    )
    risk_profile: Literal["conservative", "balanced", "aggressive"] = Field(
        "balanced", description="whose weights count where none are named"
    )
    rounds: int = Field(2, ge=1, le=2, description="rounds of a debate; each asks every seat once")
    order: Literal["together", "in_turn"] = Field(
        "together",
        description="together: the first round is blind; in_turn: a seat reads those before it",
    )


class ChatSettings(Section):
    """Ask: questions about the desk (docs/ask.md)."""

    enabled: bool = Field(True, description="false: no question is answered")
    model: bool = Field(
        True, description="false: code alone chooses the sentences of an answer, for everybody"
    )
    comment: bool = Field(
        False, description="true: show a model's comment of 25 words at most beside its choice"
    )
    keep_days: int = Field(30, ge=1, le=365, description="days that questions are kept")


NOTICE_LEVELS: Final = ("note", "trade", "decision", "alarm")
"""Levels of a notice, the least first."""

QUIET_HOURS: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


class NoticeSettings(Section):
    """What is told to a person who is not looking (docs/notices.md)."""

    least: Literal["note", "trade", "decision", "alarm"] = Field(
        "note", description="least level of a notice that a person is called for"
    )
    detail: Literal["full", "short"] = Field(
        "full", description="short: no prices, no lots, no amounts of money"
    )
    radar: bool = Field(
        False, description="true: tell once in 4 hours of a stream that enters act or exit radar"
    )
    quiet_hours: str = Field(
        "", description="alarms alone between these times, such as 22:00-07:00; empty = never"
    )
    zone: str = Field("UTC", description="zone of the quiet hours, such as Europe/Zurich")
    services: tuple[Annotated[StrictStr, or_plug_in("apprise")], ...] = Field(
        ("apprise",),
        strict=False,
        max_length=8,
        description="who brings notices: apprise, at the addresses of TORRA_NOTICE_URLS, and "
        "plug-ins",
    )

    @field_validator("quiet_hours")
    @classmethod
    def _hours(cls, value: str) -> str:
        if value and (not QUIET_HOURS.fullmatch(value) or value[:5] == value[6:]):
            raise ValueError("write two different times of 24 hours, such as 22:00-07:00")
        return value

    @field_validator("zone")
    @classmethod
    def _zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ValueError, OSError, KeyError):
            raise ValueError("write UTC or the name of a zone, such as Europe/Zurich") from None
        return value

    def quiet_at(self, moment: datetime) -> bool:
        """Return whether an aware moment lies in the quiet hours: [begin, end) by the zone."""
        if not self.quiet_hours:
            return False
        begin, end = self.quiet_hours.split("-")
        now = moment.astimezone(ZoneInfo(self.zone)).strftime("%H:%M")
        return begin <= now < end if begin < end else now >= begin or now < end
