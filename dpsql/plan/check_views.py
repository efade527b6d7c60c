"""What the owner is told of views: what each means, and why one is none yet. Its sentences are `policy.check`'s."""

from __future__ import annotations

from dataclasses import replace

from ..policy import LiveSchema, Policy, Report
from ..policy.check import ColumnReport, TableReport
from ..policy.describe import VIEWS, allowed_text, declared_text, keys_text
from ..relation.catalog import Column, View
from ..relation.types import Kind
from .views import build_views

__all__ = ["view_reports"]


def view_reports(report: Report, policy: Policy, live: LiveSchema) -> Report:
    """Return a report with the policy's views in it, and with what is wrong with them."""
    if not policy.views:
        return report
    found, errors = build_views(policy, live)
    left_out = [error.message for error in errors.values() if error.message not in report.problems]
    views = tuple(_view_report(policy, view) for view in found.values())
    return replace(report, tables=(*report.tables, *views), left_out=tuple(dict.fromkeys(left_out)))


def _view_report(policy: Policy, view: View) -> TableReport:
    hidden = ", hidden from analysts" if policy.views[view.name].is_hidden else ""
    text = f"a view of {', '.join(view.reads) or 'nothing'}: {VIEWS[view.role]}{hidden}"
    columns = tuple(_column_report(policy, view, column) for column in view.columns)
    return TableReport(view.name, "view", text, (), (), columns, ())


def _column_report(policy: Policy, view: View, column: Column) -> ColumnReport:
    type_ = (column.type.engine or "").lower() if column.type.kind is Kind.OPAQUE else str(column.type)
    if view.role != "private":
        allows = "anything, at no charge" if view.role == "public" else "anything, its noise is charged"
        return ColumnReport(column.name, type_, declared_text(column), allows)
    missing = ("bounds, for SUM and AVG",) if column.type.is_number and column.bounds is None else ()
    allows = f"{allowed_text(column)}; {keys_text(column, policy.defaults.delta > 0)}"
    return ColumnReport(column.name, type_, declared_text(column), allows, missing)
