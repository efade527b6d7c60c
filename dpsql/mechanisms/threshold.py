"""Thresholds for groups whose keys are not declared: a key is shown only if its noisy unit count reaches tau.

Source: soundness.md 1.7, and 1.18 for several units together: tau speaks of the noise that is really on the tested
number.
"""

from __future__ import annotations

from fractions import Fraction

from .law import Law

__all__ = ["threshold"]


def threshold(law: Law, delta: Fraction, groups: int, minimum_units: int = 1, together: int = 1) -> int:
    """Return the smallest tau with Pr[minimum_units + Y >= tau] <= delta / groups, Y of `law`.

    For k units `together` the smallest tau with k·groups·Pr[minimum_units - 1 + n + Y >= tau] / n <= delta for each
    n from 1 to k; with Laplace noise, whose tail is geometric, n = 1 and n = k decide (soundness.md 1.18).

    Requires: the tested number is a count of distinct units plus one noise of `law`; one unit moves it by
    at most 1 and touches at most `groups` keys, both enforced in the SQL that runs (law L9). Keys with fewer
    than `minimum_units` units never come to the test. 10^-900 <= delta / groups < 1/2.
    Ensures: the keys that fewer than `minimum_units` others than these units have are all hidden with probability
    >= 1 - delta (union bound over `groups`). For one unit, Laplace noise and minimum_units = 1,
    tau = 1 + ceil(scale ln(groups / ((1+q) delta))).
    Raises TypeError on a float, ValueError on numbers out of range; all of them are public.
    """
    if not isinstance(delta, Fraction):
        raise TypeError(f"delta is an exact Fraction, not {type(delta).__name__}")
    if groups < 1 or minimum_units < 1 or together < 1:
        raise ValueError("groups, minimum_units and together are at least 1")
    one, all_in_one = law.upper_quantile(delta / (together * groups)), law.upper_quantile(delta / groups)
    return minimum_units - 1 + max(1 + one, together + all_in_one)
