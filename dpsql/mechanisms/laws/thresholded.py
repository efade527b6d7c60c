"""Discrete Gaussian noise on a count of people, and the threshold by which groups found in the data are shown.

A group of n >= 1 people is shown, as n + Y, when n + Y > `bound`. What that costs is proved in soundness.md 1.25:
the rho of the noise, and as delta the probability that a group of the changed units alone is shown.

House rule: a group of nobody is never tested, since Y alone could bring it above any bound.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from ..law import Independent
from ..uniform import RandomSource
from .gaussian import Gaussian

__all__ = ["Thresholded"]


@dataclass(frozen=True, slots=True)
class Thresholded(Independent):
    """See `Law`, and `within` for how one is made; `scale` is the noise's sigma.

    Raises as `Gaussian` does, and ValueError on a bound below 1.
    """

    family: ClassVar[str] = "discrete Gaussian"
    name: ClassVar[str] = "thresholded"
    is_additive: ClassVar[bool] = False
    """Groups whose counts it hides are missing, and a missing group is not 0: no sums of such draws."""
    coin: ClassVar[Fraction] = Fraction(0)
    """How often a noisy count of `bound` is shown."""
    scale: Fraction
    bound: int

    def __post_init__(self) -> None:
        Gaussian(self.scale)
        if type(self.bound) is not int or self.bound < 1:
            raise ValueError("a bound is at least 1")

    @classmethod
    def within(cls, noise: Gaussian, delta: Fraction, groups: int, together: int) -> Thresholded:
        """Return the law of the least bound under which what is found costs at most `delta`.

        `groups`: in how many one unit may be; `together`: how many units change. A group that is theirs alone has
        n <= together people, and all these n together are at most together·groups: so the chance that any is shown
        is at most together·groups·max over n of Pr[Y > bound - n]/n.
        """
        if not isinstance(delta, Fraction):
            raise TypeError(f"delta is an exact Fraction, not {type(delta).__name__}")
        each = delta / (together * groups)
        bound = noise.upper_quantile(min(each, Fraction(1, 3))) + together - 1
        while bound > together and all(noise.tail(bound - n) <= n * each for n in range(1, together + 1)):
            bound -= 1
        return cls(noise.scale, bound)

    @property
    def text(self) -> str:
        return f"{self.name} {self.scale} {self.bound}"

    @classmethod
    def read(cls, text: str) -> Thresholded:
        """Return the law that `text` wrote. Raises ValueError."""
        _, scale, bound = text.split(" ")
        return cls(Fraction(scale), int(bound))

    @property
    def noise(self) -> Gaussian:
        """What is on a count before it is tested."""
        return Gaussian(self.scale)

    @property
    def spread(self) -> Fraction:
        return self.noise.spread

    def half_width(self, beta: Fraction) -> int:
        return self.noise.half_width(beta)

    def upper_quantile(self, probability: Fraction) -> int:
        return self.noise.upper_quantile(probability)

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return self.noise.tails(at)

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        return self.noise.draw(count, source)

    def shown(self, noisy: npt.NDArray[Any], coins: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which groups are shown, in the shape of their noisy counts; `coins` are not looked at."""
        return np.asarray(noisy > self.bound, dtype=np.bool_)
