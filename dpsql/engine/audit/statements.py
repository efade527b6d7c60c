"""Statements of every shape over a catalog: what the laws, the growth search and `dpsql audit --fuzz` ask.

A shape is a point of `SHAPES`: where its rows come from, what they are grouped by, what is measured of which argument,
which rows are left, what stands above. A statement is written from a shape, the catalog and random numbers alone, so
that a seed says it all. Some are refused: what is not refused is held to its claim.

House rule: nothing here knows a law, a claim or a reason to refuse.

An axis is a name with a few named alternatives; a point takes one of each. Most faults need two alternatives at once,
few need three: a covering of all pairs has a hundred points where the product has millions.

Random expressions over columns of a catalog: arguments, conditions and keys of the statements that are searched.

Some are refused, as a person's are; none of them is made to be accepted. What is written depends on the columns and on
the random numbers alone.
"""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction

from ...plan.dialects.quote import text as quoted
from ...records import dataclass
from ...relation.catalog import Catalog, Column, Table, View
from ...relation.types import Kind
from ..preview import sql_name

_SIGNS = ("=", "<>", "<", "<=", ">", ">=")
_NUMBERS = ("0", "1", "2", "-3", "0.5", "2.25", "7", "100", "1e3", "0.000000000001")
_TEXTS = ("'a'", "''", "'t'", "'zz'")
_TIMES = ("DATE '2020-06-15'", "TIMESTAMP '2020-02-01 10:00:00'", "DATE '2000-01-01'")
_ZONES = ("Europe/Zurich", "America/Havana")
_UNITS_OF_TIME = ("year", "quarter", "month", "week", "day", "hour", "minute")
_FIELDS = (
    "year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "hour", "minute", "isoyear", "second", "epoch",
)  # fmt: skip
_OF_ONE_NUMBER = (
    "abs({})", "(-{})", "round({})", "floor({})", "ceil({})", "trunc({})", "sign({})", "sin({})", "cos({})", "atan({})",
    "tanh({})", "sqrt(abs({}))", "ln(greatest({}, 1))", "log(greatest({}, 0.5))", "exp(least({}, 3))", "power({}, 2)",
    "power({}, 3)", "coalesce({}, 0)", "nullif({}, 0)", "CAST({} AS INTEGER)", "CAST({} AS NUMERIC(8,1))",
    "CAST({} AS DOUBLE PRECISION)", "({} / 4)", "width_bucket({}, 0, 4, 5)", "width_bucket({}, 2.5, -1, 3)",
)  # fmt: skip
_OF_ONE_TEXT = (
    "lower({})", "upper({})", "trim({})", "substring({} FROM 1 FOR 2)", "left({}, 1)", "right({}, 2)",
    "({} || '-')", "concat({}, 'x')", "coalesce({}, 'none')", "nullif({}, 'a')", "({0} || {0})",
)  # fmt: skip
_CLOCKS = ("TIME '09:30'", "TIME '23:59:59.5'")
_OF_ONE_TIME = (
    "CAST({} AS DATE)", "CAST({} AS TIMESTAMP)", "({} + INTERVAL '1 day')", "({} + INTERVAL '-2 months')",
    "({} + INTERVAL '90 minutes')", "date_bin('7 days', {}, TIMESTAMP '2001-01-01')",
    *(f"date_trunc('{unit}', {{}})" for unit in _UNITS_OF_TIME),
    *(f"date_trunc('{unit}', {{}}, '{zone}')" for unit in _UNITS_OF_TIME[2:5] for zone in _ZONES),
    *(f"({{}}::timestamptz AT TIME ZONE '{zone}')" for zone in _ZONES),
)  # fmt: skip
_BINS = (
    "floor({} / 0.5) * 0.5", "floor({} * 2) / 2", "ceil({} / 0.3) * 0.3 - 1", "(CAST({} AS INTEGER) / 2) * 2",
    "round({}) * 1e0", "width_bucket({}, 0, 4, 5)", "trunc({} / 1.5) * 1.5", "({} % 3)",
)  # fmt: skip


def role_of(column: Column) -> str:
    """Return what a column is used as: number, text, flag, time, or other."""
    kind = column.type.kind
    if column.type.is_number:
        return "number"
    roles = {Kind.TEXT: "text", Kind.BOOLEAN: "flag", Kind.DATE: "time", Kind.TIMESTAMP: "time"}
    return roles.get(kind, "other")


@dataclass(frozen=True, slots=True)
class Named:
    """A column of a FROM item: its name as SQL has it, its role, and what the catalog says of it, where it is one."""

    sql: str
    role: str
    column: Column | None = None

    @classmethod
    def of(cls, column: Column) -> Named:
        """Return a column of a table."""
        return cls(sql_name(column.name), role_of(column), column)


@dataclass(frozen=True, slots=True)
class Item:
    """A FROM item. `sql`: with its alias. `person`: the columns that together say whose a row is, () for none."""

    sql: str
    alias: str
    columns: tuple[Named, ...]
    person: tuple[str, ...] = ()
    table: str | None = None

    @property
    def owner(self) -> tuple[str, ...]:
        """The qualified columns of `person`."""
        return tuple(f"{self.alias}.{name}" for name in self.person)


@dataclass
class Scope:
    """The columns that an expression may have, and the random numbers that choose among them."""

    rng: random.Random
    items: Sequence[Item]

    def pick(self, *options: str) -> str:
        """Return one of some texts."""
        return self.rng.choice(options)

    def chance(self, percent: int) -> bool:
        """Return whether something happens."""
        return self.rng.randrange(100) < percent

    def columns(self, role: str, *, declared: bool | None = None) -> list[str]:
        """Return the columns of a role that do not say whose a row is. `declared`: those with values, or without."""
        return self._named(role, lambda one: declared in (None, _has_values(one)))

    def _named(self, role: str, keeps: Callable[[Named], bool]) -> list[str]:
        return [
            f"{item.alias}.{one.sql}"
            for item in self.items
            for one in item.columns
            if one.role == role and one.sql not in item.person and keeps(one)
        ]

    def column(self, role: str, otherwise: str, *, declared: bool | None = None) -> str:
        """Return one of them, else one of the role, else what stands for it."""
        found = self.columns(role, declared=declared) or self.columns(role)
        return self.rng.choice(found) if found else otherwise

    def bounded(self) -> str:
        """Return a number whose bounds are declared, where there is one: what most aggregates need."""
        found = self._named("number", lambda one: one.column is None or one.column.bounds is not None)
        return self.rng.choice(found) if found else self.column("number", "1")

    def exact(self) -> str:
        """Return a number that is no floating-point one, where there is one."""
        found = self._named("number", lambda one: one.column is None or not one.column.type.is_float)
        return self.rng.choice(found) if found else self.binned()

    def owners(self, percent: int) -> list[str]:
        """Return what says whose the rows are, now and then."""
        return [name for item in self.items[:1] for name in item.owner if self.chance(percent)]

    def number(self, depth: int) -> str:
        """Return a number, so many operators deep at most."""
        leaf = self.bounded() if self.chance(75) else self.pick(self.column("number", "1"), *_NUMBERS)
        if depth == 0:
            return leaf
        form = self.rng.randrange(13)
        if form < 3:
            return f"({self.number(depth - 1)} {self.pick('+', '-', '*', '/', '%')} {self.number(depth - 1)})"
        if form < 7:
            return self.pick(*_OF_ONE_NUMBER).format(self.number(depth - 1))
        if form == 7:
            return f"{self.pick('greatest', 'least')}({self.number(depth - 1)}, {self.number(depth - 1)})"
        if form == 8:
            otherwise = f" ELSE {self.number(depth - 1)}" if self.chance(60) else ""
            return f"CASE WHEN {self.condition(0)} THEN {self.number(depth - 1)}{otherwise} END"
        if form == 9 and (flags := self.columns("flag")):
            return f"CAST({self.rng.choice(flags)} AS INTEGER)"
        if form == 10 and (times := self.columns("time")):
            time = self.rng.choice(times)
            return self.pick(
                f"extract({self.pick(*_FIELDS)} FROM {time})",
                f"extract({self.pick('year', 'month')} FROM age({self.pick(*_TIMES)}, {time}))",
                f"({time} - DATE '2020-01-01')",
            )
        if form == 11 and (texts := self.columns("text")):
            return self.pick("length({})", "position('t' IN {})").format(self.rng.choice(texts))
        return leaf

    def text(self) -> str:
        """Return a text, or a computed one."""
        found = self.columns("text")
        if (times := self.columns("time")) and (not found or self.chance(10)):
            return f"to_char({self.rng.choice(times)}, '{self.pick('YYYY-MM', 'FMMonth', 'Dy HH24')}')"
        text = self.rng.choice(found) if found else "'a'"
        return self.pick(*_OF_ONE_TEXT).format(text) if self.chance(50) else text

    def time(self) -> str:
        """Return a date or a moment, or a computed one."""
        time = self.column("time", _TIMES[0])
        return self.pick(*_OF_ONE_TIME).format(time) if self.chance(60) else time

    def binned(self) -> str:
        """Return a number that few values are left of."""
        return self.pick(*_BINS).format(self.bounded())

    def compared(self) -> str:
        """Return a comparison of a column with a constant of its own: an end of its bounds, a listed value."""
        found = [(item, one) for item in self.items for one in item.columns if one.sql not in item.person]
        item, one = self.rng.choice(found) if found else (None, None)
        if item is None or one is None:
            return "1 = 1"
        name = f"{item.alias}.{one.sql}"
        if one.role == "flag":
            return self.pick(name, f"NOT {name}", f"{name} IS NOT TRUE")
        return f"{name} {self.pick(*_SIGNS)} {self.rng.choice(self.constants(one))}"

    def constants(self, named: Named) -> Sequence[str]:
        """Return constants that a column may be compared with."""
        column, role = named.column, named.role
        if column is not None and column.values and role == "text":
            return [quoted(value) for value in column.values if isinstance(value, str)] or _TEXTS
        if column is not None and column.bounds is not None:
            low, high = column.bounds
            ends = (low, high, (low + high) / 2)
            if role == "number":
                return [_plain(end) for end in ends]
            if role == "time" and column.type.kind is Kind.DATE:
                return [_date(end) for end in ends]
        return {"number": _NUMBERS, "time": _TIMES}.get(role, _TEXTS)

    def condition(self, depth: int) -> str:
        """Return a condition, so many operators deep at most."""
        if depth > 0 and self.chance(50):
            inner = self.condition(depth - 1)
            return self.pick(
                f"(NOT {inner})",
                f"({inner} AND {self.condition(depth - 1)})",
                f"({inner} OR {self.condition(depth - 1)})",
            )
        text, number, few = self.text(), self.number(depth), self.column("number", "1")
        forms = [
            self.compared(),
            self.compared(),
            f"({number} {self.pick(*_SIGNS)} {self.number(depth)})",
            f"({few} {self.pick(*_SIGNS)} {self.pick(*_NUMBERS)})",
            f"({few} BETWEEN {self.pick(*_NUMBERS)} AND {self.pick(*_NUMBERS)})",
            f"({few} IN ({self.pick(*_NUMBERS)}, {self.pick(*_NUMBERS)}))",
            f"({text} {self.pick(*_SIGNS)} {self.pick(*_TEXTS)})",
            f"({text} IN ('a', 'b', 't'))",
            f"({text} LIKE '{self.pick('%t%', 'a_', '%a%', '')}')",
            f"({self.pick(number, text)} IS NULL)",
            f"({self.pick(number, text)} IS NOT NULL)",
            f"({number} IS DISTINCT FROM {self.pick(*_NUMBERS)})",
        ]
        if self.columns("time"):
            forms.append(f"({self.time()} {self.pick(*_SIGNS)} {self.pick(self.time(), *_TIMES)})")
            # of a moment that is moved to another zone the verifier has no rule on Postgres
            clock = f"CAST(CAST({self.rng.choice(self.columns('time'))} AS TIMESTAMP) AS TIME)"
            forms.append(f"({clock} {self.pick(*_SIGNS)} {self.pick(*_CLOCKS)})")
        return self.rng.choice(forms)


def _has_values(named: Named) -> bool:
    return named.column is not None and named.column.values is not None


def _plain(value: Fraction) -> str:
    is_written_out = value.denominator == 1 and abs(value) < 10**30
    return str(value) if is_written_out else f"{float(value):.12g}"


def _date(days: Fraction) -> str:
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=min(max(int(days), -700_000), 2_900_000))
    return f"DATE '{day.isoformat()}'"


# --- points of a product of small lists, such that every pair of alternatives is tried ----------------------


Axes = Mapping[str, Sequence[str]]
"""The alternatives of each axis, by name."""
Point = dict[str, str]
"""One alternative of each axis."""
Pair = tuple[tuple[str, str], tuple[str, str]]
"""Alternatives of two axes, (axis, alternative) each, in the order of the axes."""

_TRIES = 12
"""Points that are compared for each that is taken."""


def pairs_of(axes: Axes) -> list[Pair]:
    """Return all pairs of alternatives of two axes."""
    return [
        ((one, a), (other, b))
        for one, other in itertools.combinations(axes, 2)
        for a in axes[one]
        for b in axes[other]
    ]


def pairs_in(point: Point) -> set[Pair]:
    """Return the pairs of alternatives that a point has."""
    return set(itertools.combinations(point.items(), 2))


def covering(
    axes: Axes, rng: random.Random, takes: Callable[[Point], bool], tries: int = 3
) -> Iterator[Point]:
    """Yield points that together have every pair, as far as some point that has it is taken.

    `takes` is asked of each point: one that it does not take covers nothing. A pair is given up after `tries` points
    that have it were not taken.
    """
    left = dict.fromkeys(pairs_of(axes), tries)
    while left:
        wanted = next(iter(left))
        point = max(
            (_point(axes, rng, dict(wanted)) for _ in range(_TRIES)),
            key=lambda one: len(left.keys() & pairs_in(one)),
        )
        if takes(point):
            for pair in pairs_in(point):
                left.pop(pair, None)
            yield point
            continue
        left[wanted] -= 1
        if not left[wanted]:
            del left[wanted]


def points(axes: Axes, rng: random.Random) -> Iterator[Point]:
    """Yield points without end: first those of a covering, then random ones."""
    yield from covering(axes, rng, lambda _: True)
    while True:
        yield _point(axes, rng, {})


def _point(axes: Axes, rng: random.Random, fixed: Mapping[str, str]) -> Point:
    return {name: fixed.get(name) or rng.choice(options) for name, options in axes.items()}


# --- statements of every shape over a catalog ---------------------------------------------------------------


SHAPES: Axes = {
    "rows": (
        "table", "filtered", "cte", "per person", "distinct", "window", "union", "program", "frame", "first",
        "compared", "lateral", "path", "people", "outer", "public", "condition", "exists", "in", "correlated",
        "intermediate", "released", "any join",
    ),
    "nested": ("flat", "flat", "nested"),
    "keys": ("none", "declared", "found", "bounded", "computed", "time", "two", "found two", "listed"),
    "grouping": ("by", "by", "rollup", "sets"),
    "measure": (
        "count", "rows", "distinct", "people", "sum", "average", "variance", "bivariate", "median", "percentile",
        "percentiles", "least", "most", "last", "mode", "several", "parts", "averages", "direct",
    ),
    "argument": ("column", "column", "constant", "expression"),
    "filter": ("all", "all", "filter"),
    "where": ("all", "compared", "condition"),
    "above": ("plain", "having", "top", "formula", "wrapped", "distinct"),
}  # fmt: skip
"""The axes of a statement; an alternative that stands twice is asked for twice as often."""

GROWING: Axes = {
    **SHAPES,
    "rows": ("path", "people", "outer", "public", "union", "any join"),
    "keys": ("none",),
    "grouping": ("by",),
    "measure": ("count", "rows", "distinct", "people", "sum", "average"),
    "above": ("plain",),
}
"""The same for statements that may make many rows of one person's."""

_UNIONS, _COMPARED = ("UNION ALL", "UNION ALL", "UNION"), ("INTERSECT", "EXCEPT")
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
_FRACTIONS = ("0", "0.01", "0.1", "0.25", "'1/3'", "0.5", "0.75", "0.9", "0.99", "1")
_LISTS = ("0.1, 0.5", "0.25, 0.5, 0.75", "0.1, 0.5, 0.9", "0.05, 0.3, 0.5, 0.7, 0.95", "0.9, 0.1, 0.25")
_TWO_COLUMNS = ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2")
_SPREADS = ("VAR_POP", "VAR_SAMP", "STDDEV", "STDDEV_POP")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, and the point of the axes that it was written from."""

    sql: str
    shape: Point

    def __str__(self) -> str:
        return f"{self.sql}  -- {', '.join(self.shape.values())}"


def statements(catalog: Catalog, seed: int, count: int, shapes: Axes = SHAPES) -> Iterator[Statement]:
    """Yield so many statements over a catalog: of every pair of alternatives first, then at random.

    Always the same for the same catalog and seed. A catalog without a table of people has none.
    """
    if not any(_sources(catalog)):
        return
    rng = random.Random(seed)
    for point, _ in zip(points(shapes, rng), range(count), strict=False):
        yield statement(catalog, point, rng)


def statement(catalog: Catalog, point: Point, rng: random.Random) -> Statement:
    """Return a statement of a shape."""
    return Statement(_Writer(catalog, rng).written(point), point)


# --- whose a row is ---------------------------------------------------------------------------------------


def person_of(catalog: Catalog, table: Table) -> tuple[str, ...]:
    """Return the columns of a table that hold its person's key, in the order of the root's; () where a join is needed
    or they have no name."""
    unit = table.unit
    if unit is None or table.unnamed.intersection(unit.columns):
        return ()
    if unit.references is None:
        return unit.columns
    parent, key = unit.references
    root = catalog.tables[parent].unit
    if root is None or root.references is not None or set(root.columns) != set(key):
        return ()
    own = dict(zip(key, unit.columns, strict=True))
    return tuple(own[column] for column in root.columns)


def _sources(catalog: Catalog) -> Iterator[tuple[str, Sequence[Column], tuple[str, ...], Table | None]]:
    """Yield (name, columns, person, table) of what statements may name whose rows are people's."""
    for name, shown in catalog.shown.items():
        if isinstance(shown, View):
            if shown.role == "private":
                yield name, shown.named, _person_of_view(catalog, shown), None
        elif shown.unit is not None:
            yield name, shown.named, person_of(catalog, shown), shown


def _person_of_view(catalog: Catalog, view: View) -> tuple[str, ...]:
    names = {column.name for column in view.columns}
    read = (person_of(catalog, catalog.tables[name]) for name in view.reads if name in catalog.tables)
    return next((person for person in read if person and names.issuperset(person)), ())


def _public(catalog: Catalog) -> list[tuple[str, Sequence[Column]]]:
    return [
        (name, shown.named)
        for name, shown in catalog.shown.items()
        if (shown.role == "public" if isinstance(shown, View) else shown.unit is None)
    ]


# --- a statement -------------------------------------------------------------------------------------------


@dataclass
class _From:
    """What stands in FROM: its items, its text, conditions that belong to it, and a WITH before all."""

    items: list[Item]
    text: str
    where: list[str] = field(default_factory=list)
    before: str = ""


@dataclass
class _Below:
    """What a subquery is made of: an item, and a text and a number of its rows."""

    scope: Scope
    inner: Item
    alias: str
    text: str
    number: str

    def item(self, shown: Mapping[str, str], rest: str = "", select: str = "SELECT") -> Item:
        """Return the subquery: the person's columns, and what is `shown` by name, of which c is a text."""
        person = {f"p{i}": column for i, column in enumerate(self.inner.owner)}
        listed = ", ".join(f"{sql} AS {name}" for name, sql in [*person.items(), *shown.items()])
        columns = tuple(Named(name, "text" if name == "c" else "number") for name in shown)
        sql = f"({select} {listed} FROM {self.inner.sql}{rest}) AS {self.alias}"
        return Item(sql, self.alias, columns, tuple(person))


class _Writer:
    """Writes one statement."""

    def __init__(self, catalog: Catalog, rng: random.Random) -> None:
        self.catalog, self.rng, self._count = catalog, rng, 0
        self._private = list(_sources(catalog))
        self._listed = _public(catalog)

    def written(self, point: Point) -> str:
        found = self._from(point["rows"], 1 if point["nested"] == "nested" else 0)
        scope = Scope(self.rng, found.items)
        keys = [key for key in dict.fromkeys(self._keys(point["keys"], scope)) if "." in key]
        where = [*found.where, *self._where(point, scope, keys)]
        calls = [self._filtered(call, point, scope) for call in self._calls(point, scope)]
        if point["above"] == "formula" and point["measure"] not in ("percentiles", "last", "mode"):
            calls = [f"{calls[0]} {scope.pick('* 2', '/ COUNT(*)', '+ COUNT(*)', '/ 4')}", *calls[1:]]
        shown = ", ".join(f"{sql} AS g{i}" for i, sql in enumerate([*keys, *calls]))
        if point["above"] == "distinct" and keys:
            keyed = ", ".join(f"{sql} AS g{i}" for i, sql in enumerate(keys))
            return f"{found.before}SELECT DISTINCT {keyed} FROM {found.text}{_clause(where)}"
        group = self._group(point["grouping"], keys)
        body = f"SELECT {shown} FROM {found.text}{_clause(where)}{group}"
        return found.before + self._above(point["above"], body, len(keys), len(calls))

    def _group(self, grouping: str, keys: list[str]) -> str:
        if not keys:
            return ""
        listed = ", ".join(keys)
        if grouping == "rollup":
            return f" GROUP BY {self.rng.choice(('ROLLUP', 'CUBE'))} ({listed})"
        return f" GROUP BY GROUPING SETS (({listed}), ())" if grouping == "sets" else f" GROUP BY {listed}"

    def _above(self, above: str, body: str, keys: int, calls: int) -> str:
        last = f"g{keys + self.rng.randrange(calls)}"
        if above == "having" and keys:
            return f"{body} HAVING COUNT(*) > {self.rng.choice(('0', '2', '10'))}"
        if above == "top" and keys:
            word = self.rng.choice((" DESC", " DESC", ""))
            return f"{body} ORDER BY {last}{word} LIMIT {self.rng.choice(('1', '2', '5'))}"
        if above == "wrapped":
            over = self.rng.choice(("COUNT(*)", f"COUNT({last})", f"MAX({last})"))
            if self.rng.randrange(2):
                return f"SELECT {over} FROM ({body}) AS w"
            return f"SELECT * FROM ({body}) AS w WHERE {last} IS NOT NULL"
        return body

    # --- FROM ----------------------------------------------------------------------------------------------

    def _alias(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def _table(self, wanted: Callable[[tuple[str, ...]], bool] = lambda _: True) -> Item:
        """Return a table or view of people; of those whose person's columns are `wanted`, where there are such."""
        pool = [one for one in self._private if wanted(one[2])] or self._private
        return self._item(*self.rng.choice(pool)[:3])

    def _item(self, name: str, columns: Sequence[Column], person: tuple[str, ...] = ()) -> Item:
        alias = self._alias()
        known = tuple(Named.of(column) for column in columns)
        return Item(f"{sql_name(name)} AS {alias}", alias, known, tuple(map(sql_name, person)), name)

    def _base(self, depth: int) -> Item:
        """Return a table that says whose its rows are; above depth 0 a subquery instead."""
        item = self._table(bool)
        for _ in range(depth):
            item = self._derived(
                self.rng.choice(("filtered", "per person", "distinct", "window", "union")), item
            )
        return item

    def _from(self, rows: str, depth: int) -> _From:
        if rows in ("filtered", "union", "compared", *_DERIVED):
            item = self._derived(rows, self._base(depth))
            return _From([item], item.sql)
        if rows == "cte":
            inner = self._base(depth)
            body = f"SELECT * FROM {inner.sql}{_clause([Scope(self.rng, [inner]).condition(0)])}"
            alias = self._alias()
            item = replace(inner, sql=f"q AS {alias}", alias=alias)
            return _From([item], item.sql, before=f"WITH q AS ({body}) ")
        if rows == "lateral":
            return self._lateral(self._base(depth))
        if rows in ("path", "people", "outer", "public", "released", "any join"):
            return self._joined(rows, depth)
        item = self._table() if rows == "table" and not depth else self._base(depth)
        return _From([item], item.sql, self._tests(rows, item, depth))

    def _lateral(self, outer: Item) -> _From:
        """Return rows, each beside some rows of the same person's, or beside what these come to."""
        inner, alias = self._table(lambda person: len(person) == len(outer.person)), self._alias()
        scope = Scope(self.rng, [inner])
        number, text = scope.bounded(), scope.column("text", "'a'")
        where = _clause(
            [self._same_person(outer, inner), *([scope.condition(0)] if scope.chance(30) else [])]
        )
        order = ", ".join(inner.owner) + _ordered((text, number), scope.pick("", " DESC"))
        listed = f"{number} AS v FROM {inner.sql}{where} ORDER BY {order} LIMIT 2"
        read = f"AS v FROM {inner.sql}{where}"
        body = scope.pick(
            listed,
            f"{self._of_one(scope)} {read}",
            f"{self._program(scope)} {read}",
            f"COUNT(*) {read} GROUP BY {text}",
        )
        item = Item(f"LATERAL (SELECT {body}) AS {alias}", alias, (Named("v", "number"),))
        join = scope.pick("CROSS JOIN", "LEFT JOIN")
        on = " ON TRUE" if join == "LEFT JOIN" else ""
        return _From([outer, item], f"{outer.sql} {join} {item.sql}{on}")

    def _derived(self, kind: str, inner: Item) -> Item:
        """Return a subquery over an item."""
        scope, alias = Scope(self.rng, [inner]), self._alias()
        if kind == "filtered":
            kept = f"(SELECT * FROM {inner.sql}{_clause([scope.condition(1)])}) AS {alias}"
            return replace(inner, sql=kept, alias=alias)
        if kind in ("union", "compared"):
            return self._union(alias, inner, _COMPARED if kind == "compared" else _UNIONS)
        text, number = scope.text() if scope.chance(40) else scope.column("text", "'a'"), scope.bounded()
        return _DERIVED[kind](self, _Below(scope, inner, alias, text, number))

    def _distinct(self, below: _Below) -> Item:
        shown = {"c": below.text, **({"v": below.number} if below.scope.chance(50) else {})}
        return below.item(shown, select="SELECT DISTINCT")

    def _programmed(self, below: _Below) -> Item:
        scope = below.scope
        count = 1 + scope.chance(30)
        shown = {f"v{i}": self._program(scope) for i in range(count)}
        if scope.chance(40):
            of = scope.column("text", "'a'")
            joined = f"left({of}, 9)"
            shown["c"] = f"string_agg({scope.pick(joined, f'DISTINCT {joined}')}, '-')"
        return below.item(shown, f" GROUP BY {', '.join(below.inner.owner) or '()'}")

    def _first(self, below: _Below) -> Item:
        scope, text = below.scope, below.text
        order = _ordered((text, below.number), scope.pick("", " DESC"))
        on = ", ".join([*below.inner.owner, *([text] if scope.chance(30) and "." in text else [])])
        return below.item({"v": below.number}, f" ORDER BY {on}{order}", f"SELECT DISTINCT ON ({on})")

    def _numbered(self, below: _Below) -> Item:
        scope = below.scope
        shown = {"v": below.number, "rn": self._framed(scope, below.inner.owner)}
        kept = ""
        if scope.chance(40):
            kept = f" QUALIFY rn {scope.pick('<=', '>')} {scope.pick('0.5', '1', '2')}"
        return below.item(shown, kept)

    def _windowed(self, below: _Below) -> Item:
        scope, inner, number, text = below.scope, below.inner, below.number, below.text
        order = scope.pick(number, text, scope.column("time", number)) + scope.pick("", " DESC")
        call = scope.pick(
            "ROW_NUMBER()", "ROW_NUMBER()", "RANK()", "DENSE_RANK()", f"LAG({number})", f"LEAD({number}, 1, 0)",
            "COUNT(*)", f"SUM({number})", f"MIN({number})", f"FIRST_VALUE({number})", f"LAST_VALUE({number})",
        )  # fmt: skip
        frame = ""
        if call.startswith("SUM") and scope.chance(40):
            frame = " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
        elif call.startswith("LAST"):
            frame = " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        by = f"PARTITION BY {', '.join(inner.owner)} " if inner.owner and scope.chance(95) else ""
        return below.item({"v": number, "c": text, "rn": f"{call} OVER ({by}ORDER BY {order}{frame})"})

    def _per_person(self, below: _Below) -> Item:
        scope, inner, text = below.scope, below.inner, below.text
        keyed = {"c": text} if scope.chance(30) else {}
        count = 1 + scope.chance(40)
        calls = {f"v{i}": self._of_one(scope) for i in range(count)}
        where = [scope.condition(0)] if scope.chance(40) else []
        group = ", ".join([*inner.owner, *([text] if keyed else [])]) or "()"
        having = ""
        if scope.chance(25):
            having = f" HAVING COUNT(*) {scope.pick('>', '<=')} {scope.pick('0', '1', '2')}"
        return below.item(keyed | calls, f"{_clause(where)} GROUP BY {group}{having}")

    def _of_one(self, scope: Scope) -> str:
        """Return an aggregate of one person's rows."""
        number, text = scope.bounded(), scope.column("text", "'a'")
        call = scope.pick(
            "COUNT(*)", "COUNT(*)", f"COUNT({number})", f"SUM({number})", f"SUM({number})", f"AVG({number})",
            f"MIN({number})", f"MAX({number})", f"COUNT(DISTINCT {text})",
        )  # fmt: skip
        return f"{call} FILTER (WHERE {scope.condition(0)})" if scope.chance(10) else call

    def _program(self, scope: Scope) -> str:
        """Return an aggregate of one person's rows that is said by windows."""
        number, way, share = scope.bounded(), scope.pick("", " DESC"), scope.pick(*_FRACTIONS)
        call = scope.pick(
            f"MEDIAN({number})", f"percentile_cont({share}) WITHIN GROUP (ORDER BY {number}{way})",
            f"percentile_disc({share}) WITHIN GROUP (ORDER BY {number}{way})",
            f"mode() WITHIN GROUP (ORDER BY {number}{way})", f"SUM(DISTINCT {number})", f"ANY_VALUE({number})",
        )  # fmt: skip
        return f"{call} FILTER (WHERE {scope.condition(0)})" if scope.chance(20) else call

    def _framed(self, scope: Scope, owner: Sequence[str]) -> str:
        """Return a window over one person's rows by values, by ties, or by few rows."""
        number, text = scope.bounded(), scope.column("text", "'a'")
        by = f"PARTITION BY {', '.join(owner)} " if owner and scope.chance(95) else ""
        start = scope.pick("0", "1", "2.5")
        end, way = scope.pick("CURRENT ROW", "3 FOLLOWING", "UNBOUNDED FOLLOWING"), scope.pick("", " DESC")
        whole, time = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", scope.column("time", number)
        return scope.pick(
            f"NTILE(2) OVER ({by}ORDER BY {number}{way})", f"PERCENT_RANK() OVER ({by}ORDER BY {text}{way})",
            f"CUME_DIST() OVER ({by}ORDER BY {number}{way})",
            f"NTH_VALUE({number}, 2) OVER ({by}ORDER BY {text}{way} {whole})",
            f"COUNT(*) OVER ({by}ORDER BY {number}{way} RANGE BETWEEN {start} PRECEDING AND {end})",
            f"SUM({number}) OVER ({by}ORDER BY {time}{way} GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            f"MIN({number}) OVER ({by}ORDER BY {number}{way} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
            f"MAX({number}) OVER ({by}ORDER BY {text}{way} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        )  # fmt: skip

    def _union(self, alias: str, inner: Item, words: Sequence[str]) -> Item:
        other, sides = self._table(lambda person: len(person) == len(inner.person)), []
        for item in (inner, other if len(other.person) == len(inner.person) else inner):
            scope = Scope(self.rng, [item])
            person = [f"{column} AS p{i}" for i, column in enumerate(item.owner)]
            number = scope.bounded()
            if words is not _UNIONS:  # what is compared is a key, and no fraction is one
                number = f"CAST(round({number}) AS bigint)"
            shown = [*person, f"{number} AS v", f"{scope.column('text', 'NULL')} AS c"]
            where = [scope.condition(0)] if scope.chance(30) else []
            sides.append(f"SELECT {', '.join(shown)} FROM {item.sql}{_clause(where)}")
        body = f" {self.rng.choice(words)} ".join(sides)
        names = tuple(f"p{i}" for i in range(len(inner.person)))
        return Item(f"({body}) AS {alias}", alias, (Named("v", "number"), Named("c", "text")), names)

    def _joined(self, rows: str, depth: int) -> _From:
        scope = Scope(self.rng, [])
        if rows == "path":
            return self._path()
        if rows in ("public", "released"):
            item = self._base(depth)
            other = self._released() if rows == "released" else self._public_item()
            if other is None:
                return _From([item], item.sql)
            kind = scope.pick("JOIN", "JOIN", "LEFT JOIN")
            return _From([item, other], f"{item.sql} {kind} {other.sql} ON {self._equal(item, other)}")
        items = [self._base(depth), self._table(bool)]
        if scope.chance(25):
            items.append(self._derived(scope.pick("per person", "distinct", "window"), self._table(bool)))
        text = items[0].sql
        for before, item in itertools.pairwise(items):
            on = self._same_person(before, item)
            kind = "JOIN" if rows == "people" else scope.pick(*_JOINS[1:])
            if rows == "any join":
                on = (
                    f"{on} AND {self._equal(before, item)}" if scope.chance(75) else self._equal(before, item)
                )
                kind = scope.pick(*_JOINS)
            if scope.chance(20):
                on += (
                    f" {scope.pick('AND', 'AND', 'AND', 'OR')} {Scope(self.rng, [before, item]).condition(0)}"
                )
            text += f" {kind} {item.sql} ON {on}"
        return _From(items, text)

    def _path(self) -> _From:
        """Join a table with the one that its owner is found through, and so on; one that has none with itself."""
        ways = [one for one in self._private if one[3] is not None and one[3].reference is not None]
        if not ways:
            items = [self._table(bool), self._table(bool)]
            return _From(items, f"{items[0].sql} JOIN {items[1].sql} ON {self._same_person(*items)}")
        name, columns, person, table = self.rng.choice(ways)
        items = [self._item(name, columns, person)]
        text = items[0].sql
        while table is not None and table.unit is not None and table.reference is not None:
            parent, key = table.reference
            known = self.catalog.tables[parent]
            other = self._item(parent, known.named, person_of(self.catalog, known))
            equal = zip(table.unit.columns, key, strict=True)
            on = " AND ".join(
                f"{items[-1].alias}.{sql_name(a)} = {other.alias}.{sql_name(b)}" for a, b in equal
            )
            text += f" {self.rng.choice(('JOIN', 'JOIN', 'LEFT JOIN'))} {other.sql} ON {on}"
            items.append(other)
            table = known if self.rng.randrange(4) else None
        return _From(items, text)

    def _public_item(self) -> Item | None:
        return self._item(*self.rng.choice(self._listed)) if self._listed else None

    def _released(self) -> Item:
        """Return noisy answers by a key, to be joined back."""
        inner, alias = self._table(bool), self._alias()
        scope = Scope(self.rng, [inner])
        key = scope.column("text", "'a'", declared=scope.chance(70))
        call = scope.pick("COUNT(*)", f"SUM({scope.bounded()})", f"AVG({scope.bounded()})")
        body = f"SELECT {key} AS c, {call} AS s FROM {inner.sql} GROUP BY {key}"
        return Item(f"({body}) AS {alias}", alias, (Named("c", "text"), Named("s", "number")))

    def _same_person(self, left: Item, right: Item) -> str:
        """Return that two rows are one person's; now and then by a part of a key alone."""
        pairs = list(zip(left.owner, right.owner, strict=False))
        if not pairs or len(left.owner) != len(right.owner):
            return self._equal(left, right)
        if len(pairs) > 1 and self.rng.randrange(8) == 0:
            pairs = pairs[:1]
        return " AND ".join(f"{a} = {b}" for a, b in pairs)

    def _equal(self, left: Item, right: Item) -> str:
        """Return an equality, mostly of columns of one role."""
        roles = [
            role
            for role in ("text", "text", "number", "flag", "time")
            if self._of(left, role) and self._of(right, role)
        ]
        if not roles:
            return "1 = 1"
        role = self.rng.choice(roles)
        sign = "=" if self.rng.randrange(8) else self.rng.choice(("<>", "<", ">="))
        return f"{self.rng.choice(self._of(left, role))} {sign} {self.rng.choice(self._of(right, role))}"

    def _of(self, item: Item, role: str) -> list[str]:
        return Scope(self.rng, [item]).columns(role)

    def _tests(self, rows: str, item: Item, depth: int) -> list[str]:
        """Return what subqueries in WHERE ask of an item's rows."""
        scope = Scope(self.rng, [item])
        if rows == "condition":
            return [scope.condition(2)]
        if rows == "intermediate":
            other = self._table()
            value = Scope(self.rng, [other])
            call = value.pick(f"AVG({value.bounded()})", f"SUM({value.bounded()})", "COUNT(*)")
            return [f"{scope.bounded()} {scope.pick('<', '>', '=')} (SELECT {call} FROM {other.sql})"]
        if rows not in ("exists", "in", "correlated"):
            return []
        inner = self._base(depth)
        own = Scope(self.rng, [inner])
        more = f" AND {own.condition(0)}" if scope.chance(60) else ""
        link = self._same_person(item, inner)
        if rows == "exists":
            return [
                f"{scope.pick('EXISTS', 'EXISTS', 'NOT EXISTS')} (SELECT 1 FROM {inner.sql} WHERE {link}{more})"
            ]
        if rows == "correlated":
            of_one = f"(SELECT {self._of_one(own)} FROM {inner.sql} WHERE {link}{more})"
            return [f"{scope.bounded()} {scope.pick('<', '<=', '>', '=')} {of_one}"]
        here, there = item.owner, inner.owner
        if not here or len(here) != len(there):
            here, there = (scope.column("text", "'a'"),), (own.column("text", "'a'"),)
        tested = here[0] if len(here) == 1 else f"({', '.join(here)})"
        listed = f"(SELECT {', '.join(there)} FROM {inner.sql} WHERE 1 = 1{more})"
        return [f"{tested} {scope.pick('IN', 'IN', 'NOT IN')} {listed}"]

    # --- what is asked of the rows ----------------------------------------------------------------------------

    def _where(self, point: Point, scope: Scope, keys: list[str]) -> list[str]:
        made = {"compared": lambda: [scope.compared()], "condition": lambda: [scope.condition(1)]}
        found = made.get(point["where"], list[str])()
        if point["keys"] == "listed" and keys:
            constants = [value for item in scope.items for one in item.columns if f"{item.alias}.{one.sql}" == keys[0]
                         for value in scope.constants(one)] or ["'a'"]  # fmt: skip
            found.append(f"{keys[0]} IN ({', '.join(dict.fromkeys([*constants[:3], constants[-1]]))})")
        return found

    def _keys(self, kind: str, scope: Scope) -> list[str]:
        declared, found = (scope.column("text", "'a'", declared=one) for one in (True, False))
        if kind == "none":
            return []
        if kind == "time":
            return [scope.time()]
        if kind == "bounded":
            return [scope.pick(scope.exact(), scope.binned())]
        if kind == "computed":
            return [
                scope.pick(
                    f"CASE WHEN {scope.condition(0)} THEN 'yes' ELSE 'no' END", scope.text(), scope.binned()
                )
            ]
        if kind == "two":
            return [declared, scope.column("flag", found)]
        if kind == "found two":
            return [
                found,
                scope.pick(declared, scope.column("flag", declared), scope.exact(), *scope.owners(5)),
            ]
        return [declared if kind == "declared" else found]

    def _argument(self, point: Point, scope: Scope) -> str:
        kind = point["argument"]
        if kind == "constant":
            return scope.pick("1", "0", "2.5", "-3", "CAST(NULL AS INTEGER)")
        return scope.number(2) if kind == "expression" else scope.bounded()

    def _filtered(self, call: str, point: Point, scope: Scope) -> str:
        is_filtered = point["filter"] == "filter" and "FILTER" not in call
        return f"{call} FILTER (WHERE {scope.condition(0)})" if is_filtered else call

    def _calls(self, point: Point, scope: Scope) -> list[str]:
        """Return the aggregates of a measure."""
        kind, one = point["measure"], self._argument(point, scope)
        within = f"WITHIN GROUP (ORDER BY {one}{scope.pick('', '', ' DESC')})"
        word = scope.pick("PERCENTILE_CONT", "PERCENTILE_DISC")
        of_text = scope.pick(scope.column("text", "'a'"), scope.column("number", "1"), scope.text())
        if kind == "people":
            owners = [item.owner for item in scope.items if item.owner]
            return [f"COUNT(DISTINCT {_row(self.rng.choice(owners))})" if owners else "COUNT(*)"]
        if kind == "percentile":
            return [f"{word}({scope.pick(*_FRACTIONS)}) {within}"]
        if kind == "percentiles":
            if scope.chance(50):
                return [f"{word}(ARRAY[{scope.pick(*_LISTS)}]) {within}"]
            return [f"{word}({share}) {within}" for share in scope.pick(*_LISTS).split(", ")]
        if kind == "several":
            two = self._argument(point, scope)
            some = (
                "COUNT(*)",
                f"SUM({one})",
                f"AVG({two})",
                f"COUNT({two})",
                f"COUNT(DISTINCT {of_text})",
                f"MEDIAN({two})",
            )
            return self.rng.sample(some, scope.rng.choice((2, 3)))
        calls = {
            "count": ["COUNT(*)"],
            "rows": [f"COUNT({one})"],
            "distinct": [f"COUNT(DISTINCT {of_text})"],
            "sum": [f"SUM({one})"],
            "average": [f"AVG({one})"],
            "variance": [f"{scope.pick(*_SPREADS)}({one})"],
            "bivariate": [f"{scope.pick(*_TWO_COLUMNS)}({one}, {self._argument(point, scope)})"],
            "median": [f"MEDIAN({one})"],
            "least": [f"MIN({one})"],
            "most": [f"MAX({one})"],
            "last": [f"{scope.pick('MAX', 'MIN')}({scope.column('time', one)})"],
            "mode": [f"MODE() WITHIN GROUP (ORDER BY {scope.column('text', one, declared=True)})"],
            "parts": [f"COUNT(*) FILTER (WHERE {scope.condition(0)})", "COUNT(*)"],
            "averages": [f"AVG({one})", f"SUM({one})", "COUNT(*)"],
            "direct": [f"dp_avg_direct({one})"],
        }
        return calls[kind]


_DERIVED: Mapping[str, Callable[[_Writer, _Below], Item]] = {
    "distinct": _Writer._distinct,
    "program": _Writer._programmed,
    "first": _Writer._first,
    "frame": _Writer._numbered,
    "window": _Writer._windowed,
    "per person": _Writer._per_person,
}


def _row(columns: Sequence[str]) -> str:
    return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"


def _ordered(exprs: Sequence[str], way: str) -> str:
    """Return the rest of an ORDER BY: a constant there would be the number of a column."""
    return "".join(f", {expr}{way}" for expr in dict.fromkeys(exprs) if "." in expr)


def _clause(where: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(where)}" if where else ""
