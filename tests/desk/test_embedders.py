"""A desk's embedder: hashed words, or a model2vec folder that is read and never fetched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import cases
from tests.later import Later
from torra.desk.models.embedders import open_embedder
from torra.errors import ConfigError
from torra.lessons.hashed import hashed

model2vec: Any = Later("model2vec")
tokenizers: Any = Later("tokenizers")

WORDS = ("[UNK]", "range", "spike", "quiet", "market", "break", "volume")


@pytest.fixture(autouse=True)
def _nothing_opened_before() -> None:
    open_embedder.cache_clear()


def saved(folder: Path, numbers: int = 16) -> Path:
    """Save a model of a made-up table: each word has a direction of its own."""
    models = tokenizers.models
    words = {word: at for at, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    table = np.eye(len(WORDS), numbers, dtype=np.float32)
    model2vec.StaticModel(table, tokenizer, {"normalize": True}).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("words") / "model")


def cosine(one: Any, other: Any) -> float:
    return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))


def test_a_folder_embeds_by_its_own_table(folder: Path) -> None:
    embed = open_embedder(str(folder))
    assert len(embed("")) == 16 and not any(embed("")) and not any(embed("unheard"))
    assert embed("LONG XAUUSD M15 in LONDON: range, spike") == embed("range spike")
    assert cosine(embed("range spike"), embed("spike range")) == pytest.approx(1.0)
    assert cosine(embed("range spike"), embed("range volume")) == pytest.approx(0.5, abs=1e-6)
    assert cosine(embed("range"), embed("quiet")) == pytest.approx(0.0, abs=1e-6)


def test_a_home_is_spelled_as_in_a_shell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert len(open_embedder("~/model")("range")) == 16


@cases("name", ["minishlab/potion-base-8M", "no/such/folder", "", "Hashed"])
def test_a_name_that_is_no_folder_is_never_fetched(name: str) -> None:
    with pytest.raises(ConfigError, match=r'agents\.memory\.embedder: .* set it to "hashed"'):
        open_embedder(name)


@cases("gone", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_folder_that_is_not_whole_says_what_is_missing(gone: str, tmp_path: Path) -> None:
    where = saved(tmp_path / gone)
    (where / gone).unlink()
    with pytest.raises(ConfigError, match=rf"it has no {gone};"):
        open_embedder(str(where))


@cases("broken", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_damaged_folder_says_so(broken: str, tmp_path: Path) -> None:
    where = saved(tmp_path / broken)
    (where / broken).write_bytes(b"{]")
    with pytest.raises(ConfigError, match=rf"{where} cannot be used .* set it to"):
        open_embedder(str(where))


@cases("numbers", [1, 7, 4097])
def test_a_table_of_a_strange_width_is_refused(numbers: int, tmp_path: Path) -> None:
    where = saved(tmp_path / str(numbers), numbers)
    with pytest.raises(ConfigError, match=rf"vectors of {numbers} numbers, not 8 to 4096"):
        open_embedder(str(where))


def test_without_the_package_it_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(ConfigError, match=r"pip install 'torra\[memory\]'"):
        open_embedder(str(folder))
    assert open_embedder("hashed") is hashed


NOWHERE = """
import socket, sys
def refuse(*_, **__):
    raise SystemExit("asks for a network")
socket.socket.connect = socket.getaddrinfo = refuse
from torra.desk.models.embedders import open_embedder
from torra.errors import ConfigError
try:
    open_embedder("minishlab/potion-base-8M")
except ConfigError:
    assert "model2vec" not in sys.modules, "imported for a name that is no folder"
print(len(open_embedder(sys.argv[1])("range")))
from huggingface_hub import constants
assert constants.HF_HUB_OFFLINE
"""


@pytest.mark.journey
def test_nothing_reaches_for_a_network(folder: Path) -> None:
    environment = {**os.environ, "HF_HUB_OFFLINE": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NOWHERE, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "16"), done.stderr[-500:]
