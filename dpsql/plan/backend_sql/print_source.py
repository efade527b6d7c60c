"""FROM and WHERE of a block, and its subqueries, printed for an engine.

    >>> from_("person p LEFT JOIN card c ON c.person_id = p.id AND c.kind = 'gold'")
    "main"."person" AS t0 LEFT JOIN "main"."card" AS t1
    ON (t1."person_id" = t0."id") AND (CAST(t1."kind" AS VARCHAR) = 'gold')
    >>> from_("(SELECT MAX(days) AS d FROM visit GROUP BY person_id) t WHERE d > 3")
    (SELECT "person_id" AS u, "person_id" AS c0, MAX("days") AS c1
     FROM "main"."visit" WHERE ("person_id" IS NOT NULL) GROUP BY "person_id") AS t0
    WHERE (t0.c1 > 3)

House rules:

1. Every equality that ownership rests on is printed as it was analyzed, and so is the owner's own
   IS NOT NULL; a subquery groups, and partitions its windows, by the owner besides what was written.
2. Only the columns that are used are computed; a subquery's columns are c0, c1, … and its owner u, or u0, u1, …
   where that is several columns: these are compared and grouped one by one, never joined to one text. Columns that
   link rows of one owner stay whole, all other texts are cut (soundness.md 1.17).
3. An aggregate per owner is order-free: integers are summed, and what is claimed of the result
   (`Column.facts`) is clamped right there (soundness.md 1.13).
4. Windows order ties by everything else that the row shows, as it is shown, so that rows which tie are alike; by a
   key's columns whole.
5. A cut keeps an owner's first rows in an order of all columns that are read of them (`growth`); the hash
   before them chooses alike on all engines, and not by a column's size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from fractions import Fraction

from ...errors import Refusal
from ...records import dataclass
from ...relation.aggregates import check_printers
from ...relation.catalog import PERIOD, Column, Table
from ...relation.expressions import Call, Expr, Field, Literal, fields_of
from ...relation.facts import check_joined, read_length, row_bytes
from ...relation.intervals import Environment, Lattice, facts_of
from ...relation.relations import AggregateCall, WindowCall
from ...relation.types import BOOLEAN, NUMERIC, TEXT, Kind, SqlType
from ..dialects.dialect import Dialect, ListColumn, Number
from ..measures.measurements import Numbered
from ..privacy.derived import ignores_ties, within_unit_lattice
from ..privacy.growth import joined_rows, unlike
from ..privacy.keys import environment_of
from ..privacy.ownership import links_of
from ..privacy.programs import Frame, frame_of, most_in
from ..privacy.public_inputs import KeyList
from ..privacy.rows import (
    Fan,
    IntermediateColumn,
    Item,
    OwnedRows,
    Select,
    Source,
    columns_of,
    fields_in,
    read_by,
)
from .print_private import PrivatePrinter, has_several_spellings, print_value


@dataclass
class SourcePrinter:
    """Prints the blocks of one query: one numbering of aliases and of parameters for all of them.

    `row_bytes`: the most bytes of a row of the subqueries that were printed.
    """

    dialect: Dialect
    first_parameter: int
    parameters: list[object] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    row_bytes: int = 0
    _printers: dict[tuple[int, tuple[str, ...]], PrivatePrinter] = field(default_factory=dict)

    def block(
        self,
        items: tuple[Item, ...],
        predicate: tuple[Expr, ...],
        used: frozenset[int],
        *,
        beside: bool = False,
        by_number: tuple[Numbered, int] | None = None,
    ) -> tuple[PrivatePrinter, str, list[str]]:
        """Return what prints a block's expressions, its FROM clause, and the terms of its WHERE clause.

        `used`: the columns that are read besides those of the predicate and of the joins. `beside`: something else
        will stand in FROM too, so that a table's columns are told from its. `by_number`: of whose rows those with a
        number up to the most are taken.
        """
        used = used | fields_of(*predicate)
        for item, start in fields_in(items):
            width = len(item.source.columns)
            on = fields_of(*item.on)
            used |= {index for index in on if index < start or item.kind != "mark"}
            assert item.kind == "mark" or all(index < start + width for index in on)
        columns = columns_of(items)
        table = items[0].source.table if len(items) == 1 else None
        alone = table is not None and table.spans is None and not beside
        row: list[str] = []
        text, taken = "", list[str]()
        for place, (item, start) in enumerate(fields_in(items)):
            source, width = item.source, len(item.source.columns)
            name = "" if alone else f"t{next(self.numbers)}"
            read = used if item.kind != "mark" else fields_of(*item.on)
            needed = [index for index in range(width) if start + index in read]
            number = by_number[0] if by_number is not None and by_number[0].place == place else None
            shown = self._source(source, needed, name, number)
            own = self._names(source, name)
            if item.kind == "mark":
                row.append(self._mark(columns[:start], item, [*row, *own], shown))
                continue
            row += own
            if by_number is not None and number is not None:
                column = self.dialect.identifier(number.column)
                taken = [f"({f'{name}.' if name else ''}{column} BETWEEN 1 AND {by_number[1]})"]
            if item.kind == "inner":
                text += f" CROSS JOIN {shown}" if text else shown
            else:
                text += f" {item.kind.upper()} JOIN {shown} ON {self._on(columns[:start], item, row)}"
        printer = self._printer(environment_of(columns, predicate), row)
        return printer, text, [*taken, *(printer.boolean(term) for term in predicate)]

    def _printer(self, env: Environment, row: Sequence[str]) -> PrivatePrinter:
        """Return what prints over a row: the same for rows that are named alike, which prints each expression once."""
        own = (id(env), tuple(row))
        if own not in self._printers:
            self._printers[own] = PrivatePrinter(
                env, own[1], self.dialect, self.parameters, self.first_parameter
            )
        return self._printers[own]

    def path(self, rows: OwnedRows, items: tuple[Item, ...]) -> tuple[str, list[str], list[str]]:
        """Return FROM, the terms of WHERE, and the owner, for rows that are a step r of some `items` and their path.

        Column j of r is the block's, as `path_begins` lists them; the tables of the path are h0, h1, …
        """
        row = [f"r.j{index}" for index in range(len(columns_of(items)))]
        text = "r"
        for number, item in enumerate(rows.items[len(items) :]):
            row += self._names(item.source, f"h{number}")
            text += f" CROSS JOIN {self._source(item.source, [], f'h{number}')}"
        printer = self._printer(Environment(rows.columns), row)
        links = [printer.boolean(term) for term in links_of(rows, items)]
        return text, links, [printer.owner(part) for part in rows.owner]

    def _on(self, before: Sequence[Column], item: Item, row: Sequence[str]) -> str:
        """Return the condition under which a source's rows match, over the columns before it and its own."""
        printer = self._printer(Environment((*before, *item.source.columns)), row)
        return " AND ".join(printer.boolean(term) for term in item.on) or "TRUE"

    def _mark(self, before: Sequence[Column], item: Item, row: Sequence[str], shown: str) -> str:
        """Return whether a source has a row that matches.

        Is any value x unlike the left row's? Is the least or the greatest of them: each engine finds those two once
        for all rows that are equal in the other columns, and looks at no pairs (soundness.md 1.17).
        """
        start = len(before)
        found = unlike(item, start)
        if found is None:
            return f"EXISTS (SELECT 1 FROM {shown}{self._where(before, item, row)})"
        term, mine, other = found
        links = tuple(one for one in item.on if one != term and min(fields_of(one), default=start) < start)
        inside = tuple(one for one in item.on if one != term and one not in links)
        left, column = row[other.index], row[mine.index]
        ends = f"MIN({column}) AS lo, MAX({column}) AS hi"
        if self.dialect.correlates_once:
            where = self._where(before, replace(item, on=(*links, *inside)), row)
            both = (
                f"SELECT CASE WHEN COUNT({column}) > 0 THEN {{'lo': MIN({column}), 'hi': MAX({column})}} END"
            )
            return f"((({both} FROM {shown}{where}) <> {{'lo': {left}, 'hi': {left}}} AND {left} IS NOT NULL) IS TRUE)"
        by = sorted(index for index in fields_of(*links) if index >= start)
        listed = "".join(f"{row[index]} AS c{index - start}, " for index in by)
        group = f" GROUP BY {', '.join(row[index] for index in by)}" if by else ""
        where = self._where(before, replace(item, on=inside), row)
        grouped = [*row[:start], *(f"g.c{index}" for index in range(len(row) - start))]
        terms = [self._on(before, replace(item, on=links), grouped)] if links else []
        terms.append(f"(g.lo <> {left} OR g.hi <> {left})")
        least = f"SELECT {listed}{ends} FROM {shown}{where}{group}"
        return f"EXISTS (SELECT 1 FROM ({least}) AS g WHERE {' AND '.join(terms)})"

    def _where(self, before: Sequence[Column], item: Item, row: Sequence[str]) -> str:
        return f" WHERE {self._on(before, item, row)}" if item.on else ""

    def _source(self, source: Source, needed: list[int], name: str, number: Numbered | None = None) -> str:
        if source.table is not None:
            shown = self._scan(source, source.table, number)
        elif source.most is not None:
            shown = f"({self._cut(source, source.most, needed)})"
        elif source.intermediate is not None:
            shown = f"({self._released(source, source.intermediate, needed)})"
        else:
            shown = f"({' UNION ALL '.join(self._select(part, source, needed) for part in source.parts)})"
        return f"{shown} AS {name}" if name else shown

    def _scan(self, source: Source, table: Table, by: Numbered | None) -> str:
        """Return a table, of which the rows of some whole periods alone, where it has a time (soundness.md 1.40).

        The bound is on the raw column, in literals: no clamp, and no engine's zone, is between the two. `by`: of those
        rows alone whose column of first days has that of their own period.
        """
        spans, quoted = table.spans, self.dialect.identifier
        if spans is None:
            return self.dialect.table(table)
        text, terms, at = f"{self.dialect.table(table)} AS s", list[str](), "s"
        for number, (columns, parent, key) in enumerate(spans.way):
            text += f" CROSS JOIN {self.dialect.table(parent)} AS w{number}"
            pairs = zip(columns, key, strict=True)
            terms += [f"({at}.{quoted(mine)} = w{number}.{quoted(other)})" for mine, other in pairs]
            at = f"w{number}"
        column = f"{at}.{quoted(spans.time.column)}"
        word = {Kind.DATE: "DATE"}.get(
            spans.time.type.kind, "TIMESTAMPTZ" if spans.time.is_zoned else "TIMESTAMP"
        )
        runs = [f"{column} >= {word} '{low}' AND {column} < {word} '{high}'" for low, high in spans.between]
        terms.append(" OR ".join(f"({run})" for run in runs) if runs else "FALSE")
        names = [*source.shown, *([] if by is None else [by.column])]
        shown = [f"s.{quoted(name)}" for name in dict.fromkeys(names) if name != PERIOD]
        if PERIOD in source.shown:
            numbers = [(end, str(one)) for end, one in spans.numbered]
            shown.append(f"{_numbered(column, word, numbers)} AS {quoted(PERIOD)}")
        if by is not None:
            assert by.by_period is not None, "its rows have a time"
            days = [(end, f"DATE '{day}'") for end, day in spans.first_days]
            terms.append(f"s.{quoted(by.by_period[0])} = {_numbered(column, word, days)}")
        where = " AND ".join(f"({term})" if " OR " in term or "AND" in term else term for term in terms)
        return f"(SELECT {', '.join(shown) or '1 AS one'} FROM {text} WHERE {where})"

    def _names(self, source: Source, name: str) -> list[str]:
        """Return the columns of a source as they are printed where it is called `name`; "": where it stands alone."""
        prefix = f"{name}." if name else ""
        if source.table is not None:
            return [
                self.dialect.stored(f"{prefix}{self.dialect.identifier(shown)}", column.type)
                for shown, column in zip(source.shown, source.columns, strict=True)
            ]
        names = [*(f"c{index}" for index in range(source.owner.start)), *numbered("u", len(source.owner))]
        return [f"{prefix}{one}" for one in names]

    def _released(self, source: Source, number_of_it: int, needed: list[int]) -> str:
        """Return an earlier intermediate result's rows: one list parameter a column, of the same length all."""
        columns = []
        for index in needed or [0]:
            parameter = IntermediateColumn(number_of_it, index)
            if parameter not in self.parameters:
                self.parameters.append(parameter)
            number = self.first_parameter + self.parameters.index(parameter)
            columns.append(carried_as(f"c{index}", number, source.columns[index].type))
        return self.dialect.listed(columns)

    # --- what joins multiply ---------------------------------------------------------------------------

    def _cut(self, cut: Source, most: int, needed: list[int]) -> str:
        """Return a source of which each owner has at most `most` rows: by their numbers, or who has more is ranked."""
        (block,) = cut.parts
        key = min((sorted(key) for key in cut.keys), default=[])
        read = [*key, *(index for index in needed if index not in key)]
        used = frozenset(read) | fields_of(*block.owner)
        if cut.number is not None:
            taken = Numbered(0, cut.number), most
            printer, from_, where = self.block(block.items, block.predicate, used, by_number=taken)
            listed = [f"{printer.row[index]} AS c{index}" for index in needed]
            where += [f"({sql} IS NOT NULL)" for sql in self._owner(printer, block)]
            return f"SELECT {', '.join(listed) or '1 AS one'} FROM {from_} WHERE {' AND '.join(where)}"
        printer, from_, where = self.block(block.items, block.predicate, used)
        owner, unit = self._owner(printer, block), numbered("u", len(block.owner))
        listed = [f"{sql} AS {name}" for sql, name in zip(owner, unit, strict=True)]
        columns = ", ".join([*listed, *(f"{printer.row[index]} AS c{index}" for index in sorted(read))])
        clause = " AND ".join([*where, *(f"({sql} IS NOT NULL)" for sql in owner)])
        names = [f"s.c{index}" for index in range(len(cut.columns))]
        if cut.by is None:
            order = _cut_order(self._printer(Environment(cut.uncut.columns), names), cut, read, len(key))
        else:
            columns += f", {self.dialect.scattered_apart(printer.row[cut.by], cut.columns[cut.by].type)} AS o"
            order = "s.o"
        kept = [f"c{index}" for index in needed]
        first = self.first_rows(unit, kept, order, most, is_number=cut.by is not None)
        heavy = (
            f"heavy AS (SELECT {', '.join(unit)} FROM s GROUP BY {', '.join(unit)} HAVING COUNT(*) > {most})"
        )
        return f"WITH s AS (SELECT {columns} FROM {from_} WHERE {clause}), {heavy} {first}"

    def first_rows(
        self, unit: Sequence[str], shown: Sequence[str], order: str, most: int, *, is_number: bool
    ) -> str:
        """Return the first `most` rows of each unit by an order of a step s; a step heavy lists whose are more.

        Who is not listed keeps all. Of the others, where the order is one number that no two rows share, an engine may
        find the last that is kept without a sort.
        """
        same = " AND ".join(f"heavy.{one} = s.{one}" for one in unit)
        listed = ", ".join(shown) or "1 AS one"
        few = f"SELECT {listed} FROM s WHERE NOT EXISTS (SELECT 1 FROM heavy WHERE {same})"
        by = ", ".join(f"s.{one}" for one in unit)
        last = self.dialect.last(order, most) if is_number else None
        if last is not None:
            ends = f"SELECT {by}, {last} AS last FROM s CROSS JOIN heavy WHERE {same} GROUP BY {by}"
            kept = " AND ".join([*(f"e.{one} = s.{one}" for one in unit), f"{order} <= e.last"])
            told = ", ".join(f"s.{one}" for one in shown) or "1 AS one"
            return f"{few} UNION ALL SELECT {told} FROM s CROSS JOIN ({ends}) AS e WHERE {kept}"
        over = f"PARTITION BY {by}{f' ORDER BY {order}' if order else ''}"
        ranked = f"SELECT s.*, ROW_NUMBER() OVER ({over}) AS rn FROM s WHERE EXISTS (SELECT 1 FROM heavy WHERE {same})"
        return f"{few} UNION ALL SELECT {listed} FROM ({ranked}) AS ranked WHERE rn <= {most}"

    def fan(self, fan: Fan) -> str:
        """Return the query that counts a fan: one number."""
        columns = columns_of(fan.items)
        by = [
            Field(columns[index].type, index)
            for index in fan.by
            if not columns[index].type.is_float and not has_several_spellings(columns[index].type)
        ]
        printer, from_, where = self.block(fan.items, fan.predicate, fields_of(*by))
        keys = [_order_key(printer, expr) for expr in by]
        where += [f"({key} IS NOT NULL)" for key in keys]
        clause = f" WHERE {' AND '.join(where)}" if where else ""
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        counts = f"SELECT COUNT(*) AS n FROM {from_}{clause}{group}"
        return f"SELECT COALESCE(MAX(n), 0) AS n FROM ({counts}) AS g"

    def keys(self, listed: KeyList, most: int) -> str:
        """Return the query of a list of keys, each tuple once and in the order of the keys; at most so many."""
        printer, from_, where = self.block(
            listed.items, listed.predicate, fields_of(*listed.keys), beside=True
        )
        if listed.may_miss:  # beside all its rows one of NULLs
            from_ = f"(VALUES (TRUE), (FALSE)) AS e(b) LEFT JOIN {from_} ON e.b"
        names = [f"k{number}" for number in range(len(listed.keys))]
        keys = [f"{printer.key(key)} AS {name}" for key, name in zip(listed.keys, names, strict=True)]
        clause = f" WHERE {' AND '.join(where)}" if where else ""
        shown = shown_keys(listed.keys, names, self.dialect)
        order = ", ".join(f"l.{name} NULLS LAST" for name in names)
        distinct = f"SELECT DISTINCT {', '.join(keys)} FROM {from_}{clause}"
        return f"SELECT {', '.join(shown)} FROM ({distinct}) AS l ORDER BY {order} LIMIT {most}"

    # --- subqueries ----------------------------------------------------------------------------------

    def _select(self, block: Select, source: Source, needed: list[int]) -> str:
        """Return one SELECT of a subquery, with the columns that are needed of it."""
        needed = [*needed, *(index for index in source.owner if index not in needed)]
        width = len(block.outputs)
        links = source.linking
        ties: list[Expr] = []
        calls, grouped = block.calls, block.aggregates is not None
        exprs = [expr for i, expr in enumerate(block.outputs) if grouped or i in needed]
        for index, call in enumerate(calls, width):
            if index in needed:
                exprs += read_by(call)
        exprs += block.owner
        if block.windows and any(index >= width for index in needed):
            ties = _tie_breakers(block, needed)
            exprs += ties
        printer, from_, where = self.block(block.items, block.predicate, fields_of(*exprs))
        by = self._owner(printer, block)
        shown = [f"{unit} AS {name}" for unit, name in zip(by, numbered("u", len(by)), strict=True)]
        where += [f"({unit} IS NOT NULL)" for unit in by]
        for index, expr in enumerate(block.outputs):
            if index in needed or grouped:
                is_whole = index in links
                if grouped:
                    sql = printer.key(expr, is_whole=is_whole)
                else:
                    sql = printer.whole(expr) if is_whole else _output(printer, expr, source.columns[index])
                # a bare number there would be a position
                by += [sql] if fields_of(expr) and expr.type.kind is not Kind.NULL else []
                if index in needed:
                    shown.append(f"{sql} AS c{index}")
        for index, call in enumerate(calls, width):
            if index in needed:
                if isinstance(call, WindowCall):
                    sql = _window(printer, block, call, ties)
                else:
                    sql = _aggregate(printer, call, block.most)
                shown.append(f"{sql} AS c{index}")
        self._weigh(
            block,
            source,
            [i for i in range(len(source.columns)) if i in needed or (grouped and i < width)],
            calls,
        )
        clause = f" WHERE {' AND '.join(where)}" if where else ""
        group = f" GROUP BY {', '.join(dict.fromkeys(by))}" if grouped else ""
        return f"SELECT {', '.join(shown) or '1 AS one'} FROM {from_}{clause}{group}"

    def _weigh(
        self, block: Select, source: Source, shown: list[int], calls: tuple[AggregateCall | WindowCall, ...]
    ) -> None:
        """Hold a block's row to its limit: its columns, and texts that are computed to sort or to group by (law L10).

        Where public rows that are not counted yet copy a person's, all of these are held to theirs when they are.
        Raises Refusal (54001).
        """
        env = environment_of(columns_of(block.items), block.predicate)
        places = [*(expr.position for expr in block.outputs), *(call.position for call in calls)]
        width = len(block.outputs)
        read = [expr for i, call in enumerate(calls, width) if i in shown for expr in read_by(call)]
        texts = dict.fromkeys(expr for expr in read if expr.args and expr.type.kind is Kind.TEXT)
        columns = [(source.columns[i], places[i] if i < len(places) else None) for i in shown]
        size = row_bytes([
            *((column.type, read_length(column), place) for column, place in columns),
            *((expr.type, facts_of(expr, env).size, expr.position) for expr in texts),
        ])  # fmt: skip
        self.row_bytes = max(self.row_bytes, size)
        if not source.reach.fans:
            check_joined(size, joined_rows(source.reach), places[0] if places else None)

    def _owner(self, printer: PrivatePrinter, block: Select) -> list[str]:
        return [_owner_part(printer, part) for part in block.owner]


def _numbered(column: str, word: str, numbers: Sequence[tuple[str | None, str]]) -> str:
    """Return the number of a row's period, or its first day, found by halves: at a literal the next one begins."""
    if len(numbers) < 2:
        return numbers[0][1] if numbers else "NULL"
    half = len(numbers) // 2
    left, right = (_numbered(column, word, part) for part in (numbers[:half], numbers[half:]))
    return f"(CASE WHEN {column} < {word} '{numbers[half - 1][0]}' THEN {left} ELSE {right} END)"


def numbered(name: str, count: int) -> list[str]:
    """Return the names of so many columns: the name itself of one, and with numbers of several."""
    return [name] if count == 1 else [f"{name}{number}" for number in range(count)]


def shown_keys(keys: Sequence[Expr], names: Sequence[str], dialect: Dialect) -> list[str]:
    """Return keys as they leave the engine: dates and timestamps as text, which holds every value they have."""
    return [
        f"{dialect.text_of(name, key.type)} AS {name}" if key.type.is_temporal else name
        for key, name in zip(keys, names, strict=True)
    ]


def _owner_part(printer: PrivatePrinter, part: Expr) -> str:
    if part.column is not None:
        return printer.owner(part)
    return f"coalesce({', '.join(map(printer.owner, part.args))})"


_CARRIERS = {
    Kind.SMALLINT: ("BIGINT", ""), Kind.INTEGER: ("BIGINT", ""), Kind.BIGINT: ("BIGINT", ""),
    Kind.DOUBLE: ("DOUBLE", ""), Kind.BOOLEAN: ("BOOLEAN", ""), Kind.TEXT: ("VARCHAR", ""),
    Kind.DATE: ("VARCHAR", "DATE"), Kind.TIMESTAMP: ("VARCHAR", "TIMESTAMP"), Kind.NULL: ("VARCHAR", ""),
    Kind.NUMERIC: ("VARCHAR", ""), Kind.TIME: ("BIGINT", ""),
}  # fmt: skip
"""Kind -> the type that a column of released values travels as, and what it is read as then."""


def carried_as(name: str, number: int, type_: SqlType) -> ListColumn:
    """Return a column of released values, which is parameter `number`."""
    return ListColumn(name, number, *_CARRIERS[type_.kind])


def _tie_breakers(block: Select, needed: list[int]) -> list[Expr]:
    """Return what orders rows that a window's own ORDER BY leaves alike.

    A column that does not order its rows is left out when nothing reads it; when something does, which row
    came first would depend on other people's rows. Raises Refusal (PV202).
    """
    found = []
    calls = [call for index, call in enumerate(block.windows, len(block.outputs)) if index in needed]
    read = {arg for call in calls for arg in call.args}
    for expr in block.ties:
        if not has_several_spellings(expr.type):
            found.append(expr)
        elif expr in read or expr not in block.outputs or block.outputs.index(expr) in needed:
            name = f'column "{expr.name}"' if expr.name else "a column of this type"
            raise Refusal(
                f"{name} cannot be used beside a window over private rows", sqlstate="PV202",
                position=expr.position, hint="leave it out of the subquery with the window",
            )  # fmt: skip
    return found


def _cut_order(printer: PrivatePrinter, cut: Source, read: list[int], first: int) -> str:
    """Return what orders an owner's rows: a hash of what is spelled alike everywhere, then all columns that are read.

    The hash is of the `first` columns, an enforced key, where there is one: two copies of a table keep the same
    rows then, whatever is read of each. Raises Refusal: PV202 for a column without an order.
    """
    fields = [Field(cut.columns[index].type, index, cut.columns[index].name) for index in read]
    if any(has_several_spellings(expr.type) for expr in fields):
        name = next(expr.name for expr in fields if has_several_spellings(expr.type))
        said = f'column "{name}"' if name else "a column of this type"
        raise Refusal(
            f"{said} cannot be used where a join multiplies rows of one person", sqlstate="PV202",
            hint="leave it out, or aggregate per person first",
        )  # fmt: skip
    dialect = printer.dialect
    hashed = [
        (printer.whole(expr), expr.type)
        for expr in fields[: first or None]
        if expr.type.is_integer or expr.type.kind in _HASHED
    ]
    return ", ".join(
        [
            *spread(hashed, dialect),
            *(f"{_order_key(printer, expr, is_whole=True)} NULLS LAST" for expr in fields),
        ]
    )


def spread(values: Sequence[tuple[str, SqlType]], dialect: Dialect) -> list[str]:
    """Return a hash that rows are ordered by before the values themselves; none of no values.

    It spreads what is kept over all of an owner's rows, and hides nothing: who orders by it has a last word.
    """
    if len(values) == 1 and values[0][1].is_integer:
        return [dialect.scattered_whole(values[0][0])]
    texts = hash_texts(values, dialect)
    return [dialect.hashed(texts)] if texts else []


def hash_texts(values: Iterable[tuple[str, SqlType]], dialect: Dialect) -> list[str]:
    """Return what is hashed of values, none of it NULL."""
    return [f"COALESCE({dialect.hash_text(sql, type_)}, chr(30))" for sql, type_ in values]


_HASHED = (Kind.TEXT, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP)


def _output(printer: PrivatePrinter, expr: Expr, column: Column | None = None) -> str:
    """Return a subquery's column: a bare column as it stands, a number clamped to what is known of it.

    `column`: what a UNION makes of it. Exact numbers of several kinds are brought to one type that holds
    them all, since the engine would cast one kind to the other's.
    """
    merged = column is not None and column.facts is not None
    if expr.column is not None and not (merged and expr.type.is_number):
        return printer.column(expr)
    if not expr.type.is_number:
        return printer.value(expr)
    number = printer.number(expr)
    if merged and column is not None and number.grid is not None:
        grid = None if column.facts is None else column.facts.grid
        if column.type.is_float or grid is None:
            return printer.double(number)
        whole = printer.on_grid(number, grid, expr)
        return printer.decimal(
            replace(whole, sql=printer.dialect.cast(whole.sql, "HUGEINT"), reach=max(whole.reach, 2**62)),
            expr,
        )
    return _own_unit(printer, number, expr)


def _own_unit(printer: PrivatePrinter, number: Number, expr: Expr) -> str:
    """Return a number in its own unit: an integer, a decimal, or a DOUBLE where neither is known to hold it.

    By the facts, which the column has its type of: a whole number beside 'NaN' is no comparison of Postgres'.
    """
    is_known = facts_of(expr, printer.env).grid is not None
    is_exact = is_known and number.is_decimal and not expr.type.is_float
    return printer.decimal(number, expr) if is_exact else printer.double(number)


# --- calls ---------------------------------------------------------------------------------------------------


def _aggregate(printer: PrivatePrinter, call: AggregateCall, most: int | None, over: str = "") -> str:
    """Return an aggregate of one owner's rows, clamped to what `derived` says of it."""
    only = over or ("" if call.filter is None else f" FILTER (WHERE {printer.boolean(call.filter)})")
    return _PER_PERSON[call.function](printer, call, most, only)


def _count(printer: PrivatePrinter, call: AggregateCall, most: int | None, only: str) -> str:
    if call.distinct:
        count = f"COUNT(DISTINCT {printer.key(call.args[0])}){only}"
    elif call.args and call.args[0].column is not None and not call.args[0].type.is_float:
        count = f"COUNT({printer.as_number(call.args[0])}){only}"
    elif call.args:
        known = Call(BOOLEAN, "not", (Call(BOOLEAN, "is_null", (call.args[0],)),))
        count = f"COUNT(CASE WHEN {printer.boolean(known)} THEN 1 END){only}"
    else:
        count = f"COUNT(*){only}"
    return count if most is None else f"LEAST({count}, {most})"


def _truth(printer: PrivatePrinter, call: AggregateCall, most: int | None, only: str) -> str:
    return f"{call.function}({printer.boolean(call.args[0])}){only}"


def _extreme(printer: PrivatePrinter, call: AggregateCall, most: int | None, only: str) -> str:
    arg = call.args[0]
    if arg.type.kind is Kind.BOOLEAN:  # which Postgres has no min() and max() of
        return f"{'bool_or' if call.share else 'bool_and'}({printer.boolean(arg)}){only}"
    inner = printer.double(printer.number(arg)) if arg.type.is_float else _output(printer, arg)
    shown = printer.dialect.bytewise(inner) if arg.type.kind is Kind.TEXT else inner
    return f"{call.function.upper()}({shown}){only}"


def _summed(printer: PrivatePrinter, call: AggregateCall, only: str) -> tuple[Lattice, str, str]:
    """Return the lattice of what is summed, and the sum and the count of its rows as SQL."""
    lattice = within_unit_lattice(call, printer.env)
    value = print_value(printer, lambda sql, prefix: sql, call.args[0], lattice)
    rows = f"COUNT({value.z}){only}"
    return lattice, value.sum(only, rows), rows


def _avg(printer: PrivatePrinter, call: AggregateCall, most: int | None, only: str) -> str:
    lattice, total, rows = _summed(printer, call, only)
    dialect = printer.dialect
    step = dialect.double_literal(lattice.step)
    ratio = f"({dialect.as_double(total)} * {step} / NULLIF({rows}, 0))"
    ends = sorted((lattice.low * lattice.step, lattice.high * lattice.step))
    return printer.clamped_double(ratio, ends[0], ends[1])


def _sum(printer: PrivatePrinter, call: AggregateCall, most: int | None, only: str) -> str:
    lattice, total, rows = _summed(printer, call, only)
    dialect, reach = printer.dialect, lattice.reach * (2**40 if most is None else most)
    if reach >= 2**125:
        raise Refusal("this sum per person could overflow", sqlstate="PV201", position=call.position,
                      hint="narrow the declared bounds, or filter with BETWEEN")  # fmt: skip
    if most is not None:
        total = f"({dialect.clamp(total, str(min(0, lattice.low * most)), str(max(0, lattice.high * most)))})"
    whole = Number(dialect.cast(total, "HUGEINT"), lattice.step, max(reach, 2**62))
    if not lattice.exact or not whole.is_decimal:
        scaled = f"{dialect.as_double(total)} * {dialect.double_literal(lattice.step)}"
        return f"(CASE WHEN {rows} > 0 THEN {scaled} END)"
    return f"(CASE WHEN {rows} > 0 THEN {printer.decimal(whole, call.args[0])} END)"


_PER_PERSON: dict[str, Callable[[PrivatePrinter, AggregateCall, int | None, str], str]] = {
    "count": _count, "sum": _sum, "avg": _avg, "min": _extreme, "max": _extreme, "bool_and": _truth, "bool_or": _truth,
}  # fmt: skip
"""Aggregate -> its SQL of one owner's rows, of which so many count at most; its FILTER or OVER is the last."""

check_printers(_PER_PERSON, lambda row: row.per_person)


def _window(printer: PrivatePrinter, block: Select, call: WindowCall, ties: Sequence[Expr]) -> str:
    """Return a window call over its owner's rows."""
    parts = [
        *(_owner_part(printer, part) for part in block.owner),
        *(printer.key(part) for part in call.partition),
    ]
    over = f"PARTITION BY {', '.join(dict.fromkeys(parts))}"
    orders: dict[str, str] = {}  # what orders rows once leaves nothing to order for it again
    frame, said = frame_of(call), call.frame
    for order in call.orders:
        how = f"{'DESC' if order.descending else 'ASC'} NULLS {'FIRST' if order.nulls_first else 'LAST'}"
        if frame is not None and frame.is_by_value:
            sql, said = _measured(printer, call, frame, order.expr)
        else:
            sql = _order_key(printer, order.expr)
        orders.setdefault(sql, how)
    keys = _key_columns(block)
    for expr in () if ignores_ties(call) else ties:
        orders.setdefault(_order_key(printer, expr, is_whole=fields_of(expr) <= keys), "NULLS LAST")
    if orders:
        over += f" ORDER BY {', '.join(f'{sql} {how}' for sql, how in orders.items())}"
    over = f" OVER ({over}{f' {said}' if said else ''})"
    if call.row is not None and call.row.in_frames:
        return _aggregate(printer, call.as_aggregate, most_in(call, block.most), over)
    first = 1 if call.function == "ntile" else 0  # it counts, and has no value
    args = [
        _typed(printer, arg) if i != 1 else str(getattr(arg, "value", 1))
        for i, arg in enumerate(call.args, first)
    ]
    value = call.args[0].type if len(args) > 2 else TEXT
    column = printer.env.declared(call.args[0]) if value.is_number else None
    if column is not None and column.facts is None:
        # the default is cast to the value's own type, which may be narrower than ours
        kind = "BIGINT" if value.is_integer else "HUGEINT" if value.scale == 0 else ""
        args[0] = printer.dialect.cast(args[0], kind) if kind else args[0]
    return f"{call.function}({', '.join(args)}){over}"


def _measured(printer: PrivatePrinter, call: WindowCall, frame: Frame, expr: Expr) -> tuple[str, str]:
    """Return the order of a frame by value as a whole number, and the frame in units of that.

    Values are multiples of their unit, so that what is at most a distance away is at most the multiple below it, and
    what is at least as far is at least the one above. One longer than any two values are apart is one unit longer than
    that. Raises Refusal: PV101, PV202.
    """
    if not printer.dialect.has_linear_ranges:
        raise Refusal(
            f"a frame by distance is not taken of people's rows on {printer.dialect.name.title()}", sqlstate="PV202",
            position=call.position, hint="write ROWS",
        )  # fmt: skip
    moment, length = expr.type.is_temporal, Fraction(1)
    if moment:
        expr, length = Call(NUMERIC, "extract", (Literal(TEXT, "epoch"), expr)), Fraction(1, 10**6)
    number = printer.number(expr)
    if number.grid is None:
        raise Refusal(
            "a frame by RANGE goes over whole numbers, decimals and moments of people's rows", sqlstate="PV202",
            position=call.position, hint="round what it is ordered by: CAST(x AS integer)",
        )  # fmt: skip
    if number.reach >= 2**61:
        raise Refusal(
            "a frame by RANGE could overflow here", sqlstate="PV101", position=call.position,
            hint="declare bounds of what it is ordered by, or filter with BETWEEN",
        )  # fmt: skip
    ends = []
    for end, far, away in ((frame.start, "UNBOUNDED PRECEDING", 1), (frame.end, "UNBOUNDED FOLLOWING", -1)):
        exact = 0 if end is None else abs(end) * length / number.grid
        leaves_out = end is not None and end * away > 0  # the row itself, and what is nearer
        steps = min(math.ceil(exact) if leaves_out else math.floor(exact), 2 * number.reach + 1)
        side = "PRECEDING" if end is not None and end < 0 else "FOLLOWING"
        ends.append(far if end is None else f"{steps} {side}" if end else "CURRENT ROW")
    return printer.dialect.cast(number.sql, "BIGINT"), f"RANGE BETWEEN {ends[0]} AND {ends[1]}"


def _typed(printer: PrivatePrinter, expr: Expr) -> str:
    """Return an argument that has a type by itself: a function of any type takes it from there.

    A NUMERIC column that may hold NaN has none behind a window: what is computed there is taken for a number.
    """
    shown = _output(printer, expr)
    if expr.column is not None and expr.type.is_number and not (expr.type.is_integer or expr.type.is_float):
        return printer.dialect.number_key(shown, expr.type)
    return printer.dialect.as_text(shown) if expr.type.kind in (Kind.TEXT, Kind.NULL) else shown


def _key_columns(block: Select) -> frozenset[int]:
    """Return the columns of the keys of a block's sources: rows are told apart by whole values of these."""
    return frozenset(
        start + index
        for item, start in fields_in(block.items)
        if item.kind != "mark"
        for key in (*item.source.keys, *item.source.identities)
        for index in key
    )


def _order_key(printer: PrivatePrinter, expr: Expr, *, is_whole: bool = False) -> str:
    """Return what orders rows. `is_whole`: a text stands whole: rows that tie must be alike in all of it."""
    if expr.type.kind is Kind.OPAQUE and expr.type.engine is None:
        raise Refusal(
            f"values of the type {expr.type} have no order here", sqlstate="PV202", position=expr.position,
            hint="order by a column of another type",
        )  # fmt: skip
    is_bytes = expr.type.kind is Kind.OPAQUE  # which have no beginning
    is_column = expr.column is not None and (is_whole or is_bytes)
    shown = printer.whole(expr) if is_column else _output(printer, expr)
    return printer.dialect.bytewise(shown) if expr.type.kind is Kind.TEXT else shown
