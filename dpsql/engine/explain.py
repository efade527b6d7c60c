"""EXPLAIN: each release with its measures, noise and charge, the backend SQL and the post-processing.

Tools read the shape of Postgres' plans, `(cost=0.00..0.10 rows=5 width=0)`, so it is told in that shape too. A plan's
cost is the epsilon that the statement would be charged now, and its rows are the groups that it has beforehand: those
declared, or stored already. Neither is an estimate of the engine's, whose statistics are of people's rows. What dpsql
has to say besides stands under keys of its own in the same nodes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ..budget import ZERO, Charge, Fresh, Status, charge_of, delta_text, epsilon_text, shown_epsilon
from ..mechanisms import NANO, Gaussian, RankChoice, RankSplit, SquareRoot, Thresholded, Truncated
from ..plan.measures.formulas import Bivariate, Chosen, ChosenOf, Linear, Variance
from ..plan.measures.measurements import Coord, Joint, Measurement
from ..plan.measures.ranks import Ends, ModeMeasurement, Ranked, SplitMeasurement
from ..plan.planner import Plan, releases_of
from ..plan.privacy.rows import Release, selects_in
from ..plan.release_plan import ReleasePlan
from ..policy.periods import most_of
from ..records import dataclass
from ..regex import regex
from ..relation.intervals import LOG_PARTS, LogLattice
from ..relation.relations import Relation, tables_in
from ..release.post_processing import Compiled, DatabasePart
from ..release.price import MISSING, expected_error, said_of_entries, said_of_missing
from ..words import counted
from .answer import charged_text, left_text, said_delta
from .contribution import (
    apart_lines,
    asserted_keys,
    cells_of,
    contribution_lines,
    declared_in,
    group_lines,
    keys_text,
    period_lines,
    sums_of,
    what_binds,
)
from .notes import call_text, origins_of
from .selection import selection_figures
from .settings import decimal_text, number_text

if TYPE_CHECKING:
    from .batch import PricedBatch, PricedStatement

Names = dict[tuple[Release, int], str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a query would release and cost; `status` is the ledger's now, `usual` the epsilon of a usual statement.

    `origins`: what of it the store has an answer for in a grouping of other groups, in words.
    `chosen`: the epsilon that an accuracy takes, in words; None where an epsilon was set. `notes`: see
    `bias_notes`. `more`: what would be drawn now; `places`: for which release, by number. `groups`: how many each
    release has beforehand, 0 where they are found and none is stored.
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
    places: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()

    @property
    def costs(self) -> list[Fraction]:
        """The epsilon that each release would be charged now."""
        releases = range(len(self.plan.releases))
        return [self._epsilon((of, one) for of, one in self._drawn if of == number) for number in releases]

    @property
    def cost(self) -> Fraction:
        """The epsilon that the statement would be charged now."""
        return self._epsilon(self._drawn)

    @property
    def _drawn(self) -> list[tuple[int, Fresh]]:
        """What would be drawn now, and for which release."""
        places = zip(self.places, self.more, strict=True)
        return [(number, one) for number, one in places if one is not None]

    def _epsilon(self, drawn: Iterable[tuple[int, Fresh]]) -> Fraction:
        charge = charge_of((self.plan.releases[number].slices, one.charge) for number, one in drawn)
        if self.status.in_rho:
            return Fraction(shown_epsilon(charge.rho_atto))
        return Fraction(charge.epsilon_nano, NANO)

    @property
    def rows(self) -> int:
        """How many groups the answer has beforehand: of several releases, those of the one with the most."""
        asked = set(releases_of(self.plan.root))
        releases = zip(self.plan.releases, self.groups, strict=True)
        return max((groups for release, groups in releases if release.release in asked), default=0)

    def as_dict(self) -> dict[str, object]:
        """Return all that is said, for programs; numbers are exact decimals or fractions as text."""
        names = _result_names(self.compiled.relation, is_apart=bool(self.plan.apart))
        releases = [_release(self.plan, number, one, names) for number, one in enumerate(self.plan.releases)]
        drawn = {number for number, _ in self._drawn}
        for group in self.plan.apart:
            releases[group[0]]["periods"] = apart_lines(self.plan, group, drawn)
            for number in group[1:]:
                releases[number]["as"] = f"r{group[0]}"
        return {
            "releases": releases,
            "charge": self._charge(),
            "epsilon_left": epsilon_text(self.status.left_nano),
            "left": left_text(self.status, self.usual),
            "groups_of_persons": list(group_lines(self.plan, self.status.accounting)),
            "now": said_of_missing(self.more),
            "chosen": self.chosen,
            "notes": list(self.notes),
            "from_the_store": [*self.origins, *said_of_entries(self.more)],
            "intermediates": [_sql_of(intermediate) for intermediate in self.intermediates],
            "public_parts": [
                part.sql
                for compiled in (*self.intermediates, self.compiled)
                for part in _fetched(compiled)
                if _is_whole(compiled)
            ],
            "post_processing": _sql_of(self.compiled),
        }

    def _charge(self) -> dict[str, str]:
        said, delta = {"said": self._price()}, said_delta(self.plan.delta)
        if not self.status.in_rho:
            return {"epsilon": decimal_text(self.plan.epsilon), "delta": delta} | said
        rho = rho_of(self.plan)
        return {"epsilon": shown_epsilon(rho), "delta": delta, "rho": delta_text(rho)} | said

    def _price(self) -> str:
        """Return what is charged, in words."""
        plan, price = self.plan, self.chosen
        if self.status.in_rho:
            charged = charged_text(rho_of(plan))
            price = f"{price}, {charged}" if price else charged
        price = price or f"epsilon {decimal_text(plan.epsilon)}"
        if (missing := said_of_missing(self.more)) is not None:
            return f"{missing} ({price} in all)"
        if not plan.epsilon and any(one.is_stored for release in plan.releases for one in release.measures):
            return "nothing, it is stored"
        delta = f", delta {said_delta(plan.delta)}" if plan.delta else ""
        return f"{price}{delta} (nothing, if it is answered already)" if plan.releases else "nothing"

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

    def _lines(self, *, with_sql: bool) -> Iterator[str]:
        shown: Any = self.as_dict()
        for release, plan in zip(shown["releases"], self.plan.releases, strict=True):
            if "as" in release:
                continue  # but for its period it is the first one's, which says all
            yield from _release_lines(release)
            yield from _backend_lines(plan) if with_sql else ()
        yield f"charge: {shown['charge']['said']}; {shown['left']}"
        yield from (f"  {said}" for said in shown["groups_of_persons"])
        for kind, said in (("now", shown["from_the_store"]), ("note", shown["notes"])):
            for one in said:
                yield from wrap(f"{kind}: {one}", _WIDTH, subsequent_indent="  ")
        if with_sql:
            for number, intermediate in enumerate(self.intermediates):
                yield from _compiled_lines(f"intermediate result {number + 1}", intermediate)
            yield from _compiled_lines("post-processing", self.compiled)


def rho_of(plan: Plan) -> int:
    """Return the zCDP loss of what is to be drawn, in 1e-18."""
    paid = (
        (release.slices, sum(release.measures[i].rho_atto for i in _paid(release)))
        for release in plan.releases
    )
    return int(most_of((slices, Fraction(rho)) for slices, rho in paid))


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


def _compiled_lines(title: str, compiled: Compiled) -> Iterator[str]:
    if not _is_whole(compiled):
        yield f"{title}: not shown"
        return
    yield f"{title}{' (public tables alone, in the database)' if compiled.in_database else ''}:"
    yield from _indented(compiled.sql, "  ")
    for number, part in enumerate(_fetched(compiled)):
        yield f"  p{number}, public, from the database:"
        yield from _indented(part.sql, "    ")


# --- all that is said of a release ----------------------------------------------------------------------------


def _release(plan: Plan, number: int, release: ReleasePlan, names: Names) -> dict[str, object]:
    """Return all that is said of a release: figures as text, and in words what is no figure."""
    bounding, law = release.bounding, release.key_law
    first, calls = len(release.release.keys), release.release.aggregates
    return {
        "name": f"r{number}",
        "table": release.release.rows.shown_name,
        **({"level": level} if (level := _level_of(plan, number)) else {}),
        "neighbours": "replace-one" if bounding.replace_one else "add-remove",
        "together": bounding.together,
        "max_rows": bounding.in_all,
        "max_groups": bounding.groups,
        "a_person": list(contribution_lines(release)),
        **({"periods": said} if (said := period_lines(plan, release)) else {}),
        "declared": declared_in(release),
        "noise_set_by": what_binds(release),
        **({"asserted_keys": keys} if (keys := asserted_keys(release)) else {}),
        "empty_by": _emptied_by(release),
        "groups": None if release.groups is None else len(release.groups),
        "groups_from": _groups_from(release),
        "threshold": release.tau,
        "found_share": None
        if release.counted is None
        else decimal_text(release.measures[release.counted].share),
        "shown_just_below": None if law is None or not law.coin else _share(law.coin),
        "noise_at_most": law.bound if isinstance(law, Truncated) else None,
        "delta": said_delta(release.delta),
        "measures": [_measure(release, index) for index in range(len(release.measurements))],
        "outputs": [
            {
                "name": call.function,
                "aggregate": call_text(call, release.release.rows),
                "column": names.get((release.release, first + index)),
                "expected": _expected(release, index),
                "level": _level(release, index),
            }
            for index, call in enumerate(calls)
        ],
        "backend_sql": [query.sql for query in release.queries(release.fresh)] if _is_seen(release) else [],
        "grouping_sets": [
            {
                "keys": keys_text(node),
                "cells": (cells := cells_of(release, node)),
                "expected": [_expected(release, i, cells) for i in range(len(calls)) if not release.is_empty],
            }
            for node in sums_of(plan, release.release)
        ],
    }


def _level_of(plan: Plan, number: int) -> dict[str, str] | None:
    """Return which release a level is drawn for, and what it is by; None: it is none."""
    for one in plan.strategies:
        if number in one.levels:
            return {"of": f"r{one.release}", "by": one.names[one.levels.index(number)]}
    return None


def _emptied_by(release: ReleasePlan) -> str | None:
    """Return by what no row can count; None: rows can."""
    if not release.is_empty:
        return None
    return "constraints that the database enforces" if release.is_proved else "the statement's own text"


def _groups_from(release: ReleasePlan) -> str | None:
    """Return where groups that are listed come from; None: they are found, or all rows are one."""
    if release.groups is None or not release.bounding.grouped:
        return None
    return f"the keys of {', '.join(release.listed_from)}, public" if release.listed_from else "declared"


def _share(coin: Fraction) -> str:
    """Return a share for people: rounded, but never to all or nothing."""
    return f"{min(max(round(100 * coin), 1), 99)} %"


def _is_seen(release: ReleasePlan) -> bool:
    """Say whether the SQL of a release can be shown: it names keys, and counts columns, which may have no name here."""
    sources = (item.source.uncut for select in selects_in(release.release.rows) for item in select.items)
    return not any(source.table is not None and source.table.unnamed for source in sources)


def _measure(plan: ReleasePlan, index: int) -> dict[str, object]:
    """Return all that is said of a measurement; of choices the figures are in rows."""
    measurement, planned = plan.measurements[index], plan.measures[index]
    if index == plan.selection:
        return selection_figures(plan, _whole_error(plan))
    if isinstance(measurement, ModeMeasurement | Ranked):
        figures = _choice(plan, index, measurement)
    else:
        figures = _noise(plan, index, measurement)
    price = {"epsilon": decimal_text(planned.epsilon), "stored": planned.is_stored}
    if not plan.is_zcdp or plan.is_empty:
        return figures | price
    return figures | price | {"rho": number_text(plan.losses[index])}


def _whole_error(plan: ReleasePlan) -> str:
    """Return the error that what groups are chosen by would have where all are answered; nothing else is."""
    whole, top = plan.unselected, plan.top
    return "" if whole is None or top is None else _expected(whole, top.aggregate)


def _noise(plan: ReleasePlan, index: int, measurement: Measurement) -> dict[str, object]:
    """Return the noise of a measurement; of what is drawn together each part has a width of its own, in rows."""
    planned, lattice = plan.measures[index], measurement.lattice
    unit = Fraction(1) if lattice is None else lattice.step
    step = unit / measurement.denominator
    shown = {
        "measure": measurement.label,
        "coordinates": measurement.size,
        "lattice": str(unit),
        "sensitivity": _sensitivity(plan, measurement.sensitivity, planned.squared_sensitivity, step),
        "of_one": _sensitivity(plan, measurement.of_one, planned.column * measurement.squared_of_one, step),
        "scale": number_text(planned.scale * step),
    } | ({} if plan.is_empty else {"law": planned.law.family})
    if isinstance(measurement, Joint) and not plan.is_empty:
        widths = [
            planned.law.at(place).half_width(MISSING) * part.step / measurement.denominator
            for place, part in enumerate(measurement.parts)
        ]
        kinds = [part.in_joint for part in measurement.parts]
        named = [
            one if kinds.count((one, many)) == 1 else f"{kinds.count((one, many))} {many}"
            for one, many in dict.fromkeys(kinds)
        ]
        return shown | {
            "measure": f"{', '.join(named[:-1])} and {named[-1]} together",
            "parts": [
                {"part": kind, "plus_minus_95": _half_width_text(width)}
                for (kind, _), width in zip(kinds, widths, strict=True)
            ],
        }
    is_gaussian = not plan.is_empty and isinstance(planned.law, Gaussian | SquareRoot | Thresholded)
    variance = planned.law.spread * step**2 if is_gaussian else 2 * (planned.scale * step) ** 2
    return shown | {
        "variance": number_text(variance),
        "plus_minus_95": _half_width_text(_half_width(plan, index) * step),
    }


def _sensitivity(plan: ReleasePlan, reach: int, squared: int, step: Fraction) -> str:
    """Return a sensitivity in L1, under zCDP in L2, in steps of the lattice: exact where it is a number."""
    if not plan.is_zcdp:
        return number_text(reach * step)
    root = math.isqrt(squared)
    return number_text(root * step) if root**2 == squared else f"{math.sqrt(squared * step**2):.6g}"


def _choice(plan: ReleasePlan, index: int, measurement: ModeMeasurement | Ranked) -> dict[str, object]:
    """Return what is known of a choice: by rank, or among listed values, which are on no lattice."""
    sensitivity = number_text(Fraction(measurement.sensitivity, measurement.claim_unit))
    rows = {"rows_95": _half_width(plan, index)}
    if isinstance(measurement, ModeMeasurement):
        return {
            "measure": measurement.label, "coordinates": 1, "sensitivity": sensitivity,
            "candidates": len(measurement.candidates),
        } | rows  # fmt: skip
    choice, lattice = plan.measures[index].choice, measurement.known_lattice
    shown: dict[str, object] = {
        "measure": measurement.label,
        "coordinates": measurement.size,
        "lattice": str(lattice.step * 2 ** (0 if choice is None else choice.shift)),
        "sensitivity": sensitivity,
        "candidates": 0 if choice is None else choice.candidates,
        "scale": "log" if isinstance(lattice, LogLattice) else "linear",
    }
    if isinstance(choice, RankSplit):
        assert isinstance(measurement, SplitMeasurement)
        return shown | rows | {"depths": measurement.depths}
    if isinstance(choice, RankChoice) and choice.offset:
        return shown | rows | {"rows_inside": _rows_inside(measurement, choice)}
    return shown | rows


# --- the lines that are printed of it -------------------------------------------------------------------------

_CANDIDATES = "{measure}: {price}, {candidates} candidates"
_MEASURED = {
    "chosen": (
        "chooses {chosen} of {candidates} groups ({costs}), then {then}; the whole histogram would have {whole}",
        "{by}, of a person at most {most_in_a_group} in a group: sensitivity {sensitivity} of each score, "
        "permute-and-flip",
        "{missed} at 95 %",
        "another LIMIT, or the whole histogram, is another charge; SET dpsql.selection = off gives the histogram",
    ),
    "depths": (
        _CANDIDATES + ", {apart}",
        "sensitivity {sensitivity} of weights in rows, exponential mechanism, one after the other {depths} times, "
        "within {rows_95} rows at 95 %",
    ),
    "parts": ("{measure}{several}: {price}{drawn}", "{reach} in rows, {law}{together}; at 95 %: {widths}"),
    "variance": (
        "{measure}{several}: {price}",
        "{reach}, {law} {unit} {scale}, variance {variance}, ± {plus_minus_95} at 95 %",
    ),
    "lattice": (
        _CANDIDATES + ", {apart}",
        "sensitivity {sensitivity} of a score in rows, exponential mechanism, within {rows_95} rows at 95 %",
    ),
    "rows_95": (
        _CANDIDATES,
        "sensitivity {sensitivity} of rows, permute-and-flip, at most {rows_95} rows fewer than the most at 95 %",
    ),
}
"""What is said of a measurement by the first of these names that its dictionary has: a line, and those below it."""
_STORED = {
    "lattice": ("{measure}: {price}", "within {rows_95} rows of the wanted rank at 95 %"),
    "rows_95": ("{measure}: {price}", "within {rows_95} rows of the most frequent value at 95 %"),
}
"""The same of choices that are stored."""


def _measure_lines(shown: dict[str, Any], together: int) -> Iterator[str]:
    """Yield what is said of a measurement of which this is known; it protects so many persons together."""
    is_zcdp, parts = "rho" in shown, shown.get("parts", ())
    price = f"epsilon {shown['epsilon']}" + (f" (rho {shown['rho']})" if is_zcdp else "")
    name = "sensitivity (L2)" if is_zcdp else "sensitivity"
    one = f"{name} {shown.get('of_one')}"
    words = shown | {
        "price": "stored already" if shown["stored"] else price,
        "several": ""
        if shown.get("coordinates") == max(len(parts), 1)
        else f", {shown.get('coordinates')} numbers a group",
        "reach": one
        if together == 1
        else f"protects any {together} persons together: {name} {together} × {shown.get('of_one')}",
        "unit": "sigma" if shown.get("law") in (Gaussian.family, SquareRoot.family) else "scale",
        "apart": f"1/{LOG_PARTS} apart by size (scale log)"
        if shown.get("scale") == "log"
        else f"steps of {shown.get('lattice')}",
        "drawn": "" if shown["stored"] else " in one draw",
        "together": "" if is_zcdp else f" scale {shown.get('scale')}",
        "widths": ", ".join(f"{part['part']} ± {part['plus_minus_95']}" for part in parts),
    }
    kind = next(kind for kind in _MEASURED if kind in shown)
    said = _STORED.get(kind, _MEASURED[kind]) if shown["stored"] else _MEASURED[kind]
    first, *below = (line.format(**words) for line in said)
    yield f"  {first}"
    for line in below:
        if kind == "parts":
            yield from wrap(line, _WIDTH, initial_indent="    ", subsequent_indent="      ")
        else:
            yield f"    {line}"


def _release_lines(shown: dict[str, Any]) -> Iterator[str]:
    """Yield what is said of a release, from its dictionary."""
    level = shown.get("level")
    beside = (
        ""
        if level is None
        else f", {level['by']}, beside {level['of']}: what {level['of']} is told by as well"
    )
    yield f'release {shown["name"]} from "{shown["table"]}"{beside}'
    yield from (f"  {line}" for line in shown["a_person"])
    for line in shown.get("periods", ()):
        yield from wrap(line, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    if keys := shown.get("asserted_keys"):
        said = "a key that the owner asserts" if len(keys) == 1 else "keys that the owner asserts"
        yield f"  {said}: {', '.join(keys)}; verified in the files that are read, or not answered"
    if shown["empty_by"] is not None:
        yield f"  no row can count, by {shown['empty_by']}: answered exactly, and free"
        return
    if shown["groups"] is None:
        yield from (f"  {line}" for line in _found_lines(shown))
    elif shown["groups_from"] is not None:
        yield f"  groups: {shown['groups']}, {shown['groups_from']}"
    for measure in sorted(shown["measures"], key=lambda measure: "chosen" not in measure):
        yield from _measure_lines(measure, shown["together"])
    for one in shown["outputs"]:
        name, said = one["column"], one["aggregate"]
        named = said if name is None or said.startswith(f"{name}(") else f"{name} = {said}"
        yield f"  {named}: expected {one['expected']}{_at(one['level'])}"
    for one in shown["grouping_sets"]:
        of = "the groups themselves" if one["cells"] == 1 else f"each row the sum of {one['cells']} groups"
        outputs = zip(shown["outputs"], one["expected"], strict=True)
        errors = ", ".join(f"{output['aggregate']} {said}" for output, said in outputs)
        yield f"  grouping set {one['keys']}: {of}; {errors}"


def _found_lines(shown: dict[str, Any]) -> Iterator[str]:
    """Yield by which rule groups found in the data are shown."""
    threshold, share, delta = shown["threshold"], shown["shown_just_below"], f"delta {shown['delta']}"
    below = "" if share is None else f", and {share} of those at {threshold - 1}"
    yield f"groups: those whose noisy count of people reaches {threshold}{below}"
    if shown["noise_at_most"] is None:
        yield f"  the noise lifts a group of few people so high with probability {delta} at most"
    else:
        yield f"  the noise is at most {shown['noise_at_most']} ({delta})"
    if (part := Fraction(shown["found_share"])) != 1:
        what = "rho" if any("rho" in one for one in shown["measures"]) else "epsilon"
        yield f"  it has {number_text(100 * part)} % of {what} (dpsql.found_share): less lifts that number"


def _backend_lines(plan: ReleasePlan) -> Iterator[str]:
    if plan.is_empty:
        return
    if not _is_seen(plan):
        yield "  backend: not shown"
        return
    for query in plan.queries(plan.fresh):
        title = "backend:"
        if plan.selection is not None and plan.selection not in query.measurements:
            title = "backend, here with the first groups in place of those that are chosen:"
        yield f"  {title}"
        yield from _indented(query.sql, "    ")


# --- how far off numbers are expected to be -------------------------------------------------------------------


def _rows_inside(measurement: Ranked, choice: RankChoice) -> int:
    """Return how many rows from the end of the values a minimum or maximum is looked for."""
    return math.ceil(Fraction(abs(choice.offset), measurement.claim_unit))


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


def _level(plan: ReleasePlan, index: int) -> str | None:
    """Return at which level an expected error is meant; None where it is none of noise on numbers."""
    return None if isinstance(plan.formulas[index], Chosen) or index in plan.zeros else "95 %"


def _at(level: str | None) -> str:
    return "" if level is None else f" at {level}"


def expected_errors(plan: Plan, compiled: Compiled) -> Iterator[tuple[str, str]]:
    """Yield the aggregates that an answer is made of, by the names of their columns, with their expected errors."""
    names = _result_names(compiled.relation, is_apart=bool(plan.apart))
    asked = set(releases_of(plan.root))
    later = {number for group in plan.apart for number in group[1:]}
    for number, release in enumerate(plan.releases):
        if release.release not in asked or release.is_empty or number in later:
            continue
        for index, call in enumerate(release.release.aggregates):
            name = names.get((release.release, len(release.release.keys) + index))
            at = _at(_level(release, index))
            yield name or call_text(call, release.release.rows), _expected(release, index) + at


# --- whose column an output is ----------------------------------------------------------------------


def _result_names(root: Relation, *, is_apart: bool) -> Names:
    """Return the analyst's column names of release outputs that reach the result as they are."""
    names: Names = {}
    for index, column in enumerate(root.columns):
        for origin in origins_of(root, index, is_apart=is_apart):
            if column.name:
                names.setdefault(origin, column.name)
    return names


# --- SQL over several lines, for display alone --------------------------------------------------------

_WIDTH = 96
_PIECE = regex(r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | [(),] | \s+ | [^\s'"(),]+ | .""", re.VERBOSE | re.DOTALL)
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
    shown: Any = batch_dict(price)
    for one in shown["statements"]:
        text = one["sql"]
        yield f"{one['number']}: {text if len(text) <= width else text[: width - 1] + '…'}"
        yield from (f"   {of['column']}: expected {of['error']}" for of in one["expected"])
        yield f"   {one['cost']}"
    yield f"all {counted(len(shown['statements']), 'statement')}: {shown['cost']}; {shown['left']} before"


def batch_dict(price: PricedBatch) -> dict[str, object]:
    """Return what a batch would give and cost, for programs; amounts are exact decimals as text."""
    in_rho = price.status.in_rho
    return {
        "statements": [
            {
                "number": one.statement.number,
                "line": one.statement.place.line,
                "sql": one.statement.text,
                "charge": _amounts(one.charge, in_rho=in_rho),
                "cost": _cost_text(one, in_rho=in_rho),
                "uses": list(one.uses),
                "stored": one.is_stored,
                "expected": [
                    {"column": name, "error": expected}
                    for name, expected in expected_errors(one.actual, one.prepared.compiled)
                ],
            }
            for one in price.statements
        ],
        "charge": _amounts(price.charge, in_rho=in_rho),
        "cost": "free" if price.charge == ZERO else _charge_text(price.charge, in_rho=in_rho),
        "epsilon_left": epsilon_text(price.status.left_nano),
        "left": left_text(price.status, price.statements[0].statement.settings.epsilon),
    }


def _cost_text(one: PricedStatement, *, in_rho: bool) -> str:
    uses = f"what {_statements(one.uses)}" if one.uses else ""
    if one.charge != ZERO:
        return f"{_charge_text(one.charge, in_rho=in_rho)}{', beside ' + uses if uses else ''}"
    if uses:
        return f"free, from {uses}"
    return "free, it is stored" if one.is_stored else "free, nothing private is asked"


def _statements(numbers: Sequence[int]) -> str:
    """Return which statements draw, in words."""
    *before, last = map(str, numbers)
    return f"statements {', '.join(before)} and {last} draw" if before else f"statement {last} draws"


def _charge_text(charge: Charge, *, in_rho: bool) -> str:
    delta = f", delta {delta_text(charge.delta_atto)}" if charge.delta_atto else ""
    epsilon = f"epsilon {epsilon_text(charge.epsilon_nano)}"
    return f"{charged_text(charge.rho_atto) if in_rho else epsilon}{delta}"


def _amounts(charge: Charge, *, in_rho: bool) -> dict[str, str]:
    delta = {"delta": delta_text(charge.delta_atto)}
    if in_rho:
        return {"rho": delta_text(charge.rho_atto)} | delta
    return {"epsilon": epsilon_text(charge.epsilon_nano)} | delta


# --- EXPLAIN in the shape of Postgres' plans -------------------------------------------------------------


Node = dict[str, Any]


def plan_lines(explained: Explanation, form: str) -> list[str]:
    """Return what EXPLAIN answers, a text a row; `form`: text, json, xml or yaml."""
    plan = _answer_node(explained)
    if form == "json":
        return [json.dumps([{"Plan": plan}], indent=2, default=float)]
    if form == "xml":
        root = f'<explain xmlns="http://www.postgresql.org/2009/explain">\n{_xml("Query", {"Plan": plan}, 1)}'
        return [f"{root}</explain>"]
    if form == "yaml":
        return ["\n".join(_yaml([{"Plan": plan}], ""))]
    figures = f"cost=0.00..{_two_digits(plan['Total Cost'])} rows={plan['Plan Rows']} width=0"
    return [f"Answer  ({figures})", *explained.text().split("\n")]


def _answer_node(explained: Explanation) -> Node:
    said: Node = explained.as_dict()
    releases = zip(said.pop("releases"), explained.costs, explained.groups, strict=True)
    return {
        **_node("Answer", explained.cost, explained.rows),
        **said,
        "Plans": [
            {
                **_node("Release", cost, groups),
                "Parent Relationship": "Outer", "Relation Name": one.pop("table"), "Alias": one.pop("name"), **one,
            }
            for one, cost, groups in releases
        ],
    }  # fmt: skip


def _node(kind: str, cost: Fraction, rows: int) -> Node:
    return {
        "Node Type": kind,
        "Startup Cost": Fraction(0),
        "Total Cost": cost,
        "Plan Rows": rows,
        "Plan Width": 0,
    }


def _two_digits(cost: Fraction) -> str:
    """Return an exact decimal with two digits at least, as tools expect them."""
    whole, _, digits = (decimal_text(cost) or "0").partition(".")
    return f"{whole or '0'}.{digits:<02}"


# --- the same as XML and YAML ---------------------------------------------------------------------------------

_NO_XML = regex(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_YAML = regex(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_NO_TAG = regex(r"[^A-Za-z0-9_.-]")
_NESTED = (dict, list, tuple)
_ITEMS = {"Plans": "Plan"}
"""What an element of a list is called, where it is no `Item`."""


def _xml(key: str, value: object, depth: int) -> str:
    """Return an element, as Postgres writes them: a key is its tag, with - for what no tag has."""
    tag, indent = _NO_TAG.sub("-", key), "  " * depth
    if isinstance(value, dict):
        inside = "".join(_xml(name, one, depth + 1) for name, one in value.items())
    elif isinstance(value, (list, tuple)):
        inside = "".join(_xml(_ITEMS.get(key, "Item"), one, depth + 1) for one in value)
    else:
        return f"{indent}<{tag}>{_xml_text(value)}</{tag}>\n"
    return f"{indent}<{tag}>\n{inside}{indent}</{tag}>\n"


def _xml_text(value: object) -> str:
    return "" if value is None else escape(_NO_XML.sub("\ufffd", _plain(value)), quote=False)


def _plain(value: object) -> str:
    """Return a value as text: a cost is exact."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _two_digits(value) if isinstance(value, Fraction) else str(value)


def _yaml(value: object, indent: str) -> Iterator[str]:
    """Yield the lines of a mapping or a list; texts are quoted as in JSON, which YAML reads."""
    if isinstance(value, dict):
        for key, one in value.items():
            if isinstance(one, _NESTED) and one:
                yield f"{indent}{key}:"
                yield from _yaml(one, indent + "  ")
            else:
                yield f"{indent}{key}: {_yaml_text(one)}"
    elif isinstance(value, (list, tuple)):
        for one in value:
            first, *more = (
                _yaml(one, indent + "  ") if isinstance(one, _NESTED) and one else [_yaml_text(one)]
            )
            yield f"{indent}- {first.lstrip()}"
            yield from more


def _yaml_text(value: object) -> str:
    if isinstance(value, Fraction):
        return _two_digits(value)
    shown = json.dumps(value, ensure_ascii=False)
    return _NO_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", shown)
