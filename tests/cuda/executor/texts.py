"""Kernels in the kernel dialect, written by hand: heads for all, and bodies."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from irad.backend.cuda.kernel import KernelModule
from irad.backend.executor.kernel import ExecutableKernel, load
from irad.backend.executor.launch import Extent

_AXES: Final = "xyz"
HEAD: Final = "\n".join(
    [
        'target triple = "nvptx64-nvidia-cuda"',
        *(
            f"declare i32 @llvm.nvvm.read.ptx.sreg.{word}.{axis}()"
            for word in ("tid", "ntid", "ctaid", "nctaid")
            for axis in _AXES
        ),
        "declare i32 @llvm.nvvm.read.ptx.sreg.laneid()",
        "declare i32 @llvm.nvvm.read.ptx.sreg.warpsize()",
        "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) convergent nounwind",
        *(f"declare i32 @irad.cuda.barrier.{word}(i32) convergent nounwind" for word in ("popc", "and", "or")),
        "declare void @llvm.nvvm.bar.warp.sync(i32) convergent nounwind",
        *(f"declare void @llvm.nvvm.membar.{scope}()" for scope in ("cta", "gl", "sys")),
        *(
            f"declare {spelled} @irad.cuda.shfl.{mode}.{short}(i32, {spelled}, i32) convergent nounwind"
            for mode in ("idx", "up", "down", "bfly")
            for short, spelled in (("i32", "i32"), ("i64", "i64"), ("f32", "float"), ("f64", "double"))
        ),
        *(
            f"declare i32 @irad.cuda.vote.{mode}(i32, i32) convergent nounwind"
            for mode in ("all", "any", "uni", "ballot")
        ),
        *(f"declare i32 @irad.cuda.match.any.{t}(i32, {t}) convergent nounwind" for t in ("i32", "i64")),
        "declare i32 @irad.cuda.activemask() convergent nounwind",
        "declare i32 @irad.cuda.lanemask.lt()",
        "declare i32 @irad.cuda.dynamic_shared_size()",
        "",
    ]
)
INDEX: Final = """
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %d = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %before = mul i32 %b, %d
  %i.32 = add i32 %before, %t
  %i = sext i32 %i.32 to i64
  %t.64 = sext i32 %t to i64
"""
"""`%i` is the index of the thread in a grid along x, `%t.64` that in its block."""
BARRIER: Final = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"


def kernel(parameters: str, body: str, outside: str = "") -> KernelModule:
    """A kernel ``k`` whose body begins with the indices."""
    text = f"{HEAD}{outside}\ndefine ptx_kernel void @k({parameters}) {{\nentry:{INDEX}{body}\n}}\n"
    return KernelModule(text, "k")


def with_lines(module: KernelModule) -> KernelModule:
    """The same with a source line for each instruction: that of the text, in the file kernel.py."""
    lines, inside, nodes = list[str](), False, list[str]()
    for number, line in enumerate(module.text.splitlines(), 1):
        if line.startswith("define"):
            inside, line = True, line.replace(" {", " !dbg !0 {")
        elif line.startswith("}"):
            inside = False
        elif inside and line.startswith("  ") and line.strip():
            nodes.append(f"!{number + 10} = !DILocation(line: {number}, column: 1, scope: !0)")
            line += f", !dbg !{number + 10}"
        lines.append(line)
    debug = [
        "!llvm.dbg.cu = !{!2}",
        "!llvm.module.flags = !{!4}",
        '!0 = distinct !DISubprogram(name: "k", file: !1, line: 1, type: !3, unit: !2, spFlags: DISPFlagDefinition)',
        '!1 = !DIFile(filename: "kernel.py", directory: "/src")',
        "!2 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !1, emissionKind: FullDebug)",
        "!3 = !DISubroutineType(types: !{null})",
        '!4 = !{i32 2, !"Debug Info Version", i32 3}',
    ]
    return KernelModule("\n".join([*lines, *debug, *nodes, ""]), module.name)


def line_of(module: KernelModule, words: str, occurrence: int = 0) -> int:
    """The line of the text on which some words stand."""
    found = [number for number, line in enumerate(module.text.splitlines(), 1) if words in line]
    return found[occurrence]


def run(
    module: KernelModule,
    blocks: int | tuple[int, int, int],
    threads: int | tuple[int, int, int],
    *arguments: Any,
    races: bool = False,
    known: bool = False,
    **options: Any,
) -> Any:
    """Runs a kernel; arrays are given by their addresses.

    Args:
        known: whether the arrays are all that the kernel may touch. Without races it is a hint for the comparison with
            PTX alone.
    """
    grid = (blocks, 1, 1) if isinstance(blocks, int) else blocks
    block = (threads, 1, 1) if isinstance(threads, int) else threads
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    if known or not races:
        options["extents"] = [Extent(a.ctypes.data, a.nbytes, f"a{n}", a.itemsize) for n, a in enumerate(arrays)]
    flat = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    return executable(module, races=races).run(grid, block, flat, **options)


def executable(module: KernelModule, *, races: bool = False) -> ExecutableKernel:
    """The kernel, loaded."""
    return load(module, races=races)
