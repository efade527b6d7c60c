"""Whether a statement asks the system catalog, and nothing else.

House rule: this is asked of every statement, so that a test of words comes first, and most end there.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Iterator

from sqlglot import exp

from .bind_calls import CATALOG_CALLS
from .errors import CatalogRefusal
from .functions import CATALOG_FUNCTIONS
from .read_relation import SCHEMAS
from .tree import alias_of, name_of, type_of

__all__ = ["Reads", "classify"]


class Reads(enum.Enum):
    """What a statement reads."""

    CATALOG = "the system catalog"
    OTHER = "something else"
    BOTH = "the system catalog and a declared table"


_NAMES = CATALOG_FUNCTIONS | CATALOG_CALLS
_SHARED = frozenset(
    {"array_length", "array_position", "array_to_string", "cardinality", "generate_series", "json_build_object",
     "jsonb_build_object", "quote_literal", "unnest"}
)  # fmt: skip
"""Functions that dpsql's own SQL has too: alone they ask nothing of the catalog."""
_TYPES = frozenset(
    {"oid", "name", '"char"', "regclass", "regtype", "regproc", "regnamespace", "regrole", "xid", "int2vector",
     "oidvector", "aclitem", "regprocedure", "regoper", "regoperator"}
)  # fmt: skip
_KNOWN = "|".join(sorted(re.escape(word.strip('"')) for word in _NAMES | _TYPES))
_WORDS = re.compile(rf"\bpg_|\binformation_schema\b|\[|\b(?:{_KNOWN})\b", re.IGNORECASE)
_FIRST = re.compile(
    r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/|\()*(?:select|with|values|table)\b", re.IGNORECASE
)
_FROM = re.compile(
    r'\b(?:from|join)\s+\(*(?:"?pg_catalog"?\s*\.|"?information_schema"?\s*\.|"?pg_\w)', re.IGNORECASE
)
_FROM_CALL = re.compile(r"pg_|_pg_|has_")


def classify(text: str, declared: Collection[str], parse: Callable[[str], exp.Expr]) -> Reads:
    """Return what one statement reads; `declared`: names of tables without a schema, which hide the catalog's."""
    if not _FIRST.match(text) or not _WORDS.search(text):
        return Reads.OTHER
    try:
        query = parse(text)
        kinds = set(_relations(query, declared))
        is_catalogs = any(map(_is_catalogs, () if kinds else query.walk()))
    except CatalogRefusal:
        return Reads.CATALOG if _FROM.search(text) else Reads.OTHER
    if kinds == {True, False}:
        return Reads.BOTH
    if kinds:
        return Reads.CATALOG if True in kinds else Reads.OTHER
    return Reads.CATALOG if is_catalogs else Reads.OTHER


def _relations(query: exp.Expr, declared: Collection[str]) -> Iterator[bool]:
    """Yield for every relation that is read whether it is the catalog's: names of WITH hide it."""
    stack: list[tuple[exp.Expr, frozenset[str]]] = [(query, frozenset())]
    while stack:
        node, hidden = stack.pop()
        with_ = node.args.get("with_")
        if with_ is not None:
            names = [alias_of(cte)[0] or "" for cte in with_.expressions]
            for at, cte in enumerate(with_.expressions):
                stack.append((cte, hidden.union(names if with_.args.get("recursive") else names[:at])))
            hidden = hidden.union(names)
        if isinstance(node, (exp.Table, exp.Lateral)):
            yield from _read(node, hidden, declared)
        stack += [(child, hidden) for child in node.iter_expressions() if not isinstance(child, exp.With)]


def _read(item: exp.Expr, hidden: frozenset[str], declared: Collection[str]) -> Iterator[bool]:
    call, schema = item.this, item.args.get("db")
    if isinstance(call, exp.Anonymous):
        if _FROM_CALL.match(name_of(call)):
            yield True
    elif schema is not None:
        yield name_of(schema) in SCHEMAS
    elif isinstance(call, exp.Identifier) and name_of(call) not in hidden:
        yield name_of(call).startswith("pg_") and name_of(call) not in declared


def _is_catalogs(node: exp.Expr) -> bool:
    """Say whether a node is a function or a type that dpsql's own SQL has not."""
    if isinstance(node, exp.Anonymous):
        name = name_of(node)
        return (name in _NAMES and name not in _SHARED) or name.startswith("pg_")
    if not isinstance(node, exp.Cast):
        return False
    type_ = type_of(node.args["to"])
    return type_.name in _TYPES or type_.is_array
