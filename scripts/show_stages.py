#!/usr/bin/env python3
"""Prints what becomes of a small function on its way to its derivative, stage by stage; docs/architecture.md quotes it.

scripts/show_stages.py [save_all]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
from numba import float64

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from irad.backend.runtime import runtime_text
from irad.frontend.numba_cpu import load_program
from irad.ir.instructions import Load
from irad.ir.module import Function
from irad.ir.parser import parse_module
from irad.ir.printer import format_value, print_function, print_module
from irad.ir.types import PointerType
from irad.passes.derivative import analyse, generate
from irad.passes.prepare import prepare
from irad.passes.program import Program
from irad.passes.request import MemoryType, ParameterKind, Request
from irad.passes.unit import Unit, Variant
from irad.rules import ALL
from irad.ruleset.registry import Registry


@numba.njit(error_model="numpy")
def energy(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i]) * x[i]
    return total


CONST, SHADOW = ParameterKind.CONST, ParameterKind.SHADOW
DOUBLES, POINTERS = MemoryType(8, ((0, "double"),)), MemoryType(8, ((0, "ptr"),))
# Return slot, exception slot; then the array: owner, parent, size, item size, data, shape, strides.
KINDS = (SHADOW, CONST, CONST, CONST, CONST, CONST, SHADOW, CONST, CONST)
MEMORY = (DOUBLES, POINTERS, None, None, None, None, DOUBLES, None, None)


def main() -> None:
    plan = sys.argv[1] if len(sys.argv) > 1 else "default"
    program = load_program(energy, (float64[::1],))
    registry = Registry.of(*ALL)
    request = Request(program.entry, KINDS, MEMORY, plan=plan)
    module = parse_module(program.text)
    prepare(module)
    entry = module.functions[program.entry]
    show("1 normal form, prepared", print_function(entry))
    variant = Variant(entry, request.kinds, request.memory, False, False, is_entry=True)
    show("2 analyses", "\n".join(explanations(analyse(Program(module, registry, request), variant))))
    (made, *_) = generate(module, request, registry).pairs
    show("3 forward sweep", print_function(made.pair.augmented))
    show("4 reverse sweep", print_function(made.pair.reverse))
    reasons = [f"{format_value(v)}: {made.plan.explain(v)}" for v in made.plan.reasons]
    show("5 plan", "\n".join(sorted(reasons)))
    show("6 reverse sweep, optimised", optimised(print_module(module), made.pair.reverse))


def explanations(unit: Unit) -> list[str]:
    """What the analyses say, line by line."""
    lines = []
    for value in [*unit.function.params, *unit.function.instructions()]:
        if value.name is None:
            continue
        if isinstance(value.type, PointerType):
            lines.append(f"%{value.name}: {unit.points_to.explain(value)}")
        else:
            lines.append(f"%{value.name}: {unit.activity.explain(value)}")
        if isinstance(value, Load):
            lines.append(f"    its memory: {unit.effects.explain(value.operands[0], value)}")
    return lines


def optimised(text: str, function: Function) -> str:
    """A function after LLVM's pipeline, without vectorising and unrolling, so that it stays readable."""
    module = llvm.parse_assembly(text)
    module.link_in(llvm.parse_assembly(runtime_text()))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    options = llvm.create_pipeline_tuning_options(3)
    options.loop_unrolling = options.loop_vectorization = False
    machine = llvm.Target.from_default_triple().create_target_machine()
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(module.get_function(function.name))


def show(title: str, text: str) -> None:
    print(f"---- {title}\n")
    short = re.sub(r"_ZN[\w.]*?(?=\.irad|\")", "energy", text)
    print(re.sub(r"(, )?!(dbg|alias\.scope|noalias|tbaa|prof) ![0-9]+", "", short), "\n")


main()
