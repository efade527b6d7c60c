"""A session of a Spark Connect server: over which channel, with which settings, and what may be said when it fails;
and where its server is, as a policy's URL says it (`SparkTarget`).

House rules:

1. A statement is sent once. There is no retry, neither by the client nor by gRPC, and no reattaching: what was charged
   was asked for one execution, and a stream that breaks is a failure.
2. Nothing of the engine's own words leaves this module: an error becomes an `EngineFailure` whose detail is the error's
   class and SQLSTATE. Its text may quote a value (law L6), so it reaches no log either; it is not asked of the server.
3. Every call has an end: gRPC ends it after `STATEMENT_SECONDS`, or sooner where nothing is computed.

Spark has no role that can only read and no transaction that only reads: what a statement can do is decided by the
server's own rights. So the text is looked at once more before it is sent, whoever printed it (soundness.md 4.4).

House rules for what is sent:

1. Deny by default: a function that is not listed is refused, and so is a word that begins a command, wherever it
   stands, a comment, a second statement, and a character that no printed statement has.
2. The text is read as Spark's lexer reads it under the pinned settings. What these settings would change, a backslash
   in a quoted text, `${`, a name in double quotes, is refused too: the dialect prints none.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import stat
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ..errors import EngineFailure, PolicyError
from ..records import dataclass
from ..regex import regex
from ..waits import Stopped, apart

# --- where a server is, and what may be sent to it --------------------------------------------------------


TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The environment variable with the server's token, as Spark's own clients read it."""

_PORT = 15002
_FORM = "write spark://host:port, or spark://host:port/catalog"
_HOST = regex(r"[0-9A-Za-z._:-]+")
_NAME = regex(r"[A-Za-z0-9_-]+")
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


_TOKEN = regex(
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
    shiftright sign sin size split split_part sqrt struct substr substring sum tanh timestamp_micros timestampadd
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


# --- a session --------------------------------------------------------------------------------------------


@contextmanager
def _as_a_program() -> Iterator[None]:
    """Name the main module where nothing does (`python -c`, a test's worker): the client takes such a process for a run
    of its own examples, and ends it."""
    main = sys.modules["__main__"]
    is_unnamed = main.__spec__ is None and not hasattr(main, "__file__")
    if is_unnamed:
        main.__file__ = ""
    try:
        yield
    finally:
        if is_unnamed:
            del main.__file__


try:
    with warnings.catch_warnings(), _as_a_program():
        warnings.simplefilter("ignore")  # of pandas' version, of which nothing is used here
        import grpc
        import pyarrow as pa
        from google.rpc import error_details_pb2
        from grpc_status import rpc_status
        from pyspark.errors import PySparkException
        from pyspark.sql.connect.client import ChannelBuilder
        from pyspark.sql.connect.proto import base_pb2 as messages
        from pyspark.sql.connect.proto import base_pb2_grpc, expressions_pb2, relations_pb2
        from pyspark.sql.connect.session import SparkSession as _SparkSession
except ImportError:
    raise PolicyError(
        "database: Spark's client is not installed", hint='pip install "dpsql[spark]"'
    ) from None

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_T = TypeVar("_T")

STATEMENT_SECONDS = 600
TESTED = ("4.3",)
"""The versions that the tests run on; what each function means is known of them alone."""

_CALL_SECONDS = 60
_OPEN_SECONDS = 15
_CANCEL_SECONDS = 5
_PULSE_SECONDS = 30
"""How often a server that runs a statement is asked whether it is there, and how long it may take to say so."""

_MESSAGE_BYTES = 128 * 2**20
_USER = "dpsql"
_CONDITION = regex(r"[A-Z0-9_]+(\.[A-Z0-9_]+)?")
_STATE = regex(r"[0-9A-Z]{5}")

# What the printed SQL relies on.
_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.variable.substitute": "false",  # '${env:HOME}' in a constant would be the server's
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",  # a wide one beside a fraction would raise
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",  # 1e0 would be no double
    "spark.sql.parser.quotedRegexColumnNames": "false",  # a name would be a pattern of several
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.icu.caseMappings.enabled": "true",
}
_SEAL = {
    "spark.sql.runSQLOnFiles": "false",  # FROM text.`/etc/passwd` reads that file
}
_READING = {
    "spark.sql.files.ignoreCorruptFiles": "false",  # rows would be missing, and nobody told
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.binaryAsString": "false",
    # What files and Delta's log say of values is not verified here: no row is passed over by it, and nothing answered.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.databricks.delta.stats.skipping": "false",
    "spark.databricks.delta.stats.limitPushdown.enabled": "false",
    "spark.databricks.delta.optimizeMetadataQuery.enabled": "false",
}
SETTINGS = _MEANING | _SEAL | _READING

# They write the statement and the server's words to the client's error output.
for _name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging"):
    logging.getLogger(_name).disabled = True


class _Channel(ChannelBuilder):
    """The channel of a target, with a session's own number, for the client's classes."""

    def __init__(self, target: SparkTarget, session_id: str, calls: _Calls) -> None:
        super().__init__(
            [
                ("grpc.max_receive_message_length", _MESSAGE_BYTES),
                ("grpc.enable_retries", 0),
                ("grpc.enable_http_proxy", 0 if target.is_near else 1),  # unencrypted is on this machine alone
            ],
            {ChannelBuilder.PARAM_USER_ID: _USER, ChannelBuilder.PARAM_SESSION_ID: session_id,
             ChannelBuilder.PARAM_USER_AGENT: _USER},
        )  # fmt: skip
        self.add_interceptor(calls)
        self.channel = self._open(target)

    def toChannel(self) -> Any:
        return self.channel

    @property
    def host(self) -> str:
        return ""

    @property
    def token(self) -> None:
        return None  # the channel has it

    def _open(self, target: SparkTarget) -> Any:
        token = target.token()
        if target.uses_tls:
            credentials = grpc.ssl_channel_credentials(target.authorities())
        elif token is None:
            return self._insecure_channel(target.endpoint)
        else:
            credentials = grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP)
        if token is not None:
            shown = grpc.access_token_call_credentials(token)
            credentials = grpc.composite_channel_credentials(credentials, shown)
        return self._secure_channel(target.endpoint, credentials)


class _Calls(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc]
    """Gives every call an end, and knows what is streamed: what runs a statement can be stopped here at once."""

    def __init__(self, seconds: float | None) -> None:
        """`seconds`: how long a statement may take."""
        self._seconds = seconds
        self._streamed: Any = None
        self.is_alive: Callable[[], bool] = lambda: True

    @property
    def is_streaming(self) -> bool:
        """Whether a statement runs, or not all of its rows are read."""
        return self._streamed is not None and bool(self._streamed.is_active())

    def stop(self) -> None:
        """Let go of what is streamed, whatever the server does."""
        if (streamed := self._streamed) is not None:
            streamed.cancel()

    def intercept_unary_unary(self, call: Callable[..., Any], details: Any, request: Any) -> Any:
        ended = _Details(details, details.timeout or _CALL_SECONDS)
        return apart(lambda: call(ended, request), "the server", lambda _: None)

    def intercept_unary_stream(self, call: Callable[..., Any], details: Any, request: Any) -> Any:
        self._streamed = streamed = call(_Details(details, self._seconds), request)
        ended = threading.Event()
        if streamed.add_callback(ended.set):
            threading.Thread(
                target=self._watch, args=(streamed, ended), name="dpsql-spark", daemon=True
            ).start()
        return streamed

    def _watch(self, streamed: Any, ended: threading.Event) -> None:
        """Give a statement up whose server does not answer other calls: the way there may be gone without a sign."""
        while not ended.wait(_PULSE_SECONDS):
            if not self.is_alive():
                streamed.cancel()


class _Details(grpc.ClientCallDetails):  # type: ignore[misc]
    def __init__(self, details: Any, timeout: float | None) -> None:
        self.method, self.metadata, self.credentials = details.method, details.metadata, details.credentials
        self.timeout, self.wait_for_ready, self.compression = timeout, False, None


class SparkConnection:
    """One session of the server's, with our settings; used by one thread, but for `interrupt`."""

    def __init__(self, target: SparkTarget, seconds: float | None = STATEMENT_SECONDS) -> None:
        """Open a session; `seconds`: how long a statement may take.

        Raises EngineFailure, and PolicyError for a server that dpsql cannot be exact on.
        """
        self._id, self._server_id = str(uuid.uuid4()), ""
        self._settings = SETTINGS | ({"spark.sql.defaultCatalog": target.catalog} if target.catalog else {})
        self._calls = _Calls(seconds)
        self._calls.is_alive = self._is_alive
        builder = _Channel(target, self._id, self._calls)
        self._channel = builder.channel
        self._stub: Any = base_pb2_grpc.SparkConnectServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._builder = builder
        self._session: SparkSession | None = None
        self.is_clean = False
        """Whether nothing has failed in it, so that it can be used again."""
        try:
            guarded("open", self._begin)
        except BaseException:
            self._channel.close()
            raise

    @property
    def session(self) -> SparkSession:
        """The client's own session, for the catalog and for views of this session."""
        if self._session is None:
            session = _SparkSession(self._builder)  # type: ignore[arg-type]  # any builder will do
            session.client.disable_reattachable_execute().set_retry_policies([])
            atexit.unregister(
                session.client._on_exit
            )  # it would keep each session in memory, and wait at the end
            self._session = session
        return self._session

    def check(self) -> None:
        """Raise unless every setting is as it was made. Raises EngineFailure, PolicyError."""
        guarded("settings", self._read_back)

    def options(self, names: Sequence[str]) -> dict[str, str]:
        """Return settings of the server, "" for one that is not made. Raises EngineFailure."""
        asked = messages.ConfigRequest.GetOption(keys=names)
        found = guarded("settings", lambda: self._config(messages.ConfigRequest.Operation(get_option=asked)))
        return {name: found.get(name, "") for name in names}

    def stream(self, sql: str, arguments: Mapping[str, object]) -> Iterator[pa.RecordBatch]:
        """Run one query and yield its rows as they come. Raises what gRPC, Arrow and the server raise."""
        query = relations_pb2.SQL(query=sql)
        for name, value in arguments.items():
            query.named_arguments[name].literal.CopyFrom(_literal(value))
        request = self._about(messages.ExecutePlanRequest())
        request.plan.root.sql.CopyFrom(query)
        call = self._stub.ExecutePlan(request)
        try:
            yield from self._batches(call)
        finally:
            call.cancel()

    @property
    def is_running(self) -> bool:
        """Whether a statement runs, or not all of its rows are read."""
        return self._calls.is_streaming

    def interrupt(self) -> None:
        """Stop what runs in this session, here at once and on the server, from any thread; it never raises."""
        self._calls.stop()
        request = self._about(messages.InterruptRequest())
        request.interrupt_type = messages.InterruptRequest.InterruptType.INTERRUPT_TYPE_ALL
        with suppress(grpc.RpcError, ValueError):  # a channel that is closed runs nothing
            self._stub.Interrupt(request, timeout=_CANCEL_SECONDS)

    def close(self) -> None:
        """Have the server forget the session, with its views and all that it still runs."""
        with suppress(grpc.RpcError, ValueError, Stopped):
            self._stub.ReleaseSession(self._about(messages.ReleaseSessionRequest()), timeout=_CANCEL_SECONDS)
        self._channel.close()

    # --- messages -----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        pairs = [messages.KeyValue(key=name, value=value) for name, value in self._settings.items()]
        first = messages.ConfigRequest.Operation(set=messages.ConfigRequest.Set(pairs=pairs))
        asked = self._about(
            messages.AnalyzePlanRequest(spark_version=messages.AnalyzePlanRequest.SparkVersion())
        )
        version = self._stub.AnalyzePlan(asked, timeout=_OPEN_SECONDS)
        self._server_id = version.server_side_session_id
        _check_version(version.spark_version.version)
        self._config(first)
        self._read_back()

    def _read_back(self) -> None:
        found = self._config(
            messages.ConfigRequest.Operation(get=messages.ConfigRequest.Get(keys=list(self._settings)))
        )
        for name, value in self._settings.items():
            if found.get(name, "").lower() != value.lower():
                raise PolicyError(
                    f"database: the server does not keep the setting {name} = {value}",
                    hint="let sessions change it, or start the server with it",
                )

    def _is_alive(self) -> bool:
        request = self._about(messages.ConfigRequest())
        request.operation.get.keys.append("spark.sql.ansi.enabled")
        try:
            self._stub.Config(request, timeout=_PULSE_SECONDS)
        except grpc.RpcError as error:
            return error.code() not in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
        except ValueError:  # the channel is closed
            return False
        return True

    def _config(self, operation: Any) -> dict[str, str]:
        request = self._about(messages.ConfigRequest(operation=operation))
        answer = self._stub.Config(request, timeout=_OPEN_SECONDS)
        self._check_session(answer)
        return {pair.key: pair.value for pair in answer.pairs}

    def _about(self, request: Any) -> Any:
        """Return a request as one of this session, which is another one after the server was started again."""
        request.session_id, request.client_type, request.user_context.user_id = self._id, _USER, _USER
        if self._server_id and hasattr(request, "client_observed_server_side_session_id"):
            request.client_observed_server_side_session_id = self._server_id
        return request

    def _check_session(self, answer: Any) -> None:
        if answer.session_id != self._id or answer.server_side_session_id not in ("", self._server_id):
            raise EngineFailure("the server answered for another session")

    def _batches(self, call: Any) -> Iterator[pa.RecordBatch]:
        rows = 0
        for answer in call:
            self._check_session(answer)
            if not answer.HasField("arrow_batch"):
                continue
            part = answer.arrow_batch
            if part.start_offset not in (0, rows) or part.num_chunks_in_batch > 1:
                raise EngineFailure("the server's answer is not whole")
            with pa.ipc.open_stream(part.data) as reader:
                for batch in reader:
                    rows += batch.num_rows
                    yield batch


def _check_version(version: str) -> None:
    if not version.startswith(tuple(f"{one}." for one in TESTED)):
        known = version if re.fullmatch(r"[0-9A-Za-z.+_-]{1,40}", version) else "of no known version"
        raise PolicyError(
            f"database: is Spark {known}; {' and '.join(TESTED)} can be asked",
            hint="what each function means is known of these: take a server of one, or see for a newer dpsql",
        )


def _literal(value: object) -> Any:
    """Return an argument as Spark takes it, exactly. Raises EngineFailure: of a type that is not sent."""
    literal = expressions_pb2.Expression.Literal
    if value is None:
        found = literal()
        found.null.null.SetInParent()
        return found
    if isinstance(value, bool):
        return literal(boolean=value)
    if isinstance(value, int):
        return literal(long=value) if -(2**63) <= value < 2**63 else _literal(Decimal(value))
    if isinstance(value, float):
        return literal(double=value)
    if isinstance(value, str):
        return literal(string=value)
    if isinstance(value, Decimal) and value.is_finite():
        _, digits, exponent = value.as_tuple()
        scale = max(0, -int(exponent))
        precision = max(len(digits) + max(0, int(exponent)), scale)
        if precision <= 38:
            return literal(decimal=literal.Decimal(value=f"{value:f}", precision=precision, scale=scale))
    if isinstance(value, date) and not isinstance(value, datetime):
        return literal(date=(value - date(1970, 1, 1)).days)
    raise EngineFailure(f"refused: a parameter of the type {type(value).__name__}")


# --- errors ---------------------------------------------------------------------------------------------


_ERRORS = (grpc.RpcError, PySparkException, pa.ArrowException, AssertionError, ValueError, OverflowError)


def guarded(stage: str, action: Callable[[], _T]) -> _T:
    """Return what the action returns; every error of the engine becomes an EngineFailure without its text.

    It is raised after the `except` block has ended, so that no traceback holds the engine's error.
    """
    try:
        return action()
    except _ERRORS as error:
        failure = EngineFailure(_describe(stage, error))
    raise failure


@contextmanager
def guarding(stage: str) -> Iterator[None]:
    """Do the same for a `with` block of the owner's: no traceback shows the engine's error, though one holds it."""
    try:
        yield
    except _ERRORS as error:
        raise EngineFailure(_describe(stage, error)) from None


_AT_THE_DOOR = (
    ("connection refused", "open: no server listens where the URL says"),
    ("wrong_version_number", "open: the server does not speak TLS, and the URL asks for it"),
    (
        "certificate_verify_failed",
        "open: the server's certificate is not one that is trusted; name a ca_file",
    ),
    ("handshake", "open: the server does not speak TLS as the URL asks for"),
    ("dns resolution", "open: the URL's host is not known"),
    ("name resolution", "open: the URL's host is not known"),
)


def _describe(stage: str, error: Exception) -> str:
    """Return what the owner's log may say: the stage, the error's class and its SQLSTATE, never its text."""
    if isinstance(error, PySparkException):
        return _shown(stage, error.getCondition() or type(error).__name__, error.getSqlState())
    if not isinstance(error, grpc.RpcError):
        return f"{stage}: {type(error).__name__}"
    condition, state = _condition(error)
    if condition:
        return _shown(stage, condition, state)
    code = error.code()
    if code is grpc.StatusCode.UNAUTHENTICATED:
        return f"open: the server asks for a token, or refuses the one it got; set {TOKEN} or a token_file"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"{stage}: {'the server did not answer in time' if stage == 'open' else 'took too long'}"
    if code is grpc.StatusCode.CANCELLED:
        return f"{stage}: the server stopped answering, or the statement was stopped"
    if stage == "open" and code is grpc.StatusCode.UNAVAILABLE:
        # Nothing has been asked yet: this text is about the connection alone. It is looked at, not passed on.
        text = str(error.details()).lower()
        return next(
            (said for words, said in _AT_THE_DOOR if words in text), "open: the server cannot be reached"
        )
    return f"{stage}: {code.name}"


def _shown(stage: str, condition: str, state: str | None) -> str:
    said = condition if _CONDITION.fullmatch(condition) else "error"
    return f"{stage}: {said}{f' {state}' if state and _STATE.fullmatch(state) else ''}"


def _condition(error: Any) -> tuple[str, str]:
    """Return the class and SQLSTATE of a server's error, two empty texts where it says none."""
    status = rpc_status.from_call(error)
    for detail in status.details if status is not None else ():
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            info = error_details_pb2.ErrorInfo()
            detail.Unpack(info)
            return info.metadata.get("errorClass", ""), info.metadata.get("sqlState", "")
    return "", ""
