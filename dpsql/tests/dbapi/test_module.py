"""What the module itself promises: globals, type objects, constructors, the tree and the table of exceptions."""

from __future__ import annotations

import datetime
import subprocess
import sys
import time

import pytest

import dpsql
import dpsql.dbapi
from dpsql.dbapi.errors import guarded
from dpsql.errors import CODES, BudgetExhausted, DpsqlError, EngineFailure, LedgerError, PolicyError, Position


def test_globals() -> None:
    assert (dpsql.apilevel, dpsql.threadsafety, dpsql.paramstyle) == ("2.0", 2, "qmark")
    for name in dpsql.dbapi.__all__:
        assert getattr(dpsql, name) is getattr(dpsql.dbapi, name)
        assert name in dpsql.__all__
    with pytest.raises(AttributeError):
        _ = dpsql.no_such_name  # type: ignore[attr-defined]


def test_importing_dpsql_imports_neither_engine_nor_frames() -> None:
    program = (
        "import sys, dpsql; before = {'duckdb', 'numpy'} & set(sys.modules); dpsql.connect;"
        " print(sorted(before | ({'pyarrow', 'pandas', 'polars'} & set(sys.modules))))"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


def test_type_objects() -> None:
    assert dpsql.NUMBER == "bigint"
    assert dpsql.NUMBER != "text"
    assert dpsql.STRING != dpsql.NUMBER
    assert dpsql.NUMBER == dpsql.NUMBER
    assert dpsql.BINARY != dpsql.ROWID
    assert dpsql.DATETIME != 3
    assert repr(dpsql.STRING) == "dpsql.STRING"
    with pytest.raises(TypeError):
        hash(dpsql.STRING)


def test_constructors() -> None:
    ticks = time.mktime((2002, 12, 25, 13, 45, 30, 0, 0, -1))
    assert dpsql.Date(2002, 12, 25) == dpsql.DateFromTicks(ticks) == datetime.date(2002, 12, 25)
    assert dpsql.Time(13, 45, 30) == dpsql.TimeFromTicks(ticks)
    assert dpsql.Timestamp(2002, 12, 25, 13, 45, 30) == dpsql.TimestampFromTicks(ticks)
    assert dpsql.Binary(b"x") == b"x"


def fail(error: DpsqlError) -> dpsql.Error:
    def action() -> None:
        try:
            raise ValueError("an exact value: 17")
        except ValueError as cause:
            raise error from cause

    with pytest.raises(dpsql.Error) as caught:
        guarded(action)
    return caught.value


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_its_class(code: str) -> None:
    found = fail(DpsqlError("message", sqlstate=code, hint="hint", position=Position(1, 2, 1)))
    assert (found.sqlstate, found.message, found.hint, found.position) == (
        code,
        "message",
        "hint",
        Position(1, 2, 1),
    )
    assert str(found) == f"{code} at 1:2: message\nHINT: hint"
    assert isinstance(found, dpsql.DatabaseError)
    expected = {
        "0A": dpsql.NotSupportedError, "22": dpsql.DataError, "42": dpsql.ProgrammingError, "PV": dpsql.ProgrammingError,
        "P0": dpsql.DataError, "23": dpsql.IntegrityError, "2B": dpsql.InternalError, "3F": dpsql.ProgrammingError,
        "XX": dpsql.InternalError,
    }  # fmt: skip
    assert type(found) is expected.get(code[:2], dpsql.OperationalError)


@pytest.mark.parametrize(
    "error", [BudgetExhausted("x"), PolicyError("x"), LedgerError("x"), EngineFailure("a detail")]
)
def test_nothing_but_the_designed_text_leaves(error: DpsqlError) -> None:
    found = fail(error)
    assert type(found) is dpsql.OperationalError
    assert found.__cause__ is None
    assert found.__context__ is None
    assert "detail" not in str(found) + repr(found) + repr(vars(found))
    frames, trace = [], found.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "action" not in frames


def test_a_failure_below_hints_at_what_exists_here() -> None:
    assert "dpsql check" in (fail(EngineFailure()).hint or "")
    assert fail(EngineFailure(sqlstate="57014")).hint is None
    assert str(dpsql.InterfaceError("closed")) == "closed"
