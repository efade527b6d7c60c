"""Owners over several foreign keys, the choice between two of them, and the keys that the engine enforces."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import LiveSchema, build_catalog, check, scaffold
from dpsql.relation.types import INTEGER, TEXT

from .conftest import HEAD, STUDENT, live_from, policy_from

BASE = HEAD + STUDENT

BANK_SQL = """
CREATE TABLE student (id INTEGER PRIMARY KEY, email VARCHAR UNIQUE, born DATE);
CREATE TABLE account (nr INTEGER PRIMARY KEY, student_id INTEGER NOT NULL REFERENCES student (id));
CREATE TABLE transfer (
    nr INTEGER PRIMARY KEY, sender INTEGER NOT NULL REFERENCES account (nr),
    receiver INTEGER NOT NULL REFERENCES account (nr), amount DECIMAL(10,2));
CREATE TABLE note (transfer_nr INTEGER REFERENCES transfer (nr), line INTEGER, PRIMARY KEY (transfer_nr, line));
CREATE TABLE branch (city VARCHAR PRIMARY KEY);
"""


def private(table: str, column: str, references: str) -> str:
    return f'\n[tables.{table}]\nunit = {{ column = "{column}", references = "{references}" }}\n'


ACCOUNT = private("account", "student_id", "student.id")
TRANSFER = private("transfer", "sender", "account.nr")
NOTE = private("note", "transfer_nr", "transfer.nr")


@pytest.fixture(scope="module")
def bank() -> LiveSchema:
    return live_from(BANK_SQL)


# --- ways of several hops --------------------------------------------------------------------------------


def test_every_hop_is_in_the_catalog_though_no_column_of_it_is_declared(bank: LiveSchema) -> None:
    tables = build_catalog(policy_from(BASE + ACCOUNT + TRANSFER + NOTE), bank).tables
    found = []
    unit = tables["note"].unit
    while unit is not None and unit.references is not None:
        found.append((*unit.columns, unit.references[0], *unit.references[1]))
        unit = tables[unit.references[0]].unit
    assert found == [
        ("transfer_nr", "transfer", "nr"), ("sender", "account", "nr"), ("student_id", "student", "id"),
    ]  # fmt: skip
    assert tables["transfer"].columns == tables["account"].columns == ()


def test_three_hops_are_told(bank: LiveSchema) -> None:
    report = check(policy_from(BASE + ACCOUNT + TRANSFER + NOTE), bank)
    assert [table.unit for table in report.tables] == [
        'root, one row per unit in "id"',
        'private, owned through "student_id" by student.id',
        'private, owned through "sender" by account.nr, then "student_id" by student.id',
        'private, owned through "transfer_nr" by transfer.nr, then "sender" by account.nr, '
        'then "student_id" by student.id',
    ]
    assert report.problems == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "account (nr INTEGER PRIMARY KEY",
            "account (nr INTEGER NOT NULL",
            'tables.transfer.unit.references: the database does not enforce that "nr" of "account" is unique; '
            "add PRIMARY KEY (nr), or UNIQUE and NOT NULL, or write the person's number into the rows, as unit",
        ),
        (
            "account (nr INTEGER PRIMARY KEY",
            "account (nr INTEGER UNIQUE",
            'tables.transfer.unit.references: the database does not enforce that "nr" of "account" is unique; '
            "add PRIMARY KEY (nr), or UNIQUE and NOT NULL, or write the person's number into the rows, as unit",
        ),
        (
            "account (nr INTEGER PRIMARY KEY, student_id INTEGER NOT NULL",
            "account (nr INTEGER, student_id INTEGER NOT NULL, PRIMARY KEY (nr, student_id)",
            'tables.transfer.unit.references: the database does not enforce that "nr" of "account" is unique; '
            "add PRIMARY KEY (nr), or UNIQUE and NOT NULL, or write the person's number into the rows, as unit",
        ),
        (
            "account (nr INTEGER",
            "account (nr BIGINT",
            'tables.transfer.unit.references: "sender" is integer and "nr" is bigint; give both columns one type',
        ),
        (
            "student_id INTEGER NOT NULL",
            "student_id DOUBLE NOT NULL",
            'tables.account.unit: "student_id" is double precision, which cannot identify a unit; '
            "use a stored integer, text or uuid",
        ),
    ],
)
def test_a_hop_that_the_engine_does_not_enforce_is_refused(
    read_live: Callable[[str], LiveSchema], old: str, new: str, message: str
) -> None:
    sql = BANK_SQL.replace(" REFERENCES student (id)", "").replace(" REFERENCES account (nr)", "")
    assert old in sql
    live = read_live(sql.replace(old, new))
    policy = policy_from(BASE + ACCOUNT + TRANSFER + NOTE)
    with pytest.raises(PolicyError) as caught:
        build_catalog(policy, live)
    assert caught.value.message == f"campus.toml: {message}"
    assert caught.value.message in check(policy, live).problems


@pytest.mark.parametrize(
    ("parent", "child"),
    [("DECIMAL(38,0)", "HUGEINT"), ("DECIMAL(20,0)", "UBIGINT"), ("HUGEINT", "DECIMAL(38,0)")],
)
def test_a_hop_whose_comparison_converts_is_refused(
    read_live: Callable[[str], LiveSchema], parent: str, child: str
) -> None:
    live = read_live(
        f"CREATE TABLE student (id {parent} PRIMARY KEY);"
        f"CREATE TABLE account (nr INTEGER PRIMARY KEY, student_id {child});"
    )
    with pytest.raises(PolicyError) as caught:
        build_catalog(policy_from(BASE + ACCOUNT), live)
    assert caught.value.message == (
        f'campus.toml: tables.account.unit.references: "student_id" is {child.lower()} and "id" is '
        f"{parent.lower()}; give both columns one type"
    )


def test_a_way_that_does_not_end_is_refused() -> None:
    with pytest.raises(PolicyError, match="references: leads back to itself"):
        policy_from(BASE + TRANSFER.replace("account.nr", "note.line") + NOTE)


# --- two possible owners ---------------------------------------------------------------------------------


def problems(live: LiveSchema, text: str) -> tuple[str, ...]:
    policy = policy_from(text)
    with pytest.raises(PolicyError) as caught:
        build_catalog(policy, live)
    found = check(policy, live).problems
    assert caught.value.message == found[0]
    return found


def test_without_a_unit_the_possible_owners_are_named(bank: LiveSchema) -> None:
    assert problems(bank, BASE + ACCOUNT + "[tables.transfer]\ncolumns.amount = {}\n" + NOTE) == (
        'campus.toml: tables.transfer: has no unit, and "sender" and "receiver" each lead to an owner, of whom '
        "only the one that you name is protected; "
        'write unit = { column = "sender", references = "account.nr" }, or the like with the other: '
        "see dpsql docs owner two people in a row",
    )


def test_without_a_unit_one_possible_owner_is_named(bank: LiveSchema) -> None:
    assert problems(bank, BASE + "[tables.account]\n") == (
        'campus.toml: tables.account: has no unit, and "student_id" leads to an owner; '
        'write unit = { column = "student_id", references = "student.id" }',
    )


@pytest.mark.parametrize("more", ["", "[tables.account]\npublic = true\n"])
def test_a_way_over_tables_that_the_policy_does_not_have_is_named_over_public_ones_it_is_none(
    bank: LiveSchema, more: str
) -> None:
    (problem,) = problems(bank, BASE + "[tables.transfer]\n" + more)
    assert ('"sender" and "receiver"' in problem) == (not more)


@pytest.mark.parametrize("table", ["branch", "lone"])
def test_without_a_unit_and_a_way(bank: LiveSchema, table: str) -> None:
    assert problems(bank, BASE + f"[tables.{table}]\n") == (
        {
            "branch": "campus.toml: tables.branch: has no unit; "
            'write unit = …, unit = "row" if each row is one person and nobody has two, '
            "or public = true if nobody's data is in it",
            "lone": 'campus.toml: tables.lone: the database has no table "lone"'
            "; known here: account, branch, note, student, transfer",
        }[table],
    )


def test_a_table_without_a_unit_is_never_among_the_tables() -> None:
    policy = policy_from(BASE + ACCOUNT + "[tables.transfer]\npublic = false\n")
    assert list(policy.tables) == ["student", "account"]
    assert policy.undecided == {"transfer": "transfer"}


def test_what_stands_in_a_table_without_a_unit_is_read_all_the_same() -> None:
    with pytest.raises(PolicyError, match="colums: unknown key"):
        policy_from(BASE + "[tables.transfer]\ncolums.amount = {}\n")


def warnings(live: LiveSchema, text: str) -> list[str]:
    found = check(policy_from(text), live).warnings
    return [one.removeprefix("campus.toml: ") for one in found if "NULL" not in one]


def test_the_other_owner_is_warned_of(bank: LiveSchema) -> None:
    assert warnings(bank, BASE + ACCOUNT + TRANSFER + NOTE) == [
        'tables.transfer: "receiver" points at account too; only the owner through "sender" is protected; '
        "declare also, or leave the column out"
    ]


def test_an_owner_behind_other_tables_is_warned_of(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        "CREATE TABLE student (id INT PRIMARY KEY, mentor INT REFERENCES student (id));"
        "CREATE TABLE desk (nr INT PRIMARY KEY, student_id INT REFERENCES student (id));"
        "CREATE TABLE room (nr INT PRIMARY KEY, desk_nr INT REFERENCES desk (nr));"
        "CREATE TABLE loan (student_id INT NOT NULL REFERENCES student (id), room_nr INT REFERENCES room (nr));"
    )
    loan = private("loan", "student_id", "student.id")
    mentor = 'tables.student: "mentor" points at another row of student; only the owner through "id" is protected; declare also, or leave the column out'
    behind = 'tables.loan: "room_nr" leads to {} too; only the owner through "student_id" is protected; declare also, or leave the column out'
    room = 'tables.room: is public, and "desk_nr" {} the private table {}'
    assert warnings(live, BASE + loan) == [mentor, behind.format("student")]
    public = "[tables.room]\npublic = true\n"
    assert warnings(live, BASE + loan + public) == [
        mentor, behind.format("student"), room.format("leads to", "student"),
    ]  # fmt: skip
    desk = private("desk", "student_id", "student.id")
    assert warnings(live, BASE + loan + public + desk) == [
        mentor, behind.format("desk"), room.format("points at", "desk"),
    ]  # fmt: skip
    assert warnings(live, BASE + "[tables.desk]\n" + public)[1:] == [room.format("points at", "desk")]


def test_only_the_declared_way_is_not_warned_of(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        "CREATE TABLE student (id INT PRIMARY KEY, card INT UNIQUE NOT NULL, town INT, UNIQUE (town, id));"
        "CREATE TABLE nurse (id INT PRIMARY KEY, boss INT REFERENCES student (id));"
        "CREATE TABLE loan (student_id INT NOT NULL REFERENCES student (id), town INT,"
        "    FOREIGN KEY (town, student_id) REFERENCES student (town, id));"
        "CREATE TABLE visit (student_id INT NOT NULL REFERENCES nurse (id));"
    )
    loan, visit = (private(table, "student_id", "student.id") for table in ("loan", "visit"))
    assert warnings(live, BASE + loan) == []
    assert warnings(live, BASE + visit + private("nurse", "boss", "student.id")) == [
        'tables.visit: "student_id" points at nurse too; only the owner through "student_id" is protected; '
        "declare also, or leave the column out"
    ]
    assert len(warnings(live, BASE + loan.replace("student.id", "student.card"))) == 2


# --- the first policy ------------------------------------------------------------------------------------


def test_the_scaffold_goes_over_several_hops_and_leaves_a_choice(bank: LiveSchema) -> None:
    text = scaffold(bank, "duckdb:bank.duckdb")
    content = tomllib.loads(text)["tables"]
    assert content["student"]["unit"] == "id"
    assert content["account"]["unit"] == {"column": "student_id", "references": "student.id"}
    assert content["note"]["unit"] == {"column": "transfer_nr", "references": "transfer.nr"}
    assert "unit" not in content["transfer"]
    start = text.index("[tables.transfer]")
    assert text[start : text.index("[tables.transfer.columns]")] == (
        "[tables.transfer]\n"
        "# A row leads to more than one owner, and only the one you choose is protected. "
        "Take one comment sign off:\n"
        '# unit = { column = "sender", references = "account.nr" }\n'
        '# unit = { column = "receiver", references = "account.nr" }\n'
        "# max_rows   =   # most rows of one unit that count in one result; dpsql bounds measures it, at a price\n"
        "# max_groups =   # if fewer: most groups of one result that one unit may touch\n"
        "# Rows of two people: what is asked by such a column then protects both, and has the noise of both. max_rows: "
        "most rows\n# joined by it that point at one person.\n"
        '# also = [{ column = "sender", references = "account.nr", max_rows =  }]\n'
        '# also = [{ column = "receiver", references = "account.nr", max_rows =  }]\n'
    )
    assert [one.partition(": has")[0] for one in check(policy_from(text), bank).problems] == [
        "campus.toml: tables.transfer"
    ]


def test_a_short_way_and_a_long_one_are_a_choice_too(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        "CREATE TABLE student (id INT PRIMARY KEY);"
        "CREATE TABLE loan (nr INT PRIMARY KEY, student_id INT REFERENCES student (id));"
        "CREATE TABLE payment (payer INT REFERENCES student (id), loan_nr INT REFERENCES loan (nr));"
    )
    text = scaffold(live, "duckdb:x")
    assert set(tomllib.loads(text)["tables"]) == {"student", "loan"}, "what waits for a choice is left out"
    assert '# unit = { column = "payer", references = "student.id" }\n' in text
    assert '# unit = { column = "loan_nr", references = "loan.nr" }\n' in text


# --- keys ------------------------------------------------------------------------------------------------


KEYS_SQL = """
CREATE TYPE colour AS ENUM ('red', 'blue');
CREATE TABLE student (
    id INTEGER PRIMARY KEY, a VARCHAR, b INTEGER, c DOUBLE, d VARCHAR COLLATE NOCASE, e INTERVAL, f BOOLEAN, g colour,
    h UUID, i INTEGER[], UNIQUE (b, a), UNIQUE (c), UNIQUE (a, d), UNIQUE (f, g), UNIQUE (h), UNIQUE (b, c));
CREATE TABLE place (code VARCHAR, nr INTEGER, w DOUBLE UNIQUE, PRIMARY KEY (code, nr), UNIQUE (nr));
"""


@pytest.mark.parametrize(
    ("declared", "keys"),
    [
        ((), (("id",),)),
        (("b",), (("id",),)),
        (("a", "b"), (("id",), ("b", "a"))),
        (("a", "b", "c", "d", "f", "g", "h"), (("id",), ("b", "a"), ("f", "g"), ("h",))),
    ],
)
def test_keys_of_a_private_table(declared: tuple[str, ...], keys: tuple[tuple[str, ...], ...]) -> None:
    text = BASE + "".join(f"columns.{name} = {{}}\n" for name in declared)
    assert build_catalog(policy_from(text), live_from(KEYS_SQL)).tables["student"].keys == keys


def test_keys_of_a_public_table() -> None:
    catalog = build_catalog(policy_from(BASE + "[tables.place]\npublic = true\n"), live_from(KEYS_SQL))
    assert catalog.tables["place"].keys == (("code", "nr"), ("nr",))


def test_keys_of_a_table_whose_unit_is_half_a_key(bank: LiveSchema) -> None:
    def keys_of(columns: str) -> tuple[tuple[str, ...], ...]:
        text = BASE + ACCOUNT + TRANSFER + NOTE + columns
        return build_catalog(policy_from(text), bank).tables["note"].keys

    assert keys_of("") == ()
    assert keys_of("columns.line = {}") == (("transfer_nr", "line"),)


def test_a_generated_column_is_in_no_key(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        "CREATE TABLE student (id INT PRIMARY KEY); CREATE TABLE place (a INT, b INT AS (a + 1), UNIQUE (a))"
    )
    tables = build_catalog(policy_from(BASE + "[tables.place]\npublic = true\n"), live).tables
    assert tables["place"].keys == (("a",),)
    assert [column.name for column in tables["place"].columns] == ["a"]


# --- public columns --------------------------------------------------------------------------------------


def test_a_public_column_may_have_all_that_a_private_one_has(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        "CREATE TABLE student (id INT PRIMARY KEY);"
        "CREATE TABLE part (nr INT PRIMARY KEY, brand VARCHAR, price DECIMAL(9,2), made DATE, note VARCHAR)"
    )
    part = (
        "[tables.part]\npublic = true\n[tables.part.columns]\n"
        'price = { bounds = [0, 10], step = 0.5 }\nbrand = { values = ["A", "B"] }\nnote = { max_length = 3 }\n'
        "made = { bounds = [1970-01-01, 1970-01-11] }\n"
    )
    policy = policy_from(BASE + part)
    nr, brand, price, made, note = build_catalog(policy, live).tables["part"].columns
    assert (nr.name, nr.type, nr.bounds) == ("nr", INTEGER, None)
    assert (brand.type, brand.values) == (TEXT, ("A", "B"))
    assert (price.bounds, price.step) == ((0, 10), 0.5)
    assert (made.bounds, note.max_length) == ((0, 10), 3)
    report = check(policy, live)
    assert {column.allows for column in report.tables[1].columns} == {"anything, at no charge"}
    assert report.problems == report.warnings == ()


# --- whom rows point at besides ----------------------------------------------------------------------------

RECEIVER = TRANSFER + 'also = [{ column = "receiver", references = "account.nr", max_rows = 9 }]\n'


def test_whom_rows_point_at_besides_is_declared(bank: LiveSchema) -> None:
    tables = build_catalog(policy_from(BASE + ACCOUNT + RECEIVER), bank).tables
    unit = tables["transfer"].unit
    assert unit is not None
    (also,) = unit.also
    assert (also.columns, also.references, also.max_rows) == (("receiver",), ("account", ("nr",)), 9)
    assert [column.name for column in tables["transfer"].named] == ["sender", "receiver"]
    assert warnings(bank, BASE + ACCOUNT + RECEIVER) == [], "nobody is left without protection"
    (said,) = (table.unit for table in check(policy_from(BASE + ACCOUNT + RECEIVER), bank).tables[2:])
    assert said.startswith('private, owned through "sender"')


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (", max_rows = 9", "", "also: write also = [{ column = "),
        ("max_rows = 9", "max_rows = 0", "also.max_rows: "),
        ('"receiver"', '"sender"', 'also: "sender" says whose a row is already'),
        ('"account.nr", max', '"branch.city", max', 'no table "branch" is declared'),
        (
            '"account.nr", max',
            '"account.student_id", max',
            '"student_id" of "account" is no key',
        ),
        ('"receiver"', '"amount"', "give both columns one type"),
        ("max_rows = 9", "max_rows = 9, rows = 1", "also.rows: unknown key"),
    ],
)
def test_what_nothing_is_known_of_is_not_pointed_at(
    bank: LiveSchema, old: str, new: str, message: str
) -> None:
    assert old in RECEIVER
    with pytest.raises(PolicyError) as caught:
        build_catalog(policy_from(BASE + ACCOUNT + RECEIVER.replace(old, new)), bank)
    assert message in caught.value.message


def test_a_first_policy_offers_whom_rows_point_at(bank: LiveSchema) -> None:
    text = scaffold(bank, "duckdb:bank.duckdb")
    assert '# also = [{ column = "sender", references = "account.nr", max_rows =  }]' in text
    assert '# also = [{ column = "receiver", references = "account.nr", max_rows =  }]' in text
    assert tomllib.loads(text), "it is a comment"
