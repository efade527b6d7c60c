"""Which columns look like a person's key, told from names and types alone: no public table should have one.

House rule: nothing here decides. A look never makes a table private, and that nothing looks so proves nothing;
`init` offers no such table as public, and `check` warns of one that is.

Words by which data name a person, in the languages that they are kept in: English stands in `personal`.

House rule: singular and plural, without accents, as `personal` reads names; a word that means much else too stands here
only where doubt is better than silence. Sources: the usual vocabulary of schools, clinics, shops and registers, and the
names of national identity numbers (OECD, Tax Identification Numbers, by country).

Whether the values of a public table look like persons': for `check --data`, which reads them for the owner.

House rule: as in `personal`, nothing here decides, and no value is ever said. `init` reads none.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Collection, Sequence

from ..records import dataclass
from ..relation.types import Kind
from .live_schema import LiveColumn, LiveSchema, LiveTable

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
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]{2,}")
_PHONE = re.compile(r"(\+|00?)[\d\s()./-]{6,20}|[\d]{2,5}[\s()./-][\d\s()./-]{4,18}")
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_NUMBERED = re.compile(r"(?=\D*\d{4})[A-Za-z0-9][A-Za-z0-9./_-]{4,30}")
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
    if are_distinct and not is_key and all(map(_NUMBERED.fullmatch, values)):
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
