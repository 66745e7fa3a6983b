from irad.ir import types
from irad.ir.types import holds_floats


def test_types_that_hold_floats():
    aggregates = types.array_type(2, types.DOUBLE), types.struct_type([types.I64, types.DOUBLE])
    vector = types.vector_type(2, types.FLOAT)
    assert all(map(holds_floats, (types.DOUBLE, types.FLOAT, vector, *aggregates)))
    others = types.struct_type([types.I64, types.PTR]), types.vector_type(2, types.I64)
    assert not any(map(holds_floats, (types.I64, types.PTR, types.VOID, *others)))
