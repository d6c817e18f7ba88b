"""Planted faults of the desk's memory: lessons, their ranking, their words, what ticks are told."""

from __future__ import annotations

from typing import Final

from tests.faults.changes import At, drop, never, replace, returns, sets
from tests.faults.planting import Seam, Table, fault

LATER: Final = "passes(as_of=lambda at: at + timedelta(microseconds=1))"
"""As if a question were of the next moment."""

LESSONS: Final[Table] = {
    "K1": {
        "lesson-later": fault(
            "a lesson of this very moment is known already",
            Seam("torra.lessons.ranking:LessonIndex.corpus", LATER),
            Seam("torra.lessons.ranking:LessonIndex.rank", LATER),
            "test_a_lesson_of_this_very_moment_is_not_known_yet",
        ),
        "lesson-of-all": fault(
            "a word's rarity is counted over all lessons, those of later too",
            Seam(
                "torra.lessons.ranking:Postings.answers",
                "passes(visible=lambda rows: rows | True)",
            ),
            "test_later_lessons_change_no_earlier_answer",
        ),
        "lesson-reworded": fault(
            "the first words of a lesson stay when newer ones are known",
            At("torra.lessons.ranking:LessonIndex", replace("... >= moment", "(_ | True)")),
            "test_later_words_stand_from_their_own_moment_on",
        ),
        "lesson-floor": fault(
            "a situation that is not alike is told all the same",
            At("torra.lessons.ranking:SITUATION_FLOOR", sets("SITUATION_FLOOR", "-9.0")),
            "test_a_situation_is_told_from_its_floor_on",
        ),
        "lesson-prose": fault(
            "a vetoed opening counts among the trades",
            At("torra.lessons.recall:LessonRetriever", replace("facts.kind == 'trade'", "True")),
            "test_a_vetoed_opening_is_told_in_words_and_counts_in_no_number",
        ),
    },
    "K2": {
        "lesson-beside": fault(
            "a trade ends without its lesson",
            At(
                "torra.store.trade.positions:PositionStore.close_position",
                drop("...(row, end, price, time, ...)"),
            ),
            "test_each_end_leaves_one_lesson_however_often_the_desk_dies",
        ),
        "lesson-twice": fault(
            "each tick of a stretch of vetoes is an opening of its own",
            At("torra.tick.vetoed:note", never("verdict == standing")),
            "test_each_stretch_has_one_lesson_once_it_has_ended",
        ),
    },
    "K3": {
        "lesson-numbers": fault(
            "a number that is no fact stays in a review",
            At("torra.lessons.checked_words:SentenceCheck.is_fact", returns("True", "all(...)")),
            "test_no_hostile_review_alters_a_fact_or_leaves_a_foreign_number",
        ),
        "review-unit": fault(
            "a number of a review may have the unit of another fact",
            At(
                "torra.lessons.figures:LessonNumber.says",
                replace("unit not in (self.units or ('',))", "False"),
            ),
            "test_a_sentence_with_anything_else_falls_and_is_flagged",
            "test_a_number_is_told_of_nothing_but_its_fact",
        ),
        "review-word": fault(
            "a review may hold any word",
            At(
                "torra.lessons.checked_words:SentenceCheck.flag",
                replace("'' if plain else WORDS", "''"),
            ),
            "test_a_sentence_with_anything_else_falls_and_is_flagged",
            "test_each_attack_alone_leaves_nothing_of_its_harm",
        ),
        "review-note": fault(
            "a person's note enters the question as it is",
            At("scoring_rubric:build_review_prompt", sets("text", "written")),
            "test_no_injection_in_a_note_leaves_the_fence",
        ),
        "off-tick-share": fault(
            "all that is asked beside the ticks has the whole ceiling for its share",
            At(
                "torra.tick.spending:OffTickAccount.affords",
                replace("self.agents.off_tick_share * ceiling", "ceiling"),
            ),
            "test_no_hour_passes_its_ceiling_and_no_tick_that_comes_first_is_a_level_lower",
        ),
        "ticks-first": fault(
            "a review leaves no room in the hour for the next ticks",
            At(
                "torra.tick.spending:OffTickAccount.next_ticks_usd",
                replace("self.streams * top.worst_usd", "0.0"),
            ),
            "test_two_ticks_at_their_worst_fit_beside_each_review",
        ),
    },
    "K4": {
        "lesson-warm-up": fault(
            "trades of the warm-up are told",
            Seam("torra.store.standings:WarmUps.has", "skips(False)"),
            "test_trades_of_the_warm_up_are_never_told",
        ),
        "lesson-lap": fault(
            "the sample's second pass is told of its first",
            At("torra.feeds.sample:SampleFeed.lap", returns("0")),
            "test_the_second_pass_of_the_demo_recalls_nothing_of_the_first",
        ),
        "lesson-late": fault(
            "a recall that took too long is told",
            At("torra.tick.look", sets("late", "False")),
            "test_a_recall_that_takes_too_long_is_left_out_with_a_flag",
        ),
    },
}
