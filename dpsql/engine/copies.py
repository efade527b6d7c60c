"""The laws of noise that stands in an analyst's own tables: bars over a copy are those over what it is a copy of.

With each table that a query made, the query is kept as it was asked, and up to which ledger entry draws answered it.
Who reads the table with error bars has the query read once more from the store: nothing is measured, nothing charged.
If that gives the very rows of the table, the table stands for the query, and its noise is that of the stored draws.

House rules:

1. A table stands for its query where the query gives its rows now, to the last of them, and never otherwise. What the
   analyst has written, and a table that is gone, are not taken for a query by their names.
2. One draw is one, in however many copies and releases it stands. What was read up to different entries may rest on
   common draws in ways that are not known: of those no bar is made of both.
3. What cannot be had is NULL, as a bar that took too long is. No answer has another number for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import EngineFailure, Refusal
from ..plan.privacy.rows import Release
from ..postprocess.bars import BAR_ENDS, holds_kept_noise
from ..postprocess.workspace import Origin
from ..records import dataclass
from ..relation.expressions import Expr, Scalar, map_children
from ..relation.relations import Relation, Scan, all_parts, called_in, projected
from ..release.post_processing import Compiled, Patience, PublicRows, compile_public
from ..release.price import Cost
from ..release.run import ReleasedRows
from ..sql.statement import written_query
from ..sql.workspace import WrittenQuery
from .settings import OWN, Settings
from .workspace import Kept

if TYPE_CHECKING:
    from .dataset import LazySnapshot, PreparedPlan
    from .spine import Spine

LOST = "error bars of own tables are NULL here: the queries that made them do not tell all of their rows now"
_DEEPEST = 20
_ALONE = "alone"
"""What is read without what is stored: how it depends on that is not known."""
_PLAIN = (str, int, float, bool, type(None))


class _NoLaws(Exception):
    """A table does not stand for its query."""


@dataclass(frozen=True, slots=True)
class Above:
    """What is computed above releases, and these; `is_lost`: a table does not stand for its query, and has no bars."""

    compiled: Compiled
    rows: Sequence[ReleasedRows]
    is_lost: bool = False


def asked_as(settings: Settings, kept: Kept, parameters: Sequence[object], newest: int) -> Origin | None:
    """Return a query as it is kept with the table that it made; None: its constants are none that are kept.

    `newest`: the number of the ledger's last entry.
    """
    if any(type(value) not in _PLAIN for value in parameters):
        return None
    shown = {name: settings.show(name) for name in OWN}
    shown["dpsql.reuse"] = "on"
    if settings.edition is None:
        shown["dpsql.edition"] = str(newest)
    return Origin(kept.query.text, tuple(parameters), tuple(shown.items()), settings.draws_ends)  # type: ignore[arg-type]


def with_laws(
    spine: Spine,
    prepared: PreparedPlan,
    rows: Sequence[ReleasedRows],
    snapshot: LazySnapshot,
    public: PublicRows,
) -> Above:
    """Return a statement over the queries that its own tables are copies of, where it asks for bars of their noise.

    Raises EngineFailure: cancelled.
    """
    plain = Above(prepared.compiled, rows)
    root = spine.barred_root(prepared.plan)
    if not holds_kept_noise(root) or not any(BAR_ENDS & called_in(one) for one in all_parts(root)):
        return plain
    types = [one.type for one in prepared.compiled.relation.columns]
    newest = spine.dataset.store.log(1)
    for edition in (*(str(one.seq) for one in newest), None):
        try:
            found = _Copies(spine, snapshot, public, edition).of(root, rows)
        except (_NoLaws, Refusal):
            continue
        except EngineFailure as failure:
            if failure.sqlstate == "57014":
                raise
            continue
        if [one.type for one in found.compiled.relation.columns] == types:
            return found
    return replace(plain, is_lost=True)


_Reading = str | None
"""Up to which ledger entry draws answered; None: all that are stored."""


@dataclass
class _Copies:
    """Puts queries in the place of the tables that they made. `edition`: in place of each query's own; None: that."""

    spine: Spine
    snapshot: LazySnapshot
    public: PublicRows
    edition: str | None
    told: dict[Release, tuple[ReleasedRows, _Reading]] = field(default_factory=dict)
    known: dict[tuple[bool, int], Relation] = field(default_factory=dict)
    depth: int = 0

    def of(self, root: Relation, rows: Sequence[ReleasedRows]) -> Above:
        """Return a relation over own tables as one over their queries, and the releases of both. Raises _NoLaws."""
        settings = self.spine.settings
        reading = self.edition if settings.edition is None else str(settings.edition)
        for one in rows:
            self._tell(one, reading if settings.reuse else _ALONE)
        compiled = self._compiled(self._over(root))
        told = list(self.told.values())
        for simulation in compiled.simulations:
            if len({told[number][1] for number in simulation.replicated}) > 1:
                raise _NoLaws
        return Above(compiled, [one for one, _ in told])

    def _compiled(self, root: Relation) -> Compiled:
        plans = [one.plan for one, _ in self.told.values()]
        return compile_public(root, plans, self.spine.dataset.dialect)

    def _tell(self, rows: ReleasedRows, reading: _Reading) -> None:
        """Take in a release. Raises _NoLaws: it was read otherwise as well."""
        known = self.told.get(rows.plan.release)
        if known is None:
            self.told[rows.plan.release] = rows, reading
        elif known[1] != reading or not _are_same(known[0], rows):
            raise _NoLaws

    def _over(self, node: Relation) -> Relation:
        """Return a relation with queries in the place of own tables that hold noise. Raises _NoLaws."""
        if isinstance(node, Scan) and holds_kept_noise(node):
            return self._query_of(node)
        if not holds_kept_noise(node):
            return node
        whole = node.over(*(self._over(below) for below in node.reads))
        return whole.map_expressions(self._within)

    def _within(self, expr: Expr) -> Expr:
        if isinstance(expr, Scalar):
            return replace(expr, relation=self._over(expr.relation))
        return map_children(expr, self._within)

    def _query_of(self, scan: Scan) -> Relation:
        """Return the query that a table is a copy of, which gives its rows. Raises _NoLaws."""
        own = scan.table.own
        assert own is not None
        place = own.is_temporary, own.number
        if place in self.known:
            return self.known[place]
        origin = self.spine.workspace.origin_of(own)
        if origin is None or self.depth > _DEEPEST:
            raise _NoLaws
        self.depth += 1
        with self._as_asked(origin) as reading:
            root = self._read_again(origin, reading)
            self._check_same(scan, root)
        self.depth -= 1
        if any(own.ends) and self.spine.settings.intervals != self._level_of(origin):
            raise _NoLaws  # its ends hold at another level
        self.known[place] = root
        return root

    def _level_of(self, origin: Origin) -> object:
        with self._as_asked(origin):
            return self.spine.settings.intervals

    @contextmanager
    def _as_asked(self, origin: Origin) -> Iterator[_Reading]:
        """Have the session's settings be those under which a query was asked. Raises Refusal: one is none any more."""
        spine, before = self.spine, self.spine.settings
        found, policy = Settings.of(spine.policy), spine.policy
        for name, value in origin.settings:
            found = found.set(name, self.edition or value if name == "dpsql.edition" else value, policy)
        spine.settings = replace(found, draws_ends=origin.draws_ends)
        try:
            yield self.edition or dict(origin.settings)["dpsql.edition"]
        finally:
            spine.settings = before

    def _read_again(self, origin: Origin, reading: _Reading) -> Relation:
        """Return what a query means over its releases, which are read from the store. Raises _NoLaws: not all are."""
        spine = self.spine
        query = written_query(WrittenQuery(origin.text))
        kept = Kept(WrittenQuery(origin.text), lambda relation: relation)
        prepared = spine.planned(query, tuple(origin.parameters), self.snapshot, kept)
        runner = spine.runner(prepared, query, self.public, Cost(), lambda: None)
        if not runner.from_store():
            other = spine.beside(prepared, runner)
            if other is None or not other[1].from_store():
                raise _NoLaws
            prepared, runner = other
        for one in spine.agreeing(runner, spine.dataset.store.epoch):
            self._tell(one, reading)
        return self._over(spine.barred_root(prepared.plan))

    def _check_same(self, scan: Scan, root: Relation) -> None:
        """Check that a query gives a table's rows, all of them and no other. Raises _NoLaws."""
        if [one.type.kind for one in root.columns] != [one.type.kind for one in scan.columns]:
            raise _NoLaws
        stored, given = self._rows(projected(scan, scan.row)), self._rows(root)
        if len(stored) != len(given) or sorted(map(repr, stored)) != sorted(map(repr, given)):
            raise _NoLaws

    def _rows(self, node: Relation) -> list[tuple[object, ...]]:
        compiled, spine = self._compiled(node), self.spine
        rows = [one for one, _ in self.told.values()]
        patience = Patience(spine.time_limit)
        found = spine.run_above(compiled, rows, self.public, patience)
        if patience.without_bars:
            raise _NoLaws
        return list(found)


def _are_same(one: ReleasedRows, other: ReleasedRows) -> bool:
    """Say whether two readings of a release are of the same draws: of the same numbers, under the same laws."""
    if one.groups is None or other.groups is None or one.groups.tuples() != other.groups.tuples():
        return False
    if one.measurements.keys() != other.measurements.keys() or one.plan.formulas != other.plan.formulas:
        return False
    pairs = [(one.measurements[index], other.measurements[index]) for index in one.measurements]
    return all(
        [law.text for law in a.laws] == [law.text for law in b.laws]
        and len(a.values) == len(b.values)
        and all(np.array_equal(x, y) for x, y in zip(a.values, b.values, strict=True))
        for a, b in pairs
    )
