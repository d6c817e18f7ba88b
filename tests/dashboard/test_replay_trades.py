"""A replay's trades from its page: a CSV file, harmless whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.test_replay_page import EXAMPLE
from tests.worlds.arm_trades import arm_of
from tests.worlds.desk_pages import Pages, open_pages
from torra.exhibits import report, trade_file
from torra.exhibits.documents import LARGEST, Document

NAME = EXAMPLE["name"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    found = open_pages(tmp_path_factory.mktemp("trades"), steps=2)
    report.write(found.backing.home, Document.model_validate(EXAMPLE))
    yield found
    found.desk.close()


@pytest.fixture
def file(pages: Pages) -> Iterator[Path]:
    path = pages.backing.home / "replays" / NAME / trade_file.FILE
    path.parent.mkdir()
    yield path
    path.unlink(missing_ok=True)
    path.parent.rmdir()


def test_the_page_links_to_the_trades_and_the_link_gives_them(pages: Pages, file: Path) -> None:
    link = f"/replays/{NAME}/trades.csv"
    assert link not in pages.text(f"/replays/{NAME}")
    pages.text(link, 404)
    text = trade_file.as_csv([arm_of([-1.0, 2.0])])
    file.write_bytes(text.encode())
    assert link in pages.text(f"/replays/{NAME}")
    answer = pages.client().get(link)
    assert answer.mimetype == "text/csv"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{NAME}-trades.csv"'
    assert answer.text.splitlines()[0] == text.splitlines()[0]
    assert len(answer.text.splitlines()) == 3


@pytest.mark.parametrize("kind", ["no-trades", "too-large", "no-text", "a-link"])
def test_a_file_that_is_no_such_file_is_not_given_away(
    pages: Pages, file: Path, tmp_path: Path, kind: str
) -> None:
    good = trade_file.as_csv([arm_of([-1.0])])
    if kind == "a-link":
        (tmp_path / "elsewhere").write_text(good)
        file.symlink_to(tmp_path / "elsewhere")
    else:
        told = {"no-trades": b"secret", "too-large": b"," * (LARGEST + 1), "no-text": b"\xff\xfe"}
        file.write_bytes(told[kind])
    pages.text(f"/replays/{NAME}/trades.csv", 404)
    assert "trades.csv" not in pages.text(f"/replays/{NAME}")
