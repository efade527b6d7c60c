"""Caps on what a client may send, checked before anything is kept for it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest of each; lengths in bytes, of a message's body without its own length word.

    How many statements, portals and connections there are is for the server to cap.
    """

    startup: int = 10_000
    """A packet before the startup is through (Postgres has the same)."""
    authentication: int = 1_024
    """An answer in the SCRAM dialogue (Postgres has the same)."""
    message: int = 16 * 2**20
    """A Query, Parse, Bind, FunctionCall or CopyData."""
    small_message: int = 10_000
    """Any other message (Postgres has the same)."""
    name: int = 256
    """The name of a statement or portal."""
    parameters: int = 32_767
    """Parameter types of a Parse, values of a Bind; also result formats."""
    startup_parameters: int = 64
    """Settings in a startup message."""
    read_ahead: int = 256 * 1024
    """Bytes kept for later beyond the message that is being read: see `Connection.wants_data`."""
