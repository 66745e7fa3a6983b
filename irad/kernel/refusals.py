"""Refusals of what a differentiated kernel must not do: communicate between blocks while it runs.

The forward and the reverse sweep of a block run in one launch. A block that waits for what others wrote would, in its
reverse sweep, add to shadows that those have read already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from irad.backend.cuda.limits import LARGEST, STATIC_SHARED
from irad.driver import Derivative, locate
from irad.errors import IradError, SourceLocation, UnsupportedError, UnsupportedProgram
from irad.ir.instructions import CallSite, Cast, Fence, GetElementPtr, Phi, Select
from irad.ir.module import Function
from irad.ir.text.parser import parse_module
from irad.ir.types import size_of
from irad.ir.values import Parameter, TrackedValue
from irad.ir.worklist import reachable
from irad.kernel.leaving import error_of_counting
from irad.kernel.program import KERNEL
from irad.kernel.shared_memory import SharedArray
from irad.options import Options
from irad.passes.request import ParameterKind

_FENCES: Final = ("llvm.nvvm.membar.gl", "llvm.nvvm.membar.sys")
_GRID: Final = ("cudaCGGetIntrinsicHandle", "cudaCGSynchronize", "cudaCGGetRank", "cudaCGGetSize")


def check_options(options: Options) -> None:
    """Refuses what derivatives of kernels cannot be asked for.

    Raises:
        UnsupportedError: names the option.
    """
    if options.boundscheck:
        raise UnsupportedError(
            "boundscheck=True is not supported for derivatives of kernels",
            "run with irad.cuda.executor(races=True), which reports accesses outside of the arrays of a launch",
            "a thread of a GPU cannot raise an exception where an index is wrong",
        )


def check_shared(arrays: Sequence[SharedArray], shadowed: Sequence[SharedArray], width: int) -> None:
    """Refuses shared arrays that no GPU has room for, or for their shadows.

    Args:
        arrays: arrays of the kernel.
        shadowed: those that have shadows, one for each direction.
        width: number of directions.

    Raises:
        UnsupportedError: names arrays and sizes.
    """
    sizes = {each.name: size_of(each.type) for each in arrays if not each.is_dynamic}
    own = sum(sizes.values())
    total = own + width * sum(sizes[each.name] for each in shadowed if not each.is_dynamic)
    words = ", ".join(f"{name} {size}" for name, size in sizes.items())
    if own > STATIC_SHARED:
        raise UnsupportedError(
            f"the shared arrays of the kernel have {own} bytes ({words})",
            "(a) use smaller tiles, or (b) dynamic shared memory, cuda.shared.array(0, …), whose size the launch gives",
            f"a kernel may have at most {STATIC_SHARED} bytes of shared arrays of fixed size",
        )
    if total > LARGEST.shared:
        raise UnsupportedError(
            f"the shared arrays of the kernel and their shadows have {total} bytes ({words}; {width} "
            f"shadow{'s' * (width > 1)} of each array of floats)",
            "(a) use smaller tiles, or (b) fewer directions at once",
            f"no GPU has more than {LARGEST.shared} bytes of shared memory for a block",
        )


@contextmanager
def check_communication(text: str, *, leaves_apart: bool) -> Iterator[None]:
    """Refuses fences between blocks and synchronisation of the grid, with all that is refused in a block of code.

    Args:
        text: the program of the kernel.
        leaves_apart: whether threads of a block may leave at different barriers, and are going to wait.

    Raises:
        UnsupportedError: names the operation.
    """
    errors = _communication(text, leaves_apart)
    try:
        yield
    except UnsupportedProgram as several:
        errors += _elsewhere(several.errors, errors)
    except IradError as error:
        if not errors:
            raise
        errors += _elsewhere([error], errors)
    if errors:
        raise errors[0] if len(errors) == 1 else UnsupportedProgram(errors)


def _elsewhere(found: Sequence[IradError], known: Sequence[IradError]) -> list[IradError]:
    """Errors at other places than those that are known."""
    places = {error.location for error in known}
    return [error for error in found if error.location is None or error.location not in places]


def _communication(text: str, leaves_apart: bool) -> list[IradError]:
    module = parse_module(text)
    errors: list[IradError] = []
    for function in module.defined_functions():
        for inst in function.instructions():
            if isinstance(inst, CallSite) and isinstance(inst.callee, Function):
                error = _error(str(inst.callee.name))
            else:
                error = _error(_FENCES[0]) if isinstance(inst, Fence) and inst.syncscope != "block" else None
            if error is None and leaves_apart:
                error = error_of_counting(inst)
            if error is not None:
                error.instruction = inst
                errors.append(error)
    for each in errors:
        locate(each, module, KERNEL)
    return errors


def check_tape(derivative: Derivative) -> None:
    """Refuses a derivative that would keep memory of a size of its own on the tape of a thread.

    Raises:
        UnsupportedError: it would.
    """
    is_metered = any(slot.storage == "kept" for place in derivative.tape for slot in place.slots)
    if is_metered or "@irad.arena_alloc" in derivative.text:
        raise UnsupportedError(
            "the derivative of this kernel would have to keep whole arrays on the tape of each thread",
            "copy element by element, and make local arrays (cuda.local.array) outside of loops",
            "the tape of a kernel holds only numbers, those of a warp next to each other",
        )


def check_shadows(derivative: Derivative, entry: Function, kinds: Sequence[ParameterKind]) -> None:
    """Refuses pointers that may point to a constant array or to one with a shadow.

    Args:
        derivative: derivative of the entry.
        entry: the differentiated function; its first parameter is not one of the kernel.
        kinds: kinds of the parameters of the kernel.

    Raises:
        UnsupportedError: names the constant array.
    """
    for index in derivative.shadows:
        if (
            1 <= index <= len(kinds)
            and kinds[index - 1] is not ParameterKind.SHADOW
            and _is_chosen(entry.params[index])
        ):
            raise without_shadow("the kernel", entry.params[index])


def without_shadow(who: str, pointer: Parameter, location: SourceLocation | None = None) -> UnsupportedError:
    """The error of a constant array whose elements are read by a pointer that may point to one with a shadow."""
    name = str(pointer.name).removeprefix("arg.").partition(".")[0]
    return UnsupportedError(
        f"{who} reads numbers from {name}, which is constant, through a pointer that may also point into an array "
        "with a derivative",
        f"(a) give it a shadow, irad.Duplicated({name}, shadow), or (b) read from each array in a separate branch",
        "the derivative is added to the shadow that belongs to such a pointer, and a constant array has none",
        location,
    )


def _is_chosen(pointer: Parameter) -> bool:
    """True if a select or a phi chooses between a pointer and one into another array."""

    def further(value: TrackedValue) -> list[TrackedValue]:
        return [user for user in value.users if isinstance(user, GetElementPtr | Cast | Phi | Select)]

    start: list[TrackedValue] = [pointer]
    own = set(reachable(start, further))
    merges = [value for value in own if isinstance(value, Phi | Select)]
    return any(
        operand.type is pointer.type and isinstance(operand, TrackedValue) and operand not in own
        for merge in merges
        for operand in merge.operands
    )


def _error(symbol: str) -> UnsupportedError | None:
    if symbol in _FENCES:
        return UnsupportedError(
            "a kernel with cuda.threadfence() has no derivative in irad",
            "launch two kernels one after the other: all blocks of the second may read what the first wrote",
            "blocks that read what others wrote in the same launch would have to be reversed in the opposite order",
        )
    if symbol in _GRID:
        return UnsupportedError(
            "a kernel that synchronises the grid (cooperative groups) has no derivative in irad",
            "split it at the synchronisation into two kernels",
            "the reverse sweep of a block would have to wait for those of all others",
        )
    return None
