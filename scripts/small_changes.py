"""Small changes of a program that are drawn by a seed: the mutants of tests/faults/baseline.py.

A mutant is one change of one node in the body of a function. Each kind of change has its turn, and
a fraction between 0 and 1 says which node of its kind it is: the same seed finds about the same
nodes in a program that grew or moved. Docstrings, annotations, f-strings, casts and calls of a log
stay as they are. Every change makes another program.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, takewhile
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.faults.changes import Slot

FLIPPED: Final[dict[type[ast.AST], type[ast.AST]]] = {
    one: other
    for pair in (
        (ast.Lt, ast.LtE),
        (ast.Gt, ast.GtE),
        (ast.Eq, ast.NotEq),
        (ast.Is, ast.IsNot),
        (ast.In, ast.NotIn),
        (ast.And, ast.Or),
        (ast.Add, ast.Sub),
        (ast.Mult, ast.Div),
    )
    for one, other in (pair, pair[::-1])
}

KINDS: Final[dict[str, tuple[type[ast.AST], ...]]] = {
    "comparison": (ast.cmpop,),
    "boolean": (ast.boolop,),
    "arithmetic": (ast.operator,),
}
"""Kinds of change that put one operator in the place of another."""

UNTOUCHED: Final = {"annotation", "returns", "decorator_list", "args", "type_params"}
"""Fields of functions and assignments that only say types, or are read when the module is."""

SILENT: Final = re.compile(r"(log\.\w+|(typing\.)?cast)")
"""Calls that no test has to notice."""


SHOWN: Final = 90
"""Characters of a line that a change shows."""


class Site(NamedTuple):
    """A node that may be changed: its qualified function and the statement that it is in."""

    function: str
    statement: ast.stmt
    slot: Slot


class Mutant(NamedTuple):
    """A change, with the lines of its statement and the whole file before and after.

    `change` shows what stood there and what stands there now.
    """

    file: str
    function: str
    change: str
    lines: range
    before: str
    after: str


def draw(root: Path, folder: str, count: int, seed: int) -> Iterator[Mutant]:
    """Yield mutants of a folder's modules, as many as there are if these are fewer."""
    chance = Random(f"{seed} {folder}")  # noqa: S311
    paths = [path.relative_to(root).as_posix() for path in sorted((root / folder).rglob("*.py"))]
    texts = {path: (root / path).read_text(encoding="utf-8") for path in paths}
    numbers = defaultdict(list)
    for path, text in texts.items():
        for number, site in enumerate(sites(ast.parse(text))):
            for kind in CHANGES:
                if CHANGES[kind](site.slot) is not None:
                    numbers[kind].append((path, number))
    for kind in cycle(CHANGES):
        if not count or not any(numbers.values()):
            return
        if numbers[kind]:
            path, number = numbers[kind].pop(int(chance.random() * len(numbers[kind])))
            yield mutant(path, texts[path], number, kind)
            count -= 1


def mutant(file: str, text: str, number: int, kind: str) -> Mutant:
    """Return the mutant of a site by its number."""
    tree = ast.parse(text)
    site = list(sites(tree))[number]
    statement = site.statement
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno
    lines = range(statement.lineno, max(statement.lineno, last or 0) + 1)
    whole = isinstance(site.slot.node, ast.stmt)
    old = _around(site.slot, whole=whole)
    site.slot.put(*(CHANGES[kind](site.slot) or ()))
    change = f"{kind}: {_change(old, _around(site.slot, whole=whole))}"
    after = ast.unparse(ast.fix_missing_locations(tree))
    return Mutant(file, site.function, change, lines, text, after)


def sites(node: ast.AST, function: str = "", statement: ast.stmt | None = None) -> Iterator[Site]:
    """Yield the nodes in functions that may be changed, in the order of the text."""
    scope = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    if scope:
        function = f"{function}.{node.name}".lstrip(".")  # type: ignore[attr-defined]
    inside = statement is not None or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for field, value in ast.iter_fields(node):
        if field in UNTOUCHED and (scope or isinstance(node, ast.AnnAssign)):
            continue
        children = value if isinstance(value, list) else [value]
        for index, child in enumerate(children):
            if not isinstance(child, ast.AST) or _silent(child):
                continue
            own = child if inside and isinstance(child, ast.stmt) else statement
            if own is not None:
                number = index if value is children else None
                # Tests are checked without strict optionals: their None is no type of its own.
                slot = Slot(node, field, number)  # type: ignore[arg-type]
                yield Site(function, own, slot)
            yield from sites(child, function, own)


def _silent(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _silent(node.value)
    if isinstance(node, ast.Call):
        return bool(SILENT.fullmatch(ast.unparse(node.func)))
    return isinstance(node, ast.JoinedStr)


def _around(slot: Slot, *, whole: bool) -> str:
    """Return what stands in a slot, or what is around it, on one line."""
    return " ".join(ast.unparse(slot.node if whole else slot.owner).split())


def _change(old: str, new: str) -> str:
    """Return both lines from a little before where they differ."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    begin = max(0, sum(1 for _ in same) - 40)
    return f"{old[begin : begin + SHOWN]} -> {new[begin : begin + SHOWN]}"


# --- the changes ----------------------------------------------------------------------------------

New = Sequence[ast.AST] | None
"""What stands in a node's place; None where the kind has no change of it."""


def _operator(kind: str) -> Callable[[Slot], New]:
    def change(slot: Slot) -> New:
        new = FLIPPED.get(type(slot.node)) if isinstance(slot.node, KINDS[kind]) else None
        return None if new is None else (new(),)

    return change


def _condition(slot: Slot) -> New:
    if slot.field not in ("test", "ifs"):
        return None
    node = slot.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return (node.operand,)
    return (ast.UnaryOp(ast.Not(), node),)  # type: ignore[arg-type]


def _number(slot: Slot) -> New:
    match slot.node:
        case ast.Constant(value=bool(value)):
            return (ast.Constant(not value),)
        case ast.Constant(value=int(value) | float(value)):
            return (ast.Constant(value + 1),)
    return None


def _text(slot: Slot) -> New:
    match slot.node:
        case ast.Constant(value=str(value)) if value:
            return (ast.Constant(""),)
    return None


def _result(slot: Slot) -> New:
    plain = isinstance(slot.owner, ast.Return) and ast.unparse(slot.node) != "None"
    return (ast.Constant(None),) if plain else None


def _statement(slot: Slot) -> New:
    match slot.node:
        case ast.Expr() | ast.AugAssign() | ast.Raise():
            return (ast.Pass(),)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return (ast.Pass(),)
    return None


def _argument(slot: Slot) -> New:
    call = slot.owner
    if not isinstance(call, ast.Call) or slot.index is None:
        return None
    last = slot.field == "keywords" or slot.index == len(call.args) - 1 > 0
    return () if last else None


CHANGES: Final[dict[str, Callable[[Slot], New]]] = {
    **{kind: _operator(kind) for kind in KINDS},
    "condition": _condition,
    "number": _number,
    "text": _text,
    "result": _result,
    "statement": _statement,
    "argument": _argument,
}
