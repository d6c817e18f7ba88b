"""Names of a tree: words that no manual has, and classes of one name in two modules.

A name is counted where it begins: a module, a class, a function, a parameter, a variable, an
attribute, a key of a dict or a row, a column of a table. `found` is a word of `found_rows` and of
`FoundRow`, not of `foundation`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

WORDS: Final = (
    "told", "found", "said", "seen", "asked", "held", "looked", "heard", "spoken", "beside",
    "apart", "elder", "heed",
)  # fmt: skip
"""Words that no manual of the field has as a name."""

PIECE: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
KEY: Final = re.compile(r"[a-z][a-z0-9_]*")
COLUMN: Final = re.compile(r"(?:^|[(,])\s*(\w+) (?:TEXT|INTEGER|REAL|BLOB)\b", re.MULTILINE)


def names(path: str, tree: ast.Module) -> Iterator[str]:
    """Yield the names that begin in a module, its own one first, each as often as it begins."""
    yield path.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")[2]
    for node in ast.walk(tree):
        yield from _of(node)


def _of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.arg(arg=name) | ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.Subscript(slice=ast.Constant(value=str(name))) if KEY.fullmatch(name):
            yield name
        case ast.Dict(keys=keys):
            texts = [key.value for key in keys if isinstance(key, ast.Constant)]
            yield from (text for text in texts if isinstance(text, str) and KEY.fullmatch(text))
        case ast.Constant(value=str(text)) if "CREATE TABLE" in text:
            yield from COLUMN.findall(text)


def words(name: str) -> set[str]:
    """Return the words of a name in small letters."""
    return {piece.lower() for piece in PIECE.findall(name)}


def counted(trees: Mapping[str, ast.Module]) -> dict[str, Counter[str]]:
    """Return by module how many names have each of WORDS."""
    return {
        path: Counter(
            word for name in names(path, tree) for word in words(name).intersection(WORDS)
        )
        for path, tree in trees.items()
    }


def doubles(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return the modules of each public class whose name two modules have."""
    modules = defaultdict(set)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].add(path)
    return {name: sorted(paths) for name, paths in sorted(modules.items()) if len(paths) > 1}
