"""Planted faults of the radar: what a scan calls `act`, what stands in for one, what is kept.

And of its films.
"""

from __future__ import annotations

from typing import Final

from tests.faults.changes import At, never, replace, reword, sets
from tests.faults.planting import Table, fault

ACTS: Final = "did and lives and state.current and state.stream.kind == 'own'"
"""What a tick is that is `act`."""

RADAR: Final[Table] = {
    "Y1": {
        "radar-late": fault(
            "a tick that is older than the bar that closed last is still `act`",
            At(
                "torra.radar.scan",
                replace(ACTS, "did and lives and state.stream.kind == 'own'"),
            ),
            "test_a_tick_that_is_older_than_the_newest_closed_bar_is_never_act",
        ),
        "radar-hosted": fault(
            "a tick of another scorer is `act`",
            At("torra.radar.scan", replace(ACTS, "did and lives and state.current")),
            "test_every_stream_comes_to_one_end_whatever_is_wrong",
        ),
        "radar-dead-order": fault(
            "a tick whose order is gone is `act`",
            At(
                "torra.radar.scan",
                replace(ACTS, "did and state.current and state.stream.kind == 'own'"),
            ),
            "test_every_stream_comes_to_one_end_whatever_is_wrong",
        ),
        "radar-one-fault": fault(
            "the fault of one symbol ends the scan of all",
            At("torra.radar.scan", replace("Exception", "KeyboardInterrupt")),
            "test_every_stream_comes_to_one_end_whatever_is_wrong",
        ),
        "radar-groups": fault(
            "streams that move against each other are not together",
            At("torra.radar.groups", replace("abs(r)", "r")),
            "test_groups_are_those_of_an_oracle",
        ),
    },
    "Y2": {
        "radar-old": fault(
            "a run of any age stands in for a scan that failed",
            At("torra.radar.ladder:OLDEST", sets("OLDEST", "timedelta(days=9)")),
            "test_without_a_fresh_run_it_is_an_error_that_is_counted",
        ),
        "radar-act-cached": fault(
            "what would have opened an earlier scan is still `act`",
            At("torra.radar.ladder", replace("(old.act, STALE)", "(old.act, {})")),
            "test_a_core_that_fails_shows_the_newest_run_older_and_without_act",
        ),
        "radar-kept": fault(
            "the newest run of a universe goes with the old ones",
            At("torra.store.radar_runs:add_run", reword(" GROUP BY universe", "")),
            "test_runs_of_thirty_days_are_kept_and_the_newest_of_each_universe",
        ),
    },
    "Y3": {
        "film-cost": fault(
            "a scan that asked models is said to have cost nothing",
            At("torra.film.storyboard:COSTS", replace("'see Cost'", "'0 USD'")),
            "test_each_caption_is_a_stored_sentence",
        ),
        "film-moved": fault(
            "a stream that went quiet is no change",
            At("torra.film.storyboard", replace("now | then", "now")),
            "test_each_caption_is_a_stored_sentence",
        ),
        "film-cues": fault(
            "a name of a stranger is markup of the captions",
            At("torra.film.storyboard", replace("html.escape(' '.join(line.split()))", "line")),
            "test_each_caption_is_a_stored_sentence",
        ),
        "film-encoder": fault(
            "a film without its video is called whole",
            At("torra.film.job:make", replace("'ENCODER_MISSING'", "''")),
            "test_without_an_extra_the_page_plays_and_names_the_remedy",
        ),
        "film-kept": fault(
            "the film that was just made is let go of",
            At("torra.film.job", replace("films[:-KEEP]", "films[KEEP:]")),
            "test_the_ten_films_that_were_made_last_are_kept",
        ),
        "film-failed": fault(
            "what an encoder wrote before it failed is a video",
            At("torra.film.video:encode", never("process.returncode")),
            "test_an_encoder_that_fails_is_an_error",
        ),
    },
    "Y4": {
        "radar-promoted": fault(
            "an order that is out does not keep its row in `act`",
            At(
                "torra.radar.decisions:NO_ORDER_OUT",
                sets("NO_ORDER_OUT", "('OPENED', 'HELD_BACK', 'OBSERVED')"),
            ),
            "test_ten_thousand_replies_promote_lose_and_change_nothing",
        ),
        "radar-uncited": fault(
            "a row is demoted by a fact of another row",
            At("torra.radar.decisions", replace("not known", "not facts")),
            "test_what_is_refused_says_why_in_codes_words",
        ),
        "radar-anybody": fault(
            "an agent that only gathers evidence demotes",
            At("torra.radar.decisions", replace("one.by != 'signal'", "one.by == 'nobody'")),
            "test_ten_thousand_replies_promote_lose_and_change_nothing",
        ),
        "radar-order": fault(
            "an agent moves a row as far as it likes",
            At("torra.radar.decisions:MOST_PLACES", sets("MOST_PLACES", "30")),
            "test_ten_thousand_replies_promote_lose_and_change_nothing",
        ),
        "radar-requests": fault(
            "the requests of a run are not counted",
            At("torra.radar.agents:REQUESTS", sets("REQUESTS", "99")),
            "test_turns_requests_and_calls_are_counted_before_they_are_made",
        ),
        "radar-calls": fault(
            "an agent has no limit of its own for its calls",
            At("torra.radar.agents", replace("agent.calls", "99")),
            "test_turns_requests_and_calls_are_counted_before_they_are_made",
        ),
        "radar-repair": fault(
            "a reply that cannot be read is asked for again and again",
            At("torra.radar.agents:REPAIRS", sets("REPAIRS", "9")),
            "test_a_reply_that_cannot_be_read_is_asked_for_again_once",
        ),
        "radar-trigger": fault(
            "a refused key counts as a busy network",
            At(
                "torra.desk.models.off_tick:trigger_of", replace("getattr(error, 'code', '')", "''")
            ),
            "test_a_fault_of_a_vendor_leaves_the_run_of_the_rules_with_its_trigger",
        ),
        "radar-unstored": fault(
            "the run is not marked while agents are asked",
            At(
                "torra.radar.agents",
                replace("rules.model_copy(update=fallback('UNFINISHED'))", "rules"),
            ),
            "test_a_vendor_that_hangs_or_drips_costs_no_more_than_the_deadline",
        ),
    },
}
