"""Instances of jitclasses as containers of their fields."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import types
from numba.core.base import BaseContext
from numba.experimental.jitclass._box import Box
from numba.experimental.jitclass.base import imp_dtor
from numba.extending import intrinsic

from irad.data.recursive.containers import with_fields
from irad.data.recursive.kinds import Container, add_family


def _of_jitclass(cls: type) -> Container | None:
    if not issubclass(cls, Box):
        return None
    return with_fields(lambda value: tuple(value._numba_type_.struct), _copied, mutable=True)


@intrinsic
def _copied_instance(_typing_context: Any, instance: Any) -> Any:
    """A new instance whose fields are those of another one."""

    def generate(context: BaseContext, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.return_type
        layout = kind.get_data_type()
        fields = context.get_data_type(layout)
        size = ir.IntType(types.uintp.bitwidth)(context.get_abi_sizeof(fields))
        made = context.make_helper(builder, kind)
        made.meminfo = context.nrt.meminfo_alloc_dtor(builder, size, imp_dtor(context, builder.module, kind))
        made.data = builder.bitcast(context.nrt.meminfo_data(builder, made.meminfo), fields.as_pointer())
        source = context.make_helper(builder, kind, value=arguments[0]).data
        held = context.data_model_manager[layout].load_from_data_pointer(builder, source)
        context.nrt.incref(builder, layout, held)
        builder.store(builder.load(source), made.data)
        return made._getvalue()

    return instance(instance), generate


@cache
def _copier() -> Any:
    return njit(lambda instance: _copied_instance(instance))


def _copied(instance: Any) -> Any:
    return _copier()(instance)


add_family(_of_jitclass)
