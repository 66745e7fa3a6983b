"""Instances of jitclasses as containers of their fields; typed lists and dictionaries.

Python has no objects in them: it is given a new one for the same memory whenever it asks for a member.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

from llvmlite import ir
from numba import njit, typed
from numba.core import types
from numba.core.base import BaseContext
from numba.experimental.jitclass.base import imp_dtor
from numba.extending import intrinsic

from irad.data.recursive.kinds import OTHER_DICTIONARY, OTHER_LIST, Container, add_family, set_kind, with_fields
from irad.frontend.numba import internals


def _of_jitclass(cls: type) -> Container | None:
    if not internals.is_jitclass(cls):
        return None
    of_fields = with_fields(lambda value: tuple(value._numba_type_.struct), _copied, mutable=True)
    return dataclasses.replace(of_fields, built=None, identity=_address_of_instance, makes_members=True)


def _address_of_instance(value: Any) -> Any:
    return (internals.address_of_instance(value),)


def _address(value: Any) -> Any:
    """Address of a typed list or dictionary, which has no memory before it has a type."""
    address = internals.address_of_container(value)
    return id(value) if address is None else (address,)


@intrinsic
def copied_instance(_typing_context: Any, instance: Any) -> Any:
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
    return njit(lambda instance: copied_instance(instance))


def _copied(instance: Any) -> Any:
    return _copier()(instance)


add_family(_of_jitclass)
for _cls, _kind in ((typed.List, OTHER_LIST), (typed.Dict, OTHER_DICTIONARY)):
    set_kind(_cls, dataclasses.replace(_kind, identity=_address, makes_members=True))
