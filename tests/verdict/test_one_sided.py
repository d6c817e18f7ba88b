"""An instance whose verdicts lean to one side is told, and none that only seems to."""

from __future__ import annotations

from tests.cases import cases
from torra.verdict.one_sided import LEAST, TICKS, verdict_balance


def counted(buy: int, sell: int, ticks: int = TICKS) -> dict[str, float | None]:
    return {"BUY": buy, "SELL": sell, "HOLD": ticks - buy - sell}


@cases(
    ("buy", "sell", "said"),
    [
        (0, 67, "of the newest 2,000 ticks 67 say SELL and none says BUY"),
        (67, 1, "of the newest 2,000 ticks 67 say BUY and 1 says SELL"),
        (9, 91, "of the newest 2,000 ticks 91 say SELL and 9 say BUY"),
        (9, 90, ""),  # a tenth is not under a tenth
        (0, LEAST - 1, ""),  # a tenth of them is less than one verdict
        (0, 0, ""),
    ],
)
def test_a_side_under_a_tenth_of_the_other_is_told(buy: int, sell: int, said: str) -> None:
    assert verdict_balance(counted(buy, sell)) == said


def test_fewer_ticks_tell_nothing_yet() -> None:
    assert verdict_balance(counted(0, 500, TICKS - 1)) == ""
    assert verdict_balance({}) == ""
