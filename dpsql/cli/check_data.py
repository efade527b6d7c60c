"""What `dpsql check` says of asserted keys: what the ledger has of them, and, with `--data`, what the rows say."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from .owner import found_complete, found_keys, found_orphans, key_checks, looks_of_values

if TYPE_CHECKING:
    from ..budget import KeyCheck
    from ..engine.asserted_keys import FoundKey, Orphans
    from ..policy import LiveSchema, Policy, Report
    from ..relation.catalog import Catalog

__all__ = ["with_complete", "with_data", "with_ledger", "with_values"]

_NOT_YET = "not verified for the data as it is, and nothing is answered; run dpsql check --data"


def with_values(report: Report, policy: Policy, live: LiveSchema) -> Report:
    """Return the report with a warning for each column of a public table whose values look like a person's.

    The values are the owner's to see, and none is said. Raises PolicyError.
    """
    warnings = [
        f"{policy.source}: tables.{name}: is public, so its rows are shown as they are, and the values of "
        f'"{column}" look like {look}; if they are of people, write unit = …'
        for name, column, look in looks_of_values(policy, live)
    ]
    return replace(report, warnings=(*report.warnings, *warnings))


def with_complete(report: Report, policy: Policy, live: LiveSchema, catalog: Catalog) -> Report:
    """Return the report with how many rows have another value than a column that is `complete`. Raises PolicyError."""
    if not any(column.is_complete for table in catalog.tables.values() for column in table.columns):
        return report
    is_recorded = policy.files is not None and policy.files.record.exists()
    notes: dict[str, list[str]] = {}
    warnings = []
    for one in found_complete(policy, live, catalog, is_recorded=is_recorded):
        if one.others:
            warnings.append(
                f"{policy.source}: tables.{one.table}.columns.{one.column}.complete: {one.others:,} of {one.rows:,} "
                "rows have another value, or NULL: totals and groups will not agree; list it, or take complete out"
            )
        else:
            notes.setdefault(one.table, []).append(f'"{one.column}" is complete, in all {one.rows:,} rows')
    return _with_notes(replace(report, warnings=(*report.warnings, *warnings)), notes)


def with_ledger(report: Report, policy: Policy, live: LiveSchema) -> Report:
    """Return the report with what the ledger has of the keys that are asserted. Raises LedgerError."""
    from ..engine.dataset import open_ledger

    notes: dict[str, list[str]] = {}
    warnings = []
    with closing(open_ledger(policy, create=False)) as ledger:
        for table in live.tables:
            if not table.asserted:
                continue
            name = live.name_of(table.path)
            found = ledger.key_check(name, table.asserted, table.version)
            if found is not None and found.holds:
                notes[name] = [_verified(found, policy)]
            else:
                warnings.append(f"{policy.source}: tables.{name}.key: {_NOT_YET}")
    return _with_notes(replace(report, warnings=(*report.warnings, *warnings)), notes)


def _verified(check: KeyCheck, policy: Policy) -> str:
    what = "tables" if policy.is_on_spark else "files"
    return (
        f"({', '.join(check.columns)}), which you assert is a key, was verified on {check.at[:10]} for the {what} as "
        f"they are, at epoch {check.epoch}"
    )


def with_data(report: Report, policy: Policy, *, has_ledger: bool) -> Report:
    """Return the report with what the rows say, and record it where there is a ledger.

    What the files, or the tables on Spark, were recorded as is what is read; where they are not recorded yet, as they
    are, and nothing is noted. Raises PolicyError, FilesChanged, LedgerError.
    """
    files = policy.files
    assert files is not None, "keys are asserted of what is recorded"
    is_recorded = files.record.exists()
    found = found_keys(policy, is_recorded=is_recorded)
    if is_recorded and has_ledger:
        _record(policy, found)
    notes: dict[str, list[str]] = {}
    for one in found:
        if one.holds:
            known = (
                "recorded" if is_recorded and has_ledger else "not recorded yet: dpsql budget create does it"
            )
            notes[one.table] = [f"({', '.join(one.columns)}) is a key of its {one.rows} rows; {known}"]
    for nobodys in found_orphans(policy, is_recorded=is_recorded):
        if nobodys.rows:
            notes.setdefault(nobodys.table, []).append(_orphans_text(nobodys))
    problems = tuple(f"{one.problem}; nothing is answered" for one in found if not one.holds)
    return _with_notes(replace(report, problems=(*report.problems, *problems)), notes)


def _record(policy: Policy, found: tuple[FoundKey, ...]) -> None:
    from ..engine.dataset import open_ledger

    with closing(open_ledger(policy, create=False)) as ledger:
        ledger.record_keys(key_checks(found))


def _orphans_text(found: Orphans) -> str:
    many = f"{found.rows} rows lead" if found.rows > 1 else "1 row leads"
    return f'{many} by "{found.column}" to no {found.references}: nobody\'s, and never counted'


def _with_notes(report: Report, notes: dict[str, list[str]]) -> Report:
    tables = (replace(one, notes=(*one.notes, *notes.get(one.name, ()))) for one in report.tables)
    return replace(report, tables=tuple(tables))
