"""Random statements over the world of `random_joins`: joins, subqueries, windows, unions, releases joined back.

They are spread over the grammar with right and wrong equalities; a refusal is a fine answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hypothesis import strategies as st

__all__ = ["TABLES", "Columns", "Writer", "growing_statements", "statements"]

Columns = dict[str, str]
"""Column name -> what it is: person, account, booking (keys), number, text, flag, time, name, kind."""

TABLES: dict[str, Columns] = {
    "person": {"id": "person", "age": "number", "team": "text", "home": "name", "height": "number"},
    "account": {"no": "account", "person_id": "person", "kind": "kind", "balance": "number", "opened": "time"},
    "booking": {"id": "booking", "account_no": "account", "n": "number", "amount": "number", "x": "number",
                "big": "number", "city": "name", "seen": "time", "flag": "flag"},
    "note": {"person_id": "person", "ref": "account", "n": "number", "x": "number", "fine": "number", "tag": "name",
             "city": "name", "day": "time", "flag": "flag"},
    "profile": {"person_id": "person", "city": "name", "level": "kind", "score": "number"},
    "region": {"name": "name", "weight": "number", "zone": "text"},
    "rate": {"region": "name", "kind": "kind", "value": "number"},
    "tag": {"tag": "name", "grp": "text", "n": "number"},
}  # fmt: skip
PRIVATE = ("person", "account", "booking", "booking", "note", "note", "profile")
PUBLIC = ("region", "rate", "tag")
_JOINS = (
    "JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ",", "CROSS JOIN", "USING",
)  # fmt: skip
_SUBQUERIES = (
    "filtered", "per person", "per person", "per account", "window", "distinct", "union", "release", "joined",
)  # fmt: skip
_NAMES = ("name", "text", "kind")
_SIGNS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass
class Item:
    """A FROM item: its SQL, its alias, its columns."""

    sql: str
    alias: str
    columns: Columns


class Writer:
    """Writes one statement; `pick` draws one of several texts. `tables`: their columns; `shown`: how one is named."""

    tables: ClassVar[dict[str, Columns]] = TABLES

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.count = 0

    def pick(self, options: tuple[str, ...] | list[str]) -> str:
        return self.draw(st.sampled_from(options))

    def column(self, items: list[Item], roles: tuple[str, ...], otherwise: str = "1") -> str:
        """Return a column of one of some meanings, or what stands for it where there is none."""
        return self.pick(self.columns_of(items, roles) or [otherwise])

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def alias(self) -> str:
        self.count += 1
        return f"t{self.count}"

    # --- FROM items ---------------------------------------------------------------------------------

    def item(self, depth: int, public: int = 25) -> Item:
        """Return a random FROM item."""
        alias = self.alias()
        if depth <= 0 or self.chance(50):
            table = self.pick(PUBLIC if self.chance(public) else PRIVATE)
            return Item(f"{table} AS {alias}", alias, dict(self.tables[table]))
        form = self.pick(_SUBQUERIES)
        sql, columns = getattr(self, f"_{form.replace(' ', '_')}")(depth - 1)
        return Item(f"({sql}) AS {alias}", alias, columns)

    def _filtered(self, depth: int) -> tuple[str, Columns]:
        table = self.pick(PRIVATE)
        item = Item(table, table, self.tables[table])
        return f"SELECT * FROM {table} WHERE {self.predicate([item], depth)}", dict(item.columns)

    def _joined(self, depth: int) -> tuple[str, Columns]:
        items, from_, where = self.from_clause(depth, most=2)
        keys = self.columns_of(items, ("person", "account", "booking"))
        chosen = [self.pick(keys)] if keys else []
        chosen += [self.column(items, ("number", "name", "text", "flag")) for _ in range(2)]
        return self._listed(items, chosen, from_, where)

    def _listed(self, items: list[Item], chosen: list[str], from_: str, where: str) -> tuple[str, Columns]:
        names = [f"c{i}" for i in range(len(chosen))]
        shown = ", ".join(f"{sql} AS {name}" for sql, name in zip(chosen, names, strict=True))
        return f"SELECT {shown} FROM {from_}{where}", {
            name: self.role(items, sql) for sql, name in zip(chosen, names, strict=True)
        }

    def _per_person(self, depth: int) -> tuple[str, Columns]:
        return self._grouped(depth, "person")

    def _per_account(self, depth: int) -> tuple[str, Columns]:
        return self._grouped(depth, "account")

    def _grouped(self, depth: int, role: str) -> tuple[str, Columns]:
        items, from_, where = self.from_clause(depth, most=2)
        keys = self.columns_of(items, (role,)) or self.columns_of(items, ("person", "account", "booking"))
        by = [self.pick(keys)] if keys else []
        if self.chance(35):
            by.append(self.column(items, (*_NAMES, "flag")))
        calls = [self.per_person_call(items) for _ in range(self.draw(st.integers(1, 2)))]
        columns = {f"k{i}": self.role(items, key) for i, key in enumerate(by)}
        columns |= {f"v{i}": "flag" if "bool_" in call else "number" for i, call in enumerate(calls)}
        shown = ", ".join(f"{sql} AS {name}" for sql, name in zip([*by, *calls], columns, strict=True))
        call, having = self.pick(calls), ""
        if self.chance(25) and "bool_" not in call:
            having = f" HAVING {call} {self.pick(_SIGNS)} {self.pick(('0', '1', '2.5'))}"
        return f"SELECT {shown} FROM {from_}{where} GROUP BY {', '.join(by) or '()'}{having}", columns

    def per_person_call(self, items: list[Item]) -> str:
        numbers = self.columns_of(items, ("number",))
        call = self.pick(("COUNT(*)", "COUNT(*)", "COUNT({})", "SUM({})", "SUM({})", "AVG({})", "MIN({})", "MAX({})",
                          "COUNT(DISTINCT {t})", "bool_and({b})", "bool_or({b})", "MIN({t})"))  # fmt: skip
        number = self.pick(numbers) if numbers else "1"
        text = self.column(items, (*_NAMES, "person", "account", "booking", "time"))
        filled = call.format(number, t=text, b=f"({number} > 0)")
        return f"{filled} FILTER (WHERE {number} IS NOT NULL)" if self.chance(10) else filled

    def _distinct(self, depth: int) -> tuple[str, Columns]:
        items, from_, where = self.from_clause(depth, most=2)
        keys = self.columns_of(items, ("person", "account"))
        chosen = [self.pick(keys)] if keys and self.chance(85) else []
        chosen.append(self.column(items, (*_NAMES, "flag", "person")))
        sql, columns = self._listed(items, list(dict.fromkeys(chosen)), from_, where)
        return sql.replace("SELECT", "SELECT DISTINCT", 1), columns

    def _window(self, depth: int) -> tuple[str, Columns]:
        item = self.item(depth, public=5)
        keys = self.columns_of([item], ("person", "account"))
        parts = [self.pick(keys)] if keys and self.chance(90) else []
        parts += [self.column([item], (*_NAMES, "flag", "person"))] if self.chance(20) else []
        orders = self.columns_of([item], ("number", "time", "name"))
        number = self.column([item], ("number",))
        call = self.pick(("ROW_NUMBER()", "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "LAG({})",
                          "LEAD({}, 1, 0)", "COUNT(*)",
                          "SUM({})", "AVG({})", "MIN({})", "MAX({})", "FIRST_VALUE({})", "LAST_VALUE({})"))  # fmt: skip
        order = (
            f" ORDER BY {self.pick(orders)}{self.pick(('', ' DESC'))}" if orders and self.chance(80) else ""
        )
        frame = (
            " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
            if order and call[:3] in ("SUM", "MAX") and self.chance(40)
            else ""
        )
        part = f"PARTITION BY {', '.join(parts)}" if parts else ""
        kept = [*keys[:2], number, *self.columns_of([item], _NAMES)[:1]]
        columns = {f"w{i}": self.role([item], sql) for i, sql in enumerate(kept)} | {"rn": "number"}
        shown = ", ".join(f"{sql} AS w{i}" for i, sql in enumerate(kept))
        return (
            f"SELECT {shown}, {call.format(number)} OVER ({part}{order}{frame}) AS rn FROM {item.sql}",
            columns,
        )

    def _union(self, depth: int) -> tuple[str, Columns]:
        word = self.pick(("UNION ALL", "UNION ALL", "UNION"))
        first = self.pick(PRIVATE)
        second = self.pick((first, *PRIVATE))
        sides = []
        for table in (first, second):
            item = Item(table, table, self.tables[table])
            number, name = (self.column([item], roles, "NULL") for roles in (("number",), ("name", "kind")))
            person = self.column(
                [item], ("person",) if "person" in self.tables[table].values() else ("account",)
            )
            where = f" WHERE {self.predicate([item], 0)}" if self.chance(30) else ""
            sides.append(f"SELECT {person} AS u, {number} AS v, {name} AS c FROM {table}{where}")
        return f" {word} ".join(sides), {"u": "person", "v": "number", "c": "name"}

    def _release(self, depth: int) -> tuple[str, Columns]:
        items, from_, where = self.from_clause(0, most=1)
        key = self.pick(self.columns_of(items, _NAMES) or ["1"])
        number = self.column(items, ("number",))
        call = self.pick(("COUNT(*)", "SUM({})", "AVG({})")).format(number)
        return f"SELECT {key} AS city, {call} AS s FROM {from_}{where} GROUP BY {key}", {
            "city": "name",
            "s": "number",
        }

    # --- joins -------------------------------------------------------------------------------------------

    def from_clause(self, depth: int, most: int) -> tuple[list[Item], str, str]:
        """Return items, the FROM clause, and the WHERE clause with its leading space or nothing."""
        items = [self.item(depth, public=8)]
        text = items[0].sql
        where: list[str] = []
        for _ in range(self.draw(st.integers(0, most - 1))):
            other = self.item(depth - 1, public=40)
            text += self._join(items, other, where)
            items.append(other)
        if self.chance(45):
            where.append(self.predicate(items, depth))
        return items, text, f" WHERE {' AND '.join(where)}" if where else ""

    def _join(self, items: list[Item], other: Item, where: list[str]) -> str:
        kind = self.pick(_JOINS)
        names = {name for item in items for name in item.columns}
        shared = [name for name in other.columns if name in names and other.columns[name] != "number"]
        if kind == "USING" and shared and len(items) == 1:
            word = self.pick(("JOIN", "LEFT JOIN", "FULL JOIN"))
            chosen = [shared[0], *([shared[-1]] if self.chance(20) else [])]
            for name in chosen:
                other.columns.pop(name, None)
            return f" {word} {other.sql} USING ({', '.join(dict.fromkeys(chosen))})"
        condition = self._equality(items, other)
        if self.chance(15):
            condition = (
                f"{condition} {self.pick(('AND', 'AND', 'AND', 'OR'))} {self.predicate([*items, other], 0)}"
            )
            condition = f"({condition})"
        if kind in (",", "CROSS JOIN"):
            if self.chance(85):
                where.append(condition)
            return (
                f", {other.sql}"
                if kind == "," and "JOIN" not in "".join(i.sql for i in items)
                else f" CROSS JOIN {other.sql}"
            )
        return f" {'JOIN' if kind == 'USING' else kind} {other.sql} ON {condition}"

    def _equality(self, items: list[Item], other: Item) -> str:
        """Return an equality of columns of one meaning where there is one; sometimes of any columns."""
        pairs = [
            f"{a.alias}.{self.shown(x, p)} = {other.alias}.{self.shown(y, q)}"
            for a in items for x, p in a.columns.items() for y, q in other.columns.items()
            if p == q and p in ("person", "account", "booking", "name", "kind")
        ]  # fmt: skip
        keys = [
            pair
            for pair in pairs
            if any(word in pair for word in ("id", ".no", "account_no", ".u", ".k0", ".w0", ".c0"))
        ]
        if keys and self.chance(85):
            return self.pick(keys)
        if pairs and self.chance(85):
            return self.pick(pairs)
        left, right = (self.pick(self.columns_of(side, ("number",)) or ["1"]) for side in (items, [other]))
        return f"{left} {self.pick(_SIGNS)} {right}"

    # --- expressions ---------------------------------------------------------------------------------------

    def columns_of(self, items: list[Item], roles: tuple[str, ...]) -> list[str]:
        """Return the qualified columns of some meanings."""
        return [
            f"{item.alias}.{self.shown(name, role)}"
            for item in items for name, role in item.columns.items() if role in roles
        ]  # fmt: skip

    def shown(self, name: str, role: str) -> str:
        """Return how a column of some meaning is named."""
        return name

    def role(self, items: list[Item], sql: str) -> str:
        alias, _, name = sql.partition(".")
        known = {
            self.shown(column, role): role
            for item in items
            if item.alias == alias
            for column, role in item.columns.items()
        }
        return known.get(name, "number")

    def predicate(self, items: list[Item], depth: int) -> str:
        """Return a predicate; at depth 1 and more, one with a subquery at times."""
        if depth > 0 and self.chance(45):
            return self._subquery(items, depth - 1)
        number = self.column(items, ("number",))
        name = self.pick(self.columns_of(items, _NAMES) or ["'a'"])
        forms = ["{n} > 1", "{n} <= 2", "{n} BETWEEN 0 AND 3", "{n} IS NULL", "{t} IN ('a', 'b', 't')", "{t} = 'a'",
                 "{t} IS NOT NULL", "{t} LIKE '%a%'", "{n} * 2 > 3", "({n} > 0 OR {t} = 'b')", "{n} IS NOT NULL",
                 "NOT ({n} > 1)"]  # fmt: skip
        forms += [f"{flag}" for flag in self.columns_of(items, ("flag",))]
        others = self.columns_of(items, ("number",))
        forms += [f"{number} {self.pick(_SIGNS)} {self.pick(others)}"] if others else []
        return self.pick(forms).format(n=number, t=name)

    def _subquery(self, items: list[Item], depth: int) -> str:
        inner = self.item(depth, public=25)
        kind = self.pick(
            ("EXISTS", "EXISTS", "NOT EXISTS", "IN", "IN", "NOT IN", "scalar", "scalar", "value")
        )
        number = self.column(items, ("number",))
        if kind == "value":
            values = self.columns_of([inner], ("number",)) or ["1"]
            call = f"{self.pick(('AVG', 'SUM', 'COUNT'))}({self.pick(values)})"
            return f"{number} {self.pick(_SIGNS)} (SELECT {call} FROM {inner.sql})"
        link = self._equality(items, inner)
        more = f" AND {self.predicate([inner], 0)}" if self.chance(40) else ""
        more += f" AND {self.predicate([*items, inner], 0)}" if self.chance(15) else ""
        if kind == "scalar":
            values = self.columns_of([inner], ("number",)) or ["1"]
            call = self.pick(("AVG({})", "SUM({})", "COUNT(*)", "MAX({})", "MIN({})")).format(
                self.pick(values)
            )
            return f"{number} {self.pick(_SIGNS)} (SELECT {call} FROM {inner.sql} WHERE {link}{more})"
        if kind.endswith("IN"):
            pairs = link.partition(" = ")
            if pairs[1]:
                correlated = f" WHERE {self._equality(items, inner)}{more}" if self.chance(40) else ""
                return f"{pairs[0]} {kind} (SELECT {pairs[2]} FROM {inner.sql}{correlated})"
            kind = "EXISTS"
        return f"{kind} (SELECT 1 FROM {inner.sql} WHERE {link}{more})"

    # --- the statement ------------------------------------------------------------------------------------

    def aggregate(self, items: list[Item]) -> str:
        number = self.column(items, ("number",))
        person = self.column(items, ("person", "account"))
        name = self.column(items, (*_NAMES, "booking"), "'a'")
        call = self.pick(("COUNT(*)", "COUNT(*)", "COUNT({n})", "SUM({n})", "SUM({n})", "AVG({n})", "VAR_POP({n})",
                          "COUNT(DISTINCT {p})", "COUNT(DISTINCT {t})", "SUM({n} * 2 + 1)"))  # fmt: skip
        filled = call.format(n=number, p=person, t=name)
        return f"{filled} FILTER (WHERE {self.predicate(items, 0)})" if self.chance(15) else filled

    def key(self, items: list[Item]) -> str:
        names = self.columns_of(items, (*_NAMES, "flag")) or ["1"]
        number = self.column(items, ("number",))
        return self.pick(
            (
                *names,
                *names,
                number,
                f"CASE WHEN {number} > 1 THEN 'hi' ELSE 'lo' END",
                f"coalesce({names[0]}, {names[0]})",
            )
        )

    def statement(self) -> str:
        depth = self.draw(st.integers(0, 3))
        items, from_, where = self.from_clause(depth, most=4 if depth < 2 else 2)
        keys = [self.key(items) for _ in range(self.draw(st.sampled_from((0, 0, 1, 1, 2))))]
        calls = [self.aggregate(items) for _ in range(self.draw(st.integers(1, 2)))]
        group = ""
        if keys:
            word = self.pick(("", "", "", "ROLLUP", "GROUPING SETS"))
            listed = ", ".join(keys) if word != "GROUPING SETS" else f"({keys[0]}), ()"
            group = f" GROUP BY {word} ({listed})" if word else f" GROUP BY {listed}"
            keys = keys[:1] if word == "GROUPING SETS" else keys
        if self.chance(10):
            shown = ", ".join(f"{sql} AS g{i}" for i, sql in enumerate([*keys, *calls]))
            return f"WITH q AS (SELECT {shown} FROM {from_}{where}{group}) SELECT * FROM q"
        return f"SELECT {', '.join([*keys, *calls])} FROM {from_}{where}{group}"


@st.composite
def statements(draw: st.DrawFn, writer: type[Writer] = Writer) -> str:
    """A statement over one to four of the tables, nested up to three deep; a good part of them is accepted."""
    return writer(draw).statement()


@st.composite
def growing_statements(draw: st.DrawFn, kind_of_writer: type[Writer] = Writer) -> str:
    """A statement that may multiply one person's rows: tables and subqueries linked by a person, or by other keys."""
    writer = kind_of_writer(draw)
    items = [writer.item(draw(st.integers(0, 2)), public=0)]
    text, where = items[0].sql, list[str]()
    for _ in range(draw(st.integers(1, 3))):
        other = writer.item(draw(st.integers(0, 1)), public=15)
        people = [writer.columns_of(side, ("person",)) for side in (items, [other])]
        if all(people) and writer.chance(70):
            kind = writer.pick(("JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"))
            more = f" AND {writer.predicate([*items, other], 0)}" if writer.chance(20) else ""
            text += f" {kind} {other.sql} ON {writer.pick(people[0])} = {writer.pick(people[1])}{more}"
        else:
            text += writer._join(items, other, where)
        items.append(other)
    if writer.chance(30):
        where.append(writer.predicate(items, 1))
    clause = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {writer.aggregate(items)} FROM {text}{clause}"
