"""The audit of an owner's own policy, on made-up people in memory: `dpsql audit` (soundness.md 5.4)."""

from __future__ import annotations

from .audit import Audit, AuditFinding, Fuzzed, run_audit, run_fuzz

__all__ = ["Audit", "AuditFinding", "Fuzzed", "run_audit", "run_fuzz"]
