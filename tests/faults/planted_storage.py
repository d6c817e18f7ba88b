"""Planted faults of what is kept: database, lock and claims, files in transit, backups."""

from __future__ import annotations

from typing import Final

from tests.faults.changes import (
    At,
    always,
    drop,
    never,
    replace,
    returns,
    reword,
    sets,
    unwrap,
    without,
)
from tests.faults.planting import Seam, Table, fault

EVERY: Final = ("--scale", "1")
"""Each step on a file is the last of a life, as at night."""

STORAGE: Final[Table] = {
    "D1": {
        "rollback": fault(
            "a transaction that raises is kept as far as it came",
            At(
                "torra.store.connection:Store.transaction",
                replace("db.rollback()", "db.execute('COMMIT')"),
            ),
            "test_an_exception_leaves_nothing",
        ),
        "inner-rollback": fault(
            "an inner transaction that failed is not undone",
            Seam("torra.store.connection:connect", "rewrites('^ROLLBACK TO .*', '')"),
            "test_an_inner_failure_that_is_caught_undoes_its_own_part_only",
        ),
        "one-transaction": fault(
            "a tick is stored in many small transactions",
            At("torra.tick.decision:decide", unwrap("write(...)")),
            "test_a_disk_that_fills_up_at_any_page_damages_nothing",
        ),
        "claim-given-back": fault(
            "a tick that raises keeps its claim",
            Seam("torra.store.ticks:ClaimStore.release_claim", "skips()"),
            "test_tick.py::test_a_tick_that_raises_gives_its_claim_back",
        ),
    },
    "D3": {
        "commit-fsync": fault(
            "a commit is not synced to the disk, and no connection looks whether it is",
            At("torra.store.connection:SETTINGS", replace("2", "1")),
            "test_every_connection_is_durable_and_strict",
            "test_every_commit_is_synced",
        ),
        "settings-asserted": fault(
            "no connection asserts its settings",
            At("torra.store.connection", never("... != value")),
            "test_a_connection_that_cannot_be_durable_is_refused",
        ),
    },
    "D4": {
        "unique-opening": fault(
            "the schema lets an instance have two openings",
            At(
                "torra.store.schema:SCHEMA",
                reword("UNIQUE INDEX signals_one_opening", "INDEX signals_one_opening"),
            ),
            "test_what_may_be_there_once_is_unique_in_the_file_itself",
            "test_a_second_opening_is_refused",
            "test_an_instance_never_holds_two",
        ),
        "signal-once": fault(
            "a decision that is in the outbox is not looked for",
            At(
                "torra.store.trade.signals:SignalStore.enqueue_signal",
                never("...(..., ...['sid'])"),
            ),
            "test_a_signal_is_written_once",
        ),
        "signal-steps": fault(
            "a signal may go from any state to any other",
            At("torra.store.trade.signals:SignalStore.move_signal", drop("check_transition(...)")),
            "test_only_steps_of_the_table_are_taken",
        ),
        "claim-lost": fault(
            "who has lost its claim stores the tick all the same",
            At("torra.store.ticks:ClaimStore.finish_tick", never("not ...")),
            "test_who_lost_the_claim_stores_nothing",
        ),
        "name-once": fault(
            "a signal's file replaces one of the same name",
            Seam(
                "torra.whole_files:name_once",
                "becomes(lambda source, target: source.replace(target))",
            ),
            "test_a_name_is_never_replaced",
        ),
        "restore-journal-stays": fault(
            "a restore forgets which orders were handed over",
            At("torra.backup.files:compare", without("not remembered(...)")),
            "test_settings_that_are_there_stay_unless_it_is_asked_for",
        ),
    },
    "D5": {
        "inbox-fsync": fault(
            "the inbox is not synced after a signal came into it",
            At("torra.bridges.torra.drop_folder:DropFolder.publish", drop("sync_inbox()")),
            "test_the_system_is_asked_to_put_the_text_and_then_its_name_on_the_disk",
            "test_an_order_is_on_the_disk_before_it_is_told",
        ),
        "written-in-place": fault(
            "a signal is written where it is read",
            At(
                "torra.bridges.torra.drop_folder:DropFolder",
                sets("temporary", "self.root / 'inbox' / name"),
                drop("...(give, temporary, self.root / 'inbox' / name)"),
            ),
            "test_no_file_is_ever_read_by_half",
            "test_a_kill_at_any_point_leaves_all_or_nothing",
        ),
        "state-in-place": fault(
            "a file of state/ is written where it is read",
            At(
                "torra.bridges.torra.drop_folder:DropFolder",
                sets("temporary", "self.root / 'state' / name"),
                replace("NEW", "os.O_WRONLY | os.O_CREAT | os.O_TRUNC"),
                drop("...(temporary.replace, ...)"),
            ),
            "test_no_file_is_ever_read_by_half",
        ),
        "sharing-patience": fault(
            "a file that another program has open is not waited for",
            At("torra.bridges.torra.drop_folder:SHARING", sets("SHARING", "()")),
            "test_a_file_that_others_have_open_is_waited_for",
        ),
    },
    "D6": {
        "no-room-told": fault(
            "a volume without a byte to spare is told as a disk that fails",
            At("torra.store.faults:explain", never("any(...)")),
            "test_a_start_on_a_full_disk_names_it_and_what_to_do",
        ),
        "disk-fault-halts": fault(
            "a desk whose database failed, in a tick or while it sent, goes on trading",
            Seam("torra.trading.kill_switch:KillSwitch.fault", "skips()"),
            "test_a_broken_database_halts_the_desk",
            "test_a_disk_that_fills_up_at_any_page_damages_nothing",
        ),
        "start-room": fault(
            "a start does not look for room on its disk",
            At("torra.desk.checks.machine:disk", always("MIN_FREE_BYTES")),
            "test_a_disk_with_no_room_halts_until_there_is",
        ),
    },
    "D7": {
        "immediate-impatient": fault(
            "a transaction begins deferred",
            Seam("torra.store.connection:connect", "rewrites('BEGIN IMMEDIATE', 'BEGIN')"),
            "test_a_transaction_is_a_writers_from_its_beginning",
            "test_a_foreign_writer_is_waited_for_then_told",
        ),
    },
    "D8": {
        "migration-backup": fault(
            "no copy is made before a migration",
            At("torra.store.migrations:migrate", sets("backup", "None")),
            "test_the_backup_is_the_old_file_and_opens",
        ),
        "of-before": fault(
            "a database of before is called one of a newer program",
            At("torra.store.migrations:schema", never("any(...) or ...")),
            "test_a_database_of_before_is_refused_untouched",
            "test_a_home_of_before_is_refused_untouched_and_begins_anew",
        ),
        "migration-whole": fault(
            "a migration commits each of its steps",
            At("torra.store.migrations:migrate", unwrap("transaction()")),
            "test_a_kill_inside_a_migration_leaves_old_or_new",
        ),
    },
    "D9": {
        "cut-log-told": fault(
            "a log that lost its newest commits is taken for a whole one",
            At("torra.backup.log_end:lacks_newest_commit", always("... is not False")),
            "test_every_cut_that_loses_a_commit_is_seen_and_no_other",
            "test_a_start_says_it_and_begins_halted",
        ),
        "sign-always": fault(
            "a desk that serves no pages leaves no sign of its database",
            At("torra.desk.wiring:open_desk", drop("leave_sign(...)")),
            "test_a_lost_database_is_refused_and_no_command_makes_another",
        ),
        "lost-log": fault(
            "a log that was deleted is written on to",
            At("torra.store.connection:Store", never("... != log")),
            "test_a_log_that_was_deleted_is_noticed_and_its_commits_are_saved",
        ),
        "moved-database": fault(
            "a database that was deleted or replaced is written on to",
            At("torra.store.connection:Store", never("...(self.path) != ...")),
            "test_a_file_that_was_deleted_or_replaced_is_not_written_to",
        ),
        "repair-whole": fault(
            "a start names the newest backup, whole or not",
            At("torra.backup.restore:repair", replace("examine(path).path", "path")),
            "test_a_damaged_database_is_refused_and_the_named_command_repairs_it[a-page]",
        ),
        "start-reads-through": fault(
            "a start does not read the database through",
            Seam(
                "torra.store.connection:connect_reader",
                "rewrites('PRAGMA (quick|integrity)_check.*', \"SELECT 'ok'\")",
            ),
            "test_a_damaged_database_is_refused_and_the_named_command_repairs_it[a-page]",
        ),
        "start-lost": fault(
            "a database that is gone is made anew",
            At("torra.desk.checks.machine:database", never("lost(...)")),
            "test_a_damaged_database_is_refused_and_the_named_command_repairs_it[gone]",
            "test_a_damaged_database_is_refused_and_the_named_command_repairs_it[no-bytes]",
        ),
        "stored-day": fault(
            "the 31st of a month of 30 days in the database counts as a time",
            At("torra.store.stored_times:BROKEN", reword(", '+0 days') IS NOT ", ") IS NOT ")),
            "test_a_text_that_is_no_time_is_named[no-leap-year]",
            "test_no_bit_that_turned_leaves_a_text_that_cannot_be_read",
        ),
    },
    "D10": {
        "init-profile": fault(
            "torra init writes a desk.json whose profile is not there",
            At("torra.desk.setup.desk_plan:write", without("(plan.profile_path, ...)")),
            "test_a_disk_that_fails_leaves_no_desk_without_its_profile[False-fsync-1]",
            "test_a_killed_init_leaves_a_desk_that_loads_and_its_profile_first[in-a-new-home]",
            options=EVERY,
        ),
    },
    "D13": {
        "backup-one-moment": fault(
            "a backup counts and copies the database at two moments",
            Seam("torra.store.connection:connect_reader", "rewrites('^BEGIN$', 'SELECT 1')"),
            "test_what_is_stored_while_a_backup_is_made_is_wholly_in_it_or_not",
        ),
        "backup-no-secret": fault(
            "a link in the profiles takes the tokens into a backup",
            At("torra.backup.files", without("... != secret")),
            "test_a_backup_holds_the_settings_and_never_a_secret",
        ),
        "backup-keeps-others": fault(
            "--keep removes the backups of migrations too",
            At("torra.backup.copies:surplus", always("...(path) == ...(newest)")),
            "test_the_newest_are_kept_and_nothing_else_is_removed",
        ),
        "restore-sum": fault(
            "the sum of a backup is not looked at",
            At("torra.backup.copies", never("... != digest")),
            "test_what_is_no_whole_backup_is_refused_and_changes_nothing[one-bit]",
        ),
        "restore-no-way-out": fault(
            "a file of a backup may be put anywhere",
            At("torra.backup.files:place_of", never("strange")),
            "test_what_is_no_whole_backup_is_refused_and_changes_nothing[a-way-out]",
            "test_what_is_no_whole_backup_is_refused_and_changes_nothing[tokens]",
            "test_what_is_no_whole_backup_is_refused_and_changes_nothing[a-log]",
        ),
        "restore-not-under-a-desk": fault(
            "a restore does not ask whether a desk works",
            At("torra.backup.restore:plan", never("is_locked(home)")),
            At("torra.backup.restore:carry_out", never("not locked")),
            "test_a_desk_at_work_is_not_pulled_from_under",
        ),
        "restore-log-aside": fault(
            "the log of the old database stays beside the restored one",
            At("torra.home:SIDE_FILES", without("'-wal'")),
            "test_the_log_of_a_killed_desk_goes_with_its_database",
        ),
        "restore-mark": fault(
            "a restore that is cut off leaves no mark",
            At("torra.backup.restore", drop("write_whole(planned.home / MARK, ...)")),
            "test_a_restore_that_is_killed_anywhere_ends_by_the_same_command",
            options=EVERY,
        ),
    },
    "L1": {
        "stored-nan": fault(
            "a number that is not finite is stored",
            At("torra.store.connection", never("isfinite")),
            "test_a_number_that_is_not_finite_is_never_stored",
        ),
    },
    "L3": {
        "end-suspended": fault(
            "the main thread waits for a signal without ever looking",
            At(
                "torra.commands.run:Stop.wait",
                replace("clock.sleep(...)", "threading.Event().wait()"),
            ),
            "test_a_desk_that_is_ended_while_it_is_suspended_ends_when_it_wakes",
        ),
    },
    "T2": {
        "claim-once": fault(
            "a desk claims a tick that it is working on",
            At(
                "torra.store.ticks:ClaimStore.claim_tick",
                never("... not in (None, 'released')"),
            ),
            "test_a_claim_goes_its_way_once",
            "test_of_threads_that_want_a_tick_one_gets_it",
        ),
        "skip-recorded": fault(
            "a bar that is skipped leaves no row",
            At("torra.desk.write_off:mark_missed", drop("skip_ticks(...)")),
            "test_a_broken_tick_ends_as_a_skip_that_names_the_fault",
        ),
    },
    "T4": {
        "clock-settles": fault(
            "bars are written off right after the clock jumped",
            At("torra.desk.schedule:Desk.settling", returns("False")),
            "test_a_clock_that_stays_ahead_writes_no_bar_off_for_a_while",
        ),
        "start-clock-back": fault(
            "a clock far behind the desk is believed",
            At("torra.desk.checks.machine:clock", always("CLOCK_SET_BACK")),
            "test_a_clock_that_cannot_be_right_halts[behind-the-desk]",
        ),
    },
    "T5": {
        "kept-out-told": fault(
            "a desk that a paused program keeps out says only that the database is locked",
            Seam("torra.desk.watches:LockWatch.locked", "skips('')"),
            "test_a_desk_says_that_another_program_keeps_it_from_storing",
        ),
        "lock-exclusive": fault(
            "a second desk gets the lock too",
            Seam("torra.whole_files:locked", "skips(True)"),
            "test_the_first_holds_it_and_the_second_does_not",
            "test_two_never_hold_it_at_once",
        ),
        "lock-inherited": fault(
            "a child of the desk keeps its lock",
            At(
                "torra.desk_lock:DeskLock",
                replace("locked(file)", "os.set_inheritable(file.fileno(), True) or locked(file)"),
            ),
            "test_no_child_keeps_the_lock_of_a_desk_that_was_killed[program]",
        ),
        "claims-of-the-dead": fault(
            "a start leaves the claims of a dead desk",
            At("torra.store.ticks:begin_run", drop("release_claims(...)")),
            "test_a_start_releases_the_claims_of_the_dead",
            "test_what_is_due_after_work",
        ),
    },
    "T6": {
        "lock-held-always": fault(
            "a desk believes in its lock for ever",
            Seam("torra.desk_lock:DeskLock.is_owned", "skips(True)"),
            "test_a_lock_whose_file_is_gone_is_taken_again_unless_another_has_it[deleted]",
            "test_a_tick_that_another_desk_has_run_meanwhile_is_told_so_and_writes_nothing[look]",
        ),
        "lock-restored-unlocked": fault(
            "a file in the place of the lock is taken without locking it",
            At("torra.desk_lock:DeskLock", replace("locked(file)", "True")),
            "test_two_never_hold_it_at_once",
            "test_a_lock_whose_file_is_gone_is_taken_again_unless_another_has_it[deleted]",
        ),
        "lock-restored-late": fault(
            "a desk goes on though another one worked meanwhile",
            At("torra.desk.schedule:Desk", replace("run['run'] == self.run", "True")),
            "test_a_desk_that_another_one_followed_rests_and_says_why[ended]",
        ),
        "fence": fault(
            "a desk that has lost its lock still writes",
            At("torra.store.ticks:ClaimStore.require_desk", never("not ...")),
            "test_a_desk_that_lost_its_lock_writes_nothing",
        ),
        "claim-first": fault(
            "a tick looks at its claim when it has written everything else",
            At("torra.tick.decision:decide", drop("require_claim(...)")),
            "test_a_tick_that_another_desk_has_run_meanwhile_is_told_so_and_writes_nothing",
        ),
        "claim-before-bars": fault(
            "a tick whose feed took long stores its bars before it looks at its claim",
            At("torra.tick.look:look", drop("require_claim(...)")),
            At("torra.tick.edges:TickDeps.publish", drop("require_desk()")),
            "test_a_tick_that_another_desk_has_run_meanwhile_is_told_so_and_writes_nothing",
        ),
        "courier-fenced": fault(
            "a courier asks for the lock at the beginning of its turn alone",
            At("torra.trading.courier:Courier", drop("require_desk()")),
            "test_a_courier_that_stood_still_in_its_turn_writes_nothing",
        ),
        "fence-doubt": fault(
            "a desk that has lost its lock doubts the orders of the one that works",
            At("signal_bridge:doubt", drop("require_desk()")),
            "test_a_clock_that_is_set_back_casts_doubt_on_the_orders_of_the_one_who_works",
        ),
    },
    "T7": {
        "close-in-turn": fault(
            "the debates of a close run one after the other",
            At("torra_trader", always("edges.debater")),
            "test_the_debates_of_a_close_run_at_the_same_time",
        ),
        "shorter-first": fault(
            "of a close the shorter timeframe is stored first",
            At("torra_trader:run_close", sets("order", "_[::-1]")),
            "test_the_longer_is_stored_first_however_slow_it_is",
        ),
        "knows-its-elder": fault(
            "a tick knows the position that another one of its close has opened",
            Seam(
                "torra.store.trade.positions:PositionStore.positions_at",
                "passes(as_of=lambda at: at + timedelta(seconds=1))",
            ),
            "test_a_crash_between_two_commits_changes_nothing_that_the_second_debates_on",
        ),
        "promised-twice": fault(
            "what the elder may cost is promised to the younger too",
            Seam("torra.tick.debate:plan", "passes(reserved_usd=lambda _: 0.0)"),
            "test_what_the_elder_may_cost_is_not_promised_to_the_younger",
        ),
    },
    "M7": {
        "shift-imported": fault(
            "bars on another clock than the stored ones are imported",
            Seam("torra.market.clock_shifts:shifted", "skips([])"),
            "test_a_timeframe_on_another_clock_is_not_imported",
        ),
    },
    "M10": {
        "clock-unasked": fault(
            "times that MetaTrader may have written are taken for UTC",
            At(
                "torra.feeds.csv_file",
                replace("sheet.of_broker or sheet.split or times.form != ISO", "False"),
            ),
            "test_what_is_written_as_metatrader_writes_demands_a_clock",
        ),
        "day-or-month": fault(
            "a date that may have its month first has its day first",
            At("torra.feeds.bar_times", replace("(... > 12).any() == (... > 12).any()", "False")),
            "test_a_file_that_is_wrong_is_refused_by_what_is_wrong",
        ),
        "any-histdata": fault(
            "a file that looks like HistData's is read by New York's winter time",
            At("torra.feeds.csv_file", replace("shape and ...", "shape")),
            "test_only_a_file_without_a_volume_is_histdatas",
        ),
    },
    "M8": {
        "record-low": fault(
            "the record score forgets the record low",
            At(
                "ath_calculator:record_score",
                replace("1.0 - math.tanh(below / width)", "1.0"),
            ),
            At("ath_calculator:record_scores", replace("1.0 - near", "1.0")),
            "test_a_mirror_image_sells_what_the_market_buys",
            "test_upside_down_it_changes_its_sign_to_the_last_bit",
        ),
        "record-form": fault(
            "a tick counts the record high alone, whatever its profile says",
            At("ath_calculator:score", replace("form == 'high'", "True")),
            "test_a_profile_says_which_form_counts",
        ),
    },
    "E11": {
        "calendar-unread": fault(
            "a replay does not read the calendar of its profile",
            Seam("torra.replay.outlook_then:PointInTimeData.events_of", "skips()"),
            "test_no_arm_of_a_replay_opens_inside_the_window_of_an_event",
            "test_a_replay_gives_the_ticks_of_the_live_desk",
        ),
    },
    "M1": {
        "late-bar-silent": fault(
            "a late bar trades though a newer tick is done",
            Seam("torra.store.ticks:newest_claim", "skips()"),
            "test_a_late_bar_is_a_record_and_no_trade_once_a_newer_tick_is_done",
        ),
    },
    "R4": {
        "restore-halts": fault(
            "a restored desk may trade at once",
            At("torra.backup.restore", drop("set_trading_state(...)")),
            "test_after_a_restore_the_desk_is_whole_halted_and_on_record",
        ),
        "start-halts": fault(
            "what a start found halts nothing",
            At("torra.commands.run", drop("fault(...)")),
            "test_a_desk_that_must_not_trade_starts_halted_until_a_person_resumes",
        ),
    },
    "R8": {
        "newer-schema": fault(
            "a database of a newer program is opened",
            At("torra.store.migrations:schema", sets("unknown", "[]")),
            "test_a_newer_schema_is_refused",
        ),
    },
    "R10": {
        "recall-or-claim": fault(
            "a signal that the advisor has counts as taken back",
            At("torra.bridges.torra.drop_folder:DropFolder.recall", returns("True", "False")),
            "test_recall_and_claim_have_one_winner",
        ),
    },
    "D14": {
        "job-fence": fault(
            "a worker whose desk has lost its lock writes all the same",
            At("torra.jobs.worker:Worker", drop("require_desk()")),
            "test_what_is_decided_in_the_turn_in_which_the_lock_is_lost_is_not_written",
        ),
        "job-lifeline": fault(
            "a job's process does not notice the end of its pipe",
            At("torra.jobs.child:ParentPipe", replace("readline()", "_ or CLOCK.sleep(1e9)")),
            "test_no_child_outlives_its_desk",
        ),
        "job-silence": fault(
            "a job's process waits for ever for a sign of its desk",
            At("torra.jobs.child:ParentPipe", replace("CLOCK.monotonic() - ... <= ...", "True")),
            "test_no_child_outlives_its_desk",
        ),
        "job-attempts": fault(
            "a job that fails is tried again and again",
            At("torra.jobs.worker:Worker", always("attempt < ATTEMPTS")),
            "test_what_may_pass_by_is_tried_twice",
        ),
        "job-deaf": fault(
            "a job's process that does not stop when it is asked to is never killed",
            At("torra.jobs.worker:Worker", never("... >= run.kill_at")),
            "test_a_running_job_is_cancelled_within_two_seconds",
        ),
        "job-twice": fault(
            "a job is tried again while the process that ran it may still be there",
            At("torra.jobs.worker:Worker", always("setdefault")),
            "test_a_job_that_waits_to_be_tried_again_lets_the_next_one_by",
        ),
    },
}
