"""The trader: is asked alone, after the debate, and only where an opening would stand.

It writes the thesis of that opening: why it is made, what would end it, what may go wrong, for how
many bars it holds. It may decline the opening on the side that it was asked about, with a reason.
Direction, prices and size are not its business: no number of its answer is ever used.
"""

from agent_config import TRADER_ID

from .contracts import Role
from .evidence import CASE_EVIDENCE

ROLE = Role(
    id=TRADER_ID,
    title="trader",
    kind="trader",
    tier="deep",
    task="""
        The desk's scores would open the trade that the order lines describe; entry, stop,
        target and size are set by code and not yours to change. Write its thesis: claim is
        why it is made, points_for speak for the trade, points_against and risks for what
        may go wrong, invalidation for what would end it before its stop, horizon_bars for
        how many bars it may take. decline true only for a concrete reason in the evidence
        that this opening should not be made, with its reason_code; then the points for
        speak for declining. Else decline false and reason_code NONE, the usual answer.
    """,
    shape="thesis",
    evidence=(*CASE_EVIDENCE, "events.", "order."),
)
