"""A server for psql and any driver, who need no proof: it answers a statement by its text and that text's length."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from . import *

COLUMNS = (FieldDescription("said", Oid.TEXT), FieldDescription("letters", Oid.INT4, 4))
READY = ReadyForQuery(TransactionStatus.IDLE)
Portal = tuple[tuple[FieldDescription, ...], DataRows]


def answers(event: Event, texts: dict[str, str], portals: dict[str, Portal]) -> Iterator[ServerMessage]:
    match event:
        case SSLRequest() | GSSENCRequest():
            yield EncryptionRefused()
        case StartupMessage():
            if event.must_negotiate:
                yield NegotiateProtocolVersion(event.version, event.unknown_options)
            yield AuthenticationOk()
            yield from (ParameterStatus("server_version", "15.0"), BackendKeyData(1, b"1234"), READY)
        case Query():
            rows = RowEncoder(COLUMNS).encode([(event.sql, len(event.sql))])
            yield from (RowDescription(COLUMNS), rows, CommandComplete("SELECT 1"), READY)
        case Parse():
            texts[event.statement] = event.sql
            yield ParseComplete()
        case Bind():
            text, forms = texts[event.statement], event.column_formats(2)
            columns = tuple(replace(one, format=form) for one, form in zip(COLUMNS, forms, strict=True))
            portals[event.portal] = columns, RowEncoder(columns).encode([(text, len(text))])
            yield BindComplete()
        case Describe(Target.STATEMENT):
            yield from (ParameterDescription(()), RowDescription(COLUMNS))
        case Describe():
            yield RowDescription(portals[event.name][0])
        case Execute():
            yield from (portals[event.portal][1], CommandComplete("SELECT 1"))
        case Sync() | Close():
            yield READY if isinstance(event, Sync) else CloseComplete()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection, texts, portals = ProtocolConnection(), dict[str, str](), dict[str, Portal]()
    while data := await reader.read(65536):
        connection.receive_data(data)
        while not isinstance(event := connection.next_event(), Waiting):
            writer.write(connection.send(*answers(event, texts, portals)))
    writer.close()


async def main(port: int) -> None:
    await (await asyncio.start_server(serve, "127.0.0.1", port)).serve_forever()


if __name__ == "__main__":
    asyncio.run(main(5455))
