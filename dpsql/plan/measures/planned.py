"""One measurement of a release with what its draw costs, and the law that is on it."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from ...mechanisms import Law
from ...records import dataclass
from .measurements import Choice, Loss, Measurement


@dataclass(frozen=True)
class Planned:
    """A measurement, its loss, and its law, scale and choice by these.

    `given`: a law that is fixed elsewhere (the rule by which groups are shown, a stored draw, the ledger); None: it
    follows from measurement and loss.
    `is_stored`: a stored draw has it, which is neither charged nor asked. What costs nothing and is not stored is
    answered exactly, without the engine: no law is on it, and its scale is 0. `share`: its part of what its release may
    spend, by the text alone.
    """

    measurement: Measurement
    loss: Loss
    given: Law | None = None
    is_stored: bool = False
    share: Fraction = Fraction(1)

    @property
    def epsilon(self) -> Fraction:
        """What it costs in epsilon; of rho, that of the pure draw that costs as much."""
        return self.loss.epsilon

    @property
    def rho_atto(self) -> int:
        """What it costs in zCDP, in 1e-18 and rounded up; of a pure draw by its epsilon."""
        return self.loss.rho_atto

    @property
    def is_exact(self) -> bool:
        """Whether it gets no noise, since no row can count."""
        return self.loss.is_nothing and not self.is_stored

    @cached_property
    def law(self) -> Law:
        """The law of the noise that it is to have. Not for what is exact."""
        return self.measurement.drawn(self.loss) if self.given is None else self.given

    @property
    def scale(self) -> Fraction:
        """The noise scale, in the coordinates' own fractions; 0 for what is exact."""
        if self.is_exact:
            return Fraction(0)
        return self.law.scale if self.is_stored else self.measurement.scale_at(self.loss, self.law)

    @cached_property
    def choice(self) -> Choice | None:
        """What is chosen for each group; None: numbers are noised, or it was chosen before, or nothing is drawn."""
        return None if self.is_exact or self.is_stored else self.measurement.choice_at(self.loss)
