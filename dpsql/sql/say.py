"""What a refusal calls a piece of syntax: in the statement's own words, never in the parser's.

House rule: a name of the parser's is said only where the statement has it too, as a word; else "this form".
"""

from __future__ import annotations

import re

from sqlglot import exp

from .text import position_of

__all__ = ["said_of", "said_of_clause"]

_SAID: dict[type[exp.Expr], str] = {
    exp.Command: "this kind of statement",
    exp.TableSample: "TABLESAMPLE",
    exp.Lateral: "LATERAL",
    exp.WithinGroup: "WITHIN GROUP",
    exp.Qualify: "QUALIFY",
    exp.Lock: "FOR UPDATE and FOR SHARE",
    exp.RegexpLike: "regular expressions (~)",
    exp.SimilarTo: "SIMILAR TO",
    exp.Into: "SELECT INTO",
    exp.BitString: "a text of bits",
    exp.HexString: "an X'' string",
    exp.National: "an N'' string",
    exp.Dot: "a name in parts (x.y)",
    exp.CurrentUser: "CURRENT_USER",
    exp.SessionUser: "SESSION_USER",
    exp.CurrentCatalog: "CURRENT_CATALOG",
    exp.Bracket: "a subscript […]",
    exp.Array: "an array",
    exp.Struct: "a value of several fields {…}",
    exp.Tuple: "a row of values (…, …)",
    exp.Lambda: "a function as an argument",
    exp.Kwarg: "a named argument",
    exp.Placeholder: "a placeholder other than $1, $2, …",
    exp.ObjectIdentifier: "a cast to the name of an object",
    exp.ColumnDef: "a column with its type in FROM",
    exp.Star: "*",
    **dict.fromkeys((exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract), "JSON (->, ->>)"),
    exp.JSONBContainsTopKey: "the operator ?",
    exp.JSONBContainsAnyTopKeys: "the operator ?|",
    exp.JSONBContainsAllTopKeys: "the operator ?&",
    exp.JSONBDeleteAtPath: "the operator #-",
    exp.MatchAgainst: "the operator @@",
    exp.JSONBPathExists: "the operator @?",
    exp.RegexpILike: "regular expressions (~*)",
}

_PARSER = frozenset({"this", "expression", "expressions", "kind"})
_UNNAMED = "this form"
_CALL = re.compile(r"([A-Za-z_][\w$]*)\s*\(")
_OPENED = re.compile(r"([A-Za-z_][\w$]*)\s*\(\s*(?:DISTINCT\s+)?$", re.IGNORECASE)


def said_of(node: exp.Expr, text: str) -> str:
    """Return what to call a node: a function by its name as written, or the word that stands for it."""
    if isinstance(node, exp.Anonymous):
        return f"{node.name}()"
    position = position_of(text, node)
    if isinstance(node, exp.Func) and position is not None:
        written = _CALL.match(text, position.offset)
        is_own = written is not None and _is_name_of(written[1], node)
        # An operator begins with its left side, which may be another's call.
        if written is not None and (is_own or not (isinstance(node, exp.Binary) or type(node) in _SAID)):
            return f"{written[1]}()"
        around = _OPENED.search(text, 0, position.offset)
        is_mine = around is not None and not (isinstance(node, exp.Binary) or _is_inside(around[1], node))
        if around is not None and is_mine and type(node) not in _SAID:
            return f"{around[1]}()"
    return _SAID.get(type(node)) or _if_written(node.key, text)


def _is_name_of(word: str, node: exp.Func) -> bool:
    return word.upper() in node.sql_names() or word.replace("_", "").lower() == node.key


def _is_inside(word: str, node: exp.Expr) -> bool:
    """Say whether a call of that name is around a node."""
    above = node.parent
    while above is not None:
        if isinstance(above, exp.Func) and _is_name_of(word, above):
            return True
        above = above.parent
    return False


def said_of_clause(name: str, value: object, text: str) -> str:
    """Return what to call an argument of a node, by its value or by its name."""
    if isinstance(value, exp.Expr) and type(value) in _SAID and not isinstance(value, exp.Tuple):
        return _SAID[type(value)]
    return _if_written(name.rstrip("_").replace("_", " "), text)


def _if_written(name: str, text: str) -> str:
    is_written = all(re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) for word in name.split())
    return name.upper() if is_written and name not in _PARSER else _UNNAMED
