"""The channel binding `tls-server-end-point` (RFC 5929): a hash of the server's certificate."""

from __future__ import annotations

import hashlib
from types import MappingProxyType

__all__ = ["tls_server_end_point"]

_SEQUENCE, _OBJECT_IDENTIFIER, _CONTEXT_0 = 0x30, 0x06, 0xA0

_HASHES = MappingProxyType(
    {
        "1.2.840.113549.1.1.4": "sha256",  # MD5 with RSA: SHA-256 stands in, as the RFC says
        "1.2.840.113549.1.1.5": "sha256",  # SHA-1 with RSA: likewise
        "1.2.840.113549.1.1.11": "sha256",
        "1.2.840.113549.1.1.12": "sha384",
        "1.2.840.113549.1.1.13": "sha512",
        "1.2.840.113549.1.1.14": "sha224",
        "1.2.840.10045.4.1": "sha256",  # SHA-1 with ECDSA
        "1.2.840.10045.4.3.1": "sha224",
        "1.2.840.10045.4.3.2": "sha256",
        "1.2.840.10045.4.3.3": "sha384",
        "1.2.840.10045.4.3.4": "sha512",
        "2.16.840.1.101.3.4.2.1": "sha256",  # the hashes themselves, in the parameters of RSA-PSS
        "2.16.840.1.101.3.4.2.2": "sha384",
        "2.16.840.1.101.3.4.2.3": "sha512",
        "2.16.840.1.101.3.4.2.4": "sha224",
    }
)
_RSA_PSS = "1.2.840.113549.1.1.10"


def tls_server_end_point(certificate: bytes) -> bytes | None:
    """Return the binding of a certificate in DER (`ssl.PEM_cert_to_DER_cert`).

    None where the certificate's signature has no hash of its own (Ed25519) or one that is not known: then no
    channel binding can be offered. Raises ValueError: these are not the bytes of a certificate.
    """
    try:
        return _binding(certificate)
    except IndexError:
        raise ValueError("the certificate ends too early") from None


def _binding(certificate: bytes) -> bytes | None:
    whole, _ = _read(certificate, _SEQUENCE)
    _, rest = _read(whole, _SEQUENCE)
    algorithm, _ = _read(rest, _SEQUENCE)
    identifier, parameters = _read(algorithm, _OBJECT_IDENTIFIER)
    name = _dotted(identifier)
    hash_name = _hash_of_pss(parameters) if name == _RSA_PSS else _HASHES.get(name)
    return None if hash_name is None else hashlib.new(hash_name, certificate).digest()


def _hash_of_pss(parameters: bytes) -> str | None:
    inside, _ = _read(parameters, _SEQUENCE)
    if not inside or inside[0] != _CONTEXT_0:
        return "sha256"  # the default is SHA-1, for which SHA-256 stands in
    algorithm, _ = _read(_read(inside, _CONTEXT_0)[0], _SEQUENCE)
    return _HASHES.get(_dotted(_read(algorithm, _OBJECT_IDENTIFIER)[0]))


def _read(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the contents of the DER element that `data` begins with, and what follows it."""
    if data[0] != tag:
        raise ValueError("not a certificate in DER")
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    end = start + length
    if end > len(data):
        raise IndexError
    return data[start:end], data[end:]


def _dotted(identifier: bytes) -> str:
    """Return an object identifier as its numbers."""
    numbers = [0]
    for byte in identifier:
        numbers[-1] = numbers[-1] << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(0)
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:-1]]))
