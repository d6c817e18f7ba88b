"""What a desk does over a long stretch of bars: `python -m benchmarks.desk_shares FILE`.

Runs the newest ticks of a CSV of bars (gzip or plain) through the real `run_tick` with the rules
provider and a mode, on a database in a temporary folder, and prints how often each agent
abstained or failed, how often the gate attenuated and vetoed, the verdicts, the regimes, the speed,
and of the ticks that give BUY or SELL how the agents stand to them: quartiles of conviction and of
what is left of a size. Of a firm also whom its manager named, and of the openings that its trader
was asked about how many were asked of which tier, and how many were declined. Of a swarm also which
side its judge took and vetoed, whom its reader had go first, disputes, anomalies and patterns, and
the changed verdicts. docs/agents.md and docs/debate.md quote it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_config import MODES
from instance_database import Database, TickKey
from torra.clock import Simulated, System, duration, parse
from torra.config import Instance, NewsSettings, Profile, validate
from torra.desk.outlook import ContextFeeds
from torra.desk.roster import InstanceRuntime
from torra.desk.schedule import Desk
from torra.feeds.csv_file import read_bars
from torra.feeds.frame import FrameFeed
from torra.providers.registry import open_provider

TICKS = 5000
HALF = 0.5
QUARTILES = ("a quarter below", "half below", "three quarters below")
SHARES = ("attenuated", "halved", "vetoed", "changed")
TALLIES = (
    "verdicts",
    "l1_verdicts",
    "sources",
    "abstained",
    "failed",
    "reasons",
    "regimes",
    "actions",
    "named",
    "asked",
    "first",
    "odd",
    "patterns",
    "swarm",
)


def main() -> None:
    """Run and print."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), options)
    print(json.dumps(found, indent=2) if options.json else table(found))


def run(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the counts of a replay; `folder` holds its database."""
    frame = read_bars(plain(Path(options.file), folder), clock="utc")
    profile = _profile(options)
    instance = Instance(symbol=options.symbol, timeframes=(options.timeframe,), feed="store")
    end = frame.index[-1].to_pydatetime() + duration(options.timeframe)
    database = Database.open(folder / "torra.db", now=System().real_now)
    outlook = ContextFeeds(folder, database, {}, [profile], now=System().now)
    setup = InstanceRuntime(
        instance,
        profile,
        FrameFeed({options.timeframe: frame}),
        open_provider(profile.agents),
        threading.Lock(),
        news=outlook.news(instance, profile),
        events=outlook.events(instance, profile),
    )
    desk = Desk(database, [setup], lambda stood: Simulated(stood or end))
    desk.active = True
    begin = time.perf_counter()
    # a shut market has no bars: ask for more of them than there are ticks, count what was stored
    steps = frame.index[-min(options.ticks, len(frame)) :]
    span = int((end - steps[0].to_pydatetime()) / duration(options.timeframe))
    ran = sum(1 for _ in desk.warm_up(end, span))
    seconds = time.perf_counter() - begin
    found = count(database, instance.id, options.timeframe)
    database.close()
    return {"file": Path(options.file).name, "ran": ran, "seconds": round(seconds, 1), **found}


def count(database: Database, instance: str, timeframe: str) -> dict[str, Any]:
    """Return what the stored ticks of a stream came to."""
    tallies: dict[str, Counter[str]] = {name: Counter() for name in TALLIES}
    plain: Counter[str] = Counter()
    multipliers: list[float] = []
    agreed: list[dict[str, Any]] = []
    for row in database.ticks(instance, timeframe, limit=10**6):
        tick = database.tick(TickKey(instance, timeframe, parse(row["bar_time"]))) or {}
        spoken, gate = tick["deliberation"], tick["gate"]
        if tick["verdict"] != "HOLD":
            side = spoken["panel"][tick["verdict"].lower()]
            budget = (spoken.get("swarm") or {}).get("budget", 1.0)
            agreed.append({**side, "size": gate["multiplier"] * side["conviction"] * budget})
        plain["ticks"] += 1
        multipliers.append(gate["multiplier"])
        plain["attenuated"] += gate["multiplier"] < 1.0
        plain["halved"] += gate["multiplier"] < HALF
        plain["vetoed"] += gate["veto"]
        tallies["reasons"].update(gate["reasons"])
        tallies["failed"].update(spoken["failures"].keys())
        tallies["abstained"].update(
            report["agent_id"] for report in spoken["reports"] if report["abstained"]
        )
        tallies["actions"][f"{tick['action']} {tick['reason']}"] += 1
        tallies["regimes"][tick["regime"]["name"]] += 1
        tallies["named"].update(
            report["winner"] for report in spoken["reports"] if report.get("winner")
        )
        if asked := spoken.get("consulted"):
            told = asked["report"] or {}
            word = asked["failure"] or ("declined" if told.get("declined") else "made")
            tallies["asked"].update((asked["tier"], word))
        tallies["odd"].update(
            f"{one['agent_id']} {one['anomaly']}" for one in spoken["reports"] if one.get("anomaly")
        )
        tallies["patterns"].update(
            one["pattern"] for one in spoken["reports"] if one.get("pattern")
        )
        plain["changed"] += tick["verdict"] != tick["l1_verdict"]
        if told := spoken.get("swarm"):
            tallies["first"].update([told["regime"]["first"]] if told["regime"]["first"] else [])
            tallies["swarm"].update(came_to(told))
        for name, key in (("verdicts", "verdict"), ("l1_verdicts", "l1_verdict")):
            tallies[name][tick[key]] += 1
        tallies["sources"][tick["source_type"]] += 1
    return {
        **plain,
        "median_multiplier": round(statistics.median(multipliers), 3),
        "agreement": agreement(agreed),
        **{name: dict(tally.most_common()) for name, tally in tallies.items()},
    }


def came_to(told: Mapping[str, Any]) -> list[str]:
    """Return what a tick's swarm came to, in words to be counted."""
    judged = told["judgement"] or {}
    found = {
        "disputed": told["regime"]["disputed"],
        "thin": told["thin"],
        "conflict": bool(told["board"]["conflicts"]),
        "judge took a side": bool(judged),
        "judge vetoed its side": bool(judged.get("vetoes")),
    }
    return [what for what, holds in found.items() if holds]


def agreement(agreed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how the agents stood to the ticks that gave BUY or SELL; quartiles of each number."""
    if len(agreed) < len(QUARTILES):
        return {"ticks": len(agreed)}
    against = sum(row["leans_against"] for row in agreed)
    found: dict[str, Any] = {"ticks": len(agreed), "leans_against": round(against / len(agreed), 3)}
    for name in ("opposition", "dissent", "raw", "conviction", "size"):
        cuts = statistics.quantiles((row[name] for row in agreed), n=4)
        found[name] = dict(zip(QUARTILES, (round(cut, 2) for cut in cuts), strict=True))
    return found


def table(found: Mapping[str, Any]) -> str:
    """Return the counts as lines with shares."""
    ticks = max(1, found["ticks"])
    lines = [
        f"{found['file']}: {found['ticks']} ticks in {found['seconds']} s, "
        f"{ticks / found['seconds']:.1f} ticks/s"
    ]
    for name, value in found.items():
        if name == "agreement":
            lines += [f"BUY or SELL, {what}: {told}" for what, told in value.items()]
        elif isinstance(value, dict):
            shares = ", ".join(f"{key} {100 * n / ticks:.1f} %" for key, n in value.items())
            lines.append(f"{name}: {shares or 'none'}")
        elif name.startswith("median_"):
            lines.append(f"{name}: {value}")
        elif name in SHARES:
            lines.append(f"{name}: {100 * value / ticks:.1f} %")
    return "\n".join(lines)


def _profile(options: argparse.Namespace) -> Profile:
    news = NewsSettings().model_dump()
    if options.headlines:
        news |= {"sources": ["file"], "file": str(Path(options.headlines).resolve())}
    values = {
        "agents": {
            "mode": options.mode,
            "influence": "full",
            "timeout_seconds": 900,
            "include_news": bool(options.headlines),
        },
        "news": news,
        "timeframe_weights": {options.timeframe: 1.0},
        "events": {"calendar": str(Path(options.events).resolve()) if options.events else ""},
    }
    return validate(Profile, values, "the command line")


def plain(path: Path, folder: Path) -> Path:
    """Return the file unpacked."""
    if path.suffix != ".gz":
        return path
    target = folder / path.stem
    target.write_bytes(gzip.decompress(path.read_bytes()))
    return target


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="bars, CSV or CSV.gz, times in UTC")
    parser.add_argument("--symbol", default="XAUUSD")
    parser.add_argument("--timeframe", default="M15")
    parser.add_argument("--ticks", type=int, default=TICKS)
    parser.add_argument("--mode", default="full", choices=tuple(MODES))
    parser.add_argument("--headlines", default="", help="JSON lines of headlines (docs/news.md)")
    parser.add_argument("--events", default="", help="calendar of events (docs/events.md)")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
