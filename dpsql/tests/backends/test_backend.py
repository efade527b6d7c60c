"""What a new engine forgets is an error when its class is made."""

from __future__ import annotations

import pytest

from dpsql.backends import Backend, Snapshot, open_backend
from dpsql.backends.backend import implements
from dpsql.errors import PolicyError
from dpsql.policy.model import ENGINES


@pytest.mark.parametrize("protocol", [Backend, Snapshot])
def test_a_class_that_lacks_a_method_cannot_be_made(protocol: type) -> None:
    has_all_but_cancel = {name: None for name in vars(protocol) if name != "cancel"}
    with pytest.raises(TypeError, match=r"^Forgetful does not have: cancel$"):
        implements(protocol)(type("Forgetful", (), has_all_but_cancel))
    whole = type("Whole", (), {**has_all_but_cancel, "cancel": None})
    assert implements(protocol)(whole) is whole


def test_an_engine_is_a_line_and_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "other", f"{__name__}:Other")
    assert open_backend("other://place", ["t"]).dialect == "other://place/t"  # type: ignore[union-attr]
    with pytest.raises(PolicyError, match="unknown kind of URL"):
        open_backend("another://place")


class Other:
    """A backend as far as it is opened."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect

    @classmethod
    def of(cls, url: str, tables: list[str]) -> Other:
        return cls(f"{url}/{tables[0]}")
