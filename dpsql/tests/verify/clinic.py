"""A small schema, and certificates of one query over it, for tests of the rules."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsql.verify.certificate import (
    Certificate,
    Charge,
    Facts,
    Groups,
    Law,
    Measurement,
    Part,
    Query,
    Release,
    Table,
    Unit,
)
from dpsql.verify.check import Checked, verify

PATIENT = Table(
    columns={"id": "INTEGER", "city": "VARCHAR", "age": "INTEGER", "weight": "DECIMAL(5,2)", "bmi": "DOUBLE"},
    not_null=("id",),
    unique=(("id",),),
    unit=Unit(("id",)),
)
VISIT = Table(
    columns={"no": "INTEGER", "patient": "INTEGER", "ward": "VARCHAR", "cost": "INTEGER", "paid": "BOOLEAN"},
    not_null=("no", "patient"),
    unique=(("no",),),
    unit=Unit(("patient",)),
)
ITEM = Table(
    columns={"visit": "INTEGER", "price": "INTEGER"},
    not_null=("visit",),
    unit=Unit(("visit",), "main.visit", ("no",)),
)
CITY = Table(columns={"name": "VARCHAR", "beds": "INTEGER"}, not_null=("name",), unique=(("name",),))
FACTS = Facts(
    "duckdb",
    {"main.patient": PATIENT, "main.visit": VISIT, "main.item": ITEM, "main.city": CITY},
)


def certificate_of(
    sql: str,
    sensitivity: int | Fraction,
    *masks: tuple[str, ...],
    keys: tuple[str, ...] = (),
    facts: Facts = FACTS,
    parameters: tuple[str, ...] = (),
    part: Part | None = None,
    law: Law | None = None,
    share: Charge | None = None,
    groups: Groups | None = None,
    **more: object,
) -> Certificate:
    """One query with one measurement: Laplace noise of the sensitivity at epsilon 1, unless a law is given."""
    share = share or Charge(Fraction(1))
    measurement = Measurement(
        kind="sum",
        columns=masks or (("m0_0",),),
        sensitivity=Fraction(sensitivity),
        law=law or Law("laplace", scale=Fraction(sensitivity)),
        share=share,
    )
    release = Release(
        keys=keys,
        groups=groups or (Groups("declared", 3) if keys else Groups("one")),
        measurements=(replace(measurement, **more),),  # type: ignore[arg-type]
        queries=(Query(sql, (0,), parameters, part),),
        charge=share,
    )
    return Certificate(facts, (release,), share)


def check(
    sql: str, sensitivity: int | Fraction, *masks: tuple[str, ...], facts: Facts = FACTS, **more: object
) -> Checked:
    """What is derived of one query's measurement; raises Refused."""
    certificate = certificate_of(sql, sensitivity, *masks, facts=facts, **more)  # type: ignore[arg-type]
    [line] = verify(certificate, facts).lines
    return line
