"""How far a row reaches, against brute force: random forms over small boxes, every row that the flags allow."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.tests.support.length import tried
from dpsql.tests.verify.clinic import FACTS
from dpsql.verify.engines import DuckDB
from dpsql.verify.terms import Pool, Term
from dpsql.verify.values import Form, Values

BOXES = ((0, 2), (-2, 1), (1, 3))
FLAGS = ("city", "age", "weight")


def world() -> tuple[Values, list[Term], list[Term]]:
    """Atoms with the ends of `BOXES` and conditions that are independent of each other."""
    pool = Pool()
    source = pool("src", pool("table", "main.patient"), 0, 0)
    atoms = []
    for number, (low, high) in enumerate(BOXES):
        column = pool("col", source, f"c{number}")
        clamp = pool("greatest", pool("num", low, "int"), pool("least", pool("num", high, "int"), column))
        atoms.append(clamp)
    values = Values(pool, DuckDB(), FACTS)
    values.column_type = lambda relation, name: ("int", 32)  # type: ignore[method-assign]
    conditions = [pool("istrue", pool("col", source, name)) for name in FLAGS]
    return values, atoms, conditions


TERMS = st.lists(st.tuples(st.lists(st.integers(0, 2), max_size=2), st.integers(-3, 3)), max_size=3)
KEYS = st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=3)
FORMS = st.lists(st.tuples(KEYS, TERMS), min_size=1, max_size=3)


@settings(max_examples=tried(80, 200), deadline=None)
@given(st.lists(FORMS, min_size=1, max_size=3))
def test_no_row_reaches_further(
    drawn: list[list[tuple[list[tuple[int, bool]], list[tuple[list[int], int]]]]],
) -> None:
    values, atoms, conditions = world()
    pool = values.pool
    forms: list[Form] = []
    for pieces in drawn:
        form: Form = {}
        for key, terms in pieces:
            flags = tuple(
                sorted({conditions[i] if is_so else pool("not", conditions[i]) for i, is_so in key}, key=id)
            )
            poly = form.setdefault(flags, {})
            for places, factor in terms:
                monomial = tuple(sorted((atoms[i] for i in places), key=lambda one: one.serial))
                poly[monomial] = poly.get(monomial, 0) + factor
        forms.append({key: {m: f for m, f in poly.items() if f} for key, poly in form.items()})

    def adds(form: Form, truths: dict[Term, bool], row: dict[Term, int]) -> Fraction:
        total = Fraction(0)
        for key, poly in form.items():
            if all(truths[one] if one in truths else not truths[one.args[0]] for one in key):
                for monomial, factor in poly.items():
                    value = Fraction(factor)
                    for atom in monomial:
                        value *= row[atom]
                    total += value
        return total

    most = Fraction(0)
    for holds in product((True, False), repeat=3):
        truths = dict(zip(conditions, holds, strict=True))
        for corner in product(*(range(low, high + 1) for low, high in BOXES)):
            row = dict(zip(atoms, corner, strict=True))
            most = max(most, sum((abs(adds(form, truths, row)) for form in forms), Fraction(0)))
    reach = values.reach(forms)
    assert reach >= most
    squared = any(len(set(term)) != len(term) for form in forms for poly in form.values() for term in poly)
    if not squared:
        assert reach == most  # affine in each atom: a corner is reached
