"""Plausible rows of the three data sets whose rows are of two people, as those of `rows`: a seed of its own for each set."""

from __future__ import annotations

import datetime
import random
from datetime import date, timedelta
from typing import Any

__all__ = ["board", "market", "messenger"]

Rows = dict[str, list[tuple[Any, ...]]]
_END = datetime.datetime(2026, 1, 1)


def _some(rng: random.Random, mean: float, most: int) -> int:
    return min(most, int(rng.expovariate(1 / mean) + 0.5))


def _at(rng: random.Random) -> datetime.datetime:
    return datetime.datetime(2025, 1, 1) + timedelta(seconds=rng.randrange(364 * 86_400))


def board() -> Rows:
    """Questions, answers to them, mostly others', and votes, of which a few authors get many."""
    rng = random.Random(107)
    topics = list(enumerate(["Cooking", "Databases", "Gardens", "Music", "Travel"], 1))
    users = []
    for number in range(1, 801):
        country = rng.choices(["US", "DE", "IN", "FR", "BR", None], [6, 3, 4, 2, 2, 2])[0]
        users.append(
            (number, f"user{number}", country, date(2023, 1, 1) + timedelta(days=rng.randrange(700)))
        )
    posts: list[tuple[Any, ...]] = []
    tags = ["sql", "knife", "tomato", "guitar", "visa", "beginner"]
    for number in range(1, 801):
        for _ in range(_some(rng, 1.5, 12)):
            listed = ",".join(rng.sample(tags, rng.randrange(1, 4))) if rng.random() < 0.8 else None
            topic = rng.choices(range(1, 6), [3, 5, 2, 2, 1])[0]
            posts.append((len(posts) + 1, number, topic, "question", None, listed, _at(rng)))
    asked = list(posts)
    for number in range(1, 801):
        for _ in range(_some(rng, 2, 40)):
            question = rng.choice(asked)
            created = question[6] + timedelta(minutes=int(rng.expovariate(1 / 1500)) + 1)
            if created < _END:
                row = (len(posts) + 1, number, question[2], "answer", question[0], None, created)
                posts.append(row)
    votes: list[tuple[Any, ...]] = []
    weights = [rng.paretovariate(1.6) for _ in posts]
    for number in range(1, 801):
        for post in {one[0]: one for one in rng.choices(posts, weights, k=_some(rng, 8, 80))}.values():
            cast = post[6] + timedelta(minutes=int(rng.expovariate(1 / 3000)))
            if cast < _END:
                kind = rng.choices(["up", "down", "favorite"], [7, 2, 1])[0]
                votes.append((5_000_000_000 + 3 * len(votes), post[0], number, kind, cast))
    return {"users": users, "topics": topics, "posts": posts, "votes": votes}


def market() -> Rows:
    """Everybody buys, some sell, and a few sell much; half of the orders are reviewed."""
    rng = random.Random(108)
    people = [
        (number, f"Person {number}", rng.choices(["Bonn", "Jena", "Kiel", "Ulm"], [4, 2, 3, 1])[0])
        for number in range(1, 901)
    ]
    items: list[tuple[Any, ...]] = []
    for number in range(1, 901, 9):
        for _ in range(1 + _some(rng, 8, 99)):
            kind = rng.choice(["books", "clothes", "games", "tools"])
            items.append(
                (7_000_000_000 + len(items), number, kind, f"{min(500.0, rng.lognormvariate(3, 0.8)):.2f}")
            )
    orders: list[tuple[Any, ...]] = []
    for number in range(1, 901):
        for item in rng.choices(items, k=_some(rng, 5, 30)):
            day = date(2025, 1, 1) + timedelta(days=rng.randrange(365))
            shipped = None if rng.random() < 0.1 else day + timedelta(days=rng.randrange(1, 9))
            orders.append((9_000_000_000 + len(orders), number, item[0], item[3], day, shipped))
    reviews = [(one[0], rng.choices(range(1, 6), [1, 1, 2, 4, 6])[0]) for one in orders if rng.random() < 0.5]
    return {"people": people, "items": items, "orders": orders, "reviews": reviews}


def messenger() -> Rows:
    """Everybody writes to a few others, sometimes to themselves, and answers some of what they were sent."""
    rng = random.Random(109)
    names = [f"{rng.getrandbits(40):010x}" for _ in range(700)]
    accounts = [
        (name, rng.choices(["US", "DE", "IN", "BR", None], [5, 3, 4, 2, 1])[0], rng.random() < 0.08)
        for name in names
    ]
    messages: list[tuple[Any, ...]] = []
    sent = dict.fromkeys(names, 0)

    def send(by: str, to: str, at: datetime.datetime, answers: tuple[Any, Any] = (None, None)) -> None:
        sent[by] += 1
        messages.append(
            (by, sent[by], to, min(2000, int(rng.lognormvariate(4, 1))), at.replace(microsecond=0), *answers)
        )

    for name in names:
        friends = [*rng.choices(names, k=4), name]
        for _ in range(_some(rng, 6, 30)):
            send(name, rng.choices(friends, [5, 4, 3, 2, 1])[0], _at(rng))
    for row in list(messages):
        by, number, to, _, at, *_ = row
        later = at + timedelta(minutes=int(rng.expovariate(1 / 900)) + 1)
        if rng.random() < 0.4 and sent[to] < 60 and by != to and later < _END:
            send(to, by, later, (by, number))
    return {"accounts": accounts, "messages": messages}
