"""A ledger that is kept by periods: each slice has the whole cap, and what it has is what its entries add up to."""

from __future__ import annotations

import json
import random
from contextlib import closing
from dataclasses import replace
from datetime import date
from fractions import Fraction

import pytest

from dpsql.budget import Caps, Claim, LedgerStore, Promise, Steps, ledger
from dpsql.budget.claim import ZERO
from dpsql.budget.journal import sealed_path
from dpsql.errors import BudgetExhausted, LedgerError
from dpsql.mechanisms import Laplace, epsilon_of_rho, rho_within
from dpsql.policy import Accounting, Period, Slices
from dpsql.policy.periods import MOST_NUMBER, UNDATED, number_of

from .samples import (
    BY_MONTH,
    EPSILON,
    IN_RHO,
    MARCH,
    Place,
    by_month,
    charged_by_month,
    claim,
    draw,
    key,
    measurement,
)

TENTH = EPSILON // 10


@pytest.fixture
def place(place: Place) -> Place:
    return replace(place, is_sliced=True)


def of(*runs: tuple[int, int], is_undated: bool = False) -> Slices:
    return Slices(
        tuple((MARCH + first, MARCH + last) for first, last in runs),
        is_undated=is_undated,
        column="ordered_at",
    )


def ask(
    store: LedgerStore, name: str, slices: Slices, epsilon: int = TENTH, delta: int = 0, analyst: str = "bob"
) -> None:
    wanted = replace(measurement(name, epsilon=epsilon, delta=delta), slices=slices)
    store.reserve(claim(wanted, analyst=analyst))


def refusal(
    store: LedgerStore, slices: Slices, epsilon: int = TENTH, delta: int = 0, analyst: str = "bob"
) -> tuple[str, str]:
    wanted = claim(
        replace(measurement("refused", epsilon=epsilon, delta=delta), slices=slices), analyst=analyst
    )
    before = store.spent()
    with pytest.raises(BudgetExhausted) as caught:
        store.reserve(wanted)
    assert store.spent() == before
    return caught.value.message, caught.value.hint or ""


def test_each_period_has_the_whole_cap_and_a_charge_counts_in_each_that_it_reaches(place: Place) -> None:
    store = place.open(Caps(EPSILON, 10**12, {}))
    for month in range(5):
        ask(store, f"m{month}", of((month, month)), 6 * TENTH)
    assert store.spent().epsilon_nano == 30 * TENTH, "three times the cap, in five months"
    ask(store, "all", of((0, 4)), 4 * TENTH)
    assert refusal(store, of((0, 4)), 1)[0] == (
        "2026-03 to 2026-07 have epsilon 0 left of 1, and this needs 0.000000001"
    )
    ask(store, "next", of((5, 5), is_undated=True), 10 * TENTH)
    assert store.slices().newest == MARCH + 5
    assert by_month(store.slices()) == {
        UNDATED: (EPSILON, 0, 10**18 // 2),
        **{MARCH + month: (EPSILON, 0, 26 * 10**16) for month in range(5)},
        MARCH + 5: (EPSILON, 0, 10**18 // 2),
    }
    store.close()


def test_a_refusal_names_the_periods_and_the_filter_that_helps(place: Place) -> None:
    store = place.open(Caps(EPSILON, 10**12, {"alice": 3 * TENTH}))
    ask(store, "a", of((0, 8)), 95 * EPSILON // 100)
    assert refusal(store, of((-3, 12))) == (
        "2026-03 to 2026-11 have epsilon 0.05 left of 1, and this needs 0.1",
        "ask from 2026-12 on: AND ordered_at >= '2026-12-01'",
    )
    assert refusal(store, of((-3, 8)))[1] == "ask up to 2026-02: AND ordered_at < '2026-03-01'"
    assert refusal(store, of((8, 8))) == (
        "2026-11 has epsilon 0.05 left of 1, and this needs 0.1",
        "ask of another month, repeat an earlier question (free), ask with less, or ask the owner to grant more",
    )
    ask(store, "b", of((20, 20), is_undated=True), 3 * TENTH, analyst="alice")
    assert refusal(store, of((19, 21)), 1, analyst="alice") == (
        "2027-11 has epsilon 0 left of your own 0.3, and this needs 0.000000001",
        "ask from 2027-12 on: AND ordered_at >= '2027-12-01'",
    )
    assert refusal(store, of((21, 21), is_undated=True), 1, analyst="alice")[0].startswith(
        "undated rows have "
    )
    ask(store, "c", of((19, 21)))
    ask(store, "d", of((30, 31)), 1, delta=10**12)
    assert refusal(store, of((30, 32)), 1, delta=1) == (
        "2028-09 to 2028-10 have delta 0 left of 0.000001, and this needs delta 0.000000000000000001",
        "ask from 2028-11 on: AND ordered_at >= '2028-11-01'",
    )
    store.close()


def test_what_lies_before_the_first_period_is_one_slice(place: Place) -> None:
    store = place.open(Caps(EPSILON, 0, {}))
    before = number_of(Period.MONTH, date(2024, 1, 1)) - 1
    ask(store, "a", Slices(((before, before),)), EPSILON)
    wanted = Slices(((before, before + 1),), column="t")
    assert refusal(store, wanted) == (
        "before 2024-01-01 has epsilon 0 left of 1, and this needs 0.1", "ask from 2024-01 on: AND t >= '2024-01-01'"
    )  # fmt: skip
    store.close()


def test_measurements_of_one_claim_add_up_where_they_meet(place: Place) -> None:
    store = place.open(Caps(EPSILON, 0, {}))

    def both(first: int, second: int, epsilon: int) -> Claim:
        return claim(
            replace(measurement(f"a{first}", epsilon=epsilon), slices=of((first, first + 2))),
            replace(measurement(f"b{second}", epsilon=epsilon), slices=of((second, second + 2))),
            analyst="bob",
        )

    store.reserve(both(0, 3, EPSILON))
    with pytest.raises(BudgetExhausted, match=r"2026-11 has epsilon 1 left of 1, and this needs 1\.2"):
        store.reserve(both(6, 8, 6 * TENTH))
    store.close()


def test_under_zcdp_rho_has_the_cap_of_each_slice(place: Place) -> None:
    place = replace(place, accounting=Accounting.ZCDP)
    caps = Caps(EPSILON, 10**12, {"alice": EPSILON // 2})
    store = place.open(caps)
    conversion = Fraction(IN_RHO.conversion_delta_atto, 10**18)
    cap, own = (rho_within(Fraction(epsilon), conversion) for epsilon in (1, Fraction(1, 2)))
    bought = 0
    while (bought + 1) * 5 * 10**15 <= cap:
        ask(store, f"m{bought}", of((0, 1)))
        bought += 1
    assert bought > 1
    told, hint = refusal(store, of((0, 3)))
    assert told.startswith("2026-03 to 2026-04 have rho ")
    assert "left of rho" in told
    assert hint == "ask from 2026-05 on: AND ordered_at >= '2026-05-01'"
    ask(store, "alice's", of((3, 3)), 5 * TENTH // 10, analyst="alice")
    status = store.status("alice")
    assert (status.of, status.rho_spent_atto, status.analyst_rho_spent_atto) == (
        "2026-06",
        *2 * [TENTH**2 // 8],
    )
    left = store.left_of(of((0, 3)), "alice")
    assert left.where == of((0, 1))
    assert left.status.rho_spent_atto == bought * 5 * 10**15
    assert left.status.epsilon_spent_nano == epsilon_of_rho(bought * 5 * 10**15, conversion) * 10**9
    assert left.status.analyst_rho_cap_atto == own
    store.close()


def test_what_is_left_is_of_the_slices_that_have_the_least(place: Place) -> None:
    store = place.open(Caps(EPSILON, 10**12, {"alice": 5 * TENTH}))
    assert store.left_of(of((0, 3))).status.left_nano == EPSILON
    ask(store, "a", of((0, 3)), 2 * TENTH, delta=7)
    ask(store, "b", of((2, 2), (5, 5), is_undated=True), 3 * TENTH, analyst="alice")
    left = store.left_of(of((0, 9)))
    assert (left.status.left_nano, left.status.of, left.where) == (5 * TENTH, "2026-05", of((2, 2)))
    assert left.status.delta_spent_atto == 7
    assert store.left_of(of((0, 1), is_undated=True)).where == of(is_undated=True)
    mine = store.left_of(of((0, 9)), "alice")
    assert (mine.status.left_nano, mine.where) == (2 * TENTH, of((2, 2), (5, 5)))
    assert store.left_of(of((6, 9))).status.left_nano == EPSILON
    assert store.status().of == "2026-08"
    assert store.status("alice").analyst_spent_nano == 3 * TENTH
    assert store.status("bob").left_nano == 7 * TENTH
    at_once = store.status_at_once("alice")
    assert at_once in (None, store.status("alice"))
    store.close()


def test_an_analyst_who_asked_of_an_older_month_has_all_of_the_newest(place: Place) -> None:
    store = place.open(Caps(EPSILON, 0, {"alice": EPSILON}))
    ask(store, "a", of((0, 0)), analyst="alice")
    ask(store, "b", of((1, 1)), analyst="bob")
    assert store.status("alice").analyst_spent_nano == 0
    assert store.status().epsilon_spent_nano == TENTH
    store.close()


@pytest.mark.parametrize("is_sliced", [False, True])
def test_a_charge_says_its_slices_where_they_are_counted_and_only_there(
    place: Place, is_sliced: bool
) -> None:
    place = replace(place, is_sliced=is_sliced)
    made = place.open()
    store = LedgerStore(made._ledger, Caps(EPSILON, 0, {}))
    wanted = measurement("a") if is_sliced else replace(measurement("a"), slices=of((0, 0)))
    size = place.log.stat().st_size
    with pytest.raises(LedgerError, match="says for which periods' data"):
        store.reserve(claim(wanted))
    assert place.log.stat().st_size == size
    store.close()


@pytest.mark.parametrize(
    ("made", "said", "told"),
    [
        (BY_MONTH, Promise(), "kept by periods"),
        (Promise(), BY_MONTH, "made for all that a person ever has"),
        (BY_MONTH, replace(BY_MONTH, period=Period.DAY), 'period = "month", zone = "UTC" and since = 2024-01-01'),
        (BY_MONTH, replace(BY_MONTH, zone="Europe/Berlin"), 'period = "month"'),
        (BY_MONTH, replace(BY_MONTH, since=date(2023, 1, 1)), "since = 2024-01-01"),
        (BY_MONTH, replace(BY_MONTH, together=2), "together = 1"),
    ],
)  # fmt: skip
def test_another_period_is_refused(place: Place, made: Promise, said: Promise, told: str) -> None:
    place.open(promise=made).close()
    with pytest.raises(LedgerError, match=told):
        place.open(create=False, promise=said)
    with pytest.raises(ValueError, match="first one"):
        Promise(period=Period.DAY)


def test_without_periods_a_ledger_has_neither_table_nor_words_of_them(place: Place) -> None:
    place = replace(place, is_sliced=False)
    store = place.open()
    ask_whole = measurement("a")
    store.reserve(claim(ask_whole))
    store.rotate()
    with store._ledger.read() as db:
        asked = (
            "SELECT count(*) FROM sqlite_master WHERE name IN ('slice', 'divided')"
            if place.is_sqlite
            else "SELECT count(*) FROM pg_class WHERE relname IN ('slice', 'divided')"
        )
        assert db.execute(asked).fetchone()[0] == 0
    store.close()
    for path in place.log.parent.glob(place.log.name + "*"):
        if path.is_file():
            text = path.read_text()
            assert not any(word in text for word in ("slices", "period", "zone", "since", "undated"))


def charged(chance: random.Random, store: LedgerStore, number: int) -> None:
    first = chance.randrange(60)
    runs = [(first, first + chance.randrange(14))]
    if chance.random() < 0.2:
        runs.append((runs[0][1] + 2, runs[0][1] + 2 + chance.randrange(5)))
    is_undated = chance.random() < 0.3
    name = chance.choice(["alice", "bob", "eve"])
    ask(
        store,
        f"n{number}",
        of(*runs, is_undated=is_undated),
        chance.randrange(1, 9),
        chance.randrange(3),
        name,
    )


def test_what_is_rebuilt_is_one_number_a_month_whatever_is_lost(place: Place) -> None:
    """Charged, closed, lost, rebuilt from all files of the log or from the last alone: the same runs."""
    chance = random.Random(35)
    caps = Caps(10**6 * EPSILON, 10**18, {})
    store, texts = place.open(caps), []
    for number in range(120):
        charged(chance, store, number)
        if number % 40 == 39:
            store.rotate()
    with store._ledger.read() as db:
        texts = [
            body
            for (body,) in db.execute("SELECT body FROM record WHERE kind = 'entry' ORDER BY seq").fetchall()
        ]
    found = {name: store.slices(name) for name in (None, "alice", "bob", "eve")}
    for name, steps in found.items():
        assert by_month(steps) == charged_by_month(texts, name or "")
    assert store.verify().records == 124
    store.close()
    for sealed in (3, 0):
        place.lose()
        for number in range(3 - sealed):
            sealed_path(place.log, number).unlink()
        store = place.open(caps, create=not place.is_sqlite)
        assert {name: store.slices(name) for name in found} == found, (
            "never less than was charged, and no more"
        )
        charged(chance, store, 1000 + sealed)
        with store._ledger.read() as db:
            ((last,),) = db.execute("SELECT body FROM record ORDER BY seq DESC LIMIT 1").fetchall()
        for name, steps in found.items():
            again = steps.copy()
            if name in (None, json.loads(last)["analyst"]):
                for number, sums in charged_by_month([last]).items():
                    again.add(number, number, sums)
            assert by_month(store.slices(name)) == by_month(again)
            found[name] = store.slices(name)
        store.close()
        store = place.open(caps, create=False)
        assert {name: store.slices(name) for name in found} == found
        store.close()


def test_a_later_file_of_the_log_says_what_was_charged_by_slice(place: Place) -> None:
    store = place.open()
    ask(store, "a", of((0, 1), is_undated=True))
    store.rotate()
    store.close()
    with open(place.log, encoding="ascii") as file:
        segment = json.loads(file.readline())["record"]
    charge = [TENTH, 0, TENTH**2 // 2]
    assert segment["slices"] == [["bob", [[UNDATED, UNDATED, *charge], [MARCH, MARCH + 1, *charge]]]]
    assert (segment["format"], segment["period"], segment["since"]) == (6, "month", "2024-01-01")
    assert "zone" not in segment


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE slice SET epsilon_nano = '1' WHERE analyst = ''",
        "UPDATE slice SET last_period = last_period - 1 WHERE analyst = 'bob'",
        "DELETE FROM slice WHERE analyst = 'bob'",
    ],
)
def test_a_changed_slice_is_seen(place: Place, edit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_STRIDE", 1)
    store = place.open()
    ask(store, "a", of((0, 5)))
    store.close()
    place.edit(edit)
    with pytest.raises(LedgerError, match="spent by period is not what its records add up to"):
        place.open(create=False)


def test_a_proxy_that_knows_no_periods_stops(place: Place) -> None:
    """One that has it open as a whole while it is divided by another is told in its next transaction."""
    place = replace(place, is_sliced=False)
    store = place.open()
    place.edit("PRAGMA user_version = 6" if place.is_sqlite else "UPDATE ledger SET format = 6")
    for use in (store.spent, store.status, lambda: store.reserve(claim(measurement("a")))):
        with pytest.raises(LedgerError, match="kept by periods"):
            use()
    store.close()


def test_a_move_to_rho_looks_at_the_slice_that_has_the_most(place: Place) -> None:
    store = place.open(Caps(EPSILON, 10**12, {}))
    ask(store, "a", of((0, 0)), 9 * TENTH)
    ask(store, "b", of((1, 1)), TENTH)
    with pytest.raises(LedgerError, match=r"what was spent is rho 0\.405"):
        store.move_to_zcdp(IN_RHO.conversion_delta_atto, "owner")
    store.close()
    store = place.open(Caps(10 * EPSILON, 10**12, {}))
    for number in range(3):
        ask(store, f"c{number}", of((2 + number, 2 + number)), 3 * EPSILON // 2)
    status = store.move_to_zcdp(IN_RHO.conversion_delta_atto, "owner")
    assert status.in_rho
    assert (status.of, status.rho_spent_atto) == ("2026-07", 9 * 10**18 // 8)
    store.close()
    moved = replace(place, accounting=Accounting.ZCDP)
    moved.open(create=False).close()
    with pytest.raises(LedgerError, match="kept in rho"):
        place.open(create=False)


def test_the_moment_is_the_highest(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpsql.budget import ledger_store

    store = place.open()
    monkeypatch.setattr(ledger_store, "utc_now", lambda: "2031-05-05T00:00:00+00:00")
    ask(store, "a", of((0, 0)))
    monkeypatch.setattr(ledger_store, "utc_now", lambda: "2026-05-05T00:00:00+00:00")
    ask(store, "b", of((0, 0)))
    assert store.moment() == "2031-05-05T00:00:00+00:00", "what has closed stays closed"
    store.confirm_clock("owner")
    assert store.moment() == "2026-05-05T00:00:00+00:00"
    store.close()


def test_grants_raise_the_cap_of_each_slice(place: Place) -> None:
    store = place.open(Caps(EPSILON, 0, {"alice": TENTH}))
    ask(store, "a", of((0, 1)), EPSILON)
    store.grant(None, 5, "owner")
    ask(store, "b", of((0, 1)), 5)
    refusal(store, of((1, 1)), 1)
    store.grant("alice", 4, "owner")
    ask(store, "c", of((5, 5)), TENTH + 4, analyst="alice")
    refusal(store, of((5, 5)), 1, analyst="alice")
    store.close()


def test_steps_are_read_in_pieces_of_any_size(place: Place) -> None:
    """Rows are written many at once: more than one statement takes."""
    store = place.open(Caps(EPSILON, 0, {}))
    for month in range(0, 600, 2):
        if month % 100 == 0:
            ask(
                store,
                f"far {month}",
                Slices(tuple((100 + m, 100 + m) for m in range(month, month + 100, 2))),
                1,
            )
    ask(store, "all", Slices(((100, 800),)), 2)
    assert len(store.slices()) == 600
    assert store.slices() == Steps(store.slices())
    assert {sums[0] for _, _, sums in store.slices()} == {2, 3}
    store.close()


def test_nothing_is_spent_of_a_new_ledger(place: Place) -> None:
    store = place.open()
    status = store.status("alice")
    assert (status.of, status.epsilon_spent_nano, status.analyst_spent_nano) == ("", 0, 0)
    assert len(store.slices()) == 0
    assert store.spent() == ZERO
    store.close()


def test_in_a_zone_the_ends_of_charged_periods_stay_where_they_are(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsql.budget import ledger_store
    from dpsql.policy import periods

    promise = replace(BY_MONTH, zone="Europe/Berlin")
    store = place.open(promise=promise)
    ask(store, "a", of((0, 0)))
    ask(store, "b", of((5, 6), is_undated=True))
    ask(store, "c", of(is_undated=True))
    until, digest = store.log(1)[0].ends or (0, "")
    assert until == MARCH + 7
    assert digest == periods.ends_digest(
        Period.MONTH, number_of(Period.MONTH, date(2024, 1, 1)), until, promise.zone
    )
    assert store.log(3)[-1].ends != store.log(1)[0].ends
    store.rotate()
    store.close()

    def moved(period: Period, first: int, until: int, zone: str) -> str:
        return digest if until < MARCH + 7 else "0" * 64  # the last one ends elsewhere

    for is_lost in (False, True):
        if is_lost:  # the later file tells it, too
            place.lose()
            sealed_path(place.log, 0).unlink()
        store = place.open(promise=promise, create=is_lost and not place.is_sqlite)
        with monkeypatch.context() as patch:
            patch.setattr(ledger_store, "ends_digest", moved)
            with pytest.raises(LedgerError, match="zone Europe/Berlin have changed"):
                ask(store, "d", of((0, 0)))
            assert store.spent().epsilon_nano == 3 * TENTH
        store.close()


def test_a_table_stays_by_the_time_that_it_was_charged_by(place: Place) -> None:
    """Whoever opens the ledger, from whichever file of the log it is made anew."""
    store = place.open()
    ask(store, "a", replace(of((0, 0)), times=(("orders", "ordered_at"), ("users", ""))))
    ask(store, "b", replace(of((1, 1)), times=(("visits", "day"),)))
    ask(store, "c", of((2, 2)))
    store.require_times((("notes", "written"), ("orders", "ordered_at"), ("users", "")))
    assert store.log(1)[0].times == (("orders", "ordered_at"), ("users", ""), ("visits", "day"))
    store.rotate()
    store.close()
    for is_lost in (False, True):
        if is_lost:
            place.lose()
            sealed_path(place.log, 0).unlink()
        store = place.open(create=is_lost and not place.is_sqlite)
        for table, said, told in (
            ("orders", "shipped_at", 'by time = "ordered_at", and the policy has time = "shipped_at"'),
            ("users", "joined", 'by no time, and the policy has time = "joined"'),
            ("visits", "", 'by time = "day", and the policy has no time'),
        ):
            spent = store.spent()
            with pytest.raises(LedgerError, match=told):
                store.require_times(((table, said),))
            with pytest.raises(LedgerError, match=f'rows of "{table}" were charged {told}'):
                ask(store, "d", replace(of((5, 5)), times=((table, said),)))
            assert store.spent() == spent
        store.close()


@pytest.mark.parametrize("is_sliced", [True, False], ids=["by month", "whole"])
def test_a_table_stays_with_the_unit_that_it_was_charged_by(place: Place, *, is_sliced: bool) -> None:
    """What was charged protected whom the unit said then: of others' rows the sums say nothing."""
    place = replace(place, is_sliced=is_sliced)
    slices = of((0, 0)) if is_sliced else None
    store = place.open()

    def read(key: str, *whose: tuple[str, str]) -> None:
        store.reserve(claim(replace(measurement(key), slices=slices, whose=whose)))

    visits, people = ("visits", 'unit = "patient_id"'), ("people", 'unit = "id"')
    read("a", visits)
    read("b", people)
    read("c")
    store.require_whose([visits, people, ("notes", 'unit = "row"')])
    assert store.log(1)[0].whose == (people, visits)
    store.rotate()
    store.close()
    for is_lost in (False, True):
        if is_lost:
            place.lose()
            sealed_path(place.log, 0).unlink()
        store = place.open(create=is_lost and not place.is_sqlite)
        spent, other = store.spent(), ("visits", 'unit = "doctor_id"')
        told = 'rows of "visits" were charged by unit = "patient_id", and the policy has unit = "doctor_id"'
        with pytest.raises(LedgerError, match=told):
            store.require_whose([people, other])
        with pytest.raises(LedgerError, match=told):
            read("d", other)
        assert store.spent() == spent
        read(f"e{is_lost}", visits)
        store.close()


def test_in_utc_nothing_is_said_of_ends(place: Place) -> None:
    store = place.open()
    ask(store, "a", of((0, 0)))
    assert store.log(1)[0].ends is None
    assert '"ends"' not in place.log.read_text()
    store.close()


def test_what_is_left_and_refused_is_that_of_one_number_a_month(place: Place) -> None:
    """Whether a run is looked at as a whole or month by month: the same months have room, and the same are the worst."""
    chance = random.Random(7)
    caps = Caps(12 * TENTH, 40, {"alice": 6 * TENTH})
    store, refused = place.open(caps), 0
    charged: dict[str, dict[int, tuple[int, int]]] = {"": {}, "alice": {}}

    def spent_of(name: str, number: int) -> tuple[int, int]:
        return charged[name].get(number, (0, 0))

    for number in range(90):
        first = chance.randrange(12)
        runs = [(first, first + chance.randrange(5))]
        runs += [(runs[0][1] + 2, runs[0][1] + 3)] if chance.random() < 0.3 else []
        slices = of(*runs, is_undated=chance.random() < 0.2)
        name, epsilon, delta = (
            chance.choice(["alice", "bob"]), chance.randrange(1, 4) * TENTH, chance.randrange(4)
        )  # fmt: skip
        reached = [each for begin, end in slices.runs for each in range(begin, end + 1)]
        room = min(
            *(12 * TENTH - spent_of("", each)[0] for each in reached),
            *(6 * TENTH - spent_of("alice", each)[0] for each in reached if name == "alice"),
            20 * TENTH,
        )
        left = store.left_of(slices, name)
        assert left.status.left_nano == room
        worst = {
            each
            for each in reached
            if 12 * TENTH - spent_of("", each)[0] == room
            or (name == "alice" and 6 * TENTH - spent_of("alice", each)[0] == room)
        }
        told = {each for begin, end in left.where.runs for each in range(begin, end + 1)}
        assert told
        assert told <= worst
        if epsilon > room or any(spent_of("", each)[1] + delta > 40 for each in reached):
            refusal(store, slices, epsilon, delta, name)
            refused += 1
            continue
        ask(store, f"n{number}", slices, epsilon, delta, name)
        for of_name in {"", name} & {*charged}:
            for each in reached:
                before = spent_of(of_name, each)
                charged[of_name][each] = before[0] + epsilon, before[1] + delta
    assert 15 < refused < 75
    store.close()


# --- stored answers of some slices are retired --------------------------------------------------------------


def test_an_epoch_retires_the_answers_of_its_slices_alone(place: Place) -> None:
    """Late rows of May: what is stored of April, and of undated rows, answers on; also where the ledger is older than
    its log, which then tells of the act."""
    stored = {
        "april": of((1, 1)),
        "may": of((2, 2)),
        "april to may": of((1, 2)),
        "june": of((3, 3)),
        "users": of(is_undated=True),
        "both": of((0, 0), is_undated=True),
    }

    def answering(store: LedgerStore) -> set[str]:
        found = {name: store.lookup((key(name),), Laplace(Fraction(10))) for name in stored}
        dated = {name: store.newest((key(name),)) for name in stored}
        assert {name for name, one in dated.items() if one is not None and one.is_current} == {
            name for name, one in found.items() if one is not None
        }
        return {name for name, one in found.items() if one is not None}

    with closing(place.open()) as store:
        for name, slices in stored.items():
            wanted = replace(measurement(name), slices=slices)
            store.commit(store.reserve(claim(wanted)), [draw(name)])
        assert answering(store) == {*stored}
        spent = store.spent()
    before = place.file.read_bytes() if place.is_sqlite else b""
    with closing(place.open()) as store:
        assert store.advance_epoch(retired=of((2, 2))) == 2
        assert answering(store) == {"april", "june", "users", "both"}
        assert store.advance_epoch(retired=Slices(((MARCH + 3, MOST_NUMBER),), is_undated=True)) == 3
        assert answering(store) == {"april"}
        assert store.spent() == spent
        assert sum(number for number, _ in store.resting().values()) == 1
    if before:
        place.file.write_bytes(before)
        with closing(place.open()) as store:
            assert answering(store) == {"april"}
    with closing(place.open()) as store:
        ask(store, "may", stored["may"])
        assert answering(store) == {"april"}
        store.advance_epoch()
        assert answering(store) == set()


def test_without_periods_an_epoch_retires_all(place: Place) -> None:
    with (
        closing(replace(place, is_sliced=False).open()) as store,
        pytest.raises(LedgerError, match="by periods"),
    ):
        store.advance_epoch(retired=of((2, 2)))
