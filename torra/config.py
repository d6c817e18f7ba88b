"""The settings of profiles and the desk: every one with its meaning, default and limits.

The default values in this module and in `agent_config` are the shipped default profile;
profiles/default.json and docs/profiles.md are written from them and a test holds them together. A
file that does not fit raises ConfigError with the place, the value and, for an unknown key, the
nearest valid name. The only files read are the profile and the desk file that the caller names;
nothing here reads a clock or a network.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)

from agent_config import (
    MODES,
    AgentSettings,
    DebateSettings,
    GateSettings,
    Section,
    is_plug_in,
    or_plug_in,
)
from torra.clock import duration
from torra.config_sections import (
    LONGEST_NEWS_HOURS,
    NOTICE_LEVELS,
    Channel,
    ChatSettings,
    CommitteeSettings,
    EventSettings,
    Markov,
    NewsSettings,
    NoticeSettings,
    OutsideSettings,
    RadarSettings,
    SentimentWeights,
    Thresholds,
    once,
)
from torra.errors import ConfigError, in_words, no_key_twice
from torra.home import DESK
from torra.regular_files import lies, read_regular
from torra.trading_terms import SYMBOLS, Risk, SymbolSpec

__all__ = [
    "LONGEST_NEWS_HOURS",
    "MT5_BRIDGES",
    "MT5_FEEDS",
    "NAME",
    "NOTICE_LEVELS",
    "ROOT",
    "SYMBOLS",
    "Channel",
    "ChatSettings",
    "CommitteeSettings",
    "DeskSettings",
    "EventSettings",
    "Instance",
    "Markov",
    "NewsSettings",
    "NoticeSettings",
    "OutsideSettings",
    "Profile",
    "RadarSettings",
    "Risk",
    "SentimentWeights",
    "SymbolSpec",
    "Thresholds",
    "has_desk",
    "home",
    "load_desk",
    "load_profile",
]

Model = TypeVar("Model", bound=BaseModel)

CHECKOUT: Final = Path(__file__).resolve().parent.parent
PACKED: Final = Path(__file__).resolve().parent / "_shipped"
ROOT: Final = PACKED if PACKED.is_dir() else CHECKOUT
"""Where the shipped profiles, sample data, templates and static files lie: in a checkout beside the
code, in an installed package within it.
"""

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
"""What a symbol, an instance or a profile may be called: it becomes part of keys and file names."""

NAME_RULE: Final = "use letters, digits, dot, dash and underscore, 32 at most"
"""What NAME asks, for whoever has written another name."""


BROKER_SYMBOL_RULE: Final = (
    "use printable characters, 31 at most (64 bytes of UTF-8), no space at the ends, and none of "
    '" \\ | ,'
)
"""What `is_broker_symbol` asks, for whoever has written another name."""

MAGIC_BASE: Final = 220_000_000
MAGIC_RANGE: Final = 1_000_000_000
"""An instance's magic number lies in [MAGIC_BASE, MAGIC_BASE + MAGIC_RANGE): MT5 takes 2^31 - 1."""


COMPANION: Final = re.compile(r"[a-z][a-z0-9_]{0,15}")
"""What a companion of an instance may be called: it becomes part of a feature's id."""

MOST_COMPANIONS: Final = 4


def check_name(value: str) -> str:
    """Return a name that a symbol, an instance, a profile or a channel may have.

    Raises ValueError with the rule.
    """
    if not NAME.fullmatch(value):
        raise ValueError(NAME_RULE)
    return value


def check_symbol(value: str) -> None:
    """Raise ConfigError for a name that no symbol may have."""
    if not NAME.fullmatch(value):
        raise ConfigError(f"{value!r} is no symbol: {NAME_RULE}")


def is_broker_symbol(value: str) -> bool:
    """Return whether a broker may call a symbol so.

    The name goes into JSON without escapes, rows with bars and lists with commas. MetaTrader's
    names have 31 characters at most; 64 bytes, percent-escaped, still make the name of a file.
    """
    return (
        value.isprintable()
        and 1 <= len(value) <= 31
        and len(value.encode()) <= 64
        and value == value.strip()
        and not {*'"\\|,'} & {*value}
    )


class Profile(Section):
    """All settings of one instance."""

    sentiment_weights: SentimentWeights = SentimentWeights()
    record_score: Literal["both", "high"] = Field(
        "both",
        description="both = +1 at the record high, -1 at the record low, 0 far from both; high = "
        "+1 at the record high, -1 far below it",
    )
    timeframe_weights: dict[str, float] = Field(
        {"M15": 0.4, "H1": 0.6}, description="weight of each timeframe's composite in the consensus"
    )
    thresholds: Thresholds = Thresholds()
    markov: Markov = Markov()
    gate: GateSettings = GateSettings()
    risk: Risk = Risk()
    symbols: dict[str, SymbolSpec] = Field(
        SYMBOLS, description="trading conditions by canonical symbol"
    )
    agents: AgentSettings = AgentSettings()
    news: NewsSettings = NewsSettings()
    events: EventSettings = EventSettings()
    outside: OutsideSettings = OutsideSettings()
    execution: Literal["auto", "approve", "off"] = Field(
        "auto",
        description="who sends a signal: the desk, the desk after a person's yes, or nobody",
    )
    on_opposite: Literal["close", "reverse", "hold"] = Field(
        "close", description="what an opposite verdict does to an open position"
    )

    @field_validator("symbols", mode="before")
    @classmethod
    def _over_the_shipped(cls, value: Any) -> Any:
        """Let a profile name only what differs from the shipped trading conditions."""
        if not isinstance(value, dict):
            return value
        shipped = {name: spec.model_dump() for name, spec in SYMBOLS.items()}
        given = {
            name: {**shipped.get(name, {}), **spec} if isinstance(spec, dict) else spec
            for name, spec in value.items()
        }
        return {**shipped, **given}

    @field_validator("timeframe_weights")
    @classmethod
    def _known_timeframes(cls, value: dict[str, float]) -> dict[str, float]:
        for name, weight in value.items():
            duration(name)  # ValueError for one that is not known
            if weight <= 0:
                raise ValueError(f"the weight of {name} must be positive")
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _defaults_of_the_mode(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Fill in the caps of leverage that a mode sets for a profile that writes none.

        They do not count as set: they give way to the defaults of another mode.
        """
        agents = given.get("agents") if isinstance(given, Mapping) else None
        mode = agents.get("mode") if isinstance(agents, Mapping) else getattr(agents, "mode", "")
        row = MODES.get(str(mode))
        risk = given.get("risk", {}) if row else None
        if row is None or not isinstance(risk, Mapping):
            return handler(given)
        # A profile without a cap has written none: saved ones have every setting.
        defaults = row.defaults.get("risk", {})
        own = {name: value for name, value in risk.items() if name not in defaults or value != {}}
        profile = handler({**given, "risk": {**defaults, **own}})
        profile.risk.model_fields_set.difference_update(defaults.keys() - own.keys())
        profile.model_fields_set.difference_update({"risk"} - given.keys())
        return profile

    @once
    def debate(self) -> DebateSettings:
        """Return the part of the profile that the overlay reads."""
        weights = self.sentiment_weights.model_dump(exclude={"ath"})
        return DebateSettings(
            agents=self.agents,
            gate=self.gate,
            weights=weights,
            officer=self.agents.row().officer,
        )

    def with_agents(self, **changes: Any) -> Profile:
        """Return the profile with these settings of the agents; raises ConfigError.

        Another mode brings its own defaults for what nobody wrote.
        """
        values = self.model_dump(exclude_unset=True)
        values["agents"] = values.get("agents", {}) | changes
        return validate(Profile, values, "the command line")

    def symbol(self, name: str) -> SymbolSpec:
        """Return the trading conditions of a symbol; raises ConfigError naming the remedy."""
        try:
            return self.symbols[name]
        except KeyError:
            raise ConfigError(
                f"the profile knows no trading conditions for {name}; add symbols.{name} to it"
            ) from None

    @once
    def digest(self) -> str:
        """Return a short hash of every value, stored with each tick."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]


MT5_FEEDS: Final = ("mt5_files", "mt5_direct")
MT5_BRIDGES: Final = ("torra_files", "mt5_direct")
FEEDS: Final = ("sample", "store", *MT5_FEEDS)
BRIDGES: Final = ("paper", *MT5_BRIDGES)
"""Names that Torra brings itself; what stands behind them is in torra.feeds.registry and
torra.bridges.registry."""


class Instance(Section):
    """A symbol with its timeframes, profile, feed and bridge."""

    name: str = Field("", description="unique name; empty = the symbol")
    symbol: str = Field(description="canonical symbol, such as XAUUSD")
    timeframes: tuple[str, ...] = Field(
        ("M15", "H1"), strict=False, min_length=1, description="streams"
    )
    profile: str = Field(
        "default", description="name of a profile in TORRA_HOME/profiles or profiles/"
    )
    feed: Annotated[
        Literal["sample", "store", "mt5_files", "mt5_direct"] | StrictStr, or_plug_in(*FEEDS)
    ] = Field("sample", description="where bars come from")
    bridge: Annotated[
        Literal["paper", "torra_files", "mt5_direct"] | StrictStr, or_plug_in(*BRIDGES)
    ] = Field("paper", description="where signals go")
    channel: str = Field(
        "main", description="which of the desk's channels a feed or a bridge to MT5 uses"
    )
    broker_symbol: str = Field(
        "", description="what the broker calls the symbol, such as XAUUSD.m; empty = the symbol"
    )

    companions: dict[str, str] = Field(
        {},
        description="other symbols of the same feed that agents read beside it, never traded: "
        "your name for each and the feed's symbol, such as dxy and USDX.f, 4 at most "
        "(docs/outside.md)",
    )

    @field_validator("broker_symbol")
    @classmethod
    def _brokers_name(cls, value: str) -> str:
        if value and not is_broker_symbol(value):
            raise ValueError(BROKER_SYMBOL_RULE)
        return value

    @field_validator("companions")
    @classmethod
    def _check_companions(cls, value: dict[str, str]) -> dict[str, str]:
        if len(value) > MOST_COMPANIONS:
            raise ValueError(f"name {MOST_COMPANIONS} companions at most, not {len(value)}")
        for name, symbol in value.items():
            if not COMPANION.fullmatch(name):
                raise ValueError(
                    f"the companion {name!r}: call it by lower-case letters, digits and _, 16 at "
                    "most, such as dxy"
                )
            if not is_broker_symbol(symbol):
                raise ValueError(
                    f"the companion {name}: {symbol!r} is no symbol: {BROKER_SYMBOL_RULE}"
                )
        if len({*value.values()}) < len(value):
            raise ValueError("two companions are the same symbol: leave one of them out")
        return value

    @model_validator(mode="after")
    def _others(self) -> Instance:
        for name, symbol in self.companions.items():
            if symbol in (self.symbol, self.broker_name):
                raise ValueError(
                    f"the companion {name} is {symbol} itself: name another symbol, or leave it out"
                )
        return self

    @field_validator("symbol", "name", "profile", "channel")
    @classmethod
    def _plain(cls, value: str) -> str:
        return check_name(value) if value else value

    @field_validator("timeframes")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(set(value), key=duration))  # ValueError for one that is not known

    def __hash__(self) -> int:
        """Return one by the name: a mapping such as that of the companions has none."""
        return hash(self.id)

    @property
    def id(self) -> str:
        """The name under which everything of this instance is stored."""
        return self.name or self.symbol

    @property
    def broker_name(self) -> str:
        """What the broker calls the symbol."""
        return self.broker_symbol or self.symbol

    def companion_stream(self, symbol: str) -> str:
        """Return the name under which the bars of a companion are stored.

        Another feed or channel may mean something else by the same symbol, so both are part of it.
        It holds a colon, which no instance's name does: nothing that ticks or trades is called so.
        """
        return f"companion:{self.feed}:{self.channel}:{symbol}"

    def companion_streams(self, symbol: str) -> tuple[str, ...]:
        """Return where stored bars of a companion are: as read, which wins, then as imported."""
        # `torra import` stores what is no instance's under its name in capitals.
        return tuple(dict.fromkeys((self.companion_stream(symbol), symbol, symbol.upper())))

    @property
    def route(self) -> str:
        """Where its signals go: "paper", or the bridge and its channel."""
        return "paper" if self.bridge == "paper" else f"{self.bridge} {self.channel}"

    @property
    def magic(self) -> int:
        """The number that marks this instance's orders at the broker, in [1, 2^31 - 1]."""
        # Made of the name, not counted: it stays the same when instances come and go.
        return MAGIC_BASE + zlib.crc32(self.id.encode()) % MAGIC_RANGE

    @property
    def shortest(self) -> str:
        """The timeframe on whose bars the paper bridge advances."""
        return self.timeframes[0]


class DeskSettings(Section):
    """The desk file, desk.json under TORRA_HOME."""

    instances: tuple[Instance, ...] = Field(
        (
            Instance(symbol="BTCUSD", timeframes=("M15", "H1")),
            # It asks a person before each order, and soon: so a newcomer can approve one.
            Instance(symbol="EURUSD", timeframes=("H1",), profile="demo_approve"),
        ),
        strict=False,
        min_length=1,
        description="what the desk watches",
    )
    channels: dict[str, Channel] = Field(
        {}, description="ways to MetaTrader 5, by name; an instance names one as its channel"
    )
    plugins: tuple[str, ...] = Field(
        (),
        strict=False,
        description="packages of others that may be loaded, by distribution; they run with all of "
        "Torra's rights (docs/extending.md)",
    )
    symbol_databases: dict[str, str] = Field(
        {},
        description="files of an existing scorer by symbol or instance: their sentiment table gets "
        "the rows of this desk too; relative to TORRA_HOME",
    )
    keep_calls_days: int = Field(
        90,
        ge=1,
        le=36_500,
        description="days for which prompts, replies, pictures and headlines are kept "
        "(headlines 32 at least)",
    )
    paper_currency: str = Field(
        "USD",
        pattern="^[A-Z]{3}$",
        description="currency of the account on paper, in which the profiles' capital and tick "
        "values are",
    )
    notices: NoticeSettings = NoticeSettings()
    radar: RadarSettings = RadarSettings()
    chat: ChatSettings = ChatSettings()
    committee: CommitteeSettings = CommitteeSettings()

    @field_validator("radar")
    @classmethod
    def _watched(cls, value: RadarSettings) -> RadarSettings:
        for symbol in value.watch:
            if not is_broker_symbol(symbol):
                raise ValueError(f"radar.watch: {symbol!r} is no symbol: {BROKER_SYMBOL_RULE}")
        return value

    @model_validator(mode="after")
    def _unique(self) -> DeskSettings:
        names = [instance.id for instance in self.instances]
        if len(set(names)) != len(names):
            raise ValueError("two instances have the same name")
        return self

    @model_validator(mode="after")
    def _channels_there(self) -> DeskSettings:
        for name in self.channels:
            if not NAME.fullmatch(name):
                raise ValueError(f"channel {name!r}: {NAME_RULE}")
        for instance in self.instances:
            outside = {instance.feed, instance.bridge} & {*MT5_FEEDS, *MT5_BRIDGES}
            if is_plug_in(instance.bridge):
                outside.add(instance.bridge)  # its account is the channel's
            if outside and instance.channel not in self.channels:
                raise ValueError(
                    f"{instance.id} uses {', '.join(sorted(outside))} and channel "
                    f"{instance.channel}, which is not there: add channels.{instance.channel}"
                )
            # The sample's prices are years old: an order at them would go to the market of today.
            if instance.bridge != "paper" and instance.feed == "sample":
                raise ValueError(
                    f"{instance.id} would send orders to MT5 on the sample's bars of the past; "
                    "give it a live feed or the paper bridge"
                )
        # Two instances with one number would take each other's positions for their own.
        sent = [item.magic for item in self.instances if item.bridge != "paper"]
        if len(set(sent)) != len(sent):
            raise ValueError("two instances have the same magic number; rename one of them")
        return self

    def instance(self, name: str) -> Instance:
        """Return an instance by name or symbol; raises ConfigError naming the ones there are."""
        for instance in self.instances:
            if name in (instance.id, instance.symbol):
                return instance
        known = ", ".join(instance.id for instance in self.instances)
        raise ConfigError(f"the desk has no instance {name}; it has {known}")

    def trades_real_money(self, instance: Instance) -> bool:
        """Return whether an instance's orders may go to an account with real money."""
        channel = self.channels.get(instance.channel)
        return instance.bridge != "paper" and channel is not None and channel.live


def home(environment: dict[str, str] | None = None) -> Path:
    """Return TORRA_HOME, by default ./torra_home."""
    # An empty variable counts as none: Path("") would be the working directory.
    return Path((environment or dict(os.environ)).get("TORRA_HOME") or "torra_home").expanduser()


def has_desk(folder: Path) -> bool:
    """Return whether a home has a desk.json, be it a link to nothing."""
    return lies(folder / DESK)


def load_desk(folder: Path) -> DeskSettings:
    """Read desk.json of a home; the shipped default when there is none. Raises ConfigError."""
    path = folder / DESK
    # A link to nothing is a desk that somebody meant: its defaults would be another one.
    return read(DeskSettings, path) if lies(path) else DeskSettings()


def load_profile(name: str | Path, folder: Path) -> Profile:
    """Read a profile by file, or by name from the home and then the shipped ones.

    Raises ConfigError.
    """
    if isinstance(name, Path):
        return read(Profile, name)
    for place in (folder / "profiles", ROOT / "profiles"):
        path = place / f"{name}.json"
        if lies(path):
            return read(Profile, path)
    raise ConfigError(f"there is no profile {name}: put {name}.json into {folder / 'profiles'}")


def read(model: type[Model], path: Path) -> Model:
    """Read one JSON file into a settings model; raises ConfigError with file, place and remedy."""
    try:
        # Windows editors put a byte order mark in front, which json refuses.
        text = read_regular(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    try:
        # Of a key that stands twice json keeps the last, silently: a limit would be lost.
        values = json.loads(text, object_pairs_hook=no_key_twice)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    return validate(model, values, str(path))


def validate(model: type[Model], values: object, source: str) -> Model:
    """Check values against a settings model; raises ConfigError naming the place and remedy."""
    try:
        settings = model.model_validate(values)
    except ValidationError as error:
        lines = [f"{source}: {fault}" for _, fault in faults(model, error)]
        raise ConfigError("; ".join(lines)) from error
    try:
        json.dumps(values, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{source}: a text holds {error.object[error.start]!r}, which is half a character; "
            "write that text anew"
        ) from error
    return settings


def faults(model: type[BaseModel], error: ValidationError) -> list[tuple[tuple[str, ...], str]]:
    """Return what pydantic refused: the place, and a sentence with place, value and remedy."""
    errors = error.errors()
    return [
        (tuple(str(part) for part in item["loc"]), _explain(model, item))
        for item in errors
        # Not what only says again that something inside its place is wrong.
        if not any(
            len(other["loc"]) > len(item["loc"]) and other["loc"][: len(item["loc"])] == item["loc"]
            for other in errors
        )
    ]


def _explain(model: type[BaseModel], item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"]) or "the whole file"
    if item["type"] != "extra_forbidden":
        shown = repr(item.get("input"))
        value = "" if item["type"] == "missing" else f" (found {shown[:60]})"
        return f"{place}: {in_words(item)}{value}"
    # Keys below a name (symbols.X, instances) are not reached from the model's own fields.
    known = {name: name for name in (*Instance.model_fields, *SymbolSpec.model_fields)}
    known |= _keys(model)
    key = str(item["loc"][-1])
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    # The right key in the wrong place: its whole place helps, its name alone does not.
    hint = f"; did you mean {known[near[0]] if near[0] == key else near[0]}?" if near else ""
    return f"unknown key {place}{hint}"


def _keys(model: type[BaseModel], prefix: str = "") -> dict[str, str]:
    """Return the keys of a model and of its sections, each with its whole place."""
    names: dict[str, str] = {}
    for name, field in model.model_fields.items():
        names.setdefault(name, f"{prefix}{name}")
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            names = {**_keys(inner, f"{prefix}{name}."), **names}
    return names
