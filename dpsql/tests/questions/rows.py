"""Plausible rows of the data sets, the same at every run: a seed of its own for each set.

Each function returns the rows of each table, in the order in which foreign keys let them be stored. No value lies
outside the bounds of the set's policy, and nobody has more rows than it counts, so that a noiseless answer is the
statement's own.
"""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any, TypeVar

from .rows_of_two import board, market, messenger

__all__ = ["ROWS", "Rows"]

_T = TypeVar("_T")

Rows = dict[str, list[tuple[Any, ...]]]
"""The rows of each table, columns in the order of the schema."""

_NAMES = [
    "Ana",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gina",
    "Hugo",
    "Iris",
    "Jan",
    "Kim",
    "Lea",
    "Max",
    "Nora",
    "Omar",
    "Pia",
]
_SURNAMES = [
    "Adams",
    "Baker",
    "Costa",
    "Dubois",
    "Evans",
    "Fischer",
    "Garcia",
    "Huber",
    "Ito",
    "Jansen",
    "Keller",
    "Lopez",
]
_MAIL = ["gmail.com", "outlook.com", "gmx.de", "proton.me", "acme.io"]


def _days(first: date, last: date) -> Iterator[date]:
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)


def _month(day: date) -> date:
    return day.replace(day=1)


def _moment(rng: random.Random, first: date, last: date) -> datetime.datetime:
    """Draw a second between the start of two days, more often by day than at night."""
    day = first + timedelta(days=rng.randrange((last - first).days))
    hour = int(rng.triangular(0, 24, 15)) % 24
    return datetime.datetime(day.year, day.month, day.day, hour, rng.randrange(60), rng.randrange(60))


def _day(rng: random.Random, first: date, last: date) -> date:
    return first + timedelta(days=rng.randrange((last - first).days + 1))


def _some(rng: random.Random, mean: float, most: int) -> int:
    """Draw how many rows somebody has: few have many."""
    return min(most, int(rng.expovariate(1 / mean) + 0.5))


def _one(rng: random.Random, values: Sequence[_T], weights: Sequence[float] | None = None) -> _T:
    return rng.choices(values, weights)[0]


def _cents(value: float) -> str:
    return f"{value:.2f}"


def _email(rng: random.Random, number: int) -> str:
    return f"{_one(rng, _NAMES).lower()}.{number}@{_one(rng, _MAIL, [8, 4, 3, 1, 2])}"


def _shop() -> Rows:
    rng = random.Random(101)
    countries = [
        ("DE", "Germany", "Europe"),
        ("FR", "France", "Europe"),
        ("ES", "Spain", "Europe"),
        ("GB", "United Kingdom", "Europe"),
        ("US", "United States", "Americas"),
        ("CA", "Canada", "Americas"),
        ("JP", "Japan", "Asia"),
    ]
    kinds = {"Shoes": 70, "Shirts": 25, "Jackets": 110, "Bags": 55, "Outdoor": 90, "Accessories": 15}
    products = [
        (number, f"{kind[:-1]} {number:02d}", kind, _cents(price * rng.uniform(0.6, 1.6)))
        for number, (kind, price) in enumerate(list(kinds.items()) * 6, 1)
    ]
    holidays = {date(2025, 1, 1), date(2025, 5, 1), date(2025, 12, 25), date(2025, 12, 26)}
    calendar = [
        (day, _month(day), day.isoweekday() > 5, day in holidays)
        for day in _days(date(2025, 1, 1), date(2025, 12, 31))
    ]
    customers: list[tuple[Any, ...]] = []
    orders: list[tuple[Any, ...]] = []
    items: list[tuple[Any, ...]] = []
    cities = ["Berlin", "Paris", "Madrid", "London", "New York", "Toronto", "Tokyo"]
    for customer in range(1, 1801):
        signed = _day(rng, date(2024, 1, 1), date(2025, 10, 31))
        home = rng.choices(range(7), [9, 6, 4, 6, 8, 3, 2])[0]
        born = None if rng.random() < 0.1 else _day(rng, date(1945, 1, 1), date(2006, 12, 31))
        channel = _one(rng, ["organic", "ads", "referral", "email"], [5, 4, 2, 2])
        customers.append(
            (customer, _email(rng, customer), signed, born, countries[home][0], channel, rng.random() < 0.4)
        )
        for _ in range(_some(rng, 2.4, 15)):
            number = len(orders) + 1
            moment = _moment(rng, max(signed, date(2025, 1, 1)), date(2026, 1, 1))
            status = _one(rng, ["delivered", "shipped", "paid", "cancelled", "refunded"], [12, 3, 2, 2, 1])
            coupon = _one(rng, [None, "WELCOME10", "SUMMER25", "VIP-2025"], [12, 3, 2, 1])
            total = 0.0
            lines = []
            for line in range(1, rng.randrange(1, 6)):
                product = _one(rng, products)
                quantity = _one(rng, [1, 2, 3, 4], [8, 3, 1, 1])
                price = float(product[3]) * _one(rng, [1, 0.9, 0.75], [6, 2, 1])
                total += quantity * round(price, 2)
                lines.append((number, line, product[0], quantity, _cents(price)))
            shipping = _one(rng, [0, 4.9, 9.9], [3, 4, 1])
            orders.append(
                (number, customer, moment, status, coupon, cities[home], _cents(shipping), _cents(total))
            )
            items += lines
    tables = {"countries": countries, "products": products, "calendar": calendar}
    return {**tables, "customers": customers, "orders": orders, "order_items": items}


def _events() -> Rows:
    rng = random.Random(102)
    plans = [
        ("free", "0.00", 1),
        ("starter", "9.00", 3),
        ("team", "49.00", 20),
        ("enterprise", "499.00", 500),
    ]
    calendar = [
        (day, day - timedelta(days=day.weekday()), day.isoweekday() > 5)
        for day in _days(date(2025, 7, 1), date(2025, 12, 31))
    ]
    users: list[tuple[Any, ...]] = []
    events: list[tuple[Any, ...]] = []
    pages = ["/home", "/pricing", "/docs/start", "/docs/api", "/blog/launch", "/settings", "/projects"]
    names = ["page_view", "search", "project_created", "invite_sent", "export", "error"]
    for user in range(1, 1201):
        created = _moment(rng, date(2025, 7, 1), date(2025, 12, 1))
        plan = _one(rng, plans, [10, 5, 3, 1])[0]
        source = _one(rng, ["google", "twitter", "friend", "newsletter", None], [6, 2, 3, 2, 1])
        country = _one(rng, ["US", "DE", "IN", "BR", "GB"], [6, 3, 4, 2, 3])
        users.append((user, created, _email(rng, user), plan, source, country))
        browser = _one(rng, ["Chrome", "Safari", "Firefox", "Edge"], [10, 5, 3, 2])
        variant = _one(rng, ["control", "treatment"])
        common = {"browser": browser, "device": _one(rng, ["desktop", "mobile"], [3, 2])}
        moments = sorted(
            _moment(rng, created.date() + timedelta(days=1), date(2026, 1, 1))
            for _ in range(_some(rng, 7, 40))
        )
        steps: list[tuple[datetime.datetime, str, dict[str, Any]]] = [
            (created, "signup", {"variant": variant})
        ]
        for moment in moments:
            name = _one(rng, names, [12, 4, 3, 1, 2, 1])
            more: dict[str, Any] = {}
            if name == "page_view":
                query = _one(
                    rng,
                    ["", "?utm_source=google&utm_medium=cpc", "?utm_source=mail&utm_medium=email"],
                    [5, 2, 1],
                )
                more = {
                    "path": _one(rng, pages) + query,
                    "duration_ms": int(rng.triangular(100, 60000, 4000)),
                }
            elif name == "search":
                more = {
                    "term": _one(rng, ["invoice", "api key", "export csv", "sso"]),
                    "results": rng.randrange(30),
                }
            elif name == "project_created":
                more = {"template": _one(rng, ["blank", "crm", "roadmap"]), "tags": ["new", plan]}
            elif name == "error":
                more = {"code": _one(rng, [404, 500, 503]), "message": "request failed: timeout"}
            steps.append((moment, name, more))
        if len(moments) > 3 and rng.random() < 0.5:
            steps.append((moments[2] + timedelta(minutes=5), "checkout_started", {"variant": variant}))
            if rng.random() < (0.6 if variant == "treatment" else 0.45):
                paid = {
                    "amount": _one(rng, [9.0, 49.0, 499.0], [5, 3, 1]),
                    "currency": _one(rng, ["USD", "EUR"]),
                }
                steps.append((moments[2] + timedelta(minutes=12), "checkout_completed", paid))
        for number, (moment, name, more) in enumerate(sorted(steps, key=lambda step: step[0])):
            text = json.dumps({**common, **more})
            events.append((len(events) + 1, user, moment, name, f"s-{user}-{number // 4}", text))
    return {"plans": plans, "calendar": calendar, "users": users, "events": events}


def _survey() -> Rows:
    rng = random.Random(103)
    regions = [
        ("North", "upper", 2100000),
        ("South", "lower", 3400000),
        ("East", "lower", 1200000),
        ("West", "upper", 2800000),
        ("Capital", "upper", 3900000),
    ]
    sections = [
        "product",
        "product",
        "product",
        "support",
        "support",
        "price",
        "price",
        "brand",
        "brand",
        "brand",
    ]
    questions = [
        (number, section, f"I am happy with {section} ({number})")
        for number, section in enumerate(sections, 1)
    ]
    respondents: list[tuple[Any, ...]] = []
    answers: list[tuple[Any, ...]] = []
    for number in range(1, 2401):
        started = _moment(rng, date(2025, 9, 1), date(2025, 10, 13))
        finished = rng.random() < 0.88
        submitted = started + timedelta(seconds=int(rng.triangular(90, 3500, 420))) if finished else None
        age = int(rng.triangular(18, 90, 40))
        education = _one(rng, ["primary", "secondary", "bachelor", "master", "doctorate"], [2, 6, 5, 3, 1])
        work = _one(rng, ["employed", "self-employed", "student", "retired", "unemployed"], [10, 2, 2, 3, 1])
        income = None if rng.random() < 0.15 else int(min(200000, rng.lognormvariate(10.4, 0.5)) // 100 * 100)
        nps = _one(rng, range(11), [1, 1, 1, 1, 2, 3, 4, 8, 10, 8, 6]) if finished else None
        languages = ";".join(sorted(rng.sample(["en", "de", "fr", "it", "es"], rng.randrange(1, 4))))
        remarks = _one(
            rng,
            [None, "", "Too expensive", "great support, thanks", "App crashes a lot!", "price is OK"],
            [10, 2, 3, 3, 2, 2],
        )
        respondents.append(
            (
                number, started, submitted, age, _one(rng, ["f", "m", "x", None], [48, 46, 3, 3]),
                _one(rng, regions, [4, 7, 2, 6, 8])[0], education, work, income, rng.randrange(1, 7), nps,
                _cents(rng.uniform(0.4, 2.6)), _one(rng, ["phone", "laptop", "tablet"], [6, 4, 1]), languages, remarks,
            )
        )  # fmt: skip
        for question in range(1, 11 if finished else rng.randrange(1, 8)):
            score = None if rng.random() < 0.05 else _one(rng, [1, 2, 3, 4, 5], [1, 2, 4, 5, 3])
            answers.append((number, question, score))
    return {"regions": regions, "questions": questions, "respondents": respondents, "answers": answers}


def _hospital() -> Rows:
    rng = random.Random(104)
    wards = [
        ("A1", "Surgery", 30),
        ("A2", "Surgery", 24),
        ("B1", "Medicine", 40),
        ("B2", "Medicine", 36),
        ("C1", "Paediatrics", 20),
        ("ICU", "Intensive care", 12),
    ]
    icd = [
        ("I10", "Circulatory", "Hypertension"),
        ("I21.0", "Circulatory", "Infarction, anterior"),
        ("I21.9", "Circulatory", "Infarction, unspecified"),
        ("J18.9", "Respiratory", "Pneumonia"),
        ("J44.1", "Respiratory", "COPD with exacerbation"),
        ("E11.9", "Endocrine", "Type 2 diabetes"),
        ("S72.0", "Injury", "Fracture of neck of femur"),
        ("K35.8", "Digestive", "Acute appendicitis"),
    ]
    calendar = [(day, _month(day)) for day in _days(date(2024, 1, 1), date(2025, 12, 31))]
    patients: list[tuple[Any, ...]] = []
    admissions: list[tuple[Any, ...]] = []
    labs: list[tuple[Any, ...]] = []
    tests = {
        "CRP": (0, 250),
        "sodium": (125, 150),
        "potassium": (2.5, 6.5),
        "glucose": (3, 25),
        "creatinine": (40, 400),
    }
    for patient in range(1, 1601):
        born = _day(rng, date(1930, 1, 1), date(2020, 12, 31))
        patients.append(
            (
                patient, _one(rng, ["F", "M"]), born, f"{rng.randrange(80, 86)}{rng.randrange(100, 999)}",
                _one(rng, ["public", "private", "none"], [8, 2, 1]), _one(rng, [True, False, None], [2, 6, 1]),
            )
        )  # fmt: skip
        for _ in range(min(8, 1 + _some(rng, 1.2, 7))):
            number = len(admissions) + 1
            admitted = _moment(rng, date(2024, 1, 1), date(2025, 12, 1))
            left = admitted + timedelta(hours=int(min(29 * 24, 6 + rng.expovariate(1 / 110))))
            is_out = rng.random() < 0.97
            ward = _one(rng, wards, [3, 3, 5, 5, 2, 1])[0]
            outcome = _one(rng, ["home", "transfer", "rehab", "died"], [16, 2, 2, 1]) if is_out else None
            cost = _cents(min(60000, rng.lognormvariate(8.3, 0.7))) if is_out else None
            admissions.append(
                (
                    number, patient, ward, _one(rng, icd, [4, 2, 3, 4, 3, 4, 3, 2])[0], admitted, left if is_out else None,
                    rng.random() < 0.45, outcome, cost,
                )
            )  # fmt: skip
            for _ in range(rng.randrange(0, 5)):
                test = _one(rng, list(tests))
                value = None if rng.random() < 0.03 else _cents(rng.triangular(*tests[test]))
                taken = admitted + timedelta(minutes=rng.randrange(30, 3000))
                labs.append((len(labs) + 1, number, test, value, taken))
    tables = {"wards": wards, "icd": icd, "calendar": calendar}
    return {**tables, "patients": patients, "admissions": admissions, "lab_results": labs}


def _payroll() -> Rows:
    rng = random.Random(105)
    units = ["Engineering", "Sales", "Support", "Finance", "People", "Marketing"]
    departments = [(number, name, f"CC-{1000 + 10 * number}") for number, name in enumerate(units, 1)]
    grades = [
        (f"G{level}", level, _cents(1800 + 900 * level), _cents(3000 + 1500 * level)) for level in range(1, 7)
    ]
    months = [(date(2025, month, 1), 20 + month % 3) for month in range(1, 13)]
    employees: list[tuple[Any, ...]] = []
    payslips: list[tuple[Any, ...]] = []
    absences: list[tuple[Any, ...]] = []
    notes = [None, None, "doctor's note", "flu", "Back pain - see letter", "family"]
    for number in range(1, 1001):
        hired = _day(rng, date(2010, 1, 1), date(2025, 6, 30))
        left = (
            _day(rng, max(hired + timedelta(days=90), date(2024, 6, 1)), date(2025, 12, 31))
            if rng.random() < 0.15
            else None
        )
        grade = _one(rng, grades, [4, 6, 6, 4, 2, 1])
        gender = _one(rng, ["female", "male", "diverse"], [47, 50, 3])
        fte = _one(rng, ["1.00", "0.80", "0.50"], [7, 2, 1])
        name = f"{_one(rng, _NAMES)} {_one(rng, _SURNAMES)}"
        born = _day(rng, date(1960, 1, 1), date(2003, 12, 31))
        site = _one(rng, ["Berlin", "Lisbon", "Zurich"], [5, 3, 2])
        department = _one(rng, departments, [8, 5, 5, 2, 1, 2])[0]
        employees.append((number, name, gender, born, hired, left, department, grade[0], site, fte))
        base = rng.uniform(float(grade[2]), float(grade[3])) * float(fte)
        for month, _ in months:
            if month < _month(hired) or (left is not None and month > left):
                continue
            hours = rng.choice([0, 0, 0, 2, 4.5, 8, 16])
            bonus = (
                _cents(base * rng.uniform(0.1, 0.6))
                if month.month in (3, 12) and rng.random() < 0.6
                else None
            )
            gross = base * (1.03 if month.month > 6 else 1) + hours * base / 160
            payslips.append(
                (len(payslips) + 1, number, month, _cents(gross), bonus, hours, _cents(gross * 0.23))
            )
        for _ in range(_some(rng, 1.5, 10)):
            starts = _day(rng, max(hired, date(2025, 1, 1)), date(2025, 12, 10))
            kind = _one(rng, ["sick", "holiday", "parental", "training"], [5, 6, 1, 2])
            ends = starts + timedelta(days=rng.randrange(0, 15))
            absences.append(
                (len(absences) + 1, number, kind, starts, ends, _one(rng, notes) if kind == "sick" else None)
            )
    tables = {"departments": departments, "grades": grades, "months": months}
    return {**tables, "employees": employees, "payslips": payslips, "absences": absences}


def _forum() -> Rows:
    rng = random.Random(106)
    listed = ["Databases", "Python", "Hardware", "Networking", "Off topic", "Jobs"]
    categories = [(number, name, "tech" if number < 5 else "social") for number, name in enumerate(listed, 1)]
    calendar = [
        (day, _month(day), day.isoweekday() > 5) for day in _days(date(2025, 1, 1), date(2025, 12, 31))
    ]
    members: list[tuple[Any, ...]] = []
    threads: list[tuple[Any, ...]] = []
    posts: list[tuple[Any, ...]] = []
    votes: list[tuple[Any, ...]] = []
    openings = ["How do I", "Why does", "[Solved] Cannot", "Best way to", "HELP:"]
    ends = ["join two tables?", "install numpy", "reset my router?", "tune Postgres", "find a job"]
    tags = ["sql", "postgres", "python", "linux", "career", "beginner"]
    joined: list[datetime.datetime] = []
    for number in range(1, 1401):
        joined.append(_moment(rng, date(2024, 1, 1), date(2025, 11, 1)))
        name = f"{_one(rng, _NAMES).lower()}{_one(rng, ['_', '.', ''])}{number}"
        seen = None if rng.random() < 0.1 else _day(rng, date(2025, 11, 1), date(2025, 12, 31))
        country = _one(rng, ["US", "DE", "IN", "FR", "BR", None], [6, 3, 4, 2, 2, 2])
        members.append((number, name, _email(rng, number), joined[-1], country, number % 60 == 0, seen))
    for number in range(1, 1401):
        for _ in range(_some(rng, 0.8, 10)):
            since = max(joined[number - 1].date() + timedelta(days=1), date(2025, 1, 1))
            created = _moment(rng, since, date(2025, 12, 20))
            listed_tags = ",".join(rng.sample(tags, rng.randrange(1, 4))) if rng.random() < 0.85 else None
            title = f"{_one(rng, openings)} {_one(rng, ends)}"
            threads.append(
                (
                    len(threads) + 1, number, _one(rng, categories, [5, 6, 2, 2, 4, 1])[0], title, listed_tags, created,
                    int(min(5000, rng.lognormvariate(4.5, 1.2))), title.startswith("[Solved]") or rng.random() < 0.3,
                )
            )  # fmt: skip
    words = [
        "thanks",
        "try",
        "index",
        "the",
        "join",
        "is",
        "slow",
        "on",
        "my",
        "laptop",
        "see",
        "https://example.org/docs",
        "and",
        "restart",
        "it",
    ]
    for number in range(1, 1401):
        for _ in range(_some(rng, 3, 30)):
            thread = _one(rng, threads)
            created = max(thread[5], joined[number - 1]) + timedelta(
                minutes=int(rng.expovariate(1 / 900)) + 1
            )
            if created >= datetime.datetime(2026, 1, 1):
                continue
            body = " ".join(rng.choices(words, k=rng.randrange(3, 40)))
            edited = created + timedelta(minutes=rng.randrange(1, 300)) if rng.random() < 0.15 else None
            posts.append(
                (
                    len(posts) + 1,
                    thread[0],
                    number,
                    body,
                    created,
                    max(-10, min(60, int(rng.gauss(3, 8)))),
                    edited,
                )
            )
    for number in range(1, 1401):
        for post in rng.sample(posts, _some(rng, 4, 40)):
            cast = max(post[4], joined[number - 1]) + timedelta(minutes=int(rng.expovariate(1 / 600)))
            if cast < datetime.datetime(2026, 1, 1):
                votes.append((len(votes) + 1, post[0], number, _one(rng, [1, -1], [5, 1]), cast))
    tables = {"categories": categories, "calendar": calendar, "members": members}
    return {**tables, "threads": threads, "posts": posts, "votes": votes}


ROWS: dict[str, Callable[[], Rows]] = {
    "shop": _shop,
    "events": _events,
    "survey": _survey,
    "hospital": _hospital,
    "payroll": _payroll,
    "forum": _forum,
    "board": board,
    "market": market,
    "messenger": messenger,
}
"""What makes the rows of each data set."""
