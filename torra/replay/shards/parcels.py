"""Packs histories and arms as JSON values for a worker process, another machine or a file.

Exact in both directions: a number comes out with the same bits, so results are the same wherever
they were computed. A parcel holds bars, settings and observations; never a secret.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any, Final

from torra.evaluation.observations import ArmObservation, arm_of, as_json
from torra.replay.shards.history import History
from torra.replay.shards.packed_bars import pack, unpack

LEVEL: Final = 3
"""Compression: quick, and most of what there is to gain."""


def packed_history(history: History) -> dict[str, Any]:
    """Return a history as JSON values."""
    return {
        "symbol": history.symbol,
        "frames": {name: pack(frame) for name, frame in history.frames.items()},
        "sources": dict(history.sources),
        "derived": list(history.derived),
    }


def history_of(told: Mapping[str, Any]) -> History:
    """Return the history that `packed_history` packed."""
    frames = {name: unpack(text) for name, text in told["frames"].items()}
    return History(told["symbol"], frames, told["sources"], tuple(told["derived"]))


def packed_arm(arm: ArmObservation) -> str:
    """Return an arm as text."""
    text = json.dumps(as_json(arm), separators=(",", ":"), allow_nan=False)
    # mtime=0: equal arms are equal texts.
    return base64.b64encode(gzip.compress(text.encode(), LEVEL, mtime=0)).decode("ascii")


def arm_from(text: str) -> ArmObservation:
    """Return the arm that `packed_arm` packed."""
    return arm_of(json.loads(gzip.decompress(base64.b64decode(text))))
