"""Numba's types."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any as Anything

import numpy as np
from numba.core.typing import Signature

class Type:
    name: str
    mutable: bool
    reflected: bool
    key: Anything
    mangling_args: tuple[str, tuple[Anything, ...]]
    _code: int
    def __init__(self, name: str) -> None: ...
    def __call__(self, *args: Anything) -> Anything: ...
    def is_precise(self) -> bool: ...

class Opaque(Type): ...
class Dummy(Type): ...
class Phantom(Type): ...

class Number(Type):
    bitwidth: int

class Integer(Number):
    signed: bool

class Float(Number): ...

class Complex(Number):
    underlying_float: Float

class Boolean(Type): ...
class NoneType(Opaque): ...
class UnicodeType(Type): ...
class RawPointer(Type): ...

class Literal(Type):
    literal_value: Anything
    literal_type: Type

class Omitted(Type):
    value: Anything
    value_typeclass: type
    def __init__(self, value: object) -> None: ...

class Optional(Type):
    type: Type
    def __init__(self, typ: Type) -> None: ...

class CPointer(Type):
    dtype: Type
    def __init__(self, dtype: Type, addrspace: int | None = ...) -> None: ...

class MemInfoPointer(Type):
    dtype: Type
    def __init__(self, dtype: Type) -> None: ...

class Buffer(Type):
    dtype: Anything
    ndim: int
    layout: str
    aligned: bool

class Array(Buffer):
    readonly: bool
    def __init__(
        self,
        dtype: Type,
        ndim: int,
        layout: str,
        readonly: bool = ...,
        name: str | None = ...,
        aligned: bool = ...,
    ) -> None: ...
    def copy(
        self, dtype: Type | None = ..., ndim: int | None = ..., layout: str | None = ..., readonly: bool | None = ...
    ) -> Array: ...

class NestedArray(Array):
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    nitems: int
    size: int
    def __init__(self, dtype: Type, shape: tuple[int, ...]) -> None: ...

class RecordField:
    type: Type
    offset: int

class Record(Type):
    fields: dict[str, RecordField]
    size: int
    aligned: bool
    bitwidth: int
    dtype: np.dtype[Anything]
    members: list[tuple[str, Type]]
    def offset(self, key: str) -> int: ...
    def typeof(self, key: str) -> Type: ...

class BaseTuple(Type):
    types: tuple[Type, ...]
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Type]: ...
    def __getitem__(self, index: int) -> Type: ...
    @classmethod
    def from_types(cls, tys: Iterable[Type], pyclass: type | None = ...) -> BaseTuple: ...

class Tuple(BaseTuple):
    def __init__(self, types: Iterable[Type]) -> None: ...

class UniTuple(BaseTuple):
    dtype: Type
    count: int
    def __init__(self, dtype: Type, count: int) -> None: ...

class StarArgTuple(Tuple): ...
class StarArgUniTuple(UniTuple): ...

class BaseNamedTuple(BaseTuple):
    instance_class: Anything
    fields: tuple[str, ...]

class NamedTuple(BaseNamedTuple):
    def __init__(self, types: Iterable[Type], cls: type) -> None: ...

class NamedUniTuple(BaseNamedTuple):
    dtype: Type
    count: int
    def __init__(self, dtype: Type, count: int, cls: type) -> None: ...

class List(Type):
    dtype: Type
    def __init__(self, dtype: Type, reflected: bool = ..., initial_value: object = ...) -> None: ...
    def copy(self, dtype: Type | None = ..., reflected: bool | None = ...) -> List: ...

class Set(Type):
    dtype: Type

class ListPayload(Type):
    def __init__(self, container: Type) -> None: ...

class SetPayload(Type):
    def __init__(self, container: Type) -> None: ...

class SetEntry(Type):
    def __init__(self, set_type: Type) -> None: ...

class ListType(Type):
    item_type: Type
    dtype: Type
    def __init__(self, itemty: Type) -> None: ...

class DictType(Type):
    key_type: Type
    value_type: Type
    def __init__(self, keyty: Type, valty: Type, initial_value: object = ...) -> None: ...

class ClassType(Type):
    class_name: str
    instance_type: ClassInstanceType
    jit_methods: Mapping[str, Anything]

class ClassInstanceType(Type):
    class_type: ClassType
    struct: Mapping[str, Type]

class StructRef(Type):
    field_dict: Mapping[str, Type]

class Callable(Type):
    def get_impl_key(self, sig: Signature) -> Anything: ...
    def get_call_type(self, context: Anything, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Signature | None: ...

class Dispatcher(Callable):
    dispatcher: Anything
    def __init__(self, dispatcher: object) -> None: ...

class Function(Callable):
    templates: tuple[Anything, ...]
    typing_key: Anything

class BoundFunction(Callable):
    this: Type

class RecursiveCall(Callable):
    dispatcher_type: Dispatcher

class ExternalFunction(Function):
    symbol: str
    sig: Signature
    def __init__(self, symbol: str, sig: Signature) -> None: ...

class ExternalFunctionPointer(Function):
    sig: Signature
    get_pointer: Anything

class FunctionType(Type):
    ftype: Type
    signature: Signature
    def get_precise(self) -> FunctionType: ...

class Module(Type):
    pymod: Anything

class Generator(Type):
    yield_type: Type

class EnumMember(Type):
    dtype: Type
    instance_class: type

none: NoneType
void: NoneType
voidptr: RawPointer
pyobject: Opaque
boolean: Boolean
int8: Integer
int16: Integer
int32: Integer
int64: Integer
intp: Integer
uint8: Integer
uint64: Integer
uintp: Integer
float32: Float
float64: Float
complex64: Complex
complex128: Complex
unicode_type: UnicodeType

def unliteral(type: Type) -> Type: ...
def literal(value: object) -> Literal: ...
def __getattr__(name: str) -> Anything: ...
