"""The server's certificate: read at the start, and anew at each reload."""

from __future__ import annotations

import os
import re
import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..pgwire import tls_server_end_point

__all__ = ["ALPN", "Encryption", "end_of_certificate", "load_encryption", "refuse_open"]

ALPN = "postgresql"
"""What a client that begins with TLS at once has to name (Postgres 17), so that no other protocol is led here."""

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_UNREADABLE = "the certificate and its key cannot be read, or do not belong together"
_NO_PASSPHRASE = b"\0"
"""Given so that nobody is asked for one on the terminal; no key has it."""


@dataclass(frozen=True, slots=True)
class Encryption:
    """TLS with one certificate, and what a login over it is bound to; None: that certificate binds nothing."""

    context: ssl.SSLContext
    binding: bytes | None


def load_encryption(certificate: Path | None, key: Path | None) -> Encryption | None:
    """Return what two PEM files make; None where neither is given.

    Raises ValueError: one alone is given, they cannot be read, do not belong together, or others can read the key.
    """
    if certificate is None or key is None:
        if certificate is not key:
            raise ValueError("a certificate and its key are given together")
        return None
    refuse_open(key, "the key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0  # as Postgres: a connection is long, and none is resumed
    context.set_alpn_protocols([ALPN])
    try:
        text = certificate.read_text("ascii")
        context.load_cert_chain(certificate, key, _NO_PASSPHRASE)
        first = _CERTIFICATE.search(text)
        if first is None or text != certificate.read_text("ascii"):  # replaced while it was read
            raise ValueError
        return Encryption(context, tls_server_end_point(ssl.PEM_cert_to_DER_cert(first.group())))
    except (OSError, ValueError):  # an SSLError is an OSError
        raise ValueError(_UNREADABLE) from None


def refuse_open(file: Path, what: str) -> None:
    """Raise ValueError, by Postgres' rule, for a secret that others can read or change: who has it is the server.

    Root's may be read by one group, in which the server's user is then.
    """
    try:
        found = file.stat()
    except OSError:
        raise ValueError(f"{what} cannot be read") from None
    if found.st_uid not in (0, os.geteuid()):
        raise ValueError(f"{what} belongs to another user: give it to the one who runs dpsql, or to root")
    if found.st_mode & (0o027 if found.st_uid == 0 else 0o077):
        raise ValueError(
            f"others than its owner can read {what}, or change it: chmod 600 it (640 where it is root's)"
        )


def end_of_certificate(certificate: Path, encryption: Encryption) -> datetime | None:
    """Return until when a server's certificate is good, as a client that trusts itself alone sees it; None: not now.

    Requires: `encryption` was loaded from it.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(certificate)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server),
        encryption.context.wrap_bio(to_server, to_client, server_side=True),
    )
    try:
        for _ in range(4):
            for end in ends:
                with suppress(ssl.SSLWantReadError):
                    end.do_handshake()
        seen = ends[0].getpeercert()
    except (ssl.SSLError, ValueError):
        return None
    if not seen:
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(seen["notAfter"])), UTC)
