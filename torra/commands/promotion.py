"""`torra scorecard`, `torra promotion` and `torra effect`: what a desk's own agents are worth.

The scorecard is built from the desk's own ticks and goes to the page Replays too. `torra promotion`
shows which agents have a say, by the rule of torra.evaluation.promotion_rule, and why; `torra
effect` lists the ticks on which they mattered. None of them asks a model, takes a look or changes
a trade. A home without a database stays without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from torra.commands.answer import CommandAnswer, answering, open_database, open_desk
from torra.commands.options import ANY_FILE, flag, number
from torra.commands.terminal import say
from torra.config import load_desk
from torra.desk import promotion as standings
from torra.evaluation import promotion_evidence, promotion_rule
from torra.evaluation.wording import count
from torra.exhibits import pages, trade_file
from torra.exhibits import report as reports
from torra.replay import live


@click.command("scorecard")
@click.argument("symbol", required=False)
@click.option("--from", "begin", help="First close that counts, UTC, as 2026-05-01.")
@click.option("--to", "end", help="Last close that counts, UTC.")
@click.option("--report", type=ANY_FILE, help="Write HTML here.")
@flag("--full", "Print the statistics too.")
@answering
def scorecard(
    home: Path, /, symbol: str | None, begin: str | None, end: str | None, report: Path | None,
    full: bool,
) -> CommandAnswer:  # fmt: skip
    """Say what the agents of this desk were worth on its own ticks, without a replay."""
    # A stream of another scorer has its name as that scorer wrote it.
    named = symbol if symbol is None or symbol.startswith("host:") else symbol.upper()
    card = live.scored(home, named, begin, end)
    if report is not None and card.document is not None:
        trades = trade_file.trade_lines(trade_file.as_csv(card.arms)) or ()
        reports.put(report, pages.html(card.document, trades))
        say(f"report: {report}", err=True)
    text = card.says
    if card.document is not None:
        text = reports.text(card.document, full=full)
    return CommandAnswer(card.as_json(), text)


@click.command("promotion")
@answering
def promotion(home: Path, /) -> CommandAnswer:
    """Show which agents have a say, by the promotion rule, when the next look is due, and why."""
    subjects, rows = live.subjects(home, load_desk(home)), []
    with open_database(home) as database:
        for subject in subjects:
            agents = standings.account(database, subject)
            influence = subject.profile.agents.influence
            earned = influence == "earned"
            rows.append(
                {
                    "profile": subject.name,
                    "instances": [instance.id for instance in subject.instances],
                    "influence": influence,
                    "counts": agents.counts,
                    "promoted": agents.standing.promoted,
                    "setting": subject.fingerprint,
                    "setting_number": agents.trial if earned else None,
                    "ticks": agents.ticks,
                    "waiting": agents.waiting,
                    "look": agents.standing.look,
                    "next_look": agents.next_look if earned else None,
                    "why": agents.standing.reason,
                    "looks": [dict(row) for row in agents.looks],
                }
            )
    rule = {
        "looks": list(promotion_rule.LOOKS),
        "then_every": promotion_rule.LATER,
        "alpha": promotion_rule.ALPHA,
        "demotion_level": promotion_rule.DEMOTION_LEVEL,
        "shuffles_beaten": promotion_rule.BEATEN,
        "shuffles": promotion_evidence.SHUFFLES,
        "horizon_bars": promotion_evidence.HORIZON,
    }
    return CommandAnswer({"rule": rule, "profiles": rows}, table)


@click.command("effect")
@click.option("--instance", help="Only this instance: a symbol or a name.")
@click.option(
    "--what",
    multiple=True,
    type=click.Choice(("verdict", "action", "size")),
    default=("verdict", "action"),
    show_default=True,
    help="What the agents changed.",
)
@number("--limit", 20, 1, 200)
@click.option("--before", help="Go on with the ticks before: the `next` of an earlier list.")
@answering
def effect(
    home: Path, /, instance: str | None, what: tuple[Any, ...], limit: int, before: str | None
) -> CommandAnswer:
    """List the ticks that agents changed, and what L1 alone would have done instead."""
    from torra.replay.changed import listing, words  # noqa: PLC0415

    with open_desk(home, profiles=True) as desk:
        page = listing.listed(
            desk.database, desk.settings, instance=instance and instance.upper(), kinds=what,
            limit=limit, before=before,
        )  # fmt: skip
        subjects = standings.subjects_of(desk.setups) if page.of else ()
        paths = [listing.paths(desk.database, subject) for subject in subjects]
    return CommandAnswer(page.as_json(paths), words.table(page, paths, what))


def table(document: Mapping[str, Any]) -> str:
    """Return `torra promotion` for a terminal."""
    rule = document["rule"]
    looks = ", ".join(f"{count:,}" for count in rule["looks"])
    lines = [
        f"Agents are looked at after {looks} ticks with their words, then every "
        f"{rule['then_every']:,}.",
        "They get a say when both hold: their words told where the price went beyond what L1 knew, "
        "and more than",
        "chance explains; and the verdicts that they changed paid more than the same words by lot.",
        "They lose it when, on the ticks since the look before, neither holds.",
        "Ticks and looks belong to the settings, whatever the profile is called and whoever ran "
        "it.",
        "How this is computed: docs/scorecard.md.",
    ]
    for row in document["profiles"]:
        lines += ["", *_profile(row)]
    return "\n".join(lines)


def _profile(row: Mapping[str, Any]) -> list[str]:

    say = "have a say" if row["counts"] else "look on: recorded, not counted"
    earned = row["influence"] == "earned"
    number = f", number {row['setting_number']}" if earned else ""
    wanted = row["next_look"]
    ahead = f", next look at {wanted:,}" if wanted else ", no look is left" if earned else ""
    late = f", {row['waiting']:,} more wait for their outcome" if row["waiting"] else ""
    head = f"profile {row['profile']} ({', '.join(row['instances'])})"
    lines = [
        f"{head}: influence {row['influence']}, its agents {say}",
        f"  setting {row['setting']}{number}: {count(row['ticks'], 'tick')} with agents{late}"
        f"{ahead}",
        f"  {row['why']}",
    ]
    if not earned:
        lines[-1] = "  The rule decides where agents.influence is earned."
    for look in row["looks"][:-1]:
        former = "" if look["profile"] == row["profile"] else f" as profile {look['profile']}"
        lines.append(f"  look {look['look']} on {look['at']}{former}: {look['reason']}")
    return lines
