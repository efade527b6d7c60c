"""One statement answered many times over the same exact numbers, its bars with it; the truth is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.engine import Session, spine
from dpsql.release.post_processing import Compiled, Patience, PublicRows, run_public
from dpsql.release.released import ReleasedMeasurement
from dpsql.release.run import ReleasedRows
from dpsql.testing.injected_noise import SeededSource, ZeroNoise

__all__ = ["Repeated", "repeated"]


@dataclass
class Repeated:
    """A statement with its exact releases; `truth` is its answer over them, `columns` are its columns' names."""

    session: Session
    compiled: Compiled
    exact: list[ReleasedRows]
    public: PublicRows
    columns: list[str]
    truth: Sequence[tuple[Any, ...]]

    def answers(self, count: int, seed: int = 1) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Yield so many answers, each with draws of its own."""
        source = SeededSource(seed)
        for _ in range(count):
            rows = [_noised(one, source) for one in self.exact]
            patience = Patience(None)
            yield run_public(
                self.compiled, rows, self.session.dataset.sealed, Fraction(19, 20), self.public, patience
            )
            assert not patience.without_bars

    def coverage(self, count: int, keys: int = 1, seed: int = 1) -> dict[str, float]:
        """Return for each column with bars how often these hold the truth of a row with the same first `keys` columns.

        A statement of several groups counts each of its rows.
        """
        truth = {row[:keys]: row for row in self.truth}
        held: dict[str, list[bool]] = {}
        for answer in self.answers(count, seed):
            for row in answer:
                for place, name in enumerate(self.columns):
                    if f"{name}_low" not in self.columns:
                        continue
                    low, high = row[place + 1], row[place + 2]
                    if row[place] is None:  # the noisy count of its values is zero or less
                        assert low is high is None, name
                        continue
                    assert low is not None
                    assert high is not None, name
                    true = float(truth[row[:keys]][place])
                    slack = 1e-9 * max(1.0, abs(true))
                    held.setdefault(name, []).append(float(low) - slack <= true <= float(high) + slack)
        return {name: float(np.mean(each)) for name, each in held.items()}


def repeated(session: Session, sql: str, monkeypatch: pytest.MonkeyPatch) -> Repeated:
    """Return a statement over its exact numbers; it is charged once, and nothing of it is remembered."""
    caught: list[tuple[Compiled, list[ReleasedRows], PublicRows]] = []

    def catch(compiled: Compiled, rows: Any, engine: Any, level: Any, public: Any, *more: Any) -> Any:
        caught.append((compiled, rows, public))
        return run_public(compiled, rows, engine, level, public, *more)

    session._noise = ZeroNoise()
    with monkeypatch.context() as patched:
        patched.setattr(spine, "run_public", catch)
        session.execute("SET dpsql.reuse = off")
        session.execute("SET dpsql.intervals = 0.95")
        answer = session.execute(sql)
    compiled, rows, public = caught[-1]
    return Repeated(session, compiled, rows, public, [column.name for column in answer.columns], answer.rows)


def _noised(rows: ReleasedRows, source: SeededSource) -> ReleasedRows:
    """Return a release with draws of its laws on all of its numbers."""
    found = ReleasedRows(rows.plan, rows.groups, {}, rows.keyset)
    for number, measurement in rows.measurements.items():
        values = tuple(
            value + law.draw(len(value), source)
            for value, law in zip(measurement.values, measurement.laws, strict=True)
        )
        found.measurements[number] = ReleasedMeasurement(values, measurement.groups, measurement.laws)
    return found
