"""What was verified, in words: a line for each measurement, of an owner's own ledger or of a certificate in a file.

For an owner's mathematician, who reads these lines and the SQL that they are of in place of the program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from ..budget import Entry, EntryState, LedgerStore
from ..errors import LedgerError, PolicyError
from ..mechanisms import ATTO, NANO, Gaussian, Gaussians, Laplace, Rank, SquareRoot
from ..records import dataclass
from ..release.verifying import law_of_noise, verdict_on
from ..verify import Checked, Verified
from ..verify.certificate import Certificate, Facts, Measurement, Table, loads
from .settings import decimal_text

MISSING = "its certificate is missing"
CUT_OFF = (
    "its certificate is missing, as an answer is: it was cut off, or the ledger was made anew from its log"
)
DAMAGED = "its certificate is damaged"
OTHER = "its certificate does not say what was charged"
UNNAMED = "it names no certificate"


@dataclass(frozen=True, slots=True)
class Proof:
    """A certificate that was verified again. `problem`: why it does not hold; "" where it does."""

    certificate: Certificate
    verified: Verified | None
    problem: str


@dataclass(frozen=True, slots=True)
class Proved:
    """Entries of a ledger that name one certificate. `problem`: why one of them is not proved; else ""."""

    digest: str | None
    entries: tuple[Entry, ...]
    proof: Proof | None
    problem: str

    @property
    def is_wrong(self) -> bool:
        """Whether there is an answer that is not proved: what a crash cuts off has none (soundness.md 5.6)."""
        return self.problem not in ("", CUT_OFF)


def prove(certificate: Certificate) -> Proof:
    """Verify a certificate by its own facts."""
    verified, rule = verdict_on(certificate, certificate.facts)
    return Proof(certificate, verified, f"not proved: {rule}" if rule else "")


def prove_file(path: Path) -> Proof:
    """Verify the certificate in a file. Raises PolicyError: there is none in it."""
    try:
        certificate = loads(Certificate, path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise PolicyError(
            f"{path.name}: is no certificate", hint="name a file of JSON that a ledger gave, or leave it out"
        ) from None
    return prove(certificate)


def prove_ledger(store: LedgerStore, limit: int, archive: Path | None = None) -> Iterator[Proved]:
    """Verify again what the newest entries of a ledger name, each certificate once, the newest first.

    `archive`: where sealed files of its log are that were moved away. Raises LedgerError.
    """
    named: dict[str | None, list[Entry]] = {}
    for entry in store.log(limit):
        named.setdefault(entry.certificate, []).append(entry)
    for digest, entries in named.items():
        yield _proved(store, digest, tuple(entries), archive)


def _proved(
    store: LedgerStore, digest: str | None, entries: tuple[Entry, ...], archive: Path | None
) -> Proved:
    if digest is None:
        return Proved(None, entries, None, UNNAMED)
    try:
        content = store.certificate(digest, archive)
        certificate = None if content is None else loads(Certificate, content.decode())
    except (LedgerError, ValueError):
        return Proved(digest, entries, None, DAMAGED)
    if certificate is None:
        is_cut_off = all(one.state is EntryState.FAILED for one in entries)
        return Proved(digest, entries, None, CUT_OFF if is_cut_off else MISSING)
    proof = prove(certificate)
    problem = proof.problem or ("" if all(_is_of(one, proof) for one in entries) else OTHER)
    return Proved(digest, entries, proof, problem)


def _is_of(entry: Entry, proof: Proof) -> bool:
    """Say whether a certificate has the measurement that was charged, and it costs that under the noise that was drawn.

    It is told by the keys under which its draw is stored; of groups that are found these are not known before.
    """
    certificate, lines = proof.certificate, () if proof.verified is None else proof.verified.lines
    measured = ((certificate.releases[one.release].measurements[one.measurement], one.moved) for one in lines)
    keys = tuple(key.hex() for key in entry.measures)
    return any(
        one.stored in ((), keys) and _is_charge_of(entry, one, Fraction(moved), certificate.facts)
        for one, moved in measured
    )


def _is_charge_of(entry: Entry, one: Measurement, moved: Fraction, facts: Facts) -> bool:
    """Say so of one; `moved`: how far one person moves it, as derived, whatever is claimed."""
    charge, law, share = entry.charge, entry.law, one.share
    # What is stored lowers what is drawn and charged (soundness.md 3.13): its own loss is S/scale, or D²/(2 sigma²).
    is_root = isinstance(law, SquareRoot) and one.law.name == "root"
    is_gaussian = isinstance(law, Gaussian | Gaussians) and one.law.name == "gaussian"
    if facts.accounting == "zcdp" and (is_gaussian or is_root):
        return moved / (2 * law.scale**2) <= Fraction(charge.rho_atto, ATTO)
    if facts.accounting == "pure" and isinstance(law, Laplace) and one.law.name == "laplace":
        is_pure = not share.delta and not charge.delta_atto
        return is_pure and moved / law.scale <= Fraction(charge.epsilon_nano, NANO)
    if (charge.epsilon_nano, charge.delta_atto) != (_up(share.epsilon * NANO), _up(share.delta * ATTO)):
        return False
    if isinstance(law, Rank):  # what is chosen has no noise that is added
        return one.law.name in ("rank", "flip")
    return law_of_noise(law) == one.law


def _up(number: Fraction) -> int:
    return math.ceil(number)


# --- words ------------------------------------------------------------------------------------------------------


def proof_lines(certificate: Certificate, verified: Verified, *, explains: bool = False) -> list[str]:
    """Return a line for each measurement: columns, lemma, R, reach, S, law, loss; `explains`: with text and facts."""
    lines: list[str] = []
    for number, release in enumerate(certificate.releases):
        head = f"release {number + 1}: " if len(certificate.releases) > 1 else ""
        lines += [f"{head}{_line(one)}" for one in verified.lines if one.release == number]
        for query in release.queries if explains else ():
            lines += _explained(query.sql, certificate.facts)
    charge = verified.charge
    delta = f", delta {_short(charge.delta)}" if charge.delta else ""
    total = (
        f"rho {_short(charge.rho)}"
        if certificate.facts.accounting == "zcdp"
        else f"epsilon {_short(charge.epsilon)}"
    )
    return [*lines, f"together: {total}{delta}"]


def _line(one: Checked) -> str:
    first, *more = one.coordinates.split(" ")
    moved = f"S {_short(one.moved)}" + (
        "" if one.moved == one.claimed else f" (claimed {_short(one.claimed)})"
    )
    bounds = f"R {one.rows}, reach {_short(one.reach)}, {moved}"
    columns = f"{first} to {more[-1]}" if more else first
    return f"{columns}: {one.lemma}; {bounds}; {one.law}, loss {_short(one.loss)}"


def _short(number: Fraction | int) -> str:
    """Return a number exactly, where that is short; else to eight digits."""
    text = decimal_text(Fraction(number))
    return text if len(text) <= 16 else f"{float(number):.8g}"


def _explained(sql: str, facts: Facts) -> list[str]:
    """Return what lines are derived from: the text that is sent, and the facts of the tables in it."""
    return [
        f"  {sql}",
        *(f"    {_said(name, table)}" for name, table in facts.tables.items() if _is_named(name, sql)),
    ]


def _is_named(name: str, sql: str) -> bool:
    parts = name.split(".")
    return (
        any(quote + f"{quote}.{quote}".join(parts) + quote in sql for quote in ('"', "`"))
        or f"`{name}`" in sql
    )


def _said(name: str, table: Table) -> str:
    """Return whose a table's rows are, and what is enforced of them."""
    said = ["public"]
    if table.unit is not None:
        place = f" of {table.unit.table} ({', '.join(table.unit.referenced)})" if table.unit.table else ""
        said = [f"owner {', '.join(table.unit.columns)}{place}"]
    said += [f"unique {', '.join(key)}" for key in table.unique]
    said += [f"not null {', '.join(table.not_null)}"] if table.not_null else []
    return f"{name}: {'; '.join(said)}"
