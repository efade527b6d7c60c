"""Who else can read a policy that holds verifiers of passwords."""

from __future__ import annotations

from .model import Policy

__all__ = ["is_open_to_others"]

_OTHERS = 0o007


def is_open_to_others(policy: Policy) -> bool:
    """Say whether anybody on this machine can read the policy's file though analysts' verifiers are in it.

    From a verifier a password can be guessed at leisure. The owner's group is let be: somebody gave it the file.
    """
    if all(analyst.password is None for analyst in policy.analysts.values()):
        return False
    try:
        return bool(policy.path.stat().st_mode & _OTHERS)
    except OSError:
        return False
