"""Unknowns of equations in compiled code: a float, an array, or a structure of these, as a vector and back.

v = vector(x, x)            a real number stays one; everything else becomes an array of reals with one axis
shaped(v, x)                a value with the structure of x, in new memory where it is not v itself
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba.core import types
from numba.core.types import Type
from numba.np.numpy_support import as_dtype

from irad.api.checkpointing.values import Leaf, copied, leaves_of, structured
from irad.errors import SignatureError, SourceLocation
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.generated import function_from
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.numba.messages import described

_FILE: Final = "irad.implicit"
MADE: Final = types.LiteralStrKeyDict | types.DictType
"""The types of dictionaries that compiled code has made; those that Python passes in are named tuples there."""


def vector(value: Any, like: Any) -> Any:
    """A value with the structure of an unknown as a number or a vector; parts that are None are zero."""
    raise NotImplementedError


def shaped(found: Any, like: Any) -> Any:
    """A number or a vector as a value with the structure of an unknown."""
    raise NotImplementedError


def started(value: Any) -> Any:
    """A guess as an unknown of floats, in new memory."""
    raise NotImplementedError


def with_floats(value: Any) -> Any:
    """Numbers with floats for integers, in new memory."""
    raise NotImplementedError


def size_of(found: Any) -> Any:
    """The largest absolute value of a number or a vector; NaN if there is one."""
    raise NotImplementedError


def relative_size(found: Any, scales: Any) -> Any:
    """The largest part of a number or a vector relative to a scale for each part; NaN where a scale is not finite."""
    raise NotImplementedError


def is_within(change: Any, found: Any, rtol: Any, atol: Any) -> Any:
    """True if each part of a change is small beside that of a number or a vector."""
    raise NotImplementedError


def larger(one: Any, other: Any) -> Any:
    """The larger absolute value of each part of two numbers or vectors."""
    raise NotImplementedError


def epsilon_of(x: Any) -> Any:
    """The rounding of the coarsest floats in an unknown."""
    raise NotImplementedError


def listed(found: Any) -> Any:
    """A number or a vector as a vector."""
    raise NotImplementedError


def like_listed(found: Any, like: Any) -> Any:
    """A vector as a number or a vector."""
    raise NotImplementedError


def check_unknowns(x: Any) -> None:
    """Nothing, for floats, arrays of floats and tuples of these."""
    raise NotImplementedError


def is_none(kind: Any) -> bool:
    """True for the type of an argument that is None or left out, with None as its default."""
    return kind is None or isinstance(kind, types.NoneType) or (isinstance(kind, types.Omitted) and kind.value is None)


def is_plain(kind: Type) -> bool:
    """True if an unknown is a real number or a vector as it is."""
    is_vector = isinstance(kind, types.Array) and kind.ndim == 1 and not isinstance(kind.dtype, types.Complex)
    return is_vector or isinstance(kind, types.Float)


@inactive_in_irad
@inner_njit
def check_count(count, wanted):  # type: ignore[no-untyped-def]
    """Refuses what has more or fewer parts than the unknown."""
    if count != wanted:
        raise FormattedValueError(
            "the function of an equation returns {} values for {} unknowns: return one for each unknown", count, wanted
        )


def element_type(leaf: Leaf) -> Type:
    """The type of a number, or of those in an array."""
    found: Type = leaf.type.dtype if isinstance(leaf.type, types.Array) else leaf.type
    return found


@inner_overload(check_unknowns, strict=False)
def _check_unknowns_typed(x: Any) -> Any:
    if isinstance(x, MADE):
        raise made_in_compiled_code("the solver of an implicit equation returns")
    leaves = leaves_of(x)
    if not leaves or not all(isinstance(element_type(leaf), types.Float) for leaf in leaves):
        raise SignatureError(
            f"the solver of an implicit equation returns {described(x)}",
            "return a float, an array of floats, or a tuple of these",
            "its derivative is the solution of a linear system for unknowns of these types",
            SourceLocation.here(),
        )
    return lambda x: None


def _is_complex(leaf: Leaf) -> bool:
    return isinstance(element_type(leaf), types.Complex)


def size_of_leaf(leaf: Leaf) -> str:
    """The number of reals in a leaf, as an expression."""
    numbers = f"{leaf.text}.size" if isinstance(leaf.type, types.Array) else "1"
    return f"2 * {numbers}" if _is_complex(leaf) else numbers


def _given(value: Any, leaf: Leaf, like: Any) -> bool:
    """True if the leaf of a value is there: parts of a cotangent may be None."""
    part = value
    for step in leaf.path:
        if part == types.none:
            return False
        if not isinstance(part, types.BaseTuple) or step >= len(part):
            _check_kind(types.none, leaf.type, value, like)
        part = part[step]
    if part == types.none:
        return False
    _check_kind(part, leaf.type, value, like)
    return True


def made_in_compiled_code(what: str) -> SignatureError:
    """The error about a dictionary that compiled code has made."""
    return SignatureError(
        f"{what} a dictionary made in compiled code",
        "(a) make a tuple of its parts, in their order, or (b) work with a dictionary that Python passes in",
        "unknowns are put into a vector in a fixed order, which such a dictionary does not have",
        SourceLocation.here(),
    )


@inner_overload(vector, strict=False)
def _vector_typed(value: Any, like: Any) -> Any:
    if isinstance(value, MADE):
        raise made_in_compiled_code("the function of an equation returns")
    if is_plain(like):
        return _plain_vector(value, like)
    leaves = leaves_of(like, "like")
    sizes = [size_of_leaf(leaf) for leaf in leaves]
    lines = [f"found, at = zeros({' + '.join(sizes)}), 0"]
    for leaf, size in zip(leaves, sizes, strict=True):
        part = leaf.of("value")
        if _given(value, leaf, like):
            lines += _put_leaf(part, leaf, size)
        lines.append(f"at += {size}")
    scope = {"zeros": np.zeros, "flattened": flattened, "check_count": check_count, "put_pairs": _put_pairs}
    return written("vector(value, like)", [*lines, "return found"], scope)


def _put_leaf(part: str, leaf: Leaf, size: str) -> list[str]:
    """Lines that write a leaf into a vector."""
    if isinstance(leaf.type, types.Array):
        put = f"put_pairs(found, at, flattened({part}))"
        put = put if _is_complex(leaf) else f"found[at : at + {size}] = flattened({part})"
        return [f"check_count({part}.size, {leaf.text}.size)", put]
    if _is_complex(leaf):
        return [f"found[at] = {part}.real", f"found[at + 1] = {part}.imag"]
    return [f"found[at] = {part}"]


@inner_jitable
def _put_pairs(found, at, numbers):  # type: ignore[no-untyped-def]
    """Writes real and imaginary parts."""
    for i in range(numbers.size):
        found[at + 2 * i] = numbers[i].real
        found[at + 2 * i + 1] = numbers[i].imag


@inner_jitable
def _of_pairs(found, at, shape, dtype):  # type: ignore[no-untyped-def]
    """Complex numbers from their real and imaginary parts."""
    made = np.empty(shape, dtype)
    numbers = made.reshape(made.size)
    for i in range(numbers.size):
        numbers[i] = complex(found[at + 2 * i], found[at + 2 * i + 1])
    return made


def _plain_vector(value: Any, like: Any) -> Any:
    """Vector of an unknown that is a number or a vector."""
    if value == types.none:  # a cotangent that is not there
        return lambda value, like: value
    _check_kind(value, like, value, like)
    if not isinstance(like, types.Array):
        return (lambda value, like: value) if isinstance(value, types.Float) else lambda value, like: float(value)
    is_float = isinstance(value.dtype, types.Float)

    def vector(value, like):  # type: ignore[no-untyped-def]
        check_count(value.size, like.size)
        return value if is_float else value.astype(np.float64)

    return vector


def _check_kind(part: Any, wanted: Any, value: Type, like: Type) -> None:
    """Refuses a part of a value that is an array where the unknown is a number, or the reverse, or no real numbers."""
    is_array = isinstance(wanted, types.Array)
    item = part.dtype if isinstance(part, types.Array) else part
    is_complex = isinstance(wanted.dtype if is_array else wanted, types.Complex)
    is_number = isinstance(item, types.Number if is_complex else types.Float | types.Integer | types.Boolean)
    if is_number and isinstance(part, types.Array) == is_array and (not is_array or part.ndim == wanted.ndim):
        return
    raise SignatureError(
        f"the function of an equation returns {described(value)} for {described(like)}",
        "return real numbers with the structure of the unknown, one for each",
        "an equation needs as many values as unknowns",
        SourceLocation.here(),
    )


def flattened(array: Any) -> Any:
    """The elements of an array in the order of C."""
    raise NotImplementedError


@inner_overload(flattened, strict=False)
def _flattened_typed(array: Any) -> Any:
    if array.layout == "C":
        return lambda array: array.reshape(array.size)
    return lambda array: np.ascontiguousarray(array).reshape(array.size)


@inner_overload(shaped, strict=False)
def _shaped_typed(found: Any, like: Any) -> Any:
    if is_plain(like):
        return _plain_shaped(found, like)
    scope: dict[str, Any] = {"of_pairs": _of_pairs}
    lines, items = ["at = 0"], []
    for number, leaf in enumerate(leaves_of(like, "like")):
        scope[f"dtype{number}"] = as_dtype(element_type(leaf)).type
        items.append(f"made{number}")
        lines += [f"made{number} = {_taken_leaf(leaf, f'dtype{number}')}", f"at += {size_of_leaf(leaf)}"]
    made = structured(like, iter(items), scope)
    return written("shaped(found, like)", [*lines, f"return {made}"], scope)


def _taken_leaf(leaf: Leaf, dtype: str) -> str:
    """The expression of a leaf of a vector."""
    if not isinstance(leaf.type, types.Array):
        return f"{dtype}({'complex(found[at], found[at + 1])' if _is_complex(leaf) else 'found[at]'})"
    if _is_complex(leaf):
        return f"of_pairs(found, at, {leaf.text}.shape, {dtype})"
    return f"found[at : at + {leaf.text}.size].astype({dtype}).reshape({leaf.text}.shape)"


def _plain_shaped(found: Any, like: Any) -> Any:
    """An unknown that is a number or a vector, in its own precision."""
    if isinstance(found, types.Array):
        dtype = as_dtype(like.dtype).type
        return (lambda found, like: found) if found.dtype == like.dtype else lambda found, like: found.astype(dtype)
    dtype = as_dtype(like).type
    return (lambda found, like: found) if found == like else lambda found, like: dtype(found)


@inner_overload(started, strict=False)
def _started_typed(value: Any) -> Any:
    leaves, real = leaves_of(value, "value"), types.Float | types.Integer | types.Boolean
    if not leaves or not all(isinstance(element_type(leaf), real) for leaf in leaves):
        raise SignatureError(
            f"the solver of an equation starts from {described(value)}",
            "start from a number, an array of numbers, or a structure of these",
            "unknowns are real numbers, put into a vector",
            SourceLocation.here(),
        )
    return lambda value: with_floats(value)


@inner_overload(with_floats, strict=False)
def _with_floats_typed(value: Any) -> Any:
    if isinstance(value, types.Integer | types.Boolean):
        return lambda value: float(value)
    if isinstance(value, types.Array) and value.ndim == 0:
        return lambda value: with_floats(value[()])
    if isinstance(value, types.Array) and isinstance(value.dtype, types.Integer | types.Boolean):
        return lambda value: value.astype(np.float64)
    if isinstance(value, types.BaseTuple):
        scope: dict[str, Any] = {"of_part": with_floats}
        made = structured(value, iter([f"of_part({leaf.text})" for leaf in leaves_of(value, "value")]), scope)
        return written("with_floats(value)", [f"return {made}"], scope)
    return lambda value: copied(value)


@inner_overload(size_of, strict=False)
def _size_of_typed(found: Any) -> Any:
    if not isinstance(found, types.Array):
        return lambda found: abs(found)
    return lambda found: np.abs(found).max() if found.size > 0 else 0.0


@inner_overload(relative_size, strict=False)
def _relative_size_typed(found: Any, scales: Any) -> Any:
    if not isinstance(found, types.Array):
        return lambda found, scales: _ratio(found, scales)

    def largest(found, scales):  # type: ignore[no-untyped-def]
        most = 0.0
        for i in range(found.size):
            ratio = _ratio(found[i], scales[i])
            if not ratio <= most:
                most = ratio
            if np.isnan(most):
                break
        return most

    return largest


@inner_jitable
def _ratio(part, scale):  # type: ignore[no-untyped-def]
    if not np.isfinite(scale):
        return np.nan
    if part == 0.0:
        return 0.0
    return abs(part) / scale if scale > 0.0 else np.inf


@inner_overload(is_within, strict=False)
def _is_within_typed(change: Any, found: Any, rtol: Any, atol: Any) -> Any:
    if not isinstance(found, types.Array):
        return lambda change, found, rtol, atol: abs(change) <= atol + rtol * abs(found)
    return lambda change, found, rtol, atol: np.all(np.abs(change) <= atol + rtol * np.abs(found))


@inner_overload(larger, strict=False)
def _larger_typed(one: Any, other: Any) -> Any:
    if not isinstance(one, types.Array):
        return lambda one, other: max(abs(one), abs(other))
    return lambda one, other: np.maximum(np.abs(one), np.abs(other))


@inner_overload(epsilon_of, strict=False)
def _epsilon_of_typed(x: Any) -> Any:
    epsilon = max(float(np.finfo(as_dtype(element_type(leaf))).eps) for leaf in leaves_of(x))
    return lambda x: epsilon


@inner_overload(listed, strict=False)
def _listed_typed(found: Any) -> Any:
    return (lambda found: found) if isinstance(found, types.Array) else (lambda found: np.array([found]))


@inner_overload(like_listed, strict=False)
def _like_listed_typed(found: Any, like: Any) -> Any:
    return (lambda found, like: found) if isinstance(like, types.Array) else (lambda found, like: found[0])


def written(head: str, lines: list[str], scope: dict[str, Any]) -> Any:
    """The function with a head and the lines of a body."""
    body = "".join(f"    {line}\n" for line in lines)
    return function_from(head.partition("(")[0], f"def {head}:\n{body}", _FILE, scope)
