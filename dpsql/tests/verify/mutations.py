"""Faults of printed SQL, as changes of one place of its tree: what a planner that is wrong somewhere could print.

They are no regular expressions, so each is a statement of the same dialect (which may not run). Most are faults; some
change nothing that an owner's part depends on, and are rightly verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import sqlglot
from sqlglot import exp

__all__ = ["KINDS", "mutants"]

Change = Callable[[exp.Expression], Iterator[exp.Expression | None]]
"""Of a node: what could stand in its place; None: it is taken out."""

KINDS: dict[str, tuple[tuple[type[exp.Expression], ...], Change]] = {}


def _kind(name: str, *nodes: type[exp.Expression]) -> Callable[[Change], Change]:
    def register(change: Change) -> Change:
        KINDS[name] = (nodes, change)
        return change

    return register


@_kind("an AND term is left out", exp.And)
def _and(node: exp.Expression) -> Iterator[exp.Expression]:
    yield node.this
    yield node.expression


@_kind("OR for AND", exp.And)
def _or(node: exp.Expression) -> Iterator[exp.Expression]:
    yield exp.Or(this=node.this.copy(), expression=node.expression.copy())


@_kind("a clause is left out", exp.Where, exp.Having)
def _clause(node: exp.Expression) -> Iterator[None]:
    yield None


@_kind("a filter is left out", exp.Filter)
def _filter(node: exp.Expression) -> Iterator[exp.Expression]:
    yield node.this


@_kind("a number is another", exp.Literal)
def _number(node: exp.Expression) -> Iterator[exp.Expression]:
    if not node.is_string and node.name.isdigit():
        for value in (int(node.name) + 1, int(node.name) * 2, 0, max(0, int(node.name) - 1)):
            if str(value) != node.name:
                yield exp.Literal.number(value)


@_kind("a comparison is another", exp.GT, exp.LT, exp.LTE, exp.GTE, exp.EQ)
def _comparison(node: exp.Expression) -> Iterator[exp.Expression]:
    for kind in (exp.GT, exp.LTE, exp.EQ, exp.NEQ):
        if not isinstance(node, kind):
            yield kind(this=node.this.copy(), expression=node.expression.copy())


@_kind("a condition is turned round", exp.Not, exp.Exists, exp.Is)
def _not(node: exp.Expression) -> Iterator[exp.Expression]:
    yield node.this if isinstance(node, exp.Not) else exp.Not(this=exp.Paren(this=node.copy()))


@_kind("IS TRUE is left out", exp.Is)
def _is(node: exp.Expression) -> Iterator[exp.Expression]:
    yield node.this


@_kind("a branch of CASE is left out", exp.Case)
def _branch(node: exp.Expression) -> Iterator[exp.Expression]:
    for number in range(len(node.args["ifs"])):
        changed = node.copy()
        changed.args["ifs"].pop(number)
        if changed.args["ifs"]:
            yield changed
        elif node.args.get("default"):
            yield node.args["default"].copy()


@_kind("a CASE is its first value", exp.Case)
def _case(node: exp.Expression) -> Iterator[exp.Expression]:
    yield node.args["ifs"][0].args["true"].copy()


@_kind("an aggregate is another", exp.Sum, exp.Count)
def _aggregate(node: exp.Expression) -> Iterator[exp.Expression]:
    if isinstance(node, exp.Sum):
        yield exp.Max(this=node.this.copy())
        yield exp.Count(this=node.this.copy())
        yield exp.Sum(
            this=exp.Mul(this=exp.Literal.number("1e0"), expression=exp.Paren(this=node.this.copy()))
        )
    else:
        yield exp.Literal.number(1)
        yield exp.Mul(this=exp.Literal.number(2), expression=node.copy())


@_kind("COUNT of rows for values, or of values for rows", exp.Count)
def _count(node: exp.Expression) -> Iterator[exp.Expression]:
    if not isinstance(node.this, exp.Star):
        yield exp.Count(this=exp.Star())


@_kind("a function is left out", exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif)
def _function(node: exp.Expression) -> Iterator[exp.Expression]:
    yield node.this.copy()


@_kind("LEAST for GREATEST, or the other way", exp.Greatest, exp.Least)
def _least(node: exp.Expression) -> Iterator[exp.Expression]:
    kind = exp.Least if isinstance(node, exp.Greatest) else exp.Greatest
    yield kind(this=node.this.copy(), expressions=[one.copy() for one in node.expressions])


@_kind("a group's key is left out", exp.Group)
def _group(node: exp.Expression) -> Iterator[exp.Expression | None]:
    for number in range(len(node.expressions)):
        changed = node.copy()
        changed.expressions.pop(number)
        yield changed if changed.expressions else None


@_kind("a window's clause is left out", exp.Window)
def _window(node: exp.Expression) -> Iterator[exp.Expression]:
    for name in ("partition_by", "order", "spec"):
        if node.args.get(name):
            changed = node.copy()
            changed.set(name, None)
            yield changed


@_kind("an order is cut short", exp.Order)
def _order(node: exp.Expression) -> Iterator[exp.Expression]:
    if len(node.expressions) > 1:
        changed = node.copy()
        changed.expressions.pop()
        yield changed


@_kind("an operator is another", exp.Add, exp.Sub, exp.Mul, exp.IntDiv)
def _operator(node: exp.Expression) -> Iterator[exp.Expression]:
    for kind in (exp.Add, exp.Sub, exp.Mul):
        if not isinstance(node, kind):
            yield kind(this=node.this.copy(), expression=node.expression.copy())


@_kind(
    "one side of an operator",
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.IntDiv,
    exp.Mod,
    exp.BitwiseAnd,
    exp.BitwiseRightShift,
)
def _side(node: exp.Expression) -> Iterator[exp.Expression]:
    yield node.this.copy()
    yield node.expression.copy()


@_kind("a join is another", exp.Join)
def _join(node: exp.Expression) -> Iterator[exp.Expression | None]:
    if node.args.get("on"):
        yield exp.Join(this=node.this.copy(), kind="CROSS")
    if node.side == "LEFT":
        yield exp.Join(this=node.this.copy(), on=node.args["on"].copy())
    else:
        yield None
    if node.kind == "ANTI":
        yield exp.Join(this=node.this.copy(), kind="SEMI", on=node.args["on"].copy())


@_kind("a part of a union is left out, or twice there", exp.Union)
def _union(node: exp.Expression) -> Iterator[exp.Expression]:
    yield node.this.copy()
    yield node.expression.copy()
    changed = exp.Union(this=node.this.copy(), expression=node.this.copy(), distinct=False)
    yield changed


@_kind("a column is another", exp.Column)
def _column(node: exp.Expression) -> Iterator[exp.Expression]:
    """Another column of the statement, of the same quoting."""
    root = node.root()
    names = sorted(
        {
            one.name
            for one in root.find_all(exp.Column)
            if one.this.args.get("quoted") == node.this.args.get("quoted")
        }
    )
    for name in names[:12]:
        if name != node.name:
            changed = node.copy()
            changed.this.set("this", name)
            yield changed


@_kind("a table is read once more", exp.From)
def _from(node: exp.Expression) -> Iterator[exp.Expression]:
    if isinstance(node.this, exp.Table) and node.this.db:
        other = node.this.copy()
        other.set("alias", exp.TableAlias(this=exp.to_identifier("again")))
        joined = f"{node.this.sql('duckdb')} CROSS JOIN {other.sql('duckdb')}"
        yield sqlglot.parse_one(f"SELECT 1 FROM {joined}", read="duckdb").args["from_"]


@_kind("a type is another", exp.Cast)
def _type(node: exp.Expression) -> Iterator[exp.Expression]:
    for kind in ("DOUBLE", "VARCHAR"):
        yield exp.Cast(this=node.this.copy(), to=exp.DataType.build(kind))


def mutants(sql: str, dialect: str, choose: Random, number: int) -> Iterator[tuple[str, str]]:
    """`number` texts that differ from `sql` in one place each, with the kind of the change: kinds alike, places alike."""
    tree = sqlglot.parse_one(sql, read=dialect)
    places = list(tree.walk())
    by_kind = {
        name: [at for at, node in enumerate(places) if isinstance(node, nodes)]
        for name, (nodes, _) in KINDS.items()
    }
    kinds = [name for name, found in by_kind.items() if found]
    for _ in range(number if kinds else 0):
        name = choose.choice(kinds)
        at = choose.choice(by_kind[name])
        others = list(KINDS[name][1](places[at]))
        if not others:
            continue
        other = choose.choice(others)
        copy = tree.copy()
        place = next(one for number, one in enumerate(copy.walk()) if number == at)
        if other is None:
            place.pop()
        elif place is copy:
            copy = other.copy()
        else:
            place.replace(other.copy())
        yield name, copy.sql(dialect)
