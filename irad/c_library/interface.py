"""The interface of functions in C: types, structs and prototypes of the header.

Numbers are passed by value. Complex numbers, arrays and tuples are structs, passed by address; so is the place of the
result. An array that is contiguous by its type has no strides. What the function cannot write to is `const`.

    float64                    double
    float64[::1]               const irad_f64_1d *          { double *data; int64_t shape[1]; }
    float64[:, :]              const irad_f64_2d_strided *  { double *data; int64_t shape[2]; int64_t strides[2]; }
    UniTuple(float64, 2)       const irad_t2_f64_f64 *      { double f0; double f1; }
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from llvmlite import ir
from numba.core import types
from numba.core.types import Type

from irad.errors import SignatureError
from irad.records import dataclass

_INTEGERS: Final = {f"{'u' if unsigned else ''}int{bits}" for unsigned in (False, True) for bits in (8, 16, 32, 64)}
_NUMBERS: Final[Mapping[str, tuple[str, str]]] = {
    "float32": ("float", "f32"),
    "float64": ("double", "f64"),
    "bool": ("bool", "bool"),
    "complex64": ("irad_complex64", "c64"),
    "complex128": ("irad_complex128", "c128"),
    **{name: (f"{name}_t", name.replace("uint", "u").replace("int", "i")) for name in _INTEGERS},
}
"""By Numba's name of a type, the one in C and its part in the names of structs."""
_RESERVED: Final = (
    "alignas alignof and asm auto bool break case catch char class const continue default delete do double else enum "
    "explicit export extern false float for friend goto if inline int long mutable namespace new not operator or "
    "private protected public register restrict return short signed sizeof static struct switch template this throw "
    "true try typedef typename typeof union unsigned using virtual void volatile while xor complex result"
)
_KEYWORDS: Final = frozenset(_RESERVED.split())
COMPLEX: Final = """\
#ifndef IRAD_COMPLEX
#define IRAD_COMPLEX
#ifdef __cplusplus
#include <complex>
typedef std::complex<float> irad_complex64;
typedef std::complex<double> irad_complex128;
#else
typedef float _Complex irad_complex64;
typedef double _Complex irad_complex128;
#endif
#endif
"""


def is_number(type_: Type) -> bool:
    """True if values of a type are numbers that C has."""
    return str(type_) in _NUMBERS


def by_value(type_: Type) -> bool:
    """True if C passes values of a type as they are, not by their address."""
    return is_number(type_) and not isinstance(type_, types.Complex)


def check(type_: Type, what: str) -> None:
    """Refuses a type that has no counterpart in C.

    Args:
        type_: of Numba.
        what: what has the type, for the message.

    Raises:
        SignatureError: names the type.
    """
    if isinstance(type_, types.BaseTuple):
        for each in type_.types:
            check(each, what)
    elif not (is_number(type_) or (isinstance(type_, types.Array) and type_.ndim > 0 and is_number(type_.dtype))):
        raise SignatureError(
            f"{what} is of the type {type_}, which an exported function cannot have",
            "pass and return numbers, arrays of numbers, and tuples of these",
            "C has no such type",
        )


def identifier(name: str) -> str:
    """A name as C takes it."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{plain}_" if plain in _KEYWORDS or not plain or plain[0].isdigit() else plain


def number_name(type_: Type) -> str:
    """The type of numbers in C."""
    return _NUMBERS[str(type_)][0]


def returned_layout(type_: types.Array) -> types.Array:
    """The type of an array in memory of the caller's: contiguous, and not read-only."""
    return types.Array(type_.dtype, type_.ndim, "F" if type_.layout == "F" else "C")


def returned(type_: Type) -> Type:
    """The type of a result as the caller gets it: its arrays are copies of their own."""
    if isinstance(type_, types.Array):
        return returned_layout(type_)
    if isinstance(type_, types.NamedTuple | types.NamedUniTuple):
        return types.NamedTuple([returned(each) for each in type_.types], type_.instance_class)
    if isinstance(type_, types.BaseTuple):
        return types.Tuple([returned(each) for each in type_.types])
    return type_


def layout_of(type_: Any) -> Any:
    """LLVM type of a value as C lays it out in memory."""
    if isinstance(type_, types.Array):
        extents = ir.ArrayType(ir.IntType(64), type_.ndim)
        return ir.LiteralStructType([ir.PointerType(ir.IntType(8)), *[extents] * (2 if type_.layout == "A" else 1)])
    if isinstance(type_, types.BaseTuple):
        return ir.LiteralStructType([layout_of(each) for each in type_.types])
    if isinstance(type_, types.Complex):
        return ir.LiteralStructType([layout_of(type_.underlying_float)] * 2)
    if isinstance(type_, types.Float):
        return ir.FloatType() if type_.bitwidth == 32 else ir.DoubleType()
    return ir.IntType(8 if isinstance(type_, types.Boolean) else type_.bitwidth)


class Structs:
    """The structs that a header needs."""

    def __init__(self) -> None:
        self._definitions: dict[str, str] = {}

    def name_of(self, type_: Type) -> str:
        """The name of a type in C; a struct is defined if need be."""
        if is_number(type_):
            return number_name(type_)
        name = f"irad_{_code(type_)}"
        if name not in self._definitions:
            members = "".join(f" {each};" for each in self._members(type_))
            self._definitions[name] = (
                f"#ifndef {name.upper()}\n#define {name.upper()}\ntypedef struct {{{members} }} {name};\n#endif\n"
            )
        return name

    def _members(self, type_: Any) -> Iterator[str]:
        if isinstance(type_, types.Array):
            yield f"{'' if type_.mutable else 'const '}{number_name(type_.dtype)} *data"
            yield f"int64_t shape[{type_.ndim}]"
            if type_.layout == "A":
                yield f"int64_t strides[{type_.ndim}]"
            return
        names = getattr(type_, "fields", None) or [f"f{i}" for i in range(len(type_.types))]
        for name, each in zip(names, type_.types, strict=True):
            yield f"{self.name_of(each)} {identifier(name)}"
        if not type_.types:
            # C has no empty structs.
            yield "char unused"

    def text(self) -> str:
        """The definitions, each after those that it needs."""
        return "".join(self._definitions.values())


def _code(type_: Type) -> str:
    """The part of a struct's name that tells it from others."""
    if isinstance(type_, types.Array):
        layout = {"C": "", "F": "_f" if type_.ndim > 1 else "", "A": "_strided"}[type_.layout]
        return f"{'' if type_.mutable else 'const_'}{_NUMBERS[str(type_.dtype)][1]}_{type_.ndim}d{layout}"
    if isinstance(type_, types.BaseTuple):
        head = f"t{len(type_.types)}"
        if isinstance(type_, types.NamedTuple | types.NamedUniTuple):
            head = f"{identifier(type_.instance_class.__name__)}_{head}"
        return "_".join((head, *map(_code, type_.types)))
    return _NUMBERS[str(type_)][1]


@dataclass(frozen=True, slots=True)
class Prototype:
    """A function as C calls it.

    Attributes:
        name: name of the function.
        parameters: types of its arguments by name.
        result: type of what it stores for the caller; `types.none` where it returns nothing.
        comment: its parameters and result as Numba writes them.
    """

    name: str
    parameters: tuple[tuple[str, Type], ...]
    result: Type
    comment: str

    def text(self, structs: Structs) -> str:
        """The declaration in C."""
        given = [
            f"{structs.name_of(type_)} {name}" if by_value(type_) else f"const {structs.name_of(type_)} *{name}"
            for name, type_ in self.parameters
        ]
        if self.result is not types.none:
            given.append(f"{structs.name_of(self.result)} *result")
        return f"/* {self.comment} */\nint32_t {self.name}({', '.join(given) or 'void'});\n"

    def llvm_parameters(self) -> list[str]:
        """LLVM types of the parameters."""
        found = [str(layout_of(type_)) if by_value(type_) else "ptr" for _, type_ in self.parameters]
        return found if self.result is types.none else [*found, "ptr"]


def header_text(
    library: str, prototypes: Sequence[Prototype], statuses: Mapping[str, tuple[int, str]], head: str
) -> str:
    """The header.

    Args:
        library: prefix of what belongs to no single function.
        prototypes: prototypes of the functions.
        statuses: by the name of an enumerator, its number and what it means.
        head: comment at the top.
    """
    structs, prefix = Structs(), identifier(library)
    guard = f"{prefix.upper()}_H"
    functions = "\n".join(each.text(structs) for each in prototypes)
    enumerators = "".join(
        f"  {prefix.upper()}_{name} = {number}, /* {meaning} */\n" for name, (number, meaning) in statuses.items()
    )
    return f"""\
/* {head} */
#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stdint.h>

{COMPLEX}
{structs.text()}
#ifdef __cplusplus
extern "C" {{
#endif

/* What the functions return. After an error, what `result` points to holds nothing. */
enum {prefix}_status {{
{enumerators}}};

{functions}
/* The text of the last error in this thread. */
const char *{prefix}_message(void);

/* Frees the data of an array that a function has returned; so does `free`. */
void {prefix}_free(void *data);

#ifdef __cplusplus
}}
#endif

#endif
"""
