"""Writes the pages that mirror the code: profiles, models, agents, dependencies, transcripts.

The default profile and the page of profiles come from the pydantic models in torra/config.py and
agent_config.py: names, defaults, limits and the description of each field; the table of models from
torra/providers/vendors/vendors.toml, docs/agents.md from the roles of agents/registry.py, the
transcripts from a desk that runs the sample. What is written by hand in docs/models.md and
docs/agents.md stays. A test compares the files with what is rendered here; `python -m
docs.generate` writes them anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from agent_config import (
    EXPERTS,
    HIERARCHY,
    LONG_FROM,
    MODELS,
    MODES,
    TRUST,
    TRUST_DECIMALS,
    TRUST_FLOOR,
    Mode,
)
from agents.contracts import ANOMALIES, VECTORS, Role
from agents.registry import AGENTS, TRADER
from agents.swarm.anomalies import RELATIONS, ROWS
from agents.texts.door import UNWRAPPINGS
from docs import dependencies, radar_page
from scoring_rubric import task_of
from torra.bridges.guards import GUARDS
from torra.clock import TIMEFRAMES
from torra.collecting.refusals import COMMON, refusals
from torra.config import (
    ROOT,
    SYMBOLS,
    Channel,
    ChatSettings,
    CommitteeSettings,
    DeskSettings,
    Instance,
    NoticeSettings,
    Profile,
    RadarSettings,
    SymbolSpec,
)
from torra.dashboard import description
from torra.desk.costs import closes_a_day
from torra.desk.models import expected_cost
from torra.desk.models.expected_cost import CostBasis
from torra.desk.models.remedies import REMEDIES
from torra.evidence.company_facts import FIGURES
from torra.evidence.outside_numbers import SERIES
from torra.profiles.fields import EXACT, described, names_of
from torra.profiles.idle import IDLE
from torra.providers.prices import PriceList
from torra.providers.vendors.table import AS_OF, Capability, vendors
from torra.tools.contract import CODES
from torra.tools.registry import TOOLS
from torra.words.ask import ASK_CODES
from torra.words.deny_reasons import deny_table, guard_table

HEAD = """# Profiles

A profile is a JSON file with the settings of an instance. It may leave out any key: the default
below then holds. An unknown key, a wrong type, a number outside its limits, NaN and infinity are
refused with the place and the remedy; nothing is corrected silently. Torra looks for
`NAME.json` in `TORRA_HOME/profiles`, then in `profiles/`; `profiles/default.json` is the whole
default profile, and copying it is the way to begin. A hash of every value is stored with each tick.
"""
TAIL = "This page is written from the code: `python -m docs.generate`.\n"

WITHOUT_EFFECT = """These settings of `agents` and `gate` change nothing of a tick where the table
says so; all others do. `torra profile check` names those that a profile sets away from its mode's
default, its page all of them.
"""

MODELS_HEAD = """# Models

What each model can do, and what Torra sends it. A profile may name any model, with its vendor or
without one: `claude-haiku-5-5`, `google:gemini-3.8-flash`. A model that is not listed is sent
nothing that it might refuse. A model with an end is refused at start from that day on, and
`torra doctor` tells before. No model is sent a temperature.

**schema**: the reply is held to a JSON schema (otherwise the schema stands in the prompt).
**picture**: the model may be shown the chart. **thinking**, **effort**: what is sent to keep it
short; nothing where the field is empty. Any server that speaks OpenAI's chat completions
(`TORRA_OPENAI_BASE_URL`) may be asked for models of any name; it gets the schema if it takes one,
no effort and no picture.
"""
READING = """A reply is the one JSON object of its text. The whole text is read first. Where it is
none, at most two of these wrappings are taken off, each at most once, in any model's reply, and in
the test of a model as in a tick. Nothing else is mended.
"""
READING_RULES = """- What is left is read as strictly as a bare reply: one object, no key twice, no
  NaN, nothing infinite, no lone surrogate, 64 kB at most with all its wrappings, about the symbol
  that was asked about.
- Two objects are refused, wherever they stand, and so is an object inside of another one, or of its
  prose.
- A thought is dropped up to its first closing tag, whatever stands in it. One that was cut off has
  no closing tag: its draft is no answer.
- A tool call or a reasoning field counts only where nothing else was said.
- An object that stands in the request itself is refused (`echo`): a model that repeats an example
  has not answered.
"""
ENDING = """Each vendor's documented words, and the one that Torra keeps (`stop_reason` of a call).
A reply that was cut off, filtered or refused is not read. After the others an object still counts;
where there is none, the word says why. A word that no vendor documents is `other`.
"""
EXPECTED = """What a tick, a day and the ticks of `influence: earned` are expected to cost in USD,
with each vendor's default models at the prices of {day}, for one symbol on M15 and H1. It is
estimated from the prompts of a tick of the sample, which has bars and nothing from beside them.
`torra models` and the page Models say it of your own desk, by its newest tick and with your models,
and `torra profile set` says it before a change of the agents is made.

- **Tokens** are characters: one for every {read} of a prompt and its schema, one for every
  {said} of a reply, which is taken to be as long as the rules' own. A vendor counts otherwise.
- **A seat without evidence** is not asked and not counted, and the sentence names it. News,
  fundamental, macro and microstructure need numbers from beside the bars; each that is asked adds a
  call, and a report that others read.
- **What happens on some ticks alone** counts by its share: a rebuttal on {rebuttal:.0%} of ticks,
  a second look at {again:.0%} of reports; with `call_policy: pivotal` and `gate_call: openings`
  what can change a verdict, on {pivotal:.0%}. Where seats of low confidence took second looks,
  the bill of `full` and `firm` was 1.3 to 1.7 times the estimate.
- **Not counted** are the trader, who is asked on some 1 % of ticks, the chart, retries, a
  fallback, the thoughts of a model that cannot but think, and discounts of caches.
- **The last column** is what agents in shadow cost until the rule of `earned` looks at them for the
  first time ([scorecard.md](scorecard.md)).
- **A model without a price** is one that nobody lists. A price in `prices.json` is taken. A local
  server costs nothing where `prices.json` does not name its model.
"""
MODELS_COLUMNS = "| model | schema | picture | thinking | effort | end | instead | note |\n"
VENDOR_TITLES = {
    "anthropic": "Anthropic",
    "google": "Google",
    "openai_compatible": "OpenAI and compatible servers",
}
BY_HAND = ("<!-- by hand: begin -->\n", "<!-- by hand: end -->\n")
"""What stands between these lines of docs/models.md is kept as it is."""

SERIES_TABLE = ("<!-- series: begin -->\n", "<!-- series: end -->\n")
FIGURES_TABLE = ("<!-- figures: begin -->\n", "<!-- figures: end -->\n")
TOOLS_TABLE = ("<!-- tools: begin -->\n", "<!-- tools: end -->\n")
CODES_TABLE = ("<!-- codes: begin -->\n", "<!-- codes: end -->\n")
REFUSALS_TABLE = ("<!-- refusals: begin -->\n", "<!-- refusals: end -->\n")
OWN_NAME = {"": "", "symbol": " (`.SYMBOL`)", "currency": " (`.EUR`)"}

COLUMNS = "| key | default | limits | meaning |\n|---|---|---|---|\n"

AGENTS_HEAD = """# Agents

An agent is one file in `agents/`: a role and one function. It sees the evidence that is listed
here, by id, as numbers that code computed; it cites what it leans on, and a citation that is not in
the evidence costs it most of its weight. Where it has none of the evidence that it needs, it
abstains before any call is made; an abstention neither counts as a vote nor as a failure. What an
agent says moves a score by its bound at most, and the whole desk by 0.3 before the blend: 0.06 of
the score that the brain gets.

`budget` seats technical, bull, bear and gate. `full` seats eight: technical, sentiment, news, key
levels, momentum, bull, bear and gate. `firm` seats technical, sentiment, news, fundamental, bull,
bear, the research manager and the gate, and asks a trader where an opening would stand
([debate.md](debate.md#the-firm-manager-and-trader)). `swarm` seats a reader of the regime, four
experts (liquidity, microstructure, macro, geometry), the judge and the gate. A profile may name its
own (`agents.active_agents`). Every role is given the regime (`market.regime`) and the warnings of
the bar (`market.triage`). Analysts are asked at once, then the researchers, who also read the
analysts' reports, then the gate, which reads all of them, and the manager beside it. Of the news
agent's report the others see numbers and ids only, never a word. Where a profile says so, the
agents that `agents.memory.roles` names are also told lessons of closed trades in a like market
([memory.md](memory.md)).
"""
MAY_DO = {
    "arbiter": "no score: it weighs the two cases, 0 to 1 each, and its word may lower a size",
    "gate": "no score: it attenuates and vetoes",
    "reader": "no score: it may lower the budget of an opening, and have one expert go first",
    "trader": "no score: it may decline the opening that it is asked about",
}
"""What an agent may do that has no score."""

ABSTAINS = {
    "arbiter": "when neither bull nor bear was heard: there is nothing to judge",
    "gate": "never",
    "judge": "when no expert was heard: there is nothing to judge",
    "trader": "never",
}
"""When an agent abstains that needs no evidence of its own."""

ESCALATED = {"trader": ", or chief_think_model where `escalation` says so"}
"""By which model else a kind of agent may be asked."""

KINDS = {
    "analyst": "Analysts",
    "researcher": "Researchers",
    "reader": "The reader of the regime",
    "arbiter": "The arbiter",
    "judge": "The judge",
    "gate": "The gate",
    "trader": "The trader",
}


def render_profile_docs() -> str:
    """Return docs/profiles.md."""
    plain = [name for name in Profile.model_fields if not _section(Profile, name)]
    parts = [HEAD, "## The profile itself\n", COLUMNS + "".join(_rows(Profile, "", plain))]
    for name in Profile.model_fields:
        if section := _section(Profile, name):
            title = f"## {name}\n\n{_sentence(section)}\n"
            parts += [title, COLUMNS + "".join(_rows(section, f"{name}."))]
    parts += ["## symbols\n", _sentence(SymbolSpec) + "\n", _symbols()]
    parts += ["## Modes and models\n", _modes(), _models()]
    parts += ["## Settings without effect\n", WITHOUT_EFFECT, _idle()]
    parts += ["## desk.json\n", _sentence(DeskSettings) + "\n"]
    desk = [
        *_rows(DeskSettings, "", ["keep_calls_days"]),
        *_rows(Instance, "instances[]."),
        *_rows(Channel, "channels.NAME."),
        *_rows(NoticeSettings, "notices."),
        *_rows(RadarSettings, "radar."),
        *_rows(ChatSettings, "chat."),
        *_rows(CommitteeSettings, "committee."),
    ]
    parts += [COLUMNS + "".join(desk)]
    return "\n".join([*parts, TAIL])


def _idle() -> str:
    """Return the table of settings without effect; modes are those of a profile with defaults."""
    rows = []
    for names, case, holds in IDLE:
        first, *_ = told = names.split()
        defaults = {mode: Profile.model_validate({"agents": {"mode": mode}}) for mode in MODES}
        of = [f"`{mode}`" for mode, profile in defaults.items() if holds(profile, first)]
        where = f"in mode {', '.join(of)}" if of else "at the desk"
        settings = ", ".join(f"`{name}`" for name in told)
        rows.append(f"| {settings} | {case.format(where=where)} |\n")
    return "| setting | no effect |\n|---|---|\n" + "".join(rows)


def render_default_profile() -> str:
    """Return profiles/default.json: every default but those that go by the mode."""
    by_mode: dict[str, set[str]] = {}
    for row in MODES.values():
        for section, defaults in row.defaults.items():
            by_mode.setdefault(section, set()).update(defaults)
    return Profile().model_dump_json(indent=2, exclude=by_mode) + "\n"


def render_models_docs(by_hand: str = "\n") -> str:
    """Return docs/models.md around the part that is written by hand."""
    parts = [MODELS_HEAD]
    for vendor, title in VENDOR_TITLES.items():
        rows = [_model_row(row) for row in vendors()[vendor].models.values() if not _gone(row)]
        parts += [f"## {title}\n", MODELS_COLUMNS + "|---" * 8 + "|\n" + "".join(rows)]
    parts += ["## Shut down\n", f"These were gone on {AS_OF} and are refused.\n", _gone_rows()]
    parts += ["## What a mode is expected to cost\n", _expected()]
    parts += ["## How a reply is read\n", READING, _unwrappings(), READING_RULES]
    parts += ["## Why a reply ended, and what to do\n", ENDING, _ends(), _failures()]
    parts.append(
        "The tables are written from the code: `python -m docs.generate`. What follows is not.\n"
    )
    return "\n".join([*parts, BY_HAND[0]]) + by_hand + BY_HAND[1]


def _expected() -> str:
    """Return the expected cost of every mode and vendor, at the prices of AS_OF."""
    prices = PriceList(now=lambda: datetime.combine(AS_OF, time(12), UTC))
    closes = closes_a_day([Instance(symbol="BTCUSD", timeframes=("M15", "H1"))])
    estimate = CostBasis(expected_cost.shipped_tick(), closes, prices, lambda _: False)
    titles, *rows = expected_cost.cells(estimate.by_mode())
    lines = (titles, ["---", "---", "---:", "---:", "---:"], *rows)
    about = EXPECTED.format(
        day=AS_OF,
        read=expected_cost.INPUT_CHARS,
        said=expected_cost.OUTPUT_CHARS,
        rebuttal=expected_cost.REBUTTAL,
        again=expected_cost.SECOND_LOOK,
        pivotal=expected_cost.PIVOTAL,
    )
    return about + "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _unwrappings() -> str:
    rows = (f"| {row.name} | {row.source} | {_code(row.example)} |\n" for row in UNWRAPPINGS)
    return "| around the object | who has it | example |\n|---|---|---|\n" + "".join(rows)


def _code(text: str) -> str:
    """Return a text as code in a cell of a table."""
    fence = "``" if "`" in text else "`"
    inner = text.replace("|", "\\|")
    return f"{fence} {inner} {fence}" if "`" in text else f"{fence}{inner}{fence}"


def _ends() -> str:
    words = dict.fromkeys(word for row in vendors().values() for word in row.stops)
    rows = (
        f"| `{word}` | "
        + " | ".join(
            ", ".join(f"`{told}`" for told in vendors()[vendor].stops.get(word, "").split())
            for vendor in VENDOR_TITLES
        )
        + " |\n"
        for word in words
    )
    titles = " | ".join(VENDOR_TITLES.values())
    return f"| Torra's word | {titles} |\n|---|---|---|---|\n" + "".join(rows)


def _failures() -> str:
    places = {"key": "the key's variable", "address": "the variable of its address", "seconds": 15}
    rows = (
        f"| `{name}` | {said.format(**places)} | {remedy.format(**places)} |\n"
        for name, (said, remedy) in REMEDIES.items()
    )
    return (
        "| a call's detail, or its status | what is wrong | what to do |\n|---|---|---|\n"
        + "".join(rows)
    )


def outside_tables(page: str) -> str:
    """Return docs/outside.md with the tables of series and figures as the code has them."""
    rows = "".join(
        f"| `{name}`{OWN_NAME[one.own]} | {one.says} | {one.unit} | {one.valid.days} d "
        f"| {one.source} |\n"
        for name, one in SERIES.items()
    )
    columns = "| series | what it is | unit | valid | from |\n|---|---|---|---|---|\n"
    figures = "".join(
        f"| `{name}` | {one.says} | {one.unit} | {one.over} |\n" for name, one in FIGURES.items()
    )
    told = "| figure | what it is | unit | of a |\n|---|---|---|---|\n"
    return _between(_between(page, SERIES_TABLE, columns + rows), FIGURES_TABLE, told + figures)


def news_tables(page: str) -> str:
    """Return docs/news.md with the table of refusals written anew."""
    head = "| asked | status of HTTP | its words | state | what is told |\n|---|---|---|---|---|\n"
    groups = {**refusals(), "any": COMMON}
    rows = "".join(
        f"| `{name}` | {one.code or 'any'} | {one.words} | `{one.status}` | {one.detail} |\n"
        for name, group in groups.items()
        for one in group
    )
    return _between(page, REFUSALS_TABLE, head + rows)


def tool_tables(page: str) -> str:
    """Return docs/mcp.md with the tables of tools and of their codes written anew."""
    tools = "".join(
        f"| `{spec.name}` | {', '.join(spec.args.model_fields) or 'none'} | {spec.description} |\n"
        for spec in TOOLS.values()
    )
    page = _between(page, TOOLS_TABLE, f"| tool | arguments | gives |\n|---|---|---|\n{tools}")
    codes = "".join(
        f"| `{code}` | {row['status']} | {row['meaning']} |\n" for code, row in CODES.items()
    )
    return _between(page, CODES_TABLE, f"| code | status | meaning |\n|---|---|---|\n{codes}")


def ask_tables(page: str) -> str:
    """Return docs/ask.md with the table of its codes written anew."""
    rows = "".join(
        f"| {table} | `{code}` | {words.word} | {words.meaning} |\n"
        for table, codes in ASK_CODES.items()
        for code, words in codes.items()
        if table != "address"
    )
    return _between(page, CODES_TABLE, f"| | code | word | meaning |\n|---|---|---|---|\n{rows}")


def _between(page: str, marks: tuple[str, str], text: str) -> str:
    begin, end = marks
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}{text}{end}{tail}"


def render_agents_docs(by_hand: str = "\n") -> str:
    """Return docs/agents.md around the part that is written by hand."""
    parts = [AGENTS_HEAD, _focus_table()]
    for kind, title in KINDS.items():
        parts.append(f"## {title}\n")
        told = (*AGENTS.values(), TRADER)
        parts += [_agent(agent.role) for agent in told if agent.role.kind == kind]
    parts += ["## What an expert may call odd\n", _anomalies()]
    parts += ["## Whose word counts how much in a swarm\n", _trust()]
    parts.append("This much is written from the code: `python -m docs.generate`.\n")
    return "\n".join([*parts, BY_HAND[0]]) + by_hand + BY_HAND[1]


def _anomalies() -> str:
    """Return the words that an expert may call odd, each with the numbers that show it."""
    rows = ""
    for word, choices in ROWS.items():
        beside = RELATIONS[word][0] if word in RELATIONS else ""
        told = [", ".join(filter(None, (*map(str, row), beside))) for row in choices]
        who = next(expert for expert, words in ANOMALIES.items() if word in words)
        rows += f"| `{word}` | {who} | {'; or '.join(told)} |\n"
    return (
        "A word without its numbers is dropped and flagged `invented`, and so is one whose number "
        "is unknown. One that stands is shown to the judge (`board.anomalies`).\n\n"
        "| word | expert | shown where |\n|---|---|---|\n" + rows
    )


def _trust() -> str:
    """Return the factors of an expert's weight: by the length of the bars, and by the regime."""
    rows = ""
    for name, table in (("HIERARCHY", HIERARCHY), ("TRUST", TRUST)):
        for row, told in table.items():
            rows += f"| {name} | {row} | {' | '.join(str(told[one]) for one in EXPERTS)} |\n"
    return (
        f"With `trust: prior` the weight of an expert is max({TRUST_FLOOR}, HIERARCHY x TRUST), "
        f"rounded to {TRUST_DECIMALS} decimals: HIERARCHY by the timeframe (long: "
        f"{', '.join(one for one in TIMEFRAMES if one in LONG_FROM)}; short: all others), TRUST by "
        f"the regime.\n\n| factor | row | {' | '.join(EXPERTS)} |\n|---|---|"
        f"{'---|' * len(EXPERTS)}\n{rows}"
    )


def by_hand(page: str) -> str:
    """Return the part of a page that is written by hand."""
    return page.partition(BY_HAND[0])[2].partition(BY_HAND[1])[0] or "\n"


def write() -> None:
    """Write every file."""
    from docs import representative_tick, transcripts  # noqa: PLC0415  they run a desk of the tests

    # First: pages below are made of it.
    representative_tick.PAGE.write_text(representative_tick.render(), encoding="utf-8")
    expected_cost.shipped_tick.cache_clear()
    for name, render in (("models", render_models_docs), ("agents", render_agents_docs)):
        page = ROOT / "docs" / f"{name}.md"
        kept = by_hand(page.read_text(encoding="utf-8")) if page.exists() else "\n"
        page.write_text(render(kept), encoding="utf-8")
    (ROOT / "docs" / "profiles.md").write_text(render_profile_docs(), encoding="utf-8")
    (ROOT / "profiles" / "default.json").write_text(render_default_profile(), encoding="utf-8")
    (ROOT / "docs" / "deny_reasons.md").write_text(deny_table(), encoding="utf-8")
    for name, tables in (
        ("outside", outside_tables),
        ("news", news_tables),
        ("mcp", tool_tables),
        ("ask", ask_tables),
    ):
        page = ROOT / "docs" / f"{name}.md"
        page.write_text(tables(page.read_text("utf-8")), encoding="utf-8")
    (ROOT / "docs" / "guards.md").write_text(
        guard_table((one.reason, one.scope, one.meaning) for one in GUARDS), encoding="utf-8"
    )
    radar = radar_page.PAGE.read_text(encoding="utf-8")
    radar_page.PAGE.write_text(radar_page.with_tables(radar), encoding="utf-8")
    dependencies.PAGE.write_text(dependencies.render(), encoding="utf-8")
    transcripts.PAGE.write_text(transcripts.render(), encoding="utf-8")
    security = ROOT / "docs" / "security.md"
    security.write_text(
        description.with_scopes(security.read_text(encoding="utf-8")), encoding="utf-8"
    )


def keys(model: type[BaseModel] = Profile, prefix: str = "") -> Iterator[str]:
    """Yield every key of a profile with its section, such as risk.capital."""
    for name in model.model_fields:
        section = _section(model, name)
        if section:
            yield from keys(section, f"{prefix}{name}.")
        else:
            yield prefix + name


def _focus_table() -> str:
    """Return which agent may move which score, and how much its word weighs there."""
    head = "| agent | " + " | ".join(VECTORS) + " | bound |\n|---|" + "---|" * 5 + "\n"
    rows = [
        f"| `{name}` | "
        + " | ".join(agent.role.focus.get(vector, "") for vector in VECTORS)
        + f" | {agent.role.bound:.2f} |\n"
        for name, agent in AGENTS.items()
        if agent.role.focus
    ]
    return head + "".join(rows)


def _agent(role: Role) -> str:
    """Return the paragraph of one agent."""
    moves = ", ".join(f"{vector} ({weight})" for vector, weight in role.focus.items())
    said = f"{moves}, by {role.bound:.2f} at most" if moves else MAY_DO[role.kind]
    needs = ", ".join(f"`{name}`" for name in role.needs)
    picture = ", and the chart picture" if role.picture else ""
    lines = {
        "its task": task_of(role),
        "it may move": said,
        "it reads": ", ".join(f"`{name}`" for name in role.evidence)
        + "".join(f", `{name}` at a firm" for name in role.ahead),
        "it abstains": f"when none of {needs} has a value" if needs else ABSTAINS[role.kind],
        "its model": f"{role.tier}_think_model{picture}{ESCALATED.get(role.kind, '')}",
    }
    listed = "".join(f"- {name}: {text}\n" for name, text in lines.items())
    return f"### `{role.id}`, the {role.title}\n\n{listed}"


def _model_row(row: Capability) -> str:
    cells = (
        f"`{row.model}`",
        "yes",
        "yes" if row.picture else "no",
        _sent(row.thinking),
        row.effort or "",
        str(row.retired or ""),
        f"`{row.replaced_by}`" if row.replaced_by else "",
        row.note,
    )
    return "| " + " | ".join(cells) + " |\n"


def _gone(row: Capability) -> bool:
    return row.retired is not None and row.retired <= AS_OF


def _gone_rows() -> str:
    groups: dict[tuple[str, str], list[str]] = {}
    models = (row for vendor in vendors().values() for row in vendor.models.values())
    for row in sorted(filter(_gone, models), key=lambda row: str(row.retired), reverse=True):
        groups.setdefault((str(row.retired), row.replaced_by), []).append(f"`{row.model}`")
    rows = [f"| {', '.join(names)} | {end} | `{new}` |\n" for (end, new), names in groups.items()]
    return "| models | end | instead |\n|---|---|---|\n" + "".join(rows)


def _sent(thinking: Mapping[str, str | int] | None) -> str:
    return ", ".join(f"`{name}` {value}" for name, value in (thinking or {}).items())


def _section(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    kind = model.model_fields[name].annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _rows(model: type[BaseModel], prefix: str, names: list[str] | None = None) -> Iterator[str]:
    for name in names or list(model.model_fields):
        field = described(model)[name]
        if inner := _section(model, name):
            yield from _rows(inner, f"{prefix}{name}.")
            continue
        cells = (
            f"`{prefix}{name}`",
            _default(field),
            limits(field),
            _meaning(prefix + name, field),
        )
        yield "| " + " | ".join(cells) + " |\n"


def _meaning(name: str, field: FieldInfo) -> str:
    """Return what a setting means, with its exact sentence where the first one is plainer."""
    told = field.description or ""
    return f"{told} ({EXACT[name]})" if name in EXACT else told


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, dict) and any(isinstance(item, BaseModel) for item in value.values()):
        return f"{', '.join(value)}, see below"
    return f"`{json.dumps(value)}`"


def limits(field: FieldInfo) -> str:
    """Return what a field accepts, in words."""
    kind: Any = field.annotation
    if get_origin(kind) is not tuple and (names := names_of(TypeAdapter(kind).json_schema())):
        plug_in = "" if get_origin(kind) is Literal else ", or a plug-in's `PACKAGE:NAME`"
        return "one of " + ", ".join(f"`{choice}`" for choice in names) + plug_in
    said = {int: "whole number", bool: "`true` or `false`", str: "text"}.get(kind, "")
    words = [said] if said else []
    for rule in field.metadata:
        words += [text for text in (_rule(rule),) if text]
    if kind is str:
        words = [text.replace("of them", "characters") for text in words]
    return ", ".join(words) or _shape(kind)


def _rule(rule: object) -> str:
    named = (
        (Gt, "gt", "above {}"),
        (Ge, "ge", "at least {}"),
        (Lt, "lt", "below {}"),
        (Le, "le", "at most {}"),
        (MinLen, "min_length", "at least {} of them"),
        (MaxLen, "max_length", "at most {} of them"),
    )
    said = [
        text.format(getattr(rule, name)) for kind, name, text in named if isinstance(rule, kind)
    ]
    return said[0] if said else ""


def _shape(kind: Any) -> str:
    inner = [part for part in get_args(kind) if part is not Ellipsis]
    if get_origin(kind) is tuple:
        return "a list" if len(inner) == 1 else f"a list of {len(inner)}"
    return "an object" if get_origin(kind) is dict else "number"


def _sentence(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _symbols() -> str:
    names = list(SYMBOLS)
    head = f"| key | {' | '.join(names)} | limits | meaning |\n|---|{'---|' * (len(names) + 2)}\n"
    rows = []
    for name, field in SymbolSpec.model_fields.items():
        values = [json.dumps(getattr(SYMBOLS[symbol], name)) for symbol in names]
        cells = (f"`symbols.SYMBOL.{name}`", *values, limits(field), field.description or "")
        rows.append("| " + " | ".join(cells) + " |\n")
    return head + "".join(rows)


def _modes() -> str:
    rows = (
        f"| `{name}` | {', '.join(row.seats)} | {_stages(row)} | {_below(row)} | "
        f"{'yes' if row.second_look else 'no'} |\n"
        for name, row in MODES.items()
    )
    head = "| mode | agents | stages: share of the time that remains | below | second look |\n"
    return head + "|---|---|---|---|---|\n" + "".join(rows)


def _stages(row: Mode) -> str:
    told = (f"{one.name} {one.share:.0%}{', rounds' if one.debates else ''}" for one in row.stages)
    return "; ".join(told)


def _below(row: Mode) -> str:
    return f"`{row.below}`" if row.below else "nobody is asked"


def _models() -> str:
    rows = [
        f"| `{name}` | {row['quick']} | {row['deep']} | {row['chief']} |\n"
        for name, row in MODELS.items()
    ]
    head = "| provider | quick_think_model | deep_think_model | chief_think_model |\n"
    return head + "|---|---|---|---|\n" + "".join(rows)


if __name__ == "__main__":
    write()
