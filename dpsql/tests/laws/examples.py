"""What several laws share: databases written out by hand, and how their examples are drawn."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from dpsql.tests.support.random_databases import PERSON, VISIT, Database, Row

__all__ = ["HEAVY", "NOBODY", "ORDINARY", "REPEATED", "WIDE", "person", "visit"]

REPEATED = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.data_too_large,
    ],
)
"""The same examples in every run; each law says how many."""


def person(unit: int, **cells: str | None) -> tuple[int, Row]:
    """Return a row of `person`; what is not named is NULL, but `active`."""
    return unit, tuple(cells.get(name, "true" if name == "active" else None) for name in PERSON.cells)


def visit(unit: int | None, **cells: str | None) -> tuple[int | None, Row]:
    """Return a row of `visit`; what is not named is NULL."""
    return unit, tuple(cells.get(name) for name in VISIT.cells)


HEAVY = Database(
    (person(1, height="2.5", age="5"), person(2, height="0.5")),
    (
        *(visit(1, city=city, tag=tag, n="7", x="4", d="5", flag=flag, big="1152921504606846976")
          for city in ("a", "b", "c") for tag in ("p", "q") for flag in ("true", "false", None) for _ in range(3)),
        *(visit(2, city="a", tag="p", n="-3", x="-1", d="0", flag="true") for _ in range(5)),
        visit(None, city="a", tag="p", n="7"),
    ),
)  # fmt: skip
"""Unit 1 passes every bound: 18 rows in each of three cities and 27 in each of two tags; M is 3, C is 2."""

ORDINARY = Database(
    tuple(person(unit, age="30", height="1.8", team="red") for unit in range(1, 5)),
    tuple(visit(unit, city="a", tag="t", n="1", x="0.3", d="2.50", flag="true") for unit in range(1, 5)),
)
NOBODY = Database((), ())
WIDE = Database(
    (),
    tuple(
        visit(unit, city=city, flag=flag, tag=f"{unit}{city}{flag}{i}", n=str(4 + i), x="4", d="5", level=("low", "high")[i % 2])
        for unit in (1, 2) for city in ("a", "b", "c", None) for flag in ("true", "false", None)
        for i in range(4 if unit == 1 else 1)
    ),
)  # fmt: skip
"""Unit 1 has all twelve groups of (city, flag), more than 2C, with four rows and four values in each."""
