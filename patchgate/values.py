"""Dataclasses that are quick to make: the part of `dataclasses` that this package uses, with its meaning.

A command makes 80 to 140 of them when it starts. Python 3.11 needs 0.5 ms for each, because it compiles
six functions, and loads `inspect` (8 ms). Here only `__init__` is compiled. What reads dataclasses by their
fields (`dataclasses.replace`, `copy`, `pickle`) reads these too.
"""

from __future__ import annotations

from operator import attrgetter
from types import MemberDescriptorType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
    from typing import Any, TypeVar

    _Class = TypeVar("_Class", bound=type)

__all__ = ["MISSING", "asdict", "dataclass", "field", "fields", "is_dataclass", "replace"]


class _Missing:
    """No value was given."""

    def __repr__(self) -> str:
        return "MISSING"


_MISSING = _Missing()
_FIELDS = "__dataclass_fields__"
# Python's own words for a set: what is no field of a value.
_NO_FIELD = ("ClassVar[", "typing.ClassVar[", "ClassVar", "typing.ClassVar")


class Field:
    """One field: its name, its default or what makes one, and what it counts for."""

    __slots__ = (
        "compare",
        "default",
        "default_factory",
        "hash",
        "init",
        "kw_only",
        "metadata",
        "name",
        "repr",
        "type",
    )
    # `dataclasses.replace` asks for it: this is no class variable and no argument of `__post_init__` alone.
    _field_type = None

    def __init__(
        self,
        default: Any = _MISSING,
        default_factory: Any = _MISSING,
        *,
        init: bool = True,
        repr: bool = True,  # noqa: A002 - the name that `dataclasses.field` has
        compare: bool = True,
        hash: bool | None = None,  # noqa: A002 - as above
        kw_only: bool = False,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        self.name = ""
        self.type: object = None
        self.default = default
        self.default_factory = default_factory
        self.init = init
        self.repr = repr
        self.compare = compare
        self.hash = compare if hash is None else hash
        self.kw_only = kw_only
        self.metadata: Mapping[str, object] = metadata or {}


def _field(
    *,
    default: Any = _MISSING,
    default_factory: Any = _MISSING,
    init: bool = True,
    repr: bool = True,  # noqa: A002 - as above
    compare: bool = True,
    hash: bool | None = None,  # noqa: A002 - as above
    kw_only: bool = False,
    metadata: Mapping[str, object] | None = None,
) -> Any:
    return Field(
        default,
        default_factory,
        init=init,
        repr=repr,
        compare=compare,
        hash=hash,
        kw_only=kw_only,
        metadata=metadata,
    )


def _dataclass(
    *, frozen: bool = False, slots: bool = False, order: bool = False
) -> Callable[[_Class], _Class]:
    """Make a class one that is built, compared and printed by its fields.

    Args:
        frozen: nobody sets a field; then it also has a hash.
        slots: it has no other attributes. Its functions cannot call `super()` without arguments then.
        order: its values have the order of their fields.

    Raises:
        TypeError: a field has a list, a dict or a set as its default.
    """

    def made(cls: _Class) -> _Class:
        own = _own_fields(cls)
        every: dict[str, Field] = {}
        for base in reversed(cls.__mro__[1:]):
            every |= base.__dict__.get(_FIELDS, {})
        every |= own
        methods = _methods(every, frozen=frozen, order=order)
        if not frozen and "__eq__" not in cls.__dict__:
            methods["__hash__"] = None
        added = {name: each for name, each in methods.items() if cls.__dict__.get(name) is None}
        added[_FIELDS] = every
        added["__match_args__"] = tuple(
            each.name for each in every.values() if each.init and not each.kw_only
        )
        new = _with_slots(cls, own, added) if slots else _extended(cls, own, added)
        if "__init__" not in cls.__dict__:
            new.__init__ = _init_at_first_use(new, list(every.values()), frozen=frozen)
        same: _Class = new
        return same

    return made


def _own_fields(cls: type) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for name, annotation in cls.__annotations__.items():
        if str(annotation).startswith(_NO_FIELD):
            continue
        default = cls.__dict__.get(name, _MISSING)
        each = default if isinstance(default, Field) else Field(default)
        each.name, each.type = name, annotation
        if isinstance(each.default, list | dict | set):
            raise TypeError(f"the default of {cls.__name__}.{name} could be changed: use default_factory")
        found[name] = each
    return found


def _with_slots(cls: Any, own: Mapping[str, Field], added: Mapping[str, Any]) -> Any:
    """Make the class again: slots are decided when it is made."""
    inherited = {slot for base in cls.__mro__[1:] for slot in base.__dict__.get("__slots__", ())}
    left_out = {"__dict__", "__weakref__", *own}
    space = {name: each for name, each in cls.__dict__.items() if name not in left_out}
    space["__slots__"] = tuple(name for name in own if name not in inherited)
    new = type(cls)(cls.__name__, cls.__bases__, space | dict(added))
    new.__qualname__ = cls.__qualname__
    return new


def _extended(cls: Any, own: Mapping[str, Field], added: Mapping[str, Any]) -> Any:
    for name, each in own.items():
        if isinstance(cls.__dict__.get(name), Field):
            delattr(cls, name)
        if each.default is not _MISSING:
            setattr(cls, name, each.default)
    for name, each in added.items():
        setattr(cls, name, each)
    return cls


def _methods(every: Mapping[str, Field], *, frozen: bool, order: bool) -> dict[str, Any]:
    get = _getter(each.name for each in every.values() if each.compare)

    def is_equal(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self is other or get(self) == get(other)

    methods: dict[str, Any] = {"__eq__": is_equal, "__repr__": _repr}
    if frozen:
        hashed = _getter(each.name for each in every.values() if each.hash)
        methods["__hash__"] = lambda self: hash(hashed(self))
        methods |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    if order:
        methods["__lt__"] = _ordered(lambda self, other: get(self) < get(other))
        methods["__le__"] = _ordered(lambda self, other: get(self) <= get(other))
        methods["__gt__"] = _ordered(lambda self, other: get(self) > get(other))
        methods["__ge__"] = _ordered(lambda self, other: get(self) >= get(other))
    return methods


def _getter(names: Iterable[str]) -> Callable[[Any], Any]:
    """Return what gets some fields of a value: of one the value itself, which is compared alike."""
    wanted = tuple(names)
    return attrgetter(*wanted) if wanted else lambda value: ()


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def compared(self: Any, other: object) -> Any:
        return compare(self, other) if other.__class__ is self.__class__ else NotImplemented

    return compared


def _init_at_first_use(cls: Any, every: list[Field], *, frozen: bool) -> Any:
    """Return an `__init__` that compiles the real one: most classes that a hook imports make no value."""

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:  # noqa: N807 - its name in a traceback
        if cls.__dict__["__init__"] is first:
            cls.__init__ = _init(cls, every, frozen=frozen)
        cls.__init__(self, *arguments, **named)

    first = __init__
    first.__qualname__ = f"{cls.__qualname__}.__init__"
    return first


def _init(cls: type, every: list[Field], *, frozen: bool) -> Any:
    """Compile the `__init__` of a class; of a frozen one it sets the slots directly."""
    names: dict[str, Any] = {"_MISSING": _MISSING}
    arguments: dict[bool, list[str]] = {False: ["self"], True: []}
    lines: list[str] = []
    for each in every:
        name, value, argument = each.name, each.name, each.name
        if each.default_factory is not _MISSING:
            names[f"_make_{name}"] = each.default_factory
            value = f"_make_{name}() if {name} is _MISSING else {name}" if each.init else f"_make_{name}()"
            argument = f"{name}=_MISSING"
        elif each.default is not _MISSING:
            names[f"_default_{name}"] = each.default
            argument = f"{name}=_default_{name}"
            value = name if each.init else f"_default_{name}"
        elif not each.init:
            continue
        if each.init:
            arguments[each.kw_only].append(argument)
        slot = getattr(cls, name, None)
        if frozen and isinstance(slot, MemberDescriptorType):
            names[f"_set_{name}"] = slot.__set__
            lines.append(f"    _set_{name}(self, {value})")
        elif frozen:
            names["_set"] = object.__setattr__
            lines.append(f"    _set(self, {name!r}, {value})")
        else:
            lines.append(f"    self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    named = ["*", *arguments[True]] if arguments[True] else []
    text = f"def __init__({', '.join(arguments[False] + named)}):\n" + ("\n".join(lines) or "    pass")
    exec(text, names)
    init = names.pop("__init__")
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    return init


def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_set(self: Any, name: str, value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _fields(value: Any) -> tuple[Any, ...]:
    return tuple(getattr(value, _FIELDS).values())


def _is_dataclass(value: object) -> bool:
    return hasattr(value if isinstance(value, type) else type(value), _FIELDS)


def _replace(value: Any, /, **changes: Any) -> Any:
    for each in getattr(value, _FIELDS).values():
        if each.init and each.name not in changes:
            changes[each.name] = getattr(value, each.name)
    return type(value)(**changes)


def _asdict(value: Any) -> Any:
    if _is_dataclass(value):
        return {each.name: _asdict(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {_asdict(key): _asdict(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_asdict, value))
    return value


if not TYPE_CHECKING:
    # To mypy they are those of `dataclasses`, so that it knows what they make.
    asdict, dataclass, field, fields = _asdict, _dataclass, _field, _fields
    MISSING, is_dataclass, replace = _MISSING, _is_dataclass, _replace
