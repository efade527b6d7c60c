"""What the owner declares: the policy file, held against the live schema."""

from __future__ import annotations

from .catalog import access_of, build_catalog, check_access, narrowed
from .check import Report, check
from .live_schema import LiveColumn, LiveForeignKey, LiveSchema, LiveTable
from .load import inspect_policy, load_policy, parse_policy
from .model import (
    Access,
    Accounting,
    Analyst,
    ColumnPolicy,
    CopySource,
    Defaults,
    FileSources,
    LifetimeCap,
    Neighbours,
    Period,
    Policy,
    ServerPolicy,
    TablePolicy,
    UnitPolicy,
    Verify,
    is_open_to_others,
)
from .periods import Over, Slices
from .scaffold import left_out, scaffold

__all__ = [
    "Access",
    "Accounting",
    "Analyst",
    "ColumnPolicy",
    "CopySource",
    "Defaults",
    "FileSources",
    "LifetimeCap",
    "LiveColumn",
    "LiveForeignKey",
    "LiveSchema",
    "LiveTable",
    "Neighbours",
    "Over",
    "Period",
    "Policy",
    "Report",
    "ServerPolicy",
    "Slices",
    "TablePolicy",
    "UnitPolicy",
    "Verify",
    "access_of",
    "build_catalog",
    "check",
    "check_access",
    "inspect_policy",
    "is_open_to_others",
    "left_out",
    "load_policy",
    "narrowed",
    "parse_policy",
    "scaffold",
]
