"""``dataclass`` as in the standard library, with methods that are shared, or compiled when they are first called.

``dataclasses.dataclass`` compiles the methods of each class from source text: of the three hundred classes that was a
third of the time that loading them took. Here only ``__init__`` is compiled, and when the first instance is made: most
programs make none of most classes.
Classes of the public interface are made by the standard library: tools for documentation know them by it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any


def _made(cls: type, *, eq: bool = True, repr: bool = True, frozen: bool = False, **parameters: bool) -> Any:
    written = vars(cls)
    made: Any = dataclasses.dataclass(init=False, eq=False, repr=False, **parameters)(cls)
    if "__init__" not in written:
        made.__init__ = _compiled_when_called(made, is_frozen=frozen)
    if frozen:
        made.__setattr__, made.__delattr__ = _refusals(made)
        if parameters.get("slots") and "__setstate__" not in written:  # pickle would set attributes
            made.__getstate__, made.__setstate__ = _state, _set_state
    if repr and "__repr__" not in written:
        made.__repr__ = _repr
    if eq:
        values = _values_of(made)
        if "__eq__" not in written:
            made.__eq__ = _equality(values)
        if written.get("__hash__") is None:
            made.__hash__ = _hash(values) if frozen else None
    return made


# ------------------------------------------------------------------------------------------------ instances


def _compiled_when_called(cls: Any, *, is_frozen: bool) -> Callable[..., None]:
    def first(self: Any, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = _constructor(cls, is_frozen=is_frozen)
        cls.__init__(self, *args, **kwargs)

    return first


def _constructor(cls: Any, *, is_frozen: bool) -> Callable[..., None]:
    """The ``__init__`` of a class: it sets the fields, to defaults where nothing is given, and calls the hook."""
    scope: dict[str, Any] = {"irad_missing": dataclasses.MISSING, "irad_set": object.__setattr__}
    positional, named, body = ["self"], list[str](), list[str]()
    for each in dataclasses.fields(cls):
        name, default, factory = each.name, f"irad_default_{each.name}", f"irad_factory_{each.name}"
        scope[default], scope[factory] = each.default, each.default_factory
        has_factory = each.default_factory is not dataclasses.MISSING
        if not each.init and not has_factory and each.default is dataclasses.MISSING:
            continue
        value = name if each.init else default
        if has_factory:
            scope[default] = dataclasses.MISSING
            value = f"{factory}() if {value} is irad_missing else {value}"
        if each.init:
            is_optional = has_factory or each.default is not dataclasses.MISSING
            (named if each.kw_only else positional).append(f"{name}={default}" if is_optional else name)
        body.append(f"irad_set(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n" + "".join(f"    {line}\n" for line in body or ["pass"]), scope)
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made


def _refusals(cls: Any) -> tuple[Callable[..., None], Callable[..., None]]:
    """Methods that set and delete an attribute of an instance of a subclass, and nothing that is a field."""

    def refuse(self: object, name: str, doing: str) -> None:
        if type(self) is cls or any(name == each.name for each in dataclasses.fields(cls)):
            raise dataclasses.FrozenInstanceError(f"cannot {doing} field {name!r}")

    def set_attribute(self: object, name: str, value: object) -> None:
        refuse(self, name, "assign to")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: object, name: str) -> None:
        refuse(self, name, "delete")
        super(cls, self).__delattr__(name)

    return set_attribute, delete_attribute


def _state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


# ------------------------------------------------------------------------------------------------ comparison


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _equality(values: Callable[[object], object]) -> Callable[[object, object], bool]:
    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(values: Callable[[object], object]) -> Callable[[object], int]:
    def hash_of_values(self: object) -> int:
        return hash(values(self))

    return hash_of_values


def _values_of(cls: Any) -> Callable[[object], object]:
    """A function of an instance that gives its fields, without those that are not compared."""
    names = [each.name for each in dataclasses.fields(cls) if each.compare]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)  # of one name attrgetter would give no tuple


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **parameters):
        """Makes a class a dataclass. ``order``, ``unsafe_hash`` and ``field(hash=…)`` are not there."""
        return _made(cls, **parameters) if cls is not None else lambda cls: _made(cls, **parameters)
