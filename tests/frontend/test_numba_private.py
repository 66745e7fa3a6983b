"""Numba's private parts that irad relies on: each is exercised, so that a new Numba release fails here by name."""

from __future__ import annotations

import ast
import importlib.util
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import cfunc, float64, njit, typeof
from numba.core import (
    bytecode,
    caching,
    callconv,
    codegen,
    compiler,
    cpu,
    debuginfo,
    dispatcher,
    interpreter,
    lowering,
    typed_passes,
    types,
    typing,
)
from numba.core.environment import Environment
from numba.core.registry import CPUTarget, cpu_target
from numba.core.runtime import rtsys
from numba.core.typing.templates import make_overload_template
from numba.cpython import listobj
from numba.experimental import jitclass
from numba.extending import intrinsic
from numba.np.ufunc import dufunc, ufunc_base, ufuncbuilder, wrappers
from numba.np.ufunc.gufunc import GUFunc
from numba.stencils.stencil import StencilFunc, stencil

import irad.frontend
from irad.frontend.numba import (
    code_libraries,
    cpu as numba_cpu,
    private as numba_private,
    raw_target,
    samplers as numba_random,
    target as numba_target,
)

PRIVATE_METHODS = [
    (compiler, "_EarlyPipelineCompletion"),
    (dispatcher._DispatcherBase, "get_call_template"),
    (dispatcher.Dispatcher, "_compile_for_args"),
    (dispatcher.Dispatcher, "compile"),
    (dispatcher.Dispatcher, "add_overload"),
    (dispatcher.Dispatcher, "get_compile_result"),
    (dispatcher.Dispatcher, "get_function_type"),
    (dispatcher.LiftedWith, "compile"),
    (dispatcher._FunctionCompiler, "_customize_flags"),
    (dispatcher._FunctionCompiler, "fold_argument_types"),
    (lowering.BaseLower, "_compute_def_location"),
    *((make_overload_template(len, len, {}, True, "never"), name) for name in ("_overload_func", "_jit_options")),
    (lowering.Lower, "_Lower__get_first_class_function_pointer"),
    (dufunc.DUFunc, "find_ewise_function"),
    (dufunc.DUFunc, "_compile_for_argtys"),
    (dufunc.DUFunc, "match_signature"),
    (ufunc_base.UfuncBase, "find_ewise_function"),
    (GUFunc, "_compile_for_argtys"),
    (wrappers, "_GufuncWrapper"),
    (wrappers._GufuncWrapper, "_build_wrapper"),
    (wrappers._GufuncWrapper, "gen_loop_body"),
    (GUFunc, "_get_function_type"),
    (ufuncbuilder.UFuncDispatcher, "compile"),
    (cpu.CPUContext, "load_additional_registries"),
    (cpu.CPUContext, "get_executable"),
    (callconv.CPUCallConv, "_return_errcode_raw"),
    (cpu.CPUContext, "create_cpython_wrapper"),
    (cpu.CPUContext, "create_cfunc_wrapper"),
    (cpu.CPUContext, "push_code_library"),
    (cpu.CPUContext, "insert_user_function"),
    (codegen.JITCodeLibrary, "_get_module_for_linking"),
    (codegen.JITCodeLibrary, "get_defined_functions"),
    (codegen.JITCPUCodegen, "set_env"),
    (codegen.JITCPUCodegen, "create_library"),
    (callconv.CPUCallConv, "_get_excinfo_argument"),
    (callconv.CPUCallConv, "_get_return_status"),
    (compiler, "_make_subtarget"),
    (compiler.DefaultPassBuilder, "define_nopython_pipeline"),
    (lowering.BaseLower, "create_cpython_wrapper"),
    (typed_passes.NativeLowering, "lowering_class"),
    (debuginfo.DIBuilder, "mark_location"),
    (debuginfo.DIBuilder, "mark_variable"),
    (debuginfo.DIBuilder, "_add_location"),
    (debuginfo.DIBuilder, "_di_subroutine_type"),
    (cpu.CPUContext, "DIBuilder"),
    (typing.context, "CallStack"),
    (typing.templates._OverloadMethodTemplate, "_resolve"),
    (typing.templates._IntrinsicTemplate, "generic"),
    (Environment, "from_fndesc"),
    (compiler.CompileResult, "_reduce"),
    (compiler.CompileResult, "_rebuild"),
    (bytecode.FunctionIdentity, "_unique_ids"),
    (caching, "_Cache"),
    (caching._Cache, "load_overload"),
    (caching._Cache, "save_overload"),
    (CPUTarget, "target_context"),
    (listobj.ListInstance, "_payload"),
    (listobj.ListInstance, "_gep"),
    (interpreter.Interpreter, "get_global_value"),
    (interpreter.Interpreter, "get_closure_value"),
]


@pytest.mark.parametrize(("owner", "name"), PRIVATE_METHODS, ids=lambda v: getattr(v, "__name__", v))
def test_method_exists(owner: Any, name: str) -> None:
    assert hasattr(owner, name)


def make_function() -> Any:
    @njit
    def function(x):
        return x + 1

    return function


def test_attributes_that_are_redirected_are_instance_attributes() -> None:
    function = make_function()
    elementwise: Any = dufunc.DUFunc(lambda x: x)
    instances = {
        (dispatcher._DispatcherBase, "overloads"): function,
        (dispatcher._FunctionCompiler, "_failed_cache"): function._compiler,
        (types.functions.BaseFunction, "_impl_keys"): types.Function(
            typing.make_concrete_template("function", "key", [])
        ),
        (ufuncbuilder.UFuncDispatcher, "overloads"): ufuncbuilder.UFuncDispatcher(lambda x: x),
        (ufuncbuilder.UFuncDispatcher, "cache"): ufuncbuilder.UFuncDispatcher(lambda x: x),
        (ufunc_base.UfuncLowererBase, "libs"): elementwise._lower_me,
        (StencilFunc, "_type_cache"): None,
        (StencilFunc, "_targetctx"): None,
    }
    redirected = {(owner, redirect.name) for owner, redirect in numba_private.shadow()._redirects}
    assert redirected == set(instances)
    for (owner, name), instance in instances.items():
        if instance is not None:
            assert isinstance(instance, owner)
            assert name in vars(instance)
            assert name not in vars(owner)


def test_stencil_attributes() -> None:
    kernel = stencil("constant")(lambda a: a[0])
    assert {"_type_cache", "_targetctx"} <= vars(kernel).keys()


def test_dispatcher_attributes() -> None:
    function = make_function()
    assert function._can_compile is True
    assert function._compiling_counter.counter == 0
    function(1.0)
    result = function.overloads[(float64,)]
    assert {"library", "fndesc", "environment", "entry_point", "type_annotation", "metadata"} <= set(result._fields)
    assert result.library._linking_libraries
    assert result.library._final_module is not None
    assert result.library.codegen._engine.is_symbol_defined(result.fndesc.mangled_name)
    assert not result.library.codegen._engine.is_symbol_defined("no such symbol")
    assert numba_private.find_environment(result.fndesc.env_name) is result.environment
    assert result.fndesc.env_name.startswith(raw_target.ENVIRONMENT_PREFIX)


def test_unresolved_prefix() -> None:
    assert codegen.RuntimeLinker.PREFIX == raw_target.UNRESOLVED_PREFIX


def test_runtime_functions() -> None:
    make_function()(1.0)
    assert numba_private.runtime_library() is rtsys.library
    for name in ("NRT_incref", "NRT_decref", "NRT_MemInfo_data_fast"):
        assert code_libraries.is_loaded_symbol(name)


def test_inlined_runtime_is_as_numbas() -> None:
    """The data pointer lies where Numba's own code finds it."""
    make_function()(1.0)
    text = str(rtsys.library.get_function("NRT_MemInfo_data_fast"))
    assert "i64 24" in text
    assert "i64 24" in numba_private.inline_runtime()


def test_range_lowerings_are_registered_with_their_types() -> None:
    with numba_private.shadow().active():
        versions = numba_private.shadow().context._defns["iternext"].versions
    marked = {signature[0] for signature, lower in versions if hasattr(lower, "no_signed_wrap")}
    assert marked == set(raw_target.SIGNED_RANGES)
    assert types.unsigned_range_iter64_type in {signature[0] for signature, _ in versions if signature}


def class_state() -> list[Any]:
    owners = {owner for owner, *_ in numba_private.shadow()._replacements()}
    return [dict(vars(owner)) for owner in sorted(owners, key=lambda o: getattr(o, "__qualname__", o.__name__))]


def test_classes_are_restored() -> None:
    before = class_state()
    with numba_private.shadow().active(), numba_private.shadow().active():
        assert class_state() != before
        assert cpu_target.target_context is numba_private.shadow().context
        with numba_private.shadow().suspended():
            assert cpu_target.target_context is numba_target.real_context()
    assert class_state() == before
    assert cpu_target.target_context is numba_target.real_context()


def test_classes_are_restored_after_an_error() -> None:
    before = class_state()

    def fail() -> None:
        with numba_private.shadow().active():
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert class_state() == before
    assert not numba_private.shadow().is_here()


def test_other_threads_see_numba_as_ever() -> None:
    function = make_function()
    function(1.0)
    seen: list[Any] = []

    def look() -> None:
        seen.append(dict(function.overloads))
        seen.append(cpu_target.target_context)
        seen.append(function(2.0))

    with numba_private.shadow().active():
        assert not function.overloads
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert list(seen[0]) == [(float64,)]
    assert seen[1] is numba_target.real_context()
    assert seen[2] == 3.0


def test_dispatchers_made_in_the_shadow_belong_to_numba() -> None:
    with numba_private.shadow().active():
        function = make_function()
    assert function.targetctx is numba_target.real_context()
    assert function(1.0) == 2.0


def test_code_is_forgotten_with_its_dispatcher() -> None:
    context = numba_private.shadow().context
    function = make_function()
    with numba_private.shadow().active():
        compiled = numba_private.compile_raw(function, (typeof(1.5),))
    assert compiled is not None
    entry = compiled.entry_point
    del compiled
    assert entry in context._defns
    del function
    assert entry not in context._defns


def test_private_names_are_exercised_here() -> None:
    """Outside these modules, nothing private is read from Numba's objects that this file does not try.

    ``_getvalue`` and ``_getpointer`` are in Numba's documented interface for extensions, ``_fields`` in named tuples'.
    """
    folder = Path(irad.frontend.__file__).parent
    instances = {
        "_compiler": make_function(),
        "_compiling_counter": make_function(),
        **dict.fromkeys(("_library", "_sig", "_pyfunc"), cfunc("float64(float64)")(lambda x: x)),
        "_MinimalCallHelper": callconv,
        "_can_compile": make_function(),
        "_cache": make_function(),
        "_defn": intrinsic(lambda context: (types.void(), lambda *args: None)),
        **dict.fromkeys(("_final_module", "_reload_init"), codegen.JITCPUCodegen("private").create_library("made")),
        "_definitions": compiler.run_frontend(make_function().py_func),
        "_numba_type_": jitclass([("x", float64)])(type("Held", (), {"__init__": lambda self: None}))(),
    }
    assert all(hasattr(owner, name) for name, owner in instances.items())
    modules = {
        "private.py",
        "target.py",
        "methods.py",
        "raw_target.py",
        "code_libraries.py",
        "replaced.py",  # test_profile
        "numba_cuda.py",  # tests/cuda/front
    }
    known = {name for _, name in PRIVATE_METHODS} | {
        "_getvalue",
        "_getpointer",
        "_fields",
        "_linking_libraries",
        *instances,
    }
    folders = [folder.parent / name for name in ("frontend", "backend", "debug", "raw")]
    unknown = []
    for path in (path for each in folders for path in each.rglob("*.py") if path.name not in modules):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr) and node.attr not in known:
                unknown += [f"{path.name}:{node.lineno} uses {ast.unparse(node)}"]
    assert [use for use in unknown if not re.search(r" uses (self|cls)\.\w+$", use)] == []


@pytest.mark.parametrize("name", sorted({name for _, name in numba_random.SAMPLERS}))
def test_samplers_are_where_they_were(name: str) -> None:
    """A sampler that is not recognised would have a biased derivative; some have moved between releases."""
    owner, *inner = name.split(".<locals>.")
    places = [module for module, each in numba_random.SAMPLERS if each == name and importlib.util.find_spec(module)]
    owners = {place: vars(importlib.import_module(place)).get(owner) for place in places}
    places = [place for place, found in owners.items() if found is not None and found.__module__ == place]
    assert len(places) == 1
    found = owners[places[0]]
    assert found is not None
    code = found.__code__
    for part in inner:
        code = next(c for c in code.co_consts if getattr(c, "co_name", None) == part)
    assert code.co_argcount >= numba_random.SAMPLERS[places[0], name].parameters


@njit
def samplers(g):
    a = np.random.gamma(2.5, 1.0) + np.random.vonmises(0.5, 1.5) + np.random.wald(1.0, 1.0)
    b = np.random.noncentral_chisquare(3.0, 1.0) + g.noncentral_chisquare(3.0, 1.0) + g.wald(1.0, 1.0)
    c = g.standard_gamma(0.5, dtype=np.float32)
    return a + b + c + g.standard_gamma(0.5) + g.beta(0.5, 0.5)


def test_samplers_are_recognised() -> None:
    text = numba_cpu.load_program(samplers, (typeof(np.random.default_rng()),)).text
    drawn = Counter(re.findall(r"call double @irad\.drawn\.(\w+)\(", text))
    wanted = {draw.distribution for draw in numba_random.SAMPLERS.values()}
    assert set(drawn) == wanted
    assert sum(drawn.values()) >= len({name for _, name in numba_random.SAMPLERS})
    for name in wanted:
        assert f"define internal double @irad.drawn.{name}(" in text
