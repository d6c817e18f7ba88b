"""The token file of a home: `access.json`, made once and readable by its owner alone.

When several processes start at the same moment, one makes the file and the others read it. A file
that others can read is refused, for its tokens may be known. Every file that cannot be used is a
ConfigError with the remedy. No message and no log line holds a token.
`access` decides what a token allows.
"""

from __future__ import annotations

import hmac
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torra.clock import token as new_token
from torra.errors import MALFORMED, ConfigError, no_key_twice
from torra.home import ACCESS
from torra.owner_only import FILE, OTHERS, make_folder
from torra.regular_files import open_regular
from torra.whole_files import write_whole

SCOPES: Final = ("read", "approve", "admin")
"""From the smallest: each scope includes the ones before it."""

TOKEN_BYTES: Final = 32
SHORTEST: Final = 32
"""Least characters of a token and of the key, so that nobody puts a word in their place."""

RENEW: Final = "run: torra token --new"


@dataclass(frozen=True, slots=True, repr=False)
class Tokens:
    """A desk's tokens by scope, and the key that signs its sessions."""

    by_scope: Mapping[str, str]
    key: str

    def scope_of(self, token: str) -> str | None:
        """Return the scope of a token, None for an unknown token."""
        found = None
        # every token is compared, also after a match: the time of the answer must tell nothing
        for scope, known in self.by_scope.items():
            if hmac.compare_digest(token.encode("utf-8", "replace"), known.encode()):
                found = scope
        return found


def make() -> Tokens:
    """Return new tokens and a new key; nothing is written."""
    return Tokens({scope: new_token(TOKEN_BYTES) for scope in SCOPES}, new_token(TOKEN_BYTES))


def read_or_make(home: Path) -> tuple[Tokens, bool]:
    """Return a home's tokens and whether they were made just now; raises ConfigError."""
    path = home / ACCESS
    try:
        return read(path), False
    except FileNotFoundError:
        made = make()
    if _put(path, made):
        return read(path), True
    return read(path), False  # another process was quicker


def replace(home: Path) -> Tokens:
    """Put new tokens in the place of the old ones, whatever those were; raises ConfigError."""
    path = home / ACCESS
    try:
        write_whole(path, _as_bytes(make()), mode=FILE)
    except OSError as error:
        raise _unwritten(path, error) from error
    return read(path)


def read(path: Path) -> Tokens:
    """Return the tokens of a file; raises FileNotFoundError and ConfigError."""
    try:
        with open_regular(path) as file:
            # of the open file: the path may name another file by now
            mode = os.fstat(file.fileno()).st_mode
            text = file.read().decode("utf-8-sig")
    except FileNotFoundError as error:
        # A link to nothing: new tokens would be written elsewhere. Only a link: a file that lies
        # there by now was put there by a process that started at the same moment.
        if path.is_symlink():
            raise ConfigError(f"cannot read {path}: {error}; for new tokens {RENEW}") from None
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}; for new tokens {RENEW}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & OTHERS:
        raise ConfigError(
            f"{path} has the rights {stat.S_IMODE(mode):04o}: others can read it, so its tokens "
            f"may be known; {RENEW}, or, if nobody else uses this machine: chmod 600 {path}. "
            "A home on a disk that keeps no rights cannot hold tokens: set TORRA_HOME"
        )
    return _understood(path, text)


def _understood(path: Path, text: str) -> Tokens:
    try:
        told = json.loads(text, object_pairs_hook=no_key_twice)
        by_scope = {scope: told["tokens"][scope] for scope in SCOPES}
        key = told["key"]
    except MALFORMED:
        raise ConfigError(f"{path} is no list of tokens; {RENEW}") from None
    values = [*by_scope.values(), key]
    if any(not isinstance(value, str) or len(value) < SHORTEST for value in values):
        raise ConfigError(f"{path} has a token shorter than {SHORTEST} characters; {RENEW}")
    if len(set(values)) < len(values):
        raise ConfigError(f"{path} has the same token twice; {RENEW}")
    return Tokens(by_scope, key)


def _put(path: Path, tokens: Tokens) -> bool:
    """Write the file if there is none; return False if another process wrote it first."""
    try:
        make_folder(path.parent)
        write_whole(path, _as_bytes(tokens), mode=FILE, replace=False)
    except FileExistsError:
        return False
    except OSError as error:
        raise _unwritten(path, error) from error
    return True


def _as_bytes(tokens: Tokens) -> bytes:
    return json.dumps({"tokens": dict(tokens.by_scope), "key": tokens.key}).encode()


def _unwritten(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"cannot write {path}: {error.strerror or error}; set TORRA_HOME")
