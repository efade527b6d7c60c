"""`dpsql init`: a first policy that loads, from the schema alone."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import LiveColumn, LiveSchema, LiveTable, build_catalog, left_out, scaffold
from dpsql.policy.scaffold import own_time
from dpsql.relation.catalog import Unit
from dpsql.relation.types import INTEGER, Kind, SqlType

from .conftest import policy_from


def test_the_scaffold_of_campus_is_a_policy_for_it_once_the_owner_has_chosen(campus: LiveSchema) -> None:
    text = scaffold(campus, "duckdb:campus.duckdb")
    with pytest.raises(PolicyError, match='has no unit, and "student_id" and "guarantor_id" each'):
        build_catalog(policy_from(text), campus)
    choice = 'unit = { column = "guarantor_id", references = "student.id" }'
    assert text.count(f"# {choice}\n") == 1
    catalog = build_catalog(policy_from(text.replace(f"# {choice}", choice)), campus)
    assert list(catalog.tables) == ["student", "card", "loan", "payment"]
    assert catalog.tables["loan"].unit is not None
    assert catalog.tables["loan"].unit.columns == ("guarantor_id",)
    student = catalog.tables["student"]
    assert [column.name for column in student.columns] == [
        "name", "gpa", "major", "born", "seen", "height", "credits", "state", "active", "mentor", "country",
    ]  # fmt: skip
    assert catalog.tables["payment"].unit is not None
    assert catalog.tables["payment"].unit.references == ("loan", ("id",))


def test_no_bound_is_made_up(campus: LiveSchema) -> None:
    content = tomllib.loads(scaffold(campus, "duckdb:campus.duckdb"))
    for table in content["tables"].values():
        assert set(table) <= {"unit", "columns"}
        assert all(set(declared) <= {"values", "complete"} for declared in table["columns"].values())
    listed = {name: one for name, one in content["tables"]["student"]["columns"].items() if one}
    assert listed == {
        "state": {"values": ["good", "probation"], "complete": True},
        "active": {"values": [False, True, {"null": True}]},
    }, "what the types themselves say"


def test_the_comments_tell_what_to_fill_in(campus: LiveSchema) -> None:
    lines = scaffold(campus, "duckdb:campus.duckdb").splitlines()
    for line in (
        "gpa = {}  # numeric(3,2): { bounds = [lower, upper] } for SUM and AVG (its CHECK allows 0 to 4)",
        "height = {}  # double precision: { bounds = [lower, upper], step = resolution } for SUM and AVG",
        'major = {}  # text: { values = ["…", "…"] } for public group keys, { max_length = n } for LENGTH',
        'state = { values = ["good", "probation"], complete = true }  # its type\'s labels: public group keys',
        "active = { values = [false, true, { null = true }] }  # public group keys",
        "# badge = {}  # opaque: COUNT only",
        "# twice = {}  # computed when it is read: cannot be declared",
        "country = {}  # a key of country: if that is public, init with --public lists its keys here, as public group "
        "keys",
        "# max_rows   =   # most rows of one unit that count in one result; dpsql bounds measures it, at a price",
        "#   everybody: is a view; write view = true, and declare the tables that it reads",
        "id = {}  # other tables point at it: for joins",
        "# guarantor_id = {}  # leads to people: as a group key it singles them out",
        "# A row leads to more than one owner, and only the one you choose is protected. "
        "Take one comment sign off:",
        '# unit = { column = "student_id", references = "student.id" }',
        "# No foreign key leads from here to student. If no row is about a person:",
        "# [tables.country]",
        '# [tables."clinic.visit"]',
    ):
        assert line in lines
    assert not any(line.startswith("[tables.everybody") for line in lines)
    assert "# [tables.everybody]" in lines


def test_it_reads_no_row(read_live: Callable[[str], LiveSchema]) -> None:
    sql = "CREATE TABLE student (id INT PRIMARY KEY, name VARCHAR, age INT);"
    full = read_live(sql + "INSERT INTO student VALUES (1, 'Chandler', 87)")
    assert scaffold(full, "duckdb:x") == scaffold(read_live(sql), "duckdb:x")


def test_without_keys_everything_waits_for_the_owner(read_live: Callable[[str], LiveSchema]) -> None:
    text = scaffold(read_live("CREATE TABLE a (x INT); CREATE TABLE b (x INT)"), "duckdb:x")
    assert "tables" not in tomllib.loads(text)
    assert "# [tables.a]" in text
    assert "Whose rows these are could not be told" in text


def test_two_keys_that_nothing_points_at_are_no_guess(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live("CREATE TABLE a (x INT PRIMARY KEY); CREATE TABLE b (x INT PRIMARY KEY)")
    assert "tables" not in tomllib.loads(scaffold(live, "duckdb:x"))


def test_names_are_quoted(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        'CREATE TABLE "the ""people""\n[x]" ("the id" INT PRIMARY KEY, "a\n= 1 # b" DOUBLE, "é\x7f" INT);'
        'CREATE TABLE "has.dot" (x INT);'
    )
    content = tomllib.loads(scaffold(live, 'duckdb:a"b.db'))
    assert content["database"] == 'duckdb:a"b.db'
    (table,) = content["tables"].items()
    assert table[0] == 'the "people"\n[x]'
    assert table[1] == {"unit": "the id", "columns": {"a\n= 1 # b": {}, "é\x7f": {}}}


def test_enum_labels_cannot_leave_their_line(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live("CREATE TABLE a (x INT PRIMARY KEY, e ENUM ('a\n[privacy]\nepsilon = 9'))")
    assert tomllib.loads(scaffold(live, "duckdb:x"))["privacy"]["epsilon"] == 1
    assert not re.search(r"^epsilon = 9", scaffold(live, "duckdb:x"), re.MULTILINE)


def test_the_root_is_named_for_people_or_else_led_to(read_live: Callable[[str], LiveSchema]) -> None:
    chain = (
        "CREATE TABLE country (id INT PRIMARY KEY);"
        "CREATE TABLE {root} (id INT PRIMARY KEY, country INT REFERENCES country (id));"
        "CREATE TABLE orders (id INT PRIMARY KEY, who INT REFERENCES {root} (id));"
        "CREATE TABLE item (orders INT REFERENCES orders (id));"
    )
    for name, root in (("shop_customers", "shop_customers"), ("thing", "country")):
        content = tomllib.loads(scaffold(read_live(chain.format(root=name)), "duckdb:x"))
        assert content["tables"][root]["unit"] == "id"
        assert "unit" in content["tables"]["item"]


def declared(live: LiveSchema) -> dict[str, object]:
    """Return what a first policy says of whose rows each table has."""
    tables = tomllib.loads(scaffold(live, "duckdb:x")).get("tables", {})
    return {name: table.get("unit") for name, table in tables.items()}


@pytest.mark.parametrize(
    ("sql", "units"),
    [
        ("CREATE TABLE visit (patient_id INT, cost INT)", {"visit": "patient_id"}),
        ("CREATE TABLE visit (id INT PRIMARY KEY, patient_id INT)", {"visit": "patient_id"}),
        (
            "CREATE TABLE visit (PatientNo BIGINT); CREATE TABLE drug (patient_id INT); CREATE TABLE patient (id INT)",
            {"drug": "patient_id", "patient": "id", "visit": "PatientNo"},
        ),
        (
            "CREATE TABLE e (doctor_id INT, patient_id INT); CREATE TABLE f (doctor_id INT)",
            {"e": "patient_id"},
        ),
        ("CREATE TABLE e (device_id VARCHAR, n INT)", {"e": "device_id"}),
        ("CREATE TABLE e (users INT, user_kind ENUM ('a')); CREATE TABLE f (x INT)", {}),
        (
            "CREATE TABLE visit (id INT PRIMARY KEY, patient_id INT);"
            "CREATE TABLE item (visit_id INT REFERENCES visit (id))",
            {"visit": "patient_id", "item": {"column": "visit_id", "references": "visit.id"}},
        ),
        (
            "CREATE TABLE visit (patient_id INT); CREATE TABLE drug (patient_id VARCHAR)",
            {"drug": "patient_id"},
        ),
        (
            "CREATE TABLE country (code VARCHAR PRIMARY KEY); CREATE TABLE city (c VARCHAR REFERENCES country (code));"
            "CREATE TABLE customers (id INT PRIMARY KEY)",
            {"customers": "id"},
        ),
        (
            "CREATE TABLE party (id INT PRIMARY KEY); CREATE TABLE region (id INT PRIMARY KEY);"
            "CREATE TABLE sale (customer_id INT REFERENCES party (id), region_id INT REFERENCES region (id))",
            {"party": "id", "sale": {"column": "customer_id", "references": "party.id"}},
        ),
    ],
)
def test_whose_the_rows_are(
    read_live: Callable[[str], LiveSchema], sql: str, units: dict[str, object]
) -> None:
    live = read_live(sql)
    assert declared(live) == units
    if units:
        build_catalog(policy_from(scaffold(live, "duckdb:x")), live)


def test_two_people_in_a_row_are_a_choice(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        "CREATE TABLE call (caller_user_id INT, called_user_id INT); CREATE TABLE bill (user_id INT)"
    )
    text = scaffold(live, "duckdb:x")
    assert '# unit = "caller_user_id"\n# unit = "called_user_id"\n' in text
    chosen = text.replace('# unit = "caller_user_id"', 'unit = "caller_user_id"')
    assert list(build_catalog(policy_from(chosen), live).tables) == ["bill", "call"]


def test_a_number_of_another_type_waits(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        "CREATE TABLE a (user_id INT); CREATE TABLE b (user_id INT); CREATE TABLE c (user_id VARCHAR)"
    )
    assert declared(live) == {"a": "user_id", "b": "user_id"}
    said = "# user_id is of another type than user_id of a; give both one type, or leave this table out.\n# [tables.c]"
    assert said in scaffold(live, "duckdb:x")


def test_a_key_of_several_columns_leads_on(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        "CREATE TABLE customer (id INT PRIMARY KEY);"
        "CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT REFERENCES customer (id));"
        "CREATE TABLE item (order_id INT REFERENCES orders (id), line INT, PRIMARY KEY (order_id, line));"
        "CREATE TABLE return (order_id INT, line INT, FOREIGN KEY (order_id, line) REFERENCES item (order_id, line));"
    )
    way = {"column": "order_id", "references": "orders.id"}
    assert declared(live) == {
        "customer": "id", "item": way, "orders": {"column": "customer_id", "references": "customer.id"},
        "return": {"column": ["order_id", "line"], "references": ["item.order_id", "item.line"]},
    }  # fmt: skip
    build_catalog(policy_from(scaffold(live, "duckdb:x")), live)


def test_a_part_of_a_key_of_several_columns_leads_on_where_the_whole_does_not(
    read_live: Callable[[str], LiveSchema],
) -> None:
    """A key to rows of everybody: of the numbers in it, one leads to an owner."""
    live = read_live(
        "CREATE TABLE customer (id INT PRIMARY KEY);"
        "CREATE TABLE seat (customer_id INT REFERENCES customer (id), x DOUBLE, PRIMARY KEY (customer_id, x));"
        "CREATE TABLE swap (customer_id INT, x DOUBLE, FOREIGN KEY (customer_id, x) REFERENCES seat (customer_id, x));"
    )
    assert declared(live)["swap"] == {"column": "customer_id", "references": "customer.id"}


def test_people_may_have_a_key_of_two_columns(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        "CREATE TABLE customer (shop INT, nr INT, city TEXT, PRIMARY KEY (shop, nr));"
        "CREATE TABLE sale (nr INT, shop INT, amount INT, FOREIGN KEY (shop, nr) REFERENCES customer (shop, nr));"
    )
    assert declared(live) == {
        "customer": ["shop", "nr"],
        "sale": {"column": ["shop", "nr"], "references": ["customer.shop", "customer.nr"]},
    }
    tables = build_catalog(policy_from(scaffold(live, "duckdb:x")), live).tables
    assert [column.name for column in tables["sale"].columns] == ["nr", "shop", "amount"]
    assert (tables["customer"].unit or tables["sale"].unit) == Unit(
        ("shop", "nr"), (INTEGER, INTEGER), None, True, True
    )


def test_a_missing_right_is_told_from_a_missing_key(read_live: Callable[[str], LiveSchema]) -> None:
    full = read_live(
        "CREATE TABLE client (nr INT PRIMARY KEY); CREATE TABLE sale (client INT REFERENCES client (nr))"
    )
    table = next(one for one in full.tables if one.path[1] == "sale")
    live = LiveSchema("main", (table,), unreadable=((("main", "client"), "GRANT SELECT ON client TO dpsql"),))
    text = scaffold(live, "duckdb:x")
    assert "# Foreign keys lead to client, which dpsql's role may not read: see below.\n" in text
    said = "client: dpsql's role may not read it; run GRANT SELECT ON client TO dpsql, and init again"
    assert f"# Left out:\n#   {said}\n" in text
    assert left_out(live) == (said,)


@pytest.mark.parametrize(
    ("columns", "proposed"),
    [
        ({"ordered_at": True}, "ordered_at"),
        ({"ordered_at": True, "updated_at": True}, "ordered_at"),
        ({"updated_at": True}, None),
        ({"ordered_at": False}, "ordered_at"),
        ({"ordered_at": False, "shipped_at": True}, "shipped_at"),
        ({"ordered_at": True, "shipped_at": True}, None),
        ({"placed": False}, "placed"),
        ({"placed": True, "ordered_at": False}, "ordered_at"),
        ({"placed": True, "shipped": True}, None),
    ],
)
def test_the_one_time_of_an_event_is_proposed(columns: dict[str, bool], proposed: str | None) -> None:
    """`columns`: of dates, whether the database enforces NOT NULL."""
    found = [
        LiveColumn(name, SqlType(Kind.TIMESTAMP), "TIMESTAMP", not_null=held)
        for name, held in columns.items()
    ]
    table = LiveTable(("main", "orders"), tuple(found))
    assert own_time(table) == proposed


SHOP = (
    "CREATE TABLE users (id INTEGER PRIMARY KEY, born_on DATE);"
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users (id), ordered_at TIMESTAMP NOT NULL);"
    "CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders (id), packed_at TIMESTAMP);"
    "CREATE TABLE returns (item_id INTEGER REFERENCES items (id), n INTEGER);"
    "CREATE TABLE letters (user_id INTEGER REFERENCES users (id), n INTEGER);"
)
GIFTS = "CREATE TABLE gifts (giver INTEGER REFERENCES users (id), was_of INTEGER REFERENCES orders (id), sent_on DATE)"


def test_what_stands_below_an_event_is_of_its_time(read_live: Callable[[str], LiveSchema]) -> None:
    text = scaffold(read_live(SHOP + GIFTS), "duckdb:x")
    times = re.findall(r'^(?:# )?\[tables\.(\w+)\]$|^# time = "([^"]*)"', text, re.MULTILINE)
    told = " ".join(name or time for name, time in times)
    assert told == (
        "users gifts sent_on items orders.ordered_at letters orders ordered_at returns orders.ordered_at"
    )


def test_a_total_for_each_month_is_proposed_as_a_whole(read_live: Callable[[str], LiveSchema]) -> None:
    """With the signs of the section and of all times taken off, and a day written, the policy is taken."""
    live = read_live(SHOP)
    text = scaffold(live, "duckdb:x")
    written = text.replace("# since  =  ", "since = 2020-01-01").replace("# period", "period")
    written = written.replace("# [privacy.time]", "[privacy.time]").replace("# time = ", "time = ")
    tables = build_catalog(policy_from(written), live).tables
    assert {name for name, table in tables.items() if table.unit and table.unit.time} == {
        "orders",
        "items",
        "returns",
    }
    assert "privacy.time" not in scaffold(read_live(SHOP.partition("CREATE TABLE orders")[0]), "duckdb:x")
