"""The policy against a real live schema: what the catalog holds, and each disagreement."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import LiveSchema, build_catalog, check
from dpsql.relation.catalog import Column, Enforced, Unit
from dpsql.relation.types import BIGINT, DOUBLE, INTEGER, SMALLINT, TEXT, numeric

from .conftest import HEAD, STUDENT, policy_from

BASE = HEAD + STUDENT


def loan(reference: str = "student.id", column: str = "student_id", table: str = "loan") -> str:
    return f'\n[tables."{table}"]\nunit = {{ column = "{column}", references = "{reference}" }}\n'


def test_the_root(campus: LiveSchema) -> None:
    text = (
        BASE + 'columns.major = { values = ["EE", "CS"] }\ncolumns.gpa = { bounds = [2.0, 4.0], step = 0.01 }'
    )
    table = build_catalog(policy_from(text), campus).tables["student"]
    assert table.path == ("main", "student")
    assert table.unit == Unit(("id",), (INTEGER,), None, is_unique=True, is_not_null=True)
    assert table.columns == (
        Column(
            "gpa",
            numeric(3, 2),
            Enforced(False, Fraction(0), Fraction(4)),
            bounds=(Fraction(2), Fraction(4)),
            step=Fraction(1, 100),
        ),
        Column("major", TEXT, values=("EE", "CS")),
    )


def test_children(campus: LiveSchema) -> None:
    text = (
        BASE
        + loan()
        + "max_rows = 20\nmax_groups = 4\n"
        + loan(table="card")
        + loan("loan.id", "loan_id", "payment")
    )
    tables = build_catalog(policy_from(text), campus).tables
    assert tables["loan"].unit == Unit(
        ("student_id",), (INTEGER,), ("student", ("id",)), is_held=True, max_rows=20, max_groups=4
    )
    assert tables["card"].unit == Unit(
        ("student_id",), (INTEGER,), ("student", ("id",)), True, True, is_held=True
    )
    assert tables["payment"].unit == Unit(("loan_id",), (INTEGER,), ("loan", ("id",)), is_held=True)


ZCDP = BASE.replace("delta = 1e-6", 'delta = 1e-6\naccounting = "zcdp"', 1)


def test_a_norm_is_of_a_listed_column_where_rho_adds_up(campus: LiveSchema) -> None:
    bounded = loan() + "max_rows = 20\nmax_norm = { id = 4 }\n"
    listed = bounded + "columns.id = { bounds = [1, 9] }\n"
    unit = build_catalog(policy_from(ZCDP + listed), campus).tables["loan"].unit
    assert unit is not None
    assert unit.max_norm == (("id", 4),)
    for text, said in (
        (BASE + listed, "bounds squares"),
        (ZCDP + bounded, "is no column that the policy declares"),
        (ZCDP + bounded + "columns.id = {}\n", "is a column without a list of values"),
        (ZCDP + listed.replace("{ id = 4 }", '{ "month(id)" = 4 }'), "is of no column of dates with bounds"),
        (ZCDP + listed.replace("{ id = 4 }", '{ "month(of)" = 4 }'), "is no column that the policy declares"),
    ):
        with pytest.raises(PolicyError, match=said):
            build_catalog(policy_from(text), campus)
    with pytest.raises(PolicyError, match="is not enforced on Spark"):
        build_catalog(policy_from(ZCDP + listed), dataclasses.replace(campus, dialect="spark"))


def test_one_row_per_parent_is_not_one_row_per_unit(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        "CREATE TABLE student (id INT PRIMARY KEY); CREATE TABLE loan (id INT PRIMARY KEY, student_id INT);"
        "CREATE TABLE payment (loan_id INT UNIQUE NOT NULL);"
    )
    policy = policy_from(BASE + loan() + loan("loan.id", "loan_id", "payment"))
    unit = build_catalog(policy, live).tables["payment"].unit
    assert unit is not None
    assert not unit.is_unique


def test_another_schema(campus: LiveSchema) -> None:
    text = (
        BASE + loan(table="clinic.visit") + 'columns."Day of visit" = { bounds = [1970-01-02, 1970-01-11] }'
    )
    table = build_catalog(policy_from(text), campus).tables["clinic.visit"]
    assert table.path == ("clinic", "visit")
    assert table.columns[0].bounds == (1, 10)


def test_a_public_table_shows_all_its_columns(campus: LiveSchema) -> None:
    text = BASE + '[tables.country]\npublic = true\ncolumns.name = { description = "in English" }'
    table = build_catalog(policy_from(text), campus).tables["country"]
    assert table.unit is None
    assert [column.name for column in table.columns] == ["code", "name"]
    assert table.columns[1].description == "in English"
    assert table.columns[1].enforced.not_null


def column_of(live: LiveSchema, name: str, declaration: str) -> Column:
    catalog = build_catalog(policy_from(BASE + f"columns.{name} = {declaration}"), live)
    return catalog.tables["student"].columns[0]


@pytest.mark.parametrize(
    ("name", "declaration", "bounds"),
    [
        ("credits", "{ bounds = [0, 1000000] }", (0, 32767)),
        ("credits", "{ bounds = [7, 7] }", (7, 7)),
        ("gpa", "{ bounds = [-100, 3.5] }", (Fraction(-999, 100), Fraction(7, 2))),
        ("height", "{ bounds = [0.1, 1e400] }", (Fraction(1, 10), 2**1024 - 2**971)),
        ("born", "{ bounds = [1969-12-31, 2000-01-01] }", (-1, 10957)),
        ("seen", "{ bounds = [1970-01-01, 1970-01-01T00:00:01] }", None),
        ("seen", "{ bounds = [1970-01-01T00:00:00, 1970-01-01T00:00:01.5] }", (0, 1500000)),
        ("seen", "{ bounds = [1969-12-31, 1970-01-02] }", (-86400 * 10**6, 2 * 86400 * 10**6 - 1)),
        ("seen", "{ bounds = [1969-12-31T00:00:00, 1970-01-02T00:00:00] }", (-86400 * 10**6, 86400 * 10**6)),
        ("seen", "{ bounds = [1970-01-01, 1970-01-01] }", (0, 86400 * 10**6 - 1)),
    ],
)
def test_bounds_in_catalog_units(
    campus: LiveSchema, name: str, declaration: str, bounds: tuple[object, object] | None
) -> None:
    if bounds is None:
        with pytest.raises(PolicyError, match="both ends must be of one kind"):
            column_of(campus, name, declaration)
    else:
        assert column_of(campus, name, declaration).bounds == bounds


@pytest.mark.parametrize(
    ("name", "declaration", "values"),
    [
        ("credits", "{ values = [3, 1.0, { null = true }] }", (3, 1, None)),
        ("gpa", "{ values = [3.5, 4] }", (Fraction(7, 2), Fraction(4))),
        ("active", "{ values = [true] }", (True,)),
        ("active", "{}", (False, True, None)),
        ("state", "{}", ("good", "probation")),
        ("state", '{ values = ["probation"] }', ("probation",)),
        ("born", "{ values = [2001-02-03] }", ("2001-02-03",)),
        (
            "seen",
            "{ values = [2001-02-03T04:05:06, 2001-02-03] }",
            ("2001-02-03 04:05:06", "2001-02-03 00:00:00"),
        ),
        ("major", '{ values = ["", " a"] }', ("", " a")),
        ("major", "{}", None),
    ],
)
def test_values_in_canonical_form(
    campus: LiveSchema, name: str, declaration: str, values: tuple[object, ...] | None
) -> None:
    column = column_of(campus, name, declaration)
    assert column.values == values
    assert [type(value) for value in column.values or ()] == [type(value) for value in values or ()]


S = "tables.student.columns"
# (what stands after [tables.student] unit = "id", the message after "campus.toml: ")
SCHEMA_ERRORS = [
    (loan(table="lone"), 'tables.lone: the database has no table "lone"; did you mean "loan"?'),
    (
        loan(table="clinic.loan"),
        'tables."clinic.loan": the database has no table "clinic.loan"; did you mean "clinic.visit"?',
    ),
    (loan(table="LOAN"), 'tables.LOAN: the database has no table "LOAN"; did you mean "loan"?'),
    (loan(table="main.loan"), 'tables."main.loan": "main" is the default schema; write loan alone'),
    (
        "[tables.everybody]\npublic = true",
        "tables.everybody: is a view; write view = true, and declare the tables that it reads",
    ),
    (
        loan(column="id", table="everybody"),
        "tables.everybody: is a view; write view = true, and declare the tables that it reads",
    ),
    (
        loan(column="studentid"),
        'tables.loan.unit: table "loan" has no column "studentid"; did you mean "student_id"?',
    ),
    (
        loan("student.idd"),
        'tables.loan.unit.references: table "student" has no column "idd"; did you mean "id"?',
    ),
    (
        loan("student.mentor"),
        'tables.loan.unit.references: the database does not enforce that "mentor" of '
        '"student" is unique; add PRIMARY KEY (mentor), or UNIQUE and NOT NULL, or write the person\'s number into the '
        "rows, as unit",
    ),
    (
        loan(table="odd"),
        'tables.odd.unit.references: "student_id" is bigint and "id" is integer; give both columns one type',
    ),
    (
        loan(column="weight", table="odd"),
        'tables.odd.unit: "weight" is double precision, which cannot identify '
        "a unit; use a stored integer, text or uuid",
    ),
    (
        loan(column="alias", table="odd"),
        'tables.odd.unit: "alias" has a collation, under which keys that are spelled differently can be '
        "equal; remove the collation",
    ),
    ("columns.gap = {}", f'{S}.gap: table "student" has no column "gap"; did you mean "gpa"?'),
    ("columns.GPA = {}", f'{S}.GPA: table "student" has no column "GPA"; did you mean "gpa"?'),
    (
        "columns.twice = {}",
        f"{S}.twice: is computed when it is read and may fail on a row; store it, or take it out",
    ),
    (
        "columns.name = { bounds = [0, 1] }",
        f"{S}.name.bounds: is for numbers and dates, and the column is text; write max_length or values",
    ),
    (
        'columns.name = { scale = "log" }',
        f"{S}.name.scale: is for numbers, and the column is text; take it out",
    ),
    (
        'columns.born = { scale = "log" }',
        f"{S}.born.scale: is for numbers, and the column is date; take it out",
    ),
    ("columns.name = { step = 1 }", f"{S}.name.step: is for numbers, and the column is text; take it out"),
    (
        "columns.gpa = { max_length = 3 }",
        f"{S}.gpa.max_length: is for text, and the column is numeric(3,2); take it out",
    ),
    (
        "columns.active = { bounds = [0, 1] }",
        f"{S}.active.bounds: is for numbers and dates, and the column is boolean; take it out",
    ),
    (
        "columns.badge = { bounds = [0, 1] }",
        f"{S}.badge.bounds: is for numbers and dates, and the column is opaque; take it out",
    ),
    (
        "columns.born = { bounds = [0, 1] }",
        f"{S}.born.bounds: the column is date; write dates, like [2020-01-01, 2020-12-31]",
    ),
    (
        "columns.born = { bounds = [2020-01-01T00:00:00, 2020-01-01T00:00:00] }",
        f"{S}.born.bounds: the column is date; write dates, like [2020-01-01, 2020-12-31]",
    ),
    (
        "columns.seen = { bounds = [0, 1] }",
        f"{S}.seen.bounds: the column is timestamp; write date-times, like "
        "[2020-01-01T00:00:00, 2020-12-31T23:59:59]",
    ),
    (
        "columns.gpa = { bounds = [2020-01-01, 2020-01-02] }",
        f"{S}.gpa.bounds: the column is numeric(3,2); write numbers",
    ),
    (
        "columns.credits = { bounds = [0.5, 9.5] }",
        f"{S}.credits.bounds: the column is smallint; write whole numbers, like [1, 9]",
    ),
    (
        "columns.credits = { bounds = [40000, 50000] }",
        f"{S}.credits.bounds: no smallint lies between 40000 and 50000; write other bounds",
    ),
    ("columns.credits = { step = 0.5 }", f"{S}.credits.step: the column is smallint; write a whole number"),
    ("columns.gpa = { step = 0.005 }", f"{S}.gpa.step: the column is numeric(3,2); write a multiple of 0.01"),
    ("columns.born = { step = 1 }", f"{S}.born.step: is for numbers, and the column is date; take it out"),
    (
        "columns.height = { values = [1.5] }",
        f"{S}.height.values: the column is double precision, which cannot be a group key; take it out",
    ),
    (
        'columns.badge = { values = ["x"] }',
        f"{S}.badge.values: the column is opaque, which cannot be a group key; take it out",
    ),
    (
        'columns.alias = { values = ["x"] }',
        f"{S}.alias.values: the column is opaque, which cannot be a group key; take it out",
    ),
    ("columns.major = { values = [1] }", f"{S}.major.values: 1 does not fit in text; write text in quotes"),
    ('columns.gpa = { values = ["4"] }', f'{S}.gpa.values: "4" does not fit in numeric(3,2); write numbers'),
    (
        "columns.gpa = { values = [true] }",
        f"{S}.gpa.values: true does not fit in numeric(3,2); write numbers",
    ),
    (
        "columns.gpa = { values = [1.005] }",
        f"{S}.gpa.values: 1.005 has more digits than numeric(3,2) holds; round it",
    ),
    ("columns.gpa = { values = [10] }", f"{S}.gpa.values: 10 does not fit in numeric(3,2); take it out"),
    (
        "columns.credits = { values = [1.5] }",
        f"{S}.credits.values: 1.5 does not fit in smallint; write whole numbers",
    ),
    ("columns.credits = { values = [1, 1.0] }", f"{S}.credits.values: 1 is listed twice; list it once"),
    (
        "columns.credits = { values = [{null=true}, {null=true}] }",
        f"{S}.credits.values: {{ null = true }} is listed twice; list it once",
    ),
    (
        "columns.credits = { values = [32768] }",
        f"{S}.credits.values: 32768 does not fit in smallint; take it out",
    ),
    ("columns.gpa = { values = [1.5, 1.50] }", f"{S}.gpa.values: 1.5 is listed twice; list it once"),
    (
        'columns.state = { values = ["bad"] }',
        f'{S}.state.values: "bad" is not a label of the column\'s enum; write one, or take it out',
    ),
    (
        'columns.major = { max_length = 1, values = ["CS"] }',
        f'{S}.major.values: "CS" is longer than max_length 1; raise that',
    ),
    (
        "columns.active = { values = [1] }",
        f"{S}.active.values: 1 does not fit in boolean; write true and false",
    ),
    (
        'columns.born = { values = ["2020-01-01"] }',
        f'{S}.born.values: "2020-01-01" does not fit in date; write dates, like 2020-12-31',
    ),
    (
        "columns.seen = { values = [2020-01-01, 2020-01-01T00:00:00] }",
        f'{S}.seen.values: "2020-01-01 00:00:00" is listed twice; list it once',
    ),
]


@pytest.mark.parametrize(("text", "message"), SCHEMA_ERRORS, ids=[m[:70] for _, m in SCHEMA_ERRORS])
def test_each_disagreement_names_its_key_and_its_fix(campus: LiveSchema, text: str, message: str) -> None:
    policy = policy_from(BASE + text)
    with pytest.raises(PolicyError) as caught:
        build_catalog(policy, campus)
    assert caught.value.message == f"campus.toml: {message}"
    assert f"campus.toml: {message}" in check(policy, campus).problems


@pytest.mark.parametrize(
    "key", ["FLOAT", "INTERVAL", "BOOLEAN", "JSON", "INTEGER[]", "STRUCT(a INTEGER)", "BIT"]
)
def test_types_that_cannot_identify_a_unit(read_live: Callable[[str], LiveSchema], key: str) -> None:
    live = read_live(f"CREATE TABLE student (id {key} NOT NULL)")
    with pytest.raises(PolicyError, match="which cannot identify a unit"):
        build_catalog(policy_from(BASE), live)


@pytest.mark.parametrize("key", ["VARCHAR", "UUID", "HUGEINT", "DATE", "DECIMAL(9,0)", "UTINYINT", "BLOB"])
def test_types_that_can(read_live: Callable[[str], LiveSchema], key: str) -> None:
    live = read_live(f"CREATE TABLE student (id {key} PRIMARY KEY)")
    unit = build_catalog(policy_from(BASE), live).tables["student"].unit
    assert unit is not None
    assert unit.is_unique


def test_opaque_units_must_be_of_one_engine_type(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live("CREATE TABLE student (id UUID PRIMARY KEY); CREATE TABLE loan (student_id BLOB)")
    with pytest.raises(PolicyError, match=r'"student_id" is blob and "id" is uuid; give both'):
        build_catalog(policy_from(BASE + loan()), live)


def test_the_model_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy_from(BASE).source = "x"  # type: ignore[misc]


def test_the_catalog_type_of_a_small_integer(campus: LiveSchema) -> None:
    assert column_of(campus, "credits", "{}").type == SMALLINT
    text = BASE + loan(table="card") + "columns.big = {}"
    assert build_catalog(policy_from(text), campus).tables["card"].columns[0].type == BIGINT


JSON_TABLE = 'CREATE TABLE log (id INTEGER PRIMARY KEY, props JSON, plain VARCHAR, "a.b" INTEGER)'


def members_of(read_live: Callable[[str], LiveSchema], columns: str) -> Column:
    """The JSON column of a catalog whose policy declares some columns."""
    text = f'[tables.log]\nunit = "id"\n[tables.log.columns]\n{columns}\n'
    [table] = build_catalog(policy_from(HEAD + text), read_live(JSON_TABLE)).tables.values()
    return next(column for column in table.columns if column.name == "props")


def test_members_of_json_are_declared_by_their_path(read_live: Callable[[str], LiveSchema]) -> None:
    column = members_of(
        read_live,
        'props = {}\n"props.os" = { values = ["a", "b", { null = true }] }\n"props.geo.lat" = { bounds = [-90, 90], step = 0.5 }\n'
        '"props.note" = { max_length = 20 }\n"a.b" = { bounds = [0, 9] }',
    )
    os, lat, note = (column.member(path) for path in (("os",), ("geo", "lat"), ("note",)))
    assert os is not None
    assert (os.values, os.type) == (("a", "b", None), TEXT)
    assert lat is not None
    assert (lat.bounds, lat.step, lat.type) == ((-90, 90), Fraction(1, 2), DOUBLE)
    assert note is not None
    assert note.max_length == 20
    assert column.member(("lat",)) is None


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            '"props.os" = {}',
            'tables.log.columns."props.os": is of a column that is not declared; declare it too: props = {}',
        ),
        ('plain = {}\n"plain.os" = {}', '"plain" is varchar, which has no members; name one of JSON'),
        (
            'props = {}\n"props.a.0" = {}',
            "is no path: write keys of letters, digits, _, - and blanks, joined by dots",
        ),
        ('props = {}\n"props." = {}', "is no path"),
        ('props = {}\n"prop.os" = {}', 'table "log" has no column "prop"'),
        ('props = {}\n"props.os" = { values = ["a"], complete = true }', "is of a column; take it out"),
        ('props = {}\n"props.os" = { values = [1] }', "props.os"),
        ('props = {}\n"props.n" = { bounds = [2024-01-01, 2025-01-01] }', "props.n"),
    ],
)
def test_what_is_no_member(read_live: Callable[[str], LiveSchema], columns: str, message: str) -> None:
    with pytest.raises(PolicyError) as raised:
        members_of(read_live, columns)
    assert message in raised.value.message


def test_an_edit_of_a_member_is_a_ground(read_live: Callable[[str], LiveSchema]) -> None:
    def ground(columns: str) -> tuple[object, ...]:
        text = f'[tables.log]\nunit = "id"\n[tables.log.columns]\nprops = {{}}\n{columns}\n'
        [table] = build_catalog(policy_from(HEAD + text), read_live(JSON_TABLE)).tables.values()
        return table.column_grounds

    texts = (
        "",
        '"props.n" = { bounds = [0, 9] }',
        '"props.n" = { bounds = [0, 8] }',
        '"props.m" = { bounds = [0, 9] }',
    )
    assert len({ground(text) for text in texts}) == 4
