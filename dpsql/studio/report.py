"""The owner's report: what the ledger, the stored releases and the policy say, as one file that is complete in itself.

House rules:

1. No row is read and nothing is charged: numbers are the ledger's, a stored release's or the policy's.
2. Statements and names are other people's text: they are escaped (`text`), never markup.
3. The file needs nothing from elsewhere, and its Content-Security-Policy forbids it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from fractions import Fraction

from .. import __version__
from ..engine.dataset import Dataset
from ..release.left_out import LeftOut, percent
from ..words import counted
from .charts import asset, budget_chart, period_chart, series_of, text
from .facts import Facts, bench_statements, facts_of

_LEFT_OUT = "none"


def _content_security_policy() -> str:
    """Return what the page may load: its own style and script, by their hashes, and nothing else from anywhere."""
    return (
        f"default-src 'none'; style-src '{_hash(_style())}'; script-src '{_hash(asset('report.js'))}'; "
        "base-uri 'none'; form-action 'none'"
    )


def report_of(dataset: Dataset) -> str:
    """Return the report of a dataset as it is now: the whole page."""
    facts = facts_of(dataset, bench_statements(dataset))
    title = f"dpsql: {facts.policy.path.stem}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{text(_content_security_policy())}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{text(title)}</title><style>{_style()}</style></head><body>",
        '<a class="skip" href="#budget">To the budget</a>',
        *_header(facts),
        "<main>",
        *_budget(facts),
        *_statements(facts),
        *_stored(facts),
        *_bench(facts),
        *_policy(facts),
        "</main>",
        f"<footer><p>{text(_footer(facts))}</p></footer>",
        f'<script type="application/json" id="bench-data">{_data(_bench_data(facts))}</script>',
        f"<script>{asset('report.js')}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _data(value: object) -> str:
    """Return JSON that no text in it ends: to stand in a script element of data."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


def _style() -> str:
    return f"{asset('report.css')}\n{asset('charts.css')}"


def _hash(inline: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}"


def _header(facts: Facts) -> Iterator[str]:
    name = facts.policy.path.stem
    yield f"<header><h1>What may still be learned from {text(name)}</h1>"
    yield (
        f'<p class="quiet">From the ledger and the policy {text(facts.policy.source)}, '
        f"{facts.made:%Y-%m-%d %H:%M} UTC. No row of people was read for this page, and nothing was charged.</p>"
    )
    yield '<nav aria-label="Parts of this page"><ul>'
    for place, said in (
        ("budget", "Budget"), ("statements", "Costliest statements"), ("stored", "Stored answers"),
        ("bench", "Bench"), ("policy", "Policy"),
    ):  # fmt: skip
        yield f'<li><a href="#{place}">{said}</a></li>'
    yield "</ul></nav></header>"


def _budget(facts: Facts) -> Iterator[str]:
    left = max(0, facts.cap - facts.spent)
    share = percent(float(Fraction(left, facts.cap))) if facts.cap else "0 %"
    yield '<section id="budget" aria-labelledby="budget-h"><h2 id="budget-h">Budget</h2>'
    yield '<dl class="figures">'
    figures = [
        (f"{facts.unit} left", facts.amount(left), f"{share} of {facts.amount(facts.cap)}"),
        (
            f"{facts.unit} spent",
            facts.amount(facts.spent),
            f"in {counted(facts.charges, 'charge')}{' and more' if facts.is_cut else ''}",
        ),
        ("about", facts.left_in_words.split()[1], " ".join(facts.left_in_words.split()[2:])),
        ("used up", *_forecast_words(facts)),
    ]
    for head, number, note in figures:
        yield f"<div><dt>{text(head)}</dt><dd>{text(number)} <small>{text(note)}</small></dd></div>"
    yield "</dl>"
    if facts.status.of:
        yield f"<p>Figures are of {text(facts.status.of)}, the newest that was charged.</p>"
    yield from _budget_charts(facts)
    yield "<p class='quiet'>Caps are those of today, with all that was granted. Days are UTC. " + (
        f"Of delta, {text(facts.delta)} is spent.</p>"
    )
    if facts.is_cut:
        yield f"<p>Days and statements are those of the newest {facts.charges:,} charges.</p>"
    yield from (f"<p>{text(one)}</p>" for one in (facts.as_epsilon, *facts.rations) if one)
    yield from _spenders(facts)
    yield "</section>"


def _forecast_words(facts: Facts) -> tuple[str, str]:
    forecast = facts.forecast
    days = counted(forecast.days, "day")
    if facts.periods is not None:
        return "by period", "each new one has the whole budget"
    if facts.spent >= facts.cap:
        return "now", "nothing is left"
    if forecast.day is not None:
        return forecast.day.isoformat(), f"at the pace of the last {days}"
    if not forecast.spent:
        return "open", f"nothing was spent in {days}"
    return "too early", f"to say, after {days} of charges"


def _budget_charts(facts: Facts) -> Iterator[str]:
    if facts.periods:
        per = 10**18 if facts.status.in_rho else 10**9
        periods = [(one.name, one.number, one.spent / per) for one in facts.periods]
        for kind, width in (("wide", 1132), ("middle", 680), ("narrow", 340)):
            yield f'<div class="chart {kind}">{period_chart(periods, facts.cap / per, facts.unit, width)}</div>'
        return
    if not facts.days:
        yield "<p>Nothing was charged yet.</p>"
        return
    per = 10**18 if facts.status.in_rho else 10**9
    colours = series_of([one.name for one in sorted(facts.spenders, key=lambda one: -one.spent)])
    days = [
        (one.day, {name: spent / per for name, spent in one.spent.items()}, one.left / per)
        for one in facts.days
    ]
    for kind, width in (("wide", 1132), ("middle", 680), ("narrow", 340)):
        chart = budget_chart(
            days, facts.cap / per, facts.made.date(), facts.forecast.day, colours, facts.unit, width
        )
        yield f'<div class="chart {kind}">{chart}</div>'
    yield '<ul class="key" aria-label="Colours">'
    for name, colour in colours.items():
        yield f'<li><svg viewBox="0 0 12 12" aria-hidden="true"><rect class="s{colour}" width="12" height="12"/></svg>'
        yield f"{text(name)}</li>"
    yield "</ul>"


def _spenders(facts: Facts) -> Iterator[str]:
    if not facts.spenders:
        return
    rows = [
        [
            text(one.name),
            facts.amount(one.spent),
            _LEFT_OUT if one.cap is None else facts.amount(one.cap),
            text(one.left),
        ]
        for one in facts.spenders
    ]
    yield from _table(
        "By analyst",
        [("analyst", ""), (f"{facts.unit} spent", "n"), ("cap of their own", "n"), ("left", "")],
        rows,
    )


def _statements(facts: Facts) -> Iterator[str]:
    yield '<section id="statements" aria-labelledby="statements-h"><h2 id="statements-h">Costliest statements</h2>'
    if not facts.statements:
        yield "<p>Nothing was charged yet.</p></section>"
        return
    rows = [
        [
            facts.amount(one.spent),
            f"<code>{text(one.text)}</code><small>{text(one.note)}</small>",
            text(", ".join(one.analysts)),
            f"{one.charges:,}",
            text(one.last),
        ]
        for one in facts.statements
    ]
    heads = [(facts.unit, "n"), ("statement", "text"), ("analysts", ""), ("charges", "n"), ("last", "day")]
    yield from _table("All charges of one text together, as the ledger has them", heads, rows)
    yield "</section>"


def _stored(facts: Facts) -> Iterator[str]:
    stored = facts.stored
    yield '<section id="stored" aria-labelledby="stored-h"><h2 id="stored-h">Stored answers</h2>'
    yield (
        f"<p><strong>{counted(stored.releases, 'stored release')}</strong> "
        f"answer{'s' if stored.releases == 1 else ''} again at no charge. They were charged {facts.unit} "
        f"{facts.amount(stored.spent)}: each time all of them are asked again, that much is saved.</p>"
    )
    yield (
        "<p>How often a stored release answered is not in the ledger, which records charges alone; "
        "a server's log has it, and its metrics count it.</p>"
    )
    if stored.earlier:
        yield f"<p>{stored.earlier:,} of before the data were renewed answer no more.</p>"
    if stored.failed:
        yield (
            f"<p>{stored.failed:,} failed after their charge: {facts.unit} {facts.amount(stored.failed_spent)} is "
            "spent, and nothing is stored for it.</p>"
        )
    yield "</section>"


def _bench(facts: Facts) -> Iterator[str]:
    yield '<section id="bench" aria-labelledby="bench-h"><h2 id="bench-h">Bench</h2>'
    yield (
        "<p>What would an answer be worth under other settings? Move epsilon and <code>max_rows</code>. The noise is "
        "that of the plan dpsql would make; no question is asked and nothing is spent.</p>"
    )
    if not facts.bench:
        yield "<p>No table of people's rows is shown to analysts.</p></section>"
        return
    yield '<div class="bench"><form id="bench-form" hidden aria-describedby="said">'
    yield '<label for="statement">Statement</label><select id="statement"></select>'
    yield '<label for="people">People who count</label>'
    yield '<input id="people" type="number" min="1" max="1000000000" step="1" value="1000">'
    yield '<label for="epsilon">epsilon <output id="epsilon-now" for="epsilon"></output></label>'
    yield '<input id="epsilon" type="range" min="0" max="0" step="1" value="0">'
    yield '<label for="rows">max_rows <output id="rows-now" for="rows"></output></label>'
    yield '<input id="rows" type="range" min="0" max="0" step="1" value="0">'
    yield '</form><div><p class="said" id="said" role="status"></p><div class="chart" id="drawing"></div>'
    yield '<p class="quiet" id="assumed"></p><p class="quiet" id="law"></p><p id="cut"></p></div></div>'
    yield "<details><summary>The bars as a table</summary>"
    yield from _bars(facts)
    yield "</details></section>"


def _bars(facts: Facts) -> Iterator[str]:
    epsilons = facts.bench[0].epsilons
    rows = []
    for one in facts.bench:
        place = one.max_rows.index(one.declared) if one.declared in one.max_rows else 0
        bound = "one a person" if not one.max_rows else f"{one.max_rows[place]:,}"
        bars = [_figure(noise.bar) for noise in one.noises[place]]
        rows.append([f"<code>{text(one.sql)}</code>", bound, *bars])
    heads = [
        ("statement", "text"),
        ("max_rows", "n"),
        *((f"ε {float(epsilon):g}", "n") for epsilon in epsilons),
    ]
    yield from _table("Error bars at 95 %, under the policy's max_rows, by epsilon", heads, rows, "bars")


def _figure(bar: Fraction) -> str:
    return f"{float(bar):,.0f}" if bar >= 1000 else f"{float(f'{float(bar):.3g}'):g}"


def _policy(facts: Facts) -> Iterator[str]:
    yield '<section id="policy" aria-labelledby="policy-h"><h2 id="policy-h">The policy in sentences</h2>'
    yield '<div class="chapters">'
    for title, sentences in facts.chapters:
        yield f"<div><h3>{text(title)}</h3><ul>"
        yield from (f"<li>{text(one)}</li>" for one in sentences)
        yield "</ul></div>"
    yield "</div></section>"


def _footer(facts: Facts) -> str:
    return (
        f"dpsql {__version__}. Every number here is the ledger's, a stored release's or the policy's. What is "
        "promised, and the proofs: dpsql docs threat-model, dpsql docs soundness."
    )


def _table(
    caption: str, heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], kind: str = "stacked"
) -> Iterator[str]:
    """Yield a table; cells are markup, heads are text with the class of their column.

    `kind`: stacked, where a narrow screen has its rows one below the other; bars, where it scrolls.
    """
    yield f'<div class="scroll" tabindex="0" role="group" aria-label="{text(caption)}"><table class="{kind}">'
    yield f"<caption>{text(caption)}</caption><thead><tr>"
    yield from (f'<th scope="col" class="{column}">{text(head)}</th>' for head, column in heads)
    yield "</tr></thead><tbody>"
    for row in rows:
        cells = (
            f'<td class="{column}" data-head="{text(head)}">{cell}</td>'
            for cell, (head, column) in zip(row, heads, strict=True)
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _bench_data(facts: Facts) -> dict[str, object]:
    return {
        "usual": float(facts.policy.defaults.epsilon),
        "statements": [
            {
                "table": one.table,
                "sql": one.sql,
                "max_rows": one.max_rows,
                "declared": one.declared,
                "one": float(one.one),
                "epsilons": [float(epsilon) for epsilon in one.epsilons],
                "noises": [
                    [(noise.family, float(noise.scale), float(noise.bar)) for noise in row]
                    for row in one.noises
                ],
            }
            for one in facts.bench
        ],
        "people": {
            table: [{"max_rows": one.max_rows, "said": _cut_words(table, one)} for one in found]
            for table, found in facts.people.items()
        },
    }


def _cut_words(table: str, found: LeftOut) -> str:
    since = "" if found.is_current else "; the data have changed since"
    if found.share is None:
        return f"Too few people to say how many have more than {found.max_rows:,} rows in {table}{since}."
    kept = "" if found.kept is None else f", and about {percent(found.kept)} of the rows count"
    return (
        f"About {percent(found.share)} of the people have more than {found.max_rows:,} rows in {table} and are cut, at "
        f"most {percent(found.share_ends[1], up=True)}{kept} {found.when}."
    )
