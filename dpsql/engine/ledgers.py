"""The ledger that a policy names, opened without the rest of the engine: what an owner asks of it needs no more."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from ..budget import Caps, LedgerStore, Promise, Ration, open_store
from ..mechanisms import ATTO, NANO
from ..policy import Policy
from ..policy.periods import Times
from ..policy.units import whose_of


def open_ledger(policy: Policy, *, create: bool) -> LedgerStore:
    """Open the ledger that a policy names.

    `create` makes a new one where there is none; only an explicit act of the owner may ask for that, since
    a ledger that vanished must never come back empty. Raises LedgerError when it is missing, not to be
    trusted, of another dataset, or of another promise.
    """
    caps = caps_of(policy)
    privacy, log = policy.privacy, policy.ledger_log
    promise = Promise(
        privacy.neighbours.value, privacy.together, privacy.accounting, int(privacy.conversion_delta * ATTO)
    )
    if (time := privacy.time) is not None:
        promise = replace(promise, period=time.period, zone=time.zone, since=time.since)
    store = open_store(policy.ledger, policy.dataset_id, caps, create=create, log=log, promise=promise)
    with ExitStack() as undo:
        undo.callback(store.close)
        if time is not None:
            store.require_times(times_of(policy))
        store.require_whose({said for name in policy.tables for said in whose_of(policy, name)})
        undo.pop_all()
    return store


def times_of(policy: Policy) -> Times:
    """Return by which time the rows of people's tables are of a period; tables by the database's names."""
    found = []
    for name, table in policy.tables.items():
        time = table.time or (name, "")
        if table.unit is not None:
            said = time[1] if time[0] == name else f"{policy.origin(time[0])}.{time[1]}"
            found.append((policy.origin(name), said))
    return tuple(sorted(found))


def caps_of(policy: Policy) -> Caps:
    """Return what may be spent, in the ledger's units."""
    time = policy.privacy.time
    return Caps(
        int(policy.privacy.epsilon * NANO),
        int(policy.privacy.delta * ATTO),
        {name: int(analyst.epsilon * NANO) for name, analyst in policy.analysts.items()},
        _ration(policy),
        () if time is None else tuple((length, int(cap * NANO)) for length, cap in time.windows),
        None if time is None or time.person is None else int(time.person * NANO),
    )


def _ration(policy: Policy) -> Ration | None:
    """Return what may be spent by the period, in the ledger's units."""
    rationing = policy.privacy.rationing
    if rationing is None:
        return None
    own = {name: analyst.ration for name, analyst in policy.analysts.items()}
    return Ration(
        rationing.period,
        None if rationing.epsilon is None else int(rationing.epsilon * NANO),
        {name: int(epsilon * NANO) for name, epsilon in own.items() if epsilon is not None},
        rationing.carries,
    )
