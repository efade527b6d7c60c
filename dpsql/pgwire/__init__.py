"""The server's side of Postgres' wire protocol 3.0 to 3.2: bytes in, events out; replies in, bytes out.

House rules:

1. It stands alone on the standard library: no import of dpsql, no socket, no SQL. `bulk` alone adds numpy, with which
   many rows take a third of the time.
2. `Connection` is one conversation; `states` is the protocol as two tables.
3. What a client sends raises RemoteProtocolError, ParameterError or AuthenticationFailed, and nothing else.
4. What is kept of a client is capped (`Limits`), and nothing is allocated for a length before its bytes came.
"""

from __future__ import annotations

from .channel_binding import tls_server_end_point
from .connection import ProtocolConnection
from .copy_out import BinaryCopy, CsvOptions, LineCopy, TextOptions
from .datatypes.oids import ELEMENTS, TYPES, Oid, TypeInfo
from .datatypes.read_parameter import read_parameter
from .datatypes.values import Interval, ObjectName
from .errors import (
    AuthenticationFailed,
    LocalProtocolError,
    ParameterError,
    ProtocolError,
    RemoteProtocolError,
)
from .events import (
    Bind,
    CancelRequest,
    Close,
    Describe,
    Event,
    Execute,
    Flush,
    Format,
    FunctionCall,
    GSSENCRequest,
    Parse,
    Query,
    SASLInitialResponse,
    SASLResponse,
    SSLRequest,
    StartupMessage,
    Sync,
    Target,
    Terminate,
    Unreadable,
    Waiting,
)
from .limits import Limits
from .replies import (
    AuthenticationOk,
    AuthenticationSASL,
    AuthenticationSASLContinue,
    AuthenticationSASLFinal,
    BackendKeyData,
    BindComplete,
    CloseComplete,
    CommandComplete,
    CopyData,
    CopyDone,
    CopyOutResponse,
    CopyRows,
    DataRow,
    DataRows,
    EmptyQueryResponse,
    EncryptionAccepted,
    EncryptionRefused,
    FieldDescription,
    NegotiateProtocolVersion,
    NoData,
    ParameterDescription,
    ParameterStatus,
    ParseComplete,
    PortalSuspended,
    ReadyForQuery,
    RowDescription,
    ServerMessage,
    TransactionStatus,
)
from .reports import ErrorResponse, NoticeResponse, last_message
from .rows import RowEncoder
from .scram import ScramExchange, Verifier, make_verifier, mock_verifier
from .states import State

__all__ = [
    "ELEMENTS",
    "TYPES",
    "AuthenticationFailed",
    "AuthenticationOk",
    "AuthenticationSASL",
    "AuthenticationSASLContinue",
    "AuthenticationSASLFinal",
    "BackendKeyData",
    "BinaryCopy",
    "Bind",
    "BindComplete",
    "CancelRequest",
    "Close",
    "CloseComplete",
    "CommandComplete",
    "CopyData",
    "CopyDone",
    "CopyOutResponse",
    "CopyRows",
    "CsvOptions",
    "DataRow",
    "DataRows",
    "Describe",
    "EmptyQueryResponse",
    "EncryptionAccepted",
    "EncryptionRefused",
    "ErrorResponse",
    "Event",
    "Execute",
    "FieldDescription",
    "Flush",
    "Format",
    "FunctionCall",
    "GSSENCRequest",
    "Interval",
    "Limits",
    "LineCopy",
    "LocalProtocolError",
    "NegotiateProtocolVersion",
    "NoData",
    "NoticeResponse",
    "ObjectName",
    "Oid",
    "ParameterDescription",
    "ParameterError",
    "ParameterStatus",
    "Parse",
    "ParseComplete",
    "PortalSuspended",
    "ProtocolConnection",
    "ProtocolError",
    "Query",
    "ReadyForQuery",
    "RemoteProtocolError",
    "RowDescription",
    "RowEncoder",
    "SASLInitialResponse",
    "SASLResponse",
    "SSLRequest",
    "ScramExchange",
    "ServerMessage",
    "StartupMessage",
    "State",
    "Sync",
    "Target",
    "Terminate",
    "TextOptions",
    "TransactionStatus",
    "TypeInfo",
    "Unreadable",
    "Verifier",
    "Waiting",
    "last_message",
    "make_verifier",
    "mock_verifier",
    "read_parameter",
    "tls_server_end_point",
]
