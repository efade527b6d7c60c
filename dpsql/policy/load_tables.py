"""Reads the `[tables.…]` part of a policy file, the shapes alone, since the types are the database's; and
`[privacy.time]`, a budget for each period of the data, against which is held what tables say of their time.

House rule: the period of a row is a function of the row, or of the parent from which its owner is read. Then what one
person has in one period is taken away without a row of another person or period (soundness.md 1.40).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import partial
from zoneinfo import ZoneInfo

from ..records import dataclass
from ..regex import regex
from ..relation.catalog import References
from .model import (
    SPARK,
    AlsoPolicy,
    Bound,
    ColumnPolicy,
    Key,
    Period,
    RandomizedPolicy,
    TablePolicy,
    Time,
    UnitPolicy,
    ViewPolicy,
)
from .section import Section, bound_text, exact, quote_text, suggest

# --- tables -----------------------------------------------------------------------------------------------


ROW = UnitPolicy((), is_row=True)
"""`unit = "row"`: each row is a privacy unit by itself (soundness.md 1.33)."""


MAX_CONTRIBUTION = 2**22
"""Most rows of one unit that count in one result: exact sums stay inside 126 bits (soundness.md 2.2(3))."""

_BOUNDS = ("max_rows", "max_rows_per_group", "max_groups")

_WIDEST_STEP = Fraction(10**150)
"""A double still holds its square, and the square of one over it, so that variances are numbers too."""


@dataclass(frozen=True, slots=True)
class ReadTables:
    """The declared tables by name, in the file's order; those that say no unit, neither public nor private yet, with
    their sources or names; the names of those that are wrong, of which it is noted why; and the views. Each is in one
    of the four."""

    tables: dict[str, TablePolicy]
    undecided: dict[str, str] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    views: dict[str, ViewPolicy] = field(default_factory=dict)


def read_tables(top: Section) -> ReadTables:
    """Return the tables of a file; what is wrong within one is noted. Raises PolicyError."""
    section = top.section("tables") or Section(top.source, {}, found=top.found)
    tables: dict[str, TablePolicy] = {}
    views: dict[str, ViewPolicy] = {}
    undecided: dict[str, str] = {}
    broken = []
    for name in section.names():
        before = len(section.found)
        declared = section.attempt(partial(_read_named, section, name))
        if isinstance(declared, ViewPolicy):
            views[name] = declared
        elif isinstance(declared, TablePolicy):
            tables[name] = declared
        elif declared is not None and len(section.found) == before:
            undecided[name] = declared
        else:
            broken.append(name)
    return ReadTables(tables, undecided, tuple(broken), views)


def _read_named(section: Section, name: str) -> TablePolicy | ViewPolicy | str:
    table = section.section(name)
    assert table is not None, "the key was just listed"
    if not is_name(name):
        raise section.error('write [tables.<table>] or [tables."<schema>.<table>"]', name)
    return _read_view(name, table) if table.flag("view") else _read_table(name, table)


def is_name(text: str) -> bool:
    """Say whether a text is the name of a table, `table` or `schema.table`."""
    return all(text.split(".")) and text.count(".") <= 1


def _read_view(name: str, section: Section) -> ViewPolicy:
    """Return a view, of which nothing is declared that its text and its tables say. Raises PolicyError."""
    for key in ("unit", "public"):
        if section.take(key) is not None:
            raise section.error("is read in the view's text, from its tables; declare it on those", key)
    for key in (*_BOUNDS, "max_rows_ever", "max_norm", "also", "time", "row_number", "unit_range"):
        if section.take(key) is not None:
            raise section.error("bounds the rows of a table; declare it on those that the view reads", key)
    source = section.text("source") or name
    if not is_name(source):
        raise section.error('write the view\'s name in the database, "<view>" or "<schema>.<view>"', "source")
    columns = _read_columns(section)
    view = ViewPolicy(name, source, columns, section.note("description"), bool(section.flag("hidden")))
    section.finish()
    return view


def _read_columns(section: Section) -> tuple[ColumnPolicy, ...]:
    declared = section.section("columns") or Section(section.source, {})
    found = (declared.attempt(partial(_read_column, name, declared)) for name in declared.names())
    return tuple(column for column in found if column is not None)


def _read_table(name: str, section: Section) -> TablePolicy | str:
    """Return a table that is public or says its unit; its source, or its name, of one that is right but for that."""
    unit = _read_unit(section)
    is_public = section.flag("public")
    if is_public and unit is not None:
        raise section.error("is both public and owned by a unit; keep either public or unit", "public")
    bounds = _read_contribution(section, is_public=bool(is_public), is_row=unit == ROW)
    max_norm = _read_norms(section, bounds[0])
    also = _read_also(section, is_owned=unit is not None and unit != ROW)
    time = _read_time(name, section, is_owned=unit is not None and unit != ROW)
    ever = _read_ever(section, bounds[0])
    row_number = _read_row_number(section, unit, bounds[0])
    unit_range = _read_unit_range(section, unit)
    columns = _read_columns(section)
    description = section.note("description")
    source = _read_source(section)
    key = _read_asserted(section)
    is_hidden = bool(section.flag("hidden"))
    section.attempt(section.finish)
    if unit is None and not is_public:
        return source[0] if source else name
    return TablePolicy(
        name,
        unit,
        columns,
        *bounds,
        description,
        source,
        is_hidden,
        key,
        max_norm,
        also,
        time,
        ever,
        row_number,
        unit_range,
    )


def _read_row_number(section: Section, unit: UnitPolicy | None, max_rows: int | None) -> tuple[str, ...]:
    """Return the columns that number the rows of each person, () where there are none. Raises PolicyError."""
    names = _read_names(section, "row_number")
    if not names:
        return ()
    if unit is None or unit == ROW:
        raise section.error(
            "numbers the rows of each person, and nobody has several here; take it out", "row_number"
        )
    if max_rows is None:
        raise section.error("is for the first max_rows rows of a person; declare that too", "row_number")
    if len(names) > 2:
        raise section.error(
            'write the column of numbers, or ["<of the period>", "<of numbers>"]', "row_number"
        )
    return names


def _read_unit_range(section: Section, unit: UnitPolicy | None) -> tuple[int, int] | None:
    """Return the ends between which persons are numbered, None where nothing is said of them. Raises PolicyError."""
    items = section.array("unit_range")
    if items is None:
        return None
    if unit is None or unit == ROW:
        raise section.error(
            "is of the numbers that people have, and no column of this table holds one; take it out",
            "unit_range",
        )
    whole = [item for item in items if isinstance(item, int) and not isinstance(item, bool)]
    if len(items) != 2 or len(whole) != 2:
        raise section.error("write the two ends, [lower, upper], as whole numbers", "unit_range")
    low, high = whole
    if low > high:
        raise section.error(f"lower {low} is above upper {high}; write [{high}, {low}]", "unit_range")
    if not -(2**63) <= low <= high < 2**63:
        raise section.error("is beyond 64 bits, which no integer column holds; write less", "unit_range")
    return low, high


def _read_time(name: str, section: Section, *, is_owned: bool) -> tuple[str, str] | None:
    """Return the table and the column that say when a table's rows were, None for undated rows. Raises PolicyError."""
    written = section.text("time")
    if written is None:
        return None
    if not is_owned:
        raise section.error(
            "is of rows that are one person's; say whose by unit first, or take it out", "time"
        )
    table, _, column = written.rpartition(".")
    if not column or written.startswith("."):
        raise section.error(
            'write "<column>", or "<table>.<column>" of a table on the way to the owner', "time"
        )
    return table or name, column


def _read_ever(section: Section, max_rows: int | None) -> int | None:
    """Return the rows of a person that count over all periods, as declared. Raises PolicyError."""
    ever = section.count("max_rows_ever")
    if ever is None:
        return None
    if max_rows is None:
        raise section.error("is for several periods; declare max_rows too, which is of one", "max_rows_ever")
    if ever < max_rows:
        raise section.error(
            f"is below max_rows = {max_rows}, which is of one period; write more", "max_rows_ever"
        )
    if ever > MAX_CONTRIBUTION:
        raise section.error(
            f"is above {MAX_CONTRIBUTION}; no useful answer has so much noise", "max_rows_ever"
        )
    return ever


def _read_source(section: Section) -> tuple[str, ...]:
    """Return the patterns of a table's files, or its name in the database; () where nothing is said.

    Raises PolicyError.
    """
    value = section.take("source")
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    patterns = []
    for item in items:
        if not isinstance(item, str) or not item.strip() or not item.isprintable():
            raise section.error(
                'write Parquet files, like "visits/*.parquet", or a list of them; or a table\'s name in the database',
                "source",
            )
        patterns.append(item)
    if not patterns:
        raise section.error("is empty; name the table's Parquet files", "source")
    return tuple(patterns)


def _read_asserted(section: Section) -> tuple[str, ...]:
    """Return the columns that are asserted to be a key, () for none. Raises PolicyError."""
    value = section.take("key")
    if value is None:
        return ()
    names = value if isinstance(value, list) else [value]
    texts = [name for name in names if isinstance(name, str) and name]
    if not texts or len(texts) != len(names) or len({*texts}) != len(texts):
        raise section.error('list its columns, each once, like key = ["id"]', "key")
    return tuple(texts)


def _read_contribution(
    section: Section, *, is_public: bool, is_row: bool
) -> tuple[int | None, int | None, int | None]:
    """Return R, M and C of a table as they are declared. Raises PolicyError."""
    _refuse_old_keys(section)
    total, in_group, groups = (section.count(key) for key in _BOUNDS)
    for key, value in zip(_BOUNDS, (total, in_group, groups), strict=True):
        if value is None:
            continue
        if is_public:
            raise section.error("a public table has no units; take it out", key)
        if is_row:
            raise section.error('with unit = "row" a unit has one row; take it out', key)
        if total is None:
            raise section.error("tightens max_rows; declare that too", key)
        if value > total:
            raise section.error(f"is above max_rows = {total}, so it tightens nothing; take it out", key)
    if total is not None and total > MAX_CONTRIBUTION:
        raise section.error(f"is above {MAX_CONTRIBUTION}; no useful answer has so much noise", "max_rows")
    return total, in_group, groups


def _read_norms(section: Section, max_rows: int | None) -> tuple[tuple[str, int], ...]:
    """Return T of a table by column, as it is declared. Raises PolicyError."""
    norms = section.section("max_norm")
    if norms is None:
        return ()
    if max_rows is None:
        raise section.error("tightens max_rows; declare that too", "max_norm")
    found = []
    for column in norms.names():
        most = norms.count(column)
        assert most is not None, "the key was just listed"
        if most >= max_rows:
            raise norms.error(
                f"is not below max_rows = {max_rows}, so it tightens nothing; take it out", column
            )
        found.append((column, most))
    if not found:
        raise section.error("names no column; write { column = 9 }, or take it out", "max_norm")
    return tuple(found)


def _read_also(section: Section, *, is_owned: bool) -> tuple[AlsoPolicy, ...]:
    """Return whom a table's rows point at besides. Raises PolicyError."""
    items = section.array("also")
    if items is None:
        return ()
    if not is_owned:
        raise section.error(
            "is for rows that are one person's; say whose by unit first, or take it out", "also"
        )
    fix = 'write also = [{ column = "post_id", references = "post.id", max_rows = 300 }]'
    found = []
    for item in items:
        if not isinstance(item, dict) or not item.keys() >= {"column", "references", "max_rows"}:
            raise section.error(fix, "also")
        one = section.within("also", item)
        columns, references = _read_reference(one, fix)
        most = one.count("max_rows")
        assert most is not None, "it was just seen"
        if most > MAX_CONTRIBUTION:
            raise one.error(f"is above {MAX_CONTRIBUTION}; no useful answer has so much noise", "max_rows")
        one.finish()
        found.append(AlsoPolicy(columns, references, most))
    if len({frozenset(one.columns) for one in found}) < len(found):
        raise section.error("names a column twice", "also")
    return tuple(found)


def _refuse_old_keys(section: Section) -> None:
    """Say what to write in place of the keys that multiplied, with the owner's own numbers. Raises PolicyError."""
    rows, groups = section.count("rows_per_unit"), section.count("groups_per_unit")
    lines = []
    if rows is not None:
        lines.append(f"max_rows = {rows * (groups or 1)}")
        lines += [] if groups is None else [f"max_rows_per_group = {rows}"]
    elif groups is not None:
        lines.append("max_rows = <rows of one unit that count in one result>")
    if groups is not None:
        lines.append(f"max_groups = {groups}")
    if lines:
        key = "groups_per_unit" if rows is None else "rows_per_unit"
        raise section.error("\n  ".join(("is replaced; write in its place", *lines)), key)


def _read_unit(section: Section) -> UnitPolicy | None:
    value = section.take("unit")
    if value is None:
        return None
    fix = 'write unit = "id", or unit = { column = "student_id", references = "student.id" }'
    if not isinstance(value, dict):
        if not isinstance(value, str | list) or not value:
            raise section.error(fix, "unit")
        if value == "row":
            section.take("unit")
            return ROW
        return UnitPolicy(_read_names(section, "unit"))
    unit = section.section("unit")
    assert unit is not None, "it was just seen to be a table"
    for key in ("column", "references"):
        unit.take(key)
    unit.finish()  # a key that is misspelled is told before one that is missing
    return UnitPolicy(*_read_reference(unit, fix))


def _read_reference(unit: Section, fix: str) -> tuple[tuple[str, ...], References]:
    """Return the columns that point at another table's row, and that table with its key. Raises PolicyError."""
    columns, references = _read_names(unit, "column"), _read_names(unit, "references")
    if not columns or not references:
        raise unit.error(f"needs both column and references; {fix}")
    parents, keys = zip(*(name.rpartition(".")[::2] for name in references), strict=True)
    if not all((*parents, *keys)):
        raise unit.error('write "<table>.<column>"', "references")
    if len(set(parents)) > 1:
        tables = " and ".join(dict.fromkeys(parents))
        raise unit.error(f"names columns of {tables}; a key is of one table", "references")
    if len(columns) != len(keys):
        raise unit.error(
            f"names {len(keys)} columns, and column {len(columns)}; write as many of both", "references"
        )
    return columns, (parents[0], keys)


def _read_names(section: Section, key: str) -> tuple[str, ...]:
    """Return the names under a key: one text, or a list of several that are one key together; () for none."""
    value = section.take(key)
    if not isinstance(value, list):
        name = section.text(key)
        return () if name is None else (name,)
    for name in value:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise section.error('write names in quotes, like ["…", "…"]', key)
    if len(set(value)) < len(value) or not value:
        raise section.error("names each column of a key once", key)
    return tuple(value)


def _read_column(name: str, columns: Section) -> ColumnPolicy:
    section = columns.section(name)
    assert section is not None, "the key was just listed"
    bounds = read_bounds(section)
    step = section.number("step")
    if step is not None and step <= 0:
        raise section.error("must be above 0", "step")
    if step is not None and not 1 / _WIDEST_STEP <= step <= _WIDEST_STEP:
        raise section.error(
            "must lie between 1e-150 and 1e150; a step is what the values are counted in", "step"
        )
    column = ColumnPolicy(
        name=name,
        bounds=bounds,
        step=step,
        is_log=_read_scale(section),
        values=_read_values(section),
        complete=section.flag("complete") or False,
        max_length=section.count("max_length"),
        description=section.note("description"),
        randomized=_read_randomized(section),
    )
    if column.complete and column.values is None and column.bounds is None:
        raise section.error("is of the column's values or bounds; write these, or take it out", "complete")
    section.finish()
    return column


def _read_scale(section: Section) -> bool:
    scale = section.text("scale")
    if scale not in (None, "log"):
        raise section.error('write scale = "log", or take it out', "scale")
    return scale is not None


def _read_randomized(section: Section) -> RandomizedPolicy | None:
    inner = section.section("randomized")
    if inner is None:
        return None
    declared = RandomizedPolicy(*(inner.number(key) for key in ("epsilon", "p", "q")))
    inner.finish()
    if (declared.epsilon is None) == (declared.p is None) or (declared.q is not None and declared.p is None):
        raise section.error("write { epsilon = 1 }, { p = 0.75 }, or { p = 0.5, q = 0.25 }", "randomized")
    return declared


def read_bounds(section: Section) -> tuple[Bound, Bound] | None:
    """Return the two ends under `bounds`, the lower one first, or None. Raises PolicyError."""
    items = section.array("bounds")
    if items is None:
        return None
    if len(items) != 2:
        raise section.error("write the two ends, [lower, upper]", "bounds")
    lower, upper = (_read_bound(section, item) for item in items)
    if type(lower) is not type(upper):
        raise section.error("both ends must be of one kind: numbers, dates, or date-times", "bounds")
    if lower > upper:  # type: ignore[operator]  # both are of one type, as was just checked
        low, high = bound_text(lower), bound_text(upper)
        raise section.error(f"lower {low} is above upper {high}; write [{high}, {low}]", "bounds")
    return lower, upper


def _read_bound(section: Section, item: object) -> Bound:
    if isinstance(item, datetime) and item.tzinfo is not None:
        raise section.error("has an offset; write the date-time in UTC, without one", "bounds")
    if isinstance(item, date):
        return item
    number = exact(item)
    if number is None:
        raise section.error(
            "write finite numbers of few digits, dates or date-times, without quotes", "bounds"
        )
    return number


def _read_values(section: Section) -> tuple[Key, ...] | None:
    items = section.array("values")
    if items is None:
        return None
    if not items:
        raise section.error("is empty; list the keys, or take it out", "values")
    return tuple(_read_key(section, item) for item in items)


def _read_key(section: Section, item: object) -> Key:
    if item == {"null": True}:
        return None
    if isinstance(item, datetime) and item.tzinfo is not None:
        raise section.error("has an offset; write the date-time in UTC, without one", "values")
    if isinstance(item, str) and "\0" in item:
        raise section.error("holds a NUL character, which no text of a database has; take it out", "values")
    if isinstance(item, bool | str | date):
        return item
    number = exact(item)
    if number is None:
        raise section.error(
            "write text, finite numbers of few digits, true, false, dates, or { null = true }", "values"
        )
    return number


# --- the periods of a budget ------------------------------------------------------------------------------


_DURATION = regex(r"([0-9]{1,4}) (hour|day|week)s?")
_WINDOW = regex(r"([2-9]|[1-9][0-9]{1,3}) (day|week|month|year)s")
_RETENTION = regex(r"([1-9][0-9]{0,3}) (day|week|month|year)s?")
_HOURS = {"hour": 1, "day": 24, "week": 168}


def read_time(privacy: Section) -> Time | None:
    """Return what periods the budget is for, None where it is for all data together. Raises PolicyError."""
    section = privacy.section("time")
    if section is None:
        return None
    period = section.choice("period", Period)
    if period is None:
        raise section.error('write "day", "week", "month" or "year"', "period")
    if section.text("undated") not in (None, "with the rows"):
        raise section.error('is "with the rows" alone; take it out', "undated")
    zone = section.text("zone") or "UTC"
    if not _is_zone(zone):
        raise section.error('is no time zone; write "UTC", or a name like "Europe/Berlin"', "zone")
    since = section.take("since")
    if not isinstance(since, date) or isinstance(since, datetime):
        raise section.error("write the first day of which there are data, like 2019-01-01", "since")
    if not 1000 <= since.year <= 9000:
        raise section.error("is no day of these times; write one like 2019-01-01", "since")
    settle = _duration(section, "settle")
    windows, person = _windows(section, period), section.number("person")
    if person is not None and not _is_cap(person):
        raise section.error("is an epsilon above 0, in steps of 1e-9", "person")
    is_open, retention = section.flag("open") or False, _retention(section, period)
    section.finish()
    settled = timedelta(days=3) if settle is None else settle
    return Time(period, since, zone, settled, windows, person, is_open, retention)


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _duration(section: Section, key: str) -> timedelta | None:
    written = section.text(key)
    if written is None:
        return None
    found = _DURATION.fullmatch(written)
    if found is None:
        raise section.error('write a time like "3 days" or "12 hours"', key)
    return timedelta(hours=int(found[1]) * _HOURS[found[2]])


def _retention(section: Section, period: Period) -> int | None:
    """Return of how many periods rows are read; None: of all. Raises PolicyError."""
    written = section.text("retention")
    if written is None:
        return None
    found = _RETENTION.fullmatch(written)
    if found is None or found[2] != period.value:
        raise section.error(f'write a number of {period.value}s, like "24 {period.value}s"', "retention")
    return int(found[1])


def _windows(section: Section, period: Period) -> tuple[tuple[int, Fraction], ...]:
    """Return the caps on what a person may lose over so many periods in a row, the shortest first."""
    windows = section.section("windows")
    if windows is None:
        return ()
    found: dict[int, Fraction] = {}
    for name in windows.names():
        written, cap = _WINDOW.fullmatch(name), windows.number(name)
        if written is None or written[2] != period.value:
            raise windows.error(f'write a number of {period.value}s, like "12 {period.value}s" = 60', name)
        if cap is None or not _is_cap(cap):
            raise windows.error("is an epsilon above 0, in steps of 1e-9", name)
        found[int(written[1])] = cap
    return tuple(sorted(found.items()))


def _is_cap(cap: Fraction) -> bool:
    return 0 < cap <= 10**6 and (cap * 10**9).denominator == 1


def check_times(top: Section, time: Time | None, read: ReadTables, database: str | None) -> None:
    """Note what is wrong in what tables say of their time."""
    if time is None:
        for name, table in read.tables.items():
            for key, value in (("time", table.time), ("max_rows_ever", table.max_rows_ever)):
                if value is not None:
                    problem = 'needs a budget by period; write [privacy.time] with period = "month"'
                    top.found.append(top.error(problem, "tables", name, key))
            if len(table.row_number) > 1:
                top.found.append(top.error(_one_number(table), "tables", name, "row_number"))
        return
    if database is not None and database.startswith(SPARK):
        top.found.append(top.error("is not there yet on Spark; take it out", "privacy", "time"))
    if not read.broken and all(table.time is None for table in read.tables.values()):
        top.found.append(
            top.error(
                'needs a table that says when its rows were; write time = "<column>" at it', "privacy", "time"
            )
        )
    for name, table in read.tables.items():
        top.attempt(partial(_check_time, top, read.tables, name, table))


def _check_time(top: Section, tables: Mapping[str, TablePolicy], name: str, table: TablePolicy) -> None:
    here = ("tables", name)
    if table.unit == ROW:
        raise top.error(
            "is not there yet with a budget by period; name the column of the person", *here, "unit"
        )
    if table.time is None and len(table.row_number) > 1:
        raise top.error(_one_number(table), *here, "row_number")
    if table.time is not None and len(table.row_number) == 1:
        both = f'["<the period\'s first day>", {quote_text(table.row_number[0])}]'
        raise top.error(
            "numbers a person's rows over all periods, and the first of them may all be of one; write two columns, "
            f"{both}, which dpsql prepare makes",
            *here,
            "row_number",
        )
    if table.max_norm:
        raise top.error("is not there yet with a budget by period; take it out", *here, "max_norm")
    if table.time is None and table.max_rows_ever is not None:
        raise top.error(
            'is for several periods, and the rows have no time; write time = "<column>"',
            *here,
            "max_rows_ever",
        )
    way = way_of(tables, name)
    if table.time is not None and table.time[0] != name:
        source = tables.get(table.time[0])
        if source is None:
            raise top.error(
                f'no table "{table.time[0]}" is declared{suggest(table.time[0], list(tables))}', *here, "time"
            )
        if table.time[0] not in way:
            raise top.error(
                f'"{table.time[0]}" is not on the way from this table to the person, and a row of it may be of another '
                "person; name a column of this table, or of one on its way", *here, "time",
            )  # fmt: skip
        if source.time != table.time:
            said = f'write time = "{table.time[1]}" at "{table.time[0]}" too'
            raise top.error(f'is not what "{table.time[0]}" says of its own rows; {said}', *here, "time")
    for parent in way:
        time = tables[parent].time
        if time is not None and time != table.time:
            said = f"{time[0]}.{time[1]}"
            raise top.error(
                f'its person is found through "{parent}", whose rows are of the period of "{said}": without it '
                f'they would be nobody\'s; write time = "{said}", or have the person\'s number in these rows, as unit',
                *here, "time",
            )  # fmt: skip


def _one_number(table: TablePolicy) -> str:
    return f"is of rows with a time, which these have not; write {quote_text(table.row_number[-1])} alone"


def way_of(tables: Mapping[str, TablePolicy], name: str) -> tuple[str, ...]:
    """Return the tables that are read on the way from a table's rows to their person, in order.

    A table whose key is the unit itself is not read: its number stands in the row.
    """
    found: list[str] = []
    unit = tables[name].unit
    while unit is not None and unit.references is not None and unit.references[0] in tables:
        parent, key = unit.references
        above = tables[parent].unit
        is_unit = above is not None and above.references is None and set(above.columns) == set(key)
        if is_unit or parent in found:
            break
        found.append(parent)
        unit = above
    return tuple(found)
