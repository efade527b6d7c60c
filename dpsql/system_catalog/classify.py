"""Whether a statement asks the system catalog, and nothing else.

House rule: this is asked of every statement, so that a test of words comes first, and most end there.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterator

from .bind_calls import CATALOG_CALLS
from .errors import CatalogRefusal
from .functions import CATALOG_FUNCTIONS
from .parse_query import parse
from .read_relation import SCHEMAS
from .syntax import CallNode, Cast, FunctionItem, QueryNode, TableItem, children, nodes

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


def classify(text: str, declared: Collection[str]) -> Reads:
    """Return what one statement reads; `declared`: names of tables without a schema, which hide the catalog's."""
    if not _FIRST.match(text) or not _WORDS.search(text):
        return Reads.OTHER
    try:
        query = parse(text)
    except CatalogRefusal:
        return Reads.CATALOG if _FROM.search(text) else Reads.OTHER
    kinds = set(_relations(query, frozenset(), declared))
    if kinds == {True, False}:
        return Reads.BOTH
    if kinds:
        return Reads.CATALOG if True in kinds else Reads.OTHER
    return Reads.CATALOG if any(map(_is_catalogs, nodes(query))) else Reads.OTHER


def _relations(node: object, hidden: frozenset[str], declared: Collection[str]) -> Iterator[bool]:
    """Yield for every relation that is read whether it is the catalog's; `hidden`: names of WITH."""
    if isinstance(node, TableItem):
        if node.schema is not None:
            yield node.schema in SCHEMAS
        elif node.name not in hidden:
            yield node.name.startswith("pg_") and node.name not in declared
    elif isinstance(node, FunctionItem):
        if _FROM_CALL.match(node.call.name):
            yield True
        yield from _relations(node.call, hidden, declared)
    elif isinstance(node, QueryNode):
        inner = hidden
        if node.is_recursive:
            inner = hidden | {cte.name for cte in node.ctes}
        for cte in node.ctes:
            yield from _relations(cte.query, inner, declared)
            inner = inner | {cte.name}
        for part in (node.body, node.order, node.limit, node.offset):
            yield from _relations(part, inner, declared)
    else:
        for child in children(node):
            yield from _relations(child, hidden, declared)


def _is_catalogs(node: object) -> bool:
    """Say whether a node is a function or a type that dpsql's own SQL has not."""
    if isinstance(node, CallNode):
        return (node.name in _NAMES and node.name not in _SHARED) or node.name.startswith("pg_")
    return isinstance(node, Cast) and (node.type.name in _TYPES or node.type.depth > 0)
