"""The charts, filters and grains that ask_superset.py asks for: of people, and of loans by time."""

from __future__ import annotations

from typing import Any

COUNT = {"expressionType": "SQL", "sqlExpression": "COUNT(*)", "label": "n"}
SPRING = "2024-02-01 : 2024-06-01"
AXIS = {
    "columnType": "BASE_AXIS",
    "sqlExpression": "taken",
    "label": "taken",
    "expressionType": "SQL",
    "timeGrain": "P1M",
}
BAND = [
    {**COUNT, "sqlExpression": f"{end}(COUNT(*))", "label": f"n__yhat_{side}"}
    for side, end in (("lower", "dp_low"), ("upper", "dp_high"))
]
SHARE = {"operation": "contribution", "options": {"columns": ["n"], "rename_columns": ["p"]}}


def simple(aggregate: str, column: str) -> dict[str, Any]:
    named = {"column": {"column_name": column}, "label": f"{aggregate}({column})"}
    return {"expressionType": "SIMPLE", "aggregate": aggregate, **named}


def where(column: str, operator: str, value: object = None) -> dict[str, Any]:
    return {"filters": [{"col": column, "op": operator, "val": value}]}


PERSON: dict[str, dict[str, Any]] = {
    "big number": {"metrics": [COUNT]},
    "table": {"columns": ["city"], "metrics": [COUNT, simple("AVG", "age")], "orderby": [[COUNT, False]]},
    **{f"table of {one}": {"columns": ["city"], "metrics": [simple(one, "age")]}
       for one in ("SUM", "MIN", "MAX", "COUNT_DISTINCT")},
    "share": {"columns": ["city"], "metrics": [COUNT], "post_processing": [SHARE]},
    "filter in": {"metrics": [COUNT], **where("city", "IN", ["north"])},
    "filter like": {"metrics": [COUNT], **where("city", "ILIKE", "n%")},
    "filter number": {"metrics": [COUNT], **where("age", ">=", 30)},
    "filter date": {"metrics": [COUNT], **where("born", "TEMPORAL_RANGE", "1960-01-01 : 1990-01-01")},
    "filter null": {"metrics": [COUNT], **where("city", "IS NOT NULL")},
    "filter true": {"metrics": [COUNT], **where("active", "==", True)},
    "filter having": {"columns": ["city"], "metrics": [COUNT], "extras": {"having": "COUNT(*) > 10"}},
    "filter values": {"columns": ["city"], "metrics": []},
    "filter values by count": {"columns": ["city"], "metrics": ["count"], "orderby": [["count", False]]},
    "filter range": {"metrics": [simple("MIN", "age"), simple("MAX", "age")]},
    "histogram": {"columns": ["age"], "metrics": [COUNT]},
}  # fmt: skip
LOAN: dict[str, dict[str, Any]] = {
    **{f"line by {grain}": {"is_timeseries": True, "metrics": [COUNT], "granularity": "taken", "time_range": SPRING,
                            "extras": {"time_grain_sqla": grain}} for grain in ("P1D", "P1W", "P1M", "P3M", "P1Y")},
    "line": {"columns": [AXIS], "metrics": [COUNT], **where("taken", "TEMPORAL_RANGE", SPRING)},
    "lines": {"columns": [AXIS], "metrics": [COUNT, simple("SUM", "amount")], **where("taken", "TEMPORAL_RANGE", SPRING)},
    "band": {"columns": [AXIS], "metrics": [COUNT, *BAND], **where("taken", "TEMPORAL_RANGE", SPRING)},
    "last year": {"metrics": [COUNT], "granularity": "taken", "time_range": "Last year"},
}  # fmt: skip
