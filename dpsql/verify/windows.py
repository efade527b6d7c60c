"""The steps of a choice by rank, as a template: weights by cell, running sums, the stretch near a rank (1.20,
1.21)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.verify.certificate import Measurement, Part, Release, Stretch
from dpsql.verify.lemmas import Lemmas, Move
from dpsql.verify.read import Ctes, Reader, columns_of
from dpsql.verify.terms import AGGREGATES, Pool, Refused, Term, walk
from dpsql.verify.values import Values

_RANK = """
WITH g AS (SELECT {keys} {cell} AS cell, CAST(SUM(w) AS BIGINT) AS w FROM r GROUP BY {keys} cell),
c AS (SELECT {keys} cell, w,
  CAST(SUM(w) OVER ({partition} ORDER BY cell {nulls} ROWS UNBOUNDED PRECEDING) AS BIGINT) - w AS less,
  CAST(SUM(w) OVER ({partition}) AS BIGINT) AS n FROM g WHERE cell IS NOT NULL)
"""
_NEAR = (
    """, d AS (SELECT {keys} cell AS v, less, w, n FROM c WHERE {near}) SELECT {keys} v, less, w, n FROM d"""
)
_CELLS = """, s AS (SELECT {keys} cell, less, n FROM c WHERE {near}),
h AS (SELECT {of_r} s.cell, r.v, CAST(SUM(r.w) AS BIGINT) AS w, MIN(s.less) AS base, MIN(s.n) AS n
  FROM r JOIN s ON {same} (r.v >> {shift}) = s.cell GROUP BY {of_r} s.cell, r.v),
e AS (SELECT {keys} v,
  base + CAST(SUM(w) OVER (PARTITION BY {keys} cell ORDER BY v {nulls} ROWS UNBOUNDED PRECEDING) AS BIGINT) - w
  AS less, w, n FROM h),
d AS (SELECT {keys} v, less, w, n FROM e WHERE {near}) SELECT {keys} v, less, w, n FROM d
"""


class Windows:
    """Lemma *window* and lemma *mode*."""

    def __init__(self, pool: Pool, values: Values, lemmas: Lemmas, reader: Reader) -> None:
        self.pool = pool
        self.values = values
        self.lemmas = lemmas
        self.reader = reader

    def move(
        self, tree: exp.Expression, measurement: Measurement, release: Release, part: Part | None
    ) -> Move:
        """The weights' lemma, where the steps above the weights are the template's."""
        clause = tree.args.get("with_")
        ctes = Ctes({})
        names = []
        for cte in clause.expressions if clause is not None else []:
            ctes = Ctes({**ctes.entries, cte.alias: (cte.this, ctes)})
            names.append(cte.alias)
            if cte.alias == "r":
                break
        if "r" not in names or clause is None or not isinstance(tree, exp.Select):
            raise Refused("lemmas: window, the steps of the template")
        g = next((one.this for one in clause.expressions if one.alias == "g"), None)
        if g is None:
            raise Refused("lemmas: window, the steps of the template")
        printed = self.reader.tree(tree)
        grouped = self.reader.tree(g, ctes)
        if grouped.op != "agg":
            raise Refused("lemmas: window, the steps of the template")
        block, keys, having, _ = grouped.args
        weight = self.lemmas.plain(columns_of(grouped)["w"])
        if weight.op != "sum" or weight.args[1]:
            raise Refused("lemmas: window, the steps of the template")
        self.lemmas.relations.subqueries([*keys, *having], self.lemmas.relations.joined(block))
        if measurement.law.name not in ("flip", "rank"):
            raise Refused("laws: values are chosen, by rank or by weight")
        if measurement.law.name == "flip":
            self._mode(printed, grouped, measurement, release)
        else:
            self._rank(tree, printed, grouped, g, ctes, measurement, release, part)
        return self.lemmas.weights(block, weight.args[0])

    def _groups(self, grouped: Term, value: Term, release: Release) -> None:
        """HAVING looks at the release's keys alone, and the groups are those and one value."""
        columns = columns_of(grouped)
        group = [columns[name] for name in release.keys]
        if set(grouped.args[1]) != {*group, value}:
            raise Refused("lemmas: window, groups are the keys and a value")
        for one in grouped.args[2]:
            for inner in walk(one, lambda term: term not in group):
                if inner.op in AGGREGATES or (inner.op == "col" and inner not in group):
                    raise Refused("lemmas: HAVING looks at keys alone")

    def _rank(
        self,
        printed_tree: exp.Expression,
        printed: Term,
        grouped: Term,
        g: exp.Expression,
        ctes: Ctes,
        measurement: Measurement,
        release: Release,
        part: Part | None,
    ) -> None:
        """Premise: the steps are, term by term, those of the template; v lies in `[0, candidates)`; the stretches are
        those that whoever draws says they are, of all values or of a part. Conclusion: less and n are the weights
        below a value, and of the group; a candidate whose score is below T is read, or lies between two that are.
        Why: 1.20, *what is read*. Of a part of the values (1.21) the rows are those whose v is in it."""
        cell = columns_of(grouped)["cell"]
        value, shift = (cell.args[0], cell.args[1].args[0]) if cell.op == "shr" else (cell, 0)
        self._groups(grouped, cell, release)
        ends = self.values.ends(value)
        if measurement.candidates is None or ends.low is None or ends.high is None or ends.step is None:
            raise Refused("lemmas: window, values are candidates")
        if ends.low < 0 or ends.high >= measurement.candidates or self.values.type(value)[0] != "int":
            raise Refused("lemmas: window, values are candidates", f"{ends}"[:200])
        plain = {
            one.this.name
            for one in printed_tree.find_all(exp.EQ)
            if isinstance(one.this, exp.Column)
            and one.this.table == "r"
            and one.expression.name == one.this.name
        }
        if part is not None:
            self._is_of_part(grouped, value, ctes, part)
        figures = zip(measurement.fractions, measurement.offsets, measurement.caps, strict=True)
        stretches = [Stretch(*one) for one in figures] if part is None else part.stretches
        near = [(*s.fraction.as_integer_ratio(), s.offset - s.cap, s.offset + s.cap) for s in stretches]
        tree = self.reader.parse(self._text(release.keys, shift, near, plain), "duckdb")
        having = g.args.get("having")
        tree.args["with_"].expressions[0].this.set("having", having.copy() if having is not None else None)
        self._show_keys(tree, printed_tree, release.keys)
        if self.reader.tree(tree, ctes) is not printed:
            raise Refused("lemmas: window, the steps of the template")

    def _show_keys(self, tree: exp.Expression, printed: exp.Expression, keys: Sequence[str]) -> None:
        """Takes over how the last SELECT writes a key, where that is made of the key alone."""
        for number, (key, item) in enumerate(zip(keys, printed.expressions, strict=False)):
            columns = {(one.name, one.table) for one in item.find_all(exp.Column)}
            if item.alias_or_name != key or columns != {(key, "")} or item.find(exp.Subquery, exp.AggFunc):
                raise Refused("lemmas: window, the steps of the template")
            tree.expressions[number] = item.copy()

    def _is_of_part(self, grouped: Term, value: Term, ctes: Ctes, part: Part) -> None:
        """Premise of a part: of the weighed rows those whose v is in it, and t counts an owner's rows in all parts.
        Why: choices of one depth are of disjoint parts, and an owner's weights in all of them together are what one
        choice is charged for."""
        r, visible = ctes.entries["r"]
        whole = self.reader.tree(*visible.entries[r.args["from_"].this.name])
        block = grouped.args[0]
        narrowed = set(block.args[2]) - set(whole.args[0].args[2])
        low, high = (self.pool("num", end, "int") for end in (part.low, part.high))
        inside = {self.pool("le", low, value), self.pool("le", value, high)}
        counted = [source.args[0].args[0].args[2] for source in block.args[0] if source.args[0].op == "agg"]
        if not inside <= narrowed:
            raise Refused("lemmas: window, the rows of a part")
        if whole.op != "select" or any(narrowed & set(one) for one in counted):
            raise Refused("lemmas: window, t counts the rows of all parts")

    def _text(
        self, keys: Sequence[str], shift: int, stretches: Sequence[tuple[int, int, int, int]], plain: set[str]
    ) -> str:
        """The template; keys that are compared by `=` leave a group without a key empty, whatever the data are."""
        near = " OR ".join(
            f"CAST({q} AS BIGINT) * (less + w) - CAST({p} AS BIGINT) * n > {above} AND "
            f"CAST({q} AS BIGINT) * less - CAST({p} AS BIGINT) * n < {below}"
            for p, q, above, below in stretches
        )
        template = _RANK + (_CELLS if shift else _NEAR)
        return template.format(
            keys="".join(f"{key}, " for key in keys),
            of_r="".join(f"r.{key}, " for key in keys),
            same="".join(f"r.{k} {'=' if k in plain else 'IS NOT DISTINCT FROM'} s.{k} AND " for k in keys),
            partition=f"PARTITION BY {', '.join(keys)}" if keys else "",
            cell=f"(v >> {shift})" if shift else "v",
            near=near,
            nulls="NULLS FIRST" if self.reader.dialect.NAME == "spark" else "",
            shift=shift,
        )

    def _mode(self, printed: Term, grouped: Term, measurement: Measurement, release: Release) -> None:
        """Premise: a row for each key and value, its weight, and the value's number among the candidates, no two of
        one. Conclusion: an owner raises scores by the owner's weights. Why: 1.21, MODE."""
        columns = columns_of(printed)
        if printed.op != "select" or len(printed.args[0].args[0]) != 1 or printed.args[0].args[2]:
            raise Refused("lemmas: mode, a weight for each value")
        [source] = printed.args[0].args[0]
        if source.args[0] is not grouped or list(columns) != [*release.keys, "v", "less", "w", "n"]:
            raise Refused("lemmas: mode, a weight for each value")
        nothing = self.pool("cast", self.pool("num", 0, "int"), ("int", 64))
        if columns["less"] is not nothing or columns["n"] is not nothing:
            raise Refused("lemmas: mode, a weight for each value")
        group = [self.pool("col", source, name) for name in release.keys]
        self.lemmas.keys_are(group, [columns[name] for name in release.keys])
        if columns["w"] is not self.pool("col", source, "w"):
            raise Refused("lemmas: mode, a weight for each value")
        value = columns["v"]
        value = value.args[0] if value.op == "cast" else value
        if value.op != "case" or value.args[1].op != "null" or measurement.candidates is None:
            raise Refused("lemmas: mode, a value's number")
        numbers = [then.args[0] for _, then in value.args[0] if then.op == "num"]
        tested = {when.args[0] for when, _ in value.args[0] if when.op in ("eq", "isnull")}
        if len(set(numbers)) != len(value.args[0]) or not all(
            0 <= one < measurement.candidates for one in numbers
        ):
            raise Refused("lemmas: mode, a value's number")
        if len(tested) != 1 or tested != {self.pool("col", source, "x")}:
            raise Refused("lemmas: mode, a value's number")
        self._groups(grouped, columns_of(grouped)["x"], release)
