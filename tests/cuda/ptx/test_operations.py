"""Every operation of the kernel dialect becomes the instruction that CUDA has for it, and ptxas takes it."""

from __future__ import annotations

import pytest

from irad.backend.cuda.ptx import compile_ptx
from irad.backend.cuda.toolkit import assemble
from tests.cuda.ptx.operations import ALL, Operation, kernel_of
from tests.cuda.ptx.tools import ARCHITECTURES, needs_ptxas


@pytest.mark.parametrize("operation", ALL, ids=[operation.name for operation in ALL])
def test_an_operation_becomes_its_instruction(operation: Operation):
    ptx = compile_ptx(kernel_of([operation]))
    found, start = [], ptx.index("{")
    for wanted in operation.ptx:
        place = ptx.find(wanted, start)
        assert place >= 0, f"{wanted!r} is missing behind {found}:\n{ptx}"
        found.append(wanted)
        start = place + len(wanted)
    assert "irad.cuda" not in ptx
    assert ".extern" not in ptx, "nothing is left to be linked"


@needs_ptxas
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_ptxas_takes_all_of_them(arch: str):
    done = assemble(compile_ptx(kernel_of(ALL), arch), arch)
    assert done.cubin[:4] == b"\x7fELF"
    assert done.arch == arch
    assert done.barriers == 1


def test_a_shuffle_of_64_bits_puts_its_halves_together_again():
    """Which half each register holds, from where the number is split to where it is stored."""
    [shuffle] = (each for each in ALL if each.name == "irad.cuda.shfl.idx.i64")
    half, stored = {}, {}
    for line in compile_ptx(kernel_of([shuffle])).splitlines():
        match line.translate(str.maketrans(",{}[];", " " * 6)).split():
            case ["cvt.u32.u64", low, _]:
                half[low] = "low"
            case ["mov.b64", "_", high, _]:
                half[high] = "high"
            case ["shfl.sync.idx.b32", target, source, *_]:
                half[target] = f"{half[source]}, of another lane"
            case ["st.volatile.global.b32", address, value]:
                stored[address.partition("+")[2]] = half[value]
    assert stored == {"": "low, of another lane", "4": "high, of another lane"}
