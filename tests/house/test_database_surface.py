"""The database is a small thing to know: what has one table of its own is a module of functions."""

from instance_database import Database

MOST = 120


def test_the_database_has_few_public_names() -> None:
    names = [name for name in dir(Database) if not name.startswith("_")]
    assert len(names) <= MOST, f"{len(names)} names: make functions over a Store of the side tables"
