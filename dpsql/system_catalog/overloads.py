"""Which form of a function or an operator the types of its arguments mean, as Postgres chooses it.

`any` is whatever is given. All that is `anyelement`, `anyint` or `anynumber` takes one type, which is that of the items
of every `anyarray` beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .errors import CatalogRefusal, unsupported
from .functions import Signature
from .pg_types import PSEUDO, TEXT, UNKNOWN, PgType, array_of, record_of
from .typed import TranslationContext, Typed, coerce, common_type

__all__ = ["apply"]

_ANY, _ARRAY, _ELEMENT, _INT, _NUMBER, _FIRST = (
    PSEUDO[name] for name in ("any", "anyarray", "anyelement", "anyint", "anynumber", "first")
)
_ELEMENTS = frozenset(type_.name for type_ in (_ELEMENT, _INT, _NUMBER))


def apply(
    context: TranslationContext,
    forms: Mapping[str, tuple[Signature, ...]],
    name: str,
    values: Sequence[Typed],
) -> tuple[Signature, Typed]:
    """Return the form of a function that is meant, and what it makes of its arguments.

    Raises CatalogRefusal: there is no such function, or none for them.
    """
    typed = [(form, types) for form in forms.get(name, ()) if (types := form.types(len(values))) is not None]
    if not typed:
        raise CatalogRefusal(
            f"the function {name[:60]}",
            message=f"the function {name[:60]} is not supported in a query of the system catalog",
        )
    form, types = typed[0]
    if len(typed) > 1:
        fitting = [found for found in typed if all(map(_fits, values, found[1]))]
        form, types = max(fitting, key=lambda found: _exactness(values, found[1]), default=typed[0])
    element = _element(values, types)
    sqls = [
        coerce(context, value, _argument(value, type_, element)).sql
        for value, type_ in zip(values, types, strict=True)
    ]
    is_first = form.returns is _FIRST and values[0].type is not UNKNOWN
    returns = values[0].type if is_first else _result(form.returns, element)
    lowest = values[0].type.lowest if values else 1
    sql = form.sql.format(*sqls, all=", ".join(sqls), type=returns.holder, lowest=lowest)
    return form, Typed(sql, returns)


def _fits(value: Typed, type_: PgType) -> bool:
    given = value.type
    if type_ is _ARRAY:
        return given.element is not None
    if given is UNKNOWN or type_ is _ANY or type_ is _ELEMENT:
        return True
    if type_.name in _ELEMENTS:
        return given.is_number if type_ is _NUMBER else given.is_integer
    return given.family == type_.family or (given.is_number and type_.is_number)


def _exactness(values: Sequence[Typed], types: Sequence[PgType]) -> int:
    return sum(value.type == type_ for value, type_ in zip(values, types, strict=True))


def _element(values: Sequence[Typed], types: Sequence[PgType]) -> PgType | None:
    """Return the type of all `anyelement` and of the items of all `anyarray`; None: there are none."""
    pairs = list(zip(values, types, strict=True))
    arrays = [value for value, type_ in pairs if type_ is _ARRAY and value.type is not UNKNOWN]
    asked = [value for value, type_ in pairs if type_.name in _ELEMENTS]
    if not arrays and not asked:
        return None
    found = common_type(arrays).element if arrays else common_type(asked)
    if (
        found is None
        or (any(type_ is _INT for type_ in types) and not found.is_integer)
        or (any(type_ is _NUMBER for type_ in types) and not found.is_number)
    ):
        raise unsupported("a function of values of these types")
    return found


def _argument(value: Typed, type_: PgType, element: PgType | None) -> PgType:
    """Return the type that an argument is read as."""
    if type_ is _ANY or (type_ is _ARRAY and element is not None and value.type.element == element):
        return TEXT if value.type is UNKNOWN else value.type
    return _result(type_, element)


def _result(type_: PgType, element: PgType | None) -> PgType:
    """Return a declared type with what its pseudo-types stand for. Raises CatalogRefusal: that is not known."""
    if type_.fields:
        return record_of(tuple((name, _result(field, element)) for name, field in type_.fields))
    found: PgType | None = type_
    if type_ is _ARRAY:
        found = None if element is None else array_of(element)
    elif type_.name in _ELEMENTS or type_ is _FIRST:
        found = element
    if found is None:
        raise unsupported("an array of this type")
    return found
