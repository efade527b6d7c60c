"""SQLAlchemy's expressions as text that dpsql reads: Postgres' words, but for a few that dpsql has otherwise."""

from __future__ import annotations

from typing import Any

from sqlalchemy import types
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGTypeCompiler
from sqlalchemy.sql.elements import BindParameter

__all__ = ["DpsqlCompiler", "DpsqlTypeCompiler"]

_REAL_BITS = 24


class _Pattern(types.TypeDecorator[str]):
    """A text that is sent as a pattern of LIKE, with something before and after it."""

    impl = types.String
    cache_ok = True

    def __init__(self, before: str, after: str) -> None:
        super().__init__()
        self.before = before
        self.after = after

    def process_bind_param(self, value: str | None, dialect: object) -> str | None:
        return None if value is None else f"{self.before}{value}{self.after}"

    process_literal_param = process_bind_param  # type: ignore[assignment]  # a value of None has no literal


class DpsqlCompiler(PGCompiler):
    """Writes statements. What dpsql does not answer is written too: the refusal is dpsql's."""

    def visit_column(
        self,
        column: Any,
        add_to_result_map: Any = None,
        include_table: bool = True,
        *arguments: Any,
        **options: Any,
    ) -> str:
        """Write `table.column` where Postgres would have `schema.table.column`."""
        table = column.table
        is_named = include_table and table is not None and table.named_with_column
        if not is_named or not self.preparer.schema_for_object(table):
            return super().visit_column(column, add_to_result_map, include_table, *arguments, **options)
        name = super().visit_column(column, add_to_result_map, False, *arguments, **options)
        return f"{self.preparer.quote(table.name)}.{name}"

    def limit_clause(self, select: Any, **options: Any) -> str:
        """Write LIMIT and OFFSET, and OFFSET alone without Postgres' LIMIT ALL."""
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **options)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **options)
        return text

    def fetch_clause(self, select: Any, *arguments: Any, **options: Any) -> str:
        """Write FETCH FIRST n ROWS ONLY as the LIMIT that it is; WITH TIES and PERCENT stay."""
        if any(select._fetch_clause_options.values()):
            above: Any = super()
            return str(above.fetch_clause(select, *arguments, **options))
        text = "\n LIMIT " + self.process(select._fetch_clause, **options)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **options)
        return text

    def visit_empty_set_expr(self, element_types: Any, **options: Any) -> str:
        """Write the empty list of IN with text in place of a text of some length, which no cast has here."""
        texts = [types.TEXT() if isinstance(type_, types.String) else type_ for type_ in element_types or ()]
        above: Any = super()
        return str(above.visit_empty_set_expr(texts, **options))

    def visit_contains_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("contains", binary, operator, "%", "%", options)

    def visit_not_contains_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("not_contains", binary, operator, "%", "%", options)

    def visit_startswith_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("startswith", binary, operator, "", "%", options)

    def visit_not_startswith_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("not_startswith", binary, operator, "", "%", options)

    def visit_endswith_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("endswith", binary, operator, "%", "", options)

    def visit_not_endswith_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("not_endswith", binary, operator, "%", "", options)

    def _like(
        self, name: str, binary: Any, operator: Any, before: str, after: str, options: dict[str, Any]
    ) -> str:
        """Write LIKE with the whole pattern in the parameter: LIKE takes no pattern that is put together."""
        if not isinstance(binary.right, BindParameter):
            above: Any = getattr(super(), f"visit_{name}_op_binary")
            return str(above(binary, operator, **options))
        binary = binary._clone()
        binary.right = binary.right._with_binary_element_type(_Pattern(before, after))
        write: Any = self.visit_not_like_op_binary if name.startswith("not_") else self.visit_like_op_binary
        return str(write(binary, operator, **options))


class DpsqlTypeCompiler(PGTypeCompiler):
    """Writes types, for CAST."""

    def visit_FLOAT(self, type_: Any, **options: Any) -> str:
        """Write FLOAT(bits) as the one of two types that it means in Postgres."""
        return "REAL" if type_.precision and type_.precision <= _REAL_BITS else "DOUBLE PRECISION"
