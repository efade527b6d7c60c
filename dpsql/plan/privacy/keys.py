"""Group keys: their public domains, where they have one, and how many groups a unit can touch.

House rule: a domain comes from the policy's `values`, from a key expression's own bounds and values,
or from literals of the statement's filter; never from the data (attacks.md, row G11).

Keys that are computed of few values: rows are grouped by those, and the key is computed above the release.

    >>> grouped("floor(height / 0.5) * 0.5")
    CAST(floor(height / 0.5) AS bigint), shown as CAST(it AS double precision) * 0.5

A double is no key, since it has no finite list of values and engines may spell one number in two ways. A bin is: its
number is a whole one between known ends. What is computed of that alone is post-processing, in the very doubles of
the statement; so all engines show the same bits, which are Postgres'.

House rules of these (soundness.md 1.7):

1. What rows are grouped by has a known list of values, each of which is shown as another one, none of which is NULL
   or NaN; NULL is shown as NULL. So a group is a group of the key that was written, and no two of them are one.
2. An exact key keeps its own values where what it is computed of has no fewer.

Values that tell people apart (`tells_people_apart`) are an e-mail address, a receipt's number, and what is computed
from one of them. House rule: this is a courtesy, and no proof rests on it. A group of such a value is one person's, so
that a release by it is charged and can show nothing; whose a row is, is `ownership`'s to say.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from ...cache import Made
from ...errors import Position, Refusal
from ...records import dataclass
from ...relation.calendar import step_units
from ...relation.catalog import MAX_DERIVED, Column, Scalar
from ...relation.expressions import (
    Call,
    Expr,
    Field,
    IntermediateValue,
    Literal,
    compared,
    conjuncts,
    fields_of,
    parts_in,
)
from ...relation.facts import Facts, common_grid, grid_of, hull, intersect
from ...relation.intervals import Environment, facts_of, member_of, narrowed_facts, undeclared
from ...relation.types import BIGINT, Kind
from .functional_dependencies import classes_of, equalities
from .rows import OwnedRows, fields_in
from .value_set import Looking, atoms, canonical, existing, tells_apart

MAX_DOMAIN = 100_000
"""Most groups of a cross product of domains."""


def undeclared_rows(name: str, position: Position | None, may: str = "may count in one result") -> Refusal:
    """Return the refusal of a table of people without `max_rows`."""
    return Refusal(
        f'max_rows is not declared for table "{name}"', sqlstate="PV102", position=position,
        hint=f"ask the owner to declare how many rows of one person {may}",
        owner_hint=f"write max_rows = <rows of one person that count> at the table in the policy, or measure it: dpsql "
        f"bounds {name}",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Domain:
    """The public values of one key, None for NULL, in declared or natural order."""

    values: tuple[Scalar, ...]


def environment_of(columns: tuple[Column, ...], predicate: tuple[Expr, ...]) -> Environment:
    """Return the facts of rows that pass a filter: its AND terms narrow bounds and values (soundness.md 1.6)."""
    return _environments.of(columns, predicate)


def _environment(columns: tuple[Column, ...], predicate: tuple[Expr, ...]) -> Environment:
    narrowed: dict[Expr, Facts] = {}
    for term in predicate:
        _narrow(narrowed, term)
    return Environment(columns, narrowed)


_environments = Made(_environment)


def _either(alternatives: Sequence[Expr]) -> dict[Expr, Facts]:
    """Return what an OR implies: the hull of what its alternatives say, for expressions that all of them limit."""
    found: list[dict[Expr, Facts]] = []
    for alternative in alternatives:
        said: dict[Expr, Facts] = {}
        for term in conjuncts(alternative):
            _narrow(said, term)
        found.append(said)
    # What one alternative leaves open, the OR leaves open.
    shared = [expr for expr in found[0] if all(expr in said for said in found)]
    return {expr: hull([said[expr] for said in found]) for expr in shared}


def _narrow(narrowed: dict[Expr, Facts], term: Expr) -> None:
    """Add what a term implies to what is known."""
    if term.calls("or"):
        implied = _either(term.args)
    else:
        found = _narrowing(term)
        implied = {} if found is None else dict([found])
    for expr, facts in implied.items():
        narrowed[expr] = intersect(narrowed[expr], facts) if expr in narrowed else facts


def _narrowing(term: Expr) -> tuple[Expr, Facts] | None:
    if term.column is not None:
        return term, Facts(Fraction(1), Fraction(1), Fraction(1), False, (True,))
    if term.calls("not") and term.args[0].calls("is_null"):
        return term.args[0].args[0], Facts(nullable=False)
    if term.calls("in"):
        return term.args[0], _lists.of(term)
    found = compared(term)
    if found is None or term.calls("ne"):
        return None
    function, left, right = found
    if left.is_constant or not isinstance(right, (Literal, IntermediateValue)):
        return None
    value = right.exact
    if value is None or (
        left.type.kind is not right.type.kind and not (left.type.is_number and right.type.is_number)
    ):
        return left, Facts(nullable=left.type.is_float)  # NaN is above every number, and equals itself
    if function == "eq":
        return left, _listed(left, [value])
    if not isinstance(value, Fraction):
        return left, Facts(nullable=False)
    if function in ("gt", "ge"):
        least = _beyond(value, left, 1) if function == "gt" else value
        return left, Facts(lo=least, nullable=left.type.is_float)  # NaN is above every number
    return left, Facts(hi=_beyond(value, left, -1) if function == "lt" else value, nullable=False)


def _beyond(value: Fraction, expr: Expr, sign: int) -> Fraction:
    """Return the value of an expression's type next above (1) or below (-1) a number: the next day, microsecond, cent;
    the number itself where the type alone does not say which values there are."""
    type_ = expr.type  # what is computed, and what an engine does not hold to it, may have more decimals
    is_typed = type_.kind is not Kind.NUMERIC or (expr.column is not None and type_.engine is None)
    step = grid_of(type_) if is_typed else None
    return value if step is None else sign * (math.floor(sign * value / step) + 1) * step


def _listed(expr: Expr, values: list[Scalar]) -> Facts:
    unique = tuple(dict.fromkeys(values))
    numbers = [value for value in unique if isinstance(value, Fraction)]
    if numbers and len(numbers) == len(unique):
        grid = common_grid(numbers) or Fraction(1)
        kept = None if expr.type.is_temporal or expr.type.is_float else unique
        on_grid = not (expr.type.is_temporal or expr.type.is_float)
        return Facts(min(numbers), max(numbers), grid if on_grid else None, False, kept)
    return Facts(nullable=False, values=unique)


def _said_by_list(term: Expr) -> Facts:
    values = (arg.exact for arg in term.args[1:])
    return _listed(term.args[0], [value for value in values if value is not None])


_lists = Made(_said_by_list)
"""What `x IN (…)` says of x: of a long list it is asked many times."""


def share_left(columns: tuple[Column, ...], predicate: tuple[Expr, ...]) -> Fraction:
    """Return what share of rows pass a filter, were each column's values spread evenly between its declared ends.

    A guess by text and policy alone, from which the cheaper way to print a query is taken, and nothing else.
    """
    before, after = Environment(columns), environment_of(columns, predicate)
    share = Fraction(1)
    for index in sorted(fields_of(*predicate)):
        column = Field(columns[index].type, index)
        share *= _share(facts_of(column, before), facts_of(column, after))
    return share


def _share(known: Facts, left: Facts) -> Fraction:
    if left.values is not None and known.values is None:
        return Fraction(0)  # a few of many
    if left.values is not None and known.values:
        return Fraction(len(left.values), len(known.values))
    ends = (known.lo, known.hi, left.lo, left.hi)
    if not known.declared or any(end is None for end in ends):
        return Fraction(1)
    low, high, least, most = (end for end in ends if end is not None)
    return max(most - least, Fraction(0)) / (high - low) if high > low else Fraction(1)


def domain_of(key: Expr, env: Environment) -> Domain | None:
    """Return the public values of a key; None when they are not declared and not derivable.

    Ensures: every value the printed key can take on rows that are kept is in the domain, or the
    printed filter drops that row; the result depends on text and policy alone.
    """
    return _domains.of(key, env)


def _domain_of(key: Expr, env: Environment) -> Domain | None:
    facts = narrowed_facts(key, env)
    null: tuple[Scalar, ...] = (None,) if facts.nullable else ()
    column = env.declared(key) or member_of(key, env)
    if column is not None and column.values is not None:
        null = (None,) if None in column.values and facts.nullable else ()
    if facts.values is not None and (key.type.kind is Kind.TEXT or key.type.kind is Kind.BOOLEAN):
        return Domain((*facts.values, *null))
    if key.type.is_float:
        return None
    if facts.values is not None and facts.values and len(facts.values) <= MAX_DOMAIN:
        inside = [v for v in facts.values if _inside(v, facts)]
        return Domain((*inside, *null))
    values = _computed(key, facts, env) if key.calls("cast") else None  # of quarters as days, the first ones
    values = values or _derived(key, facts) or _computed(key, facts, env)
    return None if values is None else Domain((*values, *null))


_domains = Made(
    _domain_of, 2 * MAX_DOMAIN, weigh=lambda domain: 1 if domain is None else 1 + len(domain.values)
)


def _computed(key: Expr, facts: Facts, env: Environment) -> list[Scalar] | None:
    """Return what a key is over all that its one column can be, by declaration; None: not known, or too much."""
    read = fields_of(key)
    if len(read) != 1 or key.column is not None:
        return None
    (column,) = set(parts_in(Field, key))
    if key.type.is_number and not (key.type.is_integer and column.type.kind is Kind.TEXT):
        return None  # those of numbers are grouped by what they are computed of (`stepped_keys`)
    own = facts_of(column, env)
    if not own.declared or (own.values is None and not own.bounded):
        return None
    found = atoms([key], env, is_key=True)
    if found is None or len(found) > MAX_DERIVED:
        return None
    values = [Fraction(value) if type(value) is int else value for (value,) in found if value is not None]
    if key.type.is_number:
        values.sort(key=lambda value: Fraction(value))
    return [value for value in values if _inside(value, facts)]


def _inside(value: Scalar, facts: Facts) -> bool:
    if not isinstance(value, (int, Fraction)) or isinstance(value, bool):
        return True
    return (facts.lo is None or facts.lo <= value) and (facts.hi is None or value <= facts.hi)


def _derived(key: Expr, facts: Facts) -> list[Scalar] | None:
    """Return the lattice points of a bounded key, when they are at most MAX_DERIVED."""
    if key.type.kind is Kind.BOOLEAN:
        return [False, True]
    if facts.lo is None or facts.hi is None or not facts.declared:
        return None
    if key.type.kind is Kind.TIMESTAMP:
        if not key.calls("date_trunc"):
            return None
        moments = step_units(key.literal(0, str), int(facts.lo), int(facts.hi), MAX_DERIVED)
        return None if moments is None else [Fraction(moment) for moment in moments]
    if facts.grid is None:
        return None
    first, last = math.ceil(facts.lo / facts.grid), math.floor(facts.hi / facts.grid)
    if last - first >= MAX_DERIVED:
        return None
    return [number * facts.grid for number in range(first, last + 1)]


def existing_groups(
    keys: tuple[Expr, ...],
    domains: Sequence[Domain],
    env: Environment,
    terms: tuple[Expr, ...],
    looking: Looking,
) -> tuple[tuple[Scalar, ...], ...]:
    """Return the groups of a cross product of domains that the filter leaves rows for, in order (soundness.md 1.7).

    Keys that filter or columns tie to each other are narrowed together: `a <> b` leaves no group of two equals.
    Raises:
        Refusal: PV203 when there are more than MAX_DOMAIN.
    """
    if not keys:
        return ((),)
    parts = existing(keys, [domain.values for domain in domains], env, terms, looking)
    places = [
        {value: i for i, value in enumerate(canonical(domain.values, key.type))}
        for key, domain in zip(keys, domains, strict=True)
    ]
    lists: list[list[tuple[int, ...]]] = []
    numbers: list[int] = []
    for part in parts:
        own = [places[number] for number in part.numbers]
        found = (
            tuple(place.get(value, -1) for place, value in zip(own, group, strict=True))
            for group in part.groups
        )
        lists.append([group for group in found if -1 not in group])
        numbers += part.numbers
    if math.prod(map(len, lists)) > MAX_DOMAIN:
        raise _too_many(math.prod(map(len, lists)), keys)
    order = [numbers.index(number) for number in range(len(keys))]
    whole = ([place for group in chosen for place in group] for chosen in itertools.product(*lists))
    groups = sorted(tuple(flat[place] for place in order) for flat in whole)
    return tuple(
        tuple(domain.values[place] for domain, place in zip(domains, group, strict=True)) for group in groups
    )


def _too_many(size: int, keys: tuple[Expr, ...]) -> Refusal:
    return Refusal(
        f"these keys have {size} possible groups; at most {MAX_DOMAIN} are answered",
        sqlstate="PV203",
        position=keys[0].position,
        hint="group by fewer keys, or narrow them in WHERE (key IN (…), key BETWEEN … AND …)",
    )


def max_groups_in(rows: OwnedRows, keys: tuple[Expr, ...], env: Environment) -> int:
    """Return C for one grouping set: how many of its groups one unit may touch.

    One for the empty set, and for keys that the engine's own keys make a function of the owner
    (soundness.md 1.12): nothing has to be enforced then. Raises Refusal: PV102 where C is not declared.
    """
    if rows.is_single or fields_of(*keys) <= rows.fixed_columns:
        return 1
    if rows.max_groups is None:
        raise undeclared_rows(rows.undeclared, keys[0].position)
    domains = [domain_of(key, env) for key in keys]
    size = math.prod(len(domain.values) for domain in domains if domain is not None)
    known = all(domain is not None for domain in domains)
    # Never 0: a unit without a group would have sensitivity 0, and its noise none.
    return max(1, min(rows.max_groups, size)) if known else rows.max_groups


# --- stepped keys -------------------------------------------------------------------------------------

_STEPS = frozenset({"floor", "ceil", "round", "trunc"})
_CARRIED = frozenset({"add", "sub", "mul", "div", "neg", "cast"})
"""What is computed of a step above the release: NULL of NULL, and alike on all engines."""


@dataclass(frozen=True, slots=True)
class SteppedKey:
    """`grouped`: what rows are grouped by; `shown`: the key, computed of `Field(0)`, which is that."""

    grouped: Expr
    shown: Expr


def stepped_keys(keys: Sequence[Expr], env: Environment) -> tuple[SteppedKey | None, ...]:
    """Return how each key is made of a step; None for those that rows are grouped by as they stand.

    Raises:
        Refusal: PV101, PV202 or PV203 for doubles without a list of steps.
    """
    return tuple(_stepped_key(key, env) for key in keys)


def _stepped_key(key: Expr, env: Environment) -> SteppedKey | None:
    if not key.type.is_number:
        return None
    best: SteppedKey | None = None
    own = None if key.type.is_float else domain_of(key, env)
    fewest = None if own is None else len(own.values)
    ways = list(_taken_apart(key))
    for way in ways:
        domain = domain_of(way.grouped, env)
        if domain is None or (fewest is not None and len(domain.values) >= fewest):
            continue
        if tells_apart(way.shown, [value for value in domain.values if value is not None]):
            best, fewest = way, len(domain.values)
    if best is None and key.type.is_float:
        raise _refusal(key, ways, env)
    return best


def _taken_apart(key: Expr) -> Iterator[SteppedKey]:
    """Yield each exact part, or step of doubles, that a key is computed of alone, the outermost first."""
    if key.type.is_float and key.calls(*_STEPS):
        whole = Call(BIGINT, "cast", (key,), position=key.position)
        yield SteppedKey(whole, Call(key.type, "cast", (Field(BIGINT, 0),)))
    if not key.calls(*_CARRIED):
        return
    varying = [i for i, arg in enumerate(key.args) if not arg.is_constant]
    if len(varying) != 1:
        return
    inner = key.args[varying[0]]
    found = [SteppedKey(inner, Field(inner.type, 0))] if _is_exact(inner) else []
    for way in (*found, *_taken_apart(inner)):
        args = tuple(way.shown if i == varying[0] else arg for i, arg in enumerate(key.args))
        yield SteppedKey(way.grouped, Call(key.type, key.function, args, position=key.position))


def _is_exact(expr: Expr) -> bool:
    return expr.type.is_number and not expr.type.is_float


def _refusal(key: Expr, ways: Sequence[SteppedKey], env: Environment) -> Refusal:
    """Return why a double is no key: PV101, PV202 or PV203."""
    facts = narrowed_facts(ways[0].grouped, env) if ways else None
    if facts is not None and not (facts.bounded and facts.declared):
        return undeclared(ways[0].grouped, env)
    if facts is not None and domain_of(ways[0].grouped, env) is None:
        return Refusal(
            f"this key has more than {MAX_DERIVED} steps within its bounds",
            sqlstate="PV203",
            position=key.position,
            hint="take wider ones, or narrow it in WHERE with … BETWEEN low AND high",
        )
    return Refusal(
        "a floating-point expression cannot be a group key",
        sqlstate="PV202",
        position=key.position,
        hint="bin it: floor(x / 10) * 10, or cast it to integer",
    )


_KEEPING = frozenset(
    {"add", "sub", "mul", "neg", "lower", "upper", "trim", "ltrim", "rtrim", "concat", "concat_op", "coalesce",
     "nullif"}
)  # fmt: skip
"""Functions that give different values of an argument different results, but for a few."""


def tells_people_apart(expr: Expr, is_personal: Callable[[int], bool]) -> Field | None:
    """Return the column by which an expression tells people apart; None where many can share a value of it."""
    if isinstance(expr, Field):
        return expr if is_personal(expr.index) else None
    parts: tuple[Expr, ...] = ()
    if expr.calls(*_KEEPING) or (expr.calls("cast") and _keeps_values(expr)):
        parts = expr.args
    elif expr.calls("case"):
        parts = (*expr.args[1:-1:2], expr.args[-1])
    found = (tells_people_apart(part, is_personal) for part in parts)
    return next((field for field in found if field is not None), None)


def _keeps_values(cast: Expr) -> bool:
    before, after = cast.args[0].type, cast.type
    if after.kind is Kind.TEXT or before.is_integer:
        return after.kind is not Kind.BOOLEAN
    return before.kind is after.kind or (before.is_number and after.is_float)


def personal_columns(rows: OwnedRows) -> Callable[[int], bool]:
    """Return the test of which columns tell people apart, by themselves or by an equality with one that does."""
    classes = classes_of(rows.items, rows.predicate, rows.root)
    for item, _ in fields_in(rows.items):
        for left, right in equalities(item.on if item.kind == "left" else ()):
            classes.unite(left, right)
    personal = {classes.find(index) for index, column in enumerate(rows.columns) if column.is_personal}
    return lambda index: classes.find(index) in personal
