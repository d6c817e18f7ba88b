"""An existing scorer: one model call a bar, blended 80/20 with its own deterministic scores."""

import json

VECTORS = ("price_action", "key_levels", "momentum", "structure")
ROWS: list[dict] = []


def ask_model(_prompt: str) -> str:
    """Stands for a vendor's SDK."""
    return json.dumps({vector: {"score": 0.5, "note": "reads well"} for vector in VECTORS})


def score_chart(symbol: str, l1: dict, indicators: dict) -> dict:
    """One prompt, one opinion: four vectors {score, note} and composite_bias."""
    prompt = f"Score {symbol}. Deterministic scores: {l1}. Indicators: {indicators}. JSON only."
    chart = json.loads(ask_model(prompt))
    mean = sum(chart[vector]["score"] for vector in VECTORS) / len(VECTORS)
    return {**chart, "composite_bias": {"score": mean, "note": "one model"}}


def blend(l1: dict, chart: dict) -> dict:
    return {v: round(0.80 * l1[v] + 0.20 * chart[v]["score"], 8) for v in VECTORS}


def save_sentiment(symbol: str, time: str, scores: dict) -> None:
    """Stands for the database brain."""
    ROWS.append({"symbol": symbol, "time": time, **scores})


def tick(symbol: str, time: str, l1: dict, indicators: dict) -> dict:
    chart = score_chart(symbol, l1, indicators)
    scores = blend(l1, chart)
    save_sentiment(symbol, time, scores)
    return scores


if __name__ == "__main__":
    L1 = {"price_action": 0.42, "key_levels": -0.1, "momentum": 0.3, "structure": 0.0}
    print(tick("XAUUSD", "2021-12-01T10:00:00Z", L1, {"rsi14": 61.2, "adx14": 27.5}))
