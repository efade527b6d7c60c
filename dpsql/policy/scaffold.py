"""Writes a first policy file from the live schema: valid where it can be, with comments for what is left.

House rules:

1. Everything here comes from names, types and constraints. No number that shapes an answer is made up, and none is read
   from a row: bounds are left to the owner, as comments. What is written as `values` are the labels of a type, or the
   keys of a table that the owner has called public.
2. Who the people of a database are is a guess, text in a file that the owner reads before anything is answered. Which
   column of a public table of files is its key is a guess from names and types too: files have no keys and no foreign
   keys, by which a table of a database says both. Whether a guess is a key is for the table's own rows to say, which
   are nobody's.
3. What stands on the way to a person is undated or gives the rows its very time (`load_tables.check_times`), so a table
   below one with a time is proposed that one's, whatever its own columns are: what is proposed holds together.

House rule of columns that look like a person's key, by names and types: nothing decides. A look never makes a table
private, and that nothing looks so proves nothing; `init` offers no such table as public, and `check` warns of one that
is.

Words by which data name a person stand here in the languages that they are kept in.

House rule: singular and plural, without accents, as names are read here; a word that means much else too stands here
only where doubt is better than silence. Sources: the usual vocabulary of schools, clinics, shops and registers, and the
names of national identity numbers (OECD, Tax Identification Numbers, by country).

Whether the values of a public table look like persons': for `check --data`, which reads them for the owner.

House rule: that decides nothing either, and no value is ever said. `init` reads none.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction

from ..records import dataclass
from ..regex import regex
from ..relation.types import Kind
from .live_schema import KEY_TYPES, LiveColumn, LiveForeignKey, LiveSchema, LiveTable
from .section import plain, quote_key, quote_text
from .units import can_identify_unit, possible_owners, quoted_key, shared_type, unit_text

# --- words by which data name a person, in the languages that they are kept in ------------------------------


_OTHER_PEOPLE = {
    "German": "arbeitnehmer bewohner buerger burger einwohner fahrer kaeufer kunde kunden kundin lehrer mieter "
    "mitarbeiter mitglied mitglieder nutzer benutzer pat patienten patientin personen probanden proband "
    "schueler schuler studenten studierende studierender teilnehmer versicherte versicherter waehler",
    "French": "abonne adherent assure citoyen eleve employe enseignant etudiant habitant locataire membre "
    "participante personne salarie usager utilisateur",
    "Spanish": "alumno alumnos asegurado ciudadano cliente clientes empleado estudiante inquilino paciente pacientes "
    "persona personas profesor socio trabajador usuario usuarios vecino",
    "Portuguese": "aluno alunos cidadao contribuinte funcionario morador pessoa pessoas professor trabalhador utente "
    "utentes utilizador",
    "Italian": "abbonato alunno assistito cittadino clienti dipendente paziente pazienti persone soci socio studente "
    "studenti utente utenti",
    "Dutch": "burger deelnemer gebruiker huurder inwoner klant klanten leerling lid leden leraar medewerker "
    "patienten personeel persoon personen verzekerde werknemer",
    "Polish": "klient klienci nauczyciel obywatel osoba osoby pacjent pacjenci pracownik studenci uczen uczniowie "
    "uzytkownik",
    "Swedish": "anstalld anvandare deltagare elev elever kund kunder larare medborgare medlem medlemmar patienter "
    "personer",
    "Turkish": "calisan hasta hastalar kisi kisiler kullanici musteri musteriler ogrenci ogrenciler ogretmen uye "
    "uyeler vatandas",
    "Indonesian": "anggota guru karyawan mahasiswa nasabah orang pasien pegawai pelanggan pengguna siswa warga",
}
_OTHER_NUMBERS = {
    "everywhere": "ip ipaddr ipaddress ipv4 ipv6 mac pid uid username",
    "German": "matrikel matrikelnr matrikelnummer personalnr personalnummer personennummer "
    "sozialversicherungsnummer steuerid steuernummer svnr versichertennummer",
    "French": "courriel insee matricule nir",
    "Spanish": "correo curp dni nie nif nss rfc telefono",
    "Portuguese": "celular cpf nif nis pis sns telefone",
    "Italian": "cf codicefiscale cellulare matricola telefono",
    "Dutch": "burgerservicenummer telefoon",
    "Polish": "legitymacja telefon",
    "Swedish": "fodelsenummer personnr personnummer telefon",
    "Turkish": "eposta tckn tckimlik telefon",
    "Indonesian": "ktp nik nim npwp nip telepon",
}

OTHER_PEOPLE = frozenset(word for words in _OTHER_PEOPLE.values() for word in words.split())
"""What a person is called, beside English."""

OTHER_NUMBERS = frozenset(word for words in _OTHER_NUMBERS.values() for word in words.split())
"""What stands for one person alone."""

_OTHER_PAIRS = frozenset(
    {"codice fiscale", "geburts datum", "kimlik no", "numero securite", "securite sociale", "seguridad social",
     "steuer id", "steuer nummer", "tarjeta sanitaria", "tc kimlik", "tessera sanitaria", "vor name", "nach name"}
)  # fmt: skip
"""The same in two words."""


# --- whether the values of a public table look like persons' ------------------------------------------------


MOST_READ = 10_000
"""Rows of a public table that are looked at."""
_LEAST = 20
"""Fewer values than this that all differ are a short list, and say nothing."""
_SHARE = 0.8
_EMAIL = regex(r"[^@\s]+@[^@\s]+\.[^@\s.]{2,}")
_PHONE = regex(r"(\+|00?)[\d\s()./-]{6,20}|[\d]{2,5}[\s()./-][\d\s()./-]{4,18}")
_UUID = regex(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_ENDS_IN_DIGITS = regex(r"(?=\D*\d{4})[A-Za-z0-9][A-Za-z0-9./_-]{4,30}")
"""A short word with four digits in a row: a number that somebody, or something, was given."""


def look_of(values: Sequence[str], *, is_key: bool) -> str | None:
    """Return what the texts of a column look like, in words; None: like nobody's.

    `is_key`: a constraint says already that they are a key, as a lookup's own code is.
    """
    if not values:
        return None
    for words, test in (
        ("e-mail addresses", _EMAIL.fullmatch),
        ("IP addresses", _is_address),
        ("phone numbers", _is_phone),
        ("random identifiers", _UUID.fullmatch),
    ):
        if sum(bool(test(value.strip())) for value in values) >= _SHARE * len(values):
            return words
    are_distinct = len(values) >= _LEAST and len(set(values)) == len(values)
    if are_distinct and not is_key and all(map(_ENDS_IN_DIGITS.fullmatch, values)):
        return "numbers of which each stands once"
    return None


def _is_address(value: str) -> bool:
    if not re.search(r"[.:].*[.:]", value):
        return False
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return False
    return True


def _is_phone(value: str) -> bool:
    digits = sum(map(str.isdigit, value))
    is_date = re.fullmatch(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T\s].*)?", value)
    return 7 <= digits <= 15 and is_date is None and _PHONE.fullmatch(value) is not None


# --- which columns look like a person's key, told from names and types alone --------------------------------


_PEOPLE = frozenset(
    {"citizen", "client", "customer", "employee", "member", "participant", "patient", "people", "person", "resident",
     "student", "subscriber", "user"}
)  # fmt: skip
"""What tables of people are called, in the singular."""

_MORE_PEOPLE = _PEOPLE | frozenset(
    {"applicant", "borrower", "cardholder", "doctor", "driver", "guest", "household", "individual",
     "insured", "nurse", "owner", "passenger", "pupil", "recipient", "sender", "staff", "teacher", "tenant",
     "visitor", "voter", "worker"}
) | OTHER_PEOPLE  # fmt: skip
_KEY_WORDS = frozenset(
    {
        "id",
        "ids",
        "key",
        "no",
        "nr",
        "num",
        "number",
        "nummer",
        "numero",
        "code",
        "uuid",
        "guid",
        "pk",
        "fk",
        "ref",
    }
)
_PERSONAL = frozenset(
    {"ahv", "bsn", "cpr", "dob", "email", "iban", "imei", "imsi", "login", "mail", "mobile", "mrn", "msisdn", "nhs",
     "nin", "nino", "passport", "personnummer", "phone", "pesel", "ssn", "surname", "telephone", "tin", "username"}
) | OTHER_NUMBERS  # fmt: skip
"""Words that name a person by themselves, as a whole column or before a word for a key."""
_NUMBERS = frozenset(
    {"account", "ahv", "bsn", "card", "cpr", "device", "email", "iban", "imei", "imsi", "login", "mrn", "msisdn", "nhs",
     "nin", "nino", "pesel", "ssn", "uid", "username"}
) | OTHER_NUMBERS  # fmt: skip
"""What stands for a person where a row names none."""
_PERSONAL_PAIRS = frozenset(
    {"account id", "account key", "account no", "account number", "birth date", "card no", "card number", "date birth",
     "device id", "driver license", "driving licence", "e mail", "email address", "family name", "first name",
     "full name", "given name", "health number", "insurance number", "ip address", "last name", "login name",
     "maiden name", "mobile number", "national id", "passport number", "phone number", "social security", "tax id",
     "tax number", "user name"}
) | _OTHER_PAIRS  # fmt: skip


@dataclass(frozen=True, slots=True)
class KnownPeople:
    """What is known of the people: their table, the tables of theirs, and the columns that name their owners."""

    root: LiveTable
    tables: frozenset[str]
    owners: frozenset[str]

    @property
    def key(self) -> LiveColumn | None:
        """The root's key, where it is one column."""
        return self.root.column(self.root.primary_key[0]) if len(self.root.primary_key) == 1 else None


def personal_columns(table: LiveTable, known: KnownPeople, live: LiveSchema) -> tuple[str, ...]:
    """Return the names of the columns that look like a person's key, in the table's order."""
    return tuple(column.name for column in table.columns if _is_personal(column, table, known, live))


def doubtful_columns(table: LiveTable, known: KnownPeople, live: LiveSchema) -> tuple[str, ...]:
    """Return the columns named for a key that repeats, of which neither a foreign key nor a table's name says what it
    leads to: it may be a person's in words that nobody has listed."""
    named = {
        _singular(_joined(other.path[1]))
        for other in live.tables
        if live.name_of(other.path) not in known.tables
    }
    return tuple(
        column.name
        for column in table.columns
        if column.type.kind is not Kind.BOOLEAN
        and column.enum_values is None
        and (stem := _without_key_word(_words(column.name) or [""]))
        and stem not in named
        and not table.is_unique(column.name)
        and not _leads_elsewhere(column, table, known, live)
    )


def is_named_for_people(table: LiveTable, *, only_usual: bool = False) -> bool:
    """Say whether a table has the name of one that holds people; `only_usual`: of the people that data are kept of."""
    words = _words(table.path[1])
    known = _PEOPLE if only_usual else _MORE_PEOPLE
    return bool(words) and (words[-1] in known or _singular(words[-1]) in known)


def is_table_of(table: LiveTable, person: str) -> bool:
    """Say whether a table's name is that of a person, as `person_named_by` returns it."""
    words = _words(table.path[1])
    return bool(words) and person in (words[-1], _singular(words[-1]))


def person_named_by(column: LiveColumn) -> tuple[int, str]:
    """Return whom a column's name says that its values are, and how sure that is, 0 most; "" for nobody.

    `patient_id`, `PatientNo` and `patient` are of a patient, a `sender_id` of a sender; where nobody is named so, an
    `email` or `device_id` stands for somebody.
    """
    words = _words(column.name)
    if not words or column.enum_values is not None:
        return 3, ""
    is_key = len(words) > 1 and words[-1] in _KEY_WORDS
    last = _singular(words[-2]) if is_key else words[-1]  # `patients` alone may be how many
    stems = {_without_key_word(words), last}
    for rank, known in enumerate((_PEOPLE, _MORE_PEOPLE, _NUMBERS)):
        if found := sorted(known & stems):
            return rank, found[0]
    return 3, ""


def names_person_of(column: LiveColumn, known: KnownPeople) -> bool:
    """Say whether a column of the root key's type has a name that leads to the root: it may be the owner."""
    key = known.key
    if key is None or column.engine_type != key.engine_type:
        return False
    words = _words(column.name)
    own = _singular(_joined(known.root.path[1]))
    return column.name in known.owners or _joined(column.name) == own or _without_key_word(words) == own


def _is_personal(column: LiveColumn, table: LiveTable, known: KnownPeople, live: LiveSchema) -> bool:
    if column.type.kind is Kind.BOOLEAN or column.is_generated or column.enum_values is not None:
        return False
    words = _words(column.name)
    if not words:
        return False
    if column.name in known.owners or names_person_of(column, known):
        return True
    tables = {_singular(_joined(name)) for name in known.tables} | _MORE_PEOPLE
    if _without_key_word(words) in tables or (words[-1] in _MORE_PEOPLE and len(words) <= 2):
        return True
    if _says_person(words):
        return True
    key = known.key
    if key is not None and column.name == key.name and column.engine_type == key.engine_type:
        return is_telling(column.name) or not table.is_unique(column.name)
    return (
        _is_uuid(column)
        and not table.is_unique(column.name)
        and not _leads_elsewhere(column, table, known, live)
    )


def _says_person(words: list[str]) -> bool:
    if words[-1] in _KEY_WORDS and len(words) > 1 and words[-2] in _PERSONAL | _MORE_PEOPLE:
        return True
    content = [word for word in words if word not in ("of", "s")]
    return words[-1] in _PERSONAL or " ".join(content[-2:]) in _PERSONAL_PAIRS


def is_telling(name: str) -> bool:
    """Say whether a key's name says whose key it is: `id` does not."""
    return any(word not in _KEY_WORDS for word in _words(name))


def _is_uuid(column: LiveColumn) -> bool:
    return column.engine_type.lower() == "uuid" or _words(column.name)[-1] in ("uuid", "guid")


def _leads_elsewhere(column: LiveColumn, table: LiveTable, known: KnownPeople, live: LiveSchema) -> bool:
    """Say whether a foreign key says what the column is: another table's that is nobody's."""
    targets = [key.table for key in table.foreign_keys if column.name in key.columns]
    return bool(targets) and not any(live.name_of(path) in known.tables for path in targets)


_LETTERS = str.maketrans({"ı": "i", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "ß": "ss"})
"""Letters that do not come apart into one and its accent."""


def _words(name: str) -> list[str]:
    """Return the words of a name, without accents: `patientId`, `PATIENT_ID` and `patient id` are two."""
    decomposed = unicodedata.normalize("NFKD", name).translate(_LETTERS)
    plain = "".join(one for one in decomposed if not unicodedata.combining(one))
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    return re.findall(r"[^\W_]+", spaced.lower())


def _joined(name: str) -> str:
    return "".join(_words(name.rpartition(".")[2]))


def _without_key_word(words: list[str]) -> str:
    """Return a name without the word for a key at its end: `patient_no` and `patientid` are a patient's; else ""."""
    if len(words) > 1 and words[-1] in _KEY_WORDS:
        return _singular("".join(words[:-1]))
    match = re.fullmatch(r"(.{3,}?)(id|uuid|guid|key|no|nr)", words[-1]) if len(words) == 1 else None
    return _singular(match[1]) if match else ""


def _singular(word: str) -> str:
    for ending, stem in (("ies", "y"), ("ss", "ss"), ("s", "")):
        if word.endswith(ending):
            return word.removesuffix(ending) + stem
    return word


def known_people(root: LiveTable, tables: Collection[str], owners: Collection[str]) -> KnownPeople:
    """Return what the private tables' names and their owners' columns tell; a column that says no more than `id`
    tells nothing."""
    return KnownPeople(root, frozenset(tables), frozenset(name for name in owners if is_telling(name)))


# --- a first policy file ----------------------------------------------------------------------------------


_WHEN = regex(r"(^|_)(at|time|timestamp|date|day)$|date")
_NO_TIME = regex("updat|modif|chang|expir|birth|born|due|valid|until")


def own_time(table: LiveTable) -> str | None:
    """Return the one column that says when a table's rows were: by its name, or as the only moment that there is; None:
    there is none, or a choice."""
    moments = [
        column
        for column in table.columns
        if column.type.kind in (Kind.DATE, Kind.TIMESTAMP) and not _NO_TIME.search(column.name.lower())
    ]
    named = [column for column in moments if _WHEN.search(column.name.lower())]
    certain = [column for column in named if column.not_null]
    found = next((some for some in (certain, named, moments) if len(some) == 1), None)
    return None if found is None else found[0].name


def proposed_time(
    table: LiveTable,
    live: LiveSchema,
    ways: Mapping[tuple[str, str], tuple[LiveForeignKey, ...]],
    root: LiveTable | None,
) -> str | None:
    """Return a table's time as a policy writes it: `ordered_at`, or `orders.ordered_at` of the farthest table with one
    on its way to the person, up to where there is a choice of ways. None: its rows would be undated.

    `ways`: the foreign keys of each table that lead to its person; `root`: the table of people, which is undated.
    """
    found, here, passed = own_time(table), table, {table.path}
    while len(keys := ways.get(here.path, ())) == 1:
        above = live.table(keys[0].table)
        if above is None or above.path in passed or (root is not None and above.path == root.path):
            break
        column = own_time(above)
        found = found if column is None else f"{live.name_of(above.path)}.{column}"
        passed.add(above.path)
        here = above
    return found


# --- which column of a public table of files is its key, and which columns lead to it -----------------------


_KEY_NAMES = ("id", "key", "code", "no", "number")


def possible_keys(table: LiveTable, live: LiveSchema) -> tuple[str, ...]:
    """Return the columns that could be a lookup's key: those that others lead to first, then those named like one."""
    usable = [column for column in table.columns if can_identify_unit(column)]
    led_to = [column.name for column in usable if any(_pointing(table, column, live))]
    named = [column.name for column in usable if column.name.lower().rpartition("_")[2] in _KEY_NAMES]
    return tuple(dict.fromkeys((*led_to, *named)))


def with_lookup(live: LiveSchema, path: tuple[str, str], key: str) -> LiveSchema:
    """Return the schema in which a column is taken for its table's key, and other tables' columns lead to it."""
    table = live.table(path)
    column = None if table is None else table.column(key)
    assert table is not None, "it was found in this schema"
    assert column is not None, "it was found in this table"
    leading = dict[tuple[str, str], tuple[LiveForeignKey, ...]]()
    for other, name in _pointing(table, column, live):
        leading[other.path] = (*leading.get(other.path, ()), LiveForeignKey((name,), path, (key,)))
    tables = (
        replace(one, asserted=(key,))
        if one.path == path
        else replace(one, foreign_keys=(*one.foreign_keys, *leading.get(one.path, ())))
        for one in live.tables
    )
    return replace(live, tables=tuple(tables))


def _pointing(table: LiveTable, key: LiveColumn, live: LiveSchema) -> Iterator[tuple[LiveTable, str]]:
    """Yield the columns of other tables that have a key's type, and its name or one made of the table's."""
    whose, name = {table.path[1].lower(), table.path[1].lower().removesuffix("s")}, key.name.lower()
    wanted = {f"{one}_{name}" for one in whose}
    wanted |= whose if name in (*_KEY_NAMES, "name") else {name}
    for other in live.tables:
        for column in other.columns if other.path != table.path else ():
            is_named = column.name.lower() in wanted
            if is_named and can_identify_unit(column) and shared_type(column) == shared_type(key):
                yield other, column.name


# --- who the people of a database are, guessed from names, types and keys -----------------------------------


Path = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Guess:
    """Whose rows each table has.

    `root`: a table of people, whose key is the unit; None where the person's number stands in the rows: `units` has
    the columns of each such table, one unless there is a choice. `ways`: the foreign keys of the other tables that
    lead to an owner. `misfits`: columns that name the person in another type than the first table's does.
    """

    root: LiveTable | None = None
    units: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    ways: Mapping[Path, tuple[LiveForeignKey, ...]] = field(default_factory=dict)
    misfits: Mapping[Path, str] = field(default_factory=dict)

    def is_private(self, path: Path) -> bool:
        """Say whether the rows of a table are people's, as far as keys and names tell."""
        is_root = self.root is not None and path == self.root.path
        return is_root or path in self.units or path in self.misfits or bool(self.ways.get(path))

    def known(self, tables: Sequence[LiveTable], live: LiveSchema) -> KnownPeople | None:
        """Return what the guess tells of the people; None where nobody was found."""
        first = self.root or next((table for table in tables if table.path in self.units), None)
        if first is None:
            return None
        private = [live.name_of(table.path) for table in tables if self.is_private(table.path)]
        columns = [name for keys in self.ways.values() for key in keys for name in key.columns]
        columns += [name for names in self.units.values() for name in names]
        return known_people(first, private, columns)


def guess_people(tables: Sequence[LiveTable]) -> Guess:
    """Return whose rows the tables have: of a table named for people, else of the person that rows name, else of the
    table that most others lead to."""
    root = _named_root(tables)
    units, misfits = ({}, {}) if root is not None else _units_in_rows(tables)
    if root is None and not units:
        root = _most_reached(tables)
    roots = [root.path] if root is not None else [path for path, names in units.items() if len(names) == 1]
    ways = {
        table.path: possible_owners(table, roots, tables)
        for table in tables
        if table is not root and table.path not in units and table.path not in misfits
    }
    for table in tables:
        if table.path in ways and not ways[table.path]:
            ways[table.path] = _ways_of_parts(table, ways, tables, root)
    return Guess(root, units, ways, misfits)


def unit_key(table: LiveTable) -> tuple[str, ...]:
    """Return a table's primary key where it can be a unit, or ()."""
    columns = [table.column(name) for name in table.primary_key]
    return table.primary_key if all(one is not None and can_identify_unit(one) for one in columns) else ()


def _named_root(tables: Sequence[LiveTable]) -> LiveTable | None:
    """Return the table with a key that is named for people, or that columns named for people point at."""
    pointed = {
        key.table
        for table in tables
        for key in table.foreign_keys
        if len(key.columns) == 1
        and (column := table.column(key.columns[0])) is not None
        and person_named_by(column)[0] == 0
    }

    def weight(table: LiveTable) -> tuple[bool, bool, int, int]:
        is_named = is_named_for_people(table, only_usual=True)
        return is_named, table.path in pointed, _leading_to(table, tables), len(table.columns)

    named = [table for table in tables if unit_key(table)]
    named = [table for table in named if table.path in pointed or is_named_for_people(table)]
    return max(named, key=weight, default=None)


def _most_reached(tables: Sequence[LiveTable]) -> LiveTable | None:
    candidates = [table for table in tables if len(unit_key(table)) == 1]
    if len(candidates) > 1:
        candidates = [table for table in candidates if _leading_to(table, tables)]
    return max(candidates, key=lambda table: (_leading_to(table, tables), len(table.columns)), default=None)


def _leading_to(root: LiveTable, tables: Sequence[LiveTable]) -> int:
    """Return how many other tables lead to a table, over one foreign key or several."""
    found = {root.path}
    while more := {
        t.path for t in tables if t.path not in found and any(k.table in found for k in t.foreign_keys)
    }:
        found |= more
    return len(found) - 1


def _units_in_rows(tables: Sequence[LiveTable]) -> tuple[dict[Path, tuple[str, ...]], dict[Path, str]]:
    """Return the tables in whose rows one kind of person stands, and those that have it in another type."""
    by_person: dict[tuple[int, str], dict[Path, list[LiveColumn]]] = defaultdict(lambda: defaultdict(list))
    for table in tables:
        for column in table.columns:
            rank, person = person_named_by(column)
            if person and can_identify_unit(column):
                by_person[rank, person][table.path].append(column)
    if not by_person:
        return {}, {}
    rank, person = min(by_person, key=lambda one: (one[0], -len(by_person[one])))
    found = by_person[rank, person]
    for table in tables:
        if table.path not in found and is_table_of(table, person):
            key = next((c for c in table.columns if c.name.lower() == "id" and can_identify_unit(c)), None)
            found[table.path] += [] if key is None else [key]
    kinds = [shared_type(column) for columns in found.values() for column in columns]
    usual = max(dict.fromkeys(kinds), key=kinds.count)
    units, misfits = {}, {}
    for path, columns in found.items():
        fitting = tuple(column.name for column in columns if shared_type(column) == usual)
        if fitting:
            units[path] = fitting
        elif columns:
            misfits[path] = columns[0].name
    return units, misfits


def _ways_of_parts(
    table: LiveTable,
    ways: Mapping[Path, tuple[LiveForeignKey, ...]],
    tables: Sequence[LiveTable],
    root: LiveTable | None,
) -> tuple[LiveForeignKey, ...]:
    """Return the ways that a part of a foreign key of several columns has: it stands in the parent's row too, and
    goes on from there."""
    found = []
    for key in table.foreign_keys:
        for name, referenced in zip(key.columns, key.referenced, strict=True):
            for further in ways.get(key.table, ()) if len(key.columns) > 1 else ():
                column = table.column(name)
                parent = next((one for one in tables if one.path == further.table), None)
                target = None if parent is None else parent.column(further.referenced[0])
                if further.columns != (referenced,) or column is None or target is None:
                    continue
                if can_identify_unit(column) and column.engine_type == target.engine_type:
                    found.append(LiveForeignKey((name,), further.table, further.referenced))
            if root is not None and key.table == root.path and len(key.columns) > 1:
                column, target = table.column(name), root.column(referenced)
                is_own = root.primary_key == (referenced,) and column is not None and target is not None
                if (
                    is_own
                    and column is not None
                    and target is not None
                    and column.engine_type == target.engine_type
                ):
                    found.append(LiveForeignKey((name,), root.path, (referenced,)))
    return tuple(dict.fromkeys(found))


# --- writes a first policy file from the live schema --------------------------------------------------------


_MOST_LABELS = 30
_MOST_NAMED = 8

_HEAD = """\
# A dpsql policy. What is not declared here does not exist for an analyst.
#
# Each number you fill in must come from what you know about the subject, never from a look at the data:
# a bound that was read off the data gives the data away. scale = "log" beside the bounds of a number with a long tail,
# such as incomes, makes its medians and percentiles more exact.

database = {database}

[privacy]
epsilon    = 1             # lifetime cap for everybody together: 1 is strong, 10 is weak
delta      = 1e-6          # lifetime cap; far below one in the number of units. 0: declared group keys only
neighbours = "add-remove"  # or "replace-one"
# together = 4             # the promise for any 4 persons together (a household): four times the noise
{time}
[defaults]
epsilon     = 0.05  # of one statement, when the analyst sets none
max_epsilon = 1     # of one statement, whatever the analyst sets
delta       = 1e-9  # of one release with undeclared group keys
"""
_TIME = """\
# A total for each month of the data in place of one for ever: another promise, and a weaker one over the years. To have
# it, take the signs off here, and off time at the tables: dpsql docs owner data that grow
# [privacy.time]
# period = "month"
# since  =          # the first day of which there are data; rows before it never count
"""
_NO_ROOT = """
# Whose rows these are could not be told from names and keys. Take the comment signs off a table of people, with
#   unit = "<its key>"
# or off a table of events in whose rows the person's number stands, with
#   unit = "<the column with that number>"
# or off a table without such a number in which each row is one person, and nobody has two, with
#   unit = "row"
"""
_ONE_ROW = """\
# Nothing here says whose a row is. If each row is one person, and nobody has two, take this comment sign off: each row
# is protected by itself then, and joins public tables alone.
# unit = "row"
"""
_NUMBERED = """\
# Or, if {column} is a person's number, this one: all rows with one number are protected together.
# unit = {column}
"""
_NAMED = """\
# Or, if a column is a person's number, write it here: all rows with one number are protected together.
# unit = ""
"""
_CHOICE = """\
# A row leads to more than one owner, and only the one you choose is protected. Take one comment sign off:
"""
_LEFT_OUT = "# Left out until it says whose its rows are. Take the signs off its names and columns then:"
_BOUNDS = """\
# max_rows   =   # most rows of one unit that count in one result; dpsql bounds measures it, at a price
# max_groups =   # if fewer: most groups of one result that one unit may touch
"""
_TIME_LINE = "# time = "
_ALSO = """\
# Rows of two people: what is asked by such a column then protects both, and has the noise of both. max_rows: most rows
# joined by it that point at one person.
"""
_TAIL = """
# An analyst and a personal cap:
# [analysts.alice]
# epsilon = 0.5
"""


@dataclass(frozen=True, slots=True)
class Scaffold:
    """What a first policy is written from, beside the schema.

    `sources`: the files of each table, where tables are files. `keys`: of each table that the owner has called public
    the values of its key, or None where they are too many to list. `ranges`: of such a table, between which ends the
    numbers of a column lie.
    """

    live: LiveSchema
    database: str
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keys: Mapping[str, tuple[int | str, ...] | None] = field(default_factory=dict)
    ranges: Mapping[str, Mapping[str, tuple[Fraction, Fraction]]] = field(default_factory=dict)

    def head_of(self, table: LiveTable) -> str:
        """Return the lines with which a table begins."""
        name = self.live.name_of(table.path)
        files = [quote_text(one) for one in self.sources.get(name, ())]
        shown = files[0] if len(files) == 1 else f"[{', '.join(files)}]"
        return f"[tables.{quote_key(name)}]\n" + (f"source = {shown}\n" if files else "")


def scaffold(
    live: LiveSchema,
    database_url: str,
    sources: Mapping[str, tuple[str, ...]] | None = None,
    keys: Mapping[str, tuple[int | str, ...] | None] | None = None,
    ranges: Mapping[str, Mapping[str, tuple[Fraction, Fraction]]] | None = None,
) -> str:
    """Return TOML text for a new policy: `Scaffold` says what `sources`, `keys` and `ranges` are.

    Whose the rows are is a guess (`guess_people`). A table with more than one way to an owner waits until its way is
    chosen; one without a way is a comment. What is left out, like views, is a comment that says why.
    """
    made = Scaffold(live, database_url, sources or {}, keys or {}, ranges or {})
    usable = [table for table in live.tables if _why_left_out(table) is None]
    public = [table for table in usable if live.name_of(table.path) in made.keys]
    tables = [table for table in usable if table not in public]
    guess = guess_people(tables)
    parts = []
    if guess.root is None and not guess.units and not _is_alone(tables):
        parts.append(_NO_ROOT)
    parts.append(_missing_rights(tables, live))
    ordered = sorted(tables, key=lambda table: table is not guess.root)
    declared = [_table_text(table, guess, ordered, made) for table in ordered]
    has_time = any(_TIME_LINE in text for text in declared)
    head = _HEAD.replace("{database}", quote_text(database_url)).replace("{time}", _TIME if has_time else "")
    parts = [head, *parts, *declared]
    parts += [
        f"\n{made.head_of(table)}public = true\n{_key_text(table)}{_ranges_text(table, made)}"
        for table in public
    ]
    if said := left_out(live):
        parts.append("\n# Left out:\n" + "".join(f"#   {one}\n" for one in said))
    return "".join(parts) + _views_text(live) + _TAIL


def _views_text(live: LiveSchema) -> str:
    """Return the views, which wait for the owner: each may show what no analyst should see."""
    names = [live.name_of(table.path) for table in live.tables if table.definition]
    names = [name for name in names if name.count(".") <= 1 and all(name.split("."))]
    if not names:
        return ""
    text = (
        "\n# Views. Analysts see what a view shows. The tables that it reads are declared too, with hidden = true where"
        "\n# only views may read them:\n"
    )
    return text + "".join(f"# [tables.{quote_key(name)}]\n# view = true\n" for name in names)


def left_out(live: LiveSchema) -> tuple[str, ...]:
    """Return a line for each table and view that a first policy does not have: its name, and why."""
    said = []
    for table in live.tables:
        why = _why_left_out(table)
        if why and not table.is_partition:
            said.append(f"{quote_key(live.name_of(table.path))}: {why}")
    by_fix: dict[str, list[str]] = {}
    for path, fix in live.unreadable:
        by_fix.setdefault(fix, []).append(quote_key(live.name_of(path)))
    for fix, names in by_fix.items():
        shown = quote_text(fix)[1:-1] if not fix.isprintable() else fix
        more = f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else ""
        it = "them" if names[1:] else "it"
        said.append(
            f"{', '.join(names[:_MOST_NAMED])}{more}: dpsql's role may not read {it}; run {shown}, and init again"
        )
    return tuple(said)


def _why_left_out(table: LiveTable) -> str | None:
    if table.unusable is not None:
        return table.unusable
    if table.is_partition:
        return "is a part of another table"
    if not all(part and "." not in part for part in table.path):
        return (
            "has a name that a policy cannot write, with a dot or empty; rename it, or show it under another"
        )
    return None


def _missing_rights(tables: Sequence[LiveTable], live: LiveSchema) -> str:
    """Return which tables that others point at our role cannot see: a missing right is no missing key."""
    hidden = dict(live.unreadable)
    pointed = dict.fromkeys(
        key.table for table in tables for key in table.foreign_keys if key.table in hidden
    )
    return "".join(
        f"\n# Foreign keys lead to {quote_key(live.name_of(path))}, which dpsql's role may not read: see below.\n"
        for path in pointed
    )


def _table_text(table: LiveTable, guess: Guess, tables: Sequence[LiveTable], made: Scaffold) -> str:
    if table is guess.root:
        return _root_text(table, guess, made)
    if names := guess.units.get(table.path):
        return _event_text(table, names, guess, made)
    if keys := guess.ways.get(table.path):
        return _owned_text(table, keys, guess, made)
    if name := guess.misfits.get(table.path):
        first = next(one for one in tables if one.path in guess.units)
        other = f"{quote_key(guess.units[first.path][0])} of {quote_key(made.live.name_of(first.path))}"
        text = f"{made.head_of(table)}unit = {quote_text(name)}\n"
        return (
            f"\n# {quote_key(name)} is of another type than {other}; give both one type, or leave this table out.\n"
            + _commented(text)
        )
    return _unowned_text(table, guess, tables, made)


def _root_text(root: LiveTable, guess: Guess, made: Scaffold) -> str:
    key = unit_key(root)
    assert key, "the root was chosen among tables with such a key"
    return (
        f"\n{made.head_of(root)}"
        f"unit = {quoted_key(key)}  # a guess: one row here is one privacy unit, the one who is protected\n"
        + _columns_text(root, key, guess, made)
    )


def _event_text(table: LiveTable, names: tuple[str, ...], guess: Guess, made: Scaffold) -> str:
    """Return a table in whose rows the person's number stands; with several such columns none is taken."""
    text = f"\n{made.head_of(table)}"
    if len(names) == 1:
        text += f"unit = {quote_text(names[0])}  # a guess: whose row it is; equal values are one unit, in all tables\n"
    else:
        text += _CHOICE + "".join(f"# unit = {quote_text(name)}\n" for name in names)
    if not all(map(table.is_unique, names)):
        text += _BOUNDS + _time_text(table, guess, made)
    return text + _columns_text(table, names if len(names) == 1 else (), guess, made)


def _owned_text(table: LiveTable, keys: tuple[LiveForeignKey, ...], guess: Guess, made: Scaffold) -> str:
    """Return a private table. With several ways to an owner none is taken: the policy waits for the choice, or leaves
    the table out until then, where no other table's way leads by it."""
    text = made.head_of(table)
    if len(keys) == 1:
        text += f"{unit_text(keys[0], made.live)}\n"
    else:
        text += _CHOICE + "".join(f"# {unit_text(key, made.live)}\n" for key in keys)
    if not all(table.is_unique(*key.columns) for key in keys):
        text += _BOUNDS + _time_text(table, guess, made)
    text += _also_text(table, keys[0] if len(keys) == 1 else None, guess, made)
    text += _columns_text(table, keys[0].columns if len(keys) == 1 else (), guess, made)
    others = (way.table for path, ways in guess.ways.items() if path != table.path for way in ways)
    if len(keys) == 1 or table.path in others:
        return f"\n{text}"
    lines = (line if line.startswith("#") else f"# {line}" for line in text.splitlines())
    return "\n".join(["", _LEFT_OUT, *lines, ""])


def _time_text(table: LiveTable, guess: Guess, made: Scaffold) -> str:
    """Return the line by which its rows would have a total for each month; rows without one are undated."""
    time = proposed_time(table, made.live, guess.ways, guess.root)
    if time is None:
        return ""
    return f"{_TIME_LINE}{quote_text(time)}  # for a total for each month of them: dpsql docs owner data that grow\n"


def _also_text(table: LiveTable, way: LiveForeignKey | None, guess: Guess, made: Scaffold) -> str:
    """Return the lines that would let rows of two people be counted; `way`: the key that leads to the owner."""
    lines = []
    for key in table.foreign_keys:
        parent = made.live.table(key.table)
        is_known = parent is not None and parent.is_unique(*key.referenced)
        if key == way or not is_known or not guess.is_private(key.table):
            continue
        referenced = [f"{made.live.name_of(key.table)}.{name}" for name in key.referenced]
        lines.append(
            f"# also = [{{ column = {quoted_key(key.columns)}, references = {quoted_key(referenced)}, max_rows =  }}]\n"
        )
    return f"{_ALSO}{''.join(lines)}" if lines else ""


def _unowned_text(table: LiveTable, guess: Guess, tables: Sequence[LiveTable], made: Scaffold) -> str:
    """Return a table from which nothing leads to the people; as public only if it does not look like theirs."""
    known = guess.known(tables, made.live)
    head = _commented(made.head_of(table))
    if known is None and _is_alone(tables):
        return _row_text(table, guess, made)
    if known is None:
        return f'\n{head}# unit = ""\n'
    people = quote_key(made.live.name_of(known.root.path))
    text = f"\n# No foreign key leads from here to {people}"
    looks = personal_columns(table, known, made.live)
    is_named = is_named_for_people(table)
    doubts = () if looks or is_named else doubtful_columns(table, known, made.live)
    if not looks and not is_named and not doubts:
        return f"{text}. If no row is about a person:\n{head}# public = true\n"
    what = f"{quote_key(looks[0])} looks like a person's key" if looks else "it is named for people"
    what = f"nothing says what {quote_key(doubts[0])} leads to" if doubts else what
    text += f", but {what}, so it is not offered as public.\n"
    owner = next((c for c in table.columns if c.name in looks and names_person_of(c, known)), None)
    if guess.root is None:
        return f'{text}{head}# unit = ""\n'
    if owner is None:
        return f'{text}{head}# unit = {{ column = "", references = "" }}\n'
    key = LiveForeignKey((owner.name,), guess.root.path, guess.root.primary_key)
    return text + _commented(_owned_text(table, (key,), guess, made).strip() + "\n")


def _is_alone(tables: Sequence[LiveTable]) -> bool:
    """Say whether there is one table, which no key tells the rows of apart: its rows may be people by themselves."""
    return len(tables) == 1 and not (tables[0].primary_key or tables[0].unique or tables[0].asserted)


def _row_text(table: LiveTable, guess: Guess, made: Scaffold) -> str:
    """Return the one table, in which nothing says whose a row is: the policy waits for the owner's word."""
    named = [one.name for one in table.columns if not is_telling(one.name) and can_identify_unit(one)]
    other = _NUMBERED.format(column=quote_text(named[0])) if named else _NAMED
    text = f"\n{made.head_of(table)}{_ONE_ROW}{other}"
    return text + _columns_text(table, (), guess, made)


def _commented(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.removesuffix("\n").split("\n"))


def _columns_text(table: LiveTable, unit: tuple[str, ...], guess: Guess, made: Scaffold) -> str:
    lines = [f"[tables.{quote_key(made.live.name_of(table.path))}.columns]"]
    for column in table.columns:
        if unit == (column.name,):
            continue
        is_part = column.name in unit
        declared, note = (
            ("{}", "for joins by all of the key") if is_part else _declaration(table, column, guess, made)
        )
        is_hidden = declared is None
        lines.append(f"{'# ' if is_hidden else ''}{quote_key(column.name)} = {declared or '{}'}  # {note}")
    return "\n".join(lines) + "\n"


def _declaration(
    table: LiveTable, column: LiveColumn, guess: Guess, made: Scaffold
) -> tuple[str | None, str]:
    """Return what is declared of a column, None for nothing, and what the owner can fill in.

    The latter holds only text of ours, and names as TOML writes them: a comment must not run on.
    """
    kind = column.type
    if column.is_generated:
        return None, "computed when it is read: cannot be declared"
    if column.refused:
        return None, column.refused
    target = next((key for key in table.foreign_keys if key.columns == (column.name,)), None)
    if target is not None and guess.is_private(target.table):
        return None, "leads to people: as a group key it singles them out"
    if table.is_unique(column.name):
        if _is_pointed_at(table, column, made.live):
            return "{}", "other tables point at it: for joins"
        return None, "a key: as a group key it singles people out"
    if kind.kind is Kind.OPAQUE and target is not None and column.engine_type in KEY_TYPES:
        return "{}", f"a key of {quote_key(made.live.name_of(target.table))}: for joins"
    if kind.kind is Kind.OPAQUE:
        return None, f"{kind.kind.value}: COUNT only"
    if column.enum_values is not None and len(column.enum_values) <= _MOST_LABELS:
        return _values(column.enum_values, column, complete=True), "its type's labels: public group keys"
    if kind.kind is Kind.BOOLEAN:
        return _values((False, True), column), "public group keys"
    if target is not None:
        return _of_lookup(column, target, made)
    return "{}", _note(column)


def _is_pointed_at(table: LiveTable, column: LiveColumn, live: LiveSchema) -> bool:
    return can_identify_unit(column) and any(
        key.table == table.path and key.referenced == (column.name,)
        for other in live.tables
        for key in other.foreign_keys
    )


def _of_lookup(column: LiveColumn, target: LiveForeignKey, made: Scaffold) -> tuple[str, str]:
    """Return what is declared of a column that leads to a table which is nobody's: its keys, if that one is public."""
    name = made.live.name_of(target.table)
    keys = made.keys.get(name, ())
    if keys and target.referenced == _key_of(name, made.live):
        is_held = target.referenced == _primary_key_of(name, made.live)  # else nothing keeps the rows to them
        return _values(keys, column, complete=is_held), f"the keys of {quote_key(name)}: public group keys"
    if name in made.keys:
        return (
            "{}",
            f"a key of {quote_key(name)}: {{ values = [] }} with those that matter, for public group keys",
        )
    return "{}", (
        f"a key of {quote_key(name)}: if that is public, init with --public lists its keys here, as public group keys"
    )


def _key_of(name: str, live: LiveSchema) -> tuple[str, ...]:
    table = live.table(live.path_of(name))
    return () if table is None else table.primary_key or table.asserted


def _primary_key_of(name: str, live: LiveSchema) -> tuple[str, ...]:
    table = live.table(live.path_of(name))
    return () if table is None else table.primary_key


def _key_text(table: LiveTable) -> str:
    """Return the line that asserts the key of a public table of files: its rows were looked at."""
    if not table.asserted:
        return ""
    names = ", ".join(map(quote_text, table.asserted))
    return f"key = [{names}]  # a join on it copies no row; budget create verifies it\n"


def _ranges_text(table: LiveTable, made: Scaffold) -> str:
    """Return the bounds of a public table's numbers, for sums of them over people's rows: its rows were looked at."""
    name = made.live.name_of(table.path)
    lines = [
        f"{quote_key(column)} = {{ bounds = [{plain(low)}, {plain(high)}] }}  # of today's rows, which are public\n"
        for column, (low, high) in made.ranges.get(name, {}).items()
    ]
    return f"[tables.{quote_key(name)}.columns]\n{''.join(lines)}" if lines else ""


def _values(values: Sequence[bool | int | str], column: LiveColumn, *, complete: bool = False) -> str:
    shown = [quote_text(one) if isinstance(one, str) else str(one).lower() for one in values]
    shown += [] if column.not_null else ["{ null = true }"]
    return f"{{ values = [{', '.join(shown)}]{', complete = true' if complete else ''} }}"


def _note(column: LiveColumn) -> str:
    """Return what the owner can fill in."""
    kind = column.type
    if column.enum_values is not None:
        return f"{kind}: its values are public keys"
    if kind.is_number:
        known = ""
        if column.lo is not None and column.hi is not None:
            known = f" (its CHECK allows {plain(column.lo)} to {plain(column.hi)})"
        step = ", step = resolution" if kind.is_float else ""
        return f"{kind}: {{ bounds = [lower, upper]{step} }} for SUM and AVG{known}"
    if kind.is_temporal:
        return f"{kind}: {{ bounds = [first, last] }}, without quotes, for computing with it"
    if kind.kind is Kind.TEXT:
        return 'text: { values = ["…", "…"] } for public group keys, { max_length = n } for LENGTH'
    return f"{kind.kind.value}: COUNT only"
