-- account_marks_bridge
CREATE INDEX account_marks_bridge ON account_marks (bridge, id);

-- agent_standing_look
CREATE UNIQUE INDEX agent_standing_look ON agent_standing (fingerprint, look);

-- agent_standing_trial
CREATE UNIQUE INDEX agent_standing_trial ON agent_standing (trial, look);

-- alarms_newest
CREATE INDEX alarms_newest ON alarms (at DESC);

-- alarms_standing
CREATE INDEX alarms_standing ON alarms (at DESC) WHERE ended_at IS NULL;

-- audit_action
CREATE INDEX audit_action ON audit (action, seq);

-- audit_actor
CREATE INDEX audit_actor ON audit (actor, seq);

-- calls_cost
CREATE INDEX calls_cost ON calls (at, cost_usd);

-- calls_instructions
CREATE INDEX calls_instructions ON calls (instructions);

-- chains_acting
CREATE INDEX chains_acting ON chains (instance, close_time, torra_key)
    WHERE verdict = l1_verdict AND verdict <> 'HOLD';

-- chains_changed
CREATE INDEX chains_changed ON chains (instance, close_time, torra_key)
    WHERE verdict <> l1_verdict;

-- chains_stream
CREATE INDEX chains_stream ON chains (instance, timeframe, close_time);

-- idx__sqlite_migrations_migration_set_name
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");

-- jobs_alike
CREATE UNIQUE INDEX jobs_alike ON jobs (key)
    WHERE state = 'queued' OR state = 'running' OR state = 'retrying';

-- jobs_revision
CREATE INDEX jobs_revision ON jobs (revision);

-- jobs_state
CREATE INDEX jobs_state ON jobs (state, id);

-- journal_told
CREATE INDEX journal_told ON journal (torra_key, action, reason, elapsed_ms, cost_usd, provider);

-- ledger_window
CREATE INDEX ledger_window ON ledger (profile, until, usd);

-- lesson_uses_lesson
CREATE INDEX lesson_uses_lesson ON lesson_uses (lesson);

-- news_at
CREATE INDEX news_at ON news (at);

-- news_first_seen
CREATE INDEX news_first_seen ON news (first_seen);

-- notice_outbox_state
CREATE INDEX notice_outbox_state ON notice_outbox (state, service, next_try);

-- pictures_at
CREATE INDEX pictures_at ON pictures (at);

-- proposals_state
CREATE INDEX proposals_state ON proposals (state, expires);

-- sentiment_torra_key
CREATE UNIQUE INDEX "sentiment_torra_key"
    ON "sentiment" ("torra_key");

-- signal_events_sid
CREATE INDEX signal_events_sid ON signal_events (sid);

-- signals_closed
CREATE INDEX signals_closed ON signals (closed_at) WHERE kind = 'open' AND state = 'CLOSED';

-- signals_closes
CREATE INDEX signals_closes ON signals (closes) WHERE closes IS NOT NULL;

-- signals_instance
CREATE INDEX signals_instance ON signals (instance, state, closed_at);

-- signals_one_opening
CREATE UNIQUE INDEX signals_one_opening ON signals (instance)
    WHERE kind = 'open' AND state IN
    ('PENDING', 'PUBLISHED', 'CLAIMED', 'PLACED', 'UNKNOWN', 'FILLED', 'PARTIAL');

-- signals_state
CREATE INDEX signals_state ON signals (state, seq);

-- sqlite_autoindex_audit_1
(made by SQLite);

-- sqlite_autoindex_calls_1
(made by SQLite);

-- sqlite_autoindex_chains_1
(made by SQLite);

-- sqlite_autoindex_chains_2
(made by SQLite);

-- sqlite_autoindex_facts_1
(made by SQLite);

-- sqlite_autoindex_journal_1
(made by SQLite);

-- sqlite_autoindex_lesson_facts_1
(made by SQLite);

-- sqlite_autoindex_lesson_uses_1
(made by SQLite);

-- sqlite_autoindex_lesson_words_1
(made by SQLite);

-- sqlite_autoindex_notices_1
(made by SQLite);

-- sqlite_autoindex_pictures_1
(made by SQLite);

-- sqlite_autoindex_series_1
(made by SQLite);

-- sqlite_autoindex_signals_1
(made by SQLite);

-- sqlite_autoindex_tick_kinds_1
(made by SQLite);

-- stream_events_one_end
CREATE UNIQUE INDEX stream_events_one_end ON stream_events (stream_id) WHERE terminal = 1;

-- streams_at
CREATE INDEX streams_at ON streams (at);

-- streams_open
CREATE INDEX streams_open ON streams (owner) WHERE ended = 0;

-- streams_tick
CREATE INDEX streams_tick ON streams (torra_key, at);

-- tick_history_kind
CREATE INDEX tick_history_kind ON tick_history (kind, close_time);

-- ticks_claimed
CREATE INDEX ticks_claimed ON ticks (instance, timeframe, bar_time, epoch) WHERE state = 'claimed';

-- ticks_close
CREATE INDEX ticks_close ON ticks (close_time);

-- trade_tags_sid
CREATE INDEX trade_tags_sid ON trade_tags (sid);

-- trading_config_instance
CREATE INDEX trading_config_instance ON trading_config (instance, id);

-- _sqlite_migrations
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);

-- account_marks
CREATE TABLE account_marks (
    id INTEGER PRIMARY KEY,
    bridge TEXT NOT NULL, at TEXT NOT NULL, account INTEGER NOT NULL, currency TEXT NOT NULL,
    balance REAL NOT NULL, equity REAL NOT NULL, held INTEGER NOT NULL
);

-- agent_standing
CREATE TABLE agent_standing (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL, profile TEXT NOT NULL,
    trial INTEGER NOT NULL CHECK (trial > 0), look INTEGER NOT NULL CHECK (look > 0),
    promoted INTEGER NOT NULL CHECK (promoted IN (0, 1)),
    reason TEXT NOT NULL, figures TEXT NOT NULL, at TEXT NOT NULL
);

-- alarms
CREATE TABLE alarms (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, detail TEXT NOT NULL, at TEXT NOT NULL, ended_at TEXT
) WITHOUT ROWID;

-- audit
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL, actor TEXT NOT NULL, address TEXT NOT NULL,
    action TEXT NOT NULL, target TEXT NOT NULL, outcome TEXT NOT NULL,
    before TEXT NOT NULL, after TEXT NOT NULL,
    previous TEXT NOT NULL, hash TEXT NOT NULL UNIQUE
);

-- bars
CREATE TABLE bars (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL,
    revision INTEGER NOT NULL,
    open REAL NOT NULL, high REAL NOT NULL, low REAL NOT NULL, close REAL NOT NULL,
    volume REAL NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time, revision)
) WITHOUT ROWID;

-- bridges
CREATE TABLE bridges (
    name TEXT PRIMARY KEY, deny TEXT NOT NULL, detail TEXT NOT NULL, facts TEXT NOT NULL,
    at TEXT NOT NULL, reconciled_at TEXT
) WITHOUT ROWID;

-- calls
CREATE TABLE calls (
    torra_key TEXT NOT NULL, role TEXT NOT NULL, round INTEGER NOT NULL, attempt INTEGER NOT NULL,
    stage TEXT NOT NULL, status TEXT NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    instructions TEXT NOT NULL REFERENCES instructions(hash),
    user TEXT NOT NULL, reply TEXT NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cost_usd REAL NOT NULL, elapsed_ms REAL NOT NULL,
    request_hash TEXT NOT NULL, detail TEXT NOT NULL, at TEXT NOT NULL, "stop_reason" TEXT NOT NULL DEFAULT '', "cached_tokens" INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (torra_key, role, round, attempt)
);

-- chains
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

-- desk_state
CREATE TABLE desk_state (
    id INTEGER PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('ACTIVE', 'REDUCING', 'HALTED')),
    reason TEXT NOT NULL, at TEXT NOT NULL
);

-- facts
CREATE TABLE facts (
    number INTEGER PRIMARY KEY,
    ticker TEXT NOT NULL, figure TEXT NOT NULL, begins TEXT NOT NULL, ends TEXT NOT NULL,
    known_at TEXT NOT NULL, first_seen TEXT NOT NULL,
    value REAL NOT NULL, unit TEXT NOT NULL, source TEXT NOT NULL,
    UNIQUE (ticker, figure, begins, ends, known_at, source)
);

-- flow
CREATE TABLE flow (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL,
    ticks INTEGER NOT NULL, up INTEGER NOT NULL, down INTEGER NOT NULL,
    spread_mean REAL, spread_widest REAL, levels INTEGER, bid_volume REAL, ask_volume REAL,
    imbalance REAL, slippage REAL, events INTEGER,
    source TEXT NOT NULL, first_seen TEXT NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time)
) WITHOUT ROWID;

-- fundamentals
CREATE TABLE fundamentals (
    ticker TEXT NOT NULL, first_seen TEXT NOT NULL, figures TEXT NOT NULL,
    PRIMARY KEY (ticker, first_seen)
) WITHOUT ROWID;

-- hosted
CREATE TABLE hosted (
    torra_key TEXT NOT NULL, asked TEXT NOT NULL, profile TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('claimed', 'open', 'final')),
    owner TEXT NOT NULL, expires TEXT NOT NULL,
    revision INTEGER NOT NULL, chart TEXT NOT NULL, record TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (torra_key, asked)
) WITHOUT ROWID;

-- hosted_outcomes
CREATE TABLE hosted_outcomes (
    torra_key TEXT PRIMARY KEY,
    verdict TEXT NOT NULL CHECK (verdict IN ('BUY', 'SELL', 'HOLD')), r REAL, at TEXT NOT NULL
) WITHOUT ROWID;

-- instructions
CREATE TABLE instructions (hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;

-- jobs
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

-- journal
CREATE TABLE journal (
    torra_key TEXT PRIMARY KEY,
    record TEXT NOT NULL, action TEXT NOT NULL, reason TEXT NOT NULL,
    elapsed_ms REAL NOT NULL, provider TEXT NOT NULL, cost_usd REAL NOT NULL, at TEXT NOT NULL
);

-- latches
CREATE TABLE latches (
    instance TEXT NOT NULL, side TEXT NOT NULL CHECK (side IN ('BUY', 'SELL')), at TEXT NOT NULL,
    PRIMARY KEY (instance, side)
) WITHOUT ROWID;

-- lease
CREATE TABLE lease (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    owner TEXT NOT NULL, epoch INTEGER NOT NULL,
    expires_at TEXT NOT NULL, renewed_at TEXT NOT NULL, desk_time TEXT
);

-- ledger
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

-- lesson_facts
CREATE TABLE lesson_facts (
    number INTEGER PRIMARY KEY,
    sid TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('trade', 'vetoed')),
    instance TEXT NOT NULL, symbol TEXT NOT NULL, asset TEXT NOT NULL, timeframe TEXT NOT NULL,
    side TEXT NOT NULL, outcome TEXT NOT NULL, closed_at TEXT NOT NULL, known_at TEXT NOT NULL,
    r REAL NOT NULL, facts TEXT NOT NULL,
    UNIQUE (sid, kind)
);

-- lesson_search
CREATE VIRTUAL TABLE lesson_search USING fts5(words, about);

-- lesson_search_config
CREATE TABLE 'lesson_search_config'(k PRIMARY KEY, v) WITHOUT ROWID;

-- lesson_search_content
CREATE TABLE 'lesson_search_content'(id INTEGER PRIMARY KEY, c0, c1);

-- lesson_search_data
CREATE TABLE 'lesson_search_data'(id INTEGER PRIMARY KEY, block BLOB);

-- lesson_search_docsize
CREATE TABLE 'lesson_search_docsize'(id INTEGER PRIMARY KEY, sz BLOB);

-- lesson_search_idx
CREATE TABLE 'lesson_search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

-- lesson_uses
CREATE TABLE lesson_uses (
    number INTEGER PRIMARY KEY,
    lesson INTEGER NOT NULL REFERENCES lesson_facts(number),
    torra_key TEXT NOT NULL, place INTEGER NOT NULL,
    UNIQUE (torra_key, lesson)
);

-- lesson_words
CREATE TABLE lesson_words (
    number INTEGER PRIMARY KEY,
    lesson INTEGER NOT NULL REFERENCES lesson_facts(number),
    author TEXT NOT NULL, known_at TEXT NOT NULL,
    setup TEXT NOT NULL, outcome TEXT NOT NULL, rule TEXT NOT NULL,
    request_hash TEXT NOT NULL, cost_usd REAL NOT NULL, flags TEXT NOT NULL,
    UNIQUE (lesson, author)
);

-- news
CREATE TABLE news (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL, topic TEXT NOT NULL,
    headline TEXT NOT NULL, summary TEXT NOT NULL, url TEXT NOT NULL, tickers TEXT NOT NULL,
    published TEXT NOT NULL, first_seen TEXT NOT NULL,
    score REAL NOT NULL CHECK (score BETWEEN -1 AND 1), event TEXT NOT NULL, at TEXT NOT NULL
) WITHOUT ROWID;

-- notice_cursors
CREATE TABLE notice_cursors (name TEXT PRIMARY KEY, place TEXT NOT NULL) WITHOUT ROWID;

-- notice_outbox
CREATE TABLE notice_outbox (
    notice INTEGER NOT NULL REFERENCES notices(id), service TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'sending', 'sent', 'dropped', 'failed')),
    tries INTEGER NOT NULL DEFAULT 0, next_try TEXT NOT NULL, detail TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (notice, service)
) WITHOUT ROWID;

-- notice_services
CREATE TABLE notice_services (
    service TEXT PRIMARY KEY, detail TEXT NOT NULL, at TEXT NOT NULL
) WITHOUT ROWID;

-- notices
CREATE TABLE notices (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    level TEXT NOT NULL CHECK (level IN ('alarm', 'decision', 'trade', 'note')),
    title TEXT NOT NULL, text TEXT NOT NULL, instance TEXT NOT NULL,
    desk_time TEXT NOT NULL, at TEXT NOT NULL, silent INTEGER NOT NULL CHECK (silent IN (0, 1))
);

-- paper_cursor
CREATE TABLE paper_cursor (instance TEXT PRIMARY KEY, bar_time TEXT NOT NULL) WITHOUT ROWID;

-- pictures
CREATE TABLE pictures (hash TEXT PRIMARY KEY, data BLOB NOT NULL, at TEXT NOT NULL);

-- proposals
CREATE TABLE proposals (
    sid TEXT PRIMARY KEY,
    torra_key TEXT NOT NULL, instance TEXT NOT NULL, symbol TEXT NOT NULL, timeframe TEXT NOT NULL,
    bar_time TEXT NOT NULL, verdict TEXT NOT NULL, action TEXT NOT NULL, drafts TEXT NOT NULL,
    price REAL NOT NULL, atr REAL NOT NULL, multiplier REAL NOT NULL,
    created_at TEXT NOT NULL, expires TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('WAITING', 'APPROVED', 'REJECTED', 'EXPIRED', 'DENIED')),
    reason TEXT NOT NULL, decided_at TEXT
) WITHOUT ROWID;

-- provider_blocks
CREATE TABLE provider_blocks (
    provider TEXT PRIMARY KEY, reason TEXT NOT NULL, since TEXT NOT NULL, until TEXT NOT NULL
) WITHOUT ROWID;

-- record_highs
CREATE TABLE record_highs (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL, high REAL NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time)
) WITHOUT ROWID;

-- record_lows
CREATE TABLE record_lows (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL, low REAL NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time)
) WITHOUT ROWID;

-- rungs
CREATE TABLE rungs (
    profile TEXT PRIMARY KEY, rung TEXT NOT NULL, at TEXT NOT NULL
) WITHOUT ROWID;

-- sentiment
CREATE TABLE sentiment (
    id INTEGER PRIMARY KEY,
    timestamp TEXT, timeframe TEXT,
    price_action REAL, key_levels REAL, momentum REAL, structure REAL, ath REAL,
    composite REAL, consensus REAL,
    verdict TEXT, source_type TEXT
, "agent_deliberation" TEXT, "torra_key" TEXT);

-- series
CREATE TABLE series (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL, at TEXT NOT NULL, known_at TEXT NOT NULL, first_seen TEXT NOT NULL,
    value REAL NOT NULL, source TEXT NOT NULL,
    UNIQUE (name, at, known_at, source)
);

-- signal_events
CREATE TABLE signal_events (
    id INTEGER PRIMARY KEY,
    sid TEXT NOT NULL REFERENCES signals(sid),
    from_state TEXT, to_state TEXT NOT NULL, detail TEXT NOT NULL, at TEXT NOT NULL
);

-- signals
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
    closed_at TEXT, close_price REAL, profit REAL, r_multiple REAL, close_reason TEXT, bridge TEXT NOT NULL DEFAULT 'paper', filled_lots REAL, deal TEXT, misses INTEGER NOT NULL DEFAULT 0, missed_at TEXT, outcome TEXT, evolution TEXT, thesis TEXT, authority TEXT NOT NULL DEFAULT 'older', seal TEXT, broker_stop REAL,
    CHECK (kind <> 'open' OR (entry > 0 AND stop > 0 AND target > 0) IS TRUE)
);

-- situations
CREATE TABLE situations (sid TEXT PRIMARY KEY, situation TEXT NOT NULL) WITHOUT ROWID;

-- spreads
CREATE TABLE spreads (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL,
    revision INTEGER NOT NULL, spread REAL NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time, revision)
) WITHOUT ROWID;

-- sqlite_sequence
CREATE TABLE sqlite_sequence(name,seq);

-- stream_events
CREATE TABLE stream_events (
    stream_id TEXT NOT NULL, seq INTEGER NOT NULL,
    event TEXT NOT NULL, terminal INTEGER NOT NULL CHECK (terminal IN (0, 1)),
    payload TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (stream_id, seq)
) WITHOUT ROWID;

-- streams
CREATE TABLE streams (
    stream_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL, torra_key TEXT NOT NULL, owner TEXT NOT NULL,
    at TEXT NOT NULL, ended INTEGER NOT NULL DEFAULT 0 CHECK (ended IN (0, 1))
) WITHOUT ROWID;

-- tick_history
CREATE TABLE tick_history (
    sentiment_id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL REFERENCES tick_kinds(id), close_time TEXT NOT NULL
);

-- tick_kinds
CREATE TABLE tick_kinds (
    id INTEGER PRIMARY KEY,
    instance TEXT NOT NULL, timeframe TEXT NOT NULL,
    l1_verdict TEXT NOT NULL, verdict TEXT NOT NULL,
    action TEXT NOT NULL, reason TEXT NOT NULL, source TEXT NOT NULL,
    ticks INTEGER NOT NULL,
    UNIQUE (instance, timeframe, l1_verdict, verdict, action, reason, source)
);

-- ticks
CREATE TABLE ticks (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, bar_time TEXT NOT NULL,
    close_time TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('claimed', 'done', 'skipped')),
    epoch INTEGER NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (instance, timeframe, bar_time)
) WITHOUT ROWID;

-- trade_notes
CREATE TABLE trade_notes (
    sid TEXT PRIMARY KEY REFERENCES signals(sid),
    note TEXT NOT NULL, tags TEXT NOT NULL,
    revision INTEGER NOT NULL, actor TEXT NOT NULL, at TEXT NOT NULL
) WITHOUT ROWID;

-- trade_tags
CREATE TABLE trade_tags (
    tag TEXT NOT NULL, sid TEXT NOT NULL REFERENCES signals(sid),
    PRIMARY KEY (tag, sid)
) WITHOUT ROWID;

-- trading_config
CREATE TABLE trading_config (
    id INTEGER PRIMARY KEY,
    instance TEXT NOT NULL, digest TEXT NOT NULL, profile TEXT NOT NULL, applied_at TEXT NOT NULL
);

-- verdict_tallies
CREATE TABLE verdict_tallies (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL,
    ticks INTEGER NOT NULL, changed INTEGER NOT NULL,
    PRIMARY KEY (instance, timeframe)
) WITHOUT ROWID;

-- veto_stretches
CREATE TABLE veto_stretches (instance TEXT PRIMARY KEY, side TEXT NOT NULL) WITHOUT ROWID;

-- vetoed_openings
CREATE TABLE vetoed_openings (
    sid TEXT PRIMARY KEY, instance TEXT NOT NULL, told TEXT NOT NULL
) WITHOUT ROWID;

-- win_rates
CREATE TABLE win_rates (
    instance TEXT NOT NULL, timeframe TEXT NOT NULL, side TEXT NOT NULL,
    wins INTEGER NOT NULL CHECK (wins BETWEEN 0 AND trades), trades INTEGER NOT NULL,
    source TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (instance, timeframe, side)
) WITHOUT ROWID;

-- agent_standing_never_changes
CREATE TRIGGER agent_standing_never_changes BEFORE UPDATE ON agent_standing
    BEGIN SELECT RAISE(ABORT, 'a look that was taken stays as it is'); END;

-- agent_standing_never_replaced
CREATE TRIGGER agent_standing_never_replaced BEFORE INSERT ON agent_standing
    WHEN EXISTS (
        SELECT 1 FROM agent_standing WHERE id = new.id
        OR (fingerprint = new.fingerprint AND look = new.look)
        OR (trial = new.trial AND look = new.look)
    )
    BEGIN SELECT RAISE(ABORT, 'a look that was taken stays as it is'); END;

-- agent_standing_never_shrinks
CREATE TRIGGER agent_standing_never_shrinks BEFORE DELETE ON agent_standing
    BEGIN SELECT RAISE(ABORT, 'a look that was taken stays as it is'); END;

-- audit_never_changes
CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

-- audit_never_replaced
CREATE TRIGGER audit_never_replaced BEFORE INSERT ON audit
    WHEN EXISTS (SELECT 1 FROM audit WHERE seq = new.seq OR hash = new.hash)
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

-- audit_never_shrinks
CREATE TRIGGER audit_never_shrinks BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

-- facts_never_change
CREATE TRIGGER facts_never_change BEFORE UPDATE ON facts
    BEGIN SELECT RAISE(ABORT, 'what was known of a company stays as it is'); END;

-- facts_never_replaced
CREATE TRIGGER facts_never_replaced BEFORE INSERT ON facts
    WHEN EXISTS (
        SELECT 1 FROM facts WHERE number = new.number
        OR (ticker = new.ticker AND figure = new.figure AND begins = new.begins
            AND ends = new.ends AND known_at = new.known_at AND source = new.source)
    )
    BEGIN SELECT RAISE(ABORT, 'what was known of a company stays as it is'); END;

-- facts_never_shrink
CREATE TRIGGER facts_never_shrink BEFORE DELETE ON facts
    BEGIN SELECT RAISE(ABORT, 'what was known of a company stays as it is'); END;

-- flow_goes_with_bars
CREATE TRIGGER flow_goes_with_bars BEFORE DELETE ON flow
    WHEN EXISTS (
        SELECT 1 FROM bars WHERE instance = old.instance AND timeframe = old.timeframe
        AND bar_time = old.bar_time
    )
    BEGIN SELECT RAISE(ABORT, 'the order flow of a bar stays as long as the bar'); END;

-- flow_never_changes
CREATE TRIGGER flow_never_changes BEFORE UPDATE ON flow
    BEGIN SELECT RAISE(ABORT, 'the order flow of a bar stays as it was first seen'); END;

-- flow_never_replaced
CREATE TRIGGER flow_never_replaced BEFORE INSERT ON flow
    WHEN EXISTS (
        SELECT 1 FROM flow WHERE instance = new.instance AND timeframe = new.timeframe
        AND bar_time = new.bar_time
    )
    BEGIN SELECT RAISE(ABORT, 'the order flow of a bar stays as it was first seen'); END;

-- lesson_facts_never_change
CREATE TRIGGER lesson_facts_never_change BEFORE UPDATE ON lesson_facts
    BEGIN SELECT RAISE(ABORT, 'the facts of a trade stay as they are'); END;

-- lesson_facts_never_replaced
CREATE TRIGGER lesson_facts_never_replaced BEFORE INSERT ON lesson_facts
    WHEN EXISTS (
        SELECT 1 FROM lesson_facts WHERE number = new.number
        OR (sid = new.sid AND kind = new.kind)
    )
    BEGIN SELECT RAISE(ABORT, 'the facts of a trade stay as they are'); END;

-- lesson_facts_never_shrink
CREATE TRIGGER lesson_facts_never_shrink BEFORE DELETE ON lesson_facts
    BEGIN SELECT RAISE(ABORT, 'the facts of a trade stay as they are'); END;

-- lesson_words_never_change
CREATE TRIGGER lesson_words_never_change BEFORE UPDATE ON lesson_words
    BEGIN SELECT RAISE(ABORT, 'what was written of a trade stays as it is'); END;

-- lesson_words_never_replaced
CREATE TRIGGER lesson_words_never_replaced BEFORE INSERT ON lesson_words
    WHEN EXISTS (
        SELECT 1 FROM lesson_words WHERE number = new.number
        OR (lesson = new.lesson AND author = new.author)
    )
    BEGIN SELECT RAISE(ABORT, 'what was written of a trade stays as it is'); END;

-- lesson_words_never_shrink
CREATE TRIGGER lesson_words_never_shrink BEFORE DELETE ON lesson_words
    BEGIN SELECT RAISE(ABORT, 'what was written of a trade stays as it is'); END;

-- series_never_changes
CREATE TRIGGER series_never_changes BEFORE UPDATE ON series
    BEGIN SELECT RAISE(ABORT, 'what was known of a series stays as it is'); END;

-- series_never_replaced
CREATE TRIGGER series_never_replaced BEFORE INSERT ON series
    WHEN EXISTS (
        SELECT 1 FROM series WHERE number = new.number
        OR (name = new.name AND at = new.at AND known_at = new.known_at AND source = new.source)
    )
    BEGIN SELECT RAISE(ABORT, 'what was known of a series stays as it is'); END;

-- series_never_shrinks
CREATE TRIGGER series_never_shrinks BEFORE DELETE ON series
    BEGIN SELECT RAISE(ABORT, 'what was known of a series stays as it is'); END;

-- situations_never_change
CREATE TRIGGER situations_never_change BEFORE UPDATE ON situations
    BEGIN SELECT RAISE(ABORT, 'the market of an opening stays as it was seen'); END;

-- spreads_go_with_bars
CREATE TRIGGER spreads_go_with_bars BEFORE DELETE ON spreads
    WHEN EXISTS (
        SELECT 1 FROM bars WHERE instance = old.instance AND timeframe = old.timeframe
        AND bar_time = old.bar_time AND revision = old.revision
    )
    BEGIN SELECT RAISE(ABORT, 'a spread stays as long as its bar'); END;

-- spreads_never_change
CREATE TRIGGER spreads_never_change BEFORE UPDATE ON spreads
    BEGIN SELECT RAISE(ABORT, 'the first spread of a bar stays as it is'); END;

-- spreads_never_replaced
CREATE TRIGGER spreads_never_replaced BEFORE INSERT ON spreads
    WHEN EXISTS (
        SELECT 1 FROM spreads WHERE instance = new.instance AND timeframe = new.timeframe
        AND bar_time = new.bar_time AND revision = new.revision
    )
    BEGIN SELECT RAISE(ABORT, 'the first spread of a bar stays as it is'); END;

-- tick_history_down
CREATE TRIGGER tick_history_down AFTER DELETE ON chains BEGIN
    DELETE FROM tick_history WHERE sentiment_id = old.sentiment_id;
END;

-- tick_history_told
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

-- tick_history_up
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

-- tick_kinds_down
CREATE TRIGGER tick_kinds_down AFTER DELETE ON tick_history BEGIN
    UPDATE tick_kinds SET ticks = ticks - 1 WHERE id = old.kind;
END;

-- tick_kinds_moved
CREATE TRIGGER tick_kinds_moved AFTER UPDATE OF kind ON tick_history BEGIN
    UPDATE tick_kinds SET ticks = ticks - 1 WHERE id = old.kind;
    UPDATE tick_kinds SET ticks = ticks + 1 WHERE id = new.kind;
END;

-- tick_kinds_up
CREATE TRIGGER tick_kinds_up AFTER INSERT ON tick_history BEGIN
    UPDATE tick_kinds SET ticks = ticks + 1 WHERE id = new.kind;
END;

-- verdict_tallies_down
CREATE TRIGGER verdict_tallies_down AFTER DELETE ON chains BEGIN
    UPDATE verdict_tallies SET ticks = ticks - 1,
        changed = changed - (old.verdict <> old.l1_verdict)
        WHERE instance = old.instance AND timeframe = old.timeframe;
END;

-- verdict_tallies_up
CREATE TRIGGER verdict_tallies_up AFTER INSERT ON chains BEGIN
    INSERT INTO verdict_tallies (instance, timeframe, ticks, changed)
        VALUES (new.instance, new.timeframe, 1, new.verdict <> new.l1_verdict)
        ON CONFLICT (instance, timeframe) DO UPDATE
        SET ticks = ticks + 1, changed = changed + excluded.changed;
END;

PRAGMA user_version = 0;
