"""Planted faults of backups, restores and the start of a desk.

Each takes out one safeguard; every test that it names has to fail then.
"""

from __future__ import annotations

from typing import Final

from tests.faults.planting import Fault

STORE: Final = "torra/backup/copies.py"
FILES: Final = "torra/backup/files.py"
RESTORE: Final = "torra/backup/restore.py"
CHECK: Final = "torra/desk/start_check.py"
STEPS: Final = "torra/desk/first_files.py"
TIMES: Final = "torra/store/stored_times.py"

BACKUP: Final = "tests/backup/test_backup.py::"
BEGIN: Final = "tests/faults/test_start.py::"
STORED: Final = "tests/store/test_stored_times.py::"
NO_BACKUP: Final = BACKUP + "test_what_is_no_whole_backup_is_refused_and_changes_nothing"
STAYS: Final = BACKUP + "test_settings_that_are_there_stay_unless_it_is_asked_for"
AFTER: Final = BACKUP + "test_after_a_restore_the_desk_is_whole_halted_and_on_record"
KILLED: Final = BACKUP + "test_a_restore_that_is_killed_anywhere_ends_by_the_same_command"
KILLED_INIT: Final = BEGIN + "test_a_killed_init_has_written_both_files_or_neither"
DAMAGED: Final = BEGIN + "test_a_damaged_database_is_refused_and_the_named_command_repairs_it"
CLOCK: Final = BEGIN + "test_a_clock_that_cannot_be_right_halts"
EVERY: Final = ("--scale", "1")
"""Each step on a file is the last of a life, as at night."""

START: Final[tuple[Fault, ...]] = (
    Fault(
        "backup-one-moment",
        "D9",
        "a backup counts and copies the database at two moments",
        STORE,
        '        db.execute("BEGIN")\n',
        "",
        (BACKUP + "test_what_is_stored_while_a_backup_is_made_is_wholly_in_it_or_not",),
    ),
    Fault(
        "backup-no-secret",
        "D9",
        "a link in the profiles takes the tokens into a backup",
        FILES,
        " and path.resolve() != secret",
        "",
        (BACKUP + "test_a_backup_holds_the_settings_and_never_a_secret",),
    ),
    Fault(
        "backup-keeps-others",
        "D9",
        "--keep removes the backups of migrations too",
        STORE,
        "if _desk_in(path) == _desk_in(made)][keep - 1 :]",
        "][keep - 1 :]",
        (BACKUP + "test_the_newest_are_kept_and_nothing_else_is_removed",),
    ),
    Fault(
        "stored-day",
        "D9",
        "the 31st of a month of 30 days in the database counts as a time",
        TIMES,
        "{SECOND}, '+0 days')",
        "{SECOND})",
        (
            STORED + "test_a_text_that_is_no_time_is_named[no-leap-year]",
            STORED + "test_no_bit_that_turned_leaves_a_text_that_cannot_be_read",
        ),
    ),
    Fault(
        "stored-space",
        "D9",
        "a space among the digits of a second in the database counts as a time",
        TIMES,
        "OR {FRACTION} GLOB '.*[^0-9]*Z'",
        "",
        (STORED + "test_a_text_that_is_no_time_is_named[space]",),
    ),
    Fault(
        "restore-sum",
        "D9",
        "the sum of a backup is not looked at",
        STORE,
        "    if told != found:\n",
        "    if not told:\n",
        (NO_BACKUP + "[one-bit]",),
    ),
    Fault(
        "restore-rows",
        "D9",
        "the rows of a backup are not counted",
        STORE,
        'if facts and json.loads(facts["rows"]) != rows:',
        "if not rows:",
        (NO_BACKUP + "[a-row-less]",),
    ),
    Fault(
        "restore-no-way-out",
        "D9",
        "a file of a backup may be put anywhere",
        FILES,
        "    if astray or foreign or taken or strange:\n",
        "    if not name:\n",
        (NO_BACKUP + "[a-way-out]", NO_BACKUP + "[tokens]", NO_BACKUP + "[a-log]"),
    ),
    Fault(
        "restore-journal-stays",
        "D4",
        "a restore forgets which orders were handed over",
        FILES,
        "elif not remembered(name) and place.read_bytes() != content:",
        "elif place.read_bytes() != content:",
        (STAYS,),
    ),
    Fault(
        "restore-not-under-a-desk",
        "D9",
        "a restore does not look at the lease",
        RESTORE,
        "    _refuse_lease(database)\n    with",
        "    with",
        (BACKUP + "test_a_desk_at_work_is_not_pulled_from_under",),
    ),
    Fault(
        "restore-not-under-a-program",
        "D9",
        "a restore does not look who has the database open",
        RESTORE,
        "        if not held:\n",
        "        if held is None:\n",
        (BACKUP + "test_a_database_that_a_program_has_open_is_not_replaced",),
    ),
    Fault(
        "restore-halts",
        "R4",
        "a restored desk may trade at once",
        RESTORE,
        '        store.set_trading_state("HALTED", _reason(planned))\n',
        "",
        (AFTER,),
    ),
    Fault(
        "restore-frees-lease",
        "T5",
        "the lease of the backup outlives the restore",
        RESTORE,
        '            store.release_lease(lease["owner"], lease["epoch"])\n',
        "            pass\n",
        (BACKUP + "test_a_backup_of_a_desk_at_work_can_be_started_at_once",),
    ),
    Fault(
        "restore-mark",
        "D10",
        "a restore that is cut off leaves no mark",
        RESTORE,
        "            _mark(planned)\n",
        "",
        (KILLED,),
        EVERY,
    ),
    Fault(
        "restore-log-aside",
        "D9",
        "the log of the old database stays beside the restored one",
        RESTORE,
        'SIDE_FILES: Final = ("-wal", "-shm")',
        'SIDE_FILES: Final = ("-shm",)',
        (BACKUP + "test_the_log_of_a_killed_desk_goes_with_its_database",),
    ),
    Fault(
        "repair-whole",
        "D9",
        "a start names the newest backup, whole or not",
        RESTORE,
        'return command(home, "restore", examine(path).path)',
        'return command(home, "restore", path)',
        (DAMAGED + "[a-page]",),
    ),
    Fault(
        "start-reads-through",
        "D9",
        "a start does not read the database through",
        CHECK,
        'looks = ["quick_check(1)"]',
        "looks = list[str]()",
        (DAMAGED + "[a-page]",),
    ),
    Fault(
        "start-indexes",
        "D9",
        "a start does not hold indexes against their rows",
        CHECK,
        "for name in MONEY if name in there",
        "for name in MONEY if not there",
        (DAMAGED + "[an-index-of-money]",),
    ),
    Fault(
        "start-lost",
        "D9",
        "a database that is gone is made anew",
        CHECK,
        "    if lost(path):\n",
        "    if False:\n",
        (DAMAGED + "[gone]", DAMAGED + "[no-bytes]"),
    ),
    Fault(
        "start-halts-terminals",
        "R4",
        "terminals go on beside a damaged database",
        CHECK,
        "    alarm(what)\n",
        "",
        (DAMAGED + "[a-page]",),
    ),
    Fault(
        "start-room",
        "D6",
        "a start wants more room than it says",
        CHECK,
        "    if free >= MIN_FREE_BYTES:\n",
        "    if free > MIN_FREE_BYTES:\n",
        (BEGIN + "test_a_disk_with_no_room_halts_until_there_is[at]",),
    ),
    Fault(
        "start-clock-set",
        "T4",
        "a clock that was never set is believed",
        CHECK,
        "    if now < EARLIEST:\n",
        "    if now <= EARLIEST:\n",
        (CLOCK + "[at-the-first]",),
    ),
    Fault(
        "start-clock-back",
        "T4",
        "a clock far behind the desk is believed",
        CHECK,
        "if last is None or now >= last - CLOCK_SET_BACK:",
        "if last is None or last:",
        (CLOCK + "[behind-the-desk]",),
    ),
    Fault(
        "start-halts",
        "R4",
        "what a start found halts nothing",
        "torra/commands/run.py",
        "            desk.kill_switch.fault(halted)\n",
        "",
        (
            BEGIN + "test_a_desk_that_must_not_trade_starts_halted_until_a_person_resumes",
            BEGIN + "test_a_desk_that_stands_by_at_first_is_halted_too",
        ),
    ),
    Fault(
        "end-suspended",
        "L3",
        "the main thread waits for a signal without ever looking",
        "torra/commands/run.py",
        "            clock.sleep(LOOK_EVERY)\n",
        "            threading.Event().wait()\n",
        (
            "tests/desk/test_shutdown.py::"
            "test_a_desk_that_is_ended_while_it_is_suspended_ends_when_it_wakes",
        ),
    ),
    Fault(
        "init-note",
        "D10",
        "torra init does not note what it is about to rename",
        STEPS,
        '        write_synced(note, json.dumps({**told, "had": had}).encode())\n',
        "",
        (KILLED_INIT + "[over-an-old-desk]", KILLED_INIT + "[in-a-new-home]"),
        EVERY,
    ),
    Fault(
        "init-undone",
        "D10",
        "a torra init that was cut off is not undone",
        STEPS,
        "            _put_back(profile, kept, had=had)\n",
        "            pass\n",
        (KILLED_INIT + "[over-an-old-desk]", KILLED_INIT + "[in-a-new-home]"),
        EVERY,
    ),
)
"""In the order of docs/backup.md."""
