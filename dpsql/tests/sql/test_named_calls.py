"""Whatever function of the parser's is called, a refusal says its name as it was written, and no class of the parser's."""

from __future__ import annotations

import re

import pytest
from sqlglot import exp

from dpsql.errors import Refusal

from .campus import relation

_KINDS = {kind for kind in vars(exp).values() if isinstance(kind, type) and issubclass(kind, exp.Expr)}
_CLASSES = {
    kind.key.upper() for kind in _KINDS if len(kind.key) > 6 and kind not in (exp.Between, exp.Interval)
}


def _names(kind: type[exp.Expr]) -> list[str]:
    try:
        return list(kind.sql_names()) if issubclass(kind, exp.Func) else []
    except NotImplementedError:
        return []


_NAMES = sorted({name for kind in _KINDS for name in _names(kind)})


def _message(sql: str) -> str:
    try:
        relation(sql)
    except Refusal as refusal:
        return f"{refusal.message} {refusal.hint or ''}"
    return ""


_WRITTEN = {"EXTRACT", "DISTINCT"}
"""Words of SQL that hints write, and that are names of classes too."""


@pytest.mark.parametrize("arguments", ["", "name", "name, 'a'", "name, 'a', 2", "1, 2, 3, 4"])
def test_no_class_of_the_parser_is_named(arguments: str) -> None:
    wrong = []
    assert len(_NAMES) > 400
    for name in _NAMES:
        sql = f"SELECT {name.lower()}({arguments}) FROM student"
        said = _message(sql)
        words = set(re.findall(r"[A-Z_]{5,}", said)) | {
            word.upper() for word in re.findall(r"\b[a-z]+\b(?=\(\))", said)
        }
        found = {word for word in words & _CLASSES - _WRITTEN if word.lower() not in sql.lower()}
        wrong += [(sql, said)] if found else []
    assert not wrong, wrong[:5]
