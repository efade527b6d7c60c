"""What is wrong around a database that a backend is to serve: rights that dpsql's role should not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ..errors import PolicyError

__all__ = ["Finding", "Severity", "refuse_unsafe"]


class Severity(Enum):
    """An error keeps a database from being served; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence for the owner, and the SQL that mends it ("" where there is none)."""

    severity: Severity
    sentence: str
    fix: str = ""

    def to_text(self) -> str:
        """Return the finding as a line for the owner: `database: …; run …`."""
        return f"database: {self.sentence}{f'; run {self.fix}' if self.fix else ''}"


def refuse_unsafe(findings: Sequence[Finding]) -> None:
    """Raise PolicyError with all errors among the findings, and with the SQL that mends them as the hint."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if not errors:
        return
    sentences = "; ".join(finding.sentence for finding in errors)
    fixes = list(dict.fromkeys(finding.fix for finding in errors if finding.fix))
    raise PolicyError(f"database: {sentences}", hint="run " + "\n      ".join(fixes) if fixes else None)
