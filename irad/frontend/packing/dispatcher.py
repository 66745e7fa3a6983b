"""Dispatchers that can be called with structures, and what compiled code does with these: parts by key."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from numba.core import types
from numba.core.dispatcher import OmittedArg
from numba.core.errors import TypingError
from numba.core.typing.templates import infer_getattr
from numba.extending import overload

from irad.compiling import with_room_for_frames
from irad.frontend.diagnosis.hints import refused
from irad.frontend.generated import function_from
from irad.frontend.numba import internals
from irad.frontend.numba.internals import OpenDispatcher
from irad.frontend.numba.messages import described
from irad.frontend.numba.private import compiler_lock
from irad.frontend.packing.packed import Structure, is_packed_type, is_structure, packed, structure_of, type_key

# Packed structures in compiled code: parts by key, found when the function is compiled.


def _keys(numba_type: types.Type) -> tuple[str, ...] | None:
    """The keys of a packed dictionary."""
    cls = structure_of(numba_type)
    return cls.keys if cls is not None and issubclass(cls.owner, dict) else None


def _number_of(keys: tuple[str, ...], key: Any) -> int | None:
    """Number of the part that a key in the function's code names; None if it is not a key.

    Raises:
        TypingError: the key is known only when the function runs.
    """
    if isinstance(key, types.StringLiteral):
        return keys.index(key.literal_value) if key.literal_value in keys else None
    if not isinstance(key, types.UnicodeType):
        raise refused(
            f"it looks up {described(key)} in a dictionary of parameters",
            "keys are strings; in compiled code a loop over the dictionary itself is one over its parts",
            "loop with `for key in numba.literal_unroll(params.keys()):`",
        )
    raise refused(
        "it looks up a key that is known only when the function runs",
        "parts of a dictionary of parameters may have different types, and are found when the function is compiled",
        'write the key, as in params["weights"], or loop with `for key in numba.literal_unroll(params.keys()):`',
    )


def _part(structure: Any, key: Any) -> int | None:
    """Number of the part of a packed dictionary that is looked up; None for other structures."""
    keys = _keys(structure)
    if keys is None:
        return None
    number = _number_of(keys, key)
    if number is None:
        raise refused(
            f"there is no key {key.literal_value!r}: the keys are {', '.join(map(repr, keys))}",
            "the parts of a dictionary of parameters are found by their keys when the function is compiled",
            "correct the key, or pass a dictionary that has it",
        )
    return number


@overload(operator.getitem, strict=False)
def _item(structure: Any, key: Any) -> Any:
    if isinstance(key, types.Integer | types.SliceType):
        return None  # a loop over the tuple
    number = _part(structure, key)
    return None if number is None else lambda structure, key: structure[number]


@overload(operator.setitem, strict=False)
def _store(structure: Any, key: Any, value: Any) -> Any:
    if _keys(structure) is not None:
        raise _unchangeable("it assigns to a key")


@overload(operator.delitem, strict=False)
def _delete(structure: Any, key: Any) -> Any:
    if _keys(structure) is not None:
        raise _unchangeable("it deletes a key")


def _changed(structure: Any, *arguments: Any) -> Any:
    raise _unchangeable("it adds or removes keys")


def _unchangeable(what: str) -> TypingError:
    return refused(
        f"{what} of a dictionary of parameters",
        "in compiled code the dictionary is a tuple, which cannot be changed",
        'change it before the function is called, or use a variable, as in weights = 2.0 * params["weights"]; elements '
        'of arrays can be overwritten: params["weights"][:] = 0.0',
    )


@overload(operator.contains, strict=False)
def _contains(structure: Any, key: Any) -> Any:
    keys = _keys(structure)
    if keys is None or not isinstance(key, types.StringLiteral | types.UnicodeType):
        return None
    if not isinstance(key, types.StringLiteral):
        return lambda structure, key: key in keys
    found = key.literal_value in keys
    return lambda structure, key: found


def _get(structure: Any, key: Any, default: Any = None) -> Any:
    number = _number_of(_keys(structure) or (), key)
    if number is None:
        return lambda structure, key, default=None: default
    return lambda structure, key, default=None: structure[number]


def _all_keys(structure: Any) -> Any:
    keys = _keys(structure)
    return lambda structure: keys


def _all_values(structure: Any) -> Any:
    return _tuple_of("structure[{0}]", _keys(structure))


def _all_items(structure: Any) -> Any:
    if isinstance(structure, types.NamedTuple):
        raise refused(
            "it asks for the items of a dictionary whose parts have different types",
            "in compiled code a variable has a single type",
            "loop with `for key in numba.literal_unroll(params.keys()):`, and use params[key]",
        )
    # Not a tuple of pairs: Numba compiles `literal_unroll` of one to code that crashes, or that reads other values.
    return _tuple_of("(keys[{0}], structure[{0}])", _keys(structure), "[{items}]")


def _tuple_of(item: str, keys: tuple[str, ...] | None, result: str = "({items})") -> Any:
    """A function of a structure that returns a tuple with an item for each key, or a result computed from it."""
    items = "".join(f"{item.format(number)}, " for number in range(len(keys or ())))
    text = result.format(items=items) if keys else "()"
    return function_from("items", f"def items(structure):\n    return {text}\n", "structure", {"keys": keys})


def _add_method(tuple_type: type, name: str, function: Callable[..., Any]) -> None:
    """Gives packed dictionaries a method; `overload_method` would hide the fields of that name of all named tuples."""
    infer_getattr(internals.method_of_some(tuple_type, name, function, lambda typ: _keys(typ) is not None))


_METHODS: Final[tuple[tuple[str, Callable[..., Any]], ...]] = (
    *(("keys", _all_keys), ("values", _all_values), ("items", _all_items), ("get", _get)),
    *((name, _changed) for name in ("clear", "pop", "popitem", "setdefault", "update")),
)
for _name, _method in _METHODS:
    overload(_method, strict=False)(_method)
    for _tuple_type in (types.NamedTuple, types.NamedUniTuple):
        _add_method(_tuple_type, _name, _method)


# Dispatchers.


class StructureDispatcher(OpenDispatcher):
    """Packs the structures in its arguments.

    Numba's C code looks for a specialisation first, and finds none for a structure; then it asks for one here. So calls
    without structures cost nothing.
    """

    @with_room_for_frames
    def compile(self, sig: Any) -> Any:
        """Numba's hook that specialises it."""
        with compiler_lock():  # or another thread might compile it between the two
            try:
                return super().compile(sig)
            finally:
                end = getattr(internals.cache_of(self), "end", None)  # of irad's cache, not of Numba's
                if end is not None:
                    end(sig)

    def typeof_pyval(self, val: Any) -> Any:
        """Numba's hook for what its C code cannot type."""
        if is_packed_type(type(val)) or (isinstance(val, tuple) and is_structure(val)):
            return types.pyobject
        return self._type_of(val) if isinstance(val, Structure) else super().typeof_pyval(val)

    def _type_of(self, val: Structure) -> Any:
        known, key = self.__dict__.setdefault("_irad_known_types", {}), type_key(val)
        if key is None:
            return super().typeof_pyval(val)
        if key not in known:
            known[key] = super().typeof_pyval(val)
        return known[key]

    def specialisation_for(self, *args: Any, **kws: Any) -> Callable[..., Any]:
        """Hook of Numba's C code for calls for which it finds no specialisation."""
        if any(is_structure(_given(arg)) for arg in args):
            return self.call_packed
        return super().specialisation_for(*args, **kws)

    def call_packed(self, *args: Any) -> Any:
        """Calls it with what Numba's C code has bound: defaults are in it, and star arguments are one tuple."""
        values = [packed(given) if is_structure(given := _given(arg)) else arg for arg in args]
        if self._irad_has_star:
            values[-1:] = values[-1]
        return self(*values)

    @cached_property
    def _irad_has_star(self) -> bool:
        parameters = inspect.signature(self.py_func).parameters.values()
        return any(each.kind is each.VAR_POSITIONAL for each in parameters)


def _given(arg: Any) -> Any:
    """An argument as Python gave it, or the default that stands for it."""
    return arg.value if isinstance(arg, OmittedArg) else arg


_TOO_EARLY: Final = (
    "can't unbox heterogeneous list",
    "Cannot determine Numba type of",
    "cannot compute fingerprint of empty",
)


def is_mixed_list(error: Exception) -> bool:
    """True if Numba has typed an argument by the first items of lists, before it asked for the type of the whole."""
    return any(text in str(error) for text in _TOO_EARLY)
