"""Planted faults of what is kept: the database, its schema, lease and claims, and files in transit.

Each takes out one safeguard; every test that it names has to fail then.
"""

from __future__ import annotations

from typing import Final

from tests.faults.planting import Edit, Fault

CONNECTION: Final = "torra/store/connection.py"
SCHEMA: Final = "torra/store/migrations.py"
DROP: Final = "torra/bridges/torra/drop_folder.py"
TICKS: Final = "torra/store/ticks.py"
SIGNALS: Final = "torra/store/signals.py"
DESK: Final = "torra/desk/schedule.py"
TICK: Final = "torra_trader.py"

TRANSACTIONS: Final = "tests/store/test_transactions.py::"
MIGRATIONS: Final = "tests/store/test_migrations.py::"
FOLDER: Final = "tests/bridges/test_drop_folder.py::"
CLAIMS: Final = "tests/store/test_claims.py::"
STORM: Final = (
    "tests/faults/test_double_start.py::test_a_storm_of_restarts_loses_no_close_and_never_goes_back"
)
LEASE: Final = "tests/store/test_lease.py::"
OUTBOX: Final = "tests/store/test_outbox.py::"
DESK_FAULTS: Final = "tests/desk/test_desk_faults.py::"

DISK: Final = "tests/faults/test_failing_disk.py::"
DURABLE: Final = TRANSACTIONS + "test_every_connection_is_durable_and_strict"
SYNCED: Final = FOLDER + "test_the_system_is_asked_to_put_the_text_and_then_its_name_on_the_disk"
ORDER_SYNCED: Final = DISK + "test_an_order_is_on_the_disk_before_it_is_told"
LOST_LOG: Final = TRANSACTIONS + (
    "test_a_log_that_was_deleted_is_noticed_and_its_commits_are_saved"
)
ONCE: Final = MIGRATIONS + "test_what_may_be_there_once_is_unique_in_the_file_itself"


def unique(name: str, promise: str, what: str, old: str, *also: Edit) -> Fault:
    """Take a UNIQUE out of the schema."""
    return Fault(
        f"unique-{name}",
        promise,
        f"the schema lets {what} be there twice",
        SCHEMA,
        old,
        old.replace(" UNIQUE", "").replace("unique=True", "unique=False"),
        (ONCE,),
        also=also,
    )


STORAGE: Final = (
    Fault(
        "commit-fsync",
        "D3",
        "a commit is not synced to the disk, and no connection looks whether it is",
        CONNECTION,
        'db.execute("PRAGMA synchronous = FULL")',
        'db.execute("PRAGMA synchronous = NORMAL")',
        (DURABLE, DISK + "test_every_commit_is_synced"),
        also=(Edit(CONNECTION, "SYNCHRONOUS_FULL: Final = 2", "SYNCHRONOUS_FULL: Final = 1"),),
    ),
    Fault(
        "write-ahead-log",
        "D3",
        "the database does not write ahead",
        CONNECTION,
        'db.execute("PRAGMA journal_mode = WAL")',
        'db.execute("PRAGMA journal_mode = DELETE")',
        (DURABLE,),
        also=(Edit(CONNECTION, '"journal_mode": "wal"', '"journal_mode": "delete"'),),
    ),
    Fault(
        "foreign-keys",
        "D3",
        "foreign keys are not enforced",
        CONNECTION,
        'db.execute("PRAGMA foreign_keys = ON")',
        'db.execute("PRAGMA foreign_keys = OFF")',
        (DURABLE,),
        also=(Edit(CONNECTION, '"foreign_keys": 1,', '"foreign_keys": 0,'),),
    ),
    Fault(
        "settings-asserted",
        "D3",
        "no connection asserts its settings",
        CONNECTION,
        "        check_settings(db, path, busy_seconds)\n",
        "",
        (TRANSACTIONS + "test_a_connection_that_cannot_be_durable_is_refused",),
    ),
    Fault(
        "immediate",
        "D7",
        "a transaction begins deferred",
        CONNECTION,
        'db.conn.execute("BEGIN IMMEDIATE")',
        'db.conn.execute("BEGIN")',
        (TRANSACTIONS + "test_a_transaction_is_a_writers_from_its_beginning",),
    ),
    Fault(
        "immediate-impatient",
        "D7",
        "a transaction that may wait for less than its connection begins deferred",
        CONNECTION,
        'db.execute("BEGIN IMMEDIATE")',
        'db.execute("BEGIN")',
        (
            TRANSACTIONS + "test_a_transaction_is_a_writers_from_its_beginning",
            TRANSACTIONS + "test_a_foreign_writer_is_waited_for_then_told",
        ),
    ),
    Fault(
        "rollback",
        "D1",
        "a transaction that raises is kept as far as it came",
        CONNECTION,
        "                    db.rollback()\n                    raise\n",
        '                    db.execute("COMMIT")\n                    raise\n',
        (TRANSACTIONS + "test_an_exception_leaves_nothing",),
    ),
    Fault(
        "inner-rollback",
        "D1",
        "an inner transaction that failed is not undone",
        CONNECTION,
        '                conn.execute(f"ROLLBACK TO {name}")\n',
        "",
        (TRANSACTIONS + "test_an_inner_failure_that_is_caught_undoes_its_own_part_only",),
    ),
    Fault(
        "stored-nan",
        "L1",
        "a number that is not finite is stored",
        CONNECTION,
        "if isinstance(value, float) and not math.isfinite(value):",
        "if False:",
        (TRANSACTIONS + "test_a_number_that_is_not_finite_is_never_stored",),
    ),
    Fault(
        "one-transaction",
        "D1",
        "a tick is stored in many small transactions",
        TICK,
        "    with _write(edges, deadline):\n        saved = ",
        "    with __import__('contextlib').nullcontext():\n        saved = ",
        ("tests/store/test_full_disk.py::test_a_disk_that_fills_up_at_any_page_damages_nothing",),
    ),
    Fault(
        "disk-fault-halts",
        "D6",
        "a desk whose database failed in a tick goes on trading",
        DESK,
        '            self.kill_switch.fault(f"store: {error}")\n',
        "            pass\n",
        ("tests/store/test_full_disk.py::test_a_disk_that_fills_up_at_any_page_damages_nothing",),
    ),
    Fault(
        "disk-fault-halts-courier",
        "D6",
        "a desk whose database failed while it sent goes on trading",
        "torra/trading/courier.py",
        '            self._kill_switch.fault(f"store: {error}")\n',
        "            pass\n",
        ("tests/trading/test_courier.py::test_a_broken_database_halts_the_desk",),
    ),
    Fault(
        "migration-backup",
        "D8",
        "no copy is made before a migration",
        SCHEMA,
        "backup = _back_up(db, path, now()) if db.table_names() else None",
        "backup = None",
        (MIGRATIONS + "test_the_backup_is_the_old_file_and_opens",),
    ),
    Fault(
        "migration-whole",
        "D8",
        "a migration commits each of its steps",
        SCHEMA,
        "    with transaction():\n        if _pending(db, path):\n            steps.apply(db)\n",
        "    if _pending(db, path):\n        steps.apply(db)\n",
        (MIGRATIONS + "test_a_kill_inside_a_migration_leaves_old_or_new",),
    ),
    Fault(
        "newer-schema",
        "R8",
        "a database of a newer program is opened",
        SCHEMA,
        '    if unknown:\n        raise ConfigError(\n            f"{path} has schema',
        '    if False:\n        raise ConfigError(\n            f"{path} has schema',
        (MIGRATIONS + "test_a_newer_schema_is_refused",),
    ),
    unique("tick", "D4", "a tick's row", 'index_name="sentiment_torra_key", unique=True,'),
    unique(
        "twin",
        "D1",
        "a row's twin",
        "sentiment_id INTEGER NOT NULL UNIQUE REFERENCES sentiment(id)",
    ),
    unique(
        "signal",
        "D4",
        "a signal",
        "sid TEXT NOT NULL UNIQUE,",
        Edit(SCHEMA, "sid TEXT NOT NULL REFERENCES signals(sid),", "sid TEXT NOT NULL,"),
    ),
    unique("stream-end", "S3", "the end of a stream", "CREATE UNIQUE INDEX stream_events_one_end"),
    unique("audit", "doors", "an entry of the audit log", "hash TEXT NOT NULL UNIQUE"),
    unique("look", "L4", "a look at agents", "CREATE UNIQUE INDEX agent_standing_look"),
    unique("setting", "L4", "a setting's number", "CREATE UNIQUE INDEX agent_standing_trial"),
    Fault(
        "unique-opening",
        "D4",
        "the schema lets an instance have two openings",
        SCHEMA,
        "DROP INDEX signals_one_opening;\nCREATE UNIQUE INDEX",
        "DROP INDEX signals_one_opening;\nCREATE INDEX",
        (
            ONCE,
            OUTBOX + "test_a_second_opening_is_refused",
            OUTBOX + "test_an_instance_never_holds_two",
        ),
    ),
    Fault(
        "signal-once",
        "D4",
        "a decision that is in the outbox is not looked for",
        SIGNALS,
        'if self._row("SELECT 1 AS found FROM signals WHERE sid = ?", known["sid"]):',
        "if False:",
        (OUTBOX + "test_a_signal_is_written_once",),
    ),
    Fault(
        "signal-steps",
        "D4",
        "a signal may go from any state to any other",
        SIGNALS,
        '            check_transition(row["state"], state)\n',
        "",
        (OUTBOX + "test_only_steps_of_the_table_are_taken",),
    ),
    Fault(
        "same-step-twice",
        "D4",
        "a step that was taken is taken again",
        SIGNALS,
        '            if row["state"] == state:\n                return False\n',
        "",
        (OUTBOX + "test_a_position_is_closed_once",),
    ),
    # --- lease and claims -------------------------------------------------------------------------
    Fault(
        "lease-exclusive",
        "T5",
        "a second desk gets the lease too",
        TICKS,
        '                if row["owner"] != owner:\n                    return None\n',
        "",
        (
            LEASE + "test_the_first_owner_holds_it_and_the_second_does_not",
            LEASE + "test_two_never_hold_it_at_once",
        ),
    ),
    Fault(
        "lease-runs-out",
        "T5",
        "the lease of a dead desk never ends",
        TICKS,
        "and now < expires <= renewed",
        "and expires <= renewed",
        (LEASE + "test_a_lease_that_ran_out_is_taken_over",),
    ),
    Fault(
        "lease-clock-set-back",
        "T4",
        "a lease of a clock that was wrong holds until that time comes",
        TICKS,
        "renewed + longest and not ahead",
        "renewed + longest",
        (LEASE + "test_a_lease_of_a_clock_that_was_ahead_is_free_when_that_is_put_right",),
    ),
    Fault(
        "lease-too-long",
        "T5",
        "a lease whose end is damaged keeps every desk out for years",
        TICKS,
        "now < expires <= renewed + longest",
        "now < expires",
        (LEASE + "test_a_lease_that_is_longer_than_any_is_nobodys",),
    ),
    Fault(
        "lost-log",
        "D9",
        "a log that was deleted is written on to",
        CONNECTION,
        "if held.log is not None and _identity(self._log_path) != held.log:",
        "if False:",
        (LOST_LOG,),
    ),
    Fault(
        "lost-log-saved",
        "D9",
        "what a deleted log holds is not put into the database",
        CONNECTION,
        'held.db.execute("PRAGMA wal_checkpoint(FULL)")',
        "pass",
        (LOST_LOG,),
    ),
    Fault(
        "lost-log-mixed",
        "D9",
        "a deleted log is put into a database that another program writes to by now",
        CONNECTION,
        "if not _has_content(self._log_path):",
        "if True:",
        (TRANSACTIONS + "test_a_log_that_another_program_began_is_not_written_over",),
    ),
    Fault(
        "moved-database",
        "D9",
        "a database that was deleted or replaced is written on to",
        CONNECTION,
        "if self._identity is not None and _identity(self.path) != self._identity:",
        "if False:",
        (TRANSACTIONS + "test_a_file_that_was_deleted_or_replaced_is_not_written_to",),
    ),
    Fault(
        "epoch",
        "T5",
        "a new holder works under the epoch of the one before",
        TICKS,
        'epoch = int(row["epoch"]) + 1 if row else 1',
        'epoch = int(row["epoch"]) if row else 1',
        (
            LEASE + "test_releasing_frees_it_and_the_epoch_grows",
            LEASE + "test_the_same_owner_coming_back_late_is_a_new_holder",
            STORM,
        ),
    ),
    Fault(
        "fence",
        "T5",
        "a desk whose lease was taken over still writes",
        TICKS,
        'if row is not None and row["epoch"] > epoch:\n            raise',
        "if False:\n            raise",
        (DESK_FAULTS + "test_a_desk_whose_lease_was_taken_over_writes_nothing",),
    ),
    Fault(
        "fence-doubt",
        "T6",
        "a desk whose lease was taken over doubts the orders of the one that works",
        "signal_bridge.py",
        "        if not ours():\n            return\n        for row in _rows",
        "        for row in _rows",
        (
            DESK_FAULTS
            + "test_a_clock_that_is_set_back_casts_doubt_on_the_orders_of_the_one_who_works",
        ),
    ),
    Fault(
        "claim-once",
        "T2",
        "a desk claims a tick that it is working on",
        TICKS,
        '(row["state"] != "claimed" or row["epoch"] >= epoch)',
        '(row["state"] != "claimed" or row["epoch"] > epoch)',
        (
            CLAIMS + "test_a_tick_is_claimed_once",
            CLAIMS + "test_of_threads_that_want_a_tick_one_gets_it",
        ),
    ),
    Fault(
        "claim-lost",
        "D4",
        "who has lost its claim stores the tick all the same",
        TICKS,
        '        if not changed:\n            raise StoreUnavailable(f"claim lost',
        '        if False:\n            raise StoreUnavailable(f"claim lost',
        (CLAIMS + "test_who_lost_the_claim_stores_nothing",),
    ),
    Fault(
        "claim-given-back",
        "D1",
        "a tick that raises keeps its claim",
        TICK,
        "        _release(database, key, edges.epoch)\n        raise\n",
        "        raise\n",
        ("tests/tick/test_tick.py::test_a_tick_that_raises_gives_its_claim_back",),
    ),
    Fault(
        "skip-recorded",
        "T2",
        "a bar that is skipped leaves no row",
        "torra/desk/write_off.py",
        "database.skip_ticks(part, epoch)",
        "pass",
        ("tests/tick/test_tick.py::test_a_broken_tick_ends_as_a_skip_that_names_the_fault",),
    ),
    Fault(
        "clock-settles",
        "T4",
        "bars are written off right after the clock jumped",
        DESK,
        "if self.settling:",
        "if False:",
        (DESK_FAULTS + "test_a_clock_that_stays_ahead_writes_no_bar_off_for_a_while",),
    ),
    Fault(
        "late-bar-silent",
        "M1",
        "a late bar trades though a newer tick is done",
        DESK,
        "silent=self._overtaken(key)",
        "silent=False",
        (DESK_FAULTS + "test_a_late_bar_is_a_record_and_no_trade_once_a_newer_tick_is_done",),
    ),
    # --- files in transit -------------------------------------------------------------------------
    Fault(
        "file-fsync",
        "D5",
        "a signal's text is not synced before it has its name",
        DROP,
        "self._run(partial(os.fsync, handle))",
        "del handle",
        (SYNCED, ORDER_SYNCED),
    ),
    Fault(
        "folder-fsync",
        "D5",
        "a folder's names are not synced",
        DROP,
        "    try:\n        sync_folder(path)\n",
        "    try:\n        pass\n",
        (SYNCED, ORDER_SYNCED),
    ),
    Fault(
        "inbox-fsync",
        "D5",
        "the inbox is not synced after a signal came into it",
        DROP,
        '            failpoint("renamed")\n            self.sync_inbox()\n',
        '            failpoint("renamed")\n',
        (
            FOLDER + "test_the_text_is_on_the_disk_before_it_has_its_name",
            SYNCED,
            ORDER_SYNCED,
        ),
    ),
    Fault(
        "written-in-place",
        "D5",
        "a signal is written where it is read",
        DROP,
        'patience(lambda: self._disk.give(temporary, self.root / "inbox" / name))',
        "pass",
        (
            FOLDER + "test_no_signal_is_ever_read_by_half",
            FOLDER + "test_a_kill_at_any_point_leaves_all_or_nothing",
        ),
        also=(
            Edit(
                DROP,
                "        temporary = self._temporary(name)\n        with self._explained():\n"
                "            try:\n                self._write(temporary, data, patience)\n"
                "                self._heed_halt()",
                '        temporary = self.root / "inbox" / name\n        with self._explained():\n'
                "            try:\n                self._write(temporary, data, patience)\n"
                "                self._heed_halt()",
            ),
        ),
    ),
    Fault(
        "state-in-place",
        "D5",
        "a file of state/ is written where it is read",
        DROP,
        'patience(lambda: self._disk.replace(temporary, self.root / "state" / name))',
        "pass",
        (FOLDER + "test_no_state_file_is_ever_read_by_half",),
        also=(
            Edit(
                DROP,
                "        temporary = self._temporary(name)\n        with self._explained():\n"
                "            try:\n                handle = patience",
                '        temporary = self.root / "state" / name\n'
                "        with self._explained():\n            try:\n"
                "                temporary.unlink(missing_ok=True)\n"
                "                handle = patience",
            ),
        ),
    ),
    Fault(
        "name-once",
        "D4",
        "a signal's file replaces one of the same name",
        DROP,
        "        name_once(source, target)\n",
        "        source.replace(target)\n",
        (FOLDER + "test_a_name_is_never_replaced",),
    ),
    Fault(
        "recall-or-claim",
        "R6",
        "a signal that the advisor has counts as taken back",
        DROP,
        "                self._look_round()\n                return False\n        return True\n",
        "                self._look_round()\n        return True\n",
        (FOLDER + "test_a_recall_is_one_step",),
    ),
    Fault(
        "sharing-patience",
        "D5",
        "a file that another program has open is not waited for",
        DROP,
        'if getattr(error, "winerror", None) not in SHARING or pause > self._left:',
        "if True:",
        (FOLDER + "test_a_file_that_others_have_open_is_waited_for",),
    ),
)
