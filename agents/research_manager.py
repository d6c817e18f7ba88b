"""The research manager: reads the analysts and both cases, and says which case is the better one.

It moves no score. It names a winner, LONG, SHORT or NONE, how sure it is, and how much each of the
two cases is worth, 0 to 1: its weights lessen what bull and bear have asked for, and its word can
only lower the conviction in an opening. It sits beside the gate and does not see it.
"""

from .contracts import SIDES, DebateContext, Role
from .evidence import JUDGED_EVIDENCE

ROLE = Role(
    id="research_manager",
    title="research manager",
    kind="arbiter",
    tier="deep",
    task="""
        Judge the debate: which case do evidence and answers bear out? winner LONG or SHORT
        where one case clearly stands, NONE where neither does; most ticks have none. A
        weight says how much of a case stands, 1 all of it, 0 nothing: two good cases may
        both weigh much. Weigh what is cited, not how it is said; who grants a point loses
        it. Bull and bear differ by office. confidence is that in the winner. Points for
        lean to the winner, points against to the other side; of NONE points for are LONG's,
        points against SHORT's. You see no gate and set no size.
    """,
    shape="judgement",
    evidence=JUDGED_EVIDENCE,
)

NO_CASE = "no case was made that could be judged"
"""Why it abstains where neither researcher was heard."""


def lacking(context: DebateContext) -> str:
    """Return why it abstains: neither researcher made a case."""
    cases = [report for report in context.reports if report.agent_id in SIDES]
    return NO_CASE if all(case.abstained for case in cases) else ""
