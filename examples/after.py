"""The same scorer with the debate in place of score_chart(), which becomes its fallback."""

import json
import secrets
import time as clock
from concurrent.futures import ThreadPoolExecutor

from agent_config import DebateSettings
from agent_framework import run_debate
from agents.contracts import Completion, DebateContext, Feature, Request

VECTORS = ("price_action", "key_levels", "momentum", "structure")
ROWS: list[dict] = []
POOL = ThreadPoolExecutor(8)


def ask_model(request: Request) -> Completion:
    """Stands for a vendor's SDK: send request.system and request.user, ask for request.schema."""
    cited = [{"id": name, "value": request.features[name].value} for name in request.features][:2]
    said = {"symbol": request.symbol, "confidence": "medium", "evidence": cited}
    if request.role.kind == "gate":
        reply = said | {"multiplier": 1.0, "veto": False, "reason_code": "NONE", "reasoning": ""}
    else:
        reply = said | {
            "adjustments": dict.fromkeys(VECTORS, 0.1),
            "claim": "Up by 0.1.",
            "flags": [],
        }
        reply |= {"points_for": [], "points_against": [], "rebuttals": [], "falsifiers": []}
        reply |= {"abstained": False, "abstain_reason": ""}
    return Completion(json.dumps(reply), request.model)


def score_chart(_context: object, _ask: object) -> dict:
    """The old scorer, unchanged in what it returns; asked only when every agent failed."""
    return {vector: {"score": 0.5, "note": "reads well"} for vector in VECTORS}


def debate(symbol: str, time: str, l1: dict, indicators: dict) -> dict:
    """Same input, same dict, another process."""
    features = {f"technical.{k}": Feature(f"technical.{k}", v) for k, v in indicators.items()}
    return run_debate(
        DebateContext(
            symbol=symbol,
            timeframe="M15",
            bar_time=time,
            as_of=time,
            scores=l1,
            features=features,
            nonce=secrets.token_hex(12),
        ),
        DebateSettings(),
        lambda request: POOL.submit(ask_model, request),
        monotonic=clock.monotonic,
        deadline=clock.monotonic() + 15.0,
        fallback=score_chart,
    )


def blend(l1: dict, chart: dict) -> dict:
    return {v: round(0.80 * l1[v] + 0.20 * chart[v]["score"], 8) for v in VECTORS}


def save_sentiment(symbol: str, time: str, scores: dict) -> None:
    """Stands for the database brain."""
    ROWS.append({"symbol": symbol, "time": time, **scores})


def tick(symbol: str, time: str, l1: dict, indicators: dict) -> dict:
    chart = debate(symbol, time, l1, indicators)
    scores = blend(l1, chart)
    save_sentiment(symbol, time, scores)
    return scores


if __name__ == "__main__":
    L1 = {"price_action": 0.42, "key_levels": -0.1, "momentum": 0.3, "structure": 0.0}
    print(tick("XAUUSD", "2021-12-01T10:00:00Z", L1, {"rsi14": 61.2, "adx14": 27.5}))
