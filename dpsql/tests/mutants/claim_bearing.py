"""The files that carry a claim, each with the reason, and the tests that their mutants are run against.

A file is here if a fault in it can make a released number move further than its sensitivity says, its noise smaller than
its scale says, or a charge smaller than what was drawn; or if it can make the verifier accept what does not hold. Left
out: what reads SQL or decides what is refused (a missing refusal shows in the printed query, which is here), what is
computed above a release (post-processing cannot cost), error bars (`release/answer_bars.py`), and what is spelled for one engine
alone (`plan/dialects/`, `verify/engines.py`: its tests need that engine, `dpsql/tests/conformance`).

The tests of `a/b.py` are `dpsql/tests/a/test_b.py` and those that `TESTS` adds; its laws are the files of
`dpsql/tests/laws/` that import it, or whose text names it, and those that `LAWS` adds. Files that plant faults themselves
are not among them, and neither is a text that is compared with what was recorded: it dies of any change, right or wrong.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from dpsql.tests.mutants.derive import ROOT

__all__ = ["CLAIM_BEARING", "RECORDED", "file_of", "is_recorded", "tests_of", "way_of"]

_TESTS = ROOT / "tests"

CLAIM_BEARING: dict[str, str] = {
    "plan/planner.py": "which measurements and bounds a release gets, and which delta",
    "plan/release_plan.py": "which share of epsilon and rho a measurement gets, which law and scale; the key of a stored draw, "
    "and which of them an edit retires: too few, and a number of another question is handed out",
    "plan/measures/measurements.py": "sensitivities in L1 and L2, and the printed coordinates",
    "plan/measures/ranks.py": "the sensitivity of a choice by rank, of a most frequent value and of an owner's grid",
    "plan/measures/least_error.py": "when the largest groups are chosen first, and for what",
    "plan/measures/normal_form.py": "the box that coordinates drawn together lie in, of one column and of two",
    "plan/privacy/join.py": "what is read of a reference is read of the row that it points at",
    "plan/privacy/programs.py": "what is asked of one person's rows, as windows over them alone, and over which of them one goes; "
    "that what LATERAL reads is the same person's, and how much of it; which parts of a person's text are rows, and "
    "how many; NTILE over people as released percentiles beside one row's value",
    "plan/privacy/ownership.py": "when a row is of two people, and how a reference may be read",
    "plan/privacy/time.py": "what is drawn of each period by itself; which periods are read and charged, and whose claim bounds them",
    "policy/load_tables.py": "of which period a row is",
    "policy/units.py": "what the engine has to enforce of numbers that bound a person's rows",
    "plan/backend_sql/print_release.py": "the query in which a person's rows and groups are bounded",
    "plan/backend_sql/print_source.py": "whose row each row is",
    "plan/backend_sql/print_sums.py": "the sums, and the correction for people above their bound; ranks, and windows inside one person's rows",
    "plan/backend_sql/print_private.py": "expressions over people's rows: total, and the same for every content; "
    "the clamp of a summed value, and its lattice",
    "mechanisms/laws/box.py": "noise of a box, and its exact sampler",
    "mechanisms/laws/noise.py": "the scale of Laplace and of Gaussian noise, of one coordinate and of several",
    "mechanisms/laws/rank.py": "the law of a choice by rank",
    "mechanisms/laws/square_root.py": "the map of running sums by square root, its longest column, and the noise on them",
    "mechanisms/laws/truncated.py": "noise with an end, its delta, and the threshold of found keys under Gaussian noise",
    "mechanisms/laws/weighted.py": "noise of sums, means and fits, its bars, noise drawn in parts, a second draw that refines a first",
    "mechanisms/conversion.py": "from rho to (epsilon, delta)",
    "mechanisms/discrete_laplace.py": "the exact sampler",
    "mechanisms/discrete_gaussian.py": "the exact sampler",
    "mechanisms/uniform.py": "exact coins, which all samplers use",
    "mechanisms/choice.py": "the exponential mechanism and permute-and-flip, sampled exactly; choices by rank, and of several",
    "budget/claim.py": "what a draw costs",
    "budget/filter.py": "whether a charge still fits, and which charges count in a period",
    "budget/match.py": "which stored draw answers, and so is not paid again",
    "budget/pending.py": "what is charged at once",
    "budget/slices.py": "what each slice was charged, and what a person may have lost over several periods",
    "policy/periods.py": "which period is which, and what a charge reaches",
    "release/privatise.py": "where noise is added, and groups are left out",
    "release/batch_split.py": "how a total is split over statements",
    "engine/selection.py": "what is said of groups that were chosen",
    "release/left_out.py": "the counts of people by their rows that an owner measures: a person is one in all of them",
    "verify/certificate.py": "which queries, numbers and laws are held against each other",
    "verify/periods.py": "that whole periods are read, and charged",
    "verify/check.py": "that each measurement is proved, from reach to loss, and the charge of all together",
    "verify/lemmas.py": "how far one owner moves what a query prints",
    "verify/read.py": "what printed SQL says",
    "verify/relations.py": "whose rows are whose, and how many an owner has",
    "verify/terms.py": "when two prints are one thing",
    "verify/total.py": "that no row makes a query fail",
    "verify/two_owners.py": "rows of two owners, and how references are read",
    "verify/values.py": "the ends and NULLs of values, and what a row adds",
    "verify/windows.py": "the steps of a choice by rank",
}

TESTS: dict[str, tuple[str, ...]] = {
    "plan/planner.py": (
        "plan/test_found_keys.py", "plan/test_max_rows.py", "plan/test_path.py", "plan/backend_sql/test_print_release.py",
        "plan/measures/test_measurements.py", "engine/test_zcdp.py",
    ),
    "plan/release_plan.py": ("plan/test_found_keys.py", "engine/test_zcdp.py", "policy/test_grounds.py", "budget/test_resting.py"),
    "plan/measures/measurements.py": ("plan/measures/test_masks.py", "plan/backend_sql/test_print_release.py"),
    "plan/measures/normal_form.py": ("plan/measures/test_joint_constant.py",),
    "plan/measures/least_error.py": ("engine/test_top_groups.py",),
    "plan/measures/ranks.py": ("engine/test_chosen_values.py",),
    "plan/backend_sql/print_sums.py": ("plan/backend_sql/test_print_release.py", "plan/test_max_rows.py"),
    "plan/backend_sql/print_release.py": ("plan/test_found_keys.py", "plan/test_max_rows.py"),
    "plan/backend_sql/print_source.py": ("plan/backend_sql/test_print_release.py", "plan/privacy/test_ownership.py"),
    "plan/privacy/programs.py": ("plan/privacy/test_derived.py",),
    "mechanisms/laws/box.py": ("mechanisms/test_box.py",),
    "mechanisms/choice.py": (
        "mechanisms/test_permute_and_flip.py", "mechanisms/test_rank_choice.py", "mechanisms/test_rank_splitting.py",
    ),
    "mechanisms/laws/noise.py": (
        "mechanisms/test_gaussian.py", "mechanisms/test_gaussians.py", "mechanisms/test_laplace.py",
        "mechanisms/test_laplace_accuracy.py",
    ),
    "mechanisms/laws/rank.py": ("mechanisms/test_rank_choice.py",),
    "mechanisms/laws/truncated.py": ("mechanisms/test_truncated.py", "mechanisms/test_gaussian.py"),
    "mechanisms/laws/weighted.py": ("budget/test_wish.py", "mechanisms/test_weighted.py"),
    "mechanisms/discrete_laplace.py": (
        "mechanisms/test_discrete_laplace_exact.py", "mechanisms/test_discrete_laplace_statistics.py",
        "mechanisms/test_laplace_accuracy.py",
    ),
    "mechanisms/discrete_gaussian.py": (
        "mechanisms/test_discrete_gaussian_exact.py", "mechanisms/test_discrete_gaussian_statistics.py",
    ),
    "mechanisms/conversion.py": ("mechanisms/test_epsilon.py",),
    "budget/claim.py": ("budget/test_accounting.py",),
    "budget/filter.py": (
        "budget/test_accounting.py", "budget/test_store.py", "budget/test_properties.py", "budget/test_sliced_ledger.py",
        "budget/test_odometer.py", "budget/test_periods.py",
    ),
    "budget/match.py": ("budget/test_groupings.py",),
    "budget/pending.py": ("budget/test_batch_ledgers.py",),
    "budget/slices.py": (
        "budget/test_slices.py", "budget/test_sliced_ledger.py", "budget/test_division.py", "budget/test_odometer.py",
    ),
    "policy/periods.py": ("policy/test_periods.py", "budget/test_periods.py", "budget/test_sliced_ledger.py"),
    "policy/units.py": ("backends/test_row_number.py",),
    "policy/load_tables.py": ("policy/test_time.py",),
    "verify/periods.py": ("verify/test_periods.py",),
    "verify/check.py": ("verify/test_certificate.py",),
    "verify/lemmas.py": ("verify/test_reach.py", "verify/test_certificate.py"),
    "verify/read.py": ("verify/test_relations.py", "verify/test_total.py"),
    "verify/relations.py": ("verify/test_certificate.py",),
    "verify/terms.py": ("verify/test_relations.py", "verify/test_lemmas.py"),
    "verify/values.py": ("verify/test_reach.py", "verify/test_relations.py", "verify/test_total.py"),
    "verify/windows.py": ("verify/test_certificate.py",),
}  # fmt: skip

LAWS: dict[str, tuple[str, ...]] = {
    "plan/planner.py": (
        "test_neighbours_zcdp.py", "test_published_keys.py", "test_own_draws.py", "test_noise_always_on.py",
        "test_one_draw.py", "test_neighbours.py", "test_neighbours_together.py", "test_top_groups.py",
        "test_numbered.py", "test_numbered_joins.py",
    ),
    "policy/units.py": ("test_numbered.py",),
    "plan/release_plan.py": ("test_neighbours_zcdp.py", "test_published_keys.py", "test_found_keys.py", "test_reuse_orders.py", "test_neighbours.py", "test_noise_always_on.py", "test_grounds.py"),
    "plan/measures/measurements.py": ("test_neighbours.py", "test_neighbours_zcdp.py", "test_bounding.py"),
    "plan/measures/ranks.py": ("test_ranks.py", "test_splits.py", "test_modes.py", "test_owner_bounds.py"),
    "mechanisms/laws/rank.py": ("test_histograms.py",),
    "plan/measures/least_error.py": ("test_top_groups.py",),
    "plan/measures/normal_form.py": ("test_joint.py",),
    "plan/backend_sql/print_release.py": (
        "test_neighbours.py", "test_bounding.py", "test_exact.py", "test_total.py", "test_ranks.py",
    ),
    "plan/backend_sql/print_source.py": (
        "test_neighbours_joined.py", "test_total_joined.py", "test_enforced_keys.py", "test_event_tables.py",
        "test_growth_rows.py", "test_numbered_joins.py",
    ),
    "plan/backend_sql/print_sums.py": ("test_neighbours.py", "test_bounding.py", "test_neighbours_max_rows.py", "test_ranks.py", "test_neighbours_joined.py"),
    "plan/backend_sql/print_private.py": ("test_neighbours.py", "test_exact.py", "test_total.py", "test_quotients.py"),
    "plan/privacy/join.py": ("test_two_owners.py",),
    "plan/privacy/ownership.py": ("test_two_owners.py", "test_numbered_joins.py"),
    "plan/privacy/time.py": ("test_each_period.py", "test_periods.py"),
    "plan/privacy/programs.py": ("test_programs.py", "test_parts.py", "test_tiles.py"),
    "verify/periods.py": ("test_periods.py",),
    "verify/two_owners.py": ("test_two_owners.py", "test_two_owners_clamped.py"),
    "mechanisms/laws/box.py": ("test_joint.py",),
    "mechanisms/laws/truncated.py": ("test_neighbours.py", "test_neighbours_zcdp.py"),
    "mechanisms/laws/weighted.py": (
        "test_combined.py", "test_consistent.py", "test_finer.py", "test_grouping_sets.py",
    ),
    "mechanisms/laws/noise.py": ("test_neighbours.py",),
    "release/privatise.py": ("test_noise_always_on.py", "test_own_draws.py", "test_published_keys.py"),
    "release/batch_split.py": ("test_batch.py",),
    "engine/selection.py": ("test_top_groups.py",),
    "budget/match.py": ("test_finer.py", "test_one_draw.py"),
    "budget/slices.py": ("test_slices.py",),
    "verify/check.py": ("test_searched.py",),
    "verify/lemmas.py": ("test_searched.py",),
    "verify/relations.py": ("test_searched.py", "test_numbered.py", "test_numbered_joins.py"),
    "verify/total.py": ("test_total.py",),
    "verify/values.py": ("test_searched.py",),
    "verify/windows.py": ("test_searched.py",),
}  # fmt: skip


RECORDED = ("plan/test_examples.py",)
"""What compares printed SQL with what was recorded, beside tests that stand among others."""


def file_of(test: str) -> str:
    """Return the file of a test, named from the folder of the tests."""
    return test.partition("::")[0].removeprefix("dpsql/tests/")


def tests_of(path: str) -> list[str]:
    """Return the test files of a module, its own first, then the laws, named from the folder of the tests."""
    module = Path(path)
    own = [str(module.parent / f"test_{module.stem}.py"), *TESTS.get(path, ())]
    if path.startswith("mechanisms/"):
        own.append(_SAMPLERS)
    dotted = "dpsql." + ".".join(module.with_suffix("").parts)
    laws = [f"laws/{name}" for name in LAWS.get(path, ())]
    for file in sorted((_TESTS / "laws").glob("test_*.py")):
        if not file.name.startswith(("test_mutations", "test_spark")) and _names(file, dotted):
            laws.append(f"laws/{file.name}")
    return [name for name in dict.fromkeys([*own, *laws]) if (_TESTS / name).exists()]


_SAMPLERS = "mechanisms/test_branches.py"
"""Every branch of every sampler, and so a test of each module that draws."""


@cache
def _imported(file: Path) -> tuple[frozenset[str], str]:
    """Return the modules, and names in modules, that a file imports; and its text."""
    text = file.read_text()
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return frozenset(found), text


def _names(file: Path, dotted: str) -> bool:
    imported, text = _imported(file)
    return dotted in imported or re.search(re.escape(dotted) + r"\b", text) is not None


@cache
def is_recorded(file: Path, function: str) -> bool:
    """Say whether a test compares printed SQL as text: it calls `printed`, by itself or not, and runs nothing."""
    if file.name in ("test_examples.py",) or "grammar_tests" in file.parts:
        return True
    functions = {
        node.name: node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)
    }
    seen: set[str] = set()
    todo, called = [function], set()
    while todo:
        name = todo.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        for node in ast.walk(functions[name]):
            if isinstance(node, ast.Name):
                called.add(node.id)
                todo.append(node.id)
            elif isinstance(node, ast.Attribute):
                called.add(node.attr)
    return (
        "printed" in called
        and "planned" in _imported(file)[1]
        and not called & {"execute", "numbers", "summed"}
    )


@cache
def way_of(test: str) -> str:
    """Say what kills by this test: a "law", a test of the "module", or a "text" that was recorded."""
    file, _, rest = test.partition("::")
    if is_recorded(ROOT.parent / file, rest.partition("[")[0].rpartition("::")[2]):
        return "text"
    return "law" if "/tests/laws/" in file else "module"
