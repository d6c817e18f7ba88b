"""Planted faults of the dashboard's doors: who asks, from where, how often, what is on record."""

from __future__ import annotations

from typing import Final

from tests.faults.changes import At, always, drop, never, replace, reword, sets, without
from tests.faults.planting import Seam, Table, fault

DOORS: Final[Table] = {
    "L11": {
        "key-elsewhere": fault(
            "a request to another place than the vendor's is given its key",
            At("torra.providers.vendors.transport", never("str(...).startswith(...)")),
            "test_a_request_to_another_place_is_given_no_key",
        ),
    },
    "S3": {
        "stream-after-end": fault(
            "a stream goes on after its end",
            At("torra.store.streams:append_events", without("row['ended']")),
            "test_nothing_follows_the_end",
        ),
    },
    "V3": {
        "content-policy": fault(
            "a page may run scripts that stand in it",
            At(
                "torra.dashboard.app:HEADERS",
                reword("script-src 'self'", "script-src 'self' 'unsafe-inline'"),
            ),
            "test_every_answer_has_the_security_headers",
        ),
    },
    "V4": {
        "csrf": fault(
            "a change needs no token of its session",
            At("torra.dashboard.doors.access:guard", drop("check_csrf(...)")),
            "test_a_session_alone_changes_nothing",
        ),
        "origin": fault(
            "a page of another origin may ask for a change",
            At("torra.dashboard.doors.access:check_origin", never("passes")),
            "test_a_page_from_elsewhere_changes_nothing",
            "test_a_login_from_elsewhere_is_refused_and_costs_no_try",
        ),
        "host": fault(
            "a name that somebody else points here is answered",
            At("torra.dashboard.app:check_request", never("is_trusted(...)")),
            "test_a_rebound_name_is_refused_before_all_else",
            "test_names_that_are_not_ours_are_refused",
        ),
        "scope": fault(
            "who may look may also trade",
            At("torra.dashboard.doors.access:guard", never("may(...)")),
            "test_who_may_ask",
            "test_a_visitor_without_the_scope_changes_nothing",
        ),
    },
    "V5": {
        "cookie-scripts": fault(
            "scripts can read the cookie",
            At(
                "torra.dashboard.doors.access:Access",
                replace(
                    "response.set_cookie",
                    "(lambda *args, **named: _(*args, **named | {'httponly': False}))",
                ),
            ),
            "test_the_cookie_is_for_this_desk_alone_and_out_of_reach_of_scripts",
        ),
        "token-file": fault(
            "tokens that others can read are used",
            At("torra.dashboard.doors.access_file:read", never("OTHERS")),
            "test_a_file_that_others_can_read_is_refused_with_the_remedy",
        ),
    },
    "V8": {
        "undo-told": fault(
            "an undo is offered that is refused",
            At(
                "torra.profiles.book:ProfileBook",
                replace("self.allowed(..., command=by_hand)", "replace(wish, outcome='saved')"),
            ),
            "test_an_entry_is_put_back_whole_or_not_at_all",
            "test_what_is_put_back_is_the_whole_entry_and_never_looser",
        ),
        "threshold-guard": fault(
            "a page may lower a threshold",
            At("torra.profiles.guard", sets("LOOSENS", "{**_, 'thresholds.buy': 'free'}")),
            "test_numbers_loosen_upwards_but_for_those_that_are_a_safety_themselves",
        ),
    },
    "V10": {
        "silent-connections": fault(
            "silent connections take the places of all others",
            At("torra.dashboard.server", sets("CONNECTIONS", "100")),
            "test_strangers_without_a_word_take_no_page_away",
        ),
        "open-files": fault(
            "connections take the open files that the desk needs",
            At("torra.dashboard.server:connection_limit", replace("soft // 2", "soft")),
            "test_connections_leave_files_for_the_desk",
        ),
    },
    "V11": {
        "bearer-tokens": fault(
            "a program may guess tokens as fast as it can",
            Seam("torra.dashboard.doors.access:count_wrong", "skips()"),
            "test_five_wrong_tokens_a_minute_of_programs_and_logins_together",
        ),
    },
    "S8": {
        "endless-line": fault(
            "an error repeats what a file holds without end",
            At("torra.errors:bounded", always("len(text) <= most")),
            "test_a_file_of_one_endless_line_is_not_repeated",
            "test_books_with_a_text_without_end_are_told_in_500_characters",
        ),
        "obeyed-signs": fault(
            "an error's line holds signs that a terminal obeys",
            # Where the line is made, and where it is written.
            At("torra.commands.answer:one_line", replace("escaped(line)", "line")),
            At("torra.commands.terminal:say", replace("escaped(text)", "text")),
            "test_signs_that_a_terminal_obeys_are_escapes",
        ),
        "key-twice": fault(
            "of a key that stands twice the last counts",
            At("torra.errors:no_key_twice", never("len(...) != len(...)")),
            "test_a_key_that_stands_twice_is_refused",
        ),
    },
    "doors": {
        "other-machines": fault(
            "the pages are served to other machines without leave",
            Seam("torra.dashboard.server:is_local", "skips(True)"),
            "test_an_address_beyond_this_machine_is_refused",
        ),
        "body-size": fault(
            "a body of any size is read",
            At("torra.dashboard.doors.access", never("LARGEST_BODY")),
            "test_a_body_that_is_too_large_is_not_even_read",
        ),
        "body-kind": fault(
            "a body of any kind is taken",
            At("torra.dashboard.doors.access", never("KINDS")),
            "test_other_kinds_of_bodies_are_refused",
        ),
        "upload-size": fault(
            "a file of any size is taken in parts",
            At(
                "torra.replay.uploads:add",
                replace("held.st_size + len(content)", "0"),
            ),
            "test_a_file_is_not_larger_than_it_may_be",
        ),
        "upload-link": fault(
            "a part of a file is written through a link",
            At("torra.replay.uploads", never("path.is_symlink()")),
            "test_parts_are_never_written_through_a_link",
        ),
        "upload-bars": fault(
            "whatever is handed in is kept, bars or not",
            At("torra.replay.uploads:end", replace("...(home, checked, ...)", "'bars'")),
            "test_what_is_no_bars_is_told_so_and_gone",
        ),
        "session-idle": fault(
            "a session that nobody uses never ends",
            At("torra.dashboard.doors.access:Access", without("... < IDLE_SECONDS")),
            "test_a_session_ends_after_twelve_idle_hours",
        ),
        "login-back-off": fault(
            "who fails to log in may try as often as he likes",
            At(
                "torra.dashboard.doors.limits:BackOff.failed",
                replace("failures.amount + 1", "failures.amount"),
            ),
            "test_who_fails_waits_twice_as_long_each_time",
        ),
        "too-often": fault(
            "nobody is told to ask less often",
            Seam("torra.dashboard.doors.limits:RateLimits.wait", "skips(0.0)"),
            "test_each_visitor_of_an_app_has_a_measure_of_his_own",
        ),
        "open-redirect": fault(
            "a login may lead to another site",
            At("torra.dashboard.doors.access:own_path", always("climbs")),
            "test_a_login_never_leads_elsewhere",
        ),
        "audit-seal": fault(
            "a changed entry of the audit log is not found",
            At("torra.store.audit:first_break", never("seal(...)")),
            "test_a_changed_entry_is_found",
        ),
    },
}
