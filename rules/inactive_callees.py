"""Callees that carry no derivative, and why.

What is *not* here matters as much: a callee that can bring a floating-point number back (`PyFloat_AsDouble`, an item of
a typed list) or hands one on to unknown code (`PyObject_Call`) has no entry, so that a program using it with an active
value is refused rather than given a zero. Memory management (`NRT_*`, `llvm.mem*`) has rules of its own.
"""

from __future__ import annotations

from typing import Final

from irad.ruleset.define import inactive
from irad.ruleset.interface import PURE, Effects, Origin, Rule

_NONE: Final = Effects(other=False)


def _memory(
    *, reads: tuple[int, ...] = (), writes: tuple[int, ...] = (), frees: tuple[int, ...] = (), other: bool = True
) -> Effects:
    """Effects of a callee that writes no floating-point numbers."""
    return Effects(frozenset(reads), frozenset(writes), frozenset(frees), writes_no_floats=True, other=other)


# ------------------------------------------------------------------------------------------------ LLVM

_LLVM: Final = (
    inactive(
        "llvm.ctpop.* llvm.ctlz.* llvm.cttz.* llvm.bswap.* llvm.bitreverse.* llvm.fshl.* llvm.fshr.* llvm.abs.* "
        "llvm.smax.* llvm.smin.* llvm.umax.* llvm.umin.* llvm.scmp.* llvm.ucmp.* llvm.sadd.* llvm.uadd.* "
        "llvm.ssub.* llvm.usub.* llvm.smul.* llvm.umul.* llvm.sshl.* llvm.ushl.* llvm.sdiv.* llvm.udiv.* "
        "llvm.vscale.* llvm.get.rounding",
        "integer arithmetic",
        PURE,
    ),
    inactive(
        "llvm.fptosi.sat.* llvm.fptoui.sat.* llvm.lrint.* llvm.llrint.* llvm.lround.* llvm.llround.*",
        "the result is an integer, which is piecewise constant",
        PURE,
    ),
    inactive("llvm.is.fpclass.*", "a truth value", PURE),
    inactive(
        "llvm.is.constant.* llvm.objectsize.* llvm.expect.* llvm.type.test llvm.allow.runtime.check",
        "a compile-time query or hint about integers",
        PURE,
    ),
    inactive(
        "llvm.assume llvm.dbg.* llvm.lifetime.start llvm.lifetime.end llvm.lifetime.start.* llvm.lifetime.end.* "
        "llvm.invariant.end.* llvm.experimental.noalias.scope.decl llvm.donothing llvm.sideeffect llvm.pseudoprobe "
        "llvm.prefetch llvm.prefetch.* llvm.var.annotation llvm.var.annotation.* llvm.codeview.annotation "
        "llvm.fake.use",
        "a hint to the compiler",
        _NONE,
    ),
    inactive("llvm.trap llvm.debugtrap llvm.ubsantrap abort exit _exit __assert_fail", "it does not return"),
    inactive("llvm.nvvm.read.ptx.sreg.*", "an index of the CUDA thread", PURE),
)

# ------------------------------------------------------------------------------------------------ C library

_C: Final = (
    inactive(
        "lrint lrintf llrint llrintf lround lroundf llround llroundf ilogb ilogbf finite finitef isnan isinf isnanf "
        "isinff __isnan __isinf __finite __fpclassify __fpclassifyf __signbit __signbitf",
        "the result is an integer, which is piecewise constant",
        PURE,
    ),
    inactive(
        "abs labs llabs __multi3 __divti3 __udivti3 __modti3 __umodti3 __ashlti3 __lshrti3 __ashrti3 __popcountdi2 "
        "__popcountsi2 __clzdi2 __ctzdi2 numba_sdiv numba_srem numba_udiv numba_urem",
        "integer arithmetic",
        PURE,
    ),
    inactive("numba_fptoui numba_fptouif", "the result is an integer, which is piecewise constant", PURE),
    inactive("strlen", "text", _memory(reads=(0,), other=False)),
    inactive("memcmp bcmp strcmp strncmp", "a comparison", _memory(reads=(0, 1), other=False)),
    inactive(
        "printf puts putchar fflush fwrite fputs fputc write _numba_flush_stdout PySys_FormatStdout "
        "PySys_WriteStdout PySys_WriteStderr PySys_FormatStderr",
        "output",
    ),
    inactive("snprintf sprintf", "text", _memory(writes=(0,))),
    inactive(
        "clock time getpid sleep usleep sched_yield rand random llvm.readcyclecounter llvm.readsteadycounter",
        "the result comes from the system, not from the arguments",
    ),
    inactive("feclearexcept fetestexcept feraiseexcept", "the floating-point status word"),
    inactive("numba_set_fnclex numba_gdb_breakpoint", "debugging"),
)

# ------------------------------------------------------------------------------------------------ Python API
# Numba calls it where a program raises, prints, or holds the GIL. Objects made here are read back by nothing below.

_PYTHON: Final = (
    inactive(
        "PyErr_Clear PyErr_Fetch PyErr_Format PyErr_Occurred PyErr_Restore PyErr_SetNone PyErr_SetObject "
        "PyErr_SetString PyErr_WriteUnraisable PyErr_NoMemory PyErr_CheckSignals PyErr_Print PyErr_WarnEx "
        "Py_FatalError numba_do_raise numba_fatal_error numba_unpickle numba_runtime_build_excinfo_struct",
        "the exception machinery",
    ),
    inactive(
        "PyLong_FromLong PyLong_FromLongLong PyLong_FromSsize_t PyLong_FromUnsignedLong PyLong_FromUnsignedLongLong "
        "PyLong_FromVoidPtr PyLong_FromString PyBool_FromLong PyFloat_FromDouble PyComplex_FromDoubles "
        "PyString_FromString PyString_FromStringAndSize PyBytes_FromString PyBytes_FromStringAndSize "
        "PyUnicode_FromString PyUnicode_FromStringAndSize PyUnicode_FromKindAndData PyUnicode_FromFormat "
        "numba_create_np_datetime numba_create_np_timedelta numba_recreate_record PyTuple_New PyTuple_Pack "
        "PyTuple_SetItem PyList_New PyList_Append PyList_SetItem PyDict_New _PyDict_NewPresized PyDict_SetItem "
        "PyDict_SetItemString PySet_New PySet_Add",
        "it creates a Python object, which compiled code only prints or raises",
    ),
    inactive(
        "PyLong_AsLongLong PyLong_AsUnsignedLongLong PyLong_AsLong PyLong_AsSsize_t PyLong_AsVoidPtr "
        "PyNumber_AsSsize_t PyNumber_Long PyNumber_Index PyObject_IsTrue PyObject_Not PyObject_Hash "
        "PyObject_RichCompareBool PyTuple_Size PyList_Size PyDict_Size PySet_Size PySequence_Size PySequence_Length "
        "PyObject_Size PyObject_Length PySequence_Contains PyBool_AsLong",
        "an integer from a Python object",
    ),
    inactive(
        "PyList_GetItem PyTuple_GetItem PyObject_Str PyObject_Repr PyObject_Type PyUnicode_AsUTF8 PyBytes_AsString "
        "numba_py_type _PyObject_Dump PyImport_ImportModule PyImport_ImportModuleNoBlock PyEval_GetGlobals",
        "text, types and modules, which remain Python objects",
    ),
    inactive("PyUnicode_AsUTF8AndSize PyBytes_AsStringAndSize", "text", _memory(writes=(1, 2))),
    inactive("numba_extract_unicode", "text", _memory(writes=(1, 2, 3, 4))),
    inactive("numba_unpack_slice", "bounds of a slice", _memory(writes=(1, 2, 3))),
    inactive("numba_extract_np_datetime numba_extract_np_timedelta", "a date is an integer"),
    inactive(
        "Py_IncRef Py_DecRef _Py_IncRef _Py_DecRef PyGILState_Ensure PyGILState_Release PyEval_SaveThread "
        "PyEval_RestoreThread PyThreadState_Get",
        "reference counts and the GIL",
    ),
    inactive("numba_gil_ensure", "the GIL", _memory(writes=(0,))),
    inactive("numba_gil_release", "the GIL", _memory(reads=(0,))),
)

# ------------------------------------------------------------------------------------------------ Numba's helpers

_NUMBA: Final = (
    inactive(
        "numba_get_py_random_state numba_get_np_random_state numba_get_internal_random_state",
        "the state of the random generator, which does not depend on the arguments",
    ),
    inactive("numba_rnd_shuffle", "the state of the random generator", _memory(reads=(0,), writes=(0,))),
    inactive("numba_rnd_init", "the state of the random generator", _memory(writes=(0,))),
    inactive("numba_poisson_ptrs", "the draw is an integer", _memory(reads=(0,), writes=(0,))),
    inactive(
        "numba_attempt_nocopy_reshape",
        "strides",
        _memory(reads=(1, 2, 4), writes=(5,), other=False),
    ),
    inactive("numba_gettyperecord", "a character's properties", _memory(writes=(1, 2, 3, 4, 5, 6))),
    inactive("numba_get_PyUnicode_ExtendedCase", "a character's properties", PURE),
    inactive(
        "numba_list_length numba_list_allocated numba_list_is_mutable numba_dict_length numba_set_length",
        "the size of a container",
        _memory(reads=(0,), other=False),
    ),
    inactive(
        "numba_list_set_method_table numba_dict_set_method_table",
        "the methods that count references to the elements of a container",
        _memory(reads=(0, 1), writes=(0,)),
    ),
    inactive("numba_list_set_is_mutable", "a flag of a container", _memory(writes=(0,))),
    inactive("numba_list_iter_sizeof numba_dict_iter_sizeof numba_set_iter_sizeof", "the size of an iterator", PURE),
    inactive("numba_dict_dump numba_set_dump", "output"),
    inactive(
        "get_num_threads set_num_threads get_thread_id get_parallel_chunksize set_parallel_chunksize",
        "the thread pool",
    ),
    inactive(
        "irad.raise_in_thread",
        "an exception raised in an iteration of a parallel loop is lost with its thread",
    ),
    inactive("get_sched_size", "the schedule of a parallel loop", _memory(reads=(2, 3))),
    inactive(
        "allocate_sched",
        "the schedule of a parallel loop",
        Effects(result=Origin.FRESH, writes_no_floats=True),
    ),
    inactive("deallocate_sched", "the schedule of a parallel loop", _memory(frees=(0,))),
    inactive(
        "do_scheduling_signed do_scheduling_unsigned",
        "the schedule of a parallel loop",
        Effects(
            reads=frozenset({1, 2}),
            writes=frozenset({4}),
            result=Origin.ARGUMENT,
            result_argument=4,
            writes_no_floats=True,
        ),
    ),
)

# ------------------------------------------------------------------------------------------------ CUDA's libdevice


def _libdevice(stems: str) -> str:
    return " ".join(f"__nv_{stem}" for stem in stems.split())


def _directed(stems: str) -> str:
    """Each stem in the four rounding directions."""
    return " ".join(f"__nv_{stem}_{mode}" for stem in stems.split() for mode in ("rn", "rz", "ru", "rd"))


_LIBDEVICE: Final = (
    inactive(
        _libdevice(
            "abs llabs brev brevll byte_perm clz clzll ffs ffsll hadd rhadd uhadd urhadd max min llmax llmin umax "
            "umin ullmax ullmin mul24 umul24 mulhi umulhi mul64hi umul64hi popc popcll sad usad"
        ),
        "integer arithmetic",
        PURE,
    ),
    inactive(
        _libdevice(
            "finitef isfinited isinfd isinff isnand isnanf signbitd signbitf ilogb ilogbf llrint llrintf "
            "llround llroundf"
        )
        + " "
        + _directed(
            "double2int double2uint double2ll double2ull float2int float2uint float2ll float2ull",
        ),
        "the result is an integer, which is piecewise constant",
        PURE,
    ),
    inactive(
        _directed("int2float uint2float ll2float ull2float ll2double ull2double")
        + " __nv_int2double_rn __nv_uint2double_rn __nv_nan __nv_nanf",
        "a number converted from an integer",
        PURE,
    ),
)

_OWN = (inactive("irad.stop.f64 irad.stop.f32", "irad.stop_gradient: the number, treated as constant", PURE),)

RULES: Final[tuple[Rule, ...]] = (*_LLVM, *_C, *_PYTHON, *_NUMBA, *_LIBDEVICE, *_OWN)
