"""`records.dataclass` makes what the library's does; only when is another."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import KW_ONLY, FrozenInstanceError, field
from functools import cached_property
from typing import Any, ClassVar

import pytest

from dpsql import records

MAKERS = (dataclasses.dataclass, records.dataclass)


@records.dataclass(frozen=True, slots=True)
class Stored:
    """At the module's level, so that it can be pickled."""

    name: str
    parts: tuple[int, ...] = ()


def family(maker: Callable[..., Any]) -> tuple[Any, ...]:
    @maker(frozen=True, slots=True)
    class Frozen:
        first: int
        second: str = "b"
        noted: str = field(default="", compare=False, repr=False)
        position: int | None = field(default=None, compare=False, repr=False, kw_only=True)
        kinds: ClassVar[int] = 3

    @maker(frozen=True, slots=True)
    class Deeper(Frozen):
        third: tuple[int, ...] = ()

        def __post_init__(self) -> None:
            object.__setattr__(self, "second", self.second.upper())

    @maker(frozen=True)
    class Cached:
        one: int
        _: KW_ONLY
        two: int

        @cached_property
        def total(self) -> int:
            return self.one + self.two

    @maker
    class Open:
        name: str
        parts: list[int] = field(default_factory=list)
        kept: dict[str, int] = field(init=False, default_factory=dict)
        state: int = field(init=False, default=7)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and self.name == other.name

    @maker(eq=False, slots=True, repr=False)
    class Same:
        value: int = 0
        hidden: int = field(init=False, default=4)

    return Frozen, Deeper, Cached, Open, Same


def told(call: Callable[[], object]) -> str:
    try:
        return repr(call()).replace("family.<locals>.", "")
    except (TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {str(error).rpartition('.')[2]}"


ACTS: tuple[Callable[..., object], ...] = (
    lambda frozen, *_: frozen(1),
    lambda frozen, *_: frozen(1, "c", "d", position=2).position,
    lambda frozen, *_: frozen(1, "c", "d", 2),
    lambda frozen, *_: frozen(),
    lambda frozen, *_: frozen(1, other=2),
    lambda frozen, *_: (frozen(1, noted="x") == frozen(1), frozen(1) == frozen(2), frozen(1) == 1),
    lambda frozen, *_: hash(frozen(1, noted="x")) == hash(frozen(1)) == hash((1, "b")),
    lambda frozen, deeper, *_: frozen(1) == deeper(1),
    lambda frozen, deeper, *_: (deeper(1), deeper(1, "q", third=(4,)), deeper.__match_args__),
    lambda frozen, *_: setattr(frozen(1), "first", 2),
    lambda frozen, *_: delattr(frozen(1), "first"),
    lambda frozen, *_: dataclasses.replace(frozen(1, position=3), second="z").position,
    lambda frozen, *_: dataclasses.asdict(frozen(1)),
    lambda frozen, *_: (copy.copy(frozen(1)), copy.deepcopy(frozen(1, "x"))),
    lambda frozen, *_: frozen.__slots__,
    lambda frozen, deeper, *_: hasattr(deeper(1), "__dict__"),
    lambda _, __, cached, *___: (cached(1, two=2).total, cached(1, two=2), cached.__match_args__),
    lambda _, __, cached, *___: cached(1, 2),
    lambda _, __, cached, *___: setattr(cached(1, two=2), "other", 1),
    lambda _, __, ___, opened, same: (opened("a"), opened("a").parts is opened("a").parts, opened("a").kept),
    lambda _, __, ___, opened, same: (opened("a", [1]) == opened("a"), opened("a").state),
    lambda _, __, ___, opened, same: hash(opened("a")),
    lambda _, __, ___, opened, same: (same() == same(), same(3).value, same().hidden, same.__doc__ is None),
    lambda _, __, ___, opened, same: "object at" in repr(same()),
    lambda *all: [[(one.name, one.init, one.kw_only) for one in dataclasses.fields(each)] for each in all],
)


def worn(family: tuple[Any, ...]) -> tuple[Any, ...]:
    frozen, deeper, cached, opened, same = family
    for _ in range(50):
        frozen(1), deeper(1), cached(1, two=2), opened("a"), same()
    return family


@pytest.mark.parametrize("often", [tuple, worn], ids=["new", "worn"])
@pytest.mark.parametrize("number", range(len(ACTS)))
def test_it_does_what_the_librarys_does(number: int, often: Callable[..., tuple[Any, ...]]) -> None:
    usual, ours = (told(lambda maker=maker: ACTS[number](*often(family(maker)))) for maker in MAKERS)  # type: ignore[misc]
    assert ours == usual


def test_a_subclass_of_the_librarys_is_the_librarys() -> None:
    @dataclasses.dataclass(frozen=True)
    class Base:
        one: int

    @records.dataclass(frozen=True)
    class Derived(Base):
        two: int = 2

    assert Derived(1) == Derived(1, 2) != Derived(1, 3)
    with pytest.raises(FrozenInstanceError):
        Derived(1).two = 3  # type: ignore[misc]


def test_it_is_sent_to_another_process() -> None:
    one = Stored("a", (1, 2))
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301


def test_what_contains_itself_has_a_text() -> None:
    @records.dataclass
    class Ring:
        following: Any = None

    ring = Ring()
    ring.following = ring
    assert repr(ring).endswith("Ring(following=...)")


def test_what_is_made_often_is_compiled() -> None:
    @records.dataclass(frozen=True)
    class One:
        value: int

    before = One.__init__
    made = [One(number) for number in range(3)]
    assert One.__init__ is before
    made += [One(number) for number in range(3, 50)]
    assert One.__init__ is not before
    assert [one.value for one in made] == list(range(50))


def test_a_default_that_all_would_share_is_refused() -> None:
    with pytest.raises(ValueError, match="mutable default"):

        @records.dataclass
        class Shared:
            parts: list[int] = []  # noqa: RUF012
