"""The protocol as two tables: what a client may send in each state, and what the server may reply.

House rules:

1. Every change of state is a line in this file; no other module assigns a state that is not read from here.
2. A state is one of three kinds. *Awaiting* states are rows of `FROM_CLIENT`: the next message is read. *Owing*
   states are not: the server must reply first, and what the client sent ahead stays unread (so a pipelined
   message is never read in a state that an earlier one may still change). CLOSED and FAILED are over.
3. A message that is not in its state's row is a `RemoteProtocolError`; a reply that is not in its row is a
   `LocalProtocolError`. There is no other default, but for the three lines under `_ANY_TIME` and `FATAL`.

Read it against "Message Flow" in the chapter "Frontend/Backend Protocol" of Postgres' documentation. What is not
spoken: COPY FROM STDIN by the extended protocol (copy messages that nobody asked for are leftovers and ignored, as the
documentation says), replication, MD5 and GSS authentication, GSS encryption, notifications. A FunctionCall is
delivered, for the server to refuse. A password in the clear is for a server that has to show it to a directory; whether
the channel is encrypted is for the server to see to.
"""

from __future__ import annotations

import enum
from types import MappingProxyType


class State(enum.Enum):
    """Where a connection stands."""

    __hash__ = object.__hash__  # members are what they are; an Enum hashes its name, slowly

    # Before the startup message; a packet has no tag yet. Each encryption may be asked for once.
    STARTUP = enum.auto()
    SSL_ASKED = enum.auto()  # the server owes the one byte
    GSS_ASKED = enum.auto()
    STARTUP_WITHOUT_SSL = enum.auto()  # SSL was refused, GSS may still be asked for
    STARTUP_WITHOUT_GSS = enum.auto()
    LAST_SSL_ASKED = enum.auto()
    LAST_GSS_ASKED = enum.auto()
    STARTUP_SETTLED = enum.auto()  # encrypted, or both refused

    # Between the startup message and the first ReadyForQuery.
    NEWER_VERSION_ASKED = enum.auto()  # the server owes NegotiateProtocolVersion
    AUTHENTICATING = enum.auto()
    PASSWORD_ASKED = enum.auto()  # in the clear; the client answers
    PASSWORD_GIVEN = enum.auto()
    SASL_OFFERED = enum.auto()  # the client answers
    SASL_BEGUN = enum.auto()
    SASL_CHALLENGED = enum.auto()  # the client answers
    SASL_ANSWERED = enum.auto()
    SASL_PROVED = enum.auto()
    STARTING = enum.auto()

    IDLE = enum.auto()

    # A simple query.
    QUERY = enum.auto()  # nothing replied yet
    QUERY_NEXT = enum.auto()  # a statement is done: another result, or ReadyForQuery
    QUERY_ROWS = enum.auto()
    QUERY_COPY = enum.auto()
    QUERY_COPY_IN = enum.auto()  # the client sends rows
    QUERY_COPY_GIVEN = enum.auto()
    QUERY_COPIED = enum.auto()
    FUNCTION_CALL = enum.auto()
    QUERY_FAILED = enum.auto()  # ReadyForQuery alone

    # The extended protocol; EXTENDED awaits, the others owe.
    EXTENDED = enum.auto()
    PARSE = enum.auto()
    BIND = enum.auto()
    DESCRIBE_STATEMENT = enum.auto()
    DESCRIBE_COLUMNS = enum.auto()  # of a statement or a portal
    EXECUTE = enum.auto()
    EXECUTE_COPY = enum.auto()
    EXECUTE_COPIED = enum.auto()
    CLOSE = enum.auto()
    SYNC = enum.auto()
    SKIP_TO_SYNC = enum.auto()  # after an error; awaits

    FAILED = enum.auto()  # the client broke the protocol: one last message
    CLOSED = enum.auto()


class Message(enum.Enum):
    """What a client sends."""

    __hash__ = object.__hash__  # members are what they are; an Enum hashes its name, slowly

    SSL_REQUEST = "SSLRequest"
    GSSENC_REQUEST = "GSSENCRequest"
    CANCEL_REQUEST = "CancelRequest"
    STARTUP = "StartupMessage"
    NEWER_STARTUP = "StartupMessage of a newer minor version, or with protocol options"
    PASSWORD = "PasswordMessage"
    SASL_INITIAL_RESPONSE = "SASLInitialResponse"
    SASL_RESPONSE = "SASLResponse"
    QUERY = "Query"
    PARSE = "Parse"
    BIND = "Bind"
    DESCRIBE_STATEMENT = "Describe of a statement"
    DESCRIBE_PORTAL = "Describe of a portal"
    EXECUTE = "Execute"
    CLOSE = "Close"
    FLUSH = "Flush"
    SYNC = "Sync"
    TERMINATE = "Terminate"
    FUNCTION_CALL = "FunctionCall"
    COPY_DATA = "CopyData"
    COPY_DONE = "CopyDone"
    COPY_FAIL = "CopyFail"


class Reply(enum.Enum):
    """What the server sends. ErrorResponse of severity FATAL is FATAL, any other is ERROR."""

    __hash__ = object.__hash__  # members are what they are; an Enum hashes its name, slowly

    ENCRYPTION_ACCEPTED = enum.auto()
    ENCRYPTION_REFUSED = enum.auto()
    NEGOTIATE_PROTOCOL_VERSION = enum.auto()
    AUTHENTICATION_CLEARTEXT_PASSWORD = enum.auto()
    AUTHENTICATION_SASL = enum.auto()
    AUTHENTICATION_SASL_CONTINUE = enum.auto()
    AUTHENTICATION_SASL_FINAL = enum.auto()
    AUTHENTICATION_OK = enum.auto()
    PARAMETER_STATUS = enum.auto()
    BACKEND_KEY_DATA = enum.auto()
    READY_FOR_QUERY = enum.auto()
    ROW_DESCRIPTION = enum.auto()
    DATA_ROW = enum.auto()
    COMMAND_COMPLETE = enum.auto()
    EMPTY_QUERY_RESPONSE = enum.auto()
    PARSE_COMPLETE = enum.auto()
    BIND_COMPLETE = enum.auto()
    CLOSE_COMPLETE = enum.auto()
    PARAMETER_DESCRIPTION = enum.auto()
    NO_DATA = enum.auto()
    PORTAL_SUSPENDED = enum.auto()
    COPY_IN_RESPONSE = enum.auto()
    COPY_OUT_RESPONSE = enum.auto()
    COPY_DATA = enum.auto()
    COPY_DONE = enum.auto()
    NOTICE = enum.auto()
    ERROR = enum.auto()
    FATAL = enum.auto()


TAGS = MappingProxyType(
    {
        ord("Q"): Message.QUERY,
        ord("P"): Message.PARSE,
        ord("B"): Message.BIND,
        ord("D"): Message.DESCRIBE_STATEMENT,  # or of a portal: the body says
        ord("E"): Message.EXECUTE,
        ord("C"): Message.CLOSE,
        ord("H"): Message.FLUSH,
        ord("S"): Message.SYNC,
        ord("X"): Message.TERMINATE,
        ord("F"): Message.FUNCTION_CALL,
        ord("d"): Message.COPY_DATA,
        ord("c"): Message.COPY_DONE,
        ord("f"): Message.COPY_FAIL,
        ord("p"): Message.SASL_RESPONSE,  # or the initial one, or a password: the state says
    }
)
"""A message's first byte -> the message, once the startup message is through."""

_SETTLED = {
    Message.CANCEL_REQUEST: State.CLOSED,
    Message.STARTUP: State.AUTHENTICATING,
    Message.NEWER_STARTUP: State.NEWER_VERSION_ASKED,
}

_EXTENDED = {
    Message.PARSE: State.PARSE,
    Message.BIND: State.BIND,
    Message.DESCRIBE_STATEMENT: State.DESCRIBE_STATEMENT,
    Message.DESCRIBE_PORTAL: State.DESCRIBE_COLUMNS,
    Message.EXECUTE: State.EXECUTE,
    Message.CLOSE: State.CLOSE,
    Message.SYNC: State.SYNC,
    Message.TERMINATE: State.CLOSED,
}

_LEFTOVERS = (Message.COPY_DATA, Message.COPY_DONE, Message.COPY_FAIL)

FROM_CLIENT = MappingProxyType(
    {
        State.STARTUP: {
            **_SETTLED,
            Message.SSL_REQUEST: State.SSL_ASKED,
            Message.GSSENC_REQUEST: State.GSS_ASKED,
        },
        State.STARTUP_WITHOUT_SSL: {**_SETTLED, Message.GSSENC_REQUEST: State.LAST_GSS_ASKED},
        State.STARTUP_WITHOUT_GSS: {**_SETTLED, Message.SSL_REQUEST: State.LAST_SSL_ASKED},
        State.STARTUP_SETTLED: _SETTLED,
        State.PASSWORD_ASKED: {Message.PASSWORD: State.PASSWORD_GIVEN},
        State.SASL_OFFERED: {Message.SASL_INITIAL_RESPONSE: State.SASL_BEGUN},
        State.SASL_CHALLENGED: {Message.SASL_RESPONSE: State.SASL_ANSWERED},
        State.IDLE: {
            **_EXTENDED,
            Message.FLUSH: State.IDLE,
            Message.QUERY: State.QUERY,
            Message.FUNCTION_CALL: State.FUNCTION_CALL,
            **dict.fromkeys(_LEFTOVERS, State.IDLE),
        },
        State.EXTENDED: {
            **_EXTENDED,
            Message.FLUSH: State.EXTENDED,
            Message.QUERY: State.QUERY,  # allowed: it ends the series as a Sync would
            Message.FUNCTION_CALL: State.FUNCTION_CALL,
            **dict.fromkeys(_LEFTOVERS, State.EXTENDED),
        },
        State.QUERY_COPY_IN: {
            Message.COPY_DATA: State.QUERY_COPY_IN,
            Message.COPY_DONE: State.QUERY_COPY_GIVEN,
            Message.COPY_FAIL: State.QUERY_COPY_GIVEN,
            **dict.fromkeys((Message.FLUSH, Message.SYNC), State.QUERY_COPY_IN),
            Message.TERMINATE: State.CLOSED,
        },
        State.SKIP_TO_SYNC: {
            **dict.fromkeys((*_EXTENDED, *_LEFTOVERS), State.SKIP_TO_SYNC),
            Message.FLUSH: State.SKIP_TO_SYNC,
            Message.QUERY: State.SKIP_TO_SYNC,
            Message.FUNCTION_CALL: State.SKIP_TO_SYNC,
            Message.SYNC: State.SYNC,
            Message.TERMINATE: State.CLOSED,
        },
    }
)
"""(awaiting state, message) -> the state after it."""

IGNORED = frozenset(
    {(state, message) for state in (State.IDLE, State.EXTENDED) for message in _LEFTOVERS}
    | {(State.QUERY_COPY_IN, message) for message in (Message.FLUSH, Message.SYNC)}
    | {
        (State.SKIP_TO_SYNC, message)
        for message, after in FROM_CLIENT[State.SKIP_TO_SYNC].items()
        if after is State.SKIP_TO_SYNC
    }
)
"""Pairs that are read and dropped; every other pair of `FROM_CLIENT` is delivered as an event."""

_FAIL_QUERY = {Reply.ERROR: State.QUERY_FAILED}
_FAIL_EXTENDED = {Reply.ERROR: State.SKIP_TO_SYNC}
_COLUMNS = {Reply.ROW_DESCRIPTION: State.EXTENDED, Reply.NO_DATA: State.EXTENDED, **_FAIL_EXTENDED}
_RESULTS = {
    Reply.ROW_DESCRIPTION: State.QUERY_ROWS,
    Reply.COPY_IN_RESPONSE: State.QUERY_COPY_IN,
    Reply.COPY_OUT_RESPONSE: State.QUERY_COPY,
    Reply.COMMAND_COMPLETE: State.QUERY_NEXT,
    **_FAIL_QUERY,
}
_ANY_TIME = {Reply.NOTICE, Reply.PARAMETER_STATUS}

_FROM_SERVER: dict[State, dict[Reply, State]] = {
    State.SSL_ASKED: {
        Reply.ENCRYPTION_ACCEPTED: State.STARTUP_SETTLED,
        Reply.ENCRYPTION_REFUSED: State.STARTUP_WITHOUT_SSL,
    },
    State.LAST_SSL_ASKED: {
        Reply.ENCRYPTION_ACCEPTED: State.STARTUP_SETTLED,
        Reply.ENCRYPTION_REFUSED: State.STARTUP_SETTLED,
    },
    State.GSS_ASKED: {Reply.ENCRYPTION_REFUSED: State.STARTUP_WITHOUT_GSS},
    State.LAST_GSS_ASKED: {Reply.ENCRYPTION_REFUSED: State.STARTUP_SETTLED},
    State.NEWER_VERSION_ASKED: {Reply.NEGOTIATE_PROTOCOL_VERSION: State.AUTHENTICATING},
    State.AUTHENTICATING: {
        Reply.AUTHENTICATION_CLEARTEXT_PASSWORD: State.PASSWORD_ASKED,
        Reply.AUTHENTICATION_SASL: State.SASL_OFFERED,
        Reply.AUTHENTICATION_OK: State.STARTING,  # nobody is asked for a password
    },
    State.PASSWORD_ASKED: {},
    State.PASSWORD_GIVEN: {Reply.AUTHENTICATION_OK: State.STARTING},
    State.SASL_OFFERED: {},
    State.SASL_BEGUN: {
        Reply.AUTHENTICATION_SASL_CONTINUE: State.SASL_CHALLENGED,
        Reply.AUTHENTICATION_OK: State.STARTING,  # a bearer's token is all of its proof
    },
    State.SASL_CHALLENGED: {},
    State.SASL_ANSWERED: {Reply.AUTHENTICATION_SASL_FINAL: State.SASL_PROVED},
    State.SASL_PROVED: {Reply.AUTHENTICATION_OK: State.STARTING},
    State.STARTING: {Reply.BACKEND_KEY_DATA: State.STARTING, Reply.READY_FOR_QUERY: State.IDLE},
    State.IDLE: {},
    State.QUERY: {**_RESULTS, Reply.EMPTY_QUERY_RESPONSE: State.QUERY_NEXT},
    State.QUERY_NEXT: {**_RESULTS, Reply.READY_FOR_QUERY: State.IDLE},
    State.QUERY_ROWS: {
        Reply.DATA_ROW: State.QUERY_ROWS,
        Reply.COMMAND_COMPLETE: State.QUERY_NEXT,
        **_FAIL_QUERY,
    },
    State.QUERY_COPY: {
        Reply.COPY_DATA: State.QUERY_COPY,
        Reply.COPY_DONE: State.QUERY_COPIED,
        **_FAIL_QUERY,
    },
    State.QUERY_COPY_IN: _FAIL_QUERY,
    State.QUERY_COPY_GIVEN: {Reply.COMMAND_COMPLETE: State.QUERY_NEXT, **_FAIL_QUERY},
    State.QUERY_COPIED: {Reply.COMMAND_COMPLETE: State.QUERY_NEXT, **_FAIL_QUERY},
    State.FUNCTION_CALL: _FAIL_QUERY,
    State.QUERY_FAILED: {Reply.READY_FOR_QUERY: State.IDLE},
    State.EXTENDED: {},
    State.PARSE: {Reply.PARSE_COMPLETE: State.EXTENDED, **_FAIL_EXTENDED},
    State.BIND: {Reply.BIND_COMPLETE: State.EXTENDED, **_FAIL_EXTENDED},
    State.DESCRIBE_STATEMENT: {Reply.PARAMETER_DESCRIPTION: State.DESCRIBE_COLUMNS, **_FAIL_EXTENDED},
    State.DESCRIBE_COLUMNS: _COLUMNS,
    State.EXECUTE: {
        Reply.DATA_ROW: State.EXECUTE,
        Reply.COPY_OUT_RESPONSE: State.EXECUTE_COPY,
        Reply.COMMAND_COMPLETE: State.EXTENDED,
        Reply.EMPTY_QUERY_RESPONSE: State.EXTENDED,
        Reply.PORTAL_SUSPENDED: State.EXTENDED,
        **_FAIL_EXTENDED,
    },
    State.EXECUTE_COPY: {
        Reply.COPY_DATA: State.EXECUTE_COPY,
        Reply.COPY_DONE: State.EXECUTE_COPIED,
        **_FAIL_EXTENDED,
    },
    State.EXECUTE_COPIED: {Reply.COMMAND_COMPLETE: State.EXTENDED, **_FAIL_EXTENDED},
    State.CLOSE: {Reply.CLOSE_COMPLETE: State.EXTENDED, **_FAIL_EXTENDED},
    State.SYNC: {Reply.READY_FOR_QUERY: State.IDLE, Reply.ERROR: State.SYNC},  # a commit may fail
    State.SKIP_TO_SYNC: {},
}

_STARTED = frozenset(_FROM_SERVER) - {
    State.SSL_ASKED, State.LAST_SSL_ASKED, State.GSS_ASKED, State.LAST_GSS_ASKED,
    State.NEWER_VERSION_ASKED, State.AUTHENTICATING, State.PASSWORD_ASKED, State.PASSWORD_GIVEN,
    State.SASL_OFFERED, State.SASL_BEGUN, State.SASL_CHALLENGED, State.SASL_ANSWERED, State.SASL_PROVED,
}  # fmt: skip

FROM_SERVER = MappingProxyType(
    {
        state: {**(dict.fromkeys(_ANY_TIME, state) if state in _STARTED else {}), **replies}
        for state, replies in _FROM_SERVER.items()
    }
)
"""(state, reply) -> the state after it; a state that awaits the client may still take a notice."""

FATAL = frozenset(State) - {
    State.STARTUP, State.STARTUP_WITHOUT_SSL, State.STARTUP_WITHOUT_GSS, State.STARTUP_SETTLED,
    State.SSL_ASKED, State.LAST_SSL_ASKED, State.GSS_ASKED, State.LAST_GSS_ASKED,
    State.CLOSED,
}  # fmt: skip
"""States in which an error of severity FATAL may be sent; the state after it is CLOSED."""
