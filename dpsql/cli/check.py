"""`dpsql check`: the policy file and the live database, looked at together."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ..errors import LedgerError, LedgerMissing, PolicyError
from .check_data import with_complete, with_data, with_ledger, with_values
from .faults import error_text, exit_code
from .owner import read_live_schema
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .tested import untested
from .text_cells import terminal_text

if TYPE_CHECKING:
    from ..backends import Finding
    from ..engine.retired import Retired
    from ..policy import FileSources, LiveSchema, Policy, Report
    from ..relation.catalog import Catalog

__all__ = ["check"]

_NO_KEY = "no key is asserted, so --data has none to verify"
_OPEN = "others on this machine can read it, and the verifiers of passwords in it"
_NO_LEDGER = (
    "The ledger does not exist yet, and nothing is answered without it. For a new dataset: dpsql -P {path} budget "
    "create. One that was lost is restored, with its log, not made anew."
)


@click.command()
@click.option(
    "--preview",
    "is_preview",
    is_flag=True,
    help="Show how far off typical statements would be, and what the budget holds.",
)
@click.option(
    "--data",
    "is_data",
    is_flag=True,
    help="Verify the keys that the policy asserts of files and of tables on Spark, and complete columns; look at "
    "public tables' values.",
)
@json_option
@pass_settings
def check(settings: CommandSettings, is_preview: bool, is_data: bool) -> None:
    """Check the policy file against the live database.

    Says, for each table and column, what an analyst may do with it and what is still missing, and which
    rights dpsql's role has in the database that it should not have: all that is wrong in one round, with what to
    write. Reads the schema, never the data.
    Looks after the ledger too, and says how many stored answers an edit of the policy has retired, and what they cost.
    Ends with exit code 5 when the policy or the role must be mended, 7 when the ledger cannot be used; one that was
    not made yet is no fault.

    With `--preview` it says what analysts would get, before any budget is spent: how far off counts, sums and
    averages of each table would be for how many people, around the bounds and epsilon that are declared.

    With `--data` it reads the rows too, for the owner: whether the keys that the policy asserts of data files, or of
    tables on Spark, hold in them, which the ledger records for the data as they are, and how many rows lead to nobody.
    Nothing is answered before that. It counts the rows with another value than those of a column that is complete.
    On Spark it also compares every row with what was recorded. Of public tables it
    reads the first rows, and warns where their values look like people's: addresses, phone numbers, identifiers.
    """
    from ..engine.preview import preview, warnings_of
    from ..plan.check_views import view_reports
    from ..plan.views import build_catalog
    from ..policy import check as check_policy
    from ..policy import inspect_policy
    from ..policy.access import check_access, seen_lines

    policy, wrong = inspect_policy(settings.policy_path)
    if policy is None:
        _tell_all(settings, wrong)
        return
    try:
        live = read_live_schema(policy.database, policy.files)
    except PolicyError as error:
        _tell_all(settings, (*wrong, error))
        return
    report = view_reports(check_policy(policy, live), policy, live)
    report = replace(report, problems=(*(error.message for error in wrong), *report.problems))
    catalog = None if report.problems else build_catalog(policy, live)
    if catalog is not None and (wrong_grants := check_access(policy, catalog)):
        report, catalog = replace(report, problems=tuple(error.message for error in wrong_grants)), None
    if catalog is not None and is_preview:
        shown = preview(policy, catalog)
        click.echo(json.dumps(shown.to_json()) if wants_json() else _printable(shown.to_text()))
        return
    if catalog is not None:
        warnings = (*report.warnings, *warnings_of(policy, catalog))
        report = replace(report, warnings=warnings, analysts=seen_lines(policy, catalog))
    report = _with_deployment(report, policy, catalog, is_data=is_data)
    fault, gone = _in_ledger(policy, catalog)
    if gone is not None and gone.number:
        said = f"{policy.source}: {gone.text(policy.privacy.accounting)}"
        report = replace(report, warnings=(*report.warnings, said))
    if catalog is not None and is_data and not report.problems:
        report = with_complete(report, policy, live, catalog)
    report = _with_keys(report, policy, live, fault, is_data=is_data)
    _tell_report(settings, report, fault, gone)


def _with_keys(
    report: Report, policy: Policy, live: LiveSchema, fault: LedgerError | None, *, is_data: bool
) -> Report:
    """Return a report with what is known of asserted keys, where the policy asserts some of data files.

    With `is_data` also with what the values of public tables look like.
    """
    if is_data and not report.problems and not policy.is_on_spark:
        report = with_values(report, policy, live)
    if policy.files is None or not policy.files.keys:
        has_complete = any(column.complete for table in policy.tables.values() for column in table.columns)
        is_idle = is_data and not policy.is_on_spark and not has_complete
        said = [f"{policy.source}: {_NO_KEY}"] if is_idle else []
        return replace(report, warnings=(*report.warnings, *said))
    if report.problems:
        return report
    if is_data:
        return with_data(report, policy, has_ledger=fault is None)
    return with_ledger(report, policy, live) if fault is None else report


def _tell_report(
    settings: CommandSettings, report: Report, fault: LedgerError | None, gone: Retired | None
) -> None:
    """Print what was found, and end with the exit code that says it."""
    is_missing = isinstance(fault, LedgerMissing)
    if wants_json():
        problem = None if fault is None or is_missing else {"message": fault.message, "hint": fault.hint}
        body = {**report.to_json(), "has_ledger": not is_missing, "ledger_problem": problem}
        body["retired"] = None if gone is None else gone.to_json()
        click.echo(json.dumps(body))
    else:
        click.echo(_printable(report.to_text()))
        if is_missing:
            click.echo(f"\n{terminal_text(_NO_LEDGER.format(path=settings.policy_path))}")
        elif fault is not None:
            click.echo(f"\n{error_text(fault)}")
    if report.problems or report.left_out:
        click.get_current_context().exit(5)
    if fault is not None and not is_missing:
        click.get_current_context().exit(exit_code(fault))


def _tell_all(settings: CommandSettings, wrong: tuple[PolicyError, ...]) -> None:
    """Tell what keeps the tables from being looked at; one error alone is told as every command tells it."""
    if len(wrong) == 1:
        raise wrong[0]
    if wants_json():
        problems = [error.message for error in wrong]
        click.echo(json.dumps({"source": settings.policy_path.name, "problems": problems}))
    else:
        for error in wrong:
            click.echo(f"problem: {terminal_text(error.message)}")
    click.get_current_context().exit(5)


def _printable(text: str) -> str:
    return "\n".join(map(terminal_text, text.rstrip().split("\n")))


def _with_deployment(report: Report, policy: Policy, catalog: Catalog | None, *, is_data: bool) -> Report:
    """Return the report with what is wrong around the database: errors are problems, which keep it from serving.

    `catalog`: what is declared and there; None: not both fit. `is_data`: rows may be read.

    Raises EngineFailure.
    """
    from ..backends import open_backend
    from ..backends.backend import Severity
    from ..backends.duckdb_backend import copy_findings
    from ..policy import is_open_to_others

    backend = open_backend(policy.database, policy.read_from, policy.files, is_recorded=False)
    findings = backend.findings()
    if catalog is not None and backend.dialect == "postgres":
        from ..backends.postgres_deployment import missing_indexes

        with backend.snapshot() as snapshot:
            findings = [*findings, *missing_indexes(snapshot, catalog)]
    backend.close_idle()
    if policy.files is not None:
        findings = [*findings, *_file_findings(policy, policy.files, is_data=is_data)]
    if policy.copied is not None:
        findings = [*findings, *copy_findings(policy.copied)]
    problems, warnings = (
        tuple(finding.to_text() for finding in findings if finding.severity is severity)
        for severity in Severity
    )
    warnings += tuple(f"this installation: {sentence}; see dpsql/constraints.txt" for sentence in untested())
    if is_open_to_others(policy):
        warnings = (*warnings, f"{policy.source}: {_OPEN}; chmod 600 {policy.source}")
    return replace(report, problems=(*report.problems, *problems), warnings=(*report.warnings, *warnings))


def _file_findings(policy: Policy, files: FileSources, *, is_data: bool) -> list[Finding]:
    """Return how the data differ from what was recorded: all of files, and on Spark what its storage tells of them, or,
    with `is_data`, all rows. Raises PolicyError, EngineFailure."""
    from ..backends.backend import Finding, Severity
    from ..backends.records import differences

    what = "tables" if policy.is_on_spark else "data files"
    said = differences(policy.database, files, policy.source, is_whole=is_data)
    if said is None:
        return [Finding(Severity.WARNING, f"the {what} are not recorded yet", "dpsql budget create")]
    return said


def _in_ledger(policy: Policy, catalog: Catalog | None) -> tuple[LedgerError | None, Retired | None]:
    """Return why the ledger cannot be used, or None, and which of its answers the policy has no use for.

    A missing ledger is not made. `catalog`: None where the policy is not in force as it is.
    """
    from ..engine.dataset import open_ledger
    from ..engine.retired import grounds_under, retired

    try:
        with closing(open_ledger(policy, create=False)) as ledger:
            found = None if catalog is None else retired(ledger.resting(), grounds_under(policy, catalog))
    except LedgerError as error:
        return error, None
    return None, found
