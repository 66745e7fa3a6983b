from __future__ import annotations

import pytest

from irad.frontend.numba.convention import NUMBA
from irad.passes.request import MemoryType, ParameterKind, Request


def test_equal_requests_are_one_key():
    def request(**options):
        return Request("f", (ParameterKind.ACTIVE,), (MemoryType(8, ((0, "double"),)),), NUMBA, **options)

    assert request() == request()
    assert len({request(), request(), request(strict=True), request(plan="save_all")}) == 3


def test_defaults():
    request = Request("f", (), (), NUMBA)
    assert (request.plan, request.arguments_may_change, request.strict) == ("default", False, False)


@pytest.mark.parametrize(
    ("stride", "fields", "lone"),
    [
        (8, ((0, "double"),), "double"),
        (16, ((0, "double"), (8, "double")), "double"),
        (16, ((0, "double"),), None),
        (16, ((0, "i64"), (8, "double")), None),
        (4, ((0, "float"),), "float"),
        (8, (), None),
    ],
)
def test_memory_of_one_float_type(stride, fields, lone):
    assert MemoryType(stride, fields).lone_float() == lone
