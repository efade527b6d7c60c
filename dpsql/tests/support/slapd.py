"""A real OpenLDAP server on this machine, with a certificate of its own and people of the tests'."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SLAPD = shutil.which("slapd", path="/usr/sbin:/usr/local/sbin:/usr/local/libexec:/usr/bin")
BASE = "dc=example,dc=org"
ADMIN = f"cn=admin,{BASE}"
ADMIN_PASSWORD = "admin's own"
_SCHEMAS = Path("/etc/ldap/schema")


@dataclass(frozen=True)
class Slapd:
    """A running directory: over TLS from the start, or from StartTLS on."""

    ldaps: str
    ldap: str
    certificate: Path
    process: subprocess.Popen[bytes]

    def change(self, dn: str, attribute: str, add: Sequence[str] = (), remove: Sequence[str] = ()) -> None:
        """Add values to an entry of the directory, and take some out, as its administrator."""
        import ldap

        connection = ldap.initialize(self.ldaps)
        connection.set_option(ldap.OPT_X_TLS_CACERTFILE, str(self.certificate))
        connection.set_option(ldap.OPT_X_TLS_NEWCTX, 0)
        connection.simple_bind_s(ADMIN, ADMIN_PASSWORD)
        added = [(ldap.MOD_ADD, attribute, [one.encode()]) for one in add]
        removed = [(ldap.MOD_DELETE, attribute, [one.encode()]) for one in remove]
        connection.modify_s(dn, [*added, *removed])
        connection.unbind_s()


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Return a new certificate for this machine's address, which signs itself, and its key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-newkey", "rsa:2048",
         "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    key.chmod(0o600)
    return certificate, key


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def run_slapd(folder: Path, people: str) -> Iterator[Slapd]:
    """Run a directory over the entries of an LDIF text. It lets who binds without a password in, as some do."""
    assert SLAPD is not None
    certificate, key = make_certificate(folder, "directory")
    (folder / "data").mkdir()
    module = next(path for path in ("/usr/lib/ldap", "/usr/lib64/openldap") if Path(path).is_dir())
    schemas = "\n".join(
        f"include {_SCHEMAS / name}.schema" for name in ("core", "cosine", "inetorgperson", "nis")
    )
    (folder / "slapd.conf").write_text(f"""{schemas}
modulepath {module}
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
allow bind_anon_dn
TLSCACertificateFile {certificate}
TLSCertificateFile {certificate}
TLSCertificateKeyFile {key}
database mdb
suffix "{BASE}"
rootdn "{ADMIN}"
rootpw "{ADMIN_PASSWORD}"
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
""")
    (folder / "people.ldif").write_text(people)
    load = ["slapadd", "-f", str(folder / "slapd.conf"), "-l", str(folder / "people.ldif")]
    subprocess.run([str(Path(SLAPD).parent / load[0]), *load[1:]], check=True, capture_output=True)
    secure, plain = f"ldaps://127.0.0.1:{free_port()}", f"ldap://127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [SLAPD, "-h", f"{secure} {plain}", "-f", str(folder / "slapd.conf"), "-d", "0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_for(int(secure.rpartition(":")[2]), process)
        yield Slapd(secure, plain, certificate, process)
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        assert process.poll() is None, "the directory has ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return
