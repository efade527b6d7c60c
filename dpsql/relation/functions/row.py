"""One row a scalar function: all that is known of it before any engine prints it.

House rules:

1. `result` gives the SQL type for the argument types, None when they do not fit.
2. `interval` is given the facts of the arguments, true for every row, and returns facts that are true of the
   printed call (`intervals.facts_of` states the claim). It passes `declared` on only where every bound that was
   used is declared. Without it nothing is known: the result has no bounds.
3. `size`: most characters of the text that the printed call gives (the rules of `facts`); a text without it is refused.
4. `null` says whether the printed call can be NULL; what `interval` says of that is not looked at.
5. An interval rule that is wrong must not break privacy: the printed SQL clamps the final value to the bounds
   that the sensitivity was computed from (law L9). It could break totality; the property tests run rows within
   and outside all bounds.
6. `private`: the function may run on private rows: it is deterministic, reads nothing but its arguments, and has
   a total printed form (law L2; soundness.md 1.11). `public`: it has one above the release, its own or the plain
   one. `check_printers` compares both with the tables of printers when they are imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from ...records import dataclass
from ..expressions import Call, Expr
from ..facts import Facts, SizeRule
from ..types import DOUBLE, NULL, NUMERIC, TIMESTAMP, Kind, SqlType

# --- the type that values of several types have together, as Postgres has it --------------------------------


_RANK = {
    Kind.SMALLINT: 0, Kind.INTEGER: 1, Kind.BIGINT: 2, Kind.NUMERIC: 3, Kind.REAL: 4, Kind.DOUBLE: 5,
}  # fmt: skip


def promote(left: SqlType, right: SqlType) -> SqlType | None:
    """Return the type of arithmetic between two number types, as Postgres has it; None for others."""
    if left.kind is Kind.NULL:
        left = right
    if right.kind is Kind.NULL:
        right = left
    if not (left.is_number and right.is_number):
        return None
    if left.is_float or right.is_float:
        return left if left == right else DOUBLE
    if left.kind is Kind.NUMERIC or right.kind is Kind.NUMERIC:
        return NUMERIC
    return max((left, right), key=lambda t: _RANK[t.kind])


def common_type(types: list[SqlType]) -> SqlType | None:
    """Return the one type that all can be read as (CASE branches, IN lists, UNION columns)."""
    known = [t for t in types if t.kind is not Kind.NULL]
    if not known:
        return NULL
    best = known[0]
    for other in known[1:]:
        if other == best:
            continue
        if best.kind is Kind.NUMERIC and other.kind is Kind.NUMERIC:
            scales = (best.scale, other.scale)
            scale = None if None in scales else max(s for s in scales if s is not None)
            best = SqlType(Kind.NUMERIC, None if scale is None else 38, scale)
            continue
        both = promote(best, other)
        if both is None and best.is_temporal and other.is_temporal:
            both = TIMESTAMP
        if both is None:
            return None
        best = both
    return best


# --- one row a scalar function: all that is known of it before any engine prints it -------------------------


Args = tuple[Expr, ...]
TypeRule = Callable[[Args], SqlType | None]
IntervalRule = Callable[[list[Facts], Call], Facts]
Written = str | Callable[..., str]
"""SQL over the arguments; where some are constant formats or patterns, what makes it of those."""
NullRule = Callable[[list[Facts], Call], bool]


@dataclass(frozen=True, slots=True)
class Syntax:
    """A kind of node of the parser's tree that is read, and which arguments of it.

    `args`: bound as the function's arguments, in this order. Without them a form of `sql.bind_forms` binds the node.
    `read`: what the form reads, or the parser sets on its own. `means`: what the node is short for, as SQL over its
    arguments by their names, or what tells that of the node; `said`: what a refusal calls it then.
    """

    node: type[exp.Expr]
    args: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    means: str | Callable[[exp.Expr], str] = ""
    said: str = ""


def unary(node: type[exp.Expr]) -> tuple[Syntax, ...]:
    """Return the syntax of a function of one argument."""
    return (Syntax(node, ("this",)),)


def binary(node: type[exp.Expr]) -> tuple[Syntax, ...]:
    """Return the syntax of an operator or a function of two arguments."""
    return (Syntax(node, ("this", "expression")),)


@dataclass(frozen=True, slots=True)
class Shorthand:
    """A form of the manual that the binder writes out in other functions: it is never a `Call` itself."""

    form: str
    doc: str
    syntax: tuple[Syntax, ...]


def any_null(args: Sequence[Facts], call: Call) -> bool:
    """NULL for a NULL argument: what most functions do."""
    return any(arg.nullable for arg in args)


def all_null(args: Sequence[Facts], call: Call) -> bool:
    """NULL where all arguments are: it skips them."""
    return all(arg.nullable for arg in args)


def never_null(args: Sequence[Facts], call: Call) -> bool:
    """Never NULL."""
    return False


ON_GROUPS = "group by what it is of, then use it: SELECT …(x), n FROM (SELECT x, COUNT(*) AS n FROM … GROUP BY x) AS t"
"""What to write in place of a function that is for released rows alone: its argument's groups are such rows."""


@dataclass(frozen=True, slots=True)
class Function:
    """A row of the table. `form` and `doc`: its line in the manual; `symbol`: an operator's sign, in SQL and in errors.

    `output`: the name of a column that is a call of it; "" for `name`. `above`: its SQL above the release where that
    fails for no value: over {a}, {b} and {c}, the printed arguments, or over v.a and v.b, which stand for them and are
    printed once. Without it the function has a printer in `postprocess.print_calls`.

    Of a function that is called by name, above the release alone (`above`): `names`: the names; `signatures`: what it
    takes and gives; `sql`: its value in the sealed engine, of each of these or of all; `strict`: NULL for a NULL
    argument; `grows`: its text may be longer than its arguments; `since`: the first version of Postgres that has it,
    where not all have; `below`: what is said to who uses it on people's rows.
    """

    name: str
    form: str
    doc: str
    result: TypeRule
    interval: IntervalRule | None = None
    syntax: tuple[Syntax, ...] = ()
    size: SizeRule | None = None
    null: NullRule = any_null
    symbol: str = ""
    output: str = ""
    private: bool = True
    public: bool = True
    above: str = ""
    names: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    sql: tuple[Written, ...] = ()
    strict: bool = True
    grows: bool = False
    since: int = 0
    below: str = ON_GROUPS

    @property
    def said(self) -> str:
        """What a refusal calls it: as it is written."""
        if self.symbol and (self.sql or not self.private):
            return self.symbol
        called = re.match(r"\w+(?=\()", self.form)
        return f"{called[0]}()" if called else self.form if self.names or self.sql else f"{self.name}()"


def declared(args: Sequence[Facts]) -> bool:
    """Say whether all bounds that were used are declared."""
    return all(arg.declared for arg in args)
