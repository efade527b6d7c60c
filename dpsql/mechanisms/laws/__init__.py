"""The laws of noise: each module has one distribution, with what is known of it beside its exact sampler."""

from __future__ import annotations

from fractions import Fraction

from ..law import Law
from .laplace import Laplace
from .rank import Rank

__all__ = ["Laplace", "Rank", "law_of"]


def law_of(text: str) -> Law:
    """Return the law that a ledger's text names: a bare fraction is discrete Laplace noise of that scale.

    Raises ValueError for what this version does not know.
    """
    law: Law
    if text.startswith("rank "):
        scale, candidates = text.removeprefix("rank ").split()
        law = Rank(Fraction(scale), int(candidates))
    else:
        law = Laplace(Fraction(text))
    if law.text != text:
        raise ValueError("not the text of a law")
    return law
