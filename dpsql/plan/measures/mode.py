"""The most frequent of a few known values: what MODE asks for (soundness.md 1.21).

House rules:

1. Candidates are the declared values, or the whole numbers, dates and truth values inside the bounds: text and policy
   say which. Rows with another value count nowhere.
2. Scores are weights of rows, as in 1.20: a unit's sum to at most R·U over all values and groups.
"""

from __future__ import annotations

from fractions import Fraction

from ...mechanisms import FlipChoice, Rank
from ...records import dataclass
from ...relation.catalog import Scalar
from .measurements import Loss, Measurement
from .ranks import WeighedChoice

__all__ = ["ModeMeasurement"]


@dataclass(frozen=True, slots=True)
class ModeMeasurement(WeighedChoice):
    """The number of a candidate whose rows are nearly the most, by permute-and-flip."""

    kind = "mode"
    label = "choice of a value"

    candidates: tuple[Scalar, ...]

    def choosing(self, loss: Loss) -> Fraction:
        """Return the epsilon of a choice: permute-and-flip costs what any pure draw does (1.25)."""
        return loss.epsilon

    def key_of(self, part: int) -> tuple[object, ...]:
        return (*Measurement.key_of(self, part), self.candidates)

    def choice(self, epsilon: Fraction) -> FlipChoice:
        """Return the choice that is made for each group."""
        return FlipChoice(len(self.candidates), 1 / self.scale(epsilon))

    def law(self, epsilon: Fraction) -> Rank:
        """Return what is known of how many rows fewer the chosen value has than the most frequent one."""
        return Rank(self.scale(epsilon) / self.claim_unit, len(self.candidates))
