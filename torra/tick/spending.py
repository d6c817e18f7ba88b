"""The spending of ticks: the hourly ceiling, held before every call.

A `Purse` serves one tick. Before a stage, `reserve` books the worst case of every request that the
stage may make, in one transaction: what counts in the sliding hour plus the stage must stay under
the profile's ceiling, else nothing is booked and no call is made. `submit` refuses a request that
has no reservation, or that is larger than it. Afterwards each row is settled at what its request
did cost. A request that was not made gives its row back. One that was cancelled, timed out or may
have been billed all the same stays at its worst case. The transaction of the next stage, or
`settled`, writes this. An answer that comes still later waits for the next transaction of its
profile: the thread that brings it serves every desk and may not wait for a database.

Why no hour costs more than the ceiling. Let W be any hour, S the requests that spend money in it,
and q the one of S that was reserved last, at time R. q spends after R, so W ends after R and begins
after R - 1 h. Every other request p of S was reserved before R. If p was not settled by R, its row
holds its worst case and counts until one hour after `until`, the last moment at which p can spend:
the tick's deadline, at which every call is cancelled, plus LINGER for a vendor that goes on for a
while. If p was settled by R, its row holds what it did cost, and `until` is the moment of its
answer. Both ways p spent no later than `until`, and in W, so `until` > R - 1 h: p counted at R, at
no less than it did cost. Hence the cost of S is at most what counted at R with q, which was at most
the ceiling.

That holds through crashes (an unsettled row stays reserved), through profile edits (rows are kept
by the profile's name; the ceiling is the one of the tick that reserves), and when the clock is set
back (then `until` lies further ahead than it is). A clock that jumps ahead ends hours early;
nothing here can know.

An account may also have a sum that it never passes, `most`. The same transaction then counts every
row that its name ever had, so neither the sliding of the hour nor other bookings matter. A row
counts from its booking on, at no less than it will cost.

Who asks a model beside the ticks has an `OffTickAccount` of the same ledger. Ticks come first: such
a request is granted only where the next ticks of its profile, one for each stream, fit beside it at
their worst. Each of these runs on the highest level that the ceiling could ever pay, so none runs
lower for it. What is spent counts for an hour, and ticks that come later in it meet it: they are a
level lower for it only where the ceiling pays less than an hour of ticks at their worst and the
share together. The share, `agents.off_tick_share` of the ceiling, is what all kinds together may
spend in a sliding hour; a kind may have a cap inside it.

The actual cost stays under the worst case because tokens are no more than bytes and allowances
(torra.providers.prices). An answer that counts no tokens, or more than there can be, costs the
worst case and is flagged. When the ledger cannot be written, no call is made: `reserve` raises, and
the desk takes that for a refusal. A provider that costs nothing (rules, recorded, a local server
without a price in the user's list) never touches the database.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Literal, get_args

from agent_config import (
    VENDORS,
    AgentSettings,
    is_plug_in,
    route,
)
from agents.contracts import (
    SCORE_DECIMALS,
    CallBound,
    Completion,
    ModelUnavailable,
    Request,
    Submit,
)
from agents.debate.deliberation import MOST_TOKENS, Deliberation
from agents.registry import Agent
from instance_database import Database
from torra.config import Instance
from torra.errors import ConfigError, StoreUnavailable
from torra.failpoints import failpoint
from torra.providers.prices import PriceList
from torra.store import ledger as ledger_table
from torra.store.connection import Keyed
from torra.store.ledger import Booking, Settlement
from torra.tick.degradation import (
    DegradationLevel,
    Local,
    choose,
    ladder,
    tick_worst_case,
    to_climb,
    worst_case,
    worst_of,
)

log = logging.getLogger("torra")

HOUR: Final = timedelta(hours=1)
"""The window over which the ceiling holds."""

EVER: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Before any call."""

LINGER: Final = timedelta(seconds=60)
"""How long after a tick's deadline a vendor may go on with a call that was cancelled."""

RESERVE_SHARE: Final = 0.3
"""Share of the time left to the deadline that a stage waits for the database's lock before it goes
without calls: many instances that are due together write one after the other.
"""

UNCOUNTED: Final = "usage_implausible"
"""Flags a call whose answer came without a count of tokens that can be, with its role."""

LEAST_WAIT: Final = 0.05
SETTLE_WAIT: Final = 1.0
"""Seconds that a write waits which nothing depends on: what is not settled stays at its worst."""


ROUNDING: Final = 1e-9
"""A cost above its reservation by less than this is no more than rounding, USD."""

Slot = tuple[str, int, int]
"""Which request of a tick: role, round, attempt."""


@dataclass(slots=True)
class _Row:
    """A request that may be made. `ended` is set once nothing more can become of it."""

    slot: Slot
    bound: CallBound
    booking: Booking
    id: int = 0
    sent: bool = False
    ended: bool = False
    written: bool = False
    future: Future[Completion] | None = None
    paid: Settlement | None = None
    uncounted: bool = False
    """Whether the answer came without a count of tokens that can be."""

    @property
    def usd(self) -> float:
        """What counts for it: what it did cost, or its worst case while nobody knows."""
        return self.booking.usd if self.paid is None else self.paid.usd


class Purse:
    """What one tick may spend. Any thread may use it."""

    def __init__(
        self,
        account: SpendingAccount,
        key: Keyed,
        settings: AgentSettings,
        submit: Submit,
        *,
        monotonic: Callable[[], float],
        deadline: float,
    ) -> None:
        """Open the purse of a tick; `deadline` is a moment of `monotonic`."""
        self._account = account
        self._key = key
        self._settings = settings
        self._submit = submit
        self._monotonic = monotonic
        self._deadline = deadline
        self._lock = threading.Lock()
        self._rows: dict[Slot, _Row] = {}
        self._closed = False

    def reserve(self, stage: str, bounds: Sequence[CallBound]) -> bool:
        """Book the worst case of a stage, or refuse it; raises StoreUnavailable when it cannot.

        Bounds of a later attempt than the first change what is booked for that attempt, in one
        transaction and within the stage: what others of it have not sent yet stays booked.
        """
        account, rows = self._account, list[_Row]()
        for bound in bounds:
            vendor, model = route(bound.model, self._settings.provider)
            usd = worst_case(account.prices, self._settings, account.local, bound)
            for attempt in range(bound.attempt, bound.attempt + bound.requests):
                slot = (bound.role_id, bound.round, attempt)
                rows.append(_Row(slot, bound, Booking(stage, *slot, vendor, model, usd)))
        within = all(bound.attempt > 1 for bound in bounds)
        former = self._finished(unsent=frozenset(row.slot for row in rows) if within else None)
        paid = [row for row in rows if row.booking.usd > 0]
        # Nothing to pay, no transaction: free agents run while the database is locked.
        if paid and not self._book(paid, former):
            return False
        failpoint("reserved")
        with self._lock:
            self._rows |= {row.slot: row for row in rows}
        return True

    def submit(self, request: Request) -> Future[Completion]:
        """Send a request that has a reservation; raises ModelUnavailable("budget") otherwise."""
        slot = (request.role.id, request.round, request.attempt)
        with self._lock:
            row = self._rows.get(slot)
            if row is None or row.sent or row.ended or not _fits(request, row):
                raise ModelUnavailable(
                    "budget", "no reservation covers the request", again=None, billed=False
                )
            # Set under the lock: two threads cannot spend one reservation.
            row.sent = True
        if not row.booking.usd:
            return self._submit(request)
        try:
            future = self._submit(request)
        except BaseException as error:
            # It may have been billed all the same; only the provider can say that it was not.
            self._end(row, self._failed(error))
            raise
        row.future = future
        failpoint("asked")
        future.add_done_callback(partial(self._answered, row))
        return future

    def settled(self, deliberation: Deliberation) -> Deliberation:
        """Close the purse after a deliberation; return it with what its calls count for in USD.

        Calls that are still under way keep their reservation until their answer comes, if it does.
        """
        flags = self._close()
        if not self.booked:
            return deliberation
        calls = tuple(
            replace(call, paid_usd=row.usd) if row and row.id else call
            for call in deliberation.calls
            for row in [self._rows.get((call.role_id, call.round, call.attempt))]
        )
        return replace(
            deliberation,
            calls=calls,
            flags=(*deliberation.flags, *dict.fromkeys(flags)),
            cost_usd=round(math.fsum(call.cost_usd for call in calls), SCORE_DECIMALS),
        )

    @property
    def booked(self) -> bool:
        """Whether the ledger has a row of any request."""
        return any(row.id for row in self._rows.values())

    def paid(self) -> float:
        """Close the purse after single requests; return what they count for in USD."""
        self._close()
        return math.fsum(row.usd for row in self._rows.values() if row.id and row.sent)

    def _close(self) -> list[str]:
        """Write what became of every row; return the flags that a record of it bears."""
        rows = self._finished(last=True)
        if not self.booked:
            return []
        flags = [f"{UNCOUNTED}:{row.slot[0]}" for row in self._rows.values() if row.uncounted]
        try:
            left = self._deadline - self._monotonic()
            if rows or self._account.late:
                with self._writing(rows, min(SETTLE_WAIT, left)):
                    pass
        # The calls are over and paid: a locked ledger may not cost the tick.
        except Exception:
            log.exception("ledger: %s stays at its worst case", self._key.text)
            flags.append("ledger_unsettled")
        failpoint("settled")
        return flags

    # --- booking --------------------------------------------------------------------------------

    def _book(self, rows: list[_Row], former: list[_Row]) -> bool:
        """Write what became of the former rows and, if they fit, the new ones: one transaction."""
        account = self._account
        left = max(0.0, self._deadline - self._monotonic())
        total = math.fsum(row.booking.usd for row in rows)
        # Settle first: what the former stage did not use may pay for this one.
        with self._writing(former, RESERVE_SHARE * left):
            now = account.now()
            # An agent that was left behind may ask when all is over.
            granted = not self._closed and account.affords(
                total, self._settings.max_api_cost_per_hour, now
            )
            if granted:
                ids = account.database.book(
                    account.profile,
                    self._key.text,
                    [row.booking for row in rows],
                    at=now,
                    until=now + timedelta(seconds=left) + LINGER,
                )
        if granted:
            for row, row_id in zip(rows, ids, strict=True):
                row.id = row_id
        return granted

    @contextmanager
    def _writing(self, former: Sequence[_Row], wait: float) -> Iterator[None]:
        """Write what became of rows, and of late ones, in the transaction of what follows."""
        database, late = self._account.database, self._account.late
        rows = [*former, *late.values()]
        with database.transaction(max(LEAST_WAIT, wait)):
            for row in rows:
                if not row.sent:
                    database.release(row.id)
                elif row.paid is None:
                    database.keep(row.id)
                else:
                    database.settle(row.id, row.paid)
            yield
        # Only after the commit: rows of a transaction that failed wait for the next one.
        for row in rows:
            row.written = True
            late.pop(row.id, None)

    def _finished(self, *, last: bool = False, unsent: frozenset[Slot] | None = None) -> list[_Row]:
        """Return the booked rows whose end is not written yet; give up those never sent.

        Stages do not overlap, so a row that was not sent by the next one will not be, and `submit`
        refuses it from here on; within a stage only the `unsent` are given up. `last` closes the
        purse and returns those under way too.
        """
        rows = list(self._rows.values())
        for row in rows:
            # Outside the lock, which `_end` takes itself.
            if row.future is not None and row.future.done():
                self._end(row, self._outcome(row, row.future))  # its callback may not have run yet
        with self._lock:
            self._closed = self._closed or last
            for row in rows:
                row.ended |= not row.sent and (unsent is None or row.slot in unsent)
            return [row for row in rows if row.id and not row.written and (row.ended or last)]

    # --- what became of a request ---------------------------------------------------------------

    def _answered(self, row: _Row, future: Future[Completion]) -> None:
        """Note the end of a call, on the thread that brings it."""
        try:
            self._end(row, self._outcome(row, future))
        except Exception:
            log.exception("ledger: a late answer of %s stays at its worst case", self._key.text)

    def _end(self, row: _Row, paid: Settlement | None) -> None:
        """Note what a call did cost, once; after the purse was closed it is written later."""
        with self._lock:
            # The callback and `_finished` may both come; the first counts.
            if row.ended:
                return
            row.ended, row.paid = True, paid
            late = self._closed
        if row.uncounted:
            log.warning(
                "%s gave no count of tokens that can be for a call of %s: %.6f USD are booked",
                row.booking.provider, row.slot[0], row.usd,
            )  # fmt: skip
        if late and paid is not None:
            self._account.late[row.id] = row

    def _outcome(self, row: _Row, future: Future[Completion]) -> Settlement | None:
        """Return what an ended call did cost; None when nobody knows."""
        if future.cancelled():
            return None
        error = future.exception(timeout=0)
        return self._failed(error) if error else self._paid(row, future.result(timeout=0))

    def _failed(self, error: BaseException) -> Settlement | None:
        free = isinstance(error, ModelUnavailable) and not error.billed
        return Settlement(0.0, self._account.now()) if free else None

    def _paid(self, row: _Row, completion: object) -> Settlement | None:
        booked = row.booking
        if not isinstance(completion, Completion) or is_plug_in(booked.provider):
            return None  # a plug-in's own word on its cost bounds nothing: the worst case stays
        usd, vendor = completion.cost_usd, completion.provider
        free = (
            usd == 0
            and vendor in VENDORS
            and not worst_of(
                self._account.prices, self._account.local, row.bound, vendor, completion.model
            )
        )
        # A vendor's figures are not trusted: NaN or a negative cost would free the ceiling.
        known = isinstance(usd, float | int) and 0 < usd <= booked.usd + ROUNDING
        row.uncounted = not free and not (known and _count(completion.input_tokens))
        if not (free or known):
            return None
        # A vendor that stands in answered; the row must name who is paid.
        turned = vendor in VENDORS and vendor != booked.provider
        return Settlement(
            float(usd),
            self._account.now(),
            input_tokens=_count(completion.input_tokens),
            output_tokens=_count(completion.output_tokens),
            cached_tokens=_count(completion.cached_tokens),
            route=(vendor, completion.model) if turned else None,
        )


# --- bounds ---------------------------------------------------------------------------------------


def _fits(request: Request, row: _Row) -> bool:
    """Return whether a request is within its reservation; a free one may have any length."""
    bound = row.bound
    # A lone surrogate has no UTF-8; its escape counts more bytes, never fewer.
    size = sum(
        len(text.encode("utf-8", "backslashreplace")) for text in (request.system, request.user)
    )
    return (
        request.model == bound.model
        and request.max_output_tokens <= bound.output_tokens
        and (request.picture is None or bound.picture)
        and (not row.booking.usd or size <= bound.prompt_bytes)
    )


def _count(value: object) -> int:
    # type() and not isinstance: True is an int, and no count.
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else 0


# --- the account ----------------------------------------------------------------------------------

LEVEL_WAIT: Final = 0.3


@dataclass(frozen=True, slots=True)
class SpendingAccount:
    """What the ticks of one profile share: the ledger, the prices and the ladder.

    `late` are the rows, by id, whose answers came after their tick and are not written yet. `most`
    is what they may cost in all, over every hour there was, in USD; None: no such sum.
    """

    database: Database
    prices: PriceList
    profile: str
    local: Local
    now: Callable[[], datetime]
    late: dict[int, _Row] = field(default_factory=dict)
    most: float | None = None

    def affords(self, usd: float, ceiling: float, now: datetime) -> bool:
        """Return whether so much more stays under the ceiling of the hour, and under the sum."""
        if self.database.spent(self.profile, now - HOUR) + usd > ceiling:
            return False
        return self.most is None or self.database.spent(self.profile, EVER) + usd <= self.most

    def degradation_level(
        self,
        settings: AgentSettings,
        agents: Mapping[str, Agent] | None = None,
        *,
        reserved_usd: float = 0.0,
    ) -> DegradationLevel:
        """Return the level of the ladder on which the profile's next tick runs, and keep it.

        The levels are the configured desk, the desks that its mode names below it, and nobody. A
        profile steps down at once to the highest level whose worst case fits under what is left of
        the sliding hour. It climbs to one that fits HYSTERESIS times, or fits an hour in which
        nothing was spent. Of what is left `reserved_usd` is promised to ticks that closed with this
        one: this tick steps down for it, but what is only promised is not kept against later ones.
        Without the database nobody is asked. Raises ValueError for a desk that cannot be
        seated.
        """
        levels, database = self.levels(settings, agents), self.database
        costs = [each.worst_usd for each in levels]
        # A desk that costs nothing has no ladder, and needs no database.
        if not costs[0]:
            return levels[0]
        ceiling = settings.max_api_cost_per_hour
        try:
            current = database.degradation_level(self.profile)
            spent = database.spent(self.profile, self.now() - HOUR)
            kept = choose(costs, levels, current, spent, ceiling)
            if levels[kept].name != (current or levels[0].name):
                with database.transaction(LEVEL_WAIT):
                    ledger_table.set_degradation_level(database, self.profile, levels[kept].name)
        # Without the ledger the ceiling is not known, so nothing is spent.
        except StoreUnavailable:
            log.exception("ledger: nobody is asked for profile %s", self.profile)
            return levels[-1]
        fits = (at for at, cost in enumerate(costs) if spent + reserved_usd + cost <= ceiling)
        chosen = max(kept, next(fits, len(costs) - 1))
        return levels[chosen]

    def levels(
        self, settings: AgentSettings, agents: Mapping[str, Agent] | None = None
    ) -> list[DegradationLevel]:
        """Return the levels of a desk with the most that a tick may cost; raises ValueError."""
        return [
            replace(each, worst_usd=tick_worst_case(self.prices, each.settings, self.local, agents))
            if each.calls_models
            else each
            for each in ladder(settings)
        ]

    def purse(
        self,
        key: Keyed,
        settings: AgentSettings,
        submit: Submit,
        *,
        monotonic: Callable[[], float],
        deadline: float,
    ) -> Purse:
        """Open the purse of a tick."""
        return Purse(self, key, settings, submit, monotonic=monotonic, deadline=deadline)


# --- beside the ticks -----------------------------------------------------------------------------

OffTickKind = Literal["review", "test", "radar", "chat", "committee"]
"""Who spends beside the ticks: the stage of the ledger's rows, and no stage of a tick."""

OFF_TICK: Final[tuple[OffTickKind, ...]] = get_args(OffTickKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffTickAccount(SpendingAccount):
    """What one kind may spend beside a profile's ticks; its purses reserve the stage `kind` alone.

    `agents` are the settings of the profile, `streams` how many of its ticks come first, and
    `cap_usd` is what the kind may spend in an hour.
    """

    kind: OffTickKind
    agents: AgentSettings
    streams: int = 1
    cap_usd: float = math.inf

    def affords(self, usd: float, ceiling: float, now: datetime) -> bool:
        """Return whether so much more leaves the next ticks alone, and stays within share and cap.

        Raises ConfigError for a desk that cannot be seated.
        """
        share = self.agents.off_tick_share * ceiling
        for most, kinds in ((share, OFF_TICK), (self.cap_usd, (self.kind,))):
            if self.database.spent(self.profile, now - HOUR, stages=kinds) + usd > most:
                return False
        left = ceiling - self.next_ticks_usd(ceiling)
        return SpendingAccount.affords(self, usd, left, now)

    def next_ticks_usd(self, ceiling: float) -> float:
        """Return what the next ticks may cost at worst, and at least what it takes to climb."""
        try:
            levels = self.levels(self.agents)
        except ValueError as error:
            raise ConfigError(f"profile {self.profile}: {error}") from error
        # The last level asks nobody and costs nothing.
        top = next(each for each in levels if each.worst_usd <= ceiling)
        is_lower = self.database.degradation_level(self.profile) not in (None, top.name)
        climb = to_climb(top.worst_usd, ceiling, spent=math.inf) if is_lower else 0.0
        return max(self.streams * top.worst_usd, climb)

    def refusal(self) -> str:
        """Say why a purse did not grant a request."""
        return (
            f"with the next ticks it would pass the ceiling of "
            f"{self.agents.max_api_cost_per_hour:.2f} USD an hour of profile {self.profile}, or "
            f"the share of it for requests beside the ticks, {self.agents.off_tick_share:.0%}"
        )


def streams_of(instances: Iterable[Instance], profile: str) -> int:
    """Return how many streams of a profile may close together; at least 1."""
    return max(1, sum(len(one.timeframes) for one in instances if one.profile == profile))


def only_model(settings: AgentSettings, vendor: str, model: str, **more: Any) -> AgentSettings:
    """Return settings with which one model is opened and nobody else but who stands in for it."""
    only = {"quick_think_model": model, "deep_think_model": model, "role_models": {}}
    return settings.model_copy(update={"provider": vendor, **only, **more})
