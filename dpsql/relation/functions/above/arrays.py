"""Functions of arrays of one dimension: chapter 9.19 of Postgres' manual, beside the operators of `arrays`."""

from __future__ import annotations

from .signature import MOST_VALUES, above

__all__ = ["ROWS"]

_LENGTH = "coalesce(len({%s}), 0)"
_CHARACTERS = "regexp_extract_all({a}, '(?s).')"
"""A text's characters: DuckDB's own functions count what is written with several of them as one."""

_PARTS = (
    f"CASE WHEN {{a}} IS NULL THEN NULL WHEN {{a}} = '' THEN [] WHEN {{b}} IS NULL THEN {_CHARACTERS} "
    "WHEN {b} = '' THEN [{a}] ELSE string_split({a}, {b}) END"
)
_SAME = "e IS NOT DISTINCT FROM {b}"
_MOST_JOINED = 1_000_000


def _short(lists: str, body: str) -> str:
    return f"CASE WHEN {lists} <= {MOST_VALUES} THEN {body} END"


def _texts(shown: str) -> str:
    return (
        "CASE WHEN {a} IS NOT NULL AND {b} IS NOT NULL AND "
        f"len({{a}}) * strlen({{b}}) <= {_MOST_JOINED} THEN "
        f"coalesce(array_to_string(list_transform({{a}}, lambda e: {shown}), {{b}}), '') END"
    )


ROWS = (
    above("array_append", "array_append(q, x)", "one more value behind it", "array, element -> array",
          _short(f"{_LENGTH % 'a'} + 1", "list_concat(coalesce({a}, []), [{b}])"), strict=False),
    above("array_prepend", "array_prepend(x, q)", "one more value before it", "element, array -> array",
          _short(f"{_LENGTH % 'b'} + 1", "list_concat([{a}], coalesce({b}, []))"), strict=False),
    above("array_cat", "array_cat(q, r)", "one array behind another, as `q || r`", "array, array -> array",
          "CASE WHEN {a} IS NULL THEN {b} WHEN {b} IS NULL THEN {a} ELSE "
          + _short("len({a}) + len({b})", "list_concat({a}, {b})") + " END", strict=False),
    above("array_remove", "array_remove(q, x)", "without the values that equal `x`", "array, element -> array",
          f"list_filter({{a}}, lambda e: NOT ({_SAME}))", strict=False),
    above("array_replace", "array_replace(q, x, y)", "`y` for each `x`", "array, element, element -> array",
          f"list_transform({{a}}, lambda e: CASE WHEN {_SAME} THEN {{c}} ELSE e END)", strict=False),
    above("array_positions", "array_positions(q, x)", "all places of a value", "array, element -> places",
          f"list_filter(list_transform({{a}}, lambda e, i: CASE WHEN {_SAME} THEN i END), lambda i: i IS NOT NULL)",
          strict=False),
    above("array_ndims", "array_ndims(q)", "1, the dimensions of an array that has values", "array -> integer",
          "CASE WHEN len({a}) > 0 THEN 1 END"),
    above("array_dims", "array_dims(q)", "its places as text, `[1:3]`", "array -> text",
          "CASE WHEN len({a}) > 0 THEN '[1:' || len({a}) || ']' END"),
    above("array_upper", "array_upper(q, 1)", "its last place", "array, integer -> integer",
          "CASE WHEN {b} = 1 AND len({a}) > 0 THEN len({a}) END"),
    above("array_lower", "array_lower(q, 1)", "its first place, 1", "array, integer -> integer",
          "CASE WHEN {b} = 1 AND len({a}) > 0 THEN 1 END"),
    above("trim_array", "trim_array(q, 2)", "without so many values at its end", "array, integer -> array",
          "CASE WHEN {b} BETWEEN 0 AND len({a}) THEN list_slice({a}, 1, len({a}) - {b}) END"),
    above("array_reverse", "array_reverse(q)", "its values from the last to the first", "array -> array",
          "list_reverse({a})", since=18),
    above("array_sort", "array_sort(q)", "its values in order, NULL last", "array -> array",
          "list_sort({a}, 'ASC', 'NULLS LAST')", since=18),
    above("array_to_string", "array_to_string(q, ', ', '-')", "texts, integers or dates joined, NULL left out, or as "
          "the third text", "shown, separator -> text; shown, separator, text -> text", _texts("CAST(e AS VARCHAR)"),
          _texts("coalesce(CAST(e AS VARCHAR), {c})"), strict=False),
    above("string_to_array", "string_to_array(x, ',')", "the parts of a text between separators; of a third text: NULL",
          "text, text -> texts; text, text, text -> texts", _PARTS,
          f"list_transform({_PARTS}, lambda e: CASE WHEN e = {{c}} THEN NULL ELSE e END)", strict=False),
)  # fmt: skip
