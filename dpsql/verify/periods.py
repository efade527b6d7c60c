"""Whole periods, from the text alone: what each scan of a table with a time reads is bounded by, and charged (1.40).

A scan of such a table is one form: its columns, from the table and the tables on its way to the one with the time,
where the keys of the way are equal and the raw column lies in some of whole periods. Nothing else reads the table.
What it reads is no more than the table with fewer rows of each owner, so it is read as the table itself from there on;
as nothing then holds that all rows are there, no foreign key leads to it. One that asks a column of dates to be the
first day of the row's period may stand for that in a key: the table is then read as one of that key besides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from sqlglot import exp

from dpsql.verify.certificate import Facts, Reach, Table, Unit
from dpsql.verify.terms import Refused

_PERIOD = "dpsql_period"
_Kind = Callable[[exp.Table], bool]
_TYPES = {
    "date": ("DATE",),
    "timestamp": ("TIMESTAMP", "TIMESTAMPNTZ"),
    "timestamp without time zone": ("TIMESTAMP", "TIMESTAMPNTZ"),
    "timestamp with time zone": ("TIMESTAMPTZ",),
}


def number_of(period: str, day: date) -> int:
    """The number of the period that a day is in."""
    if period == "day":
        return day.toordinal()
    if period == "week":
        return (day.toordinal() - 1) // 7
    return 12 * day.year + day.month - 1 if period == "month" else day.year


def first_day(period: str, number: int) -> date:
    """The first day of the period of a number."""
    if period == "day":
        return date.fromordinal(number)
    if period == "week":
        return date.fromordinal(7 * number + 1)
    return date(number // 12, number % 12 + 1, 1) if period == "month" else date(number, 1, 1)


class Periods:
    """The scans of one release: held to what is charged, and put out of the way of the other rules."""

    def __init__(self, facts: Facts, reach: Reach | None) -> None:
        if (facts.calendar is None) != (reach is None):
            raise Refused("periods: a charge says whose, where there are periods")
        self.given, self.calendar, self.reach = facts, facts.calendar, reach
        self._scans: dict[int, tuple[exp.Table, str]] = {}
        if self.calendar is not None and (facts.neighbours != "add-remove" or facts.together != 1):
            raise Refused("periods: one person's rows of one period come or go")

    @property
    def facts(self) -> Facts:
        """What the other rules believe: neighbours that differ in one period, of tables whose rows are some.

        Premise of `one`: all rows that a person has in the block are of one period. Of `pair`: its rows are of (person,
        period), and undated ones are the same in both. Of `person`: other rows of one person in place of theirs.
        """
        if self.reach is None:
            return self.given
        known = {name: self._table(table) for name, table in self.given.tables.items()}
        tables = {name: table for name, table in known.items() if table is not None}
        tables |= {of: one for name, table in tables.items() for of, one in self._by_first_days(name, table)}
        neighbours = "replace-one" if self.reach.by == "person" else "add-remove"
        return replace(self.given, tables=tables, neighbours=neighbours, calendar=None)  # type: ignore[arg-type]

    def _table(self, table: Table) -> Table | None:
        """A table by the unit of the claim; None where its rows have none, which then nothing may read."""
        kept = tuple(one for one in table.foreign_keys if self.given.tables[one.table].time is None)
        dated = () if table.time is None or table.time.way else (table.time.column,)
        plain = replace(table, foreign_keys=kept, time=None, not_null=(*table.not_null, *dated))
        if self.reach is None or self.reach.by != "pair" or table.unit is None:
            return plain
        if table.time is None:
            return replace(plain, unit=None)
        if table.time.way:
            return plain
        if table.unit.table is not None or _PERIOD in table.columns:
            return None
        return replace(
            plain,
            columns={**table.columns, _PERIOD: "BIGINT"},
            not_null=(*plain.not_null, _PERIOD),
            unit=Unit((*table.unit.columns, _PERIOD)),
        )

    def _by_first_days(self, name: str, table: Table) -> Iterator[tuple[str, Table]]:
        """A table with a time by each date column c of its keys: its rows of which c is the first day of their period.

        Premise: each scan that it stands for asks that of its rows. Conclusion: they have the number of the period too,
        and each key with c has it in c's place. Why: a period has one first day.
        """
        given = self.given.tables[name]
        if given.time is None or given.time.way or _PERIOD in given.columns:
            return
        for column in dict.fromkeys(one for key in given.unique for one in key):
            if given.columns[column].lower() == "date" and (of := _by(name, column)) not in self.given.tables:
                keys = (
                    tuple(_PERIOD if one == column else one for one in key)
                    for key in given.unique
                    if column in key
                )
                yield (
                    of,
                    replace(
                        table,
                        columns={**table.columns, _PERIOD: "BIGINT"},
                        not_null=(*table.not_null, _PERIOD),
                        unique=(*table.unique, *keys),
                    ),
                )

    @property
    def _read_as(self) -> set[str]:
        found = (self._by_first_days(name, table) for name, table in self.given.tables.items())
        return {of for each in found for of, _ in each}

    def plain(self, trees: Sequence[exp.Expression]) -> list[exp.Expression]:
        """The release's queries with tables in place of their scans; or Refused, where a scan reads what is not
        charged."""
        if self.reach is None or self.calendar is None:
            return list(trees)
        charged = {number for first, last in self.reach.runs for number in range(first, last + 1)}
        read: set[int] = set()
        undated = False
        for tree in trees:
            scans = [one for one in tree.find_all(exp.Subquery) if self._timed_in(one) is not None]
            for scan in scans:
                read |= self._replaced(scan, charged)
            undated = (
                self._undated(tree, bool(scans)) and not (scans and self.reach.by != "person")
            ) or undated
            alone = {self._name(one) for one in tree.find_all(exp.Table) if id(one) not in self._scans}
            if alone & {*self._timed, *self._read_as}:
                raise Refused("periods: a table with a time is read in whole periods")
        if not read <= charged:
            raise Refused("periods: what is read is charged", f"{sorted(read - charged)[:5]}")
        if self.reach.by == "one" and len(read) > 1:
            raise Refused("periods: all rows are of one period")
        if undated and not self.reach.undated:
            raise Refused("periods: undated rows are charged")
        return list(trees)

    # --- scans ---

    @property
    def _timed(self) -> set[str]:
        return {name for name, table in self.given.tables.items() if table.time is not None}

    def _name(self, table: exp.Table) -> str:
        return ".".join(part.name for part in table.parts)

    def _timed_in(self, node: exp.Subquery) -> exp.Table | None:
        """The table of a time whose scan a subquery is, by its FROM; what it is besides is held to the form."""
        select = node.this
        clause = select.args.get("from_") if isinstance(select, exp.Select) else None
        table = None if clause is None else clause.this
        if isinstance(table, exp.Table) and self._name(table) in self._timed and table.alias == "s":
            return table
        return None

    def _replaced(self, node: exp.Subquery, charged: set[int]) -> set[int]:
        """The periods that a scan reads; its table stands in its place then."""
        select, table = node.this, self._timed_in(node)
        assert table is not None
        assert isinstance(select, exp.Select)
        time = self.given.tables[self._name(table)].time
        assert time is not None
        if {name for name, value in select.args.items() if value} - {
            "expressions",
            "from_",
            "joins",
            "where",
        }:
            raise _form("clauses")
        aliases, terms = ["s"], list(_conjuncts(select.args["where"].this))
        joins = select.args.get("joins") or []
        if len(joins) != len(time.way):
            raise _form("its way")
        for number, (join, hop) in enumerate(zip(joins, time.way, strict=True)):
            other = join.this
            is_cross = {name for name, value in join.args.items() if value} <= {
                "this",
                "kind",
            } and join.kind == "CROSS"
            if not is_cross or not isinstance(other, exp.Table) or self._name(other) != hop.table:
                raise _form("its way")
            if other.alias != f"w{number}":
                raise _form("its way")
            for mine, theirs in zip(hop.columns, hop.referenced, strict=True):
                term = next(
                    (one for one in terms if _is_equal(one, (aliases[-1], mine), (other.alias, theirs))), None
                )
                if term is None:
                    raise _form("its way")
                terms.remove(term)
            self._scans[id(other)] = other, self._name(other)
            aliases.append(other.alias)
        first_days = next((one for one in terms if _is_first_days(one)), None)
        terms = [one for one in terms if one is not first_days]
        runs = [list(_conjuncts(one)) for one in _alternatives(terms[0])] if len(terms) == 1 else [terms]
        last = self._name(joins[-1].this) if joins else self._name(table)
        column = aliases[-1], time.column, self.given.tables[last].columns[time.column]
        read = {number for run in runs for number in self._run(run, column)}
        for item in select.expressions:
            if isinstance(item, exp.Column) and item.table == "s" and item.name != _PERIOD:
                continue
            is_number = isinstance(item, exp.Alias) and item.alias == _PERIOD and not time.way
            if not is_number:
                raise _form("its columns")
            for number in sorted(read & charged):
                if self._has_moments(number, column):
                    leaf = self._leaf(item.this, number, column)
                    if not isinstance(leaf, exp.Literal) or leaf.is_string or int(leaf.this) != number:
                        raise Refused("periods: a row's period is its number")
        replaced = table.copy()
        replaced.set("alias", node.args["alias"].copy())
        self._scans[id(replaced)] = replaced, self._name(replaced)
        if first_days is not None:
            self._of_first_days(first_days, replaced, node, read & charged, column)
        node.replace(replaced)
        return read

    def _of_first_days(
        self,
        term: exp.Expression,
        replaced: exp.Table,
        node: exp.Subquery,
        read: set[int],
        column: tuple[str, str, str],
    ) -> None:
        """Reads a scan as the table by a column of first days, of which what is read says which periods they are.

        Premise: the column's type is that of days, and it is asked to be the first day of the row's period.
        """
        assert self.calendar is not None
        name, (left, tree) = self._name(replaced), (term.this, term.expression)
        if self.given.tables[name].columns[left.name].lower() != "date":
            raise _form("a column of days")
        for number in sorted(read):
            if self._has_moments(number, column):
                leaf = self._leaf(tree, number, column)
                day = leaf.this.this if isinstance(leaf, exp.Cast) and leaf.to.this.name == "DATE" else None
                if day != first_day(self.calendar.period, number).isoformat():
                    raise Refused("periods: a row's first day is that of its period")
        select, sources = node.parent_select, _inner(node.parent_select)
        if not read or select is None or not any(one is node for one in sources):
            return
        replaced.set("this", exp.to_identifier(_by(replaced.name, left.name), quoted=True))
        of = exp.column(_PERIOD, replaced.alias, quoted=True)
        numbers = [exp.Literal.number(number) for number in sorted(read)]
        select.where(exp.In(this=of, expressions=numbers), copy=False)

    def _run(self, bounds: list[exp.Expression], column: tuple[str, str, str]) -> range:
        """The periods of `c >= begin AND c < end`, whole ones."""
        if len(bounds) == 1 and isinstance(bounds[0], exp.Boolean) and not bounds[0].this:
            return range(0)
        ends = [self._end(one, column, exp.LT) for one in bounds if isinstance(one, exp.LT)]
        begins = [self._end(one, column, exp.GTE) for one in bounds if isinstance(one, exp.GTE)]
        if len(ends) != 1 or len(begins) != 1 or len(bounds) != 2:
            raise _form("ends of periods")
        return range(begins[0], ends[0])

    def _leaf(self, node: exp.Expression, number: int, column: tuple[str, str, str]) -> exp.Expression:
        """What a tree of comparisons gives a row of a period."""
        node = _bare(node)
        if isinstance(node, exp.Literal | exp.Cast):
            return node
        if (
            not isinstance(node, exp.Case)
            or node.args.get("this")
            or len(node.args["ifs"]) != 1
            or not node.args.get("default")
        ):
            raise _form("a number of the period")
        [branch] = node.args["ifs"]
        is_before = number < self._end(branch.this, column, exp.LT)
        return self._leaf(branch.args["true"] if is_before else node.args["default"], number, column)

    def _end(self, term: exp.Expression, column: tuple[str, str, str], kind: type[exp.Expression]) -> int:
        """The number of the period that begins at the literal with which the raw column is compared."""
        alias, name, type_ = column
        left, right = term.this, term.args.get("expression")
        is_bare = isinstance(left, exp.Column) and (left.table, left.name) == (alias, name)
        if type(term) is not kind or not is_bare or not isinstance(right, exp.Cast):
            raise _form("the raw column beside a literal")
        literal, to = right.this, right.to.this.name
        known = re.sub(r"\([0-9]+\)", "", type_.lower())
        if not isinstance(literal, exp.Literal) or to not in _TYPES.get(known, ()):
            raise _form("a literal of the column's type")
        return self._begins(literal.this, to)

    def _begins(self, text: str, kind: str) -> int:
        assert self.calendar is not None
        calendar = self.calendar
        if kind == "DATE":
            day = date.fromisoformat(text)
            number = number_of(calendar.period, day)
            if day != first_day(calendar.period, number) or text != day.isoformat():
                raise _form("the beginning of a period")
            return number
        is_zoned = kind == "TIMESTAMPTZ"
        if is_zoned != text.endswith("+00"):
            raise _form("an instant")
        moment = datetime.strptime(text.removesuffix("+00"), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        number = number_of(calendar.period, moment.astimezone(ZoneInfo(calendar.zone)).date())
        if moment != self._instant(number):
            raise _form("the beginning of a period")
        return number

    def _instant(self, number: int) -> datetime:
        """When a period begins in its zone."""
        assert self.calendar is not None
        day = first_day(self.calendar.period, number)
        return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(self.calendar.zone)).astimezone(UTC)

    def _has_moments(self, number: int, column: tuple[str, str, str]) -> bool:
        """Whether a row can be of a period: of a day that a zone has left out, as it crossed the date line, there is no
        moment, though there is a date."""
        return column[2].lower() == "date" or self._instant(number) < self._instant(number + 1)

    # --- undated rows ---

    def _undated(self, tree: exp.Expression, has_scans: bool) -> bool:
        """Whether people's undated rows are read; where these are not charged, all that is counted of a person has to
        go with the person's timed rows, and with the undated ones."""
        assert self.reach is not None
        found = [one for one in tree.find_all(exp.Table) if self._is_undated(one)]
        if not found or self.reach.by == "person" or (self.reach.by == "one" and not has_scans):
            return bool(found)
        if self.reach.by == "pair" and not all(map(self._is_own, found)):
            raise _join()
        if not all(self._goes(tree, kind) for kind in (self._is_scan, self._is_undated)):
            raise _join()
        return True

    def _is_scan(self, table: exp.Table) -> bool:
        return id(table) in self._scans

    def _is_undated(self, table: exp.Table) -> bool:
        known = self.given.tables.get(self._name(table))
        return (
            known is not None and known.unit is not None and known.time is None and not self._is_scan(table)
        )

    def _is_own(self, table: exp.Table) -> bool:
        """Whether each row that an undated table stands in has a timed one of the same person."""
        select, own = table.parent_select, self.given.tables[self._name(table)].unit
        sources = [one for one in _inner(select) if isinstance(one, exp.Table)]
        where = None if select is None else select.args.get("where")
        if own is None or own.table is not None or where is None or not any(one is table for one in sources):
            return False
        pairs = _equal(where.this)
        return any(self._is_same(table, own, one, pairs) for one in sources if self._is_scan(one))

    def _goes(self, query: exp.Expression, kind: _Kind) -> bool:
        """Whether no row of a person is left in a query once all of the person's rows in tables of a kind are gone.

        One of the sources that INNER joins make a row of has to be such a table, or such a query; of a UNION each part.
        Whatever else reads tables of the kind, then, is read beside a row that goes. A name is of all queries that have
        it. At the top a group is of all people, and what goes of it is what the person had in it; below, rows of all
        people together are nobody's, which another rule refuses (V2).
        """
        if isinstance(query, exp.Union):
            return all(self._goes(one, kind) for one in (query.this, query.expression))
        if isinstance(query, exp.Subquery):
            return self._goes(query.this, kind)
        if isinstance(query, exp.Table):
            if kind(query):
                return True
            names = (
                []
                if query.db
                else [one.this for one in query.root().find_all(exp.CTE) if one.alias == query.name]
            )
            return bool(names) and all(self._goes(one, kind) for one in names)
        return any(self._goes(one, kind) for one in _inner(query))

    def _is_same(
        self, table: exp.Table, own: Unit, timed: exp.Table, pairs: list[frozenset[tuple[str, str]]]
    ) -> bool:
        """Whether a timed source's person is an undated one's, by printed equalities."""
        unit = self.given.tables[self._scans[id(timed)][1]].unit
        if unit is None or unit.table is not None or len(unit.columns) != len(own.columns):
            return False
        return all(
            frozenset({(table.alias, one), (timed.alias, two)}) in pairs
            for one, two in zip(own.columns, unit.columns, strict=True)
        )


def _by(name: str, column: str) -> str:
    """What a table is called where rows have the first day of their period in a column: as no table is."""
    return f"{name}.by {column}"


def _is_first_days(term: exp.Expression) -> bool:
    """Whether a term says what a column of the scan's table is."""
    return isinstance(term, exp.EQ) and isinstance(term.this, exp.Column) and term.this.table == "s"


def _form(what: str) -> Refused:
    return Refused("periods: a scan has its form", what)


def _join() -> Refused:
    return Refused("periods: undated rows are joined to timed ones")


def _inner(select: object) -> list[exp.Expression]:
    """The sources that each row of a SELECT has a row of."""
    if not isinstance(select, exp.Select) or "from_" not in select.args:
        return []
    found = [select.args["from_"].this]
    for join in select.args.get("joins") or ():
        if join.side not in ("", "LEFT") or join.kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"):
            return []
        if not join.side and join.kind in ("", "INNER", "CROSS"):
            found.append(join.this)
    return found


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    node = _bare(node)
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node


def _alternatives(node: exp.Expression) -> Iterator[exp.Expression]:
    node = _bare(node)
    if isinstance(node, exp.Or):
        yield from _alternatives(node.this)
        yield from _alternatives(node.expression)
    else:
        yield node


def _is_equal(term: exp.Expression, left: tuple[str, str], right: tuple[str, str]) -> bool:
    return frozenset({left, right}) in _equal(term) and len(list(_conjuncts(term))) == 1


def _equal(node: exp.Expression) -> list[frozenset[tuple[str, str]]]:
    """The pairs of bare columns that AND terms make equal."""
    found = []
    for term in _conjuncts(node):
        sides = (_bare(term.this), _bare(term.expression)) if isinstance(term, exp.EQ) else ()
        columns = [(one.table, one.name) for one in sides if isinstance(one, exp.Column)]
        if len(columns) == 2:
            found.append(frozenset(columns))
    return found
