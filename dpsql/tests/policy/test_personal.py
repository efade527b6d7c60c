"""Tables that look as if they were about people: never offered as public, and warned of where they are."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

import pytest

from dpsql.policy import LiveSchema, build_catalog, check, scaffold

from .conftest import policy_from

ReadLive = Callable[[str], LiveSchema]
PATIENTS = (
    "CREATE TABLE patients (id INTEGER PRIMARY KEY, born DATE);"
    "CREATE TABLE bill (id INTEGER PRIMARY KEY, holder INTEGER REFERENCES patients (id), amount INTEGER);"
)
POLICY = """
database = "duckdb:x"
[privacy]
epsilon = 1
[tables.patients]
unit = "id"
[tables.bill]
unit = { column = "holder", references = "patients.id" }
[tables.t]
public = true
"""

PERSONAL = [
    "patient_id INTEGER", "patientId INTEGER", '"PATIENT ID" INTEGER', "patient_no VARCHAR", "patientid BIGINT",
    "patients_id INTEGER", "patient INTEGER", "fk_patient INTEGER", "bill_id INTEGER", "holder INTEGER",
    "holder VARCHAR", "id INTEGER", "customer_id BIGINT", "user_uuid UUID", "referring_doctor INTEGER", "email VARCHAR",
    '"e-mail" VARCHAR', "contact_email VARCHAR", "email_address VARCHAR", "ssn VARCHAR", "passport_no VARCHAR",
    "social_security VARCHAR", "national_id VARCHAR", "phone VARCHAR", "home_phone_number VARCHAR", "iban VARCHAR",
    "account_number VARCHAR", "first_name VARCHAR", "date_of_birth DATE", "ip_address VARCHAR", "device_id VARCHAR",
    "who UUID", "row_uuid VARCHAR",
]  # fmt: skip
HARMLESS = [
    "title VARCHAR", "code VARCHAR", "price DECIMAL(9,2)", "patient_count INTEGER", "name VARCHAR",
    "has_email BOOLEAN", "email BOOLEAN", "opened DATE", "email_domain VARCHAR", "number INTEGER",
    "id INTEGER PRIMARY KEY", "id UUID PRIMARY KEY", "status VARCHAR", "idea VARCHAR",
    "users_per_day INTEGER", "mailing VARCHAR", "valid BOOLEAN", "key VARCHAR UNIQUE", "id VARCHAR",
    "user_kind ENUM ('a', 'b')",
]  # fmt: skip

DOUBTFUL = ["ward_id INTEGER", "parent_id INTEGER", "room_no INTEGER", "xyz_ref VARCHAR"]
"""Keys that repeat and lead nowhere: perhaps a person's, in words that nobody has listed."""

OF_OTHER_LANGUAGES = [
    "pat_nr INTEGER", "matrikel VARCHAR", "pid INTEGER", "ip VARCHAR", "dni VARCHAR", "Kunden_Nummer INTEGER",
    '"Schüler_ID" INTEGER', "\"élève\" INTEGER", "courriel VARCHAR", "usuario_id INTEGER", "cpf VARCHAR",
    "codiceFiscale VARCHAR", "klant_no INTEGER", "pacjent_id INTEGER", '"użytkownik_id" INTEGER',
    "personnr VARCHAR", '"müşteri_no" INTEGER', '"kullanıcı" INTEGER', "nik VARCHAR", "pelanggan_id INTEGER",
]  # fmt: skip


def warned(live: LiveSchema, policy: str = POLICY) -> list[str]:
    return [text for text in check(policy_from(policy), live).warnings if "shown as they are" in text]


@pytest.mark.parametrize("column", [*PERSONAL, *OF_OTHER_LANGUAGES])
def test_a_column_that_looks_like_a_persons_key(read_live: ReadLive, column: str) -> None:
    live = read_live(f"{PATIENTS} CREATE TABLE t (day DATE, {column})")
    text = scaffold(live, "duckdb:x")
    assert "public = true" not in text
    assert "so it is not offered as public" in text
    (warning,) = warned(live)
    assert warning.startswith("campus.toml: tables.t: is public, so its rows are shown as they are, and ")
    assert "looks like a person's key" in warning


@pytest.mark.parametrize("column", DOUBTFUL)
def test_a_key_that_leads_nowhere_is_not_offered_and_not_warned_of(read_live: ReadLive, column: str) -> None:
    live = read_live(f"{PATIENTS} CREATE TABLE t (day DATE, {column})")
    text = scaffold(live, "duckdb:x")
    assert "public = true" not in text
    assert "nothing says what" in text
    assert warned(live) == []


def test_a_key_that_a_tables_name_explains_is_no_doubt(read_live: ReadLive) -> None:
    live = read_live(
        f"{PATIENTS} CREATE TABLE wards (id INTEGER); CREATE TABLE t (day DATE, ward_id INTEGER)"
    )
    assert "# [tables.t]\n# public = true\n" in scaffold(live, "duckdb:x")


@pytest.mark.parametrize("column", HARMLESS)
def test_a_column_that_does_not(read_live: ReadLive, column: str) -> None:
    live = read_live(f"{PATIENTS} CREATE TABLE t (day DATE, {column})")
    assert "# [tables.t]\n# public = true\n" in scaffold(live, "duckdb:x")
    assert warned(live) == []


def test_what_the_scaffold_offers_instead_is_a_policy(read_live: ReadLive) -> None:
    live = read_live(f"{PATIENTS} CREATE TABLE visits (patient_id INTEGER, illness VARCHAR)")
    text = scaffold(live, "duckdb:x")
    assert "visits" not in tomllib.loads(text)["tables"], "it is not declared unseen"
    offered = text.split("so it is not offered as public.\n")[1].split("\n\n")[0]
    assert offered.startswith(
        '# [tables.visits]\n# unit = { column = "patient_id", references = "patients.id" }\n'
    )
    taken = "\n".join(line.removeprefix("# ") for line in offered.split("\n"))
    catalog = build_catalog(policy_from(text.replace(offered, taken)), live)
    assert [column.name for column in catalog.tables["visits"].columns] == ["illness"]
    unit = catalog.tables["visits"].unit
    assert unit is not None
    assert (unit.columns, unit.references) == (("patient_id",), ("patients", ("id",)))


def test_a_key_of_another_type_is_not_offered_as_the_owner(read_live: ReadLive) -> None:
    live = read_live(f"{PATIENTS} CREATE TABLE visits (patient_id VARCHAR, illness VARCHAR)")
    assert '# [tables.visits]\n# unit = { column = "", references = "" }\n' in scaffold(live, "duckdb:x")


def test_a_table_named_for_people(read_live: ReadLive) -> None:
    live = read_live(f"{PATIENTS} CREATE TABLE clinic_nurses (grade INTEGER)")
    assert "it is named for people, so it is not offered as public" in scaffold(live, "duckdb:x")
    (warning,) = warned(live, POLICY.replace("tables.t]", "tables.clinic_nurses]"))
    assert "it is named for people; if they are" in warning


def test_a_foreign_key_is_warned_of_once(read_live: ReadLive) -> None:
    live = read_live(f"{PATIENTS} CREATE TABLE t (patient_id INTEGER REFERENCES patients (id))")
    assert warned(live) == []
    assert len([text for text in check(policy_from(POLICY), live).warnings if "tables.t" in text]) == 1


def test_a_foreign_key_to_what_is_nobodys_explains_a_uuid(read_live: ReadLive) -> None:
    live = read_live(
        f"{PATIENTS} CREATE TABLE ward (id UUID PRIMARY KEY); CREATE TABLE t (ward UUID REFERENCES ward (id))"
    )
    assert warned(live) == []


def test_several_columns_are_one_warning(read_live: ReadLive) -> None:
    live = read_live(
        f"{PATIENTS} CREATE TABLE t (a_id INTEGER, email VARCHAR, ssn VARCHAR, phone VARCHAR, iban VARCHAR)"
    )
    (warning,) = warned(live)
    assert '"email" and "ssn" and "phone" look like a person\'s key; if they are' in warning
