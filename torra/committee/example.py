"""An invented company for a first look at the committee: its reports, its closes, its headlines.

Business and mood are good and the price is dear, so the seats disagree. Nothing of it is real: the
files of sample_data/example are arithmetic, and are read by the doors that read a user's own. They
are stored in a temporary folder that is gone with the answer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from instance_database import Database
from torra.config import ROOT, DeskSettings, Instance, Profile
from torra.evidence.news_digest import rated
from torra.feeds.sample import SampleFeed
from torra.news import lexicon
from torra.news.source import read_file
from torra.outside import tables
from torra.tools.desk_reader import DeskReader

SYMBOL: Final = "EXAMPLE"
FILES: Final = ROOT / "sample_data" / "example"
AS_OF: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)


@contextmanager
def example_desk(files: Path = FILES) -> Iterator[DeskReader]:
    """Open a desk that knows the invented company and nothing else."""
    instance = Instance(symbol=SYMBOL, timeframes=("D1",), feed="sample")
    what = {"digits": 2, "asset": "stock", "ticker": SYMBOL}
    spec = Profile().symbols["BTCUSD"].model_copy(update=what)
    facts: Any = tables.read(files / "facts.csv").rows
    with (
        tempfile.TemporaryDirectory(prefix="torra-example-") as folder,
        closing(Database.open(Path(folder) / "torra.db", now=lambda: AS_OF)) as database,
    ):
        database.store_bars(SYMBOL, "D1", SampleFeed(files).bars(SYMBOL, "D1", AS_OF))
        database.store_facts(facts, AS_OF)
        news = read_file(files / "news.jsonl")
        database.store_news(rated(one, lexicon.score) for one in news)
        yield DeskReader(
            Path(folder), database, DeskSettings(instances=(instance,)),
            {instance.id: Profile(symbols={SYMBOL: spec})}, AS_OF, AS_OF,
        )  # fmt: skip
