"""What a plan claims, as data: the queries as they are sent, the numbers that are read, their noise, and what it
costs.

A certificate is canonical JSON (`dumps`): keys in order, no spaces, numbers with a fraction as `"p/q"`. `facts` are
what is believed of database and policy; whoever verifies hands in facts of their own, and those in the certificate
are for a run without a database. All figures (sensitivities, scales, rates) are in the integers that the queries
print."""

from __future__ import annotations

import hashlib
import json
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

VERSION = 1
_FRACTION = re.compile(r"-?[0-9]+(/[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Each row's `columns`, where none is NULL, are the `referenced` ones of a row of `table`: enforced for all
    rows."""

    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """Whose a row is: the values of `columns`, or, with `table`, the owner of the row there whose `referenced` they
    are.

    Without `columns` each row is an owner of its own. A reference to the very columns that are the unit of
    `table` (the whole of it) is written without `table`, since the row holds the owner's value itself; the
    order of `columns` is that of the root's unit."""

    columns: tuple[str, ...]
    table: str | None = None
    referenced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class When:
    """When rows were: by `column` of them, or of the table at the end of the `way` that leads to their owner too."""

    column: str
    way: tuple[ForeignKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Calendar:
    """What the promise is for, where it is for one person's rows of one period: periods of `zone`, numbered from that
    of 0001-01-01 (soundness.md 1.40)."""

    period: Literal["day", "week", "month", "year"]
    zone: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table or file as the engine holds it.

    `columns`: name -> type, as the engine's catalog says it; a column whose equality is not bytewise (a collation)
    has a type that names the collation; `string valid` is text on Spark that was found to be UTF-8. `unique`:
    sets of columns that no two rows share, NULL aside, by a valid, immediate, complete constraint, or asserted
    and checked on the version that is read. `unit` is None for a public table, and exactly for these. `checks`: what
    the engine holds of each row, as it writes it: TRUE or NULL of all of them. `also`: what the policy says its rows
    point at besides, of which nobody but the lookup may tell (soundness.md 1.38). `time`: when its rows were, where
    there are periods; None: they are undated."""

    columns: Mapping[str, str]
    not_null: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unit: Unit | None = None
    checks: tuple[str, ...] = ()
    also: tuple[ForeignKey, ...] = ()
    time: When | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is believed: the engine, the schema as it is enforced, whose rows they are, and the promise of the
    policy.

    `tables` by their name, the printed parts joined by a dot: `main.orders`.
    """

    engine: Literal["duckdb", "postgres", "spark"]
    tables: Mapping[str, Table]
    neighbours: Literal["add-remove", "replace-one"] = "add-remove"
    together: int = 1
    accounting: Literal["pure", "zcdp"] = "pure"
    calendar: Calendar | None = None


@dataclass(frozen=True, slots=True)
class Charge:
    """What is spent. Under zCDP `epsilon` is that of the share (rho = epsilon²/2 or above), and `rho` what is added
    up."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Law:
    """How numbers are drawn; what does not apply is left out.

    | name | the draw |
    |---|---|
    | laplace | each coordinate by itself, Pr ~ exp(-abs(x) / scale) |
    | box | a vector a group and mask, Pr ~ exp(-max ceil(abs(x_i) / reach_i) / scale), by the measurement's `reaches` |
    | gaussian | each coordinate by itself, discrete Gaussian; `sigmas`: one for all, or one each |
    | root | along the declared groups Σ c_(t-s)·x_s over s <= t (1.44), each with discrete Gaussian of `sigmas` (one) |
    | truncated | people of found groups (1.7): Laplace of `scale`, cut at `bound`, ends of the share `weight` |
    | thresholded | people of found groups (1.25(6)): Gaussian of `sigmas`, shown above `bound` |
    | rank | candidate c with Pr ~ exp(-rate·d(c)), d in printed weights (1.20); `rates`: one for each fraction |
    | flip | permute-and-flip at `rates` (one) over printed scores: MODE, top |
    """

    name: Literal["laplace", "box", "gaussian", "root", "truncated", "thresholded", "rank", "flip"]
    scale: Fraction | None = None
    sigmas: tuple[Fraction, ...] = ()
    bound: int | None = None
    weight: Fraction | None = None
    rates: tuple[Fraction, ...] = ()


@dataclass(frozen=True, slots=True)
class Measurement:
    """Numbers that are noised together, with one joint claim.

    `columns`: by mask, the result columns that hold its coordinates, `(("m0_0", "m0_1"),)`; of ranks and MODE those
    of a window, `(("v", "less", "w", "n"),)`, as the query names them. `sensitivity` as claimed: in L1 of Laplace,
    in box units of box, squared L2 of Gaussian (of box reaches under `gaussian` with one sigma each, in squared
    reaches), of choices what all of a unit's weights can move scores by (R·U, REP and together within it), before
    the factor of a fraction. `reaches`: the box' r_i. For ranks: `fractions` p/q, `offsets` o, `caps` T (d = min(T,
    …)), `candidates` the number of values of v (0 .. candidates - 1), `hash_bits` how many low bits of v are a
    hash. `choices`: how many groups are taken by a `flip` (top), one a group else. `stored`: under which keys its draw
    is stored, in hex, where that was known before it was drawn: an entry of the ledger is of the measurement that has
    its keys."""

    kind: str
    columns: tuple[tuple[str, ...], ...]
    sensitivity: Fraction
    law: Law
    share: Charge
    unit: int = 1
    reaches: tuple[int, ...] = ()
    fractions: tuple[Fraction, ...] = ()
    offsets: tuple[int, ...] = ()
    caps: tuple[int, ...] = ()
    candidates: int | None = None
    hash_bits: int = 0
    choices: int = 1
    stored: tuple[str, ...] = ()

    @property
    def is_of_values(self) -> bool:
        """Whether it is a choice among values, not among groups, whose query has the columns of a window."""
        return self.columns[0][-4:] == ("v", "less", "w", "n")


@dataclass(frozen=True, slots=True)
class Threshold:
    """Which found groups are shown: those whose measurement number `counted` (people) passes the test of its law.

    `delta` is what the test spends, with the share of that measurement.
    """

    counted: int
    minimum_units: int
    tau: int
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Groups:
    """Which groups are answered. `one`: no keys. `declared`: `count` of a list fixed before private rows are read.
    `found`: by a threshold. `chosen`: `chosen` of `count` declared ones, by the release's `flip` measurement.

    `drawn`: of a declared list, of how many groups numbers are drawn at most, those for all other values too (1.34);
    None: not told. `count` does not say so: of groups that were found before it is 1, and no certificate from before
    `drawn` was told has the cells of other values in it."""

    kind: Literal["one", "declared", "found", "chosen"]
    count: int = 1
    chosen: int | None = None
    drawn: int | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows near a rank, all of which are read: those that miss the rank `fraction·n + offset` of n, in weight and in
    the fraction's own parts, by less than `cap`."""

    fraction: Fraction
    offset: int
    cap: int


@dataclass(frozen=True, slots=True)
class Part:
    """The values from `low` to `high` among the candidates, of which `stretches` are read (1.21): as whoever draws from
    them asked for them."""

    low: int
    high: int
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A text that is sent: the very string, which measurements are read from it, what `$1`, `$2` … are (words: `salt`,
    `keys`, `chosen`, `released`, `released-key`, `released-row`), and of which part of the values it is."""

    sql: str
    measurements: tuple[int, ...]
    parameters: tuple[str, ...] = ()
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Reach:
    """Whose data a release is charged for: runs of periods by their numbers, and undated rows. `by`: its rows are all
    of `one` period, or bounded by (person, period), a `pair`, or by `person`, who is replaced (soundness.md 1.40).
    """

    runs: tuple[tuple[int, ...], ...]
    undated: bool
    by: Literal["one", "pair", "person"]


@dataclass(frozen=True, slots=True)
class Release:
    """Aggregates of private rows by keys. `keys`: the result columns of the keys. `reach`: whose data it is charged
    for, where there are periods."""

    keys: tuple[str, ...]
    groups: Groups
    measurements: tuple[Measurement, ...]
    queries: tuple[Query, ...]
    charge: Charge
    threshold: Threshold | None = None
    reach: Reach | None = None


@dataclass(frozen=True, slots=True)
class Certificate:
    """A statement's releases, what they cost together, and the facts that they were planned from."""

    facts: Facts
    releases: tuple[Release, ...]
    charge: Charge
    version: int = VERSION


Decoded = TypeVar("Decoded")


def dumps(value: object) -> str:
    """Canonical JSON of a dataclass of this module: what is at its default is left out."""
    return _text(_plain(value))


def dumps_stored(certificate: Certificate) -> tuple[str, str]:
    """Canonical JSON of a certificate, and of the same without where its draws are stored."""
    whole: Any = _plain(certificate)
    content = _text(whole)
    for release in whole["releases"]:
        for measurement in release["measurements"]:
            measurement.pop("stored", None)
    return content, _text(whole)


def _text(plain: object) -> str:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def loads(kind: type[Decoded], text: str) -> Decoded:
    """A value of a dataclass of this module, of JSON that `dumps` wrote; raises ValueError where it is none."""
    try:
        value = _typed(kind, json.loads(text))
    except (TypeError, KeyError, ZeroDivisionError, RecursionError) as error:
        raise ValueError(f"no {kind.__name__}: {error}") from error
    assert isinstance(value, kind)
    return value


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON, in hex."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()


def _plain(value: Any) -> object:
    kind: Any = type(value)
    if kind in (str, int, bool):
        return value
    if kind is tuple:
        return [_plain(one) for one in value]
    if kind is Fraction:
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    return {
        name: _plain(content)
        for name, default in _defaults(kind)
        if (content := getattr(value, name)) != default or name == "version"
    }


@cache
def _defaults(kind: Any) -> tuple[tuple[str, object], ...]:
    """The fields of a dataclass of this module, each with what is left out."""
    return tuple((field.name, field.default) for field in fields(kind))


def _typed(kind: Any, value: object) -> object:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        [inner] = [one for one in arguments if one is not type(None)]
        return _typed(inner, value)
    if origin is Literal:
        if value not in arguments:
            raise TypeError(f"{value!r} is none of {arguments}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise TypeError("a list is expected")
        return tuple(_typed(arguments[0], one) for one in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise TypeError("an object is expected")
        return {name: _typed(arguments[1], one) for name, one in value.items()}
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise TypeError("an object is expected")
        hints = get_type_hints(kind)
        if extra := set(value) - set(hints):
            raise TypeError(f"unknown {sorted(extra)}")
        return kind(**{name: _typed(hints[name], one) for name, one in value.items()})  # type: ignore[operator]
    if kind is Fraction:
        if not isinstance(value, str) or not _FRACTION.fullmatch(value):
            raise TypeError("a fraction is text")
        return Fraction(value)
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
