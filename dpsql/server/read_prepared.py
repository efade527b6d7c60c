"""PREPARE and EXECUTE as they are written: names, declared types, and constants."""

from __future__ import annotations

import re

from ..pgwire import Oid
from ..sql.text import blank_prefix
from .lexical import NAME, compile_form, syntax_error, unquoted, word
from .report import Fault, unsupported
from .statements import Constant, ExecutePrepared, PrepareQuery

__all__ = ["read_execute", "read_prepare", "type_number"]

_PREPARE = compile_form(rf"prepare\s+{NAME}\s*(?:\(([^()]*(?:\([^()]*\)[^()]*)*)\))?\s*as\b\s*")
_EXECUTE = compile_form(rf"execute\s+{NAME}\s*(?:\((.*)\))?")
_QUERIES = ("select", "with", "values", "table", "")
_WRITES = ("insert", "update", "delete", "merge")
_TYPES = {
    "boolean": Oid.BOOL, "bool": Oid.BOOL,
    "smallint": Oid.INT2, "int2": Oid.INT2,
    "integer": Oid.INT4, "int": Oid.INT4, "int4": Oid.INT4,
    "bigint": Oid.INT8, "int8": Oid.INT8,
    "numeric": Oid.NUMERIC, "decimal": Oid.NUMERIC,
    "real": Oid.FLOAT4, "float4": Oid.FLOAT4,
    "double precision": Oid.FLOAT8, "float8": Oid.FLOAT8, "float": Oid.FLOAT8,
    "text": Oid.TEXT, "varchar": Oid.VARCHAR, "character varying": Oid.VARCHAR, "unknown": Oid.UNKNOWN,
    "date": Oid.DATE,
    "timestamp": Oid.TIMESTAMP, "timestamp without time zone": Oid.TIMESTAMP,
    "timestamptz": Oid.TIMESTAMPTZ, "timestamp with time zone": Oid.TIMESTAMPTZ,
}  # fmt: skip
_TYPE = (
    r"(?:pg_catalog\s*\.\s*)?(double\s+precision|character\s+varying|timestamp\s+with(?:out)?\s+time\s+zone|[a-z]\w*)"
    r"(?:\s*\(\s*\d+(?:\s*,\s*\d+)?\s*\))?"
)
_LITERAL = (
    r"(?:(?P<string>'(?:''|[^'])*')|(?P<number>[+-]?\s*(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?!\w)"
    r"|\b(?P<word>null|true|false)\b)"
)
_CONSTANT = compile_form(
    rf"\s*(?:cast\s*\(\s*(?P<inner>{_LITERAL.replace('?P<', '?P<in')})\s+as\s+(?P<target>{_TYPE})\s*\)"
    rf"|(?:(?P<typed>date|timestamp)\s*)?{_LITERAL}(?:\s*::\s*(?P<cast>{_TYPE}))?)\s*"
)


def type_number(name: str) -> int:
    """Return Postgres' number of a type. Raises Fault (42704): there is none of this name."""
    match = re.fullmatch(_TYPE, name.strip(), re.IGNORECASE)
    oid = _TYPES.get(re.sub(r"\s+", " ", match[1].lower())) if match else None
    if oid is None:
        raise Fault(
            "42704", f'type "{name.strip()[:60]}" does not exist', hint="declare the parameter as text"
        )
    return oid


def read_prepare(text: str, bare: str) -> PrepareQuery:
    """Read PREPARE name [(types)] AS query; `bare` is the text without comments. Raises Fault."""
    if re.match(r"prepare\s+transaction\b", bare, re.IGNORECASE):
        raise unsupported("PREPARE TRANSACTION", "dpsql only reads: COMMIT or ROLLBACK end a block")
    match = _PREPARE.match(bare)
    if match is None:
        raise syntax_error("PREPARE")
    what = word(bare[match.end() :])
    if what in _WRITES:
        raise unsupported(what.upper(), "dpsql only reads: prepare a SELECT")
    if what not in _QUERIES or match.end() == len(bare):
        raise syntax_error("PREPARE")
    types = tuple(map(type_number, re.split(r",(?![^(]*\))", match[2]))) if match[2] is not None else ()
    return PrepareQuery(unquoted(match[1]), types, blank_prefix(text[: len(bare)], match.end()))


def read_execute(bare: str) -> ExecutePrepared:
    """Read EXECUTE name [(constants)]. Raises Fault: it is not written right, or an argument is no constant."""
    match = _EXECUTE.fullmatch(bare)
    if match is None:
        raise syntax_error("EXECUTE")
    written = match[2]
    if written is None:
        return ExecutePrepared(unquoted(match[1]), ())
    found, at = list[Constant](), 0
    while True:
        constant = _CONSTANT.match(written, at)
        end = len(written) if constant is None else constant.end()
        if constant is None or (end < len(written) and written[end] != ","):
            raise unsupported(
                "an argument of EXECUTE that is no constant", "write a number, a string, NULL, a cast"
            )
        found.append(_constant(constant))
        if end == len(written):
            return ExecutePrepared(unquoted(match[1]), tuple(found))
        at = end + 1


def _constant(match: re.Match[str]) -> Constant:
    part = "in" if match["inner"] else ""
    string, number, name = (match[f"{part}{kind}"] for kind in ("string", "number", "word"))
    type_ = match["target"] or match["cast"] or match["typed"]
    if type_ is not None:
        type_number(type_)
        type_ = re.sub(r"\s+", " ", re.sub(r"\(.*", "", type_.lower())).strip()
    if string is not None:
        return Constant(string[1:-1].replace("''", "'"), type_)
    if number is not None:
        text = (
            re.sub(r"[\s+]", "", number) if "e" not in number.lower() else number.replace(" ", "").lstrip("+")
        )
        return Constant(text, type_ or ("integer" if re.fullmatch(r"-?\d+", text) else "numeric"))
    return Constant(None, type_) if name.lower() == "null" else Constant(name.lower(), type_ or "boolean")
