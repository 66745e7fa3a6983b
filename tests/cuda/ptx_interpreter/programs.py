"""Small programs in PTX, and what they leave in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.cuda.ptx_interpreter.launch import launch
from tests.cuda.ptx_interpreter.machine import IN_STEP, Order
from tests.cuda.ptx_interpreter.memory import Region
from tests.cuda.ptx_interpreter.types import PRED, PtxType, ptx_type

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
_FIRST = 1 << 20
_APART = 1 << 16


def kernel(body: str, parameters: int = 1, outside: str = "") -> str:
    """A module with one kernel, whose parameters are addresses `p0`, `p1`, …; `%p0` and so on hold them.

    Args:
        body: instructions; registers are `%p<8>`, `%r<20>`, `%rd<20>`, `%h<8>`, `%f<8>`, `%d<8>`; predicates `%q<8>`.
        outside: variables and functions of the module.
    """
    listed = ",\n".join(f"  .param .u64 p{number}" for number in range(parameters))
    loads = "\n".join(f"  ld.param.u64 %p{number}, [p{number}];" for number in range(parameters))
    registers = "  .reg .b64 %p<8>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .b16 %h<8>; .reg .f32 %f<8>;\n"
    registers += "  .reg .f64 %d<8>; .reg .pred %q<8>;\n"
    return f"{HEAD}{outside}\n.visible .entry k(\n{listed}\n)\n{{\n{registers}{loads}\n{body}\n  ret;\n}}\n"


def run(
    ptx: str,
    arrays: Sequence[Any],
    threads: int = 32,
    blocks: int = 1,
    *,
    shared: int = 0,
    order: Order = IN_STEP,
    races: bool = True,
) -> list[Any]:
    """Runs a kernel on copies of arrays, and returns what it leaves in them."""
    copies = [np.ascontiguousarray(each).copy() for each in arrays]
    addresses = [_FIRST + _APART * number for number in range(len(copies))]
    regions = [
        Region(address, each.view(np.uint8).reshape(-1), f"p{number}")
        for number, (address, each) in enumerate(zip(addresses, copies, strict=True))
    ]
    launch(ptx, (blocks, 1, 1), (threads, 1, 1), addresses, regions, shared=shared, order=order, races=races)
    return copies


def evaluate(instruction: str, result: str, **operands: tuple[str, Any]) -> Any:
    """What an instruction gives for each element of arrays.

    Args:
        instruction: of registers `%result` and those named as the operands.
        result: type of the result.
        operands: type and values of each.
    """
    arrays = np.broadcast_arrays(*(np.asarray(values, ptx_type(type_).dtype) for type_, values in operands.values()))
    types = {name: ptx_type(type_) for name, (type_, _) in operands.items()}
    lines = ["mov.u32 %r0, %tid.x;"]
    for number, (name, type_) in enumerate(types.items()):
        lines += [_register(name, type_), *_element(type_, number), *_loaded(f"%{name}", type_)]
    found, last = ptx_type(result), len(arrays)
    lines += [_register("result", found), f"{instruction};", *_element(found, last), *_stored(found)]
    empty = np.zeros(arrays[0].shape, found.dtype)
    return run(kernel("\n".join(lines), last + 1), [*arrays, empty], arrays[0].size)[-1]


def _register(name: str, type_: PtxType) -> str:
    return f".reg .{'pred' if type_ is PRED else f'b{max(type_.bits, 16)}'} %{name};"


def _element(type_: PtxType, number: int) -> list[str]:
    return [f"mad.wide.u32 %rd0, %r0, {type_.size}, %p{number};"]


def _loaded(register: str, type_: PtxType) -> list[str]:
    if type_ is PRED:
        return ["ld.global.u8 %h0, [%rd0];", f"setp.ne.b16 {register}, %h0, 0;"]
    return [f"ld.global.{_memory(type_)} {register}, [%rd0];"]


def _stored(type_: PtxType) -> list[str]:
    if type_ is PRED:
        return ["selp.b16 %h0, 1, 0, %result;", "st.global.b8 [%rd0], %h0;"]
    return [f"st.global.{_memory(type_)} [%rd0], %result;"]


def _memory(type_: PtxType) -> str:
    return f"b{type_.bits}" if type_.bits != 8 else type_.name
