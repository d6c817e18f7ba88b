"""Planted faults of the dashboard's doors: who asks, from where, how often, and what is on record.

Each takes out one safeguard; every test that it names has to fail then.
"""

from __future__ import annotations

from typing import Final

from tests.faults.planting import Fault

ACCESS: Final = "torra/dashboard/doors/access.py"
APP: Final = "torra/dashboard/app.py"
STREAMS: Final = "torra/store/streams.py"

ORIGINS: Final = "tests/dashboard/test_origin_checks.py::"
TEST_ACCESS: Final = "tests/dashboard/test_access.py::"
MATRIX: Final = "tests/dashboard/test_route_matrix.py::"
AUDIT: Final = "tests/store/test_audit.py::"
SERVING: Final = "tests/dashboard/test_serving.py::"
TEST_STREAMS: Final = "tests/store/test_event_store.py::"

PAGES: Final = (
    Fault(
        "csrf",
        "doors",
        "a change needs no token of its session",
        ACCESS,
        "            check_csrf(access, found)\n",
        "            pass\n",
        (ORIGINS + "test_a_session_alone_changes_nothing",),
    ),
    Fault(
        "origin",
        "doors",
        "a page of another origin may ask for a change",
        ACCESS,
        "    if not passes:\n        abort(403)\n",
        "",
        (
            ORIGINS + "test_a_page_from_elsewhere_changes_nothing",
            ORIGINS + "test_a_login_from_elsewhere_is_refused_and_costs_no_try",
        ),
    ),
    Fault(
        "host",
        "doors",
        "a name that somebody else points here is answered",
        APP,
        '    if not is_trusted(request.headers.get("Host", ""), known.trusted_hosts):\n',
        "    if False:\n",
        (
            MATRIX + "test_a_rebound_name_is_refused_before_all_else",
            MATRIX + "test_names_that_are_not_ours_are_refused",
        ),
    ),
    Fault(
        "stranger",
        "doors",
        "nobody is asked for a token",
        ACCESS,
        "        if found is None:\n            return _stranger(login)\n",
        "        if found is None:\n            return None\n",
        (MATRIX + "test_who_may_ask",),
    ),
    Fault(
        "scope",
        "doors",
        "who may look may also trade",
        ACCESS,
        "        if not found.may(scope):\n",
        "        if False:\n",
        (
            MATRIX + "test_who_may_ask",
            "tests/dashboard/test_page_commands.py::test_a_visitor_without_the_scope_changes_nothing",
        ),
    ),
    Fault(
        "other-machines",
        "doors",
        "the pages are served to other machines without leave",
        "torra/dashboard/server.py",
        "if is_local(host) or (allow_remote and host):",
        "if host:",
        (SERVING + "test_an_address_beyond_this_machine_is_refused",),
    ),
    Fault(
        "key-elsewhere",
        "doors",
        "a request to another place than the vendor's is given its key",
        "torra/providers/vendors/transport.py",
        '        wire.failure = "misdirected"\n        raise',
        "        pass\n    if False:\n        raise",
        (
            "tests/providers/test_vendor_secrets.py::test_a_request_to_another_place_is_given_no_key",
        ),
    ),
    Fault(
        "body-size",
        "doors",
        "a body of any size is read",
        ACCESS,
        '    if (request.content_length or 0) > LARGEST_BODY or "Transfer-Encoding" in '
        "request.headers:\n        abort(413)\n",
        "",
        (ORIGINS + "test_a_body_that_is_too_large_is_not_even_read",),
    ),
    Fault(
        "body-kind",
        "doors",
        "a body of any kind is taken",
        ACCESS,
        "    if request.content_length and request.mimetype not in KINDS:\n        abort(415)\n",
        "    return\n",
        (ORIGINS + "test_other_kinds_of_bodies_are_refused",),
    ),
    Fault(
        "session-idle",
        "doors",
        "a session that nobody uses never ends",
        ACCESS,
        "now - told.at < IDLE_SECONDS and ",
        "",
        (TEST_ACCESS + "test_a_session_ends_after_twelve_idle_hours",),
    ),
    Fault(
        "session-longest",
        "doors",
        "a session that is used never ends",
        ACCESS,
        " and now - told.since < LONGEST_SECONDS\n",
        "\n",
        (TEST_ACCESS + "test_a_session_ends_at_last_however_much_it_is_used",),
    ),
    Fault(
        "session-ended",
        "doors",
        "a copied cookie outlives the logout",
        ACCESS,
        " and told.id not in self._ended else None",
        " else None",
        (TEST_ACCESS + "test_a_logout_ends_copies_of_the_cookie_too",),
    ),
    Fault(
        "cookie-scripts",
        "doors",
        "scripts can read the cookie",
        ACCESS,
        "            path=path,\n            httponly=True,\n",
        "            path=path,\n            httponly=False,\n",
        (TEST_ACCESS + "test_the_cookie_is_for_this_desk_alone_and_out_of_reach_of_scripts",),
    ),
    Fault(
        "too-often",
        "doors",
        "nobody is told to ask less often",
        ACCESS,
        "    if seconds > 0.0:\n        too_often(seconds)\n",
        "",
        (TEST_ACCESS + "test_each_visitor_of_an_app_has_a_measure_of_his_own",),
    ),
    Fault(
        "login-back-off",
        "doors",
        "who fails to log in may try as often as he likes",
        "torra/dashboard/doors/limits.py",
        "            known.count, known.at = known.count + 1, now\n",
        "            known.at = now\n",
        (TEST_ACCESS + "test_who_fails_waits_twice_as_long_each_time",),
    ),
    Fault(
        "open-redirect",
        "doors",
        "a login may lead to another site",
        ACCESS,
        "return text if text and inside and not climbs else root",
        "return text or root",
        (TEST_ACCESS + "test_a_login_never_leads_elsewhere",),
    ),
    Fault(
        "token-file",
        "doors",
        "tokens that others can read are used",
        "torra/dashboard/doors/access_file.py",
        'if os.name == "posix" and stat.S_IMODE(mode) & OTHERS:',
        "if False:",
        (TEST_ACCESS + "test_a_file_that_others_can_read_is_refused_with_the_remedy",),
    ),
    Fault(
        "content-policy",
        "doors",
        "a page may run scripts that stand in it",
        APP,
        "script-src 'self'; ",
        "script-src 'self' 'unsafe-inline'; ",
        ("tests/dashboard/test_pages.py::test_every_answer_has_the_security_headers",),
    ),
    Fault(
        "audit-seal",
        "doors",
        "a changed entry of the audit log is not found",
        "torra/store/audit.py",
        '        if row["hash"] != seal(row):\n',
        "        if False:\n",
        (AUDIT + "test_a_changed_entry_is_found",),
    ),
    Fault(
        "audit-chain",
        "doors",
        "an entry that was sealed anew is not found",
        "torra/store/audit.py",
        '        if row["previous"] != last["hash"]:\n',
        "        if False:\n",
        (AUDIT + "test_an_entry_that_was_sealed_anew_breaks_the_one_after_it",),
    ),
    Fault(
        "stream-after-end",
        "S3",
        "a stream goes on after its end",
        STREAMS,
        'if row is None or row["ended"] or row["owner"] != owner:',
        'if row is None or row["owner"] != owner:',
        (TEST_STREAMS + "test_nothing_follows_the_end",),
    ),
    Fault(
        "stream-owner",
        "S3",
        "a stranger writes into a stream",
        STREAMS,
        'if row is None or row["ended"] or row["owner"] != owner:',
        'if row is None or row["ended"]:',
        (TEST_STREAMS + "test_a_stranger_writes_nothing",),
    ),
)
