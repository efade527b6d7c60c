"""The laws of noise: each module has one distribution, with what is known of it beside its exact sampler."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from ..law import Law
from .box import Box, Coordinate
from .noise import Gaussian, Gaussians, Laplace
from .rank import Rank
from .square_root import SquareRoot
from .truncated import Thresholded, Truncated

_READERS: dict[str, Callable[[str], Law]] = {
    Box.name: Box.read,
    Coordinate.name: Coordinate.read,
    Gaussian.name: Gaussian.read,
    Gaussians.name: Gaussians.read,
    Rank.name: Rank.read,
    SquareRoot.name: SquareRoot.read,
    Thresholded.name: Thresholded.read,
    Truncated.name: Truncated.read,
}
"""By the first word of a law's text. A new law is one more row."""


class UnknownLaw(ValueError):
    """The text of a law that this version does not know: a newer one wrote it."""


@lru_cache(maxsize=1024)  # a draw's is read at each station
def law_of(text: str) -> Law:
    """Return the law that a ledger's text names: a bare fraction is discrete Laplace noise of that scale.

    Raises UnknownLaw for a name that this version does not know, ValueError for what is not the text of a law.
    """
    name, *rest = text.split(" ")
    if rest and name.isalpha() and name not in _READERS:
        raise UnknownLaw(f"the law {name} is not known")
    law = _READERS[name](text) if rest and name in _READERS else Laplace(Fraction(text))
    if law.text != text:
        raise ValueError("not the text of a law")
    return law
