"""A column that numbers the rows of each person, held against what the live engine enforces (soundness.md 1.39).

House rule: nothing is believed of numbers but that no two rows of a person share one, and that they are integers: that
the engine enforces, or it was verified in the very files that are read (1.30). They may have holes, begin below 1 and
end anywhere; who gives them, and in which order, is the owner's.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import PolicyError
from ..relation.catalog import quoted_names
from .live_schema import LiveColumn, LiveTable
from .model import Policy, TablePolicy
from .section import quote_text, suggest

_LOOSE = {
    "deferrable": "is DEFERRABLE, so that a transaction may have two rows of one number; make it NOT DEFERRABLE",
    "partial": "is of some rows alone (WHERE), and says nothing of the others; make it one of all rows",
    "expression": "is of an expression; make it one of the columns as they are",
    "invalid": "is not valid, so that rows of one number may be there; drop it and make it anew",
}
"""Why a unique index of the unit and the row number holds nothing."""


def row_number_of(
    where: str,
    policy: Policy,
    declared: TablePolicy,
    table: LiveTable,
    owner: Sequence[LiveColumn],
    *,
    holds_owner: bool,
) -> str | None:
    """Return the column that numbers the rows of each person, as the engine enforces it (soundness.md 1.39).

    `owner`: the unit's columns; `holds_owner`: they hold the person's own key. Raises PolicyError, with a sentence for
    each way in which a number would hold nothing.
    """
    name = declared.row_number
    if name is None:
        return None
    assert declared.unit is not None, "a number is of a person's rows"
    unit, shown = declared.unit.columns, quote_text(declared.name)
    column = _require_number(where, policy, declared, table, name)
    wanted, names = {*unit, name}, quoted_names([*unit, name])
    if policy.files is not None and set(table.asserted) != wanted:
        key_ = ", ".join(map(quote_text, (*unit, name)))
        raise PolicyError(
            f"{where}: files enforce no key; write key = [{key_}] here, which dpsql refresh verifies over all rows "
            "before it records them"
        )
    if not column.not_null:
        raise PolicyError(
            f'{where}: "{name}" may be NULL, and any number of rows without a number may be one person\'s; make it NOT '
            "NULL, and validate that"
        )
    if not holds_owner:
        raise PolicyError(
            f"{where}: {quoted_names(unit)} leads to a person over other tables; the person's own key has to stand in "
            f"the row: dpsql prepare {shown} makes such a copy"
        )
    if not all(one.not_null for one in owner):
        raise PolicyError(
            f"{where}: {quoted_names(unit)} may be NULL, and a key holds nothing of such rows; make it NOT NULL"
        )
    if policy.files is not None:
        return name  # every statement asks whether the key was found to hold in the version that it reads
    assert table.proved is not None, "what proves nothing was refused"
    if any(set(key) == wanted for key in table.proved.keys):
        return name
    for key, why in table.loose_keys:
        if set(key) == wanted:
            raise PolicyError(f"{where}: the key of {names} {_LOOSE[why]}")
    raise PolicyError(
        f"{where}: no PRIMARY KEY or UNIQUE constraint of {names} keeps two rows of one person from having one number; "
        "add one"
    )


def _require_number(
    where: str, policy: Policy, declared: TablePolicy, table: LiveTable, name: str
) -> LiveColumn:
    """Return the column of numbers: stored, of integers, and nothing else is declared of it. Raises PolicyError."""
    assert declared.unit is not None, "a number is of a person's rows"
    if policy.is_on_spark:
        raise PolicyError(
            f"{where}: tables of a lake enforce no key, and their rows are bounded as they are counted; take it out"
        )
    if policy.privacy.time is not None:
        raise PolicyError(
            f"{where}: is not answered beside privacy.time, where bounds are by period; take it out"
        )
    column = table.column(name)
    if column is None:
        known, shown = suggest(name, [one.name for one in table.columns]), quote_text(declared.name)
        raise PolicyError(
            f'{where}: table "{table.path[1]}" has no column "{name}"{known}; dpsql prepare {shown} makes one'
        )
    if name in declared.unit.columns:
        raise PolicyError(f'{where}: "{name}" says whose a row is; name another column')
    if any(one.name == name for one in declared.columns):
        raise PolicyError(
            f'{where}: "{name}" numbers rows, and no statement reads it; take it out of the columns'
        )
    if column.is_generated:
        raise PolicyError(f'{where}: "{name}" is computed when it is read; store it')
    if not column.type.is_integer:
        raise PolicyError(
            f'{where}: "{name}" is {column.engine_type.lower()}, of which many values may lie between 1 and 2; make it '
            "an integer"
        )
    return column
