"""What becomes of stored answers: those that a policy has no use for, and a made-up table that has their counts.

House rule for what is retired, as no statement finds it again: from the ledger's records, the policy and the schema
alone; nothing is charged, and nothing is lost, as they answer again under a policy that says what the one said that
they were drawn under (soundness.md 3.7).

`dpsql synthesize` writes the table as a file. It is post-processing of stored answers: nothing is charged, and the
database is not asked (soundness.md 3.20).
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from ..budget import ZERO, Charge, Resting, epsilon_text, rho_text
from ..errors import PolicyError, Refusal
from ..plan.dialects.quote import identifier, table_name, text
from ..plan.planner import by_keys
from ..plan.privacy.rows import selects_in
from ..plan.release_plan import ReleasePlan, units_ground
from ..policy import Accounting, Policy
from ..policy.catalog import MEASURING
from ..records import dataclass
from ..relation.catalog import Catalog, Ground
from ..relation.expressions import Expr
from ..relation.relations import all_grounds
from ..release.synthesis import Model, fitted_table
from ..sql.statement import AdmittedQuery, parse_statement

if TYPE_CHECKING:
    from .session import Session

_EARLIER = "an earlier version of dpsql"


@dataclass(frozen=True, slots=True)
class Retired:
    """Of `answers` that are stored, those that no statement finds: how many, and what they cost.

    `by`: of what they rest on that is said otherwise now, or how they were made, with how many rest on that.
    """

    answers: int
    number: int = 0
    charge: Charge = ZERO
    by: tuple[tuple[str, int], ...] = ()

    def text(self, accounting: Accounting) -> str:
        """Return it as a sentence, "" where there is none."""
        if not self.number:
            return ""
        by = ", ".join(f"{name} ({number})" for name, number in self.by)
        are, they = ("is", "it") if self.number == 1 else ("are", "they")
        return (
            f"{self.number} of {self.answers} stored answers {are} found no more, as what {they} "
            f"{'rests' if self.number == 1 else 'rest'} on is said otherwise now: {by}; {they} cost "
            f"{self.cost(accounting)}, and whoever asks again is charged again"
        )

    def to_json(self) -> dict[str, object]:
        """Return it as plain numbers and strings, for `json.dumps`."""
        return {
            "answers": self.answers,
            "retired": self.number,
            "epsilon": epsilon_text(self.charge.epsilon_nano),
            "rho": rho_text(self.charge.rho_atto),
            "by": dict(self.by),
        }

    def cost(self, accounting: Accounting) -> str:
        """Return what they cost, in what is added up."""
        if accounting is Accounting.PURE:
            return f"epsilon {epsilon_text(self.charge.epsilon_nano)}"
        return f"rho {rho_text(self.charge.rho_atto)}"


def grounds_under(policy: Policy, catalog: Catalog) -> frozenset[Ground]:
    """Return everything that plans may rest on under a policy."""
    return all_grounds(catalog) | {units_ground(policy.defaults.minimum_units)}


def retired(stored: Resting, grounds: frozenset[Ground], before: frozenset[Ground] | None = None) -> Retired:
    """Return which stored answers are found no more under a policy, from what it has plans rest on.

    `before`: of those alone that were found under another policy. What `dpsql bounds` measured is left out: it rests
    on the ways to the owners, and is found by them.
    """
    answers, number, charge, by = 0, 0, ZERO, Counter[str]()
    for rests, (count, cost) in stored.items():
        said = () if rests is None else rests
        if any(name == MEASURING for name, _ in said) or (before is not None and not before.issuperset(said)):
            continue
        if rests is None and before is not None:
            continue
        answers += count
        gone = {name for name, digest in said if (name, digest) not in grounds}
        if rests is None:
            gone = {_EARLIER}
        if gone:
            number, charge = number + count, charge + cost
            by.update(dict.fromkeys(gone, count))
    return Retired(answers, number, charge, tuple(sorted(by.items(), key=lambda one: (-one[1], one[0]))))


# --- a made-up table that has the counts which are stored of a real one ----------------------------------


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
    query = parse_statement(f"SELECT COUNT(*) FROM {table_name(tuple(table.split('.')))}")
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
    """Write a model's rows to a file, Parquet or CSV by its name. Raises OSError."""
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
            f"CAST(v{i}.v AS {type_}) AS {identifier(name)}"
            for i, (name, type_) in enumerate(zip(model.names, model.types, strict=True))
        )
        joins = " ".join(f"JOIN v{i} ON v{i}.p = rows.p{i}" for i in range(len(model.names)))
        target, said = text(str(path)), text(said_of(model, table))
        options = (
            "FORMAT csv, HEADER"
            if path.suffix == ".csv"
            else f"FORMAT parquet, KV_METADATA {{model: {said}}}"
        )
        try:
            connection.execute(
                f"COPY (SELECT {shown} FROM rows {joins} ORDER BY ALL) TO {target} ({options})"
            )
        except duckdb.IOException as error:
            raise OSError(errno.EIO, "the disk took no more of it") from error


def said_of(model: Model, table: str) -> str:
    """Return what a model is made of, in words."""
    return f'from the tables of edition {model.edition} of "{table}"'
