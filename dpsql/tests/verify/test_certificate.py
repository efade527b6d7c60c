"""Certificates go to JSON and back, and what is no certificate is refused."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.verify import Refused, verify
from dpsql.verify.certificate import (
    Certificate,
    Charge,
    Facts,
    Groups,
    Law,
    Measurement,
    Query,
    Release,
    Table,
    Threshold,
    Unit,
    digest,
    dumps,
    loads,
)

ORDERS = Table(
    columns={"id": "INTEGER", "customer_id": "INTEGER"},
    not_null=("id",),
    unique=(("id",),),
    unit=Unit(("customer_id",)),
)
COUNT = Measurement(
    kind="units",
    columns=(("m0_0",),),
    sensitivity=Fraction(3),
    law=Law("truncated", scale=Fraction(3), bound=40, weight=Fraction(1, 2)),
    share=Charge(Fraction(1), Fraction(1, 10**9)),
)
CERTIFICATE = Certificate(
    facts=Facts(engine="duckdb", tables={"main.orders": ORDERS}, neighbours="replace-one", together=2),
    releases=(
        Release(
            keys=("k0",),
            groups=Groups("found"),
            measurements=(COUNT,),
            queries=(Query("SELECT 1", (0,), ("salt",)),),
            charge=Charge(Fraction(1), Fraction(1, 10**9)),
            threshold=Threshold(0, 1, 41, Fraction(1, 10**9)),
        ),
    ),
    charge=Charge(Fraction(1), Fraction(1, 10**9)),
)


def test_a_certificate_reads_back_as_it_was_written() -> None:
    text = dumps(CERTIFICATE)
    assert loads(Certificate, text) == CERTIFICATE
    assert dumps(loads(Certificate, text)) == text
    assert len(digest(CERTIFICATE)) == 64


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version":1', '"version":"1"'),
        ('"version":1', '"version":true'),
        ('"kind":"found"', '"kind":"some"'),
        ('"bound":40', '"bound":40.5'),
        ('"epsilon":"1"', '"epsilon":"1/0"'),
        ('"epsilon":"1"', '"epsilon":1'),
        ('"epsilon":"1"', '"epsilon":"1e999999999"'),
        ('"epsilon":"1"', '"epsilon":" 1 "'),
        ('"keys":["k0"]', '"keys":"k0"'),
        ('"keys":["k0"]', '"keys":["k0"],"more":1'),
        (',"sql":"SELECT 1"', ""),
    ],
)
def test_what_is_no_certificate_is_refused(old: str, new: str) -> None:
    text = dumps(CERTIFICATE)
    assert old in text
    with pytest.raises(ValueError):  # noqa: PT011 (any word will do)
        loads(Certificate, text.replace(old, new))


LAPLACE = Release(
    keys=(),
    groups=Groups("one"),
    measurements=(
        replace(COUNT, kind="count", law=Law("laplace", scale=Fraction(1)), share=Charge(Fraction(1))),
    ),
    queries=(Query('SELECT COUNT(*) AS m0_0 FROM "main"."person"', (0,)),),
    charge=Charge(Fraction(1)),
)
PERSON = Facts("duckdb", {"main.person": Table({"id": "INTEGER"}, ("id",), (("id",),), unit=Unit(("id",)))})


def test_no_part_gives_back_what_another_one_costs() -> None:
    """Two draws of 1 cost 2, whatever an empty release says of itself."""
    verify(Certificate(PERSON, (LAPLACE, LAPLACE), Charge(Fraction(2))), PERSON)
    given = replace(LAPLACE, measurements=(), queries=(), charge=Charge(Fraction(-1)))
    with pytest.raises(Refused, match="draws cost no more than the release"):
        verify(Certificate(PERSON, (LAPLACE, LAPLACE, given), Charge(Fraction(1))), PERSON)


@pytest.mark.parametrize("together", [-1, 0, 10**9])
def test_a_promise_is_to_one_person_or_to_some(together: int) -> None:
    """Of none, or fewer, nothing would cost anything."""
    facts = replace(PERSON, together=together)
    with pytest.raises(Refused, match="a number of persons"):
        verify(Certificate(facts, (LAPLACE,), Charge(Fraction(1))), facts)


def test_a_certificate_of_another_version_says_something_else() -> None:
    with pytest.raises(Refused, match="of this version"):
        verify(Certificate(PERSON, (LAPLACE,), Charge(Fraction(1)), version=2), PERSON)
