"""Where a Spark Connect server is, as a policy's URL says it, and the secret that it asks for. Needs no Spark."""

from __future__ import annotations

import os
import re
import stat
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ..errors import EngineFailure, PolicyError
from ..records import dataclass

__all__ = ["TOKEN", "SparkTarget", "target_of"]

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The environment variable with the server's token, as Spark's own clients read it."""

_PORT = 15002
_FORM = "write spark://host:port, or spark://host:port/catalog"
_HOST = re.compile(r"[0-9A-Za-z._:-]+")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_OPTIONS = ("tls", "ca_file", "token_file")
_LONGEST_TOKEN = 65536
_ELSEWHERE = f"set {TOKEN}, or name a file: spark://host:port?token_file=/…"


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """A server, and how it is reached. `catalog`: in which tables' names are looked up; "": the server's default.

    `ca_file`: certificates that are trusted in place of the system's. `token_file`: where the token is; None: the
    environment may have one. `has_token` False: none is shown.
    """

    host: str
    port: int
    catalog: str = ""
    uses_tls: bool = False
    ca_file: Path | None = None
    token_file: Path | None = None
    has_token: bool = True

    @property
    def is_near(self) -> bool:
        """Whether nobody else can listen on the way: the server is on this machine."""
        return _is_loopback(self.host)

    @property
    def endpoint(self) -> str:
        """The server's address as gRPC takes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def token(self) -> str | None:
        """Return the token, None where there is none. Raises EngineFailure: the file holds none, or others read it."""
        if not self.has_token:
            return None
        if self.token_file is None:
            return os.environ.get(TOKEN) or None
        try:
            with self.token_file.open(encoding="ascii") as file:
                mode = os.fstat(file.fileno()).st_mode
                token = file.read(_LONGEST_TOKEN).strip()
        except (OSError, ValueError):
            mode, token = 0, ""
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise EngineFailure("open: others on this machine can read the token_file; chmod 600 mends that")
        if not token or not token.isprintable():
            raise EngineFailure("open: the token_file cannot be read, or holds no token")
        return token

    def authorities(self) -> bytes | None:
        """Return the certificates that are trusted, None for the system's. Raises EngineFailure."""
        if self.ca_file is None:
            return None
        try:
            return self.ca_file.read_bytes()
        except OSError:
            failure = EngineFailure("open: the ca_file cannot be read")
        raise failure


def target_of(url: str) -> SparkTarget:
    """Return where a policy's URL leads. Raises PolicyError: it is none, holds a secret, or goes unencrypted."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _wrong() from None
    _refuse_secrets(url, parts)
    catalog = unquote(parts.path.removeprefix("/"))
    host = parts.hostname or ""
    if parts.scheme != "spark" or parts.fragment or not _HOST.fullmatch(host):
        raise _wrong()
    if catalog and not _NAME.fullmatch(catalog):
        raise PolicyError(f"database: after the address stands one name, of a catalog; {_FORM}")
    options = _options(parts)
    has_tls = options.get("tls") == "on" or "ca_file" in options
    if options.get("tls", "on") != "on":
        raise PolicyError("database: tls is on, or is left out on this machine's own address")
    return SparkTarget(
        host, _PORT if port is None else port, catalog,
        uses_tls=has_tls or not _is_loopback(host),
        ca_file=_file(options, "ca_file"),
        token_file=_file(options, "token_file"),
    )  # fmt: skip


def _options(parts: SplitResult) -> dict[str, str]:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in _OPTIONS:
            raise PolicyError(
                f"database: the URL has an option that is not known; there are {', '.join(_OPTIONS)}"
            )
    return options


def _refuse_secrets(url: str, parts: SplitResult) -> None:
    """Refuse a token or password, in whichever form of a URL it stands; Spark's own is `;token=…`."""
    if re.search(r"[;?&/#](token|password)=", unquote(url).lower()) or parts.password is not None:
        raise PolicyError("database: holds a token or password; take it out", hint=_ELSEWHERE)
    if parts.username is not None:
        raise PolicyError(f"database: a Spark Connect server knows no users; {_FORM}", hint=_ELSEWHERE)


def _file(options: dict[str, str], name: str) -> Path | None:
    if name not in options:
        return None
    path = Path(options[name])
    if not path.is_absolute():
        raise PolicyError(f"database: {name} is a file by its whole path; write {name}=/…")
    return path


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _wrong() -> PolicyError:
    return PolicyError(f"database: is not a URL of Spark; {_FORM}")
