"""The chart expert: reads channel, pattern, retracements and volume by price, and the picture.

Code measures the chart: the expert may name a pattern only where code found it, and a level only
where code has one. It alone of a swarm is shown the picture. It knows nothing of the other agents.
"""

from ..contracts import Role
from ..evidence import SURROUNDINGS

ROLE = Role(
    id="geometry",
    title="chart geometry expert",
    kind="analyst",
    task="""
        Read the shape of the chart: channel and place in it, compression, double tops and
        bottoms and their neckline, retracements, the most traded price. Name a pattern only
        where geometry.pattern.NAME is 1, a level only where geometry.level lists it; a
        pattern that is not completed is a maybe.
    """,
    shape="geometry",
    focus={"price_action": "secondary", "key_levels": "secondary", "structure": "primary"},
    needs=("geometry.channel_r2", "geometry.compression"),
    evidence=(
        "scores.",
        "geometry.",
        "technical.close",
        "technical.atr14",
        "technical.trend_state",
        "technical.bos",
        *SURROUNDINGS,
        "standing.geometry_",
        "host.",
    ),
    picture=True,
)
