"""Where a Spark Connect server is, as a policy's URL says it, its secret, and what may be sent to it. Needs no Spark.

Spark has no role that can only read and no transaction that only reads: what a statement can do is decided by the
server's own rights. So the text is looked at once more before it is sent, whoever printed it (soundness.md 4.4).

House rules:

1. Deny by default: a function that is not listed is refused, and so is a word that begins a command, wherever it
   stands, a comment, a second statement, and a character that no printed statement has.
2. The text is read as Spark's lexer reads it under the pinned settings. What these settings would change, a backslash
   in a quoted text, `${`, a name in double quotes, is refused too: the dialect prints none.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ..errors import EngineFailure, PolicyError
from ..records import dataclass

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


_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<text>[xX]?'[^'\\]*')
      | (?P<name>`(?:[^`]|``)+`)
      | (?P<parameter>:p[0-9]+)
      | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[lLdD]?|[0-9]+BD)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign><=>|->|<>|<=|>=|\|\||!=|[-+*/%(),.=<>\[\]&|^])
    """,
    re.VERBOSE,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_Token = tuple[str, str]
"""Its kind and its text."""

_COMMENTS = ("--", "/*")
_STARTS = frozenset({"SELECT", "WITH", "VALUES", "("})
# What makes a command of a query, or has another program read its rows; the dialect prints none of them.
_COMMANDS = _words("""
    ADD ALTER ANALYZE BEGIN CACHE CALL CLEAR COMMENT COPY CREATE DECLARE DELETE DESCRIBE DFS DIRECTORY DROP
    EXECUTE EXPLAIN EXPORT GRANT IDENTIFIER IMMEDIATE IMPORT INSERT JAR LIST LOAD LOCK MERGE MSCK OPTIMIZE
    OVERWRITE REDUCE REFRESH REPAIR RESET REVOKE SET SHOW STREAM TRUNCATE UNCACHE UNLOCK UPDATE USE USING VACUUM
    """)  # fmt: skip
_FORMATS = _words("""
    avro binaryfile csv delta hudi iceberg image jdbc json kafka libsvm orc parquet protobuf rate socket
    statestore text xml
    """)  # fmt: skip
"""Data sources: ``FROM text.`/etc/passwd` `` reads that file, where the setting `runSQLOnFiles` is on."""

# Of their arguments alone, whatever these are. Some words of the grammar stand before a bracket too.
_FUNCTIONS = _words("""
    abs add_months aggregate array array_join arrays_zip ascii atan avg bit_and bit_length bit_or bit_xor
    bool_and bool_or bround btrim cast ceil ceiling char char_length chr coalesce concat concat_ws conv cos
    count count_if cume_dist date_add date_from_unix_date date_part date_sub date_trunc dateadd datediff day
    dayofmonth dayofweek dayofyear decimal decode dense_rank double element_at encode exists exp explode
    extract filter first_value floor forall format_string from_json greatest grouping grouping_id hash hex
    hour if ifnull inline instr is_valid_utf8 isnan isnotnull isnull lag last_day last_value lead least left
    length ln locate log log10 log2 lower lpad ltrim make_date make_dt_interval make_interval make_timestamp
    make_timestamp_ntz make_ym_interval map max md5 min minute mod month months_between named_struct
    nth_value ntile nullif nvl octet_length percent_rank pmod posexplode position pow power quarter range
    rank repeat replace reverse right rint round row_number rpad rtrim second sequence sha2 shiftleft
    shiftright sign sin size split sqrt struct substr substring sum tanh timestamp_micros timestampadd
    timestampdiff transform translate trim trunc try_add try_cast try_divide try_element_at try_multiply
    try_subtract try_sum try_validate_utf8 unbase64 unhex unix_date unix_micros unix_millis unix_seconds
    upper validate_utf8 weekday weekofyear width_bucket xxhash64 year zip_with
    all and any as between by case cross cube distinct div else end except from full group having in inner
    intersect is join not on or order over partition rollup select sets some then union values when where
    window with
    """)  # fmt: skip
_READS = frozenset({"FROM", "JOIN"})
_REFUSED = "refused: not a single query in the words that dpsql prints"


def require_query(sql: str) -> None:
    """Raise EngineFailure unless this is one query over tables, that calls no function but these."""
    tokens = list(_tokens(sql))
    if not tokens or tokens[0][1].upper() not in _STARTS:
        raise EngineFailure(_REFUSED)
    padded = [("", ""), ("", ""), *tokens]
    for far, near, token in zip(padded, padded[1:], tokens, strict=False):
        _require_token(far, near, token)
    for before, first, dot, second in zip(padded, padded[1:], padded[2:], padded[3:], strict=False):
        if dot[1] == "." and _bare(first) in _FORMATS and (before[1].upper() in _READS or "/" in second[1]):
            raise EngineFailure("refused: a file by its path")


def _tokens(sql: str) -> Iterator[_Token]:
    place = 0
    while place < len(sql):
        found = _TOKEN.match(sql, place)
        if found is None or sql.startswith(_COMMENTS, place):
            raise EngineFailure(_REFUSED)
        place = found.end()
        if found.lastgroup != "space":
            yield str(found.lastgroup), found[0]


def calls(name: str) -> bool:
    """Say whether a query may call a function, or has a word of the grammar there."""
    return name.lower() in _FUNCTIONS


def _require_token(far: _Token, near: _Token, token: _Token) -> None:
    """Look at a token behind the two before it."""
    kind, text = token[0], token[1].upper()
    if kind == "word" and (text in _COMMANDS or (text == "TRANSFORM" and near[1].upper() == "SELECT")):
        raise EngineFailure(_REFUSED)
    if kind == "text" and near[1] in ("r", "R"):
        raise EngineFailure(_REFUSED)  # in which a backslash means itself
    if text == "(" and far[1].upper() != "AS" and _is_call(near):
        raise EngineFailure("refused: a function that dpsql does not print")


def _is_call(near: _Token) -> bool:
    """Say whether a bracket behind this begins a call that is not of the list."""
    return near[0] == "name" or (near[0] == "word" and not calls(near[1]))


def _bare(token: _Token) -> str:
    return token[1].strip("`").lower() if token[0] in ("name", "word") else ""
