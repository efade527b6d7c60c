"""EXPLAIN in the shape of Postgres' plans, which is the one that tools read: `(cost=0.00..0.10 rows=5 width=0)`.

A plan's cost is the epsilon that the statement would be charged now, and its rows are the groups that it has
beforehand: those declared, or stored already. Neither is an estimate of the engine's, whose statistics are of people's
rows. What dpsql has to say besides stands under keys of its own in the same nodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from html import escape
from typing import Any

from .explain import Explanation
from .settings import decimal_text

Node = dict[str, Any]


def plan_lines(explained: Explanation, form: str) -> list[str]:
    """Return what EXPLAIN answers, a text a row; `form`: text, json, xml or yaml."""
    plan = _answer_node(explained)
    if form == "json":
        return [json.dumps([{"Plan": plan}], indent=2, default=float)]
    if form == "xml":
        root = f'<explain xmlns="http://www.postgresql.org/2009/explain">\n{_xml("Query", {"Plan": plan}, 1)}'
        return [f"{root}</explain>"]
    if form == "yaml":
        return ["\n".join(_yaml([{"Plan": plan}], ""))]
    figures = f"cost=0.00..{_cost_text(plan['Total Cost'])} rows={plan['Plan Rows']} width=0"
    return [f"Answer  ({figures})", *explained.text().split("\n")]


def _answer_node(explained: Explanation) -> Node:
    said: Node = explained.as_dict()
    releases = zip(said.pop("releases"), explained.costs, explained.groups, strict=True)
    return {
        **_node("Answer", explained.cost, explained.rows),
        **said,
        "Plans": [
            {
                **_node("Release", cost, groups),
                "Parent Relationship": "Outer", "Relation Name": one.pop("table"), "Alias": one.pop("name"), **one,
            }
            for one, cost, groups in releases
        ],
    }  # fmt: skip


def _node(kind: str, cost: Fraction, rows: int) -> Node:
    return {
        "Node Type": kind,
        "Startup Cost": Fraction(0),
        "Total Cost": cost,
        "Plan Rows": rows,
        "Plan Width": 0,
    }


def _cost_text(cost: Fraction) -> str:
    """Return an exact decimal with two digits at least, as tools expect them."""
    whole, _, digits = (decimal_text(cost) or "0").partition(".")
    return f"{whole or '0'}.{digits:<02}"


# --- the same as XML and YAML ---------------------------------------------------------------------------------

_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_YAML = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_NO_TAG = re.compile(r"[^A-Za-z0-9_.-]")
_NESTED = (dict, list, tuple)
_ITEMS = {"Plans": "Plan"}
"""What an element of a list is called, where it is no `Item`."""


def _xml(key: str, value: object, depth: int) -> str:
    """Return an element, as Postgres writes them: a key is its tag, with - for what no tag has."""
    tag, indent = _NO_TAG.sub("-", key), "  " * depth
    if isinstance(value, dict):
        inside = "".join(_xml(name, one, depth + 1) for name, one in value.items())
    elif isinstance(value, (list, tuple)):
        inside = "".join(_xml(_ITEMS.get(key, "Item"), one, depth + 1) for one in value)
    else:
        return f"{indent}<{tag}>{_xml_text(value)}</{tag}>\n"
    return f"{indent}<{tag}>\n{inside}{indent}</{tag}>\n"


def _xml_text(value: object) -> str:
    return "" if value is None else escape(_NO_XML.sub("\ufffd", _plain(value)), quote=False)


def _plain(value: object) -> str:
    """Return a value as text: a cost is exact."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _cost_text(value) if isinstance(value, Fraction) else str(value)


def _yaml(value: object, indent: str) -> Iterator[str]:
    """Yield the lines of a mapping or a list; texts are quoted as in JSON, which YAML reads."""
    if isinstance(value, dict):
        for key, one in value.items():
            if isinstance(one, _NESTED) and one:
                yield f"{indent}{key}:"
                yield from _yaml(one, indent + "  ")
            else:
                yield f"{indent}{key}: {_yaml_text(one)}"
    elif isinstance(value, (list, tuple)):
        for one in value:
            first, *more = (
                _yaml(one, indent + "  ") if isinstance(one, _NESTED) and one else [_yaml_text(one)]
            )
            yield f"{indent}- {first.lstrip()}"
            yield from more


def _yaml_text(value: object) -> str:
    if isinstance(value, Fraction):
        return _cost_text(value)
    shown = json.dumps(value, ensure_ascii=False)
    return _NO_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", shown)
