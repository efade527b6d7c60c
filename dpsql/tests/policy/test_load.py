"""The policy file as text: what it means, and each way in which it can be wrong."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import Accounting, Neighbours, UnitPolicy, load_policy, parse_policy

from .conftest import HEAD, STUDENT, policy_from

FULL = """
database = "duckdb:campus.duckdb"
ledger = "sqlite:books/campus.db"

[privacy]
epsilon = 10
delta = 1e-6
neighbours = "replace-one"
[defaults]
epsilon = 0.25
max_epsilon = 2
delta = 1e-9
minimum_units = 5

[tables.student]
unit = "id"
description = "one row a person"
[tables.student.columns]
gpa = { bounds = [2.0, 4.0], step = 0.01, description = "grade" }
major = { values = ["CS", "EE", { null = true }] }
name = { max_length = 40 }
[tables.loan]
unit = { column = "student_id", references = "student.id" }
max_rows = 60
max_rows_per_group = 20
max_groups = 3
max_norm = { day = 9 }
[tables."clinic.visit"]
unit = { column = "student_id", references = "student.id" }
[tables.country]
public = true
[analysts.alice]
epsilon = 3
"""


def test_everything_that_the_file_can_say() -> None:
    policy = policy_from(FULL)
    assert policy.source == "campus.toml"
    assert policy.database == "duckdb:/srv/campus.duckdb"
    assert policy.ledger == "sqlite:/srv/books/campus.db"
    assert policy.dataset_id == "student@duckdb:campus.duckdb"
    assert policy.privacy.epsilon == 10
    assert policy.privacy.delta == Fraction(1, 10**6)
    assert policy.privacy.neighbours is Neighbours.REPLACE_ONE
    assert policy.defaults.epsilon == Fraction(1, 4)
    assert policy.defaults.max_epsilon == 2
    assert policy.defaults.delta == Fraction(1, 10**9)
    assert policy.defaults.minimum_units == 5
    assert policy.root == "student"
    assert list(policy.tables) == ["student", "loan", "clinic.visit", "country"]
    gpa, major, name = policy.tables["student"].columns
    assert gpa.bounds == (2, 4)
    assert gpa.step == Fraction(1, 100)
    assert gpa.description == "grade"
    assert major.values == ("CS", "EE", None)
    assert name.max_length == 40
    loan = policy.tables["loan"]
    assert loan.unit == UnitPolicy(("student_id",), ("student", ("id",)))
    assert (loan.max_rows, loan.max_rows_per_group, loan.max_groups) == (60, 20, 3)
    assert loan.max_norm == (("day", 9),)
    assert policy.tables["country"].unit is None
    assert policy.analysts["alice"].epsilon == 3


def test_defaults_fit_under_small_caps() -> None:
    policy = policy_from('database = "duckdb:x.db"\nprivacy.epsilon = 0.05\n' + STUDENT)
    assert policy.privacy.delta == 0
    assert policy.privacy.neighbours is Neighbours.ADD_REMOVE
    assert policy.privacy.accounting is Accounting.PURE
    assert policy.privacy.verify is None
    assert policy.defaults.epsilon == policy.defaults.max_epsilon == Fraction(5, 100)
    assert policy.defaults.delta == 0
    assert policy.defaults.minimum_units == 1
    assert policy.ledger == "sqlite:/srv/campus-ledger.db"


def test_the_defaults_of_an_ordinary_policy() -> None:
    defaults = policy_from(HEAD + STUDENT).defaults
    assert (defaults.epsilon, defaults.max_epsilon) == (Fraction(1, 10), 1)
    assert defaults.delta == Fraction(1, 10**9)


def test_a_number_is_its_decimal_text_not_a_float() -> None:
    policy = policy_from(HEAD + STUDENT + "columns.height = { bounds = [0.1, 1e300], step = 0.3 }")
    (height,) = policy.tables["student"].columns
    assert height.bounds == (Fraction(1, 10), 10**300)
    assert height.step == Fraction(3, 10)


def test_a_dataset_can_be_named() -> None:
    assert policy_from('dataset = "campus"\n' + HEAD + STUDENT).dataset_id == "campus"


def test_the_dataset_does_not_depend_on_the_folder() -> None:
    first, second = (policy_from(HEAD + STUDENT, Path(folder)) for folder in ("/srv", "/home"))
    assert first.dataset_id == second.dataset_id
    assert first.database != second.database


def test_a_postgres_url_is_kept_as_it_is() -> None:
    url = "postgresql://dpsql@db.internal:5432/campus?sslmode=require"
    policy = policy_from(HEAD.replace("duckdb:campus.duckdb", url) + STUDENT)
    assert policy.database == url


def test_a_file_is_read_relative_to_its_own_folder(tmp_path: Path) -> None:
    path = tmp_path / "campus.toml"
    path.write_text(HEAD + STUDENT, encoding="utf-8")
    assert load_policy(path).database == f"duckdb:{tmp_path / 'campus.duckdb'}"


LOAN = '[tables.loan]\nunit = { column = "student_id", references = "student.id" }\n'
PUBLIC = "[tables.country]\npublic = true\n"
NO_NUMBER = "write a finite number without quotes, of at most 400 digits"

# (the whole text, the message after "campus.toml: ")
TEXT_ERRORS = [
    ("database = ", "is not valid TOML: Invalid value (at end of document)"),
    ("", 'database: is missing; write database = "duckdb:<file>"'),
    ("database = 3", 'database: write text in quotes, like "…"'),
    ('database = " "', 'database: write text in quotes, like "…"'),
    ('database = "duckdb::memory:"', 'database: name a file; write "duckdb:<file>"'),
    (
        'database = "mysql://x"',
        'database: unknown kind of URL; write "duckdb:<file>", postgresql://… or spark://…',
    ),
    ('database = "spark://[host"', "database: is not a URL; write spark://host:port"),
    (
        'database = "postgresql://bob:secret@host/x"',
        "database: holds a password; take it out, use the environment or a passfile",
    ),
    (
        'database = "postgresql://host/x?user=bob&password=secret"',
        "database: holds a password; take it out, use the environment or a passfile",
    ),
    (
        'database = "postgresql://[host/x"',
        "database: is not a URL; write postgresql://user@host/database",
    ),
    (
        'ledger = "campus.db"\n' + HEAD,
        'ledger: unknown kind of URL; write "sqlite:<file>" or postgresql://…',
    ),
    ('database = "duckdb:x"', "privacy: is missing; write [privacy] with epsilon, the lifetime cap"),
    ('database = "duckdb:x"\nprivacy = 1', "privacy: write a table, like { … }"),
    (
        'database = "duckdb:x"\n[privacy]\ndelta = 0',
        "privacy.epsilon: is missing; write the lifetime cap for everybody together",
    ),
    (HEAD.replace("10", '"10"'), f"privacy.epsilon: {NO_NUMBER}"),
    (HEAD.replace("10", "true"), f"privacy.epsilon: {NO_NUMBER}"),
    (HEAD.replace("10", "inf"), f"privacy.epsilon: {NO_NUMBER}"),
    (HEAD.replace("10", "nan"), f"privacy.epsilon: {NO_NUMBER}"),
    (HEAD.replace("10", "1e999999999"), f"privacy.epsilon: {NO_NUMBER}"),
    *(
        (
            HEAD.replace("10", number),
            "privacy.epsilon: must be at least 0.000001 and below 10000; 1 is a usual cap",
        )
        for number in ("0", "-1", "1e-320", "1e-7", "10000")
    ),
    (
        HEAD.replace("10", "0.1234567891"),
        "privacy.epsilon: has too many digits; write 0.123456789",
    ),
    *(
        (
            HEAD.replace("1e-6", number),
            "privacy.delta: must be at least 0 and below 1; 1e-6 is a usual cap, 1e-9 a release",
        )
        for number in ("-0.5", "1", "1.5")
    ),
    (HEAD.replace("1e-6", "1e-19"), "privacy.delta: has too many digits; write 0"),
    (
        HEAD + 'neighbors = "add-remove"\n',
        'privacy.neighbors: unknown key; did you mean "neighbours"?',
    ),
    (HEAD + 'neighbours = "both"\n', 'privacy.neighbours: write "add-remove" or "replace-one"'),
    *(
        (HEAD + f"together = {number}\n", "privacy.together: write a whole number of at least 1")
        for number in ("0", "-4", "4.0", "true", '"4"')
    ),
    (HEAD + "conversion_delta = 1e-7\n", 'privacy.conversion_delta: is of accounting = "zcdp"; take it out'),
    (
        HEAD.replace("1e-6", "0") + 'accounting = "zcdp"\n',
        "privacy.accounting: zcdp needs a delta above 0 in [privacy]; 1e-6 is a usual one",
    ),
    *(
        (
            HEAD + f'accounting = "zcdp"\nconversion_delta = {number}\n',
            "privacy.conversion_delta: must be above 0 and at most privacy.delta; left out, it is half",
        )
        for number in ("0", "2e-6")
    ),
    (
        HEAD + 'accounting = "zcdp"\n[defaults]\ndelta = 6e-7\n',
        "defaults.delta: is above the 0.0000005 of privacy.delta that the conversion leaves; write less",
    ),
    (HEAD + 'period = "fortnight"\n', 'privacy.period: write "day", "week", "month" or "year"'),
    (HEAD + "carry = true\n", 'privacy.carry: needs a period; write period = "month"'),
    (HEAD + "period_epsilon = 1\n", 'privacy.period_epsilon: needs a period; write period = "month"'),
    (
        HEAD + 'period = "day"\nperiod_epsilon = 11\n',
        "privacy.period_epsilon: is above privacy.epsilon 10; write less",
    ),
    (
        HEAD + "[analysts.a]\nepsilon = 1\nperiod_epsilon = 1\n",
        'analysts.a.period_epsilon: needs a period; write period = "month" in [privacy]',
    ),
    (HEAD + 'accounting = "renyi"\n', 'privacy.accounting: write "pure" or "zcdp"'),
    (HEAD + 'verify = "off"\n', 'privacy.verify: write "refuse" or "log"'),
    (HEAD + "together = 1001\n", "privacy.together: is above 1000, the most that are protected together"),
    (
        HEAD + "[defaults]\nmax_epsilon = 11",
        "defaults.max_epsilon: is above 10, the most that a statement may take; write 10 or less",
    ),
    (
        HEAD.replace("10", "2") + "[defaults]\nmax_epsilon = 3",
        "defaults.max_epsilon: is above privacy.epsilon 2; write less",
    ),
    (
        HEAD + "[defaults]\nepsilon = 1.5",
        "defaults.epsilon: is above max_epsilon 1; write 1 or less",
    ),
    (
        HEAD + "[defaults]\ndelta = 1e-5",
        "defaults.delta: is above privacy.delta 0.000001; raise that, or write less",
    ),
    (
        HEAD + "[defaults]\nminimum_units = 0",
        "defaults.minimum_units: write a whole number of at least 1",
    ),
    (
        HEAD + "[analysts.alice]",
        "analysts.alice.epsilon: is missing; write this analyst's cap",
    ),
    (
        HEAD + '[analysts."a b"]\nepsilon = 1\ncolour = "x"',
        'analysts."a b".colour: unknown key; known here: epsilon, hide, identity, password, period_epsilon, tables',
    ),
    (
        HEAD + '[analysts."a b"]\nepsilon = 1\npassword = "x"',
        'analysts."a b".password: is no verifier, and a password itself does not belong here; '
        'write what dpsql user add "a b" prints',
    ),
    (
        HEAD + '[analysts." "]\nepsilon = 1',
        'analysts." ": give the analyst a name of letters, digits, blanks and signs',
    ),
    (
        HEAD,
        'tables: one table must say who its rows are of; write unit = "<the column of the person>"',
    ),
    (
        HEAD + STUDENT + '[tables."a.b.c"]\npublic = true',
        'tables."a.b.c": write [tables.<table>] or [tables."<schema>.<table>"]',
    ),
    (
        HEAD + "[tables.student]\n",
        'tables.student: has no unit; write unit = …, unit = "row" if each row is one person and nobody has two, '
        "or public = true if nobody's data is in it",
    ),
    (
        HEAD + "[tables.student]\npublic = false",
        'tables.student: has no unit; write unit = …, unit = "row" if each row is one person and nobody has two, '
        "or public = true if nobody's data is in it",
    ),
    (
        HEAD + STUDENT + "public = true",
        "tables.student.public: is both public and owned by a unit; keep either public or unit",
    ),
    (HEAD + STUDENT + 'public = "no"', "tables.student.public: write true or false"),
    (
        HEAD + "[tables.student]\nunit = 3",
        'tables.student.unit: write unit = "id", '
        'or unit = { column = "student_id", references = "student.id" }',
    ),
    (
        HEAD + '[tables.loan]\nunit = { column = "student_id" }',
        "tables.loan.unit: needs both column and references; "
        'write unit = "id", or unit = { column = "student_id", references = "student.id" }',
    ),
    (
        HEAD + '[tables.loan]\nunit = { column = "student_id", refs = "student.id" }',
        "tables.loan.unit.refs: unknown key; known here: column, references",
    ),
    (
        HEAD + '[tables.loan]\nunit = { column = "student_id", references = "student" }',
        'tables.loan.unit.references: write "<table>.<column>"',
    ),
    (
        HEAD + STUDENT + LOAN.replace("student.id", "studnt.id"),
        'tables.loan.unit.references: no table "studnt" is declared; did you mean "student"?',
    ),
    (
        HEAD + STUDENT + LOAN.replace("student.id", "country.id") + PUBLIC,
        'tables.loan.unit.references: table "country" is public and has no owners; name a private one',
    ),
    (
        HEAD + STUDENT + LOAN.replace("student.id", "loan.id"),
        "tables.loan.unit.references: leads back to itself; it must end at the root",
    ),
    (
        HEAD + STUDENT + PUBLIC + "max_rows = 3",
        "tables.country.max_rows: a public table has no units; take it out",
    ),
    (
        HEAD + STUDENT + "max_rows = 4194305",
        "tables.student.max_rows: is above 4194304; no useful answer has so much noise",
    ),
    (
        HEAD + STUDENT + "max_norm = { id = 3 }",
        "tables.student.max_norm: tightens max_rows; declare that too",
    ),
    (
        HEAD + STUDENT + "max_rows = 6\nmax_norm = { id = 6 }",
        "tables.student.max_norm.id: is not below max_rows = 6, so it tightens nothing; take it out",
    ),
    (
        HEAD + STUDENT + "max_rows = 6\nmax_norm = { id = 0 }",
        "tables.student.max_norm.id: write a whole number of at least 1",
    ),
    (
        HEAD + STUDENT + "max_rows = 6\nmax_norm = {}",
        "tables.student.max_norm: names no column; write { column = 9 }, or take it out",
    ),
    (
        HEAD + STUDENT + "max_rows = 6\nmax_norm = 9",
        "tables.student.max_norm: write a table, like { … }",
    ),
    (
        HEAD + STUDENT + "max_groups = 3",
        "tables.student.max_groups: tightens max_rows; declare that too",
    ),
    (
        HEAD + STUDENT + "max_rows = 3\nmax_rows_per_group = 4",
        "tables.student.max_rows_per_group: is above max_rows = 3, so it tightens nothing; take it out",
    ),
    (
        HEAD + STUDENT + "rows_per_unit = 30\ngroups_per_unit = 3",
        "tables.student.rows_per_unit: is replaced; write in its place\n"
        "  max_rows = 90\n  max_rows_per_group = 30\n  max_groups = 3",
    ),
    (
        HEAD + STUDENT + "rows_per_unit = 30",
        "tables.student.rows_per_unit: is replaced; write in its place\n  max_rows = 30",
    ),
    (
        HEAD + STUDENT + "groups_per_unit = 3",
        "tables.student.groups_per_unit: is replaced; write in its place\n"
        "  max_rows = <rows of one unit that count in one result>\n  max_groups = 3",
    ),
    (
        HEAD + STUDENT + "max_rows = 2.5",
        "tables.student.max_rows: write a whole number of at least 1",
    ),
    (
        HEAD + STUDENT + "max_groups = 0",
        "tables.student.max_groups: write a whole number of at least 1",
    ),
    (
        HEAD + STUDENT + "colums.gpa = {}",
        'tables.student.colums: unknown key; did you mean "columns"?',
    ),
    (HEAD + STUDENT + "columns.gpa = 3", "tables.student.columns.gpa: write a table, like { … }"),
    (
        HEAD + STUDENT + "columns.gpa = { bound = [0, 1] }",
        'tables.student.columns.gpa.bound: unknown key; did you mean "bounds"?',
    ),
    (
        HEAD + STUDENT + "columns.gpa = { bounds = [4.0, 2.0] }",
        "tables.student.columns.gpa.bounds: lower 4 is above upper 2; write [2, 4]",
    ),
    (
        HEAD + STUDENT + "columns.born = { bounds = [2020-01-02, 2020-01-01] }",
        "tables.student.columns.born.bounds: lower 2020-01-02 is above upper 2020-01-01; "
        "write [2020-01-01, 2020-01-02]",
    ),
    (
        HEAD + STUDENT + "columns.gpa = { bounds = [1] }",
        "tables.student.columns.gpa.bounds: write the two ends, [lower, upper]",
    ),
    (
        HEAD + STUDENT + 'columns.gpa = { bounds = "0..4" }',
        "tables.student.columns.gpa.bounds: write an array, like [ …, … ]",
    ),
    (
        HEAD + STUDENT + 'columns.gpa = { bounds = ["0", "4"] }',
        "tables.student.columns.gpa.bounds: write finite numbers of few digits, dates or date-times, without quotes",
    ),
    (
        HEAD + STUDENT + "columns.gpa = { bounds = [0, inf] }",
        "tables.student.columns.gpa.bounds: write finite numbers of few digits, dates or date-times, without quotes",
    ),
    (
        HEAD + STUDENT + "columns.gpa = { bounds = [0, 2020-01-01] }",
        "tables.student.columns.gpa.bounds: both ends must be of one kind: numbers, dates, or date-times",
    ),
    (
        HEAD + STUDENT + "columns.seen = { bounds = [2020-01-01T00:00:00Z, 2020-01-02T00:00:00Z] }",
        "tables.student.columns.seen.bounds: has an offset; write the date-time in UTC, without one",
    ),
    (
        HEAD + STUDENT + 'columns.height = { scale = "ln" }',
        'tables.student.columns.height.scale: write scale = "log", or take it out',
    ),
    (
        HEAD + STUDENT + "columns.height = { step = 0 }",
        "tables.student.columns.height.step: must be above 0",
    ),
    (
        HEAD + STUDENT + "columns.height = { step = 1e151 }",
        "tables.student.columns.height.step: must lie between 1e-150 and 1e150; "
        "a step is what the values are counted in",
    ),
    (
        HEAD + STUDENT + "columns.height = { step = 9e-151 }",
        "tables.student.columns.height.step: must lie between 1e-150 and 1e150; "
        "a step is what the values are counted in",
    ),
    (
        HEAD + STUDENT + "columns.major = { values = [] }",
        "tables.student.columns.major.values: is empty; list the keys, or take it out",
    ),
    (
        HEAD + STUDENT + 'columns.major = { values = ["CS", ["EE"]] }',
        "tables.student.columns.major.values: "
        "write text, finite numbers of few digits, true, false, dates, or { null = true }",
    ),
    (
        HEAD + STUDENT + "columns.major = { values = [{ null = false }] }",
        "tables.student.columns.major.values: "
        "write text, finite numbers of few digits, true, false, dates, or { null = true }",
    ),
    (
        HEAD + STUDENT + "columns.seen = { values = [2020-01-01T00:00:00+01:00] }",
        "tables.student.columns.seen.values: has an offset; write the date-time in UTC, without one",
    ),
    (
        HEAD + STUDENT + "columns.name = { max_length = -1 }",
        "tables.student.columns.name.max_length: write a whole number of at least 1",
    ),
    (
        HEAD + STUDENT + '[analysts.a]\nepsilon = 1\ntables = ["studnet"]\n',
        'analysts.a.tables: no table "studnet" is declared; did you mean "student"?',
    ),
    (
        HEAD + STUDENT + "[analysts.a]\nepsilon = 1\ntables = []\n",
        'analysts.a.tables: write names in quotes, like ["student", "loan"]',
    ),
    (
        HEAD + STUDENT + "[analysts.a]\nepsilon = 1\nhide = [1]\n",
        'analysts.a.hide: write names in quotes, like ["student.gpa"]',
    ),
    (
        "epsilon = 1\n" + HEAD + STUDENT,
        "epsilon: unknown key; known here: analysts, database, dataset, defaults, groups, ledger, previews, privacy, server, "
        "snapshot, "
        "tables",
    ),
]


@pytest.mark.parametrize(("text", "message"), TEXT_ERRORS, ids=[m[:60] for _, m in TEXT_ERRORS])
def test_a_wrong_policy_names_the_file_the_key_and_the_fix(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy_from(text)
    assert caught.value.message == f"campus.toml: {message}"
    assert caught.value.sqlstate == "F0V01"


def test_a_cycle_beside_the_root_is_found() -> None:
    cycle = (
        '[tables.a]\nunit = { column = "b_id", references = "b.id" }\n'
        '[tables.b]\nunit = { column = "a_id", references = "a.id" }\n'
    )
    with pytest.raises(PolicyError, match=r"tables\.b\.unit\.references: leads back to itself"):
        policy_from(HEAD + STUDENT + cycle)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy(tmp_path / "none.toml")
    assert caught.value.message == "none.toml: cannot be read: No such file or directory"
    (tmp_path / "latin.toml").write_bytes(b'dataset = "caf\xe9"')
    with pytest.raises(PolicyError) as caught:
        load_policy(tmp_path / "latin.toml")
    assert caught.value.message == "latin.toml: is not UTF-8 text; a policy is a TOML file, saved as UTF-8"


def _in_every_place(value: str) -> dict[str, str]:
    """Return policies that have a value in each place where a number can stand, by the key."""
    head = HEAD + STUDENT
    return {
        "privacy.epsilon": HEAD.replace("10", value),
        "privacy.delta": HEAD.replace("1e-6", value),
        "defaults.epsilon": HEAD + f"[defaults]\nepsilon = {value}\n",
        "defaults.max_epsilon": HEAD + f"[defaults]\nmax_epsilon = {value}\n",
        "defaults.delta": HEAD + f"[defaults]\ndelta = {value}\n",
        "defaults.minimum_units": HEAD + f"[defaults]\nminimum_units = {value}\n",
        "analysts.al.epsilon": HEAD + f"[analysts.al]\nepsilon = {value}\n",
        "tables.student.max_rows": head + f"max_rows = {value}\n",
        "tables.student.columns.gpa.step": head + f"columns.gpa = {{ step = {value} }}\n",
        "tables.student.columns.gpa.bounds": head + f"columns.gpa = {{ bounds = [{value}, 1] }}\n",
        "tables.student.columns.gpa.values": head + f"columns.gpa = {{ values = [{value}] }}\n",
        "tables.student.columns.gpa.max_length": head + f"columns.gpa = {{ max_length = {value} }}\n",
    }


NO_NUMBERS = {
    "a zero with an exponent that nothing has": "0e-9999999999999999999999999",
    "an exponent that nothing has": "1e9999999999999999999999999",
    "below everything": "-1e-9999999999999999999999999",
    "a large exponent": "1e999999999",
    "a fraction without end": "0." + "1" * 100_000,
    "a hexadecimal of thousands of digits": "0x" + "f" * 10_000,
    "not a number": "nan",
    "infinity": "-inf",
    "a time": "07:32:00",
}


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_no_number_that_a_file_can_write_is_more_than_an_error(value: str) -> None:
    for key, text in _in_every_place(value).items():
        with pytest.raises(PolicyError) as caught:
            policy_from(text + STUDENT if "tables" not in text else text)
        assert caught.value.message.startswith(f"campus.toml: {key}: "), key
        assert len(caught.value.message) < 200, key


@pytest.mark.parametrize("key", ["max_rows", "minimum_units", "max_length"])
def test_a_count_has_an_end(key: str) -> None:
    (text,) = (text for place, text in _in_every_place("2147483648").items() if place.endswith(key))
    with pytest.raises(PolicyError, match=rf"{key}: is above 2147483647, the most that can be counted"):
        policy_from(text)


@pytest.mark.parametrize("value", ["[" * 5000 + "]" * 5000, "{ a = " * 5000 + "1" + " }" * 5000])
def test_a_text_nested_without_end(value: str) -> None:
    with pytest.raises(PolicyError, match=r"campus\.toml: is nested too deeply"):
        policy_from(f"x = {value}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("campus.", "a\\u0000b."), "database: holds a control character"),
        ('ledger = "sqlite:a\\nb"' + HEAD, "ledger: holds a control character"),
        ('dataset = "a\\u001b[2J"' + HEAD, "dataset: holds a control character"),
        (HEAD + '[analysts."a\\u0007"]\nepsilon = 1', "give the analyst a name"),
        (HEAD + '[tables."a\\u0000b"]\nunit = "id"', "holds a NUL character"),
        (HEAD + STUDENT + 'columns."a\\u0000b" = {}', "holds a NUL character"),
        (HEAD + STUDENT + 'columns.a = { values = ["\\u0000"] }', "values: holds a NUL character"),
        (HEAD + STUDENT + 'description = "a\\u0000b"', "description: holds a control character"),
    ],
)
def test_control_characters_in_names(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy_from(text)
    assert message in caught.value.message
    assert caught.value.message.isprintable(), "a message steers no terminal"


def test_a_description_may_have_lines() -> None:
    policy = policy_from(HEAD + STUDENT + 'description = """one\n\ttwo"""')
    assert policy.tables["student"].description == "one\n\ttwo"


def test_an_integer_of_thousands_of_digits() -> None:
    with pytest.raises(PolicyError, match=r"campus\.toml: is not valid TOML: "):
        policy_from(HEAD.replace("10", "1" * 5000))


def test_a_password_never_reaches_the_message() -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy('database = "postgresql://bob:hunter2@h/x"', Path("p.toml"))
    assert "hunter2" not in str(caught.value)
