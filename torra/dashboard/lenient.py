"""Rows and documents of the dashboard's own view as values, read leniently.

What is missing or of another type reads as the field's default. Nothing raises.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Self, cast

from pydantic import (
    AllowInfNan,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    Strict,
)
from pydantic_core import CoreSchema, core_schema


class Else:
    """What stands for a value of another type; without any, it is no item of its list or dict."""

    def __init__(self, *default: object) -> None:
        self._default = default

    def __get_pydantic_core_schema__(self, of: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        for default in self._default:
            return core_schema.with_default_schema(handler(of), default=default, on_error="default")
        return core_schema.with_default_schema(handler(of), on_error="omit")


Number = Annotated[Annotated[float, Strict(), AllowInfNan(False)] | None, Else(None)]
"""A finite number; a bool is none."""

Whole = Annotated[Annotated[int, Strict()] | None, Else(None)]
Word = Annotated[str | None, Else(None)]
Words = tuple[Annotated[str, Else()], ...]
Numbers = dict[str, Number]
Flag = Annotated[bool, Strict()]


class _Empty(dict[str, Any]):
    """An empty dict for every document without one; its hash keeps pydantic from copying it."""

    def __hash__(self) -> int:  # type: ignore[override]
        return 0


_EMPTY: Final = _Empty()


class LenientModel(BaseModel):
    """A value; each field has a default, which stands for what cannot be read.

    `model_fields_set` tells which of its keys the document has; a value of which the document has
    no key is false.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def __get_pydantic_core_schema__(cls, of: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema in which no field and no part fails."""
        schema = handler(of)
        inner = cast("dict[str, Any]", schema)
        while inner["type"] != "model-fields":
            inner = inner["schema"]
        for field in inner["fields"].values():
            lenient = field["schema"]
            lenient["on_error"] = "default"
            if lenient.get("default") == {}:
                lenient["default"] = _EMPTY
        return core_schema.with_default_schema(
            schema, default_factory=cls.model_construct, on_error="default"
        )

    @classmethod
    def read(cls, document: object) -> Self:
        """Return what a document says; a value of this type stays the same object."""
        return cls.model_validate(document)

    def __bool__(self) -> bool:
        return bool(self.model_fields_set)

    def __hash__(self) -> int:
        # equal values are of one type; without any hash pydantic would copy a default each time
        return hash(type(self))
