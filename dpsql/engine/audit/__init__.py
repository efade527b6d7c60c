"""The audit of an owner's own policy, on made-up people in memory: `dpsql audit` (soundness.md 5.4)."""

from __future__ import annotations

from .audit import Audit, AuditFinding, run_audit

__all__ = ["Audit", "AuditFinding", "run_audit"]
