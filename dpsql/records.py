"""`dataclass`, whose methods are compiled when they are first called: a command meets some of the classes it imports.

A class is what `dataclasses.dataclass` makes of it, with fields, slots and `__match_args__`; `replace`, `fields` and
`asdict` take its instances. Only the texts of `__init__`, `__eq__`, `__hash__` and `__repr__` are compiled later, once,
at the first call; and what needs no text of its own (what a frozen instance refuses) is shared by all classes.
Ordering, `InitVar` and `unsafe_hash` are not among what it takes. A checker of types reads the library's own.

House rule: nothing here knows a class of dpsql's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from reprlib import recursive_repr

    def dataclass(cls=None, /, *, repr=True, eq=True, frozen=False, slots=False, kw_only=False):
        """Return the class as a dataclass, or what makes one of a class."""

        def made(cls):
            return _made(cls, repr=repr, eq=eq, frozen=frozen, slots=slots, kw_only=kw_only)

        return made if cls is None else made(cls)

    def _made(cls, *, repr, eq, frozen, slots, kw_only):
        if any(one.__dataclass_params__.frozen for one in cls.__mro__[1:] if dataclasses.is_dataclass(one)):
            return dataclasses.dataclass(repr=repr, eq=eq, frozen=frozen, slots=slots, kw_only=kw_only)(cls)
        own = set(vars(cls))
        if cls.__doc__ is None:
            cls.__doc__ = cls.__name__  # else the library writes its signature there, at some cost
        cls = _with_fields(cls, slots=slots, kw_only=kw_only)

        def give(name, method):
            if name not in own:
                setattr(cls, name, method)

        give("__init__", _when_called(cls, "__init__", lambda: _init(cls, frozen=frozen)))
        if repr:
            give("__repr__", _when_called(cls, "__repr__", lambda: _repr(cls)))
        if eq:
            give("__eq__", _when_called(cls, "__eq__", lambda: _eq(cls)))
            give("__hash__", _when_called(cls, "__hash__", lambda: _hash(cls)) if frozen else None)
        if frozen:
            give("__setattr__", _refuse_assignment)
            give("__delattr__", _refuse_deletion)
            if slots:
                give("__getstate__", _state)
                give("__setstate__", _set_state)
        return cls

    def _with_fields(cls, *, slots, kw_only):
        """Return the class with its fields; the library looks at each text of a type for three words, at some cost, and
        so does not get to see those that have none of them."""
        said = vars(cls).get("__annotations__", {})
        plain = {name: text for name, text in said.items() if isinstance(text, str) and not _is_special(text)}
        said.update(dict.fromkeys(plain, object))
        try:
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
        finally:
            said.update(plain)
        for name, text in plain.items():
            cls.__dataclass_fields__[name].type = text
        return cls

    def _is_special(text):
        return "ClassVar" in text or "InitVar" in text or "KW_ONLY" in text

    def _when_called(cls, name, make):
        def first(self, *args, **kwargs):
            method = make()
            method.__qualname__ = f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)
            return method(self, *args, **kwargs)

        return first

    _set = object.__setattr__

    def _init(cls, *, frozen):
        names, given, body = {"_set": _set, "_missing": _MISSING}, [], []
        for at, one in enumerate(sorted(dataclasses.fields(cls), key=lambda one: one.kw_only)):
            value = one.name
            if one.default_factory is not dataclasses.MISSING:
                names[f"_make{at}"] = one.default_factory
                value = f"_make{at}()"
                if one.init:
                    value = f"{value} if {one.name} is _missing else {one.name}"
                    default = "_missing"
            elif one.default is not dataclasses.MISSING:
                names[f"_default{at}"] = one.default
                default = f"_default{at}"
                if not one.init:
                    value = default
            elif not one.init:
                continue
            else:
                default = None
            if one.init:
                if one.kw_only and "*" not in given:
                    given.append("*")
                given.append(one.name if default is None else f"{one.name}={default}")
            body.append(f"_set(self, {one.name!r}, {value})" if frozen else f"self.{one.name} = {value}")
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        return _compiled(f"__init__(self, {', '.join(given)})", body or ["pass"], names)

    def _eq(cls):
        compared = [one.name for one in dataclasses.fields(cls) if one.compare]
        mine, theirs = (f"({''.join(f'{of}.{name}, ' for name in compared)})" for of in ("self", "other"))
        body = [
            "if other.__class__ is not self.__class__:",
            "    return NotImplemented",
            f"return {mine} == {theirs}",
        ]
        return _compiled("__eq__(self, other)", body, {})

    def _hash(cls):
        hashed = (one for one in dataclasses.fields(cls) if (one.compare if one.hash is None else one.hash))
        parts = "".join(f"self.{one.name}, " for one in hashed)
        return _compiled("__hash__(self)", [f"return hash(({parts}))"], {})

    def _compiled(head, body, names):
        lines = "\n    ".join(body)
        exec(f"def {head}:\n    {lines}\n", names)  # noqa: S102 (the fields' names, nothing else)
        return names[head.partition("(")[0]]

    _MISSING = object()

    def _repr(cls):
        shown = (f"{one.name}={{self.{one.name}!r}}" for one in dataclasses.fields(cls) if one.repr)
        text = f'return f"{{self.__class__.__qualname__}}({", ".join(shown)})"'
        return recursive_repr()(_compiled("__repr__(self)", [text], {}))

    def _is_refused(self, name):
        return "__dataclass_fields__" in vars(type(self)) or name in self.__dataclass_fields__

    def _refuse_assignment(self, name, value):
        if _is_refused(self, name):
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def _refuse_deletion(self, name):
        if _is_refused(self, name):
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    def _state(self):
        return [getattr(self, one.name) for one in dataclasses.fields(self)]

    def _set_state(self, state):
        for one, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, one.name, value)
