"""The mutation gate itself: what it derives, that it plants it, and that list and table are those of today."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import comb
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import cast

import pytest

from dpsql.mechanisms import ATTO, conversion
from dpsql.tests.mutants import run, store, table
from dpsql.tests.mutants.claim_bearing import CLAIM_BEARING, LAWS, TESTS, is_recorded, way_of
from dpsql.tests.mutants.claim_bearing import tests_of as files_of
from dpsql.tests.mutants.derive import ROOT, Mutant, derive, mutated
from dpsql.tests.mutants.in_pytest import Item, Killer, Reach, Result, choose
from dpsql.tests.mutants.plant import Functions
from dpsql.tests.mutants.store import OPEN, Results, survivors
from dpsql.tests.mutants.table import SAMPLE_HEAD, Sample, read_samples, read_table, sample_of, write_sample
from dpsql.tests.support.length import some

FILES = list(CLAIM_BEARING)


def changes(source: str) -> set[str]:
    """Return the changes of the one function of a source."""
    return {mutant.change for mutant in derive("none.py", source)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a, b): return a < b", {"a < b → a <= b", "a < b → a < b - 1"}),
        ("def f(a): return a is None", {"a is None → a is not None"}),
        ("def f(a, b): return a * b", {"a * b → a", "a * b → b"}),
        ("def f(a, b): return a / b", {"a / b → a * b", "a / b → a"}),
        ("def f(a, b): return a & b", {"a & b → a | b", "a & b → a", "a & b → b"}),
        ("Either = One | None\ndef f(a): return isinstance(a, One | Two)", {"One | Two → One", "One | Two → Two"}),
        ("def f(a): return math.ceil(a)", {"math.ceil(a) → math.floor(a)", "math.ceil(a) → a"}),
        ("def f(a): return a + 1", {"a + 1 → a - 1", "1 → 0", "1 → 2"}),
        ("def f(a): return not a", {"not a → a"}),
        ("def f(a, b): return a and b", {"a and b → a or b", "a and b → without a", "a and b → without b"}),
        ("def f(a, b): return max(a, b)", {"max(a, b) → min(a, b)", "max(a, b) → a", "max(a, b) → b"}),
        ("def f(a, b, c): return a if b else c", {"a if b else c → a", "a if b else c → c"}),
        ("def f(a):\n  if a: raise ValueError('x' + 'y')", {"if a → if True", "if a → if False"}),
        ("def f(a):\n  a.b\n  a()\n  raise ValueError(1)", {"a() → pass", "raise → pass"}),
        ("def f(a): return [b for b in a if b]", {"for b in a if b → without b"}),
        ("def f(a): return {1: a, 'b': a}", {
            "{1: a, 'b': a} → without 1", "{1: a, 'b': a} → without 'b'", "1 → 0", "1 → 2",
        }),
        ("def f(a, b): return a in (b, a)", {
            "a in (b, a) → a not in (b, a)", "(b, a) → without b", "(b, a) → without a",
        }),
        ("def f(a, b): return a, b", set()),
        ("def f(a: 1 = 2) -> 3:\n  '''Say 4.'''\n  assert a > 5", {"2 → 1", "2 → 3"}),
        ("__all__ = ['a', 'b']", set()),
        ("def f(a): return f'SELECT DISTINCT x WHERE {a}'", {
            "f'SELECT DISTINCT x WHERE {a}' → … SELECT x WHERE …", "f'SELECT DISTINCT x WHERE {a}' → TRUE for {a}",
        }),
        ("def f(a): return f'{a} > 1 AND x'", {
            "f'{a} > 1 AND x' → … >= 1 AND x …", "f'{a} > 1 AND x' → … > 1 OR x …",
        }),
        ("def f(a): return g(a, reverse=True)", {
            "g(a, reverse=True) → without reverse=", "True → False",
        }),
    ],
)  # fmt: skip
def test_what_is_derived(source: str, expected: set[str]) -> None:
    assert changes(source) == expected


@pytest.mark.parametrize(
    ("path", "change"),
    [
        # Faults that once survived everything, or died by a recorded claim alone.
        ("plan/release_plan.py", "key_rule: each.rho // groups → each.rho"),
        (
            "mechanisms/laws/box.py",
            "_kept: for radius, coin in zip(radii, coins, strict=True) if coin < 2 * reach * radius + 1 → without coin",
        ),
        ("plan/measures/ranks.py", "max(p, q - p) → p"),
        ("plan/measures/measurements.py", "→ without self.known_lattice.low == 0"),
    ],
)
def test_known_faults_are_among_them(path: str, change: str) -> None:
    assert any(change in mutant.key for mutant in derive(path))


@pytest.mark.parametrize("path", some(FILES, 12))
def test_the_same_mutants_with_names_of_their_own(path: str) -> None:
    found = derive(path)
    assert FILES.index(path) % 8 or found == derive(path)
    assert len({mutant.key for mutant in found}) == len(found)
    original = ast.unparse(ast.parse((ROOT / path).read_text()))
    for mutant in found[::97]:
        tree = mutated(path, mutant.place)
        assert ast.unparse(tree) != original, mutant.name
        compile(tree, path, "exec")


def test_names_outlive_edits_elsewhere() -> None:
    before, after = "def f(a): return a < 1", "b = 2\n\n\ndef f(a): return a < 1"
    known = {(mutant.key, mutant.digest) for mutant in derive("none.py", before)}
    assert known < {(mutant.key, mutant.digest) for mutant in derive("none.py", after)}
    assert not known & {(m.key, m.digest) for m in derive("none.py", before.replace("a <", "a <= 0 or a <"))}


@pytest.fixture
def unharmed() -> Iterator[None]:
    codes = {one: one.__code__ for one in vars(conversion).values() if isinstance(one, FunctionType)}
    yield
    for one, code in codes.items():
        one.__code__ = code


@pytest.mark.usefixtures("unharmed")
def test_a_planted_mutant_is_what_runs() -> None:
    path = "mechanisms/conversion.py"
    (mutant,) = [one for one in derive(path) if one.key == "delta_of_rho: min(0.0, log) → max(0.0, log)"]
    assert conversion.delta_of_rho(ATTO // 100, 1) < 1
    Functions(path).plant(mutant)
    assert conversion.delta_of_rho(ATTO // 100, 1) == 1


def item(test: str, seconds: float, *lines: int) -> Item:
    return Item(test, seconds, {"none.py": list(lines)} if lines else {})


def test_tests_that_reach_it_are_chosen_killers_first() -> None:
    mutant = next(one for one in derive("none.py", "def f(a):\n  return a < 1") if one.is_late)
    items = [
        item("slow", 3, 2),
        item("fast", 1, 2),
        item("killer", 2, 2),
        item("elsewhere", 0.1, 7),
        item("not", 0.1),
    ]
    reached = {one.test: one for one in items}
    assert [one.test for one in choose(mutant, reached, {"killer": 9}, 10)] == ["killer", "fast", "slow"]
    assert [one.test for one in choose(mutant, reached, {"killer": 9}, 5)] == ["killer", "fast"]
    assert [one.test for one in choose(mutant, reached, {}, 0)] == ["fast"]


def test_a_mutant_of_the_head_is_shown_to_tests_that_read_it_alone() -> None:
    late = next(one for one in derive("none.py", "def f(a):\n  return a < 1") if one.is_late)
    items = [item("x/test_none.py::test_f", 1, 2), item("x/test_none.py::test_limits", 0.1), item("not", 0.1)]
    reached = {one.test: one for one in items}
    head = [one.test for one in choose(replace(late, is_late=False), reached, {}, 10)]
    assert head == ["x/test_none.py::test_limits", "x/test_none.py::test_f"]


def test_results_are_found_again_until_the_function_changes(tmp_path: Path) -> None:
    one, *_ = derive("none.py", "def f(a): return a < 1")
    Results(tmp_path).add(Result(one, Killer("dpsql/tests/laws/test_total.py::test_x", "failed"), 1.0))
    assert Results(tmp_path).get(one) == ("law", "dpsql/tests/laws/test_total.py::test_x", "failed")
    other: Mutant = derive("none.py", "def f(a): return a < 1 or a < 2")[0]
    assert Results(tmp_path).get(other) is None
    results = Results(tmp_path)
    results.forget(one)
    assert Results(tmp_path).get(one) is None


def test_what_a_test_is() -> None:
    folder = ROOT / "tests" / "plan" / "backend_sql"
    assert is_recorded(folder / "test_print_source.py", "test_one_table_needs_no_alias")
    assert not is_recorded(folder / "test_print_private.py", "test_what_it_counts")  # it runs what is printed
    assert way_of("dpsql/tests/plan/test_examples.py::test_examples[x]") == "text"
    assert way_of("dpsql/tests/laws/test_total.py::test_x[a::b]") == "law"
    assert way_of("dpsql/tests/budget/test_match.py::test_x") == "module"


def test_every_file_has_tests_that_are_there() -> None:
    assert all(files_of(path) for path in FILES)
    assert {*TESTS, *LAWS} <= {*FILES}
    named = [
        *(name for names in TESTS.values() for name in names),
        *(f"laws/{n}" for ns in LAWS.values() for n in ns),
    ]
    assert all((ROOT / "tests" / name).exists() for name in named)


def test_survivors_are_still_there_with_a_reason() -> None:
    assert {*survivors()} <= {*FILES}
    for path, reasons in survivors().items():
        assert {*reasons} <= {mutant.key for mutant in derive(path)}, path
        assert all(reason.startswith((OPEN, "equivalent: ")) for reason in reasons.values()), path


def test_the_table_is_that_of_today() -> None:
    """Else: `make mutants FILES=…`, then `python -m dpsql.tests.mutants --table`."""
    table = read_table()
    total = table.pop("all")
    assert [*table] == FILES
    assert total == [sum(column) for column in zip(*table.values(), strict=True)]
    listed = survivors()
    for path, (mutants, law, module, text, equivalent, still_open, not_run) in table.items():
        reasons, found = listed.get(path, {}).values(), derive(path)
        assert mutants == len(found) == len({mutant.key for mutant in found}), path
        assert mutants == law + module + text + equivalent + still_open + not_run, path
        assert equivalent == sum(not reason.startswith(OPEN) for reason in reasons), path
        assert still_open == sum(reason.startswith(OPEN) for reason in reasons), path


# --- samples -----------------------------------------------------------------------------------------------------

FEW = ("mechanisms/laws/rank.py", "mechanisms/conversion.py", "mechanisms/uniform.py", "budget/filter.py")


@pytest.fixture
def of_few(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Mutant]]:
    """Mutants of four files, in place of all."""
    found = {path: derive(path) for path in FEW}
    for module in (run, table):
        monkeypatch.setattr(module, "CLAIM_BEARING", dict.fromkeys(FEW, ""))
        monkeypatch.setattr(module, "derive", found.__getitem__)
    return found


def test_each_file_has_its_part_of_a_sample(of_few: dict[str, list[Mutant]]) -> None:
    every = sum(map(len, of_few.values()))
    for seed in range(50):
        found = run.drawn(40, seed)
        for path, mutants in of_few.items():
            assert abs(len(found[path]) - Fraction(40 * len(mutants), every)) < 1
            assert len({one.key for one in found[path]}) == len(found[path])
    assert run.drawn(40, 3) == run.drawn(40, 3) != run.drawn(40, 4)
    assert run.drawn(every, 5).keys() == of_few.keys()
    for count in (0, every + 1):
        with pytest.raises(ValueError, match="a sample has 1 to"):
            run.drawn(count, 1)


def test_each_mutant_has_the_same_chance(of_few: dict[str, list[Mutant]]) -> None:
    """2,000 seeds: within five standard deviations."""
    every = sum(map(len, of_few.values()))
    found = Counter(
        one.name for seed in range(2000) for mutants in run.drawn(30, seed).values() for one in mutants
    )
    chance = 30 / every
    assert len(found) == every
    assert all(abs(times - 2000 * chance) < 5 * (2000 * chance) ** 0.5 for times in found.values())


def test_the_interval_is_exact() -> None:
    """At its ends 2.5 % of samples kill so many, and so few; texts that were recorded kill none."""
    sample = Sample(1, 1000, (3, 47, 2, 5, 3))
    assert (sample.killed, sample.faults) == (50, 55)
    assert sample.share == "90.9 [80.0, 97.0]"

    def tail(share: Fraction, counts: range) -> float:
        return float(sum(comb(55, k) * share**k * (1 - share) ** (55 - k) for k in counts))

    assert abs(tail(Fraction("0.800"), range(50, 56)) - 0.025) < 0.001
    assert abs(tail(Fraction("0.970"), range(51)) - 0.025) < 0.001
    assert Sample(1, 10, (0, 0, 0, 2, 0)).share == "none drawn"


def test_a_sample_is_told_once_all_of_it_was_run(
    of_few: dict[str, list[Mutant]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "survivors", dict)
    results, found = Results(tmp_path / "results"), run.drawn(12, 2)
    mutants = [one for some in found.values() for one in some]
    for one in mutants[:-1]:
        results.add(Result(one, Killer("dpsql/tests/laws/test_total.py::test_x", "failed"), 1.0))
    assert sample_of(found, 2, results) is None
    results.add(Result(mutants[-1], None, 1.0))
    told = sample_of(found, 2, results)
    assert told == Sample(2, sum(map(len, of_few.values())), (11, 0, 0, 0, 1))
    manual = tmp_path / "tests.md"
    monkeypatch.setattr(table, "MANUAL", manual)
    manual.write_text(
        "before\n\n" + "\n".join([*SAMPLE_HEAD, str(Sample(5, 9, (9, 0, 0, 0, 0)))]) + "\n\nafter\n"
    )
    for _ in range(2):
        write_sample(told)
        assert [one.seed for one in read_samples()] == [2, 5]
        assert manual.read_text().startswith("before\n\n| seed")
        assert manual.read_text().endswith("|\n\nafter\n")
    manual.write_text(manual.read_text().replace("| 12 | 11 |", "| 12 | 10 |"))
    with pytest.raises(ValueError, match="should be"):
        read_samples()


def test_the_samples_of_the_manual_are_what_their_numbers_say() -> None:
    assert "\n".join(SAMPLE_HEAD) in table.MANUAL.read_text()
    samples = read_samples()
    assert len({one.seed for one in samples}) == len(samples)
    assert all(0 < sum(one.ends) <= one.of for one in samples)


def test_the_folder_of_results_is_not_checked_in() -> None:
    ignored = (ROOT.parent / ".gitignore").read_text().splitlines()
    assert f"/{store.FOLDER.name}/" in ignored


# --- the run -----------------------------------------------------------------------------------------------------

MODULE = "def bounded(rows, most):\n    return rows if rows < most else most\n\n\ndef unseen(rows):\n    return rows > 1\n"
TESTS_OF_MODULE = """
from dpsql.plan.bounded import bounded

def test_bounded():
    assert [bounded(rows, 2) for rows in (1, 2, 3)] == [1, 2, 2]
"""


def test_a_gate_kills_what_a_test_sees(tmp_path: Path) -> None:
    """A package of one module and one test, run as `make mutants` runs ours."""
    package = tmp_path / "dpsql"
    for folder in (package / "plan", package / "tests" / "plan"):
        folder.mkdir(parents=True)
    for folder in (package, package / "plan", package / "tests", package / "tests" / "plan"):
        (folder / "__init__.py").touch()
    (package / "plan" / "bounded.py").write_text(MODULE)
    (package / "tests" / "plan" / "test_bounded.py").write_text(TESTS_OF_MODULE)
    (package / "tests" / "laws").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["long: x", "spark: x"]\n')
    program = package / "tests" / "mutants"
    shutil.copytree(Path(__file__).parent, program, ignore=shutil.ignore_patterns("__pycache__", "test_*"))
    for name in ("CLAIM_BEARING", "TESTS", "LAWS"):
        text = (program / "claim_bearing.py").read_text()
        begun = re.search(rf"^{name}: [^\n]*{{$", text, re.MULTILINE)
        assert begun is not None
        ended = text.index("\n}", begun.start())
        content = '"plan/bounded.py": "x"' if name == "CLAIM_BEARING" else ""
        (program / "claim_bearing.py").write_text(text[: begun.end()] + content + text[ended + 1 :])
    listed = program / "claim_bearing.py"
    listed.write_text(listed.read_text().replace('RECORDED = ("plan/test_examples.py",)', "RECORDED = ()"))
    (program / "survivors.toml").write_text("")

    def gate(*arguments: str) -> tuple[int, str]:
        called = [sys.executable, "-m", "dpsql.tests.mutants", *arguments]
        ended = subprocess.run(
            called,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            check=False,
        )
        return ended.returncode, ended.stdout

    code, said = gate()
    lines = said.splitlines()
    by = "  by dpsql/tests/plan/test_bounded.py::test_bounded"
    assert f"module   plan/bounded.py bounded: rows if rows < most else most → rows{by}" in lines
    assert "survived plan/bounded.py bounded: rows < most → rows <= most" in lines  # the same program
    assert "survived plan/bounded.py unseen: rows > 1 → rows >= 1" in lines
    assert (code, lines[-1]) == (1, "mutants: 7 run, 0 not reached, 4 survived without a reason")
    assert gate("--sample", "3", "plan/bounded.py")[0] == 2  # a sample is of all
    code, said = gate("--sample", "7")
    assert (code, said.splitlines()[-1]) == (1, "| 1 | 7 | 7 | 0 | 3 | 0 | 0 | 4 | 42.9 [9.9, 81.6] |")
    gate("--open")
    assert gate() == (0, "mutants: 7 run, 0 not reached, 0 survived without a reason\n")


def test_a_file_without_a_test_to_run_is_run(tmp_path: Path) -> None:
    """As one of which all are long: none is left, and the gate goes on."""
    session = SimpleNamespace(testsfailed=0, items=[])
    assert Reach(tmp_path / "reached", lambda: False).pytest_runtestloop(cast(pytest.Session, session))


def test_functions_that_differ_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "mechanisms/conversion.py"
    before = (ROOT / path).read_text().replace("if rho_atto == 0:", "if rho_atto <= 0:")
    said = {"merge-base": "0a1b", "diff": f"README.md\ndpsql/{path}", "show": before}
    monkeypatch.setattr(run, "_git", lambda what, *rest: said[what])
    (found,) = run.changed_since_main().items()
    assert found[0] == path
    assert {mutant.key for mutant in found[1]} == {mutant.key for mutant in derive(path)}
    functions = [mutant.function for mutant in found[1]]
    changed = functions.count("epsilon_of_rho")
    assert changed > 10
    assert set(functions[:changed]) == {"epsilon_of_rho"}
    said["diff"] = "README.md"
    assert run.changed_since_main() == {}
    monkeypatch.setattr(run, "_git", lambda what, *rest: None)
    assert run.changed_since_main() == {}
