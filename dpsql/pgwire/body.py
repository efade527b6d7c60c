"""The fields of one message, read in order; a message that is too short or too long for them is refused."""

from __future__ import annotations

from .errors import RemoteProtocolError

__all__ = ["Body", "TextError"]


class TextError(Exception):
    """A string of a message is not UTF-8."""


class Body:
    """A reader over the bytes of one message, without tag and length word.

    Everything raises RemoteProtocolError where the bytes do not suffice; nothing is allocated for a length or
    count before that many bytes are known to be there.
    """

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def unsigned16(self) -> int:
        """Read an Int16 that is a count or code: 0 to 65535."""
        return int.from_bytes(self.take(2), "big")

    def unsigned32(self) -> int:
        """Read an Int32 that is an OID or code."""
        return int.from_bytes(self.take(4), "big")

    def signed32(self) -> int:
        """Read an Int32."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def take(self, length: int) -> bytes:
        """Read `length` bytes, 0 or more."""
        end = self._at + length
        if end > len(self._data):
            raise RemoteProtocolError("A message is shorter than its contents claim.")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def string(self, *, cap: int | None = None) -> str:
        """Read a string up to its zero byte. Raises TextError where it is not UTF-8, whatever its length."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise RemoteProtocolError("A string in a message has no end.")
        if cap is not None and end - self._at > cap:
            raise RemoteProtocolError(f"A name in a message is longer than {cap} bytes.")
        raw = self._data[self._at : end]
        self._at = end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise TextError from error

    def rest(self) -> bytes:
        """Read all that is left."""
        return self.take(len(self._data) - self._at)

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at

    def end(self) -> None:
        """Raise RemoteProtocolError unless everything was read."""
        if self._at != len(self._data):
            raise RemoteProtocolError("A message is longer than its contents.")
