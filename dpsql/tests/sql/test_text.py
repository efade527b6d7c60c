"""A script is cut at the semicolons that Postgres would cut it at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.sql.text import ends_statement, read_constant, split_statements


@pytest.mark.parametrize(
    ("script", "pieces"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        (" SELECT 1 ; SELECT 2 ", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';'; SELECT 2", ["SELECT ';'", "SELECT 2"]),
        ("SELECT 'it''s;'; SELECT 2", ["SELECT 'it''s;'", "SELECT 2"]),
        (r"SELECT E'\';'; SELECT 2", [r"SELECT E'\';'", "SELECT 2"]),
        (r"SELECT '\'; SELECT 2", [r"SELECT '\'", "SELECT 2"]),
        ('SELECT "a;""b"; SELECT 2', ['SELECT "a;""b"', "SELECT 2"]),
        ("SELECT $$;$$; SELECT 2", ["SELECT $$;$$", "SELECT 2"]),
        ("SELECT $a$;$$;$a$; SELECT 2", ["SELECT $a$;$$;$a$", "SELECT 2"]),
        ("SELECT $1; SELECT $2", ["SELECT $1", "SELECT $2"]),
        ("-- first; second\nSELECT 1 -- a;b\n; SELECT 2", ["SELECT 1 -- a;b", "SELECT 2"]),
        ("/* a; /* b; */ c; */ SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT 1 /* ; */ + 1; SELECT 2", ["SELECT 1 /* ; */ + 1", "SELECT 2"]),
        (";;; -- nothing\n ;", []),
        ("", []),
        ("SELECT 'never closed; SELECT 2", ["SELECT 'never closed; SELECT 2"]),
        ("SELECT 1 /* never closed; SELECT 2", ["SELECT 1 /* never closed; SELECT 2"]),
        ("SELECT size'; x'; SELECT 2", ["SELECT size'; x'", "SELECT 2"]),
        ("SELECT a$b$; SELECT c$b$", ["SELECT a$b$", "SELECT c$b$"]),
    ],
)
def test_cuts(script: str, pieces: list[str]) -> None:
    assert [piece.text for piece in split_statements(script)] == pieces


@given(st.text(alphabet="a;'\"$-/*\n E\\", max_size=40))
def test_pieces_lie_in_the_script(script: str) -> None:
    end = 0
    for piece in split_statements(script):
        assert piece.text
        assert piece.start >= end
        end = piece.start + len(piece.text)
        assert script[piece.start : end] == piece.text


@pytest.mark.parametrize(
    ("script", "is_complete"),
    [
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1", False),
        ("SELECT 1; SELECT", False),
        ("SELECT ';", False),
        ("", False),
    ],
)
def test_the_prompt_knows_a_whole_statement(script: str, is_complete: bool) -> None:
    assert ends_statement(script) is is_complete


@pytest.mark.parametrize(
    ("script", "pieces"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' ; -- ; \n SELECT 2 ;", ["SELECT ';'", "SELECT 2"]),
        (" ;; ", []),
        ("-- nothing", []),
        ('SELECT $$;$$; SELECT ";"', ["SELECT $$;$$", 'SELECT ";"']),
    ],
)
def test_a_script_is_cut_at_its_semicolons(script: str, pieces: list[str]) -> None:
    assert [piece.text for piece in split_statements(script)] == pieces


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("'it''s', 2", ("string", "it's", 7)),
        ("e'a', 2", ("escaped", "a", 4)),
        (r"e'\'', 2", ("word", "e", 1)),
        ('"A""b" ', ("quoted", 'A"b', 6)),
        ("- 1.5e3,", ("number", "-1.5e3", 7)),
        ("+ .5", ("number", ".5", 4)),
        ("1x", None),
        ("Off ", ("word", "off", 3)),
        ("(", None),
    ],
)
def test_a_constant_by_itself(text: str, read: tuple[str, str, int] | None) -> None:
    assert read_constant(text, 0) == read
