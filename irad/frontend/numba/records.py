"""Records that own their memory: gradients with respect to records, and records that a derivative passes on.

A record of Numba is a pointer into memory of somebody else, of an array as a rule, and no tuple that holds one can be
returned. So in compiled code the records that irad makes are arrays without dimensions, whose item is the record;
Python is given a record.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.datamodel.models import ArrayModel
from numba.extending import box, register_model
from numba.np.arrayobj import make_array, populate_array

from irad.frontend.numba.untyped import types


class OwnedRecord(types.Array):
    """An array without dimensions that becomes a record where it leaves compiled code."""

    def __init__(self, record: Any) -> None:
        super().__init__(record, 0, "C", name=f"irad.OwnedRecord({record})")


register_model(OwnedRecord)(ArrayModel)


@box(OwnedRecord)
def _box_owned_record(numba_type: Any, value: Any, c: Any) -> Any:
    data = make_array(numba_type)(c.context, c.builder, value).data
    size = ir.Constant(ir.IntType(32), numba_type.dtype.size)
    pointer = c.builder.bitcast(data, ir.IntType(8).as_pointer())
    record = c.pyapi.recreate_record(pointer, size, numba_type.dtype.dtype, c.env_manager)
    c.context.nrt.decref(c.builder, numba_type, value)
    return record


def owned_record(context: Any, builder: Any, record: Any, meminfo: Any, data: Any) -> Any:
    """A value of type `OwnedRecord`.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        record: the type of the record.
        meminfo: whose reference the value takes over.
        data: where the record lies in its memory.
    """
    array = make_array(OwnedRecord(record))(context, builder)
    pointer = builder.bitcast(data, array.data.type)
    populate_array(array, pointer, (), (), cgutils.intp_t(record.size), meminfo)
    return array._getvalue()
