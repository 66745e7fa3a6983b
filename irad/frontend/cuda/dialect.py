"""From Numba's modules to one module in the kernel dialect (`irad.backend.cuda`).

Input   the modules as Numba lowers them: LLVM text for NVVM.
Output  text of one module, linked, not optimised.
Method  LLVM parses and links; parsing upgrades what older LLVM wrote. The module is then rewritten as irad's objects:
        calls of what only NVVM knows and inline PTX become operations of the dialect (`operations`), shared memory and
        the parameters get their names, and what serves nothing outside Numba goes. Products and sums may be fused, as
        Numba has it for GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain, count

import llvmlite.binding as llvm

from irad.backend.cuda.kernel import DYNAMIC_SHARED, TRIPLE
from irad.backend.cuda.lowering import allow_contraction
from irad.frontend.cuda import operations
from irad.frontend.cuda.exceptions import take_record
from irad.frontend.cuda.numba_cuda import KernelOptions, Lowered
from irad.ir import types
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import Alloca, Cast, Instruction, Store, replace_uses
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.values import GlobalVariable, Value
from irad.kernel.operations import give_bodies
from irad.source_text import assigned_variable


def to_dialect(lowered: Lowered, options: KernelOptions) -> tuple[str, list[str], bool]:
    """The text of a kernel, the names of its parameters, and whether a record of exceptions follows these.

    Raises:
        UnsupportedError: it uses inline PTX or an operation of NVVM that the dialect does not have.
    """
    module = parse_module(_linked(lowered.texts))
    module.layout = data_layout()
    kernel = module.functions[lowered.symbol]
    _name_parameters(kernel, module.functions[lowered.body], lowered)
    names = [str(parameter.name) for parameter in kernel.params]
    raises = take_record(module, kernel)
    _drop_numbas_own(module)
    for function in module.defined_functions():
        _drop_variables(function)
        operations.rewrite(module, function)
        if function is not kernel:
            function.prefix = ("internal",)
            # It may wait for other threads; where it cannot, LLVM finds that out and drops the word.
            function.attributes += ("convergent",)
    give_bodies(module)  # of `irad.stop_gradient` and of marks of shortcuts, which are called by name
    _name_arrays(module)
    _name_shared_memory(module)
    kernel.convention = "ptx_kernel"
    kernel.attributes += tuple(_for_the_assembler(options))
    _drop_unused(module)
    allow_contraction(module)
    return print_module(module), names, raises


@cache
def data_layout() -> str:
    """Data layout of LLVM's target for NVIDIA's GPUs."""
    llvm.initialize_all_targets()
    return str(llvm.Target.from_triple(TRIPLE).create_target_machine().target_data)


def _linked(texts: tuple[str, ...]) -> str:
    module = llvm.parse_assembly(texts[0])
    for text in texts[1:]:
        module.link_in(llvm.parse_assembly(text))
    return str(module)


def _name_parameters(kernel: Function, body: Function, lowered: Lowered) -> None:
    """Names the parameters `arg.x.0`, `arg.x.1`, …, as Numba does in the function that the kernel was made of.

    That function may be another one, which has a parameter for the result in front, or the kernel itself, where
    numba-cuda leaves out the `arg`.
    """
    named = body.params if kernel is body else body.params[1:]
    owners = (name for (name, _), count in zip(lowered.arguments, lowered.counts, strict=True) for _ in range(count))
    for parameter, source, owner in zip(kernel.params, named, owners, strict=True):
        given = str(source.name)
        parameter.name = f"arg.{given}" if given == owner or given.startswith(f"{owner}.") else given


def _for_the_assembler(options: KernelOptions) -> Iterator[str]:
    """Attributes of the kernel: registers of a thread; threads of a block, blocks of a processor and of a cluster."""
    limits = options.max_registers, *options.launch_bounds
    for name, limit in zip(("maxnreg", "maxntid", "minctasm", "maxclusterrank"), limits, strict=False):
        if limit is not None:
            yield f'"nvvm.{name}"="{limit}"'


def _drop_numbas_own(module: Module) -> None:
    """Drops the module's metadata for NVVM and Numba."""
    module.globals.pop("llvm.used", None)
    for name in ("nvvmir.version", "nvvm.annotations"):
        module.named_metadata.pop(name, None)


def _drop_variables(function: Function) -> None:
    """Drops debug information on variables; lines stay."""
    for block in function.blocks:
        block.trailing_records = ()
        for inst in block.instructions:
            inst.debug_records = ()


def _name_arrays(module: Module) -> None:
    """Names arrays in shared, constant and local memory after the variables that they are assigned to, for messages."""
    debug = DebugInfo(module)
    for variable in list(module.globals.values()):
        is_shared = "addrspace(3)" in variable.prefix
        if variable.initializer is not None and (is_shared or "addrspace(4)" in variable.prefix):
            name = _assigned(variable, debug)
            if name is not None:
                del module.globals[str(variable.name)]
                variable.name = _fresh(module, name if is_shared else f"constant.{name}")
                module.globals[variable.name] = variable
    for function in module.defined_functions():
        for inst in function.entry.instructions:
            if isinstance(inst, Alloca) and str(inst.name).startswith("_cudapy_lmem"):
                name = _assigned(inst, debug)
                inst.name = inst.name if name is None else f"local.{name}.{str(inst.name).removeprefix('_cudapy_lmem')}"


def _assigned(array: GlobalVariable | Alloca, debug: DebugInfo) -> str | None:
    """The variable that an array is assigned to when it is made."""
    casts = [inst for inst in array.users if isinstance(inst, Cast) and "dbg" in inst.metadata]
    for cast in reversed(casts):
        for store in reversed(_stores_beside(cast)):
            if _is_variable(store.operands[1]):
                return str(store.operands[1].name).partition(".")[0]
        place = debug.location(cast)
        if place is not None:
            return assigned_variable(place.file, place.line)
    return None


def _stores_beside(inst: Instruction) -> list[Store]:
    """The stores of the same statement."""
    block = inst.block
    same = block.instructions if block is not None else []
    return [each for each in same if isinstance(each, Store) and each.metadata.get("dbg") == inst.metadata["dbg"]]


def _is_variable(place: Value) -> bool:
    """True if memory is that of a variable of the user's: Numba numbers what it makes itself."""
    return isinstance(place, Alloca) and (place.name or "").partition(".")[0].isidentifier()


def _fresh(module: Module, name: str) -> str:
    taken = module.globals.keys() | module.functions.keys()
    return next(each for each in chain([name], (f"{name}.{n}" for n in count(1))) if each not in taken)


def _name_shared_memory(module: Module) -> None:
    """All dynamic shared memory is one variable, in Numba as in CUDA; static shared memory is internal."""
    shared = [each for each in module.globals.values() if "addrspace(3)" in each.prefix]
    dynamic = [each for each in shared if each.initializer is None]
    for each in shared:
        if each not in dynamic:
            each.prefix = ("internal", "addrspace(3)")
    if not dynamic:
        return
    one = dynamic[0]
    for each in dynamic:
        del module.globals[str(each.name)]
        if each is not one:
            replace_uses(each, one)
    one.name, one.prefix, one.suffix = DYNAMIC_SHARED, ("external", "addrspace(3)"), ("align 16",)
    one.value_type = types.array_type(0, types.I8)
    module.globals[DYNAMIC_SHARED] = one


def _drop_unused(module: Module) -> None:
    """Drops variables that nobody uses, such as those in which Numba records exceptions, and declarations."""
    module.globals = {name: each for name, each in module.globals.items() if each.users or not _is_numbas(each)}
    module.functions = {name: each for name, each in module.functions.items() if each.blocks or each.users}


def _is_numbas(variable: GlobalVariable) -> bool:
    name = str(variable.name)
    return "common" in variable.prefix or name.endswith("__")
