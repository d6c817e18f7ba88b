"""The database's schema as numbered steps, and the way from any older file to the present one.

All pending steps and their record run in one transaction: a file is old or new, never between. A
file that holds anything first gets a checked backup in its `backups` folder. A database from before
Torra (an existing scorer's `sentiment` table) is taken over in place. Its rows keep every byte,
columns that Torra does not know stay as they are, and two columns are added. Its rows have no
torra_key: they stay readable and belong to no chain.

sqlite-utils runs the steps, remembers them, adds columns and reads a file's schema. The tables are
SQL: its `create` knows neither WITHOUT ROWID nor CHECK, and old files would differ from new ones.

A file that is not a database, is newer than this program, or lacks what the overlay needs raises
ConfigError with the file and the remedy. Connections are torra.store.connection's part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final

import sqlite_utils
from sqlite_utils import Migrations

from torra.errors import ConfigError, StoreBroken
from torra.home import BACKUP_FOLDER
from torra.store import structure
from torra.store.connection import copy, stamp

LEGACY_COLUMNS: Final = (
    "id",
    "timestamp",
    "timeframe",
    "price_action",
    "key_levels",
    "momentum",
    "structure",
    "ath",
    "composite",
    "consensus",
    "verdict",
    "source_type",
)
"""Columns that an existing scorer's sentiment table must have."""

ADDED_COLUMNS: Final = {"agent_deliberation": str, "torra_key": str}

SENTIMENT: Final = """
CREATE TABLE sentiment (
    id INTEGER PRIMARY KEY,
    timestamp TEXT, timeframe TEXT,
    price_action REAL, key_levels REAL, momentum REAL, structure REAL, ath REAL,
    composite REAL, consensus REAL,
    verdict TEXT, source_type TEXT
);
"""

TABLES: Final = """
CREATE TABLE chains (
    torra_key TEXT PRIMARY KEY,
    instance TEXT NOT NULL, timeframe TEXT NOT NULL,
    bar_time TEXT NOT NULL, close_time TEXT NOT NULL,
    l1 TEXT NOT NULL,
    l1_composite REAL NOT NULL, low_composite REAL NOT NULL, high_composite REAL NOT NULL,
    composite REAL NOT NULL,
    l1_consensus REAL NOT NULL, low_consensus REAL NOT NULL, high_consensus REAL NOT NULL,
    consensus REAL NOT NULL,
    l1_verdict TEXT NOT NULL, verdict TEXT NOT NULL,
    sentiment_id INTEGER NOT NULL UNIQUE REFERENCES sentiment(id)
);
CREATE INDEX chains_stream ON chains (instance, timeframe, close_time);

CREATE TABLE journal (
    torra_key TEXT PRIMARY KEY,
    record TEXT NOT NULL, action TEXT NOT NULL, reason TEXT NOT NULL,
    elapsed_ms REAL NOT NULL, provider TEXT NOT NULL, cost_usd REAL NOT NULL, at TEXT NOT NULL
);

CREATE TABLE instructions (hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE calls (
    torra_key TEXT NOT NULL, role TEXT NOT NULL, round INTEGER NOT NULL, attempt INTEGER NOT NULL,
    stage TEXT NOT NULL, status TEXT NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    instructions TEXT NOT NULL REFERENCES instructions(hash),
    user TEXT NOT NULL, reply TEXT NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cost_usd REAL NOT NULL, elapsed_ms REAL NOT NULL,
    request_hash TEXT NOT NULL, detail TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (torra_key, role, round, attempt)
);
CREATE INDEX calls_cost ON calls (at, cost_usd);

CREATE TABLE ticks (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL,
    close_time TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('claimed', 'done', 'skipped')),
    epoch INTEGER NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time)
) WITHOUT ROWID;
CREATE INDEX ticks_close ON ticks (close_time);
CREATE INDEX ticks_claimed ON ticks (instance, timeframe, bar_time, epoch) WHERE state = 'claimed';

CREATE TABLE bars (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL,
    revision INTEGER NOT NULL,
    open REAL NOT NULL, high REAL NOT NULL, low REAL NOT NULL, close REAL NOT NULL,
    volume REAL NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time, revision)
) WITHOUT ROWID;

CREATE TABLE record_highs (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL, high REAL NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time)
) WITHOUT ROWID;

CREATE TABLE signals (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    sid TEXT NOT NULL UNIQUE,
    instance TEXT NOT NULL, symbol TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('open', 'close')),
    side TEXT NOT NULL CHECK (side IN ('BUY', 'SELL')),
    lots REAL NOT NULL CHECK (lots > 0),
    entry REAL, stop REAL, target REAL, atr REAL,
    decided_at TEXT NOT NULL, expires TEXT,
    state TEXT NOT NULL, detail TEXT NOT NULL,
    after TEXT, closes TEXT,
    opened_at TEXT, price REAL, ticket TEXT,
    closed_at TEXT, close_price REAL, profit REAL, r_multiple REAL, close_reason TEXT,
    CHECK (kind = 'close' OR (entry > 0 AND stop > 0 AND target > 0) IS TRUE)
);
CREATE UNIQUE INDEX signals_one_opening ON signals (instance)
    WHERE kind = 'open' AND state IN ('PENDING', 'PUBLISHED', 'FILLED');
CREATE INDEX signals_state ON signals (state, seq);
CREATE INDEX signals_instance ON signals (instance, state, closed_at);
CREATE INDEX signals_closed ON signals (closed_at) WHERE kind = 'open' AND state = 'CLOSED';

CREATE TABLE signal_events (
    id INTEGER PRIMARY KEY,
    sid TEXT NOT NULL REFERENCES signals(sid),
    from_state TEXT, to_state TEXT NOT NULL, detail TEXT NOT NULL, at TEXT NOT NULL
);
CREATE INDEX signal_events_sid ON signal_events (sid);

CREATE TABLE latches (
    instance TEXT NOT NULL, side TEXT NOT NULL CHECK (side IN ('BUY', 'SELL')), at TEXT NOT NULL,
    PRIMARY KEY (instance, side)
) WITHOUT ROWID;

CREATE TABLE paper_cursor (instance TEXT PRIMARY KEY, bar_time TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE lease (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    owner TEXT NOT NULL, epoch INTEGER NOT NULL,
    expires_at TEXT NOT NULL, renewed_at TEXT NOT NULL, desk_time TEXT
);

CREATE TABLE desk_state (
    id INTEGER PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('ACTIVE', 'REDUCING', 'HALTED')),
    reason TEXT NOT NULL, at TEXT NOT NULL
);

CREATE TABLE trading_config (
    id INTEGER PRIMARY KEY,
    instance TEXT NOT NULL, digest TEXT NOT NULL, profile TEXT NOT NULL, applied_at TEXT NOT NULL
);
CREATE INDEX trading_config_instance ON trading_config (instance, id);
"""

# AUTOINCREMENT: the number of a row that was taken back must never name another request.
SPENDING: Final = """
CREATE TABLE ledger (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    profile TEXT NOT NULL, torra_key TEXT NOT NULL,
    stage TEXT NOT NULL, role TEXT NOT NULL, round INTEGER NOT NULL, attempt INTEGER NOT NULL,
    provider TEXT NOT NULL, model TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'kept')),
    usd REAL NOT NULL CHECK (usd >= 0),
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL DEFAULT 0,
    at TEXT NOT NULL, until TEXT NOT NULL
);
CREATE INDEX ledger_window ON ledger (profile, until, usd);

CREATE TABLE rungs (
    profile TEXT PRIMARY KEY, rung TEXT NOT NULL, at TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE provider_blocks (
    provider TEXT PRIMARY KEY, reason TEXT NOT NULL, since TEXT NOT NULL, until TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE pictures (hash TEXT PRIMARY KEY, data BLOB NOT NULL, at TEXT NOT NULL);
CREATE INDEX pictures_at ON pictures (at);
CREATE INDEX calls_instructions ON calls (instructions);
"""

CALL_ADDITIONS: Final = {"stop_reason": (str, ""), "cached_tokens": (int, 0)}
"""Columns that 0002 adds to calls, with their default."""

NEWS: Final = """
CREATE TABLE news (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL, topic TEXT NOT NULL,
    headline TEXT NOT NULL, summary TEXT NOT NULL, url TEXT NOT NULL, tickers TEXT NOT NULL,
    published TEXT NOT NULL, first_seen TEXT NOT NULL,
    score REAL NOT NULL CHECK (score BETWEEN -1 AND 1), event TEXT NOT NULL, at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX news_first_seen ON news (first_seen);
CREATE INDEX news_at ON news (at);

CREATE TABLE fundamentals (
    ticker TEXT NOT NULL, first_seen TEXT NOT NULL, figures TEXT NOT NULL,
    PRIMARY KEY (ticker, first_seen)
) WITHOUT ROWID;
"""

EXECUTION: Final = """
CREATE TABLE proposals (
    sid TEXT PRIMARY KEY,
    torra_key TEXT NOT NULL, instance TEXT NOT NULL, symbol TEXT NOT NULL, timeframe TEXT NOT NULL,
    bar_time TEXT NOT NULL, verdict TEXT NOT NULL, action TEXT NOT NULL, drafts TEXT NOT NULL,
    price REAL NOT NULL, atr REAL NOT NULL, multiplier REAL NOT NULL,
    created_at TEXT NOT NULL, expires TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('WAITING', 'APPROVED', 'REJECTED', 'EXPIRED', 'DENIED')),
    reason TEXT NOT NULL, decided_at TEXT
) WITHOUT ROWID;
CREATE INDEX proposals_state ON proposals (state, expires);

CREATE TABLE alarms (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, detail TEXT NOT NULL, at TEXT NOT NULL, ended_at TEXT
) WITHOUT ROWID;

CREATE TABLE bridges (
    name TEXT PRIMARY KEY, deny TEXT NOT NULL, detail TEXT NOT NULL, facts TEXT NOT NULL,
    at TEXT NOT NULL, reconciled_at TEXT
) WITHOUT ROWID;

CREATE TABLE win_rates (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, side TEXT NOT NULL,
    wins INTEGER NOT NULL CHECK (wins BETWEEN 0 AND trades), trades INTEGER NOT NULL,
    source TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (instance, timeframe, side)
) WITHOUT ROWID;
"""

ACCOUNTS: Final = """
CREATE TABLE account_marks (
    id INTEGER PRIMARY KEY,
    bridge TEXT NOT NULL, at TEXT NOT NULL, account INTEGER NOT NULL, currency TEXT NOT NULL,
    balance REAL NOT NULL, equity REAL NOT NULL, held INTEGER NOT NULL
);
CREATE INDEX account_marks_bridge ON account_marks (bridge, id);
"""

STOP_MOVES: Final = """
ALTER TABLE signals ADD COLUMN broker_stop REAL;
"""
"""Where the books showed a position's stop last, NULL where it is the one that Torra knows."""

WIDER_RULES: Final = (
    ("CHECK (kind IN ('open', 'close'))", "CHECK (kind IN ('open', 'close', 'modify'))"),
    ("CHECK (kind = 'close' OR (entry", "CHECK (kind <> 'open' OR (entry"),
)
"""Rules of the table signals, before and after 0012."""

ONE_OPENING: Final = """
DROP INDEX signals_one_opening;
CREATE UNIQUE INDEX signals_one_opening ON signals (instance)
    WHERE kind = 'open' AND state IN
    ('PENDING', 'PUBLISHED', 'CLAIMED', 'PLACED', 'UNKNOWN', 'FILLED', 'PARTIAL');
"""
"""The states in which an opening counts as a position, but WAITING: it follows its close."""

SIGNAL_ADDITIONS: Final = (
    "bridge TEXT NOT NULL DEFAULT 'paper'",
    "filled_lots REAL",
    "deal TEXT",
    "misses INTEGER NOT NULL DEFAULT 0",
    "missed_at TEXT",
    "outcome TEXT",
    "evolution TEXT",
    "thesis TEXT",
)
"""Columns that 0004 adds to signals. `misses` counts the looks at the books that did not find it,
`missed_at` is the time of the newest of them."""

FACE: Final = """
CREATE TABLE streams (
    stream_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL, torra_key TEXT NOT NULL, owner TEXT NOT NULL,
    at TEXT NOT NULL, ended INTEGER NOT NULL DEFAULT 0 CHECK (ended IN (0, 1))
) WITHOUT ROWID;
CREATE INDEX streams_open ON streams (owner) WHERE ended = 0;
CREATE INDEX streams_tick ON streams (torra_key, at);
CREATE INDEX streams_at ON streams (at);

CREATE TABLE stream_events (
    stream_id TEXT NOT NULL, seq INTEGER NOT NULL,
    event TEXT NOT NULL, terminal INTEGER NOT NULL CHECK (terminal IN (0, 1)),
    payload TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (stream_id, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX stream_events_one_end ON stream_events (stream_id) WHERE terminal = 1;

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL, actor TEXT NOT NULL, address TEXT NOT NULL,
    action TEXT NOT NULL, target TEXT NOT NULL, outcome TEXT NOT NULL,
    before TEXT NOT NULL, after TEXT NOT NULL,
    previous TEXT NOT NULL, hash TEXT NOT NULL UNIQUE
);
CREATE INDEX audit_action ON audit (action, seq);
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_never_shrinks BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

CREATE TABLE verdict_tallies (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL,
    ticks INTEGER NOT NULL, changed INTEGER NOT NULL,
    PRIMARY KEY (instance, timeframe)
) WITHOUT ROWID;
INSERT INTO verdict_tallies (instance, timeframe, ticks, changed)
    SELECT instance, timeframe, count(*), sum(verdict <> l1_verdict) FROM chains
    GROUP BY instance, timeframe;
CREATE TRIGGER verdict_tallies_up AFTER INSERT ON chains BEGIN
    INSERT INTO verdict_tallies (instance, timeframe, ticks, changed)
        VALUES (new.instance, new.timeframe, 1, new.verdict <> new.l1_verdict)
        ON CONFLICT (instance, timeframe) DO UPDATE
        SET ticks = ticks + 1, changed = changed + excluded.changed;
END;
CREATE TRIGGER verdict_tallies_down AFTER DELETE ON chains BEGIN
    UPDATE verdict_tallies SET ticks = ticks - 1,
        changed = changed - (old.verdict <> old.l1_verdict)
        WHERE instance = old.instance AND timeframe = old.timeframe;
END;

CREATE INDEX journal_told ON journal (torra_key, action, reason, elapsed_ms, cost_usd, provider);
CREATE INDEX alarms_standing ON alarms (at DESC) WHERE ended_at IS NULL;
CREATE INDEX alarms_newest ON alarms (at DESC);
"""
"""For the pages: event streams, the audit log, counted verdicts, and indexes. By these a list of
ticks does not read their records, and the standing alarms are found without those that ended."""

STANDING: Final = """
CREATE TABLE agent_standing (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL, profile TEXT NOT NULL,
    trial INTEGER NOT NULL CHECK (trial > 0), look INTEGER NOT NULL CHECK (look > 0),
    promoted INTEGER NOT NULL CHECK (promoted IN (0, 1)),
    reason TEXT NOT NULL, figures TEXT NOT NULL, at TEXT NOT NULL
);
CREATE UNIQUE INDEX agent_standing_look ON agent_standing (fingerprint, look);
CREATE UNIQUE INDEX agent_standing_trial ON agent_standing (trial, look);
CREATE TRIGGER agent_standing_never_changes BEFORE UPDATE ON agent_standing
    BEGIN SELECT RAISE(ABORT, 'a look that was taken stays as it is'); END;
CREATE TRIGGER agent_standing_never_shrinks BEFORE DELETE ON agent_standing
    BEGIN SELECT RAISE(ABORT, 'a look that was taken stays as it is'); END;
"""
"""The decision of each look of the promotion rule (torra.store.standings)."""

RECORD_LOWS: Final = """
CREATE TABLE record_lows (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL, low REAL NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time)
) WITHOUT ROWID;
INSERT INTO record_lows (instance, timeframe, bar_time, low)
    SELECT instance, timeframe, bar_time, low FROM (
        SELECT instance, timeframe, bar_time, low, min(low) OVER (
            PARTITION BY instance, timeframe ORDER BY bar_time
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before FROM (
            SELECT instance, timeframe, bar_time, max(revision), low FROM bars
            GROUP BY instance, timeframe, bar_time
        )
    ) WHERE before IS NULL OR low < before;
"""
"""The bars that set a new low, beside `record_highs`; a home of before has them of its bars."""

ORDER_SEAL: Final = """
ALTER TABLE signals ADD COLUMN authority TEXT NOT NULL DEFAULT 'older';
ALTER TABLE signals ADD COLUMN seal TEXT;
"""
"""Columns of a signal: who decided it, and the hash of what was decided. The outbox sends no order
without them, so one that a program of before left waiting is taken back (signal_bridge)."""

AUDIT: Final = """
CREATE TRIGGER audit_never_replaced BEFORE INSERT ON audit
    WHEN EXISTS (SELECT 1 FROM audit WHERE seq = new.seq OR hash = new.hash)
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER agent_standing_never_replaced BEFORE INSERT ON agent_standing
    WHEN EXISTS (
        SELECT 1 FROM agent_standing WHERE id = new.id
        OR (fingerprint = new.fingerprint AND look = new.look)
        OR (trial = new.trial AND look = new.look)
    )
    BEGIN SELECT RAISE(ABORT, 'a look that was taken stays as it is'); END;
"""
"""INSERT OR REPLACE takes out the row whose key or unique columns it finds there. It fires the
trigger against deletions only where a connection has recursive_triggers on: Torra's have, those of
other programs have not."""

CHANGED: Final = """
CREATE INDEX chains_changed ON chains (instance, close_time, torra_key)
    WHERE verdict <> l1_verdict;
CREATE INDEX chains_acting ON chains (instance, close_time, torra_key)
    WHERE verdict = l1_verdict AND verdict <> 'HOLD';
"""
"""Indexes of the ticks that agents may have changed (torra.store.standings): by the verdict, or by
what came of a verdict that L1 alone would have given too."""

HOSTED: Final = """
CREATE TABLE hosted (
    torra_key TEXT NOT NULL, asked TEXT NOT NULL, profile TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('claimed', 'open', 'final')),
    owner TEXT NOT NULL, expires TEXT NOT NULL,
    revision INTEGER NOT NULL, chart TEXT NOT NULL, record TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (torra_key, asked)
) WITHOUT ROWID;

CREATE TABLE hosted_outcomes (
    torra_key TEXT PRIMARY KEY,
    verdict TEXT NOT NULL CHECK (verdict IN ('BUY', 'SELL', 'HOLD')), r REAL, at TEXT NOT NULL
) WITHOUT ROWID;
"""
"""What other scorers asked and were answered, and what their ticks came to (torra.store.hosted)."""

NOTICES: Final = """
CREATE TABLE notices (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    level TEXT NOT NULL CHECK (level IN ('alarm', 'decision', 'trade', 'note')),
    title TEXT NOT NULL, text TEXT NOT NULL, instance TEXT NOT NULL,
    desk_time TEXT NOT NULL, at TEXT NOT NULL, silent INTEGER NOT NULL CHECK (silent IN (0, 1))
);

CREATE TABLE notice_outbox (
    notice INTEGER NOT NULL REFERENCES notices(id), service TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'sending', 'sent', 'dropped', 'failed')),
    tries INTEGER NOT NULL DEFAULT 0, next_try TEXT NOT NULL, detail TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (notice, service)
) WITHOUT ROWID;
CREATE INDEX notice_outbox_state ON notice_outbox (state, service, next_try);

CREATE TABLE notice_services (
    service TEXT PRIMARY KEY, detail TEXT NOT NULL, at TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE notice_cursors (name TEXT PRIMARY KEY, place TEXT NOT NULL) WITHOUT ROWID;
"""
"""Notices, their way out, and how far was looked (torra.store.notices)."""

JOBS: Final = """
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL, key TEXT NOT NULL, title TEXT NOT NULL, parameters TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('queued', 'running', 'retrying', 'done', 'error', 'cancelled')),
    attempt INTEGER NOT NULL, epoch INTEGER NOT NULL,
    cancel INTEGER NOT NULL CHECK (cancel IN (0, 1)),
    stage TEXT NOT NULL, done INTEGER NOT NULL, total INTEGER NOT NULL,
    says TEXT NOT NULL, made TEXT NOT NULL,
    queued_at TEXT NOT NULL, started_at TEXT, ended_at TEXT, revision INTEGER NOT NULL
);
CREATE INDEX jobs_state ON jobs (state, id);
CREATE INDEX jobs_revision ON jobs (revision);
CREATE UNIQUE INDEX jobs_alike ON jobs (key)
    WHERE state = 'queued' OR state = 'running' OR state = 'retrying';
"""
"""Work that was asked for (torra.store.jobs): the same request is one job while it goes on."""

HISTORY: Final = """
CREATE TABLE tick_kinds (
    id INTEGER PRIMARY KEY,
    instance TEXT NOT NULL, timeframe TEXT NOT NULL,
    l1_verdict TEXT NOT NULL, verdict TEXT NOT NULL,
    action TEXT NOT NULL, reason TEXT NOT NULL, source TEXT NOT NULL,
    ticks INTEGER NOT NULL,
    UNIQUE (instance, timeframe, l1_verdict, verdict, action, reason, source)
);
CREATE TABLE tick_history (
    sentiment_id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL REFERENCES tick_kinds(id), close_time TEXT NOT NULL
);
INSERT INTO tick_kinds
        (instance, timeframe, l1_verdict, verdict, action, reason, source, ticks)
    SELECT c.instance, c.timeframe, c.l1_verdict, c.verdict, coalesce(j.action, ''),
        coalesce(j.reason, ''), coalesce(s.source_type, ''), count(*)
    FROM chains c JOIN sentiment s ON s.id = c.sentiment_id
    LEFT JOIN journal j INDEXED BY journal_told ON j.torra_key = c.torra_key
    GROUP BY 1, 2, 3, 4, 5, 6, 7;
INSERT INTO tick_history (sentiment_id, kind, close_time)
    SELECT c.sentiment_id, k.id, c.close_time
    FROM chains c JOIN sentiment s ON s.id = c.sentiment_id
    LEFT JOIN journal j INDEXED BY journal_told ON j.torra_key = c.torra_key
    JOIN tick_kinds k ON k.instance = c.instance AND k.timeframe = c.timeframe
        AND k.l1_verdict = c.l1_verdict AND k.verdict = c.verdict
        AND k.action = coalesce(j.action, '') AND k.reason = coalesce(j.reason, '')
        AND k.source = coalesce(s.source_type, '');
CREATE INDEX tick_history_kind ON tick_history (kind, close_time);
CREATE TRIGGER tick_kinds_up AFTER INSERT ON tick_history BEGIN
    UPDATE tick_kinds SET ticks = ticks + 1 WHERE id = new.kind;
END;
CREATE TRIGGER tick_kinds_moved AFTER UPDATE OF kind ON tick_history BEGIN
    UPDATE tick_kinds SET ticks = ticks - 1 WHERE id = old.kind;
    UPDATE tick_kinds SET ticks = ticks + 1 WHERE id = new.kind;
END;
CREATE TRIGGER tick_kinds_down AFTER DELETE ON tick_history BEGIN
    UPDATE tick_kinds SET ticks = ticks - 1 WHERE id = old.kind;
END;
CREATE TRIGGER tick_history_up AFTER INSERT ON chains BEGIN
    INSERT INTO tick_kinds
            (instance, timeframe, l1_verdict, verdict, action, reason, source, ticks)
        SELECT new.instance, new.timeframe, new.l1_verdict, new.verdict, '', '',
            coalesce(source_type, ''), 0
        FROM sentiment WHERE id = new.sentiment_id
        ON CONFLICT DO NOTHING;
    INSERT INTO tick_history (sentiment_id, kind, close_time)
        SELECT new.sentiment_id, k.id, new.close_time
        FROM sentiment s JOIN tick_kinds k ON k.instance = new.instance
            AND k.timeframe = new.timeframe AND k.l1_verdict = new.l1_verdict
            AND k.verdict = new.verdict AND k.action = '' AND k.reason = ''
            AND k.source = coalesce(s.source_type, '')
        WHERE s.id = new.sentiment_id;
END;
CREATE TRIGGER tick_history_told AFTER INSERT ON journal BEGIN
    INSERT INTO tick_kinds
            (instance, timeframe, l1_verdict, verdict, action, reason, source, ticks)
        SELECT k.instance, k.timeframe, k.l1_verdict, k.verdict, new.action, new.reason,
            k.source, 0
        FROM chains c JOIN tick_history h ON h.sentiment_id = c.sentiment_id
        JOIN tick_kinds k ON k.id = h.kind WHERE c.torra_key = new.torra_key
        ON CONFLICT DO NOTHING;
    UPDATE tick_history SET kind = (
        SELECT k.id FROM tick_kinds b JOIN tick_kinds k ON k.instance = b.instance
            AND k.timeframe = b.timeframe AND k.l1_verdict = b.l1_verdict
            AND k.verdict = b.verdict AND k.action = new.action AND k.reason = new.reason
            AND k.source = b.source
        WHERE b.id = tick_history.kind
    ) WHERE sentiment_id = (SELECT sentiment_id FROM chains WHERE torra_key = new.torra_key);
END;
CREATE TRIGGER tick_history_down AFTER DELETE ON chains BEGIN
    DELETE FROM tick_history WHERE sentiment_id = old.sentiment_id;
END;
"""
"""What kinds of ticks there are, how many of each, and which tick is of which kind
(torra.store.tick_listing): triggers keep it, so a host's rows are in it too."""

TRADE_NOTES: Final = """
CREATE TABLE trade_notes (
    sid TEXT PRIMARY KEY REFERENCES signals(sid),
    note TEXT NOT NULL, tags TEXT NOT NULL,
    revision INTEGER NOT NULL, actor TEXT NOT NULL, at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE trade_tags (
    tag TEXT NOT NULL, sid TEXT NOT NULL REFERENCES signals(sid),
    PRIMARY KEY (tag, sid)
) WITHOUT ROWID;
CREATE INDEX trade_tags_sid ON trade_tags (sid);
CREATE INDEX signals_closes ON signals (closes) WHERE closes IS NOT NULL;
"""
"""What a person wrote to a trade (torra.store.trade.notes), and the orders that belong to one: by
that index they are found without reading every trade of its instance."""

OUTSIDE: Final = """
CREATE TABLE series (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL, at TEXT NOT NULL, known_at TEXT NOT NULL, first_seen TEXT NOT NULL,
    value REAL NOT NULL, source TEXT NOT NULL,
    UNIQUE (name, at, known_at, source)
);
CREATE TRIGGER series_never_changes BEFORE UPDATE ON series
    BEGIN SELECT RAISE(ABORT, 'what was known of a series stays as it is'); END;
CREATE TRIGGER series_never_shrinks BEFORE DELETE ON series
    BEGIN SELECT RAISE(ABORT, 'what was known of a series stays as it is'); END;
CREATE TRIGGER series_never_replaced BEFORE INSERT ON series
    WHEN EXISTS (
        SELECT 1 FROM series WHERE number = new.number
        OR (name = new.name AND at = new.at AND known_at = new.known_at AND source = new.source)
    )
    BEGIN SELECT RAISE(ABORT, 'what was known of a series stays as it is'); END;

CREATE TABLE facts (
    number INTEGER PRIMARY KEY,
    ticker TEXT NOT NULL, figure TEXT NOT NULL, begins TEXT NOT NULL, ends TEXT NOT NULL,
    known_at TEXT NOT NULL, first_seen TEXT NOT NULL,
    value REAL NOT NULL, unit TEXT NOT NULL, source TEXT NOT NULL,
    UNIQUE (ticker, figure, begins, ends, known_at)
);
CREATE TRIGGER facts_never_change BEFORE UPDATE ON facts
    BEGIN SELECT RAISE(ABORT, 'what was known of a company stays as it is'); END;
CREATE TRIGGER facts_never_shrink BEFORE DELETE ON facts
    BEGIN SELECT RAISE(ABORT, 'what was known of a company stays as it is'); END;
CREATE TRIGGER facts_never_replaced BEFORE INSERT ON facts
    WHEN EXISTS (
        SELECT 1 FROM facts WHERE number = new.number
        OR (ticker = new.ticker AND figure = new.figure AND begins = new.begins
            AND ends = new.ends AND known_at = new.known_at)
    )
    BEGIN SELECT RAISE(ABORT, 'what was known of a company stays as it is'); END;
"""
"""Numbers from beside the chart (torra.store.series): a value that is revised is a further row."""

SPREADS: Final = """
CREATE TABLE spreads (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL,
    revision INTEGER NOT NULL, spread REAL NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time, revision)
) WITHOUT ROWID;
CREATE TRIGGER spreads_never_change BEFORE UPDATE ON spreads
    BEGIN SELECT RAISE(ABORT, 'the first spread of a bar stays as it is'); END;
CREATE TRIGGER spreads_never_replaced BEFORE INSERT ON spreads
    WHEN EXISTS (
        SELECT 1 FROM spreads WHERE instance = new.instance AND timeframe = new.timeframe
        AND bar_time = new.bar_time AND revision = new.revision
    )
    BEGIN SELECT RAISE(ABORT, 'the first spread of a bar stays as it is'); END;
CREATE TRIGGER spreads_go_with_bars BEFORE DELETE ON spreads
    WHEN EXISTS (
        SELECT 1 FROM bars WHERE instance = old.instance AND timeframe = old.timeframe
        AND bar_time = old.bar_time AND revision = old.revision
    )
    BEGIN SELECT RAISE(ABORT, 'a spread stays as long as its bar'); END;
"""
"""The spread of a revision of a bar (torra.store.spreads)."""

FACTS_BY_SOURCE: Final = """
DROP TRIGGER facts_never_change;
DROP TRIGGER facts_never_shrink;
DROP TRIGGER facts_never_replaced;
ALTER TABLE facts RENAME TO facts_before;
CREATE TABLE facts (
    number INTEGER PRIMARY KEY,
    ticker TEXT NOT NULL, figure TEXT NOT NULL, begins TEXT NOT NULL, ends TEXT NOT NULL,
    known_at TEXT NOT NULL, first_seen TEXT NOT NULL,
    value REAL NOT NULL, unit TEXT NOT NULL, source TEXT NOT NULL,
    UNIQUE (ticker, figure, begins, ends, known_at, source)
);
INSERT INTO facts SELECT * FROM facts_before;
DROP TABLE facts_before;
CREATE TRIGGER facts_never_change BEFORE UPDATE ON facts
    BEGIN SELECT RAISE(ABORT, 'what was known of a company stays as it is'); END;
CREATE TRIGGER facts_never_shrink BEFORE DELETE ON facts
    BEGIN SELECT RAISE(ABORT, 'what was known of a company stays as it is'); END;
CREATE TRIGGER facts_never_replaced BEFORE INSERT ON facts
    WHEN EXISTS (
        SELECT 1 FROM facts WHERE number = new.number
        OR (ticker = new.ticker AND figure = new.figure AND begins = new.begins
            AND ends = new.ends AND known_at = new.known_at AND source = new.source)
    )
    BEGIN SELECT RAISE(ABORT, 'what was known of a company stays as it is'); END;
"""
"""A file and a filing have each their own word of the same moment."""

FLOW: Final = """
CREATE TABLE flow (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL,
    ticks INTEGER NOT NULL, up INTEGER NOT NULL, down INTEGER NOT NULL,
    spread_mean REAL, spread_widest REAL, levels INTEGER, bid_volume REAL, ask_volume REAL,
    imbalance REAL, slippage REAL, events INTEGER,
    source TEXT NOT NULL, first_seen TEXT NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time)
) WITHOUT ROWID;
CREATE TRIGGER flow_never_changes BEFORE UPDATE ON flow
    BEGIN SELECT RAISE(ABORT, 'the order flow of a bar stays as it was first seen'); END;
CREATE TRIGGER flow_never_replaced BEFORE INSERT ON flow
    WHEN EXISTS (
        SELECT 1 FROM flow WHERE instance = new.instance AND timeframe = new.timeframe
        AND bar_time = new.bar_time
    )
    BEGIN SELECT RAISE(ABORT, 'the order flow of a bar stays as it was first seen'); END;
CREATE TRIGGER flow_goes_with_bars BEFORE DELETE ON flow
    WHEN EXISTS (
        SELECT 1 FROM bars WHERE instance = old.instance AND timeframe = old.timeframe
        AND bar_time = old.bar_time
    )
    BEGIN SELECT RAISE(ABORT, 'the order flow of a bar stays as long as the bar'); END;
"""
"""What moved inside each bar (torra.store.flow)."""

LESSONS: Final = """
CREATE TABLE situations (sid TEXT PRIMARY KEY, situation TEXT NOT NULL) WITHOUT ROWID;
CREATE TRIGGER situations_never_change BEFORE UPDATE ON situations
    BEGIN SELECT RAISE(ABORT, 'the market of an opening stays as it was seen'); END;

CREATE TABLE lesson_facts (
    number INTEGER PRIMARY KEY,
    sid TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('trade', 'vetoed')),
    instance TEXT NOT NULL, symbol TEXT NOT NULL, asset TEXT NOT NULL, timeframe TEXT NOT NULL,
    side TEXT NOT NULL, outcome TEXT NOT NULL, closed_at TEXT NOT NULL, known_at TEXT NOT NULL,
    r REAL NOT NULL, facts TEXT NOT NULL,
    UNIQUE (sid, kind)
);
CREATE TRIGGER lesson_facts_never_change BEFORE UPDATE ON lesson_facts
    BEGIN SELECT RAISE(ABORT, 'the facts of a trade stay as they are'); END;
CREATE TRIGGER lesson_facts_never_shrink BEFORE DELETE ON lesson_facts
    BEGIN SELECT RAISE(ABORT, 'the facts of a trade stay as they are'); END;
CREATE TRIGGER lesson_facts_never_replaced BEFORE INSERT ON lesson_facts
    WHEN EXISTS (
        SELECT 1 FROM lesson_facts WHERE number = new.number
        OR (sid = new.sid AND kind = new.kind)
    )
    BEGIN SELECT RAISE(ABORT, 'the facts of a trade stay as they are'); END;

CREATE TABLE lesson_words (
    number INTEGER PRIMARY KEY,
    lesson INTEGER NOT NULL REFERENCES lesson_facts(number),
    author TEXT NOT NULL, known_at TEXT NOT NULL,
    setup TEXT NOT NULL, outcome TEXT NOT NULL, rule TEXT NOT NULL,
    request_hash TEXT NOT NULL, cost_usd REAL NOT NULL, flags TEXT NOT NULL,
    UNIQUE (lesson, author)
);
CREATE TRIGGER lesson_words_never_change BEFORE UPDATE ON lesson_words
    BEGIN SELECT RAISE(ABORT, 'what was written of a trade stays as it is'); END;
CREATE TRIGGER lesson_words_never_shrink BEFORE DELETE ON lesson_words
    BEGIN SELECT RAISE(ABORT, 'what was written of a trade stays as it is'); END;
CREATE TRIGGER lesson_words_never_replaced BEFORE INSERT ON lesson_words
    WHEN EXISTS (
        SELECT 1 FROM lesson_words WHERE number = new.number
        OR (lesson = new.lesson AND author = new.author)
    )
    BEGIN SELECT RAISE(ABORT, 'what was written of a trade stays as it is'); END;
CREATE VIRTUAL TABLE lesson_search USING fts5(words, about);

CREATE TABLE lesson_uses (
    number INTEGER PRIMARY KEY,
    lesson INTEGER NOT NULL REFERENCES lesson_facts(number),
    torra_key TEXT NOT NULL, place INTEGER NOT NULL,
    UNIQUE (torra_key, lesson)
);
CREATE INDEX lesson_uses_lesson ON lesson_uses (lesson);

CREATE TABLE vetoed_openings (
    sid TEXT PRIMARY KEY, instance TEXT NOT NULL, told TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE veto_stretches (instance TEXT PRIMARY KEY, side TEXT NOT NULL) WITHOUT ROWID;
"""
"""Lessons of closed trades, their words, and openings that were vetoed (torra.store.lessons)."""

CREATED: Final = re.compile(
    r"^CREATE (?:UNIQUE |VIRTUAL )?(?:TABLE|INDEX|TRIGGER) (\w+)", re.MULTILINE
)

steps: Final = Migrations("torra")


@steps(name="0001_overlay")
def _overlay(db: sqlite_utils.Database) -> None:
    if not db.table("sentiment").exists():
        db.executescript(SENTIMENT)
    _add_to_sentiment(db)
    # In a transaction sqlite-utils runs a script statement by statement; sqlite3's own would
    # commit.
    db.executescript(TABLES)


def _add_to_sentiment(db: sqlite_utils.Database) -> None:
    sentiment = db.table("sentiment")
    for name, kind in ADDED_COLUMNS.items():
        if name not in sentiment.columns_dict:
            sentiment.add_column(name, kind)
    sentiment.create_index(
        ["torra_key"], index_name="sentiment_torra_key", unique=True, if_not_exists=True
    )


@steps(name="0002_spending")
def _spending(db: sqlite_utils.Database) -> None:
    db.executescript(SPENDING)
    for name, (kind, default) in CALL_ADDITIONS.items():
        db.table("calls").add_column(name, kind, not_null_default=default)


@steps(name="0003_news")
def _news(db: sqlite_utils.Database) -> None:
    db.executescript(NEWS)


@steps(name="0004_execution")
def _execution(db: sqlite_utils.Database) -> None:
    db.executescript(EXECUTION)
    for column in SIGNAL_ADDITIONS:
        db.execute(f"ALTER TABLE signals ADD COLUMN {column}")
    db.executescript(ONE_OPENING)


@steps(name="0005_face")
def _face(db: sqlite_utils.Database) -> None:
    db.executescript(FACE)


@steps(name="0006_standing")
def _standing(db: sqlite_utils.Database) -> None:
    db.executescript(STANDING)


@steps(name="0007_record_lows")
def _record_lows(db: sqlite_utils.Database) -> None:
    db.executescript(RECORD_LOWS)


@steps(name="0008_order_seal")
def _order_seal(db: sqlite_utils.Database) -> None:
    db.executescript(ORDER_SEAL)


@steps(name="0009_audit")
def _audit(db: sqlite_utils.Database) -> None:
    db.executescript(AUDIT)


@steps(name="0010_changed")
def _changed(db: sqlite_utils.Database) -> None:
    db.executescript(CHANGED)


@steps(name="0011_hosted")
def _hosted(db: sqlite_utils.Database) -> None:
    db.executescript(HOSTED)


@steps(name="0012_stop_moves")
def _stop_moves(db: sqlite_utils.Database) -> None:
    """Let a signal be the move of a stop: two rules of the table are widened.

    A table cannot be rebuilt while others refer to it, and no row changes: SQLite lets the text of
    a rule be changed in place (sqlite.org/lang_altertable.html, section 7).
    """
    version = db.execute("PRAGMA schema_version").fetchone()[0]
    db.execute("PRAGMA writable_schema = ON")
    for before, after in WIDER_RULES:
        db.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) "
            "WHERE type = 'table' AND name = 'signals'",
            (before, after),
        )
    (text,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'signals'").fetchone()
    if not all(after in text for _, after in WIDER_RULES):
        raise StoreBroken("the rules of the table signals are not those that Torra made")
    # Every connection reads the table's text anew.
    db.execute(f"PRAGMA schema_version = {version + 1}")
    db.execute("PRAGMA writable_schema = OFF")
    db.executescript(STOP_MOVES)


@steps(name="0013_accounts")
def _accounts(db: sqlite_utils.Database) -> None:
    db.executescript(ACCOUNTS)


@steps(name="0014_notices")
def _notices(db: sqlite_utils.Database) -> None:
    db.executescript(NOTICES)


@steps(name="0015_jobs")
def _jobs(db: sqlite_utils.Database) -> None:
    db.executescript(JOBS)


@steps(name="0016_history")
def _history(db: sqlite_utils.Database) -> None:
    db.executescript(HISTORY)


@steps(name="0017_trade_notes")
def _trade_notes(db: sqlite_utils.Database) -> None:
    db.executescript(TRADE_NOTES)


@steps(name="0018_outside")
def _outside(db: sqlite_utils.Database) -> None:
    db.executescript(OUTSIDE)


@steps(name="0019_spreads")
def _spreads(db: sqlite_utils.Database) -> None:
    db.executescript(SPREADS)


@steps(name="0020_flow")
def _flow(db: sqlite_utils.Database) -> None:
    db.executescript(FLOW)


@steps(name="0021_facts_by_source")
def _facts_by_source(db: sqlite_utils.Database) -> None:
    db.executescript(FACTS_BY_SOURCE)


@steps(name="0022_lessons")
def _lessons(db: sqlite_utils.Database) -> None:
    db.executescript(LESSONS)


SCRIPTS: Final = {
    "0001_overlay": TABLES,
    "0002_spending": SPENDING,
    "0003_news": NEWS,
    "0004_execution": EXECUTION,
    "0005_face": FACE,
    "0006_standing": STANDING,
    "0007_record_lows": RECORD_LOWS,
    "0008_order_seal": ORDER_SEAL,
    "0009_audit": AUDIT,
    "0010_changed": CHANGED,
    "0011_hosted": HOSTED,
    "0012_stop_moves": STOP_MOVES,
    "0013_accounts": ACCOUNTS,
    "0014_notices": NOTICES,
    "0015_jobs": JOBS,
    "0016_history": HISTORY,
    "0017_trade_notes": TRADE_NOTES,
    "0018_outside": OUTSIDE,
    "0019_spreads": SPREADS,
    "0020_flow": FLOW,
    "0021_facts_by_source": "",
    "0022_lessons": LESSONS,
}
"""The script of each step, without the sentiment table, added columns and a table made anew."""

STEPS: Final = tuple(SCRIPTS)
"""Every step in order; its first four digits are the number of the schema that it makes."""

NEWEST: Final = int(STEPS[-1][:4])
"""The number of the present schema."""


def migrate(
    db: sqlite_utils.Database,
    path: Path,
    transaction: Callable[[], AbstractContextManager[None]],
    now: Callable[[], datetime],
) -> Path | None:
    """Bring an open database to the present schema; return the backup that was made, if any.

    Raises ConfigError for a structure that is not the one of the file's own schema.
    """
    pending = _pending(db, path)
    if refused := compared(db).refused:
        raise ConfigError(f"{structure.words(path, refused)}; `torra restore` lists the backups")
    if not pending:
        return None
    # Before the backup and the first change: a file that is refused stays as it is.
    _check_names(db, path)
    if not schema(db):
        _check_legacy(db, path)
    backup = _back_up(db, path, now()) if db.table_names() else None
    # Asked again inside: another process may have migrated the file while we waited.
    with transaction():
        if _pending(db, path):
            steps.apply(db)
    return backup


def take_over(db: sqlite_utils.Database, path: Path, now: datetime) -> Path | None:
    """Let an existing scorer's own file take Torra's rows; return the backup that was made, if any.

    Its sentiment table gains the two columns and the index, once. Raises ConfigError when it has no
    such table, or one that demands what Torra does not know.
    """
    if "sentiment" not in db.table_names():
        raise ConfigError(f"{path} has no table sentiment: name the database of a scorer")
    _check_legacy(db, path)
    _refuse_other_rules(db, path)
    there = set(db.table("sentiment").columns_dict)
    if set(ADDED_COLUMNS) <= there and _has_key_index(db):
        return None
    backup = _back_up(db, path, now)
    with db.atomic():
        _add_to_sentiment(db)
    return backup


def _has_key_index(db: sqlite_utils.Database) -> bool:
    return any(
        index.unique and index.columns == ["torra_key"] for index in db.table("sentiment").indexes
    )


def _refuse_other_rules(db: sqlite_utils.Database, path: Path) -> None:
    """Raise ConfigError when a unique index of the file would refuse rows of ours."""
    for index in db.table("sentiment").indexes:
        if index.unique and index.columns not in (["torra_key"], ["id"]):
            named = ", ".join(index.columns)
            raise ConfigError(
                f"{path}: the index {index.name} of the sentiment table lets no two rows have the "
                f"same {named}, and rows of several timeframes may; drop it, or add torra_key to it"
            )


def schema(db: sqlite_utils.Database) -> int:
    """Return the number of the database's schema; 0 before Torra."""
    return max((int(step.name[:4]) for step in steps.applied(db)), default=0)


def compared(db: sqlite_utils.Database, ignored: Collection[str] = ()) -> structure.Structure:
    """Compare a database with what its own schema made (torra.store.structure).

    Tables of the names `ignored` are not looked at.
    """
    tables = {row.table.lower() for row in _made(NEWEST)}
    alone = not db.conn.in_transaction
    # One moment for number and structure: another program may be migrating the file.
    if alone:
        db.execute("BEGIN")
    try:
        return structure.compare(db, _made(schema(db)), tables, ignored)
    finally:
        if alone:
            db.execute("COMMIT")


@cache
def _made(number: int) -> tuple[structure.Thing, ...]:
    """Return what the steps up to a schema's number make in a new database."""
    db = sqlite_utils.Database(memory=True, execute_plugins=False)
    try:
        if number:
            steps.apply(db, stop_before=STEPS[number:])
        return tuple(structure.things(db))
    finally:
        db.close()


def _check_names(db: sqlite_utils.Database, path: Path) -> None:
    """Raise ConfigError when something in the file has a name that a pending step would create.

    It is somebody else's: a scorer whose file was taken over may make tables of its own.
    """
    # Before what is applied: another process may migrate the file at this moment.
    there = db.conn.execute("SELECT type, name FROM sqlite_master").fetchall()
    applied = {step.name for step in steps.applied(db)}
    pending = "".join(script for name, script in SCRIPTS.items() if name not in applied)
    made = {name.lower() for name in CREATED.findall(pending)}
    for kind, name in there:
        # SQLite does not tell capital letters apart in names.
        if name.lower() in made:
            raise ConfigError(
                f"{path} has a {kind} {name} that Torra did not make; rename that {kind}, or name "
                "another database file"
            )


def _check_legacy(db: sqlite_utils.Database, path: Path) -> None:
    """Raise ConfigError when a database from before Torra cannot be taken over."""
    if "sentiment" not in db.table_names():
        return
    columns = {column.name: column for column in db.table("sentiment").columns}
    for name in LEGACY_COLUMNS:
        if name not in columns:
            raise ConfigError(
                f"{path}: the sentiment table has no column {name}; add it with "
                f"ALTER TABLE sentiment ADD COLUMN {name}, or name another database file"
            )
    if not columns["id"].is_pk or columns["id"].type.upper() != "INTEGER":
        raise ConfigError(f"{path}: sentiment.id is not INTEGER PRIMARY KEY; rebuild that table")
    for name, column in columns.items():
        unknown = name not in LEGACY_COLUMNS and name not in ADDED_COLUMNS
        # Every row of ours would fail for want of it.
        if unknown and column.notnull and column.default_value is None:
            raise ConfigError(
                f"{path}: the sentiment table demands a value for {name}, which Torra does not "
                "know; give that column a default"
            )


def _pending(db: sqlite_utils.Database, path: Path) -> bool:
    applied = {step.name for step in steps.applied(db)}
    unknown = sorted(applied - set(STEPS))
    if unknown:
        raise ConfigError(
            f"{path} has schema {unknown[-1]}, newer than this program's {STEPS[-1]}; update "
            "Torra, or go back to a backup: `torra restore` lists them"
        )
    return applied != set(STEPS)


def _back_up(db: sqlite_utils.Database, path: Path, now: datetime) -> Path:
    moment = stamp(now).replace(":", "").replace("-", "")
    target = path.parent / BACKUP_FOLDER / f"{path.stem}-{schema(db)}-{moment}.db"
    # A copy has its name only when it was checked: one of this second serves as well.
    return target if target.exists() else copy(db, target)
