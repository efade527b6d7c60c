"""What a catalog query may call: every function and operator is a piece of the engine's SQL, and no other is reachable.

The tables give arguments and results as Postgres declares them, so that their types choose the form (`apply`).

Typed pieces of the engine's SQL, and how a value of one type becomes one of another.

House rule: text of the client's reaches the engine's SQL through `quoted` alone, or as a parameter.

Which form of a function or an operator the types of its arguments mean, as Postgres chooses it.

`any` is whatever is given. All that is `anyelement`, `anyint` or `anynumber` takes one type, which is that of the items
of every `anyarray` beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import reduce
from types import MappingProxyType

from ..records import dataclass
from .errors import MOST_OF_A_SERIES, CatalogRefusal, raised, unsupported
from .objects import Names
from .pg_types import BY_NAME, BY_OID, PSEUDO, TEXT, UNKNOWN, PgType, array_of, record_of, wider


@dataclass(frozen=True, slots=True)
class Signature:
    """One form of a function. `sql` has {0}, {1} where the arguments stand, and {all} for them with commas between.

    It may also have {type}, what holds the result; {lowest}, the place at which the first argument, an array, begins;
    and $name, what differs between connections. `is_variadic`: the last argument may come more than once.
    `is_set`: the function returns rows, and `sql` is the array of them.
    """

    arguments: tuple[PgType, ...]
    returns: PgType
    sql: str
    is_variadic: bool
    is_set: bool

    def types(self, count: int) -> tuple[PgType, ...] | None:
        """Return the types of so many arguments; None: the form does not take as many."""
        more = count - len(self.arguments)
        if more and not (self.is_variadic and more > 0):
            return None
        return self.arguments + self.arguments[-1:] * more


_MAY = "list_has_any(string_split(upper(replace({}, ' ', '')), ','), {})"
"""Whether a list of privileges, one of which is enough, has one that there is."""
_SEPARATOR = re.compile(r"\b\|\b| ")


def _type(name: str) -> PgType:
    if name.endswith("[]"):
        return BY_OID[BY_NAME[name[:-2]].array]
    return PSEUDO.get(name) or BY_NAME['"char"' if name == "char" else name]


def _returned(text: str) -> PgType:
    """Return a type, or the record of (name type, …)."""
    if text[0] != "(":
        return _type(text)
    fields = (field.split() for field in text[1:-1].split(", "))
    return record_of(tuple((name, _type(type_)) for name, type_ in fields))


def _read(table: str) -> MappingProxyType[str, tuple[Signature, ...]]:
    """Return what lines of `names(types) -> type = sql` say; @ in the SQL is the name."""
    found: dict[str, tuple[Signature, ...]] = {}
    may = re.compile(r"may_\(([^,]*), '([^']*)'\)")
    table = may.sub(lambda match: _MAY.format(match[1], str(match[2].split("|"))), table)
    for line in table.strip().splitlines():
        head, _, sql = line.partition(" = ")
        call, _, returns = head.partition(" -> ")
        names, _, inside = call.partition("(")
        types = inside.removesuffix(")").removesuffix("...")
        arguments = tuple(_type(word) for word in types.split(", ") if word)
        type_, is_set = _returned(returns.removeprefix("setof ")), returns.startswith("setof ")
        for name in _SEPARATOR.split(names):
            form = Signature(arguments, type_, sql.replace("@", name), "..." in inside, is_set)
            found[name] = (*found.get(name, ()), form)
    return MappingProxyType(found)


_SHOWN_DESCRIPTION = (
    "SELECT any_value(d.description) FROM c.pg_description AS d WHERE d.objoid = {0} AND d.objsubid"
)
_DEFINITION = "(SELECT any_value(d.{column}) FROM h.definition AS d WHERE d.o = {{0}})"
_FULL = _DEFINITION.format(column="full_text")
_NUMBERED = (
    f"CASE WHEN {{1}} = 0 THEN {_DEFINITION.format(column='bare')} ELSE"
    " (SELECT any_value(a.attname) FROM c.pg_attribute AS a WHERE a.attrelid = {0} AND a.attnum = {1}) END"
)
_NAMED_CLASS = "SELECT any_value(n.o) FROM h.named_class AS n WHERE n.name = replace({0}, '\"', '')"
_READABLE = "({0} IN (SELECT r.o FROM h.readable AS r))"
_SHOWN_TYPE = (
    "coalesce((SELECT any_value(CASE WHEN s.o = 1700 AND {1} >= 4"
    " THEN 'numeric(' || (({1} - 4) >> 16) || ',' || (({1} - 4) & 65535) || ')'"
    " WHEN s.o IN (1042, 1043) AND {1} >= 4 THEN s.name || '(' || ({1} - 4) || ')' ELSE s.name END)"
    " FROM h.shown_type AS s WHERE s.o = {0}),"
    " CASE WHEN {0} IS NULL THEN NULL WHEN {0} = 0 THEN '-' ELSE '???' END)"
)
_USER = (
    "CASE {0} WHEN 10 THEN 'dpsql' WHEN CAST($user_oid AS BIGINT) THEN CAST($user AS VARCHAR)"
    " ELSE 'unknown (OID=' || {0} || ')' END"
)
_QUOTED = (
    "CASE WHEN regexp_full_match({0}, '[a-z_][a-z0-9_$]*') THEN {0}"
    " ELSE '\"' || replace({0}, '\"', '\"\"') || '\"' END"
)
_IN_PATH = "({0} IN (SELECT v.oid FROM c.%s AS v WHERE v.%s IN (11, CAST($schema_oid AS BIGINT))))"
_SHOWN_TYPES = (
    "coalesce(array_to_string((SELECT list(s.name ORDER BY u.i) FROM (SELECT unnest({0}) AS v,"
    " unnest(generate_series(1, len({0}))) AS i) AS u JOIN h.shown_type AS s ON s.o = u.v), ', '), '')"
)
_ARGUMENTS = (
    f"(SELECT any_value({_SHOWN_TYPES.format('p.proargtypes')}) FROM c.pg_proc AS p WHERE p.oid = {{0}})"
)
_RESULT = (
    "(SELECT any_value(CASE WHEN p.proretset THEN 'SETOF ' || s.name ELSE s.name END)"
    " FROM c.pg_proc AS p JOIN h.shown_type AS s ON s.o = p.prorettype WHERE p.oid = {0})"
)
# Places before a text's first character count, and hold nothing: substring('abc', -1, 3) is 'a'.
_FROM = "CASE WHEN {1} < 1 THEN 1 ELSE {1} END"
_FOR = (
    f"CASE WHEN {{2}} < 0 THEN {raised('length')} WHEN {{1}} >= 1 THEN {{2}}"
    " WHEN CAST({1} AS BIGINT) + {2} > 1 THEN {1} + {2} - 1 ELSE 0 END"
)

_FIELDS = {"YYYY": "%Y", "MM": "%m", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S", "TZ": "UTC"}
_SHOWN_AS = reduce(lambda sql, field: f"replace({sql}, '{field}', '{_FIELDS[field]}')", _FIELDS, "{1}")


def _series(step: str) -> str:
    first, last = "CAST({0} AS BIGINT)", "CAST({1} AS BIGINT)"
    # The test is an argument: of constants the engine makes the series first, and then looks at a CASE around it.
    end = (
        f"CASE WHEN {step} = 0 THEN {raised('step')}"
        f" WHEN (CAST({last} AS HUGEINT) - {first}) // {step} >= {MOST_OF_A_SERIES} THEN {raised('series')}"
        f" ELSE {last} END"
    )
    return f"CAST(generate_series({first}, {end}, {step}) AS {{type}}[])"


_IN_UTC = f"CASE WHEN upper({{0}}) IN ('UTC', 'GMT', 'ETC/UTC') THEN {{1}} ELSE {raised('zone')} END"
_BTREE = "'can_order', 'can_unique', 'can_multi_col', 'can_exclude', 'can_include'"
_PLACES = "generate_series({lowest}, len({0}) - 1 + {lowest})"

_EVERYWHERE = f"""
coalesce|greatest|least(anyelement...) -> anyelement = @({{all}})
nullif(anyelement, anyelement) -> first = nullif({{0}}, {{1}})
concat|concat_ws(text...) -> text = @({{all}})
current_date() -> date = CAST(CAST($now AS TIMESTAMP) AS DATE)
unnest(anyarray) -> setof anyelement = {{0}}
generate_series(anyint, anyint) -> setof anyint = {_series("CAST(1 AS BIGINT)")}
generate_series(anyint, anyint, anyint) -> setof anyint = {_series("CAST({2} AS BIGINT)")}
lower(text) -> text = lower({{0}})
upper(text) -> text = upper({{0}})
length|char_length|character_length(text) -> int4 = CAST(length({{0}}) AS INTEGER)
octet_length(text) -> int4 = CAST(strlen({{0}}) AS INTEGER)
btrim(text) -> text = trim({{0}}, ' ')
btrim(text, text) -> text = trim({{0}}, {{1}})
ltrim(text) -> text = ltrim({{0}}, ' ')
ltrim(text, text) -> text = ltrim({{0}}, {{1}})
rtrim(text) -> text = rtrim({{0}}, ' ')
rtrim(text, text) -> text = rtrim({{0}}, {{1}})
replace(text, text, text) -> text = replace({{0}}, {{1}}, {{2}})
translate(text, text, text) -> text = translate({{0}}, {{1}}, {{2}})
substr|substring(text, int4) -> text = substring({{0}}, {_FROM})
substr|substring(text, int4, int4) -> text = substring({{0}}, {_FROM}, {_FOR})
left(text, int4) -> text = left({{0}}, {{1}})
right(text, int4) -> text = right({{0}}, {{1}})
strpos|position(text, text) -> int4 = CAST(strpos({{0}}, {{1}}) AS INTEGER)
split_part(text, text, int4) -> text = \
CASE WHEN {{2}} = 0 THEN {raised("place")} ELSE split_part({{0}}, {{1}}, {{2}}) END
starts_with(text, text) -> bool = starts_with({{0}}, {{1}})
initcap(text) -> text = (upper({{0}}[1:1]) || lower({{0}}[2:]))
md5(text) -> text = md5({{0}})
quote_literal(text) -> text = ('''' || replace({{0}}, '''', '''''') || '''')
abs(int4) -> int4 = abs({{0}})
ceil|ceiling(float8) -> float8 = ceil({{0}})
floor(float8) -> float8 = floor({{0}})
round(float8) -> float8 = round({{0}})
round(numeric) -> numeric = round({{0}})
chr(int4) -> text = CASE WHEN {{0}} > 0 THEN chr({{0}}) END
round(numeric, int4) -> numeric = round({{0}}, {{1}})
mod(int8, int8) -> int8 = ({{0}} % {{1}})
now|transaction_timestamp|statement_timestamp|clock_timestamp() -> timestamptz = CAST($now AS TIMESTAMP)
encode(bytea, text) -> text = CASE {{1}} WHEN 'hex' THEN lower(hex({{0}})) WHEN 'base64' THEN to_base64({{0}}) END
to_char(timestamptz, text) -> text = strftime({{0}}, {_SHOWN_AS})
array_to_string(text[], text) -> text = array_to_string(list_filter({{0}}, lambda e: e IS NOT NULL), {{1}})
array_length(any, int4) -> int4 = CASE WHEN {{1}} = 1 THEN CAST(nullif(len({{0}}), 0) AS INTEGER) END
cardinality(any) -> int4 = CAST(len({{0}}) AS INTEGER)
array_position(text[], text) -> int4 = CAST(nullif(list_position({{0}}, {{1}}), 0) AS INTEGER)
array_position(oid[], oid) -> int4 = CAST(nullif(list_position({{0}}, {{1}}), 0) AS INTEGER)
age(xid) -> int4 = CASE WHEN {{0}} IS NOT NULL THEN 1 END
timezone(text, timestamptz) -> timestamp = {_IN_UTC}
timezone(text, timestamp) -> timestamptz = {_IN_UTC}
date_part(text, timestamptz) -> float8 = CAST(date_part({{0}}, {{1}}) AS DOUBLE)
date_part(text, interval) -> float8 = CAST(date_part({{0}}, {{1}}) AS DOUBLE)
extract(text, timestamptz) -> numeric = CAST(date_part({{0}}, {{1}}) AS DECIMAL(38, 6))
extract(text, interval) -> numeric = CAST(date_part({{0}}, {{1}}) AS DECIMAL(38, 6))
"""
"""Functions that dpsql's own SQL has too."""

_CATALOGS = f"""
quote_ident(text) -> text = {_QUOTED}
parse_ident(text) -> text[] = string_split(replace({{0}}, '"', ''), '.')
string_to_array(text, text) -> text[] = string_split({{0}}, {{1}})
pg_postmaster_start_time|pg_conf_load_time() -> timestamptz = CAST($started AS TIMESTAMP)
version() -> text = CAST($version AS VARCHAR)
current_database() -> name = CAST($database AS VARCHAR)
current_schema() -> name = CAST($schema AS VARCHAR)
current_schemas(bool) -> name[] = \
CASE WHEN {{0}} THEN ['pg_catalog', CAST($schema AS VARCHAR)] ELSE [CAST($schema AS VARCHAR)] END
current_user|session_user|user|current_role() -> name = CAST($user AS VARCHAR)
pg_backend_pid() -> int4 = CAST($process_id AS INTEGER)
pg_is_in_recovery|pg_is_wal_replay_paused() -> bool = false
pg_blocking_pids(int4) -> int4[] = CAST([] AS INTEGER[])
acldefault(char, oid) -> aclitem[] = CAST(NULL AS VARCHAR[])
host(text) -> text = split_part({{0}}, '/', 1)
bpchar(text) -> bpchar = {{0}}
pg_my_temp_schema() -> oid = coalesce((SELECT max(n.oid) FROM c.pg_namespace AS n WHERE n.nspname = 'pg_temp'), 0)
pg_is_other_temp_schema(oid) -> bool = false
pg_advisory_unlock_all() -> void = ''
pg_encoding_to_char(int4) -> name = CASE {{0}} WHEN 6 THEN 'UTF8' ELSE '' END
pg_char_to_encoding(name) -> int4 = CASE upper({{0}}) WHEN 'UTF8' THEN 6 ELSE -1 END
getdatabaseencoding|pg_client_encoding() -> name = 'UTF8'
txid_current|pg_current_xact_id() -> int8 = CAST(1 AS BIGINT)
txid_current_if_assigned() -> int8 = CAST(NULL AS BIGINT)
pg_indexam_has_property(oid, text) -> bool = \
CASE WHEN {{0}} = 403 THEN CASE WHEN lower({{1}}) IN ({_BTREE}) THEN true END END
inet_server_addr|inet_client_addr() -> text = CAST(NULL AS VARCHAR)
inet_server_port|inet_client_port() -> int4 = CAST(NULL AS INTEGER)
pg_get_userbyid(oid) -> name = {_USER}
pg_table_is_visible(oid) -> bool = ({_IN_PATH % ("pg_class", "relnamespace")} OR {{0}} IN (SELECT v.o FROM h.own AS v))
pg_type_is_visible(oid) -> bool = {_IN_PATH % ("pg_type", "typnamespace")}
pg_function_is_visible(oid) -> bool = {_IN_PATH % ("pg_proc", "pronamespace")}
pg_operator_is_visible|pg_opclass_is_visible|pg_opfamily_is_visible|pg_collation_is_visible(oid) -> bool = true
pg_conversion_is_visible|pg_ts_config_is_visible|pg_ts_dict_is_visible|pg_ts_parser_is_visible(oid) -> bool = true
pg_ts_template_is_visible|pg_statistics_obj_is_visible(oid) -> bool = true
format_type(oid, int4) -> text = {_SHOWN_TYPE}
col_description(oid, int4) -> text = ({_SHOWN_DESCRIPTION} = {{1}} AND d.classoid = 1259)
obj_description(oid) -> text = ({_SHOWN_DESCRIPTION} = 0)
obj_description(oid, name) -> text = \
({_SHOWN_DESCRIPTION} = 0 AND d.classoid = (SELECT any_value(n.o) FROM h.named_class AS n WHERE n.name = {{1}}))
shobj_description(oid, name) -> text = CAST(NULL AS VARCHAR)
pg_get_expr(text, oid) -> text = CAST(NULL AS VARCHAR)
pg_get_expr(text, oid, bool) -> text = CAST(NULL AS VARCHAR)
pg_get_constraintdef(oid) -> text = {_FULL}
pg_get_constraintdef(oid, bool) -> text = {_FULL}
pg_get_indexdef(oid) -> text = {_FULL}
pg_get_indexdef(oid, int4, bool) -> text = {_NUMBERED}
pg_get_viewdef|pg_get_ruledef|pg_get_triggerdef|pg_get_partkeydef|pg_get_functiondef(oid) -> text = \
CAST(NULL AS VARCHAR)
pg_get_viewdef|pg_get_ruledef|pg_get_triggerdef(oid, bool) -> text = CAST(NULL AS VARCHAR)
pg_get_viewdef(oid, int4) -> text = CAST(NULL AS VARCHAR)
pg_get_partition_constraintdef|pg_get_function_sqlbody(oid) -> text = CAST(NULL AS VARCHAR)
pg_get_statisticsobjdef_columns|pg_get_statisticsobjdef(oid) -> text = CAST(NULL AS VARCHAR)
pg_get_serial_sequence(text, text) -> text = CAST(NULL AS VARCHAR)
pg_get_function_arguments|pg_get_function_identity_arguments(oid) -> text = {_ARGUMENTS}
oidvectortypes(oidvector) -> text = {_SHOWN_TYPES}
pg_get_function_result(oid) -> text = {_RESULT}
pg_get_function_arg_default(oid, int4) -> text = CAST(NULL AS VARCHAR)
pg_relation_size|pg_table_size|pg_total_relation_size|pg_indexes_size(regclass) -> int8 = CAST(0 AS BIGINT)
pg_database_size|pg_tablespace_size(oid) -> int8 = CAST(0 AS BIGINT)
pg_relation_size(oid, text) -> int8 = CAST(0 AS BIGINT)
pg_size_pretty(int8) -> text = ({{0}} || ' bytes')
pg_tablespace_location(oid) -> text = ''
pg_relation_is_publishable|pg_relation_is_updatable(oid) -> bool = false
pg_column_is_updatable(oid, int4, bool) -> bool = false
pg_relation_filenode(oid) -> oid = CAST(NULL AS BIGINT)
pg_stat_get_numscans|pg_stat_get_live_tuples|pg_stat_get_dead_tuples|pg_stat_get_tuples_inserted(oid) -> int8 = \
CAST(0 AS BIGINT)
pg_stat_get_tuples_returned|pg_stat_get_tuples_fetched(oid) -> int8 = CAST(0 AS BIGINT)
pg_stat_get_blocks_fetched|pg_stat_get_blocks_hit(oid) -> int8 = CAST(0 AS BIGINT)
has_table_privilege|has_any_column_privilege(text, text) -> bool = \
({_READABLE.replace("{0}", "(" + _NAMED_CLASS + ")")} AND may_({{1}}, 'SELECT'))
has_table_privilege|has_any_column_privilege(regclass, text) -> bool = ({_READABLE} AND may_({{1}}, 'SELECT'))
has_table_privilege|has_any_column_privilege(text, regclass, text) -> bool = \
({_READABLE.replace("{0}", "{1}")} AND may_({{2}}, 'SELECT'))
has_column_privilege(regclass, any, text) -> bool = ({_READABLE} AND may_({{2}}, 'SELECT'))
has_column_privilege(text, regclass, any, text) -> bool = \
({_READABLE.replace("{0}", "{1}")} AND may_({{3}}, 'SELECT'))
has_schema_privilege|has_function_privilege|has_type_privilege|has_language_privilege(any, text) -> bool = \
may_({{1}}, 'USAGE|EXECUTE')
has_schema_privilege|has_function_privilege|has_type_privilege|has_language_privilege(text, any, text) -> bool = \
may_({{2}}, 'USAGE|EXECUTE')
has_database_privilege(any, text) -> bool = may_({{1}}, 'CONNECT')
has_database_privilege(text, any, text) -> bool = may_({{2}}, 'CONNECT')
has_sequence_privilege|has_tablespace_privilege|has_server_privilege(any, text) -> bool = false
has_foreign_data_wrapper_privilege(any, text) -> bool = false
has_sequence_privilege|has_tablespace_privilege(text, any, text) -> bool = false
pg_has_role(oid, text) -> bool = ({{0}} = CAST($user_oid AS BIGINT))
pg_has_role(name, oid, text) -> bool = ({{1}} = CAST($user_oid AS BIGINT))
to_regclass(text) -> regclass = ({_NAMED_CLASS})
to_regnamespace(text) -> regnamespace = (SELECT any_value(n.oid) FROM c.pg_namespace AS n WHERE n.nspname = {{0}})
generate_subscripts(anyarray, int4) -> setof int4 = CAST({_PLACES} AS INTEGER[])
generate_subscripts(anyarray, int4, bool) -> setof int4 = \
CAST(CASE WHEN {{2}} THEN list_reverse({_PLACES}) ELSE {_PLACES} END AS INTEGER[])
_pg_expandarray(anyarray) -> setof (x anyelement, n int4) = \
list_transform(generate_series(1, len({{0}})), lambda e: {{{{'x': list_extract({{0}}, e), 'n': CAST(e AS INTEGER)}}}})
pg_get_keywords() -> setof (word text, catcode char, barelabel bool, catdesc text, baredesc text) = \
(SELECT list(k ORDER BY k.word) FROM h.keywords AS k)
aclexplode(any) -> setof (grantor oid, grantee oid, privilege_type text, is_grantable bool) = CAST([] AS {{type}}[])
pg_options_to_table(any) -> setof (option_name text, option_value text) = CAST([] AS {{type}}[])
pg_partition_ancestors(any) -> setof regclass = CAST([] AS {{type}}[])
pg_partition_tree(any) -> setof (relid regclass, parentrelid regclass, isleaf bool, level int4) = CAST([] AS {{type}}[])
pg_listening_channels() -> setof text = CAST([] AS {{type}}[])
pg_timezone_names() -> setof (name text, abbrev text, utc_offset interval, is_dst bool) = CAST([] AS {{type}}[])
array_upper(anyarray, int4) -> int4 = \
CAST(CASE WHEN len({{0}}) > 0 THEN len({{0}}) - 1 + {{lowest}} END AS INTEGER)
array_lower(anyarray, int4) -> int4 = CAST(CASE WHEN len({{0}}) > 0 THEN {{lowest}} END AS INTEGER)
array_cat(anyarray, anyarray) -> anyarray = list_concat({{0}}, {{1}})
array_append(anyarray, anyelement) -> anyarray = list_concat({{0}}, [{{1}}])
array_remove(anyarray, anyelement) -> anyarray = list_filter({{0}}, lambda e: e IS DISTINCT FROM {{1}})
"""
_OPERATORS = r"""
= <> < > <= >=(anyelement, anyelement) -> bool = {0} @ {1}
~(text, text) -> bool = regexp_matches({0}, {1})
!~(text, text) -> bool = NOT regexp_matches({0}, {1})
~*(text, text) -> bool = regexp_matches({0}, {1}, 'i')
!~*(text, text) -> bool = NOT regexp_matches({0}, {1}, 'i')
~~(text, text) -> bool = {0} LIKE {1} ESCAPE '\'
!~~(text, text) -> bool = {0} NOT LIKE {1} ESCAPE '\'
~~*(text, text) -> bool = {0} ILIKE {1} ESCAPE '\'
!~~*(text, text) -> bool = {0} NOT ILIKE {1} ESCAPE '\'
~~(text, text, text) -> bool = {0} LIKE {1} ESCAPE {2}
!~~(text, text, text) -> bool = {0} NOT LIKE {1} ESCAPE {2}
~~*(text, text, text) -> bool = {0} ILIKE {1} ESCAPE {2}
!~~*(text, text, text) -> bool = {0} NOT ILIKE {1} ESCAPE {2}
||(text, text) -> text = {0} || {1}
||(anyarray, anyarray) -> anyarray = list_concat({0}, {1})
||(anyarray, anyelement) -> anyarray = list_concat({0}, [{1}])
||(anyelement, anyarray) -> anyarray = list_concat([{0}], {1})
@>(anyarray, anyarray) -> bool = list_has_all({0}, {1})
<@(anyarray, anyarray) -> bool = list_has_all({1}, {0})
&&(anyarray, anyarray) -> bool = list_has_any({0}, {1})
+ - * % & | << >>(anynumber, anynumber) -> anynumber = CAST(({0} @ {1}) AS {type})
/(anyint, anyint) -> anyint = CAST(({0} // {1}) AS {type})
/(anynumber, anynumber) -> anynumber = CAST(({0} / {1}) AS {type})
^(anynumber, anynumber) -> float8 = pow({0}, {1})
+ -(interval, interval) -> interval = {0} @ {1}
-(date, date) -> int4 = CAST({0} - {1} AS INTEGER)
-(timestamp, timestamp) -> interval = {0} - {1}
-(timestamptz, timestamptz) -> interval = {0} - {1}
+ -(timestamp, interval) -> timestamp = {0} @ {1}
+ -(timestamptz, interval) -> timestamptz = {0} @ {1}
+(interval, timestamp) -> timestamp = {0} + {1}
+(interval, timestamptz) -> timestamptz = {0} + {1}
"""
_AGGREGATES = """
count(any) -> int8 = count({0})
sum|avg(anynumber) -> numeric = @({0})
sum|avg(float4) -> float8 = @({0})
sum|avg(float8) -> float8 = @({0})
sum(int2) -> int8 = sum({0})
sum(int4) -> int8 = sum({0})
min|max(text) -> text = @({0})
min|max(anyelement) -> anyelement = @({0})
array_agg(anyelement) -> anyarray = list({0})
string_agg(text, text) -> text = string_agg({0}, {1})
bool_and|bool_or(bool) -> bool = @({0})
every(bool) -> bool = bool_and({0})
"""

CATALOG_FUNCTIONS = _read(_CATALOGS)
"""Functions that only the catalog has: a query of no relation that calls one is a query of the catalog."""
FUNCTIONS = MappingProxyType({**_read(_EVERYWHERE), **CATALOG_FUNCTIONS})
"""A function's name -> its forms."""
OPERATORS, AGGREGATES = _read(_OPERATORS), _read(_AGGREGATES)
BARE = MappingProxyType(
    {"current_catalog": "current_database", "current_date": "current_date", "localtimestamp": "now",
     "current_timestamp": "now"}
)  # fmt: skip
"""Words without parentheses that are another function's name."""


_MOST_SQL = 400_000
_NUMBER = re.compile(r"\s*[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,3})?\s*", re.IGNORECASE)
_INTEGER = re.compile(r"\s*[+-]?\d{1,18}\s*")
_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "on", "1"), "true"),
    **dict.fromkeys(("f", "false", "n", "no", "off", "0"), "false"),
}
_SHOWN = {"regclass": "h.shown_class", "regtype": "h.shown_type", "regproc": "h.shown_proc"}
_ITEM = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,{}"\\]*))\s*')


@dataclass(frozen=True, slots=True)
class Typed:
    """A piece of SQL and its type. `literal`: a string that has no type yet; `parameter`: a $n that has none.

    `modifier`: Postgres' of a column's type; -1 where none.
    """

    sql: str
    type: PgType
    modifier: int = -1
    literal: str | None = None
    parameter: int | None = None
    is_null: bool = False

    def __post_init__(self) -> None:
        if len(self.sql) > _MOST_SQL:
            raise unsupported("a query that grows too long")


@dataclass
class TranslationContext:
    """What one translation gathers: the parameters' types, and the settings that it asks for."""

    names: Names
    parameters: dict[int, PgType] = field(default_factory=dict)
    settings: list[str] = field(default_factory=list)
    _aliases: int = 0

    def alias(self, prefix: str = "t") -> str:
        """Return a name that nothing else in the query has."""
        self._aliases += 1
        return f"{prefix}{self._aliases}"


def quoted(text: str) -> str:
    """Return a string of the engine's SQL."""
    if "\0" in text:
        raise unsupported("a zero byte")
    return "'" + text.replace("'", "''") + "'"


def null_of(type_: PgType) -> Typed:
    """Return a NULL of a type."""
    return Typed(f"CAST(NULL AS {type_.holder})", type_, is_null=True)


def common_type(values: list[Typed]) -> PgType:
    """Return the type that values take beside each other; text where none has one. Raises CatalogRefusal: none."""
    found = UNKNOWN
    for value in values:
        found = _wider(found, value.type)
    return TEXT if found is UNKNOWN else found


def _wider(left: PgType, right: PgType) -> PgType:
    found = wider(left, right)
    if found is None:
        raise unsupported(f"{left.name} beside {right.name}")
    return found


def coerce(context: TranslationContext, value: Typed, target: PgType) -> Typed:
    """Return the value as one of the type `target`. Raises CatalogRefusal: that is not done here."""
    source = value.type
    if value.is_null and source is UNKNOWN:
        return null_of(target)
    if value.literal is not None:
        return Typed(_literal(context, value.literal, target), target)
    if value.parameter is not None:
        known = context.parameters.setdefault(value.parameter, target)
        typed = Typed(f"CAST($p{value.parameter} AS {known.holder})", known)
        return typed if known == target else coerce(context, typed, target)
    if source == target or (source.is_text and target.is_text and target.name != '"char"'):
        return Typed(value.sql, target)
    if source is UNKNOWN:
        return Typed(f"CAST({value.sql} AS {target.holder})", target)
    if source.element is not None and target.element is not None:
        return _list_to_list(context, value, target)
    if target.is_text:
        text = _to_text(context, value)
        return Typed(f"left({text}, 1)" if target.name == '"char"' else text, target)
    if source.is_text and target.is_object:
        return Typed(_lookup(value.sql, target), target)
    if _is_castable(source, target):
        return Typed(f"CAST({value.sql} AS {target.holder})", target)
    raise unsupported(f"a cast of {source.name} to {target.name}")


def _is_castable(source: PgType, target: PgType) -> bool:
    numbers = source.is_number and target.is_number
    moments = source.family == target.family == "moment"
    booleans = {source.family, target.family} == {"boolean", "number"}
    texts = source.is_text and (target.is_number or target.family in ("boolean", "moment", "interval"))
    return numbers or moments or booleans or texts


def _literal(context: TranslationContext, text: str, target: PgType) -> str:
    """Return a string constant as a value of a type."""
    if target is UNKNOWN or target.is_text:
        return quoted(text[:1] if target.name == '"char"' else text)
    if target.element is not None:
        items = text.split() if target.name.endswith("vector") else read_array(text)
        element = target.element
        parts = ["NULL" if item is None else _literal(context, item, element) for item in items]
        return f"CAST([{', '.join(parts)}] AS {target.holder})"
    if target.family == "oid":
        return f"CAST({context.names.find(target, text)} AS BIGINT)"
    if target.family == "boolean" and text.strip().lower() in _BOOLEANS:
        return _BOOLEANS[text.strip().lower()]
    is_integer = target.holder in ("SMALLINT", "INTEGER", "BIGINT")
    if target.family == "number" and (_INTEGER if is_integer else _NUMBER).fullmatch(text):
        return f"CAST({quoted(text.strip())} AS {target.holder})"
    if target.family in ("moment", "interval"):
        return f"CAST({quoted(text)} AS {target.holder})"
    raise unsupported(f"a constant of type {target.name}")


def read_array(text: str) -> list[str | None]:
    """Return the items of an array's text, one dimension. Raises CatalogRefusal: it is none."""
    text = text.strip()
    if text[:1] != "{" or text[-1:] != "}":
        raise unsupported("a constant of an array")
    inner, at = text[1:-1], 0
    found: list[str | None] = []
    while inner.strip():
        match = _ITEM.match(inner, at)
        if match is None or (match.end() < len(inner) and inner[match.end()] != ","):
            raise unsupported("a constant of an array")
        if match[1] is not None:
            found.append(re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL))
        else:
            bare = match[2].strip()
            found.append(None if bare.upper() == "NULL" else bare)
        at = match.end() + 1
        if match.end() == len(inner):
            break
    return found


def _lookup(sql: str, target: PgType) -> str:
    bare = f"replace({sql}, '\"', '')"
    if target.name == "regclass":
        path = rf"regexp_replace({bare}, '^[^.]*\.([^.]*\.[^.]*)$', '\1')"
        return f"(SELECT any_value(n.o) FROM h.named_class AS n WHERE n.name = {path})"
    if target.name == "regtype":
        name = rf"regexp_replace({bare}, '^pg_catalog\.', '')"
        spelled = f"SELECT min(n.o) FROM h.shown_type AS n WHERE n.name = {sql}"
        return f"coalesce(({spelled}), (SELECT min(n.oid) FROM c.pg_type AS n WHERE n.typname = {name}))"
    if target.name in _SHOWN:
        return f"(SELECT min(n.o) FROM {_SHOWN[target.name]} AS n WHERE n.name = {sql})"
    if target.name == "regnamespace":
        return f"(SELECT n.oid FROM c.pg_namespace AS n WHERE n.nspname = {sql})"
    raise unsupported(f"a cast of text to {target.name}")


def _to_text(context: TranslationContext, value: Typed) -> str:
    type_, sql = value.type, value.sql
    if type_.name in _SHOWN:
        shown = f"(SELECT any_value(n.name) FROM {_SHOWN[type_.name]} AS n WHERE n.o = {sql})"
        return f"coalesce({shown}, CASE WHEN {sql} = 0 THEN '-' ELSE CAST({sql} AS VARCHAR) END)"
    if type_.name == "regnamespace":
        return f"(SELECT any_value(n.nspname) FROM c.pg_namespace AS n WHERE n.oid = {sql})"
    if type_.name == "regrole":
        (role,) = FUNCTIONS["pg_get_userbyid"]
        return role.sql.format(sql)
    if type_.element is not None:
        items = coerce(context, value, _TEXTS).sql
        if type_.name.endswith("vector"):
            return f"array_to_string({items}, ' ')"
        return f"('{{' || array_to_string({items}, ',') || '}}')"
    if type_.name == "timestamptz":
        return f"(CAST({sql} AS VARCHAR) || '+00')"
    if type_.family in ("record", "bytea", "void"):
        raise unsupported(f"a cast of {type_.name} to text")
    return f"CAST({sql} AS VARCHAR)"


def _list_to_list(context: TranslationContext, value: Typed, target: PgType) -> Typed:
    assert value.type.element is not None
    assert target.element is not None
    source = value.type.element
    if source.holder == target.element.holder and not (source.is_object and target.element.is_text):
        return Typed(value.sql, target)
    item = coerce(context, Typed("u.v", source), target.element).sql
    if item == f"CAST(u.v AS {target.element.holder})":
        return Typed(f"CAST({value.sql} AS {target.holder})", target)
    rows = f"SELECT unnest({value.sql}) AS v, unnest(generate_series(1, len({value.sql}))) AS i"
    found = f"(SELECT list({item} ORDER BY u.i) FROM ({rows}) AS u)"
    return Typed(f"CASE WHEN {value.sql} IS NULL THEN NULL ELSE coalesce({found}, []) END", target)


_TEXTS = PgType(1009, "_text", -1, "VARCHAR[]", "array", 0, TEXT)


# --- which form of a function or an operator is meant -------------------------------------------------------


_ANY, _ARRAY, _ELEMENT, _INT, _ANY_NUMBER, _FIRST = (
    PSEUDO[name] for name in ("any", "anyarray", "anyelement", "anyint", "anynumber", "first")
)
_ELEMENTS = frozenset(type_.name for type_ in (_ELEMENT, _INT, _ANY_NUMBER))


def apply(
    context: TranslationContext,
    forms: Mapping[str, tuple[Signature, ...]],
    name: str,
    values: Sequence[Typed],
) -> tuple[Signature, Typed]:
    """Return the form of a function that is meant, and what it makes of its arguments.

    Raises CatalogRefusal: there is no such function, or none for them.
    """
    typed = [(form, types) for form in forms.get(name, ()) if (types := form.types(len(values))) is not None]
    if not typed:
        raise CatalogRefusal(
            f"the function {name[:60]}",
            message=f"the function {name[:60]} is not supported in a query of the system catalog",
        )
    form, types = typed[0]
    if len(typed) > 1:
        fitting = [found for found in typed if all(map(_fits, values, found[1]))]
        form, types = max(fitting, key=lambda found: _exactness(values, found[1]), default=typed[0])
    element = _element(values, types)
    sqls = [
        coerce(context, value, _argument(value, type_, element)).sql
        for value, type_ in zip(values, types, strict=True)
    ]
    is_first = form.returns is _FIRST and values[0].type is not UNKNOWN
    returns = values[0].type if is_first else _result(form.returns, element)
    lowest = values[0].type.lowest if values else 1
    sql = form.sql.format(*sqls, all=", ".join(sqls), type=returns.holder, lowest=lowest)
    return form, Typed(sql, returns)


def _fits(value: Typed, type_: PgType) -> bool:
    given = value.type
    if type_ is _ARRAY:
        return given.element is not None
    if given is UNKNOWN or type_ is _ANY or type_ is _ELEMENT:
        return True
    if type_.name in _ELEMENTS:
        return given.is_number if type_ is _ANY_NUMBER else given.is_integer
    return given.family == type_.family or (given.is_number and type_.is_number)


def _exactness(values: Sequence[Typed], types: Sequence[PgType]) -> int:
    return sum(value.type == type_ for value, type_ in zip(values, types, strict=True))


def _element(values: Sequence[Typed], types: Sequence[PgType]) -> PgType | None:
    """Return the type of all `anyelement` and of the items of all `anyarray`; None: there are none."""
    pairs = list(zip(values, types, strict=True))
    arrays = [value for value, type_ in pairs if type_ is _ARRAY and value.type is not UNKNOWN]
    asked = [value for value, type_ in pairs if type_.name in _ELEMENTS]
    if not arrays and not asked:
        return None
    found = common_type(arrays).element if arrays else common_type(asked)
    if (
        found is None
        or (any(type_ is _INT for type_ in types) and not found.is_integer)
        or (any(type_ is _ANY_NUMBER for type_ in types) and not found.is_number)
    ):
        raise unsupported("a function of values of these types")
    return found


def _argument(value: Typed, type_: PgType, element: PgType | None) -> PgType:
    """Return the type that an argument is read as."""
    if type_ is _ANY or (type_ is _ARRAY and element is not None and value.type.element == element):
        return TEXT if value.type is UNKNOWN else value.type
    return _result(type_, element)


def _result(type_: PgType, element: PgType | None) -> PgType:
    """Return a declared type with what its pseudo-types stand for. Raises CatalogRefusal: that is not known."""
    if type_.fields:
        return record_of(tuple((name, _result(field, element)) for name, field in type_.fields))
    found: PgType | None = type_
    if type_ is _ARRAY:
        found = None if element is None else array_of(element)
    elif type_.name in _ELEMENTS or type_ is _FIRST:
        found = element
    if found is None:
        raise unsupported("an array of this type")
    return found
