"""CSV and JSON lines to Parquet, once, by the owner: what does not parse is found here, and by nobody's question.

House rule: a message names the file, the line and what to do. The engine's own text quotes the line, so none of it is
passed on.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import duckdb

from ..errors import PolicyError
from ..records import dataclass

_DELIMITERS = {".csv": ",;\t|", ".tsv": "\t"}
_LINES = (".jsonl", ".ndjson")
_INTEGERS = ("BIGINT", "HUGEINT", "INTEGER", "UBIGINT")


@dataclass(frozen=True, slots=True)
class Converted:
    """A Parquet file that was written: its rows, and its columns with their types in order."""

    target: Path
    rows: int
    columns: tuple[tuple[str, str], ...]


def convert(source: Path) -> Converted:
    """Write a CSV file or JSON lines as Parquet beside it, all of it or nothing; a file of that name is replaced.

    Types are those that every line has; numbers that are not written as numbers are (007, +1) stay text, so that two
    that differ stay two. Raises PolicyError: another kind of file, a line that does not parse, or no place to write.
    """
    target = source.with_suffix(".parquet")
    draft = target.with_name(f"{target.name}.new")
    try:
        with duckdb.connect() as connection:
            rows = _rows(connection, source)
            columns = tuple((row[0], row[1]) for row in connection.execute(f"DESCRIBE {rows}").fetchall())
            connection.execute(f"COPY ({rows}) TO '{_escaped(str(draft))}' (FORMAT parquet)")
            written = f"SELECT COUNT(*) FROM read_parquet('{_escaped(str(draft))}')"
            ((count,),) = connection.execute(written).fetchall()
        os.replace(draft, target)
        return Converted(target, count, columns)
    except UnicodeDecodeError:
        problem = PolicyError(f"{source.name}: is not UTF-8 text; save it as UTF-8")
    except OSError as error:
        problem = PolicyError(f"{source.name}: cannot be converted: {error.strerror}")
    except duckdb.IOException:
        problem = PolicyError(f"{source.name}: cannot be read, or {target.name} cannot be written beside it")
    except duckdb.Error as error:
        problem = PolicyError(f"{source.name}: {_place(error)}; mend it, and convert again")
    finally:
        draft.unlink(missing_ok=True)
    raise problem


def _rows(connection: duckdb.DuckDBPyConnection, source: Path) -> str:
    """Return the SELECT that reads a file, all lines of which were read as text. Raises PolicyError, duckdb.Error."""
    name, ending = _escaped(str(source)), source.suffix.lower()
    if ending in _LINES:
        _check_json(source)
        return f"SELECT * FROM read_json('{name}', format = 'newline_delimited', sample_size = -1)"
    if ending not in _DELIMITERS:
        raise PolicyError(f"{source.name}: is neither .csv, .tsv, .jsonl nor .ndjson; name such a file")
    with open(source, encoding="utf-8-sig", newline="") as file:
        delimiter = max(_DELIMITERS[ending], key=file.readline().count)
        file.seek(0)
        names = next(csv.reader(file, delimiter=delimiter), [])
    if len({one.lower() for one in names}) < len(names) or not all(names):
        raise PolicyError(
            f"{source.name}: its first line does not name every column, or one twice; write names there"
        )
    options = f"delim = '{delimiter}', quote = '\"', escape = '\"', header = true, strict_mode = true"
    texts = _read(name, options, dict.fromkeys(names, "VARCHAR"))
    connection.execute(f"SELECT COUNT(*) FROM {texts}").fetchall()
    sniffed = f"DESCRIBE SELECT * FROM read_csv('{name}', {options}, sample_size = -1)"
    types = {
        column: row[1] for column, row in zip(names, connection.execute(sniffed).fetchall(), strict=True)
    }
    for column in [column for column, type_ in types.items() if type_ in _INTEGERS]:
        plain = f"{_named(column)} = CAST(TRY_CAST({_named(column)} AS HUGEINT) AS VARCHAR)"
        if connection.execute(f"SELECT bool_and({plain}) FROM {texts}").fetchall() == [(False,)]:
            types[column] = "VARCHAR"
    return f"SELECT * FROM {_read(name, options, types)}"


def _read(name: str, options: str, types: Mapping[str, str]) -> str:
    shown = ", ".join(f"'{_escaped(column)}': '{type_}'" for column, type_ in types.items())
    return f"read_csv('{name}', {options}, auto_detect = false, columns = {{{shown}}})"


def _check_json(source: Path) -> None:
    """Raise PolicyError for the first line that is no JSON object; blank ones are none."""
    with open(source, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                is_object = not line.strip() or isinstance(json.loads(line), dict)
            except ValueError:
                is_object = False
            if not is_object:
                raise PolicyError(
                    f"{source.name}: line {number} is no JSON object; mend it, and convert again"
                )


def _place(error: duckdb.Error) -> str:
    """Return where a file does not parse: the engine's text is looked at for the number of a line, not passed on."""
    found = re.search(r"\bline:? (\d+)", str(error), re.IGNORECASE)
    return f"line {found[1]} does not fit the others" if found else "its lines do not have the same columns"


def _escaped(text: str) -> str:
    return text.replace("'", "''")


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
