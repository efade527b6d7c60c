"""Aggregates over columns that were randomised when they were collected are estimates (soundness.md 1.24).

What is asked is of the true answers, what stands in the table are reported ones. A count or sum over the rows whose
true answer is in A is w_in · (the same over rows that report one of A) + w_out · (over all other rows), with the
channel's weights: on average over the respondents' coins it is right. So the aggregate below is over reported
answers, split in two disjoint parts; what stands above it is arithmetic on its result.

House rules:

1. Nothing here touches a sensitivity or a scale: the aggregate below is one that an analyst could have written.
2. An answer is read by whole AND terms of a filter that compare it with literals, and as a group key. Whatever
   else reads one is refused, at the end by `check_reported` over the whole relation.
3. One answer is one set of coins: a condition on it is one set of values, however often it is written. Two columns
   have coins of their own, so their weights multiply.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fractions import Fraction

from ..errors import Position, Refusal
from ..relation.expressions import (
    Expr,
    Field,
    conjuncts,
    fields_of,
)
from ..relation.relations import AggregateCall, Group, Order, Relation, filtered, grouped, ordered, projected
from .answer_conditions import Conditions, chosen_by, reports
from .estimate_builder import EstimateBuilder
from .estimates import (
    all_of,
    inverted,
)
from .reported import (
    Answer,
    Reported,
    is_owner,
    refuse_use,
    reported_columns,
    stands_once,
)

__all__ = ["Estimator"]

_MOST_PARTS = 16


@dataclass
class Estimator:
    """The estimates of one SELECT over `source`: which columns are answers, and what its WHERE says of them.

    `grouped`: it groups by one, so that all its aggregates are estimates.
    """

    source: Relation
    reported: Reported
    where: Conditions = field(default_factory=dict)
    grouped: bool = False

    @classmethod
    def over(cls, source: Relation) -> Estimator | None:
        """Return the estimator of a SELECT, None where no column was randomised."""
        reported = reported_columns(source)
        return cls(source, reported) if any(reported) else None

    def take(self, predicate: Expr) -> Expr:
        """Return what a WHERE says of other columns, and keep what it says of answers. Raises Refusal."""
        self.where, rest = self.split(predicate)
        return rest

    def refuse_rows(self, position: Position | None) -> None:
        """Refuse a WHERE on answers of a SELECT without aggregates."""
        for answer in self.where:
            raise refuse_use(answer, position)

    def is_estimate(self, call: AggregateCall) -> bool:
        """Say whether an aggregate becomes an estimate, and so a double."""
        read = () if call.filter is None else (call.filter,)
        return bool(self.where) or self.grouped or bool(self.answers_in(*call.args, *read))

    def answers_in(self, *exprs: Expr) -> list[Answer]:
        """Return the answers that expressions read."""
        found = (self.reported[i] for i in sorted(fields_of(*exprs)) if i < len(self.reported))
        return [answer for answer in found if answer is not None]

    def is_answer(self, key: Expr | None) -> bool:
        """Say whether a key is a randomised column."""
        return isinstance(key, Field) and self.reported[key.index] is not None

    # --- conditions ---------------------------------------------------------------------------------------

    def split(self, predicate: Expr) -> tuple[Conditions, Expr]:
        """Return what a predicate says of answers, and its other terms. Raises Refusal."""
        found: Conditions = {}
        rest: list[Expr] = []
        for term in conjuncts(predicate):
            read = list(dict.fromkeys(self.answers_in(term)))
            if not read:
                rest.append(term)
                continue
            answer = read[0]
            if len(read) > 1 or any(self.reported[index] is None for index in fields_of(term)):
                raise refuse_use(answer, term.position, "a condition is on one of them alone, joined by AND")
            chosen = chosen_by(term, answer)
            found[answer] = found.get(answer, chosen) & chosen
        return found, all_of(rest)

    def _field(self, answer: Answer) -> Field:
        index = self.reported.index(answer)
        column = self.source.columns[index]
        return Field(column.type, index, answer.column.name)

    def parts(self, conditions: Conditions) -> list[tuple[tuple[Expr, ...], Fraction]]:
        """Return disjoint parts of the rows by what they report, and what a row of each counts for."""
        sides: list[list[tuple[Expr, Fraction]]] = []
        for answer, chosen in conditions.items():
            every = frozenset(range(answer.channel.size))
            inside, outside = answer.channel.weights(chosen)
            field_ = self._field(answer)
            sides.append(
                [
                    (reports(field_, answer.column, chosen), inside),
                    (reports(field_, answer.column, every - chosen), outside),
                ]
            )
        parts: list[tuple[tuple[Expr, ...], Fraction]] = []
        for picked in itertools.product(*sides):
            weight = Fraction(1)
            for _, factor in picked:
                weight *= factor
            parts.append((tuple(term for term, _ in picked), weight))
        if len(parts) > _MOST_PARTS:
            raise Refusal(
                "an estimate is by at most four randomised columns at a time", sqlstate="54001",
                hint="ask for fewer conditions at once",
            )  # fmt: skip
        return parts

    # --- the aggregate --------------------------------------------------------------------------------------

    def aggregate(self, source: Relation, group: Group, position: Position | None) -> Relation:
        """Return estimates of a SELECT's aggregates by its keys: the same columns as the group has.

        `source`: the rows that are aggregated, with what subqueries have added behind the columns.

        Raises:
            Refusal: PV003 for a use of an answer that no estimate is of.
        """
        self.source = source
        self.reported += reported_columns(source)[len(self.reported) :]
        keyed = self._keyed(group)
        if not self.where and not keyed and not any(map(self.is_estimate, group.aggregates)):
            return grouped(source, group, position)
        self._check(group, keyed, position)
        builder = EstimateBuilder(
            self, group, {answer: c for answer, c in self.where.items() if answer not in keyed}, position
        )
        marked = [builder.output(call, keyed) for call in group.aggregates]
        self._check_apart({*self.where, *keyed, *builder.used}, position)
        relation, outputs = builder.relation(), list(map(builder.placed, marked))
        for index, answer in sorted((index, answer) for answer, index in keyed.items()):
            relation = inverted(relation, index, answer, len(group.keys), builder.width)
            if answer in self.where:
                key = Field(group.keys[index].type, index)
                relation = filtered(relation, reports(key, answer.column, self.where[answer]))
        keys = tuple(Field(key.type, i) for i, key in enumerate(group.keys))
        bits = tuple(
            Field(c.type, builder.bits + i) for i, c in enumerate(group.columns[len(keys) + len(outputs) :])
        )
        shown = projected(relation, (*keys, *outputs, *bits), tuple(c.name for c in group.columns), position)
        if not keyed:
            return shown
        return ordered(shown, tuple(Order(key, False, False) for key in keys))

    def _keyed(self, group: Group) -> dict[Answer, int]:
        places: dict[Answer, int] = {}
        for index, key in enumerate(group.keys):
            if not self.answers_in(key):
                continue
            answer = self.reported[key.index] if isinstance(key, Field) else None
            if answer is None or not self.grouped:
                raise refuse_use(self.answers_in(key)[0], key.position, "group by the column itself")
            places[answer] = index
        return places

    def _check(self, group: Group, keyed: dict[Answer, int], position: Position | None) -> None:
        """Refuse grouping sets of answers, people's own groups, and two columns of the same coins."""
        first = next(iter(keyed), None)
        if first is not None and (len(group.sets) > 1 or group.groupings):
            raise refuse_use(first, position, "group by it in a plain GROUP BY")
        if any(isinstance(key, Field) and is_owner(self.source, key.index) for key in group.keys):
            used = [
                *keyed,
                *self.where,
                *(a for call in group.aggregates for a in self.answers_in(*call.args)),
            ]
            used += [
                a
                for call in group.aggregates
                if call.filter is not None
                for a in self.answers_in(call.filter)
            ]
            raise refuse_use(
                used[0], position, "below a person's GROUP BY there is one answer, and no average"
            )

    def _check_apart(self, used: set[Answer], position: Position | None) -> None:
        """Refuse answers that a join copies, and one answer read twice: then coins are not independent."""
        for answer in sorted(used, key=self.reported.index):
            twins = [
                one for one in used if (one.table, one.column.name) == (answer.table, answer.column.name)
            ]
            if len(twins) > 1:
                raise refuse_use(
                    answer, position, "its table stands in FROM twice; read the answer from one of them"
                )
            if not stands_once(self.source, self.reported.index(answer)):
                raise refuse_use(
                    answer,
                    position,
                    "this join may copy an answer; join what has one row for each, by its key",
                )
