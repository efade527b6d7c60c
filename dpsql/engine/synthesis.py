"""`dpsql synthesize`: a made-up table that has the counts which are stored of a real one, as a file.

It is post-processing of stored answers: nothing is charged, and the database is not asked (soundness.md 3.20).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from ..errors import PolicyError, Refusal
from ..plan.planner import by_keys
from ..plan.privacy.rows import selects_in
from ..plan.release_plan import ReleasePlan
from ..relation.expressions import Expr
from ..release.synthesis import Model, fitted_table
from ..sql.statement import AdmittedQuery, parse_statement

if TYPE_CHECKING:
    from .session import Session

_LEAST = Fraction(1, 10**9)
"""What is stored is as exact as this asks for, whatever it is."""


def synthesize(session: Session, table: str, columns: Sequence[str] = ()) -> Model:
    """Return a table with the counts that are stored of another. `columns`: those that it has; none: all of which
    something is stored.

    Raises PolicyError: there is no such table or column, or it is public; Refusal: see `fitted_table`.
    """
    known = session.catalog.tables.get(table)
    if known is None:
        raise PolicyError(f'the policy has no table "{table}"')
    if known.unit is None:
        raise PolicyError(f'"{table}" is public: it needs no model')
    if lost := [name for name in columns if name not in {column.name for column in known.columns}]:
        raise PolicyError(f'table "{table}" declares no column "{lost[0]}"')
    named = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
    query = parse_statement(f"SELECT COUNT(*) FROM {named}")
    assert isinstance(query, AdmittedQuery)
    planned = session.planned(query, ())
    (whole,) = planned.plan.releases
    least = whole.spending([_LEAST])
    if any(len(select.items) > 1 for select in selects_in(least.release.rows)):
        columns = columns or [column.name for column in known.columns]  # none of the way to a person

    def grouped(keys: tuple[Expr, ...]) -> ReleasePlan | None:
        try:
            return by_keys(least, keys, session.catalog, planned.plan.privacy)
        except Refusal:
            return None

    return fitted_table(least, columns, grouped, session.dataset.store)


def write(model: Model, table: str, path: Path) -> None:
    """Write a model's rows to a file, Parquet or CSV by its name. Raises OSError, duckdb.Error."""
    cells = np.flatnonzero(model.counts)
    at = np.unravel_index(cells, [len(values) for values in model.values])
    counts = model.counts[cells]
    columns = {f"p{i}": np.repeat(places, counts) for i, places in enumerate(at)}
    with duckdb.connect() as connection:
        for number, values in enumerate(model.values):
            texts = [None if value is None else str(value) for value in values]
            connection.execute(f"CREATE TABLE v{number} (p BIGINT, v VARCHAR)")
            connection.executemany(f"INSERT INTO v{number} VALUES (?, ?)", list(enumerate(texts)))
        connection.register("rows", columns)
        shown = ", ".join(
            f'CAST(v{i}.v AS {type_}) AS "{name.replace(chr(34), chr(34) * 2)}"'
            for i, (name, type_) in enumerate(zip(model.names, model.types, strict=True))
        )
        joins = " ".join(f"JOIN v{i} ON v{i}.p = rows.p{i}" for i in range(len(model.names)))
        target = "'" + str(path).replace("'", "''") + "'"
        said = said_of(model, table).replace("'", "''")
        options = (
            "FORMAT csv, HEADER"
            if path.suffix == ".csv"
            else f"FORMAT parquet, KV_METADATA {{model: '{said}'}}"
        )
        connection.execute(f"COPY (SELECT {shown} FROM rows {joins} ORDER BY ALL) TO {target} ({options})")


def said_of(model: Model, table: str) -> str:
    """Return what a model is made of, in words."""
    return f'from the tables of edition {model.edition} of "{table}"'
