"""What a statement asks of the ledger, and what it gets back: charges, claims, draws, reservations.

House rules:

1. Integers only: epsilon in 1e-9 (nano), delta and rho in 1e-18 (atto). A float never enters.
2. A charge is never negative: nothing in this package can take from what is spent (law L5).
3. A payload is noisy output and nothing else; this package neither reads nor logs it (law L8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING

from ..mechanisms import NANO, Law, Wish, precision_of, pure_epsilon, rho_of_pure
from ..policy import Slices
from ..policy.periods import most_of
from ..records import dataclass
from ..regex import regex
from ..relation.catalog import Ground
from .match import MOST_COMBINED, Laws, combined_draws

if TYPE_CHECKING:
    from .certificates import Certificate
    from .filter import Ration

_DIGEST = regex("[0-9a-f]{64}")

KEY_BYTES = 32
"""The length of a measure key (a sha256 digest)."""

MOST_EPSILON_NANO = 10**15
"""No single charge, cap or grant is larger: one million epsilon, far inside SQL's 64-bit integers."""

MOST_DELTA_ATTO = 10**18
"""No delta is larger than 1."""

MOST_RHO_ATTO = rho_of_pure(MOST_EPSILON_NANO)
"""No rho is larger than that of the largest epsilon."""


def epsilon_text(nano: int) -> str:
    """Return the plain decimal text of an epsilon in 1e-9: 1500000000 gives "1.5"."""
    return _decimal_text(nano, 9)


def delta_text(atto: int) -> str:
    """Return the plain decimal text of a delta (or rho) in 1e-18."""
    return _decimal_text(atto, 18)


def rho_text(atto: int) -> str:
    """Return a rho in 1e-18 for people, rounded to four digits."""
    return _rounded_text(atto, 18, 4)


def shown_epsilon(rho_atto: int) -> str:
    """Return the epsilon of the one pure draw that costs so much rho, for people: rounded to six digits.

    So shares that were rounded down do not show.
    """
    return _rounded_text(math.isqrt(2 * rho_atto * 10**6), 12, 6)


def epsilon_nano_of(rho_atto: int) -> int:
    """Return the epsilon, in 1e-9, of the one pure draw that costs so much rho, rounded down."""
    return math.isqrt(2 * rho_atto)


def _rounded_text(units: int, places: int, digits: int) -> str:
    return _decimal_text(round(units, min(0, digits - len(str(units)))), places)


def _decimal_text(units: int, places: int) -> str:
    whole, part = divmod(abs(units), 10**places)
    text = f"{whole}.{part:0{places}d}".rstrip("0").rstrip(".")
    return f"-{text}" if units < 0 else text


def require_integer(name: str, value: int, least: int, most: int) -> None:
    """Raise ValueError unless `value` is an int (no bool, no float) in [least, most]."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} must be an integer in [{least}, {most}]")


def require_text(name: str, value: str) -> None:
    """Raise ValueError unless `value` can be written as UTF-8 (a lone surrogate cannot)."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} is not valid Unicode text") from error


def is_digest(text: object) -> bool:
    """Return whether this is a sha256 in lower-case hex."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def _require_keys(measures: tuple[bytes, ...]) -> None:
    if not all(type(key) is bytes and len(key) == KEY_BYTES for key in measures):
        raise ValueError(f"a measure key is {KEY_BYTES} bytes")
    if len(set(measures)) != len(measures):
        raise ValueError("a measurement holds each measure once")


@dataclass(frozen=True, slots=True)
class Charge:
    """A privacy loss: epsilon in 1e-9, delta in 1e-18, and rho, its zCDP loss, in 1e-18; none is ever negative.

    rho is what the mechanism says it is: of a sum it is the sum, which no epsilon tells.
    """

    epsilon_nano: int
    delta_atto: int
    rho_atto: int

    def __post_init__(self) -> None:
        amounts = (self.epsilon_nano, self.delta_atto, self.rho_atto)
        if any(type(amount) is not int for amount in amounts):
            raise ValueError("a charge is made of integers")
        if min(amounts) < 0:
            raise ValueError("a charge is never negative")

    @classmethod
    def pure(cls, epsilon_nano: int, delta_atto: int = 0) -> Charge:
        """Return the charge of ONE (epsilon, delta)-DP draw."""
        return cls(epsilon_nano, delta_atto, rho_of_pure(epsilon_nano))

    @classmethod
    def of(cls, wish: Wish, loss: int) -> Charge:
        """Return the charge of a draw of some loss, in the unit that a wish counts in."""
        if not wish.is_zcdp:
            return cls.pure(loss)
        return cls(max(1, math.ceil(pure_epsilon(loss) * NANO)), 0, loss)

    def loss(self, wish: Wish) -> int:
        """Return it in the unit that a wish counts in."""
        return self.amount(in_rho=wish.is_zcdp)

    def amount(self, *, in_rho: bool) -> int:
        """Return what of it adds up: epsilon in 1e-9, or rho in 1e-18."""
        return self.rho_atto if in_rho else self.epsilon_nano

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            self.epsilon_nano + other.epsilon_nano,
            self.delta_atto + other.delta_atto,
            self.rho_atto + other.rho_atto,
        )


ZERO = Charge(0, 0, 0)


def charge_of(parts: Iterable[tuple[Slices | None, Charge]]) -> Charge:
    """Return what draws are charged together: under a budget by periods, what the slice is that is charged most."""
    own = list(parts)
    if all(slices is None for slices, _ in own):
        return sum((one for _, one in own), ZERO)

    def most(of: Callable[[Charge], int]) -> int:
        return int(most_of((slices, Fraction(of(one))) for slices, one in own))

    return Charge(
        most(lambda one: one.epsilon_nano), most(lambda one: one.delta_atto), most(lambda one: one.rho_atto)
    )


@dataclass(frozen=True, slots=True)
class GroupingKey:
    """A group key of a stored measurement: which (a digest of the key and its public values), and how many values it
    has.

    `is_complete`: no row has any other value, so that the groups of all its values together have every row.
    """

    digest: bytes
    size: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Grouping:
    """What a measurement over groups that are known beforehand may answer besides its own question (soundness.md 3.8).

    `family`: a key that measurements of the same rows and measures share, whatever they are grouped by. Its groups are
    the product of its keys' values, in order, the last key's fastest.
    """

    family: bytes
    keys: tuple[GroupingKey, ...]


@dataclass(frozen=True, slots=True)
class StoredGrouping:
    """A stored draw that has a grouping: its ledger entry, and the law of its noise."""

    entry: int
    law: Law
    grouping: Grouping


@dataclass(frozen=True, slots=True)
class Known:
    """What stored draws of other groupings of the same rows leave to be drawn of a measurement (soundness.md 3.13).

    `loss`: of a draw of what is missing, as `Wish` counts it; `entries`: the ledger entries of these draws. `seen`: by
    key, all that was stored when this was worked out: where that is no longer so, it is worked out again.
    """

    loss: int
    entries: tuple[int, ...]
    seen: tuple[tuple[bytes, frozenset[int]], ...] = ()


class Overtaken(Exception):
    """What a claim counts on as known has changed: it is to be made anew. Nothing was charged."""


@dataclass(frozen=True, slots=True)
class MeasurementClaim:
    """One measurement: measures drawn together, stored together, under one joint charge.

    `measures`: 32-byte keys, without dataset and epoch (the store adds these). `law`: the noise that will
    do, in each measure's own coordinate units, of the i-th measure `law.at(i)`; one of less spread does as well.
    `note`: measures and scales in words, for the audit trail.

    Empty `measures` means that the key is not known yet, since it holds an earlier intermediate result's bytes
    (soundness.md 1.14(6)): such a measurement is always charged and never looked up; its keys come with `commit`.
    `grouping`: what it may answer besides, where it may. `wish`: where what is stored lowers what is to be drawn and
    charged (soundness.md 3.13): its own draws are those that the reservation finds, what is `known` of others is said.
    `statement`: what it is drawn for, where that is not all that the claim is for. `certificate`: the one that proves
    its charge, which is stored with it. `grounds`: what it rests on of policy and schema (3.7). `slices`: whose data it
    is charged for, where the policy has periods, and only there. `whose`: of the tables that are read, how their rows
    find their owner.
    """

    measures: tuple[bytes, ...]
    law: Law
    charge: Charge
    note: str
    grouping: Grouping | None = None
    wish: Wish | None = None
    known: Known | None = None
    statement: str | None = None
    certificate: Certificate | None = None
    grounds: tuple[Ground, ...] = ()
    slices: Slices | None = None
    whose: tuple[Ground, ...] = ()

    def __post_init__(self) -> None:
        _require_keys(self.measures)
        require_integer("epsilon_nano", self.charge.epsilon_nano, 1, MOST_EPSILON_NANO)
        require_integer("delta_atto", self.charge.delta_atto, 0, MOST_DELTA_ATTO)
        require_integer("rho_atto", self.charge.rho_atto, 1, MOST_RHO_ATTO)
        require_text("note", self.note)
        require_text("statement", self.statement or "")
        for ground in self.grounds:
            require_text("ground", "".join(ground))

    @property
    def is_told(self) -> bool:
        """Say whether what is known of others leaves no more to be drawn than the least loss there is."""
        known, wish = self.known, self.wish
        return known is not None and wish is not None and known.loss <= wish.reaching(Fraction(0))


@dataclass(frozen=True, slots=True)
class Claim:
    """All that one statement wants, for all its intermediate results at once (soundness.md 1.14(5)), or one batch.

    `statement`: canonical SQL for the audit trail. `reuse`: False draws anew and pays, whatever is
    stored.
    """

    analyst: str
    statement: str
    measurements: tuple[MeasurementClaim, ...]
    reuse: bool = True

    def __post_init__(self) -> None:
        require_text("analyst", self.analyst)
        require_text("statement", self.statement)
        if not self.analyst:
            raise ValueError("a claim names its analyst")


@dataclass(frozen=True, slots=True)
class Draw:
    """One joint draw: the measures that it holds, the law of the noise on them, and the noisy bytes."""

    measures: tuple[bytes, ...]
    law: Law
    payload: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _require_keys(self.measures)
        if not self.measures:
            raise ValueError("a draw holds at least one measure")


Together = tuple[Draw, ...]
"""The stored draws that answer one measure, the best first: their weighted mean is its answer."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """What is to be drawn for a measurement, and what it is combined with.

    `law`: of the noise to be drawn; `charge`: what this draw costs. `entries`: the ledger entries whose draws stand for
    the rest, and `stored`: what a draw as exact as these would cost, in 1e-9 of epsilon or 1e-18 of rho. `beside`: for
    each measure its own draws that answer it once this one is stored, None in the place of this one; empty where it
    stands alone.
    """

    law: Law
    charge: Charge
    entries: tuple[int, ...] = ()
    stored: int = 0
    beside: tuple[tuple[Draw | None, ...], ...] = ()


def fresh_of(wanted: MeasurementClaim, stored: Sequence[Laws]) -> Fresh:
    """Return what is to be drawn of a measurement of whose measures some draws are stored that do not serve it.

    Its own draws count where all of its measures have some; what is known besides where that leaves less.
    """
    wish = wanted.wish
    if wish is None:
        return Fresh(wanted.law, wanted.charge)
    loss, entries = wish.loss, tuple[int, ...]()
    together = combined_draws(stored, wanted.law) if stored else None
    if together is not None:
        own = [found[: MOST_COMBINED - 1] for found in together]
        each = ([laws[one] for one in found] for laws, found in zip(stored, own, strict=True))
        loss = wish.missing(min(map(precision_of, each)))
        entries = tuple(sorted({one for found in own for one in found}))
    if wanted.known is not None and wanted.known.loss < loss:
        loss, entries = wanted.known.loss, wanted.known.entries
    if loss >= wish.loss:
        return Fresh(wish.law(wish.loss), wanted.charge)
    return Fresh(wish.law(loss), Charge.of(wish, loss), entries, wish.stored(loss))


Grounds = tuple[Ground, ...] | None
"""What a stored answer rests on; None for those of before it was written."""

Resting = dict[Grounds, tuple[int, Charge]]
"""By what they rest on, how many stored answers there are, and what they cost."""


@dataclass(frozen=True, slots=True)
class DatedDraw:
    """A stored draw, when it was charged and for what, and whether that was in the epoch of now."""

    draw: Draw
    at: str
    charge: Charge
    is_current: bool


@dataclass(frozen=True, slots=True)
class Reservation:
    """What became of a claim. `entries` and `found` are aligned with `claim.measurements`.

    For a measurement that is answered from the store, `entries[i]` is None and `found[i]` has for each of its
    measures, in their order, the draws that answer it together. For a measurement that must be drawn now, `found[i]`
    is None, `entries[i]` is the ledger entry under which it is charged already, and `fresh[i]` says how it is drawn.

    `charge`: what this claim cost (the sum over the measurements to draw). `unproved`: the digests of the certificates
    that there was no room for; their entries name none.
    """

    entries: tuple[int | None, ...]
    found: tuple[tuple[Together, ...] | None, ...]
    charge: Charge
    epoch: int
    fresh: tuple[Fresh | None, ...] = ()
    unproved: tuple[str, ...] = ()

    @property
    def to_draw(self) -> tuple[int, ...]:
        """The entries to be committed or failed, in the order of the claim's measurements."""
        return tuple(entry for entry in self.entries if entry is not None)


@dataclass(frozen=True, slots=True)
class Caps:
    """The lifetime caps that the policy declares.

    `epsilon_nano`, `delta_atto`: for everybody together; these are the privacy guarantee.
    `analysts`: personal epsilon caps in 1e-9; None, or a name that is not there: no personal cap.
    Personal caps are fairness and no guarantee, since analysts may collude (soundness.md 3.4). `ration`: what may be
    spent in each period inside these.

    Where the ledger is kept by slices, all of these are of each slice. `windows`: what a person may lose who is in each
    of so many periods in a row, and `person_nano` in all of them and undated rows, in 1e-9.
    """

    epsilon_nano: int
    delta_atto: int
    analysts: Mapping[str, int | None]
    ration: Ration | None = None
    windows: tuple[tuple[int, int], ...] = ()
    person_nano: int | None = None

    def __post_init__(self) -> None:
        require_integer("epsilon cap", self.epsilon_nano, 0, MOST_EPSILON_NANO)
        require_integer("delta cap", self.delta_atto, 0, MOST_DELTA_ATTO)
        for length, most in self.windows:
            require_integer("window", length, 2, 10**5)
            require_integer("window's cap", most, 0, MOST_EPSILON_NANO)
        for cap in (*self.analysts.values(), self.person_nano):
            if cap is not None:
                require_integer("analyst cap", cap, 0, MOST_EPSILON_NANO)
