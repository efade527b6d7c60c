"""What a catalog query may call: every function and operator is a piece of the engine's SQL, and no other is reachable.

The tables, in functions.txt, give arguments and results as Postgres declares them, whose types choose the form
(`apply`).

Typed pieces of the engine's SQL, and how a value of one type becomes one of another.

House rule: text of the client's reaches the engine's SQL through `quoted` alone, or as a parameter.

Which form of a function or an operator the types of its arguments mean, as Postgres chooses it.

`any` is whatever is given. All that is `anyelement`, `anyint` or `anynumber` takes one type, which is that of the items
of every `anyarray` beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from ..records import dataclass
from ..regex import regex
from .errors import MOST_OF_A_SERIES, CatalogRefusal, raised, unsupported
from .objects import Names
from .pg_types import BY_NAME, BY_OID, PSEUDO, TEXT, UNKNOWN, PgType, array_of, record_of, sections, wider


@dataclass(frozen=True, slots=True)
class Signature:
    """One form of a function. `sql` has {0}, {1} where the arguments stand, and {all} for them with commas between.

    It may also have {type}, what holds the result; {lowest}, the place at which the first argument, an array, begins;
    and $name, what differs between connections. `is_variadic`: the last argument may come more than once.
    `is_set`: the function returns rows, and `sql` is the array of them.
    """

    arguments: tuple[PgType, ...]
    returns: PgType
    sql: str
    is_variadic: bool
    is_set: bool

    def types(self, count: int) -> tuple[PgType, ...] | None:
        """Return the types of so many arguments; None: the form does not take as many."""
        more = count - len(self.arguments)
        if more and not (self.is_variadic and more > 0):
            return None
        return self.arguments + self.arguments[-1:] * more


_MAY = "list_has_any(string_split(upper(replace({}, ' ', '')), ','), {})"
"""Whether a list of privileges, one of which is enough, has one that there is."""
_SEPARATOR = regex(r"\b\|\b| ")


def _type(name: str) -> PgType:
    if name.endswith("[]"):
        return BY_OID[BY_NAME[name[:-2]].array]
    return PSEUDO.get(name) or BY_NAME['"char"' if name == "char" else name]


def _returned(text: str) -> PgType:
    """Return a type, or the record of (name type, …)."""
    if text[0] != "(":
        return _type(text)
    fields = (field.split() for field in text[1:-1].split(", "))
    return record_of(tuple((name, _type(type_)) for name, type_ in fields))


_PARTS = sections("functions.txt")
_PIECE = regex(r"\{([A-Z_]+)(?::((?:[^{}]|\{[^{}]*\})*))?\}")


def _lines(part: str) -> list[str]:
    """Return the lines of a part of functions.txt; one that is indented goes on with the line before."""
    return re.sub(r"\n +", " ", _PARTS[part]).split("\n")


_PIECES = {
    "MOST": str(MOST_OF_A_SERIES),
    **{f"RAISED_{what.upper()}": raised(what) for what in ("length", "place", "series", "step", "zone")},
    **dict(line.split(" = ", 1) for line in _lines("pieces")),
}


def _read(part: str) -> MappingProxyType[str, tuple[Signature, ...]]:
    """Return what a part's lines of `names(types) -> type = sql` say."""
    found: dict[str, tuple[Signature, ...]] = {}
    may = re.compile(r"may_\(([^,]*), '([^']*)'\)")
    for line in _lines(part):
        line = may.sub(lambda match: _MAY.format(match[1], str(match[2].split("|"))), line)
        while piece := _PIECE.search(line):
            line = line.replace(piece[0], _PIECES[piece[1]].replace("{it}", piece[2] or ""))
        head, _, sql = line.partition(" = ")
        call, _, returns = head.partition(" -> ")
        names, _, inside = call.partition("(")
        types = inside.removesuffix(")").removesuffix("...")
        arguments = tuple(_type(word) for word in types.split(", ") if word)
        type_, is_set = _returned(returns.removeprefix("setof ")), returns.startswith("setof ")
        for name in _SEPARATOR.split(names):
            form = Signature(arguments, type_, sql.replace("@", name), "..." in inside, is_set)
            found[name] = (*found.get(name, ()), form)
    return MappingProxyType(found)


CATALOG_FUNCTIONS = _read("catalogs")
"""Functions that only the catalog has: a query of no relation that calls one is a query of the catalog."""
FUNCTIONS = MappingProxyType({**_read("everywhere"), **CATALOG_FUNCTIONS})
"""A function's name -> its forms."""
OPERATORS, AGGREGATES = _read("operators"), _read("aggregates")
BARE = MappingProxyType(
    {"current_catalog": "current_database", "current_date": "current_date", "localtimestamp": "now",
     "current_timestamp": "now"}
)  # fmt: skip
"""Words without parentheses that are another function's name."""


_MOST_SQL = 400_000
_NUMBER = regex(r"\s*[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,3})?\s*", re.IGNORECASE)
_INTEGER = regex(r"\s*[+-]?\d{1,18}\s*")
_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "on", "1"), "true"),
    **dict.fromkeys(("f", "false", "n", "no", "off", "0"), "false"),
}
_SHOWN = {"regclass": "h.shown_class", "regtype": "h.shown_type", "regproc": "h.shown_proc"}
_ITEM = regex(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,{}"\\]*))\s*')


@dataclass(frozen=True, slots=True)
class Typed:
    """A piece of SQL and its type. `literal`: a string that has no type yet; `parameter`: a $n that has none.

    `modifier`: Postgres' of a column's type; -1 where none.
    """

    sql: str
    type: PgType
    modifier: int = -1
    literal: str | None = None
    parameter: int | None = None
    is_null: bool = False

    def __post_init__(self) -> None:
        if len(self.sql) > _MOST_SQL:
            raise unsupported("a query that grows too long")


@dataclass
class TranslationContext:
    """What one translation gathers: the parameters' types, and the settings that it asks for."""

    names: Names
    parameters: dict[int, PgType] = field(default_factory=dict)
    settings: list[str] = field(default_factory=list)
    _aliases: int = 0

    def alias(self, prefix: str = "t") -> str:
        """Return a name that nothing else in the query has."""
        self._aliases += 1
        return f"{prefix}{self._aliases}"


def quoted(text: str) -> str:
    """Return a string of the engine's SQL."""
    if "\0" in text:
        raise unsupported("a zero byte")
    return "'" + text.replace("'", "''") + "'"


def null_of(type_: PgType) -> Typed:
    """Return a NULL of a type."""
    return Typed(f"CAST(NULL AS {type_.holder})", type_, is_null=True)


def common_type(values: list[Typed]) -> PgType:
    """Return the type that values take beside each other; text where none has one. Raises CatalogRefusal: none."""
    found = UNKNOWN
    for value in values:
        found = _wider(found, value.type)
    return TEXT if found is UNKNOWN else found


def _wider(left: PgType, right: PgType) -> PgType:
    found = wider(left, right)
    if found is None:
        raise unsupported(f"{left.name} beside {right.name}")
    return found


def coerce(context: TranslationContext, value: Typed, target: PgType) -> Typed:
    """Return the value as one of the type `target`. Raises CatalogRefusal: that is not done here."""
    source = value.type
    if value.is_null and source is UNKNOWN:
        return null_of(target)
    if value.literal is not None:
        return Typed(_literal(context, value.literal, target), target)
    if value.parameter is not None:
        known = context.parameters.setdefault(value.parameter, target)
        typed = Typed(f"CAST($p{value.parameter} AS {known.holder})", known)
        return typed if known == target else coerce(context, typed, target)
    if source == target or (source.is_text and target.is_text and target.name != '"char"'):
        return Typed(value.sql, target)
    if source is UNKNOWN:
        return Typed(f"CAST({value.sql} AS {target.holder})", target)
    if source.element is not None and target.element is not None:
        return _list_to_list(context, value, target)
    if target.is_text:
        text = _to_text(context, value)
        return Typed(f"left({text}, 1)" if target.name == '"char"' else text, target)
    if source.is_text and target.is_object:
        return Typed(_lookup(value.sql, target), target)
    if _is_castable(source, target):
        return Typed(f"CAST({value.sql} AS {target.holder})", target)
    raise unsupported(f"a cast of {source.name} to {target.name}")


def _is_castable(source: PgType, target: PgType) -> bool:
    numbers = source.is_number and target.is_number
    moments = source.family == target.family == "moment"
    booleans = {source.family, target.family} == {"boolean", "number"}
    texts = source.is_text and (target.is_number or target.family in ("boolean", "moment", "interval"))
    return numbers or moments or booleans or texts


def _literal(context: TranslationContext, text: str, target: PgType) -> str:
    """Return a string constant as a value of a type."""
    if target is UNKNOWN or target.is_text:
        return quoted(text[:1] if target.name == '"char"' else text)
    if target.element is not None:
        items = text.split() if target.name.endswith("vector") else read_array(text)
        element = target.element
        parts = ["NULL" if item is None else _literal(context, item, element) for item in items]
        return f"CAST([{', '.join(parts)}] AS {target.holder})"
    if target.family == "oid":
        return f"CAST({context.names.find(target, text)} AS BIGINT)"
    if target.family == "boolean" and text.strip().lower() in _BOOLEANS:
        return _BOOLEANS[text.strip().lower()]
    is_integer = target.holder in ("SMALLINT", "INTEGER", "BIGINT")
    if target.family == "number" and (_INTEGER if is_integer else _NUMBER).fullmatch(text):
        return f"CAST({quoted(text.strip())} AS {target.holder})"
    if target.family in ("moment", "interval"):
        return f"CAST({quoted(text)} AS {target.holder})"
    raise unsupported(f"a constant of type {target.name}")


def read_array(text: str) -> list[str | None]:
    """Return the items of an array's text, one dimension. Raises CatalogRefusal: it is none."""
    text = text.strip()
    if text[:1] != "{" or text[-1:] != "}":
        raise unsupported("a constant of an array")
    inner, at = text[1:-1], 0
    found: list[str | None] = []
    while inner.strip():
        match = _ITEM.match(inner, at)
        if match is None or (match.end() < len(inner) and inner[match.end()] != ","):
            raise unsupported("a constant of an array")
        if match[1] is not None:
            found.append(re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL))
        else:
            bare = match[2].strip()
            found.append(None if bare.upper() == "NULL" else bare)
        at = match.end() + 1
        if match.end() == len(inner):
            break
    return found


def _lookup(sql: str, target: PgType) -> str:
    bare = f"replace({sql}, '\"', '')"
    if target.name == "regclass":
        path = rf"regexp_replace({bare}, '^[^.]*\.([^.]*\.[^.]*)$', '\1')"
        return f"(SELECT any_value(n.o) FROM h.named_class AS n WHERE n.name = {path})"
    if target.name == "regtype":
        name = rf"regexp_replace({bare}, '^pg_catalog\.', '')"
        spelled = f"SELECT min(n.o) FROM h.shown_type AS n WHERE n.name = {sql}"
        return f"coalesce(({spelled}), (SELECT min(n.oid) FROM c.pg_type AS n WHERE n.typname = {name}))"
    if target.name in _SHOWN:
        return f"(SELECT min(n.o) FROM {_SHOWN[target.name]} AS n WHERE n.name = {sql})"
    if target.name == "regnamespace":
        return f"(SELECT n.oid FROM c.pg_namespace AS n WHERE n.nspname = {sql})"
    raise unsupported(f"a cast of text to {target.name}")


def _to_text(context: TranslationContext, value: Typed) -> str:
    type_, sql = value.type, value.sql
    if type_.name in _SHOWN:
        shown = f"(SELECT any_value(n.name) FROM {_SHOWN[type_.name]} AS n WHERE n.o = {sql})"
        return f"coalesce({shown}, CASE WHEN {sql} = 0 THEN '-' ELSE CAST({sql} AS VARCHAR) END)"
    if type_.name == "regnamespace":
        return f"(SELECT any_value(n.nspname) FROM c.pg_namespace AS n WHERE n.oid = {sql})"
    if type_.name == "regrole":
        (role,) = FUNCTIONS["pg_get_userbyid"]
        return role.sql.format(sql)
    if type_.element is not None:
        items = coerce(context, value, _TEXTS).sql
        if type_.name.endswith("vector"):
            return f"array_to_string({items}, ' ')"
        return f"('{{' || array_to_string({items}, ',') || '}}')"
    if type_.name == "timestamptz":
        return f"(CAST({sql} AS VARCHAR) || '+00')"
    if type_.family in ("record", "bytea", "void"):
        raise unsupported(f"a cast of {type_.name} to text")
    return f"CAST({sql} AS VARCHAR)"


def _list_to_list(context: TranslationContext, value: Typed, target: PgType) -> Typed:
    assert value.type.element is not None
    assert target.element is not None
    source = value.type.element
    if source.holder == target.element.holder and not (source.is_object and target.element.is_text):
        return Typed(value.sql, target)
    item = coerce(context, Typed("u.v", source), target.element).sql
    if item == f"CAST(u.v AS {target.element.holder})":
        return Typed(f"CAST({value.sql} AS {target.holder})", target)
    rows = f"SELECT unnest({value.sql}) AS v, unnest(generate_series(1, len({value.sql}))) AS i"
    found = f"(SELECT list({item} ORDER BY u.i) FROM ({rows}) AS u)"
    return Typed(f"CASE WHEN {value.sql} IS NULL THEN NULL ELSE coalesce({found}, []) END", target)


_TEXTS = PgType(1009, "_text", -1, "VARCHAR[]", "array", 0, TEXT)


# --- which form of a function or an operator is meant -------------------------------------------------------


_ANY, _ARRAY, _ELEMENT, _INT, _ANY_NUMBER, _FIRST = (
    PSEUDO[name] for name in ("any", "anyarray", "anyelement", "anyint", "anynumber", "first")
)
_ELEMENTS = frozenset(type_.name for type_ in (_ELEMENT, _INT, _ANY_NUMBER))


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
        return given.is_number if type_ is _ANY_NUMBER else given.is_integer
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
        or (any(type_ is _ANY_NUMBER for type_ in types) and not found.is_number)
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
