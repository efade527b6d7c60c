"""In which order the bits of choices are drawn and people's rows come in."""

from __future__ import annotations

from typing import Any

import pytest

from dpsql.mechanisms import SampledNoise
from dpsql.release import privatise
from dpsql.testing.injected_noise import SeededSource

from .conftest import OpenDesk
from .examples import ORDINARY

__all__ = ["order_of"]


def order_of(desk: OpenDesk, monkeypatch: pytest.MonkeyPatch, sql: str) -> list[str]:
    """Return what happens while a statement is answered: `bits N`, for N bytes that are drawn, and `rows`."""
    order: list[str] = []

    class Watched(SampledNoise):
        def bits(self, count: int) -> bytes:
            order.append(f"bits {count}")
            return super().bits(count)

    opened = desk(Watched(SeededSource(1)))
    opened.settle(ORDINARY)
    original = privatise.Exact.add_windows

    def add_windows(self: Any, *args: Any) -> None:
        order.append("rows")
        original(self, *args)

    monkeypatch.setattr(privatise.Exact, "add_windows", add_windows)
    opened.session.execute(sql)
    return order
