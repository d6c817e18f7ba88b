"""What a broker answers comes to the same end, whoever sent: the Expert Advisor or the package.

One table of answers for both. The advisor is mql5/TorraBridge.mq5 itself, compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.doubles.advisor_channel import GOLD, MAGIC, PATIENCE, AdvisorChannel
from tests.worlds.mt5_package import World, closing, order
from torra.bridges.mt5.retcodes import AMBIGUOUS, INVALID_FILL, TRANSIENT, WORDS

UNCLEAR = sorted(AMBIGUOUS - {0})
FINAL = sorted({*WORDS, 10099} - AMBIGUOUS - TRANSIENT - {10008, 10009, 10010, INVALID_FILL})


class Answers(NamedTuple):
    """What the broker answers to the next sends, before it does its work, and to the check.

    `arrives`: an order is executed all the same.
    """

    sends: tuple[int, ...] = ()
    arrives: bool = False
    check: int = 0


class End(NamedTuple):
    """The last report of an order, the reason of a refusal, and how often it was sent."""

    status: str
    reason: str
    retcode: int
    sends: int
    adopted: bool = False


TABLE: dict[Answers, End] = {
    Answers(): End("FILLED", "", 10009, 1),
    Answers(check=10019): End("REJECTED", "retcode", 10019, 0),
    **{Answers((code,)): End("REJECTED", "retcode", code, 1) for code in FINAL},
    **{Answers((code,) * n): End("FILLED", "", 10009, n + 1) for code in TRANSIENT for n in (1, 2)},
    **{Answers((code,) * 3): End("REJECTED", "retcode", code, 3) for code in TRANSIENT},
    **{Answers((code,)): End("UNKNOWN", "", code, 1) for code in UNCLEAR},
    **{Answers((code,), arrives=True): End("FILLED", "", 0, 1, adopted=True) for code in UNCLEAR},
}


@pytest.fixture(scope="module")
def advisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdvisorChannel]:
    with AdvisorChannel(tmp_path_factory.mktemp("advisor"), max_trades_per_day=0) as channel:
        yield channel


def by_advisor(desk: AdvisorChannel, kind: str, answers: Answers) -> End:
    """Send an order; what was unclear has its number in the advisor's report of the execution."""
    desk.ea.wipe()
    desk.calm()
    if kind != "open":
        desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC, comment="TREF")
    for code in answers.sends:
        desk.ea.fail(code, executed=int(answers.arrives))
    if answers.check:
        desk.ea.fail_check(answers.check)
    side = {"open": "BUY", "close": "SELL"}.get(kind, "")
    name = desk.drop(kind=kind, side=side, ref="TREF" if kind == "close" else "")
    desk.ea.wait(PATIENCE - 1)
    ack = desk.ack(name) if desk.answered(name) else None
    if ack is None:
        desk.ea.run(2)
        ack = desk.ack(name)
        assert ack["status"] == "UNKNOWN"
    assert desk.empty()
    executed = len(desk.deals(ack["sid"]))
    assert executed == (ack["status"] == "FILLED") and ack["volume"] == 0.1 * executed
    retcode = 0 if ack["adopted"] else ack["retcode"]
    sends = desk.ea.broker_state()["sends"]
    reason = "" if ack["status"] == "UNKNOWN" else ack["reason"]
    return End(ack["status"], reason, retcode, sends, ack["adopted"])


def by_package(folder: Path, kind: str, answers: Answers) -> End:
    world = World(folder)
    try:
        sent = closing(world.opened().position) if kind == "close" else order()
        before = len(world.package.opened), len(world.package.requests)
        world.package.retcodes, world.package.arrives = list(answers.sends), answers.arrives
        world.package.check = answers.check
        world.bridge.submit(sent)
        reports = world.look(PATIENCE - 1)
        [report] = reports or world.look(1.5)
        assert bool(reports) == (report.status != "UNKNOWN")
        world.bridge.submit(sent)
        executed = len(world.package.opened) - before[0]
        assert executed == (report.status == "FILLED") and report.volume == 0.1 * executed
        sends = len(world.package.requests) - before[1]
        return End(report.status, report.reason, report.retcode, sends, report.adopted)
    finally:
        world.close()


@pytest.mark.parametrize("kind", ["open", "close", "close_all"])
def test_the_advisor_comes_to_the_end_of_the_table(advisor: AdvisorChannel, kind: str) -> None:
    for answers, end in TABLE.items():
        if kind == "close_all" and answers.check:
            continue
        assert by_advisor(advisor, kind, answers) == end, answers


@pytest.mark.parametrize("kind", ["open", "close"])
def test_the_package_comes_to_the_end_of_the_table(tmp_path: Path, kind: str) -> None:
    for number, (answers, end) in enumerate(TABLE.items()):
        assert by_package(tmp_path / str(number), kind, answers) == end, answers


def test_a_partial_fill_is_one(advisor: AdvisorChannel, world: World) -> None:
    for code, adopted in ((10010, False), (10012, True)):
        advisor.ea.wipe()
        advisor.calm()
        advisor.ea.fail(code, executed=1, volume=0.05)
        ack = advisor.order()
        assert (ack["status"], ack["volume"], ack["adopted"]) == ("PARTIAL", 0.05, adopted)
        assert ack["retcode"] == code
    world.package.part = 0.5
    report = world.opened()
    assert (report.status, report.retcode, report.volume) == ("PARTIAL", 10010, 0.05)
