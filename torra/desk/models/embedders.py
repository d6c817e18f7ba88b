"""What makes a vector of a lesson's text: Torra's own hashed words, or a model2vec folder.

The setting `agents.memory.embedder` is "hashed" or the path of a folder with a model2vec model
(model.safetensors, tokenizer.json, config.json). The package is the extra `memory` and is imported
when such a folder is opened; the folder is read once, and nothing is ever downloaded: a name of a
model on a hub is no folder, and is refused as one.

A vector is of content words alone with either, so that symbols and sides make no two texts alike.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from agent_config import HASHED
from torra.errors import ConfigError, bounded
from torra.lessons.content_words import content_words
from torra.lessons.hashed import hashed
from torra.lessons.ranking import Embed

SETTING: Final = "agents.memory.embedder"
FILES: Final = ("model.safetensors", "tokenizer.json", "config.json")
"""What save_pretrained of model2vec writes, and from_pretrained reads."""

LEAST_NUMBERS: Final = 8
MOST_NUMBERS: Final = 4096
"""Numbers of a vector: published models have 64 to 1,024."""

QUIET: Final[Mapping[str, str]] = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
"""The environment under which model2vec is imported: no network, no threads of its own."""

TRIED: Final = "range spike, quiet market"
"""A text that an opened folder has to make a vector of."""


@lru_cache(maxsize=4)  # a check opens what the ticks use later
def open_embedder(setting: str) -> Embed:
    """Return what makes vectors of texts; raises ConfigError where the setting names nothing.

    A folder is read once in the life of the process.
    """
    if setting == HASHED:
        return hashed
    folder = Path(setting).expanduser()
    model = _opened(folder)

    def embed(text: str) -> list[float]:
        vector = model.encode(" ".join(content_words(text)), use_multiprocessing=False)
        return [float(value) for value in vector]

    try:
        widths = {len(embed(text)) for text in ("", TRIED)}
    except Exception as error:  # a strange table may raise anything
        raise _unusable(folder, error) from error
    if len(widths) > 1 or not LEAST_NUMBERS <= max(widths) <= MOST_NUMBERS:
        raise _unusable(
            folder, f"vectors of {max(widths)} numbers, not {LEAST_NUMBERS} to {MOST_NUMBERS}"
        )
    return embed


def _opened(folder: Path) -> Any:
    """Return the model of a folder."""
    try:
        missing = [name for name in FILES if not (folder / name).is_file()]
    except OSError as error:  # a name that no disk takes
        raise _unusable(folder, error) from error
    if missing:
        raise ConfigError(
            f"{SETTING}: {folder} is no model2vec folder: it has no {', '.join(missing)}; name a "
            f'folder that model2vec saved, by its whole path, or set it to "{HASHED}"'
        )
    os.environ.update(QUIET)
    try:
        from model2vec import StaticModel  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise ConfigError(
            f"{SETTING}: {folder} needs model2vec: pip install 'torra[memory]', "
            f'or set it to "{HASHED}"'
        ) from error
    try:
        return StaticModel.from_pretrained(folder, force_download=False)
    except Exception as error:  # safetensors and tokenizers have errors of their own
        raise _unusable(folder, error) from error


def _unusable(folder: Path, why: object) -> ConfigError:
    return ConfigError(
        f"{SETTING}: the model2vec folder {folder} cannot be used ({bounded(str(why))}); save the "
        f'model there again, or set it to "{HASHED}"'
    )
