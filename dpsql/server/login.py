"""Who may connect: verifiers from the policy, and the dialogue that tells nothing to those who may not."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

from ..errors import PolicyError
from ..pgwire import Verifier, mock_verifier
from ..policy import Policy
from ..policy.catalog import database_names

__all__ = ["Logins"]

_USUAL_ITERATIONS = 4096


class Logins:
    """The analysts of a policy who have a password."""

    def __init__(self, policy: Policy, secret: bytes) -> None:
        """`secret`: the dataset's, so that unknown names meet the same salts after a restart as before.

        Raises PolicyError: a verifier that cannot be read.
        """
        self._verifiers: dict[str, Verifier] = {}
        for name, analyst in policy.analysts.items():
            if analyst.password is not None:
                self._verifiers[name] = _parse(policy, name, analyst.password)
        self._secret = hmac.digest(secret, b"dpsql: users that do not exist", "sha256")
        self._iterations = sorted({known.iterations for known in self._verifiers.values()}) or [
            _USUAL_ITERATIONS
        ]
        self._databases = database_names(policy)

    def __len__(self) -> int:
        return len(self._verifiers)

    def __contains__(self, user: str) -> bool:
        return user in self._verifiers

    def verifier(self, user: str, database: str) -> Verifier:
        """Return an analyst's verifier; that of a name without one looks no different, and no password fits it.

        None fits for a database that does not exist either: one path, and one time, for all that is wrong.
        """
        digest = hashlib.sha256(self._secret + user.encode(errors="surrogatepass")).digest()
        iterations = self._iterations[digest[0] % len(self._iterations)]
        mock = mock_verifier(self._secret, user, iterations=iterations)
        known = self._verifiers.get(user, mock)
        return replace(known, stored_key=known.stored_key if self.has_database(database) else mock.stored_key)

    def has_database(self, name: str) -> bool:
        """Return whether this is the name of what is served."""
        return name in self._databases


def _parse(policy: Policy, name: str, text: str) -> Verifier:
    try:
        return Verifier.parse(text)
    except ValueError as error:
        raise PolicyError(f'{policy.source}: analysts."{name}".password: {error}') from None
