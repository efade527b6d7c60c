"""`dataclass`, whose methods need no text that is compiled: a command meets some of the classes it imports.

A class is what `dataclasses.dataclass` makes of it, with fields, slots and `__match_args__`; `fields`, `replace` and
`asdict` take its instances. Its methods go by the fields; `__init__` alone is compiled, as the library does, once it
was called often. Ordering, `InitVar` and `unsafe_hash` are not among what it takes. A checker of types reads the
library's own.

House rule: nothing here knows a class of dpsql's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from operator import attrgetter
    from reprlib import recursive_repr
    from types import MemberDescriptorType

    def dataclass(cls=None, /, *, repr=True, eq=True, frozen=False, slots=False, kw_only=False):
        """Return the class as a dataclass, or what makes one of a class."""

        def made(cls):
            return _made(cls, repr=repr, eq=eq, frozen=frozen, slots=slots, kw_only=kw_only)

        return made if cls is None else made(cls)

    def _made(cls, *, repr, eq, frozen, slots, kw_only):
        if any(one.__dataclass_params__.frozen for one in cls.__mro__[1:] if dataclasses.is_dataclass(one)):
            return dataclasses.dataclass(repr=repr, eq=eq, frozen=frozen, slots=slots, kw_only=kw_only)(cls)
        fields = _fields(cls, kw_only=kw_only)
        methods = {}
        if repr:
            methods["__repr__"] = _repr(fields)
        if eq:
            methods |= {"__eq__": _eq(fields), "__hash__": _hash(fields) if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
            if slots:
                methods |= {"__getstate__": _state, "__setstate__": _set_state}
        own = vars(cls)
        made = {name: method for name, method in methods.items() if name not in own}
        made["__dataclass_fields__"], made["__dataclass_params__"] = fields, _PARAMS
        made["__match_args__"] = tuple(one.name for one in fields.values() if one.init and not one.kw_only)
        if own.get("__doc__") is None:
            made["__doc__"] = cls.__name__
        has_init = "__init__" in own
        if slots:
            cls = _with_slots(cls, made)
        else:
            for name, one in made.items():
                setattr(cls, name, one)
        if not has_init:
            cls.__init__ = _init(cls, frozen=frozen)
        return cls

    _FIELD = dataclasses._FIELD  # what tells the library's `fields` which are an instance's
    _PARAMS = dataclasses.dataclass(type("Usual", (), {})).__dataclass_params__

    def _fields(cls, *, kw_only):
        """Return the fields by name, those of bases first; the class keeps the plain values of those that have one."""
        fields = {}
        for base in reversed(cls.__mro__[1:]):
            fields.update(getattr(base, "__dataclass_fields__", {}))
        for name, text in vars(cls).get("__annotations__", {}).items():
            if "ClassVar" in str(text):
                continue
            if "KW_ONLY" in str(text):
                kw_only = True
                continue
            given = getattr(cls, name, dataclasses.MISSING)
            if isinstance(given, dataclasses.Field):
                one = given
                if one.default is dataclasses.MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, one.default)
            else:
                is_slot = isinstance(given, MemberDescriptorType)  # of a base that has the field too
                one = dataclasses.field(default=dataclasses.MISSING if is_slot else given)
            if one.default.__class__.__hash__ is None:
                raise ValueError(f"mutable default {type(one.default)} for field {name}: use default_factory")
            if one.kw_only is dataclasses.MISSING:
                one.kw_only = kw_only
            one.name, one.type, one._field_type = name, text, _FIELD
            fields[name] = one
        return fields

    def _with_slots(cls, made):
        """Return the class anew, with a slot for each field that no base has one for."""
        left_out = {"__dict__", "__weakref__", *made["__dataclass_fields__"]}
        held = {name: one for name, one in vars(cls).items() if name not in left_out}
        before = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
        slots = tuple(name for name in made["__dataclass_fields__"] if name not in before)
        return type(cls)(cls.__name__, cls.__bases__, {**held, **made, "__slots__": slots})

    def _init(cls, *, frozen):
        """Return `__init__`: one that goes by the fields, until it has been called often; then its text is compiled.

        The text also says, in the library's words, what is wrong with arguments.
        """
        calls, takes = 0, None

        def __init__(self, *args, **kwargs):
            nonlocal calls, takes
            calls += 1
            takes = takes or _Takes(cls)
            values = None if calls > _OFTEN else takes.values(args, kwargs)
            if values is None:
                cls.__init__ = _compiled_init(cls, frozen=frozen)
                cls.__init__(self, *args, **kwargs)
                return
            give = object.__setattr__ if frozen else setattr
            for name, value in values.items():
                give(self, name, value)
            if takes.goes_on:
                self.__post_init__()

        return __init__

    _OFTEN = 24
    """Calls after which `__init__` is compiled, which takes as long as a hundred calls that are not."""

    class _Takes:
        """What the `__init__` of a class takes."""

        def __init__(self, cls):
            fields = dataclasses.fields(cls)
            self.by_place = [one.name for one in fields if one.init and not one.kw_only]
            self.names = {one.name for one in fields if one.init}
            self.defaults = {
                one.name: one.default for one in fields if one.default is not dataclasses.MISSING
            }
            self.factories = {
                one.name: one.default_factory
                for one in fields
                if one.default_factory is not dataclasses.MISSING
            }
            self.goes_on = hasattr(cls, "__post_init__")

        def values(self, args, kwargs):
            """Return the value of each field that gets one; None where the arguments are not what is taken."""
            given = dict(zip(self.by_place, args, strict=False))
            if len(args) > len(self.by_place) or not given.keys().isdisjoint(kwargs):
                return None
            given.update(kwargs)
            values = self.defaults | given
            if not self.names.issuperset(given) or not self.names.difference(self.factories).issubset(values):
                return None
            values.update((name, make()) for name, make in self.factories.items() if name not in given)
            return values

    def _compiled_init(cls, *, frozen):
        names, given, body = {"_missing": _MISSING}, [], []
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
            slot = _slot(cls, one.name)
            if not frozen:
                body.append(f"self.{one.name} = {value}")
            elif slot is None:
                body.append(f"_dict[{one.name!r}] = {value}")
            else:
                names[f"_put{at}"] = slot.__set__
                body.append(f"_put{at}(self, {value})")
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        held = ["_dict = self.__dict__"] if any(line.startswith("_dict[") for line in body) else []
        lines = "\n    ".join([f"def __init__(self, {', '.join(given)}):", *held, *body, "pass"])
        exec(lines, names)  # noqa: S102 (the fields' names, nothing else)
        return names["__init__"]

    _MISSING = object()

    def _slot(cls, name):
        """Return the slot in which instances have a field; None where it is in their dictionary."""
        found = (vars(base).get(name) for base in cls.__mro__)
        return next((one for one in found if isinstance(one, MemberDescriptorType)), None)

    def _eq(fields):
        mine = _those(one.name for one in fields.values() if one.compare)

        def __eq__(self, other):
            return mine(self) == mine(other) if other.__class__ is self.__class__ else NotImplemented

        return __eq__

    def _hash(fields):
        mine = _those(one.name for one in fields.values() if (one.compare if one.hash is None else one.hash))
        return lambda self: hash(mine(self))

    def _those(names):
        """Return what makes a tuple of those fields of an instance."""
        names = tuple(names)
        return (
            attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, one) for one in names)
        )

    def _repr(fields):
        names = [one.name for one in fields.values() if one.repr]

        def __repr__(self):
            said = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
            return f"{self.__class__.__qualname__}({said})"

        return recursive_repr()(__repr__)

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
