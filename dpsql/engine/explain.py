"""EXPLAIN: each release with its measures, noise and charge, the backend SQL and the post-processing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from html import escape
from textwrap import wrap

from ..budget import ZERO, Charge, Fresh, Status, shown_epsilon
from ..mechanisms import ATTO, NANO, Gaussian, RankChoice, RankSplit, Thresholded, Truncated
from ..plan.measures.bivariate import Bivariate
from ..plan.measures.formulas import Chosen, ChosenOf, Linear, Variance
from ..plan.measures.measurements import Coord, Joint
from ..plan.measures.mode import ModeMeasurement
from ..plan.measures.ranks import Ranked, SplitMeasurement
from ..plan.measures.value_bars import Ends
from ..plan.planner import Plan, releases_of
from ..plan.privacy.rows import OwnedRows, Release, selects_in
from ..plan.release_plan import ReleasePlan
from ..relation.intervals import LOG_PARTS, LogLattice
from ..relation.map_tables import tables_in
from ..relation.relations import AggregateCall, Block, Relation
from ..release.expected_error import MISSING, expected_error
from ..release.post_processing import Compiled, DatabasePart
from ..release.topped_up import said_of_top_up
from ..words import counted
from .answer import charged_text, left_text, said_delta
from .batch import PricedBatch, PricedStatement
from .contribution import (
    asserted_keys,
    cells_of,
    contribution_lines,
    declared_in,
    group_lines,
    keys_text,
    sums_of,
    what_binds,
)
from .selection import selection_figures, selection_lines
from .settings import decimal_text

__all__ = [
    "Explanation",
    "batch_dict",
    "batch_lines",
    "call_text",
    "expected_errors",
    "layout_sql",
    "number_text",
    "origin_of",
]

Names = dict[tuple[Release, int], str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a query would release and cost; `status` is the ledger's now, `usual` the epsilon of a usual statement.

    `origins`: what of it the store has an answer for in a grouping of other groups, in words.
    `chosen`: the epsilon that an accuracy takes, in words; None where an epsilon was set. `notes`: see
    `bias_notes`. `more`: what would be drawn now.
    """

    plan: Plan
    compiled: Compiled
    intermediates: tuple[Compiled, ...]
    status: Status
    usual: Fraction
    origins: tuple[str, ...] = ()
    chosen: str | None = None
    notes: tuple[str, ...] = ()
    more: tuple[Fresh | None, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return the same for programs; numbers are exact decimals or fractions as text."""
        names = _result_names(self.compiled.relation)
        return {
            "releases": [
                _release(number, plan, names)
                | {"grouping_sets": [asdict(one) for one in _sets(self.plan, plan)]}
                for number, plan in enumerate(self.plan.releases)
            ],
            "charge": self._charge(),
            "epsilon_left": decimal_text(Fraction(self.status.left_nano, NANO)),
            "groups_of_persons": list(group_lines(self.plan, self.status.accounting)),
            "now": said_of_top_up(self.more),
            "chosen": self.chosen,
            "notes": list(self.notes),
            "from_the_store": list(self.origins),
            "intermediates": [_sql_of(intermediate) for intermediate in self.intermediates],
            "public_parts": [
                part.sql
                for compiled in (*self.intermediates, self.compiled)
                for part in _fetched(compiled)
                if _is_whole(compiled)
            ],
            "post_processing": _sql_of(self.compiled),
        }

    @property
    def _is_pure(self) -> bool:
        return not self.status.in_rho

    def _charge(self) -> dict[str, str]:
        delta = said_delta(self.plan.delta)
        if self._is_pure:
            return {"epsilon": decimal_text(self.plan.epsilon), "delta": delta}
        rho = rho_of(self.plan)
        return {"epsilon": shown_epsilon(rho), "delta": delta, "rho": decimal_text(Fraction(rho, ATTO))}

    def _price(self) -> str:
        if self._is_pure:
            return self.chosen or f"epsilon {decimal_text(self.plan.epsilon)}"
        charged = charged_text(rho_of(self.plan))
        return f"{self.chosen}, {charged}" if self.chosen else charged

    def json_text(self) -> str:
        """Return `as_dict` as JSON text."""
        return json.dumps(self.as_dict(), indent=2)

    def __repr__(self) -> str:
        return "\n".join(self._lines(with_sql=False))

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return (
            f"<pre>{escape(repr(self))}</pre>"
            f"<details><summary>with the SQL that is run</summary><pre>{escape(self.text())}</pre></details>"
        )

    def text(self) -> str:
        """Return the same for people."""
        return "\n".join(self._lines(with_sql=True))

    def _lines(self, *, with_sql: bool) -> list[str]:
        names = _result_names(self.compiled.relation)
        lines: list[str] = []
        for number, plan in enumerate(self.plan.releases):
            lines += _release_text(number, plan, names, _sets(self.plan, plan))
            lines += _backend_text(plan) if with_sql else []
        if (topped_up := said_of_top_up(self.more)) is not None:
            charge = f"{topped_up} ({self._price()} in all)"
        elif (
            any(one.is_stored for plan in self.plan.releases for one in plan.measures)
            and not self.plan.epsilon
        ):
            charge = "nothing, it is stored"
        elif self.plan.releases:
            delta = f", delta {said_delta(self.plan.delta)}" if self.plan.delta else ""
            charge = f"{self._price()}{delta} (nothing, if it is answered already)"
        else:
            charge = "nothing"
        lines.append(f"charge: {charge}; {left_text(self.status, self.usual)}")
        lines += [f"  {said}" for said in group_lines(self.plan, self.status.accounting)]
        for origin in self.origins:
            lines += wrap(f"now: {origin}", _WIDTH, subsequent_indent="  ")
        for note in self.notes:
            lines += wrap(f"note: {note}", _WIDTH, subsequent_indent="  ")
        if not with_sql:
            return lines
        for number, intermediate in enumerate(self.intermediates):
            lines += _compiled_text(f"intermediate result {number + 1}", intermediate)
        lines += _compiled_text("post-processing", self.compiled)
        return lines


def rho_of(plan: Plan) -> int:
    """Return the zCDP loss of what is to be drawn, in 1e-18."""
    return sum(release.measures[i].rho_atto for release in plan.releases for i in _paid(release))


def _paid(release: ReleasePlan) -> tuple[int, ...]:
    return () if release.is_empty else release.fresh


def _fetched(compiled: Compiled) -> tuple[DatabasePart, ...]:
    """Return the public parts that are brought together with released rows."""
    return () if compiled.in_database else compiled.parts


def _is_whole(compiled: Compiled) -> bool:
    """Say whether the public tables that are read have all of their columns here: SQL over them counts all."""
    return not any(table.unnamed for table in tables_in(compiled.relation))


def _sql_of(compiled: Compiled) -> str:
    return compiled.sql if _is_whole(compiled) else "not shown"


def _compiled_text(title: str, compiled: Compiled) -> list[str]:
    if not _is_whole(compiled):
        return [f"{title}: not shown"]
    where = " (public tables alone, in the database)" if compiled.in_database else ""
    lines = [f"{title}{where}:", *_indented(compiled.sql, "  ")]
    for number, part in enumerate(_fetched(compiled)):
        lines += [f"  p{number}, public, from the database:", *_indented(part.sql, "    ")]
    return lines


def number_text(value: Fraction) -> str:
    """Return an exact decimal where it is short, else a rounded one."""
    exact = decimal_text(value)
    return exact if Fraction(exact) == value and len(exact) <= 15 else f"{float(value):.6g}"


def _release(number: int, plan: ReleasePlan, names: Names) -> dict[str, object]:
    bounding = plan.bounding
    return {
        "name": f"r{number}",
        "table": plan.release.rows.shown_name,
        "neighbours": "replace-one" if bounding.replace_one else "add-remove",
        "together": bounding.together,
        "max_rows": bounding.in_all,
        "max_groups": bounding.groups,
        "declared": declared_in(plan),
        "noise_set_by": what_binds(plan),
        **({"asserted_keys": keys} if (keys := asserted_keys(plan)) else {}),
        "groups": None if plan.groups is None else len(plan.groups),
        "threshold": plan.tau,
        "found_share": None if plan.counted is None else decimal_text(plan.measures[plan.counted].share),
        "shown_just_below": None if plan.key_law is None else _share(plan.key_law.coin),
        "delta": said_delta(plan.delta),
        "measures": [_measure(plan, index) for index in range(len(plan.measurements))],
        "outputs": [
            {
                "name": call.function,
                "column": names.get((plan.release, len(plan.release.keys) + i)),
                "expected": _expected(plan, i),
            }
            for i, call in enumerate(plan.release.aggregates)
        ],
        "backend_sql": [query.sql for query in plan.queries(plan.fresh)] if _is_seen(plan) else [],
    }


def _measure(plan: ReleasePlan, index: int) -> dict[str, object]:
    measurement = plan.measurements[index]
    if isinstance(measurement, ModeMeasurement):
        return _mode(plan, index, measurement)
    if isinstance(measurement, Ranked):
        return _choice(plan, index, measurement)
    if index == plan.selection:
        return selection_figures(plan)
    if isinstance(measurement, Joint):
        return _together(plan, index, measurement)
    lattice_step = Fraction(1) if measurement.lattice is None else measurement.lattice.step
    step = lattice_step / measurement.denominator
    scale = plan.measures[index].scale
    variance = (
        2 * (scale * step) ** 2 if _is_laplace(plan, index) else plan.measures[index].law.spread * step**2
    )
    return {
        "measure": measurement.label,
        "coordinates": measurement.size,
        "lattice": str(lattice_step),
        "sensitivity": _reach_text(measurement.squared_sensitivity, step)
        if plan.is_zcdp
        else number_text(measurement.sensitivity * step),
        "scale": number_text(scale * step),
        "variance": number_text(variance),
        "plus_minus_95": _half_width_text(_half_width(plan, index) * step),
        "epsilon": decimal_text(plan.measures[index].epsilon),
        "stored": plan.measures[index].is_stored,
    } | _of_zcdp(plan, index)


def _of_zcdp(plan: ReleasePlan, index: int) -> dict[str, object]:
    """Return what is said besides where rho adds up: the law of the noise or the choice, and its part of rho."""
    if not plan.is_zcdp or plan.is_empty:
        return {}
    return {"law": plan.measures[index].law.family, "rho": number_text(plan.losses[index])}


def _is_laplace(plan: ReleasePlan, index: int) -> bool:
    return plan.is_empty or not isinstance(plan.measures[index].law, (Gaussian, Thresholded))


def _reach_text(squared: int, step: Fraction) -> str:
    """Return the root of a squared sensitivity, in steps of the lattice: exact where it is a number."""
    root = math.isqrt(squared)
    if root**2 == squared:
        return number_text(root * step)
    return f"{math.sqrt(squared * step**2):.6g}"


def _together(plan: ReleasePlan, index: int, measurement: Joint) -> dict[str, object]:
    """Return what is drawn together: the claim is in rows, and each coordinate has a width of its own."""
    law, unit = plan.measures[index].law, measurement.denominator
    parts = []
    for place, part in enumerate(measurement.parts):
        half = law.at(place).half_width(MISSING) * part.step / unit
        parts.append({"part": part.in_joint[0], "plus_minus_95": _half_width_text(half)})
    kinds = [part.in_joint for part in measurement.parts]
    named = [
        one if kinds.count((one, many)) == 1 else f"{kinds.count((one, many))} {many}"
        for one, many in dict.fromkeys(kinds)
    ]
    return {
        "measure": f"{', '.join(named[:-1])} and {named[-1]} together",
        "coordinates": measurement.size,
        "lattice": "1",
        "sensitivity": _reach_text(measurement.squared_sensitivity, Fraction(1, unit))
        if plan.is_zcdp
        else number_text(Fraction(measurement.sensitivity, unit)),
        "scale": number_text(plan.measures[index].scale / unit),
        "parts": parts,
        "epsilon": decimal_text(plan.measures[index].epsilon),
        "stored": plan.measures[index].is_stored,
    } | _of_zcdp(plan, index)


def _together_text(plan: ReleasePlan, index: int, shown: dict[str, object], price: str) -> list[str]:
    parts = shown["parts"]
    assert isinstance(parts, list)
    widths = ", ".join(f"{one['part']} ± {one['plus_minus_95']}" for one in parts)
    coordinates, size = plan.measurements[index].size, len(parts)
    several = "" if coordinates == size else f", {coordinates} numbers a group"
    drawn = "" if shown["stored"] else " in one draw"
    family = plan.measures[index].law.family + ("" if plan.is_zcdp else f" scale {shown['scale']}")
    return [
        f"  {shown['measure']}{several}: {price}{drawn}",
        *wrap(
            f"{_sensitivity_text(plan, index)} in rows, {family}; at 95 %: {widths}",
            _WIDTH, initial_indent="    ", subsequent_indent="      ",
        ),
    ]  # fmt: skip


def _sensitivity_text(plan: ReleasePlan, index: int) -> str:
    """Return a sensitivity in words; of several persons together it is as many times one person's."""
    measurement, together = plan.measurements[index], plan.bounding.together
    step = (
        Fraction(1) if measurement.lattice is None else measurement.lattice.step
    ) / measurement.denominator
    name, one = "sensitivity", number_text(measurement.of_one * step)
    if plan.is_zcdp:
        name, one = "sensitivity (L2)", _reach_text(measurement.squared_of_one, step)
    if together == 1:
        return f"{name} {one}"
    return f"protects any {together} persons together: {name} {together} × {one}"


def _noise_text(plan: ReleasePlan, index: int, scale: object) -> str:
    """Return the noise in words: its law and the parameter that its kind has."""
    return f"{plan.measures[index].law.family} {'scale' if _is_laplace(plan, index) else 'sigma'} {scale}"


def _choice(plan: ReleasePlan, index: int, measurement: Ranked) -> dict[str, object]:
    """Return what is known of a choice by rank: all figures are in rows."""
    choice = plan.measures[index].choice
    lattice = measurement.known_lattice
    shown = {
        "measure": measurement.label,
        "coordinates": measurement.size,
        "lattice": str(lattice.step * 2 ** (0 if choice is None else choice.shift)),
        "sensitivity": number_text(Fraction(measurement.sensitivity, measurement.claim_unit)),
        "candidates": 0 if choice is None else choice.candidates,
        "scale": "log" if isinstance(lattice, LogLattice) else "linear",
        "rows_95": _half_width(plan, index),
        "epsilon": decimal_text(plan.measures[index].epsilon),
        "stored": plan.measures[index].is_stored,
    }
    if isinstance(choice, RankSplit):
        assert isinstance(measurement, SplitMeasurement)
        shown["depths"] = measurement.depths
    elif isinstance(choice, RankChoice) and choice.offset:
        shown["rows_inside"] = _rows_inside(measurement, choice)
    return shown


def _mode(plan: ReleasePlan, index: int, measurement: ModeMeasurement) -> dict[str, object]:
    """Return what is known of a choice among listed values: all figures are in rows."""
    return {
        "measure": measurement.label,
        "coordinates": 1,
        "sensitivity": number_text(Fraction(measurement.sensitivity, measurement.claim_unit)),
        "candidates": len(measurement.candidates),
        "rows_95": _half_width(plan, index),
        "epsilon": decimal_text(plan.measures[index].epsilon),
        "stored": plan.measures[index].is_stored,
    }


def _rows_inside(measurement: Ranked, choice: RankChoice) -> int:
    """Return how many rows from the end of the values a minimum or maximum is looked for."""
    return math.ceil(Fraction(abs(choice.offset), measurement.claim_unit))


def _price_text(plan: ReleasePlan, index: int) -> str:
    """Return what a measurement costs: epsilon, and the rho that it stands for where that adds up."""
    price = f"epsilon {decimal_text(plan.measures[index].epsilon)}"
    return f"{price} (rho {number_text(plan.losses[index])})" if plan.is_zcdp else price


def _choice_text(shown: dict[str, object], price: str) -> list[str]:
    if shown["stored"]:
        near = "of the wanted rank" if "lattice" in shown else "of the most frequent value"
        return [f"  {shown['measure']}: stored already", f"    within {shown['rows_95']} rows {near} at 95 %"]
    if "lattice" not in shown:
        return [
            f"  {shown['measure']}: {price}, {shown['candidates']} candidates",
            f"    sensitivity {shown['sensitivity']} of rows, permute-and-flip, "
            f"at most {shown['rows_95']} rows fewer than the most at 95 %",
        ]
    if "depths" in shown:
        said = f"weights in rows, exponential mechanism, one after the other {shown['depths']} times"
    else:
        said = "a score in rows, exponential mechanism"
    is_log = shown["scale"] == "log"
    apart = f"1/{LOG_PARTS} apart by size (scale log)" if is_log else f"steps of {shown['lattice']}"
    return [
        f"  {shown['measure']}: {price}, {shown['candidates']} candidates, {apart}",
        f"    sensitivity {shown['sensitivity']} of {said}, within {shown['rows_95']} rows at 95 %",
    ]


def _expected_rank(plan: ReleasePlan, number: int, share: Fraction) -> str:
    """Return where a chosen value is expected to stand among the rows."""
    measurement, choice = plan.measurements[number], plan.measures[number].choice
    assert isinstance(measurement, Ranked)
    if plan.is_empty:
        return "none"
    rows = _half_width(plan, number)
    if choice is None:  # it was chosen before, how far inside an end is not in the plan
        ends = {Fraction(0): "one near the smallest", Fraction(1): "one near the largest"}
        return f"within {rows} rows of {ends.get(share) or _wanted(share)} at 95 %"
    if isinstance(choice, RankSplit):
        choice = choice.choice(share, choice.candidates)
    assert isinstance(choice, RankChoice)
    if not choice.offset:
        return f"within {rows} rows of {_wanted(share)} at 95 %"
    inside = _rows_inside(measurement, choice)
    which = "smaller" if share == 0 else "larger"
    return f"at most {rows + inside} rows {which} at 95 %; of fewer than {2 * inside} rows it says little"


def _wanted(share: Fraction) -> str:
    return "the true median" if share == Fraction(1, 2) else f"the true percentile {number_text(share)}"


def _ends_text(plan: ReleasePlan, ends: Ends) -> str:
    """Return between which values a bar is."""
    low, high = (
        "the end of the bounds" if one is None else f"the value at {number_text(_share_at(plan, one))}"
        for one in (ends.low, ends.high)
    )
    return f"its bars from {low} to {high}"


def _share_at(plan: ReleasePlan, coordinate: Coord) -> Fraction:
    measurement = plan.measurements[coordinate.measure]
    assert isinstance(measurement, SplitMeasurement)
    return measurement.shares[coordinate.place]


def _half_width(plan: ReleasePlan, number: int) -> int:
    return 0 if plan.is_empty else plan.measures[number].law.half_width(MISSING)


def _half_width_text(value: Fraction) -> str:
    """Return what stands after ±: six digits, and all digits before the point."""
    digits = max(0, 5 - math.floor(math.log10(value))) if value else 0
    return decimal_text(Fraction(round(value, digits)))


def _expected(plan: ReleasePlan, index: int, cells: int = 1) -> str:
    """Return the same in words: a figure, or a formula in the number of rows n."""
    formula = plan.formulas[index]
    if index in plan.zeros:
        return "0, exactly and free: no row can count in it"
    if isinstance(formula, Chosen):
        if formula.coordinate is None:
            return "the one value that the statement leaves"
        if isinstance(formula, ChosenOf):
            rows = _half_width(plan, formula.coordinate.measure)
            return f"at most {rows} rows fewer than the most frequent value at 95 %"
        share = plan.release.aggregates[index].share
        rank = _expected_rank(plan, formula.coordinate.measure, share)
        return rank if formula.ends is None else f"{rank}, {_ends_text(plan, formula.ends)}"
    half, is_per_row = expected_error(plan, index, cells=cells)
    is_one = isinstance(formula, Linear) and len(formula.terms) == 1 and cells == 1
    shown = _half_width_text(half) if is_one else f"{float(half):.6g}"
    if not is_per_row:
        return f"± {shown}"
    of = {Variance: " (of the variance)", Bivariate: " (of the covariance)"}.get(type(formula), "")
    return f"± {shown} / n at most{of}"


def _at(plan: ReleasePlan, index: int) -> str:
    """Return at which level an expected error is meant, where it is one of noise on numbers."""
    return "" if isinstance(plan.formulas[index], Chosen) or index in plan.zeros else " at 95 %"


def expected_errors(plan: Plan, compiled: Compiled) -> Iterator[tuple[str, str]]:
    """Yield the aggregates that an answer is made of, by the names of their columns, with their expected errors."""
    names, asked = _result_names(compiled.relation), set(releases_of(plan.root))
    for release in plan.releases:
        if release.release not in asked or release.is_empty:
            continue
        for index, call in enumerate(release.release.aggregates):
            name = names.get((release.release, len(release.release.keys) + index))
            at = _at(release, index)
            yield name or call_text(call, release.release.rows), _expected(release, index) + at


@dataclass(frozen=True, slots=True)
class _Set:
    """A grouping set whose rows are each the sum of so many groups of a release; `expected`: error by aggregate."""

    keys: str
    cells: int
    expected: tuple[str, ...]


def _sets(plan: Plan, release: ReleasePlan) -> list[_Set]:
    found = []
    for node in sums_of(plan, release.release):
        cells = cells_of(release, node)
        errors = tuple(_expected(release, i, cells) for i in range(len(release.formulas)))
        found.append(_Set(keys_text(node), cells, () if release.is_empty else errors))
    return found


def _release_text(number: int, plan: ReleasePlan, names: Names, sets: Sequence[_Set]) -> list[str]:
    bounding, release = plan.bounding, plan.release
    lines = [f'release r{number} from "{release.rows.shown_name}"']
    lines += [f"  {line}" for line in contribution_lines(plan)]
    if keys := asserted_keys(plan):
        said = "a key that the owner asserts" if len(keys) == 1 else "keys that the owner asserts"
        lines.append(f"  {said}: {', '.join(keys)}; verified in the files that are read, or not answered")
    if plan.is_empty:
        by = "constraints that the database enforces" if plan.is_proved else "the statement's own text"
        return [*lines, f"  no row can count, by {by}: answered exactly, and free"]
    if plan.groups is None:
        lines += _found_text(plan)
    elif bounding.grouped:
        source = "declared" if not plan.listed_from else f"the keys of {', '.join(plan.listed_from)}, public"
        lines.append(f"  groups: {len(plan.groups)}, {source}")
    lines += [f"  {said}" for said in selection_lines(plan, _whole_error(plan))]
    for index in range(len(plan.measurements)):
        shown = _measure(plan, index)
        if index == plan.selection:
            continue
        if isinstance(plan.measurements[index], Ranked | ModeMeasurement):
            lines += _choice_text(shown, _price_text(plan, index))
            continue
        several = "" if shown["coordinates"] == 1 else f", {shown['coordinates']} numbers a group"
        price = "stored already" if shown["stored"] else _price_text(plan, index)
        if isinstance(plan.measurements[index], Joint):
            lines += _together_text(plan, index, shown, price)
            continue
        lines += [
            f"  {shown['measure']}{several}: {price}",
            f"    {_sensitivity_text(plan, index)}, {_noise_text(plan, index, shown['scale'])}, "
            f"variance {shown['variance']}, ± {shown['plus_minus_95']} at 95 %",
        ]
    for index, call in enumerate(release.aggregates):
        name = names.get((release, len(release.keys) + index))
        said = call_text(call, release.rows)
        shown_as = said if name is None or said.startswith(f"{name}(") else f"{name} = {said}"
        lines.append(f"  {shown_as}: expected {_expected(plan, index)}{_at(plan, index)}")
    for one in sets:
        of = "the groups themselves" if one.cells == 1 else f"each row the sum of {one.cells} groups"
        errors = ", ".join(
            f"{call_text(call, release.rows)} {said}"
            for call, said in zip(release.aggregates, one.expected, strict=True)
        )
        lines.append(f"  grouping set {one.keys}: {of}; {errors}")
    return lines


def _backend_text(plan: ReleasePlan) -> list[str]:
    if plan.is_empty:
        return []
    if not _is_seen(plan):
        return ["  backend: not shown"]
    lines: list[str] = []
    for query in plan.queries(plan.fresh):
        title = "backend:"
        if plan.selection is not None and plan.selection not in query.measurements:
            title = "backend, here with the first groups in place of those that are chosen:"
        lines += [f"  {title}", *_indented(query.sql, "    ")]
    return lines


def _is_seen(plan: ReleasePlan) -> bool:
    """Say whether the SQL of a release can be shown: it names keys, and counts columns, which may have no name here."""
    sources = (item.source.uncut for select in selects_in(plan.release.rows) for item in select.items)
    return not any(source.table is not None and source.table.unnamed for source in sources)


def _whole_error(plan: ReleasePlan) -> str:
    """Return the error that what groups are chosen by would have where all are answered; nothing else is."""
    whole, top = plan.unselected, plan.top
    return "" if whole is None or top is None else _expected(whole, top.aggregate)


def _found_text(plan: ReleasePlan) -> list[str]:
    """Return by which rule groups found in the data are shown."""
    assert plan.key_law is not None
    assert plan.tau is not None
    coin = plan.key_law.coin
    below = f", and {_share(coin)} of those at {plan.tau - 1}" if coin else ""
    said = f"is at most {plan.key_law.bound} (delta {said_delta(plan.delta)})"
    if not isinstance(plan.key_law, Truncated):
        said = f"lifts a group of few people so high with probability delta {said_delta(plan.delta)} at most"
    return [
        f"  groups: those whose noisy count of people reaches {plan.tau}{below}",
        f"    the noise {said}",
        *_found_share_text(plan),
    ]


def _found_share_text(plan: ReleasePlan) -> list[str]:
    """Return what part of a release's charge finds its groups; nothing where that is all of it."""
    assert plan.counted is not None
    share = plan.measures[plan.counted].share
    if share == 1:
        return []
    what = "rho" if plan.is_zcdp else "epsilon"
    return [f"    it has {number_text(100 * share)} % of {what} (dpsql.found_share): less lifts that number"]


def _share(coin: Fraction) -> str:
    """Return a share for people: rounded, but never to all or nothing."""
    return f"{min(max(round(100 * coin), 1), 99)} %"


# --- whose column an output is ----------------------------------------------------------------------


def _result_names(root: Relation) -> Names:
    """Return the analyst's column names of release outputs that reach the result as they are."""
    names: Names = {}
    for index, column in enumerate(root.columns):
        origin = origin_of(root, index)
        if origin is not None and column.name:
            names.setdefault(origin, column.name)
    return names


def origin_of(relation: Relation, index: int) -> tuple[Release, int] | None:
    """Return the release and its output that column `index` of a relation carries unchanged, if one."""
    while isinstance(relation, Block):
        origin = None if relation.last == "distinct" else relation.origin(index)
        if origin is None:
            return None
        relation, index = origin
    return (relation, index) if isinstance(relation, Release) else None


def call_text(call: AggregateCall, rows: OwnedRows) -> str:
    """Return an aggregate in the query's own words, as far as they are column names."""
    args = call.args[:1] if call.row.is_ordered else call.args
    plain = ["…" if arg.column is None else rows.columns[arg.column].name or "…" for arg in args]
    listed = f"({', '.join(plain)})" if call.distinct and len(plain) > 1 else ", ".join(plain)
    shown = f"{'DISTINCT ' if call.distinct else ''}{listed}" if call.args else "*"
    return f"{call.row.said or call.function}({shown})" + (" FILTER (…)" if call.filter is not None else "")


# --- SQL over several lines, for display alone --------------------------------------------------------

_WIDTH = 96
_PIECE = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | [(),] | \s+ | [^\s'"(),]+ | .""", re.VERBOSE | re.DOTALL
)
_CLAUSES = frozenset({"WITH", "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION"})


def layout_sql(sql: str, width: int = _WIDTH) -> list[str]:
    """Return printed SQL as indented lines: a clause a line, long ones broken at commas and blanks.

    For display alone: the pieces are those of `sql` in their order, and quoted text is never broken.
    """
    pieces = [" " if piece.isspace() else piece for piece in _PIECE.findall(sql)]
    lines: list[str] = []
    line, indent = "", ""
    levels = [True]  # open parentheses: does a query stand in them
    for index, piece in enumerate(pieces):
        following = pieces[index + 1 : index + 2]
        is_clause = piece in _CLAUSES and not (piece == "FROM" and line.endswith("DISTINCT "))
        breaks_before = levels[-1] and (is_clause or piece == ")") and len(levels) + len(line) > 1
        if piece == ")" and len(levels) > 1 and levels.pop() and breaks_before:
            indent = indent[2:]
        if breaks_before:
            lines += [line.rstrip()] if line.strip() else []
            line = indent
        if piece != " " or line.strip():
            line += piece
        if piece == "(":
            levels.append(following in (["SELECT"], ["WITH"]))
            if levels[-1]:
                lines.append(line)
                indent += "  "
                line = indent
        elif piece == " " and line.strip() not in ("", "),"):
            at_comma = levels[-1] and pieces[index - 1] == ","
            if len(line) + _reach(pieces, index + 1, is_item=at_comma) > width:
                lines.append(line.rstrip())
                line = indent + "  "
    return [*lines, line.rstrip()] if line.strip() else lines


def _indented(sql: str, indent: str) -> list[str]:
    return [indent + line for line in layout_sql(sql, _WIDTH - len(indent))]


def _reach(pieces: Sequence[str], start: int, *, is_item: bool) -> int:
    """Return how long the word is that begins at `start`, or the list item: to a comma outside parentheses."""
    depth = length = 0
    for index in range(start, len(pieces)):
        piece = pieces[index]
        if piece == " " and not is_item:
            break
        depth += (piece == "(") - (piece == ")")
        length += len(piece)
        if depth < 0 or (depth == 0 and (piece == "," or piece in _CLAUSES)):
            break
    return length


# --- what a batch would give and cost, in words and for programs --------------------------------------------


def batch_lines(price: PricedBatch, width: int) -> Iterator[str]:
    """Yield the list of prices; `width`: the most characters of a statement that are shown."""
    for one in price.statements:
        text = one.statement.text
        yield f"{one.statement.number}: {text if len(text) <= width else text[: width - 1] + '…'}"
        for name, expected in expected_errors(one.actual, one.prepared.compiled):
            yield f"   {name}: expected {expected}"
        yield f"   {_cost_text(one, in_rho=price.status.in_rho)}"
    statements = counted(len(price.statements), "statement")
    cost = "free" if price.charge == ZERO else _charge_text(price.charge, in_rho=price.status.in_rho)
    each = price.statements[0].statement.settings.epsilon
    yield f"all {statements}: {cost}; {left_text(price.status, each)} before"


def _cost_text(one: PricedStatement, *, in_rho: bool) -> str:
    uses = f"what statement {', '.join(map(str, one.uses))} draws" if one.uses else ""
    if one.charge != ZERO:
        return f"{_charge_text(one.charge, in_rho=in_rho)}{', beside ' + uses if uses else ''}"
    if uses:
        return f"free, from {uses}"
    return "free, it is stored" if one.is_stored else "free, nothing private is asked"


def _charge_text(charge: Charge, *, in_rho: bool) -> str:
    delta = f", delta {decimal_text(Fraction(charge.delta_atto, ATTO))}" if charge.delta_atto else ""
    said = charged_text(charge.rho_atto) if in_rho else _epsilon(charge)
    return f"{said}{delta}"


def _epsilon(charge: Charge) -> str:
    return f"epsilon {decimal_text(Fraction(charge.epsilon_nano, NANO))}"


def batch_dict(price: PricedBatch) -> dict[str, object]:
    """Return the same for programs; amounts are exact decimals as text."""
    return {
        "statements": [
            {
                "number": one.statement.number,
                "line": one.statement.place.line,
                "sql": one.statement.text,
                "charge": _amounts(one.charge, in_rho=price.status.in_rho),
                "uses": list(one.uses),
                "stored": one.is_stored,
                "expected": [
                    {"column": name, "error": expected}
                    for name, expected in expected_errors(one.actual, one.prepared.compiled)
                ],
            }
            for one in price.statements
        ],
        "charge": _amounts(price.charge, in_rho=price.status.in_rho),
        "epsilon_left": decimal_text(Fraction(price.status.left_nano, NANO)),
    }


def _amounts(charge: Charge, *, in_rho: bool) -> dict[str, str]:
    delta = {"delta": decimal_text(Fraction(charge.delta_atto, ATTO))}
    if in_rho:
        return {"rho": decimal_text(Fraction(charge.rho_atto, ATTO))} | delta
    return {"epsilon": decimal_text(Fraction(charge.epsilon_nano, NANO))} | delta
