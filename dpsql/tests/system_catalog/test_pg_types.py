from __future__ import annotations

from dpsql.pgwire.write_columns import TEXT_WRITERS
from dpsql.system_catalog.pg_types import BY_OID


def test_the_wire_can_write_every_type_of_a_column() -> None:
    assert {type_.oid for type_ in BY_OID.values()} <= TEXT_WRITERS.keys()
