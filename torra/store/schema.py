"""The schema of a desk's database, top to bottom: its tables, indexes and triggers as SQL.

SCHEMA is the step `schema_1` of torra.store.migrations; each later step has a text of its own.
sqlite-utils' `create` knows neither WITHOUT ROWID nor CHECK. Times are texts as torra.clock.iso
writes them.
"""

from typing import Final

SCHEMA: Final = """
-- Ticks: the row of a scorer's own table, the chains of scores beside it, and the record. Triggers
-- count them, so that rows of a host count too. By journal_told a list of ticks reads no records.
CREATE TABLE IF NOT EXISTS sentiment (
    id INTEGER PRIMARY KEY,
    timestamp TEXT, timeframe TEXT,
    price_action REAL, key_levels REAL, momentum REAL, structure REAL, ath REAL,
    composite REAL, consensus REAL,
    verdict TEXT, source_type TEXT,
    agent_deliberation TEXT, torra_key TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS sentiment_torra_key ON sentiment (torra_key);

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
CREATE INDEX chains_changed ON chains (instance, close_time, torra_key)
    WHERE verdict <> l1_verdict;
CREATE INDEX chains_acting ON chains (instance, close_time, torra_key)
    WHERE verdict = l1_verdict AND verdict <> 'HOLD';

CREATE TABLE journal (
    torra_key TEXT PRIMARY KEY,
    record TEXT NOT NULL, action TEXT NOT NULL, reason TEXT NOT NULL,
    elapsed_ms REAL NOT NULL, provider TEXT NOT NULL, cost_usd REAL NOT NULL, at TEXT NOT NULL
);
CREATE INDEX journal_told ON journal (torra_key, action, reason, elapsed_ms, cost_usd, provider);

CREATE TABLE verdict_tallies (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL,
    ticks INTEGER NOT NULL, changed INTEGER NOT NULL,
    PRIMARY KEY (instance, timeframe)
) WITHOUT ROWID;
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

-- What agents were asked and answered (torra.store.journal).
CREATE TABLE instructions (hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE calls (
    torra_key TEXT NOT NULL, role TEXT NOT NULL, round INTEGER NOT NULL, attempt INTEGER NOT NULL,
    stage TEXT NOT NULL, status TEXT NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    instructions TEXT NOT NULL REFERENCES instructions(hash),
    user TEXT NOT NULL, reply TEXT NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cost_usd REAL NOT NULL, elapsed_ms REAL NOT NULL,
    request_hash TEXT NOT NULL, detail TEXT NOT NULL, at TEXT NOT NULL,
    stop_reason TEXT NOT NULL DEFAULT '', cached_tokens INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (torra_key, role, round, attempt)
);
CREATE INDEX calls_cost ON calls (at, cost_usd);
CREATE INDEX calls_instructions ON calls (instructions);

CREATE TABLE pictures (hash TEXT PRIMARY KEY, data BLOB NOT NULL, at TEXT NOT NULL);
CREATE INDEX pictures_at ON pictures (at);

-- Which desk works on which tick, and how it may trade (torra.store.ticks).
CREATE TABLE ticks (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL,
    close_time TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('claimed', 'released', 'done', 'skipped')),
    reason TEXT NOT NULL, detail TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time)
) WITHOUT ROWID;
CREATE INDEX ticks_close ON ticks (close_time);
CREATE INDEX ticks_claimed ON ticks (instance, timeframe, bar_time, state)
    WHERE state IN ('claimed', 'released');

-- The newest desk's signs of life; they decide nothing (torra.desk_lock does).
CREATE TABLE desk_run (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    run TEXT NOT NULL, process INTEGER NOT NULL,
    started_at TEXT NOT NULL, seen_at TEXT NOT NULL, desk_time TEXT
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

-- Bars, and what goes with a bar: a bar that changes is a further revision (torra.store.bars).
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

CREATE TABLE record_lows (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL, low REAL NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time)
) WITHOUT ROWID;

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

-- Orders and positions (torra.store.trade). An order is sent with an authority and a seal alone.
-- `broker_stop` is the stop in the broker's books where it is another one than Torra's. `misses`
-- counts looks at the books that did not find a position, and `missed_at` is the newest of them.
-- An opening counts as a position in the states of signals_one_opening; WAITING follows its close.
CREATE TABLE signals (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    sid TEXT NOT NULL UNIQUE,
    instance TEXT NOT NULL, symbol TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('open', 'close', 'modify')),
    side TEXT NOT NULL CHECK (side IN ('BUY', 'SELL')),
    lots REAL NOT NULL CHECK (lots > 0),
    entry REAL, stop REAL, target REAL, atr REAL,
    decided_at TEXT NOT NULL, expires TEXT,
    state TEXT NOT NULL, detail TEXT NOT NULL,
    after TEXT, closes TEXT,
    opened_at TEXT, price REAL, ticket TEXT,
    closed_at TEXT, close_price REAL, profit REAL, r_multiple REAL, close_reason TEXT,
    bridge TEXT NOT NULL DEFAULT 'paper', filled_lots REAL, deal TEXT,
    misses INTEGER NOT NULL DEFAULT 0, missed_at TEXT,
    outcome TEXT, evolution TEXT, thesis TEXT,
    authority TEXT NOT NULL DEFAULT '', seal TEXT, broker_stop REAL,
    CHECK (kind <> 'open' OR (entry > 0 AND stop > 0 AND target > 0) IS TRUE)
);
CREATE INDEX signals_state ON signals (state, seq);
CREATE INDEX signals_instance ON signals (instance, state, closed_at);
CREATE INDEX signals_closed ON signals (closed_at) WHERE kind = 'open' AND state = 'CLOSED';
CREATE UNIQUE INDEX signals_one_opening ON signals (instance)
    WHERE kind = 'open' AND state IN
    ('PENDING', 'PUBLISHED', 'CLAIMED', 'PLACED', 'UNKNOWN', 'FILLED', 'PARTIAL');
CREATE INDEX signals_closes ON signals (closes) WHERE closes IS NOT NULL;

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
CREATE INDEX alarms_standing ON alarms (at DESC) WHERE ended_at IS NULL;
CREATE INDEX alarms_newest ON alarms (at DESC);

CREATE TABLE bridges (
    name TEXT PRIMARY KEY, deny TEXT NOT NULL, detail TEXT NOT NULL, facts TEXT NOT NULL,
    at TEXT NOT NULL, reconciled_at TEXT
) WITHOUT ROWID;

CREATE TABLE account_marks (
    id INTEGER PRIMARY KEY,
    bridge TEXT NOT NULL, at TEXT NOT NULL, account INTEGER NOT NULL, currency TEXT NOT NULL,
    balance REAL NOT NULL, equity REAL NOT NULL, held INTEGER NOT NULL
);
CREATE INDEX account_marks_bridge ON account_marks (bridge, id);

CREATE TABLE win_rates (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, side TEXT NOT NULL,
    wins INTEGER NOT NULL CHECK (wins BETWEEN 0 AND trades), trades INTEGER NOT NULL,
    source TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (instance, timeframe, side)
) WITHOUT ROWID;

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

-- Costs (torra.store.ledger). AUTOINCREMENT: a number that was taken back names no other row.
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

CREATE TABLE degradation_levels (
    profile TEXT PRIMARY KEY, degradation_level TEXT NOT NULL, at TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE provider_blocks (
    provider TEXT PRIMARY KEY, reason TEXT NOT NULL, since TEXT NOT NULL, until TEXT NOT NULL
) WITHOUT ROWID;

-- News, and numbers from beside the chart (torra.store.news, torra.store.series): a value that is
-- revised is a further row. A file and a filing have each their own word of the same moment.
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
    UNIQUE (ticker, figure, begins, ends, known_at, source)
);
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

-- Lessons of closed trades, their words, and openings that were vetoed (torra.store.lessons).
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

-- Looks of the promotion rule (torra.store.standings), and the audit log. INSERT OR REPLACE takes
-- out the row whose key or unique columns it finds there. It fires the trigger against deletions
-- only where a connection has recursive_triggers on, which other programs' have not.
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
CREATE TRIGGER agent_standing_never_replaced BEFORE INSERT ON agent_standing
    WHEN EXISTS (
        SELECT 1 FROM agent_standing WHERE id = new.id
        OR (fingerprint = new.fingerprint AND look = new.look)
        OR (trial = new.trial AND look = new.look)
    )
    BEGIN SELECT RAISE(ABORT, 'a look that was taken stays as it is'); END;

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
CREATE TRIGGER audit_never_replaced BEFORE INSERT ON audit
    WHEN EXISTS (SELECT 1 FROM audit WHERE seq = new.seq OR hash = new.hash)
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

-- What other scorers asked and were answered (torra.store.hosted).
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

-- Event streams, notices with their way out, and jobs: equal requests are one job while it goes on.
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

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL, key TEXT NOT NULL, title TEXT NOT NULL, parameters TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('queued', 'running', 'retrying', 'done', 'error', 'cancelled')),
    attempt INTEGER NOT NULL,
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

TOOL_CALLS: Final = """
-- What was read through tools, by whom and with which result (torra.store.tool_calls). Rows are
-- never changed, and only the oldest may go.
CREATE TABLE tool_calls (
    number INTEGER PRIMARY KEY,
    at TEXT NOT NULL, run TEXT NOT NULL, seq INTEGER NOT NULL,
    agent TEXT NOT NULL, turn INTEGER NOT NULL,
    tool TEXT NOT NULL, args TEXT NOT NULL, args_hash TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('ok', 'cached', 'error', 'refused', 'timeout')),
    code TEXT NOT NULL, elapsed_ms REAL NOT NULL,
    result_hash TEXT NOT NULL, facts TEXT NOT NULL, as_of TEXT NOT NULL,
    UNIQUE (run, seq)
);
CREATE TRIGGER tool_calls_never_change BEFORE UPDATE ON tool_calls
    BEGIN SELECT RAISE(ABORT, 'the audit of tools is append-only'); END;
CREATE TRIGGER tool_calls_go_oldest_first BEFORE DELETE ON tool_calls
    WHEN EXISTS (SELECT 1 FROM tool_calls WHERE number < old.number)
    BEGIN SELECT RAISE(ABORT, 'the audit of tools is append-only: the oldest rows go first'); END;
CREATE TRIGGER tool_calls_never_replaced BEFORE INSERT ON tool_calls
    WHEN EXISTS (
        SELECT 1 FROM tool_calls WHERE number = new.number OR (run = new.run AND seq = new.seq)
    )
    BEGIN SELECT RAISE(ABORT, 'the audit of tools is append-only'); END;
"""

RADAR_RUNS: Final = """
-- Scans of the radar (torra.store.radar_runs).
CREATE TABLE radar_runs (
    id INTEGER PRIMARY KEY,
    universe TEXT NOT NULL, as_of TEXT NOT NULL, at TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('ai', 'rules', 'cached', 'error')),
    trigger_code TEXT NOT NULL, document TEXT NOT NULL
);
CREATE INDEX radar_runs_universe ON radar_runs (universe, id) WHERE document <> '';
CREATE INDEX radar_runs_shown ON radar_runs (id) WHERE document <> '';
CREATE INDEX radar_runs_mode ON radar_runs (mode, at);
"""

CHATS: Final = """
-- Questions that were asked, with their answers (torra.store.research.questions).
CREATE TABLE chats (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL, person TEXT NOT NULL, session TEXT NOT NULL,
    reading TEXT NOT NULL, document TEXT NOT NULL, asked_model INTEGER NOT NULL
);
CREATE INDEX chats_session ON chats (person, session, id);
CREATE INDEX chats_model ON chats (person, at) WHERE asked_model;
"""

CARDS: Final = """
-- Cards of the committee (torra.store.research.cards).
CREATE TABLE cards (
    id INTEGER PRIMARY KEY,
    card_id TEXT NOT NULL UNIQUE, asked TEXT NOT NULL, symbol TEXT NOT NULL,
    evidence_until TEXT NOT NULL, at TEXT NOT NULL, document TEXT NOT NULL
);
CREATE INDEX cards_asked ON cards (asked, id);
CREATE INDEX cards_symbol ON cards (symbol, id);
"""
