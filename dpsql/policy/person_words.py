"""Words by which data name a person, in the languages that they are kept in: English stands in `personal`.

House rule: singular and plural, without accents, as `personal` reads names; a word that means much else too stands here
only where doubt is better than silence. Sources: the usual vocabulary of schools, clinics, shops and registers, and the
names of national identity numbers (OECD, Tax Identification Numbers, by country).
"""

from __future__ import annotations

__all__ = ["OTHER_NUMBERS", "OTHER_PAIRS", "OTHER_PEOPLE"]

_PEOPLE = {
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
_NUMBERS = {
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

OTHER_PEOPLE = frozenset(word for words in _PEOPLE.values() for word in words.split())
"""What a person is called, beside English."""

OTHER_NUMBERS = frozenset(word for words in _NUMBERS.values() for word in words.split())
"""What stands for one person alone."""

OTHER_PAIRS = frozenset(
    {"codice fiscale", "geburts datum", "kimlik no", "numero securite", "securite sociale", "seguridad social",
     "steuer id", "steuer nummer", "tarjeta sanitaria", "tc kimlik", "tessera sanitaria", "vor name", "nach name"}
)  # fmt: skip
"""The same in two words."""
