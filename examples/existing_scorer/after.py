"""A scorer as many desks have one: a Flask app with two jobs, a sentiment table and a signal file.

At every close of 15 minutes and of an hour it scores each symbol by arithmetic, asks one model for
a second opinion, blends the two 80/20, writes the row into its own SQLite table and the newest
verdict into a file that an Expert Advisor reads.
"""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
from apscheduler.schedulers.background import BackgroundScheduler
from flask import Flask, Response, jsonify

from torra.dashboard import TorraOverlay
from torra.overlay import Overlay

HOME = Path(os.environ.get("SCORER_HOME", "scorer_home"))
SYMBOLS = ("XAUUSD", "BTCUSD")
OVERLAY = Overlay(HOME / "torra", profile=os.environ.get("SCORER_PROFILE", "default"))
VECTORS = ("price_action", "key_levels", "momentum", "structure")
TABLE = f"CREATE TABLE IF NOT EXISTS sentiment (time, symbol, timeframe, {', '.join(VECTORS)})"


def load_bars(symbol: str, timeframe: str) -> pd.DataFrame:
    """Stands for the broker's terminal: the newest bars, oldest first, times in UTC."""
    bars = pd.read_csv(HOME / "bars" / f"{symbol}_{timeframe}.csv", parse_dates=["time"])
    return bars.tail(1_000)


def own_scores(bars: pd.DataFrame) -> dict:
    """Four scores in [-1, +1] by arithmetic of one's own."""
    close = bars["close"]
    spread = float(close.tail(100).std()) or 1.0
    lines = (close.iloc[-5], close.tail(20).mean(), close.tail(50).mean(), close.tail(100).mean())
    moves = [max(-1.0, min(1.0, float(close.iloc[-1] - line) / spread / 2.0)) for line in lines]
    return dict(zip(VECTORS, (round(move, 8) for move in moves), strict=True))


def ask_model(_prompt: str) -> str:
    """Stands for a vendor's SDK."""
    return json.dumps({vector: {"score": 0.5, "note": "reads well"} for vector in VECTORS})


def score_chart(symbol: str, timeframe: str, bars: pd.DataFrame, l1: dict) -> dict:
    """The second opinion: four vectors {score, note} and composite_bias."""
    return OVERLAY.score_chart(symbol, timeframe, bars, scores=l1)


def blend(l1: dict, chart: dict) -> dict:
    return {v: round(0.80 * l1[v] + 0.20 * chart[v]["score"], 8) for v in VECTORS}


def save_sentiment(time: str, symbol: str, timeframe: str, scores: dict) -> None:
    with closing(sqlite3.connect(HOME / "scorer.db")) as connection, connection:
        connection.execute(TABLE)
        row = (time, symbol, timeframe, *(scores[vector] for vector in VECTORS))
        connection.execute(f"INSERT INTO sentiment VALUES ({', '.join('?' * len(row))})", row)


def write_signal(time: str, symbol: str, timeframe: str, scores: dict) -> None:
    mean = sum(scores.values()) / len(scores)
    side = "BUY" if mean >= 0.25 else "SELL" if mean <= -0.25 else "HOLD"
    with (HOME / "signals.csv").open("a", encoding="ascii") as file:
        file.write(f"{time},{symbol},{timeframe},{side},{mean:.8f}\n")


def tick(symbol: str, timeframe: str) -> dict:
    """Score the newest bar of a symbol."""
    bars = load_bars(symbol, timeframe)
    l1 = own_scores(bars)
    chart = score_chart(symbol, timeframe, bars, l1)
    scores = blend(l1, chart)
    time = f"{bars['time'].iloc[-1]:%Y-%m-%dT%H:%M:%SZ}"
    save_sentiment(time, symbol, timeframe, scores)
    write_signal(time, symbol, timeframe, scores)
    return scores


def tick_all(timeframe: str) -> None:
    for symbol in SYMBOLS:
        if (HOME / "bars" / f"{symbol}_{timeframe}.csv").exists():
            tick(symbol, timeframe)


def create_app(*, scheduled: bool = True) -> Flask:
    app = Flask(__name__)

    @app.get("/")
    def newest() -> Response:
        with closing(sqlite3.connect(HOME / "scorer.db")) as connection:
            connection.execute(TABLE)
            rows = connection.execute("SELECT * FROM sentiment ORDER BY time DESC LIMIT 20")
            return jsonify(rows.fetchall())

    if scheduled:
        jobs = BackgroundScheduler(timezone="UTC")
        jobs.add_job(tick_all, "cron", minute="*/15", second=5, args=["M15"])
        jobs.add_job(tick_all, "cron", minute=0, second=5, args=["H1"])
        jobs.start()
    TorraOverlay(app)
    return app


if __name__ == "__main__":
    create_app().run(port=8000)
