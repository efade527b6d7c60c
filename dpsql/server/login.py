"""Who may connect: verifiers from the policies, and the dialogue that tells nothing to those who may not.

House rules:

1. Before a password was right, a name of a database that is not there, or is another's, meets the same dialogue as a
   user's own: the salt is that of the user's first policy. Who has proved a password of that user is then told that the
   database does not exist (3D000), also of one that does exist and has no such user.
2. Users that do not exist have salts too, the same at every try and after a restart.
3. A name in two policies is two users with a password each. Their salts differ, unless the line was copied: so a
   stranger who knows the user's name and both databases' can find out that the user is in both.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Sequence

from ..errors import PolicyError
from ..pgwire import Verifier, mock_verifier
from ..policy import Policy
from ..policy.catalog import database_names

__all__ = ["Logins", "places_by_name", "verifiers_of"]


class Logins:
    """The analysts of the served policies who have a password."""

    def __init__(self, policies: Sequence[Policy], secret: bytes) -> None:
        """`secret`: a dataset's, so that unknown names meet the same salts after a restart as before.

        Raises PolicyError, as `verifiers_of` and `places_by_name`.
        """
        self._known = [verifiers_of(policy) for policy in policies]
        self._places = places_by_name(policies)
        self._users = {user for known in self._known for user in known}
        self._secret = hmac.digest(secret, b"dpsql: users that do not exist", "sha256")
        self._iterations = sorted({one.iterations for known in self._known for one in known.values()})

    def __len__(self) -> int:
        """How many users there are: a name in two policies is two."""
        return sum(map(len, self._known))

    def __contains__(self, user: str) -> bool:
        return user in self._users

    def verifier(self, user: str, database: str) -> Verifier:
        """Return whose password has to be proved; that of a name without one looks no different, and none fits it."""
        digest = hashlib.sha256(self._secret + user.encode(errors="surrogatepass")).digest()
        iterations = self._iterations[digest[0] % len(self._iterations)]
        mock = mock_verifier(self._secret, user, iterations=iterations)
        return self._known[self.place(user, database)].get(user, mock)

    def place(self, user: str, database: str) -> int:
        """Return the place of the policy whose password has to be proved: the user's first, where none is meant."""
        found = self.find(user, database)
        return next(iter(self.places_of(user)), 0) if found is None else found

    def find(self, user: str, database: str) -> int | None:
        """Return the place of the policy that a user means by a database's name; None for one without that user."""
        index = self._places.get(database)
        return None if index is None or user not in self._known[index] else index

    def places_of(self, user: str) -> list[int]:
        """Return the places of the policies in which a name has a password."""
        return [index for index, known in enumerate(self._known) if user in known]


def places_by_name(policies: Sequence[Policy]) -> dict[str, int]:
    """Return which of the policies each name of a database means; a dataset's name that two have means neither.

    Raises PolicyError: two have one name.
    """
    datasets = Counter(policy.dataset_id for policy in policies)
    known: dict[str, int] = {}
    for place, policy in enumerate(policies):
        for name in dict.fromkeys(database_names(policy)):
            if name == policy.dataset_id and datasets[name] > 1 and name != policy.path.stem:
                continue
            if (other := known.setdefault(name, place)) != place:
                raise PolicyError(
                    f'{policies[other].path} and {policy.path} would both be the database "{name}"',
                    hint="a database has the name of its policy's file: rename one, or name each policy once",
                )
    return known


def verifiers_of(policy: Policy) -> dict[str, Verifier]:
    """Return the verifiers of a policy by name. Raises PolicyError: one cannot be read, or there is none at all."""
    found = {
        name: _parse(policy, name, analyst.password)
        for name, analyst in policy.analysts.items()
        if analyst.password is not None
    }
    if not found:
        raise PolicyError(
            f"{policy.source}: analysts: nobody has a password, so nobody could connect",
            hint="dpsql user add NAME prints the line to write",
        )
    return found


def _parse(policy: Policy, name: str, text: str) -> Verifier:
    try:
        return Verifier.parse(text)
    except ValueError as error:
        raise PolicyError(f'{policy.source}: analysts."{name}".password: {error}') from None
