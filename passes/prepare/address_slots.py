"""Gives local variables that hold addresses as integers the type of pointers back.

Input   a function.
Output  the function, rewritten in place.
Method  LLVM splits a block of local memory into variables, and makes an `i64` of one that is cleared and then holds a
        pointer. A variable in which nothing but addresses and zeros are stored holds pointers.

    %slot = alloca i64                  %slot = alloca ptr
    %a = ptrtoint ptr %p to i64
    store i64 %a, ptr %slot             store ptr %p, ptr %slot
"""

from __future__ import annotations

from irad.ir import types
from irad.ir.instructions import Alloca, Cast, Store
from irad.ir.module import Function
from irad.ir.values import ConstantInt, ConstantNull, Value


def retype_address_slots(function: Function) -> None:
    """Rewrites all such variables of a function."""
    for inst in function.instructions():
        if isinstance(inst, Alloca) and inst.allocated_type is types.I64:
            stores = [user for user in inst.users if isinstance(user, Store) and user.operands[1] is inst]
            values = [_pointer(store.operands[0]) for store in stores]
            if all(values) and not all(isinstance(value, ConstantNull) for value in values):
                inst.allocated_type = types.PTR
                for store, value in zip(stores, values, strict=True):
                    assert value is not None
                    store.set_operand(0, value)


def _pointer(value: Value) -> Value | None:
    """The pointer whose address an integer is."""
    match value:
        case Cast(opcode="ptrtoint", operands=[pointer]):
            return pointer
        case ConstantInt(value=0):
            return ConstantNull(types.PTR)
        case _:
            return None
