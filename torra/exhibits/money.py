"""What `torra results` and the pages say of a desk's results, each amount with its currency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from torra.evaluation.exhibits import Plot, PlotLine
from torra.evaluation.wording import count, percent, span
from torra.exhibits import figures, numbers
from torra.exhibits.figures import DASH
from torra.money.account import AccountValue
from torra.money.book import AccountMoney, Money
from torra.money.open_positions import PAPER, LinePoint
from torra.money.results import TradeTotals

if TYPE_CHECKING:
    from torra.trading.hand_close import CloseQuote

IN_MONEY: Final = "in the account's currency"
"""What is said where nobody has told the currency: of the account on paper."""

NOT_COUNTED: Final = (
    "Torra's own trades alone, after spread, slippage and what the broker booked: no deposits, no "
    "trades of others, no cost of models."
)
HEAD: Final = ("", "trades", "won", "win rate", "result", "R", "mean R", "its 95 % interval")


def name(account: AccountMoney) -> str:
    """Return what an account is called."""
    return "on paper" if account.account == PAPER else f"at {figures.sanitize(account.account, 60)}"


def amount(value: object, account: AccountMoney, *, sign: bool = True) -> str:
    """Write an amount with the account's currency, if that is known."""
    text = figures.format_signed(value, 2) if sign else figures.plain(value, 2)
    return text if text == DASH else in_currency(text, account.currency)


def in_currency(text: str, currency: str) -> str:
    """Write an amount with a currency, if that is known."""
    return f"{text} {figures.sanitize(currency, 8)}" if currency else text


def close_headline(quote: CloseQuote) -> str:
    """Return which position a close ends, and what it brings now."""
    position = quote.position
    what = f"Close {position.side} {position.lots:g} {figures.sanitize(position.instance, 40)}"
    if "now" not in quote.ends:
        return f"{what}, profit not known: {figures.sanitize(quote.why, 200)}"
    return f"{what}: {close_result(quote, 'now')} now"


def close_result(quote: CloseQuote, name: str) -> str:
    """Return the profit of one of a position's ends in money and R."""
    end = quote.ends[name]
    money = in_currency(figures.format_signed(end.profit, 2), quote.currency)
    return f"{money} ({figures.format_signed(end.r, 2)} R)"


def close_outlook(quote: CloseQuote) -> str:
    """Return at which price a close fills, and what the position may lose where it is kept."""
    if not quote.filled:
        return "It is taken back if it is not executed yet."
    when = "at the open of the next bar" if quote.route == PAPER else "at the broker's price then"
    if quote.spec is None:
        return f"It fills {when}."
    price = {name: figures.plain(end.price, quote.spec.digits) for name, end in quote.ends.items()}
    near = f", near {price['now']}" if "now" in price else ""
    stop = f"its stop {price['stop']} brings {close_result(quote, 'stop')}"
    return f"It fills {when}{near}. Kept, {stop}; a gap may cost more."


def sentences(account: AccountMoney, day: str) -> list[str]:
    """Return what an account came to, the most important first, a sentence each."""
    whole, trades = account.whole, account.open
    currency = "" if account.currency else f", {IN_MONEY}"
    if not whole.trades:
        since = "since the warm-up" if account.warm_up.trades else "yet"
        lines = [f"No trade {name(account)} is closed {since}."]
    else:
        today = account.today
        came = f"{amount(today.profit, account)} on {count(today.trades, 'trade')}"
        lines = [
            f"Today ({day} UTC): {came if today.trades else 'no trade was closed'}.",
            f"All trades {name(account)}{currency}: {amount(whole.profit, account)} on "
            f"{count(whole.trades, 'trade')}, {whole.won:,} won, "
            f"{figures.format_signed(whole.r, 2)} R.",
        ]
        if account.drawdown.money:
            lines.append(
                f"Deepest fall: {amount(account.drawdown.money, account, sign=False)}; now "
                f"{amount(account.drawdown.now, account, sign=False)} below the highest point."
            )
    if trades.positions or trades.orders:
        lines.append(_open(account))
    if account.standing is not None:
        lines += _standing(account, account.standing)
    if whole.unknown:
        lines.append(f"The books never showed what {count(whole.unknown, 'trade')} came to.")
    if account.warm_up.trades:
        lines.append(
            f"Not counted: {count(account.warm_up.trades, 'trade')} of the warm-up, "
            f"{amount(account.warm_up.profit, account)}."
        )
    return lines


def _open(account: AccountMoney) -> str:
    trades = account.open
    numbers = ((trades.positions, "position", "open"), (trades.orders, "order", "out"))
    text = " and ".join(
        f"{count(number, what)} {'is' if number == 1 else 'are'} {state}"
        for number, what, state in numbers
        if number
    )
    if trades.known < trades.positions:
        text += f", {trades.known:,} of a symbol that the desk still knows"
    if trades.valued < trades.known:
        text += f", {trades.valued:,} with a price"
    now = f"{amount(trades.result, account)} if closed now; " if trades.positions else ""
    where = "its stop" if trades.positions + trades.orders == 1 else "the stops"
    return (
        f"{text}: {now}at {where} the loss would be {amount(trades.risk, account, sign=False)} "
        f"({figures.plain(trades.risk_r)} R)."
    )


def _standing(account: AccountMoney, value: AccountValue) -> list[str]:
    """Return what the account itself is worth, and what of its changes is not Torra's."""
    worth = amount(value.balance, account, sign=False)
    lines = [
        f"The account itself at {figures.moment(value.at)}: balance {worth}, equity "
        f"{amount(value.equity, account, sign=False)}, now "
        f"{amount(value.below, account, sign=False)} below its highest equity since "
        f"{figures.moment(value.since)}, payments in and out left aside."
    ]
    if not value.judged:
        return [*lines, "What of it is not Torra's is not known yet: Torra has held a position."]
    if not value.jumps:
        return [
            *lines,
            f"From {figures.moment(value.judged_from)} to {figures.moment(value.judged)} its "
            "balance has moved by Torra's deals alone.",
        ]
    newest = value.newest[0]
    return [
        *lines,
        f"Not Torra's, from {figures.moment(value.judged_from)} on: "
        f"{amount(value.unexplained, account)} in {count(value.jumps, 'change')} of its balance "
        "that no deal of Torra's explains (a deposit, somebody else's trade, a fee). "
        f"The newest: {amount(newest.amount, account)} between {figures.moment(newest.begin)} and "
        f"{figures.moment(newest.end)}.",
    ]


def line(account: AccountMoney, points: Sequence[LinePoint]) -> Plot:
    """Return the plot of an account's results added up."""
    where = account.currency or IN_MONEY
    lines = [
        PlotLine(name="closed trades", points=tuple((one.at, one.closed) for one in points)),
        PlotLine(name="with what was open", points=tuple((one.at, one.whole) for one in points)),
    ]
    return Plot(title="Results added up", kind="line", lines=tuple(lines), y=where)


def caps(money: Money) -> list[str]:
    """Return what the desk lost today, and at which loss each profile opens nothing more."""
    lost = money.lost_today
    loss = "lost nothing" if lost <= 0 else f"lost {figures.plain(lost)}"
    won = f" and won {figures.plain(-lost)}" if lost < 0 else ""
    only = money.currency
    where = "" if not lost else f", in {only}" if only else f", {IN_MONEY}"
    return [
        f"The desk {loss}{won} today{where}. That counts all accounts and the warm-up, as the risk "
        "checks do.",
        *(
            f"Profile {figures.sanitize(one.profile, 60)} opens nothing more until midnight UTC "
            f"once the day's loss reaches {f'{figures.plain(one.cap)} {only}'.rstrip()}. Open "
            "trades can still add to the loss."
            for one in money.caps
        ),
    ]


def row(label: str, totals: TradeTotals, account: AccountMoney) -> tuple[str, ...]:
    """Return one line of a table of results, in the order of HEAD."""
    return (
        figures.sanitize(label, 60),
        f"{totals.trades:,}",
        f"{totals.won:,}",
        percent(totals.win_rate),
        amount(totals.profit, account) if totals.trades else DASH,
        figures.format_signed(totals.r, 2) if totals.trades else DASH,
        figures.format_signed(totals.mean_r, 2),
        span(totals.between.low, totals.between.high) if totals.between else DASH,
    )


def tables(account: AccountMoney) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Return the tables of an account: what each is of, and its rows in the order of HEAD."""
    periods = {"today": account.today, "last 7 days": account.week, "all": account.whole}
    parts: Sequence[tuple[str, Mapping[str, TradeTotals]]] = (
        ("period", periods),
        ("symbol", account.by_symbol),
        ("side", account.by_side),
        ("reason of exit", account.by_reason),
        ("your tag", account.by_tag),
        ("day", account.by_day),
    )
    return [
        (what, [row(label, totals, account) for label, totals in groups.items()])
        for what, groups in parts
        if groups
    ]


def table(money: Money) -> str:
    """Return `torra results` for a terminal."""
    lines: list[str] = []
    for account in money.accounts:
        lines += [*sentences(account, money.day), ""]
        if account.whole.trades:
            for what, rows in tables(account):
                lines += [*numbers.aligned([(what, *HEAD[1:]), *rows], range(1, len(HEAD))), ""]
    if not money.accounts:
        lines += ["This desk has no instance, so it has no trade.", ""]
    return "\n".join([*lines, *(caps(money) if money.caps else []), NOT_COUNTED])
