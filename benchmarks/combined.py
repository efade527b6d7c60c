"""What stored draws are worth together: the error of counts that were asked several times, in both accountings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import duckdb

from benchmarks.figure import Figure, Size
from benchmarks.one_budget import make_people, make_policy
from dpsql import Session
from dpsql.mechanisms import ATTO

__all__ = ["measure"]

_STATEMENTS = 8
"""Of a thousand groups each: chance moves an error by less than 2 %."""
_ASKED = (
    ("pure", "0.1 and 0.5", ("0.1", "0.5"), True, 2.83),
    ("pure", "0.1, four times", ("0.1",) * 4, False, 7.3),
    ("zcdp", "0.1, 0.2 and 0.5", ("0.1", "0.2", "0.5"), True, 2.1),
)


def measure(size: Size) -> Iterator[Figure]:
    """Yield the standard deviation of a count that draws at several epsilons answer, and what zCDP charges for them."""
    database = make_people(size.folder / "one-budget.duckdb")
    with duckdb.connect(str(database), read_only=True) as connection:
        truths = [dict(connection.execute(_sql(k)).fetchall()) for k in range(_STATEMENTS)]
    for accounting, name, epsilons, reuse, most in _ASKED:
        policy = make_policy(size.folder, f"combined-{len(epsilons)}", database, accounting)
        with Session.open(policy) as session:
            off = _off(session, epsilons, truths, reuse=reuse)
            yield Figure(f"{accounting}: a count asked at {name}", off, most, "rows")
            if accounting == "zcdp":
                paid = session.budget().rho_spent_atto / _STATEMENTS / ATTO
                yield Figure(f"{accounting}: rho of a count asked at {name}", paid, 0.125, "")


def _sql(k: int) -> str:
    return f"SELECT bucket, COUNT(*) AS n FROM person WHERE n <> {k} GROUP BY bucket"


def _off(
    session: Session, epsilons: Sequence[str], truths: Sequence[dict[object, int]], *, reuse: bool
) -> float:
    """Return the root of the mean square error of the answers after the last epsilon."""
    total, count = 0.0, 0
    for k, truth in enumerate(truths):
        session.execute(f"SET dpsql.reuse = {'on' if reuse else 'off'}")
        for epsilon in epsilons:
            session.execute(f"SET dpsql.epsilon = {epsilon}")
            session.execute(_sql(k))
        session.execute("SET dpsql.reuse = on")
        rows = session.execute(_sql(k)).rows
        total += sum((said - truth.get(key, 0)) ** 2 for key, said in rows)
        count += len(rows)
    return math.sqrt(total / count)
