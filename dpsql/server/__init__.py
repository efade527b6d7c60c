"""The server: Postgres' wire protocol to the sessions of analysts who have proved their name.

House rules:

1. What a client sends is read by `pgwire` alone; what a statement means is decided by `Session` alone. Here a
   statement is only told apart, once (`read_statement`), from what belongs to the connection: blocks, settings,
   prepared statements; one dispatcher (`conversation.Dispatcher`) has each kind answered, for both protocols.
2. Describe never runs a statement, and one Execute runs it once; its rows are kept in the portal.
3. A client is told texts of ours: never an exception's own words, never a traceback (`report`).
4. When a reply goes out tells no more of the data than `state.release_time` allows.
5. A session is used by one thread at a time, but for `Session.cancel`; the event loop never runs SQL.
6. The log holds no value, no text of a statement and no secret.
7. What is asked again may be sent as it was written, but never without asking the session anew (`database`).
"""

from __future__ import annotations

from .channel import CannotListen, Options
from .listener import Server

__all__ = ["CannotListen", "Options", "Server"]
