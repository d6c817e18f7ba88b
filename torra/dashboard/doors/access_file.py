"""The token file of a home: `access.json`, made once and readable by its owner alone.

When several processes start at the same moment, one makes the file and the others read it. A file
that others can read is refused, for its tokens may be known. Whoever changes the file holds
ACCESS_LOCK from reading to writing: else a token that was just taken back could come back with the
change of another command. Every file that cannot be used is a ConfigError with the remedy. No
message and no log line holds a token. `access` decides what a token allows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from torra.clock import token as new_token
from torra.errors import MALFORMED, ConfigError, no_key_twice
from torra.home import ACCESS, ACCESS_LOCK
from torra.owner_only import FILE, OTHERS, make_folder
from torra.regular_files import open_regular
from torra.whole_files import alone, write_whole

SCOPES: Final = ("read", "approve", "admin")
"""From the smallest: each scope includes the ones before it."""

TOKEN_BYTES: Final = 32
SHORTEST: Final = 32
"""Least characters of a token and of the key, so that nobody puts a word in their place."""

RENEW: Final = "run: torra token --new"

NAME: Final = re.compile(r"[^\W_][\w .-]{0,38}[\w]|[^\W_]")
"""A person's name: letters, digits, blanks, dots and hyphens, at most 40."""

TAKEN: Final = ("session", "token", "command line")
"""Words with which the audit log tells of somebody who has no name."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a token: its scope, and the person's name, "" for a token without one.

    `ask_model` is what was decided about their right to ask a model, None for nothing.
    """

    scope: str
    name: str = ""
    ask_model: bool | None = field(default=None, compare=False)

    @property
    def may_ask_model(self) -> bool:
        """Return whether questions of this owner may cost a model's answer."""
        return self.scope != "read" if self.ask_model is None else self.ask_model


@dataclass(frozen=True, slots=True, repr=False)
class Tokens:
    """A desk's tokens by scope, those of persons with a name, and the key that signs sessions."""

    by_scope: Mapping[str, str]
    key: str
    of_persons: Mapping[Owner, str] = field(default_factory=dict)

    def owner_of(self, token: str) -> Owner | None:
        """Return the owner of a token, None for an unknown token."""
        holder = None
        every = {Owner(scope): known for scope, known in self.by_scope.items()}
        # every token is compared, also after a match: the time of the answer must tell nothing
        for owner, known in {**every, **self.of_persons}.items():
            if hmac.compare_digest(token.encode("utf-8", "replace"), known.encode()):
                holder = owner
        return holder

    def mark(self, owner: Owner) -> str | None:
        """Return what a session keeps of a person's token, which ends with it; None without one.

        Sessions of the tokens without a name end with the key: they keep nothing.
        """
        if not owner.name:
            return ""
        token = self.of_persons.get(owner)
        return None if token is None else hashlib.sha256(token.encode()).hexdigest()[:16]

    def person(self, name: str) -> Owner | None:
        """Return the owner of a name, None where nobody has it."""
        return next((one for one in self.of_persons if same_name(one.name, name)), None)


def same_name(one: str, other: str) -> bool:
    """Return whether two names are one person's: Anna and anna are."""
    return one.casefold() == other.casefold()


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
    with _alone(home):
        return _rewritten(home, make())


def name_person(home: Path, name: str, scope: str) -> tuple[Tokens, bool]:
    """Return the tokens, with one for a person, and whether that was made now; raises ConfigError.

    A person has one token: a name that has one of another scope is refused.
    """
    if not NAME.fullmatch(name) or name.casefold() in TAKEN:
        raise ConfigError(
            f"{name[:60]!r} is no name for a token: letters, digits, blanks, dots and hyphens, "
            f"at most 40, and not {', '.join(TAKEN)}"
        )
    if scope not in SCOPES:
        raise ConfigError(f"{scope[:60]!r} is no scope of a token; there are {', '.join(SCOPES)}")
    with _alone(home):
        tokens, _ = read_or_make(home)
        person = tokens.person(name)
        if person is not None and person.scope != scope:
            raise ConfigError(
                f"{person.name} has a token of the scope {person.scope}; take it back first: "
                f"torra token --revoke {person.name!r}"
            )
        if person is not None:
            return tokens, False
        more = {**tokens.of_persons, Owner(scope, name): new_token(TOKEN_BYTES)}
        return _rewritten(home, Tokens(tokens.by_scope, tokens.key, more)), True


def let_ask_model(home: Path, name: str, *, allowed: bool) -> Tokens:
    """Decide whether a person's questions may cost a model's answer; raises ConfigError."""
    with _alone(home):
        tokens, _ = read_or_make(home)
        person = _holder(tokens, name)
        # the key itself is replaced: the right is no part of who an owner is
        others = {owner: token for owner, token in tokens.of_persons.items() if owner != person}
        decided = {Owner(person.scope, person.name, allowed): tokens.of_persons[person]}
        return _rewritten(home, Tokens(tokens.by_scope, tokens.key, {**others, **decided}))


def _holder(tokens: Tokens, name: str) -> Owner:
    person = tokens.person(name)
    if person is None:
        names = ", ".join(sorted(one.name for one in tokens.of_persons)) or "nobody"
        raise ConfigError(f"{name[:60]!r} has no token of this desk; there is one of: {names}")
    return person


def revoke(home: Path, name: str) -> tuple[Tokens, str]:
    """Take back a person's token, which ends that person's sessions; raises ConfigError.

    Also returns the name as it was given.
    """
    with _alone(home):
        tokens, _ = read_or_make(home)
        person = _holder(tokens, name)
        # A file of before may have Anna and anna: none of them may be left.
        rest = {
            owner: token for owner, token in tokens.of_persons.items()
            if not same_name(owner.name, name)
        }  # fmt: skip
        return _rewritten(home, Tokens(tokens.by_scope, tokens.key, rest)), person.name


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Keep every other change of the tokens out; raises ConfigError."""
    path = home / ACCESS_LOCK
    with ExitStack() as stack:
        try:
            make_folder(home)
            stack.enter_context(alone(path, mode=FILE))
        except TimeoutError:
            raise ConfigError(
                f"another process changes the tokens and holds {path}: try again when it has ended"
            ) from None
        except OSError as error:
            raise _unwritten(path, error) from error
        yield


def _rewritten(home: Path, tokens: Tokens) -> Tokens:
    path = home / ACCESS
    try:
        write_whole(path, _as_bytes(tokens), mode=FILE)
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
        document = json.loads(text, object_pairs_hook=no_key_twice)
        by_scope = {scope: document["tokens"][scope] for scope in SCOPES}
        key = document["key"]
        of_persons = {
            Owner(one["scope"], one["name"], one.get("ask_model")): one["token"]
            for one in document.get("persons", ())
        }
    except MALFORMED:
        raise ConfigError(f"{path} is no list of tokens; {RENEW}") from None
    if any(owner.scope not in SCOPES or not _is_name(owner.name) for owner in of_persons):
        raise ConfigError(f"{path} has a person without a name or a scope; {RENEW}")
    if any(not isinstance(owner.ask_model, bool | None) for owner in of_persons):
        raise ConfigError(f"{path} has a person whose ask_model is not true or false; {RENEW}")
    values = [*by_scope.values(), *of_persons.values(), key]
    if any(not isinstance(value, str) or len(value) < SHORTEST for value in values):
        raise ConfigError(f"{path} has a token shorter than {SHORTEST} characters; {RENEW}")
    if len(set(values)) < len(values):
        raise ConfigError(f"{path} has the same token twice; {RENEW}")
    return Tokens(by_scope, key, of_persons)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and NAME.fullmatch(name) is not None


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
    persons = [
        {"name": owner.name, "scope": owner.scope, "token": token}
        | ({} if owner.ask_model is None else {"ask_model": owner.ask_model})
        for owner, token in tokens.of_persons.items()
    ]
    document = {"tokens": dict(tokens.by_scope), "key": tokens.key}
    return json.dumps({**document, "persons": persons} if persons else document).encode()


def _unwritten(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"cannot write {path}: {error.strerror or error}; set TORRA_HOME")
