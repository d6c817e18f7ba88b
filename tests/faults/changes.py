"""The changes that a planted fault makes to a program: one node of the syntax tree of one place.

A place is a module, or a public name in it: `module:function` (`Class`, `Class.method`, a nested
function, a constant of a module or a class).
Formatting, comments and most renames of variables do not matter. A change that fits no node of the
place, or several, is a ValueError that names the candidates.

Patterns are expressions. `...` stands for any expression, at the end of arguments or elements for
all that follow; a name fits an attribute of that name too. In what stands there afterwards `_` is
what stood there before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

SIMPLE: Final = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Raise)
"""Statements that hold no others."""


BODIES: Final = (ast.Module, ast.ClassDef)
"""What has constants of its own."""


# --- places -------------------------------------------------------------------------------------


class At:
    """Changes at one place of the program, `module` or `module:function`."""

    def __init__(self, place: str, *changes: Change) -> None:
        self.place, self.changes = place, changes
        module, _, self.name = place.partition(":")
        self.file = module.replace(".", "/") + ".py"

    def spoil(self, text: str) -> str:
        """Return a module's text with the changes; raises ValueError."""
        tree = ast.parse(text)
        self.change(tree)
        program = ast.unparse(ast.fix_missing_locations(tree))
        try:
            ast.parse(program)
        except SyntaxError as error:
            raise ValueError(f"{self.place}: what is left is no program: {error}") from None
        return program

    def change(self, tree: ast.Module) -> None:
        """Make the changes in a module's tree; raises ValueError."""
        try:
            place = node_of(tree, self.name)
            for change in self.changes:
                change.make(place)
        except ValueError as error:
            raise ValueError(f"{self.place}: {error}") from None


# --- nodes and patterns ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """The place of a node in its parent."""

    owner: ast.AST
    field: str
    index: int | None

    @property
    def node(self) -> ast.AST:
        """What stands there."""
        held = getattr(self.owner, self.field)
        return held if self.index is None else held[self.index]

    def put(self, *new: ast.AST) -> None:
        """Let others stand there: one, or in a list any number."""
        if self.index is None:
            setattr(self.owner, self.field, new[0])
        else:
            getattr(self.owner, self.field)[self.index : self.index + 1] = new


def slots(root: ast.AST) -> Iterator[Slot]:
    """Yield the places of all nodes below one."""
    for owner in ast.walk(root):
        for field, value in ast.iter_fields(owner):
            if isinstance(value, ast.AST):
                yield Slot(owner, field, None)
            elif isinstance(value, list):
                for index, node in enumerate(value):
                    if isinstance(node, ast.AST):
                        yield Slot(owner, field, index)


def expression(text: str) -> ast.expr:
    """Return an expression's node."""
    return ast.parse(text, mode="eval").body


def fits(pattern: object, node: object) -> bool:
    """Return whether a node is what a pattern says."""
    if _is_any(pattern):
        return True
    if isinstance(pattern, ast.Name) and isinstance(node, ast.Attribute):
        return pattern.id == node.attr
    if isinstance(pattern, list) and isinstance(node, list):
        if pattern and _is_any(pattern[-1]):
            node, pattern = node[: len(pattern) - 1], pattern[:-1]
        return len(pattern) == len(node) and all(map(fits, pattern, node))
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.Call) and pattern.args and _is_any(pattern.args[-1]):
        assert isinstance(node, ast.Call)
        named = all(any(fits(key, found) for found in node.keywords) for key in pattern.keywords)
        return named and fits(pattern.func, node.func) and fits(pattern.args, node.args)
    if isinstance(pattern, ast.AST):
        fields = (name for name in pattern._fields if name not in ("ctx", "kind"))
        return all(fits(getattr(pattern, name), getattr(node, name)) for name in fields)
    return pattern == node


def _is_any(pattern: object) -> bool:
    return isinstance(pattern, ast.Constant) and pattern.value is ...


def _mentions(pattern: ast.expr, node: ast.AST) -> bool:
    return any(fits(pattern, found) for found in ast.walk(node))


# --- the changes ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """One change of one node. `among` are the nodes that it could be, `chosen` says which it is."""

    said: str
    among: Callable[[Slot], bool]
    chosen: Callable[[Slot], bool]
    done: Callable[[Slot], None]

    def make(self, place: ast.AST) -> None:
        """Change the innermost node that is chosen; raises ValueError when it is not one alone, or
        stays the same.
        """
        candidates = [slot for slot in slots(place) if self.among(slot)]
        hits = [slot for slot in candidates if self.chosen(slot)]
        found = [slot for slot in hits if not any(_within(other, slot) for other in hits)]
        if len(found) != 1:
            there = dict.fromkeys(ast.unparse(slot.node) for slot in found or candidates)
            named = "\n    ".join(there)
            raise ValueError(f"{self.said} fits {len(found)} nodes and not one, of\n    {named}")
        before = ast.unparse(found[0].owner)
        self.done(found[0])
        if ast.unparse(found[0].owner) == before:
            raise ValueError(f"{self.said} leaves what was there")


def never(mentioned: str) -> Change:
    """Let a condition never hold: the test of an if, a loop or a comprehension."""
    return _condition("never", mentioned, "False")


def always(mentioned: str) -> Change:
    """Let a condition always hold."""
    return _condition("always", mentioned, "True")


def drop(mentioned: str) -> Change:
    """Leave out a statement that holds no others."""
    pattern = expression(mentioned)
    return Change(
        f"drop({mentioned!r})",
        lambda slot: isinstance(slot.node, SIMPLE),
        lambda slot: _mentions(pattern, slot.node),
        lambda slot: slot.put(ast.Pass()),
    )


def unwrap(mentioned: str) -> Change:
    """Do what is inside a `with` without it."""
    pattern = expression(mentioned)
    return Change(
        f"unwrap({mentioned!r})",
        lambda slot: isinstance(slot.node, ast.With),
        lambda slot: any(_mentions(pattern, item) for item in slot.node.items),  # type: ignore[attr-defined]
        lambda slot: slot.put(*slot.node.body),  # type: ignore[attr-defined]
    )


def without(element: str) -> Change:
    """Leave out one operand of `and` or `or`, one element, or one argument by its name."""
    pattern = expression(element)

    def chosen(slot: Slot) -> bool:
        if isinstance(slot.node, ast.keyword):
            return slot.node.arg == element
        return fits(pattern, slot.node)

    return Change(f"without({element!r})", _is_element, chosen, lambda slot: slot.put())


def sets(target: str, by: str) -> Change:
    """Give another value to a variable, an argument by its name, or a key of a dict."""
    pattern = expression(target)

    def chosen(slot: Slot) -> bool:
        owner = slot.owner
        if isinstance(owner, ast.keyword):
            return owner.arg == target
        if isinstance(owner, ast.Dict):
            return fits(pattern, owner.keys[slot.index or 0])
        targets = owner.targets if isinstance(owner, ast.Assign) else [owner.target]  # type: ignore[attr-defined]
        return any(fits(pattern, one) for one in targets)

    return Change(f"sets({target!r}, {by!r})", _is_value, chosen, lambda slot: _put(slot, by))


def replace(old: str, by: str) -> Change:
    """Let one expression stand for another."""
    pattern = expression(old)
    return Change(
        f"replace({old!r}, {by!r})",
        lambda slot: isinstance(slot.node, type(pattern)),
        lambda slot: fits(pattern, slot.node),
        lambda slot: _put(slot, by),
    )


def returns(by: str, of: str = "...") -> Change:
    """Let a function return something else where it returns `of`."""
    pattern = expression(of)
    return Change(
        f"returns({by!r}, {of!r})",
        lambda slot: isinstance(slot.owner, ast.Return),
        lambda slot: fits(pattern, slot.node),
        lambda slot: _put(slot, by),
    )


def reword(old: str, new: str) -> Change:
    """Change a part of a text: SQL, a header."""

    def done(slot: Slot) -> None:
        assert isinstance(slot.node, ast.Constant)
        slot.put(ast.Constant(str(slot.node.value).replace(old, new)))

    return Change(
        f"reword({old!r}, {new!r})",
        lambda slot: isinstance(slot.node, ast.Constant) and isinstance(slot.node.value, str),
        lambda slot: slot.node.value.count(old) == 1,  # type: ignore[attr-defined]
        done,
    )


def _condition(name: str, mentioned: str, by: str) -> Change:
    pattern = expression(mentioned)
    return Change(
        f"{name}({mentioned!r})",
        lambda slot: slot.field in ("test", "ifs", "guard"),
        lambda slot: _mentions(pattern, slot.node),
        lambda slot: _put(slot, by),
    )


def _is_element(slot: Slot) -> bool:
    kinds = (ast.BoolOp, ast.Tuple, ast.List, ast.Set)
    return isinstance(slot.node, ast.keyword) or (
        isinstance(slot.owner, kinds) and slot.index is not None
    )


def _is_value(slot: Slot) -> bool:
    if isinstance(slot.owner, ast.Dict):
        return slot.field == "values"
    kinds = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.keyword)
    return isinstance(slot.owner, kinds) and slot.field == "value"


def _within(inner: Slot, outer: Slot) -> bool:
    return inner.node is not outer.node and any(one is inner.node for one in ast.walk(outer.node))


def _put(slot: Slot, by: str) -> None:
    old = slot.node

    class Before(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return old if node.id == "_" else node

    slot.put(Before().visit(expression(by)))


def node_of(tree: ast.Module, name: str) -> ast.AST:
    """Return the node of a function, a class or a constant by its qualified name; raises
    ValueError. The node of "" is the module.
    """
    if not name:
        return tree
    known = list(_names(tree, ""))
    found = [node for named, node in known if named == name]
    if len(found) != 1:
        last = name.rpartition(".")[2]
        named = dict.fromkeys(one for one, _ in known)
        like = [one for one in named if one.rpartition(".")[2] == last and one != name]
        like = like or get_close_matches(name, named, 5) or [*named]
        raise ValueError(f"it is there {len(found)} times; there are {', '.join(like)}")
    return found[0]


def _names(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # nothing in it has a name of its own
            continue
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield prefix + child.name, child
            yield from _names(child, f"{prefix}{child.name}.")
            continue
        targets = child.targets if isinstance(child, ast.Assign) else [getattr(child, "target", 0)]
        if isinstance(child, (ast.Assign, ast.AnnAssign)) and isinstance(node, BODIES):
            yield from ((prefix + one.id, child) for one in targets if isinstance(one, ast.Name))
        yield from _names(child, prefix)
