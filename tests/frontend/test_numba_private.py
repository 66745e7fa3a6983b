"""Numba's private parts that irad relies on are in one package; each is tried, so that a new release fails by name."""

from __future__ import annotations

import ast
import importlib.util
import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from numba import float64, njit, typed, typeof
from numba.core import (
    bytecode,
    caching,
    callconv,
    codegen,
    compiler,
    cpu,
    debuginfo,
    dispatcher,
    ir,
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
from numba.np.ufunc import dufunc, ufuncbuilder
from numba.np.ufunc.gufunc import GUFunc
from numba.stencils.stencil import stencil

from irad.errors import BackendError
from irad.frontend.numba import (
    cpu as numba_cpu,
    internals,
    library as numba_library,
    patches,
    private as numba_private,
    raw_target,
    samplers as numba_random,
    target as numba_target,
)

ROOT = Path(__file__).parents[2]
SEALED = ROOT / "irad" / "frontend" / "numba"
PATCHES = (
    *(*patches.TABLES, *patches.METHODS, *patches.NAMES, *patches.FOR_GOOD),
    *(*patches.KERNELS, *patches.LAUNCHES, *patches.OVERRIDDEN),
)


# ------------------------------------------------------------------------------------------------ what is relied on


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: f"{patch.module}.{patch.name}")
def test_what_is_changed_exists(patch: patches.Patch) -> None:
    if patch.name in patches.STANDINS and not hasattr(patches.import_module(patch.module), patch.name):
        pytest.skip(f"this numba.cuda has no {patch.name}")
    patch.owner()
    if not patch.is_table:
        assert patch.replacement() is not None
    assert patch.why
    assert patch.instead


def test_what_does_not_exist_is_refused_by_name() -> None:
    patch = patches.Patch(patches.Aim.MARKS, "numba.core.cgutils", "gone", "", "elements are marked", "")
    with pytest.raises(BackendError, match=r"has no numba\.core\.cgutils\.gone") as raised:
        patch.owner()
    assert "elements are marked" in str(raised.value)


PRIVATE = [
    (compiler, "_EarlyPipelineCompletion"),
    (typed_passes.NativeLowering, "lowering_class"),
    (lowering.BaseLower, "create_cpython_wrapper"),
    *((dispatcher.Dispatcher, name) for name in ("_reset_overloads", "_clear", "_insert")),
    (types.float64, "_code"),
    (typing.templates._IntrinsicTemplate, "generic"),
    *((dufunc.DUFunc(lambda x: x), name) for name in ("_dispatcher", "_frozen", "_lower_me", "targetoptions")),
    *((cpu_target.target_context, name) for name in ("_defns", "call_conv", "enable_boundscheck")),
    *((cpu_target.target_context.codegen(), name) for name in ("_tm", "_tm_features", "_engine", "_library_class")),
    *((make_overload_template(len, len, {}, True, "never"), name) for name in ("_overload_func", "_jit_options")),
    (make_overload_template(len, len, {}, True, "never"), "_inline"),
    (dufunc.DUFunc, "match_signature"),
    (GUFunc, "_get_function_type"),
    (ufuncbuilder.UFuncDispatcher, "compile"),
    (cpu.CPUContext, "load_additional_registries"),
    (cpu.CPUContext, "create_cpython_wrapper"),
    (cpu.CPUContext, "create_cfunc_wrapper"),
    (cpu.CPUContext, "push_code_library"),
    (cpu.CPUContext, "insert_user_function"),
    (codegen.JITCodeLibrary, "_get_module_for_linking"),
    (codegen.JITCodeLibrary, "_ensure_finalized"),
    (codegen.JITCodeLibrary, "get_defined_functions"),
    (codegen.JITCPUCodegen, "set_env"),
    (codegen.JITCPUCodegen, "create_library"),
    (codegen.JITCPUCodegen, "_customize_tm_options"),
    (callconv.CPUCallConv, "_get_excinfo_argument"),
    (callconv.CPUCallConv, "_get_return_status"),
    (callconv.CPUCallConv, "_return_errcode_raw"),
    (compiler, "_make_subtarget"),
    (compiler.DefaultPassBuilder, "define_nopython_pipeline"),
    (debuginfo.DIBuilder, "_add_location"),
    (typing.context, "CallStack"),
    (Environment, "from_fndesc"),
    (compiler.CompileResult, "_reduce"),
    (compiler.CompileResult, "_rebuild"),
    (bytecode.FunctionIdentity, "_unique_ids"),
    (caching, "_Cache"),
    (CPUTarget, "target_context"),
    (CPUTarget, "_toplevel_target_context"),
    (listobj.ListInstance, "_payload"),
    (listobj.ListInstance, "_gep"),
]


@pytest.mark.parametrize(("owner", "name"), PRIVATE, ids=lambda v: getattr(v, "__name__", v))
def test_what_is_read_exists(owner: Any, name: str) -> None:
    assert hasattr(owner, name)


def make_function() -> Any:
    @njit
    def function(x):
        return x + 1

    return function


def test_tables_are_instance_attributes() -> None:
    function = make_function()
    elementwise: Any = dufunc.DUFunc(lambda x: x)
    ufunc = ufuncbuilder.UFuncDispatcher(lambda x: x)
    instances = {
        "_DispatcherBase.overloads": function,
        "_FunctionCompiler._failed_cache": internals.compiler_of(function),
        "BaseFunction._impl_keys": types.Function(typing.make_concrete_template("function", "key", [])),
        "UFuncDispatcher.overloads": ufunc,
        "UFuncDispatcher.cache": ufunc,
        "UfuncLowererBase.libs": elementwise._lower_me,
        "StencilFunc._type_cache": stencil("constant")(lambda a: a[0]),
        "StencilFunc._targetctx": stencil("constant")(lambda a: a[0]),
    }
    assert [patch.name for patch in patches.TABLES] == list(instances)
    for patch in patches.TABLES:
        assert isinstance(instances[patch.name], patch.owner())
        assert patch.attribute in vars(instances[patch.name])
        assert patch.attribute not in vars(patch.owner())


def test_dispatcher_attributes() -> None:
    function = make_function()
    assert internals.takes_new_types(function)
    assert internals.cache_of(function) is not None
    assert function._compiling_counter.counter == 0
    function(1.0)
    result = function.overloads[(float64,)]
    assert {"library", "fndesc", "environment", "entry_point", "type_annotation", "metadata"} <= set(result._fields)
    assert internals.linked_libraries(result.library)
    assert internals.compiled_module(result.library) is not None
    assert internals.run_when_loaded(result.library) == set()
    assert result.library.codegen._engine.is_symbol_defined(result.fndesc.mangled_name)
    assert not result.library.codegen._engine.is_symbol_defined("no such symbol")
    assert numba_private.find_environment(result.fndesc.env_name) is result.environment
    assert result.fndesc.env_name.startswith(raw_target.ENVIRONMENT_PREFIX)


def test_symbols_of_parallel_loops() -> None:
    function = njit(parallel=True)(lambda x: np.sqrt(x) + 1.0)
    function(np.ones(3))
    [compiled] = function.overloads.values()
    assert internals.run_when_loaded(compiled.library) == {internals.start_threads}
    for name in internals.OF_THREADS:
        assert llvm.address_of_symbol(name) is not None


def test_callback_attributes() -> None:
    callback: Any = numba.cfunc("float64(float64)")(lambda x: x)
    assert internals.signature_of_callback(callback) == float64(float64)
    assert internals.library_of_callback(callback).codegen is cpu_target.target_context.codegen()
    assert internals.options_of_callback(callback)[1] == {}
    assert callback._wrapper_address == callback.address


def test_intrinsic_attributes() -> None:
    def define(context):  # type: ignore[no-untyped-def]
        return types.void(), lambda *args: None

    assert internals.intrinsic_function(intrinsic(define)) is define
    assert internals.intrinsic_function(define) is None


def test_instances_and_containers() -> None:
    held = jitclass([("x", float64)])(type("Held", (), {"__init__": lambda self: None}))()
    assert internals.is_jitclass(type(held))
    assert not internals.is_jitclass(list)
    assert internals.address_of_instance(held) != 0
    assert internals.address_of_container(typed.List()) is None
    assert internals.address_of_container(typed.List([1.0])) != 0


def test_definitions_in_numbas_ir() -> None:
    func_ir = compiler.run_frontend(make_function().py_func)
    first, second = ir.Const(1, func_ir.loc), ir.Const(2, func_ir.loc)
    internals.define(func_ir, "new", first)
    internals.redefine(func_ir, "new", first, second)
    assert func_ir.get_definition("new") is second


def test_unresolved_prefix() -> None:
    assert codegen.RuntimeLinker.PREFIX == raw_target.UNRESOLVED_PREFIX


def test_runtime_functions() -> None:
    make_function()(1.0)
    assert numba_private.runtime_library() is rtsys.library
    for name in ("NRT_incref", "NRT_decref", "NRT_MemInfo_data_fast"):
        assert numba_library.is_loaded_symbol(name)


def test_inlined_runtime_is_as_numbas() -> None:
    """The data pointer lies where Numba's own code finds it."""
    make_function()(1.0)
    text = str(rtsys.library.get_function("NRT_MemInfo_data_fast"))
    assert "i64 24" in text
    assert "i64 24" in numba_private.inline_runtime()


def test_code_that_is_read_declares_the_runtime() -> None:
    """LLVM has put intrinsics of the processor into the runtime, and into what was linked with it since."""

    @njit
    def total(x):
        copy = np.zeros_like(x)
        return (copy + x).sum()

    total(np.ones(3))
    library = next(iter(total.overloads.values())).library
    linked = {each.name: each for each in internals.module_for_linking(library).functions}
    read = {each.name: each for each in numba_private.raw_module_of(library).functions}
    defined = {name for name, each in linked.items() if not each.is_declaration}
    assert "NRT_decref" in defined
    for name in defined:
        assert read[name].is_declaration == name.startswith("NRT_")
        assert read[name].type == linked[name].type


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


# ------------------------------------------------------------------------------------------------ where it is touched

NOT_NUMBAS = {
    "_fields": "of named tuples",
    "_make": "of named tuples",
    "_replace": "of named tuples",
    "_getvalue": "of struct proxies: in Numba's documented interface for extensions",
    "_getpointer": "of struct proxies: in Numba's documented interface for extensions",
    "_numba_type_": "how any object tells Numba its type, also those of other libraries",
    "_getframe": "of sys",
    "_is_autograd_primitive": "of autograd",
}
PRIVATE_NAME = re.compile(r"_[A-Za-z]\w*")
BY_NAME = ("getattr", "setattr", "hasattr", "delattr")
SETTINGS = ("config.",)  # `numba.core.config` is public, and there to be set


Nodes = list[ast.AST]
"""Those of the syntax tree of a module, which is walked once."""


def nodes_of(source: str) -> Nodes:
    return list(ast.walk(ast.parse(source)))


def sources() -> dict[Path, Nodes]:
    """What users install, without the sealed package; irad/passes and irad/rules are links to the real folders."""
    links = tuple(ROOT / "irad" / name for name in ("passes", "rules"))
    paths = (path for top in ("irad", "passes", "rules") for path in (ROOT / top).rglob("*.py"))
    return {
        path: nodes_of(path.read_text())
        for path in paths
        if SEALED not in path.parents and not any(link in path.parents for link in links)
    }


def names_of_numba() -> set[str]:
    """The private attributes and methods that Numba defines somewhere."""
    defined = re.compile(
        r"\b(?:self|cls)\.(_[A-Za-z]\w*)\b|^\s+def (_[A-Za-z]\w*)\(|^\s+(_[A-Za-z]\w*) *[:=]", re.MULTILINE
    )
    folder = Path(str(numba.__file__)).parent
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if "tests" not in path.parts)
    return {name for text in texts for found in defined.findall(text) for name in found if name and name[1] != "_"}


def defined_in(nodes: Nodes) -> set[str]:
    """The private attributes that a module of irad defines for its own classes."""
    found = set()
    for node in nodes:
        match node:
            case ast.ClassDef(body=body):
                found |= {each.name for each in body if isinstance(each, ast.FunctionDef)}
                found |= {
                    each.target.id
                    for each in body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                }
                found |= {
                    t.id
                    for each in body
                    if isinstance(each, ast.Assign)
                    for t in each.targets
                    if isinstance(t, ast.Name)
                }
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.Constant(value=str() as name) if name.startswith("_irad_"):  # set on objects of others
                found.add(name)
    return {name for name in found if PRIVATE_NAME.fullmatch(name)}


def is_numba(module: str | None) -> bool:
    return (module or "").partition(".")[0] in ("numba", "llvmlite")


def imported_from_numba(nodes: Nodes) -> set[str]:
    """Names in a module that stand for something of Numba's."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and is_numba(node.module):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names if is_numba(alias.name)}
    return found


def root_of(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def uses(nodes: Nodes) -> Iterator[tuple[ast.AST, str, bool]]:
    """The private attributes that a module names, and whether it means those of its own objects."""
    imported = imported_from_numba(nodes)
    classes = [each for each in nodes if isinstance(each, ast.ClassDef)]
    derived = [each for each in classes if any(root_of(base) in imported for base in each.bases)]
    of_numba = {node for each in derived for node in ast.walk(each)}
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                yield node, name, node not in of_numba
            case ast.Attribute(attr=name):
                yield node, name, False
            case ast.Call(
                func=ast.Name(id="getattr" | "setattr" | "hasattr" | "delattr"),
                args=[_, ast.Constant(value=str() as name), *_],
            ):
                yield node, name, False
            case ast.Subscript(slice=ast.Constant(value=str() as name), value=ast.Call(func=ast.Name(id="vars"))):
                yield node, name, False


def complaints(nodes: Nodes, owned: set[str], numbas: set[str]) -> Iterator[str]:
    """Where a module touches what is private to Numba, or changes something of it.

    Args:
        nodes: of the module's syntax tree.
        owned: the private attributes that modules of irad define.
        numbas: those that Numba defines.
    """
    here, imported = defined_in(nodes), imported_from_numba(nodes)
    for node, name, is_own in uses(nodes):
        if not PRIVATE_NAME.fullmatch(name) or name in NOT_NUMBAS or name in here:
            continue
        if name not in owned or (name in numbas and not is_own):
            yield f"{node.lineno} touches {ast.unparse(node)}"  # type: ignore[attr-defined]
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str() as module, names=names) if is_numba(module):
                private = [name for name in (*module.split("."), *(a.name for a in names)) if name.startswith("_")]
                yield from (f"{node.lineno} imports {name} of {module}" for name in private)
            case ast.Attribute(attr="__class__", ctx=ast.Store()):
                yield f"{node.lineno} changes a class: {ast.unparse(node)}"
            case ast.Attribute(ctx=ast.Store() | ast.Del()) if root_of(node) in imported:
                if not ast.unparse(node).startswith(SETTINGS):
                    yield f"{node.lineno} changes {ast.unparse(node)}"
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[owner, *_]) if root_of(owner) in imported:
                yield f"{node.lineno} changes {ast.unparse(node)}"
            case ast.ClassDef(bases=bases, body=body) if any(root_of(base) in imported for base in bases):
                methods = [each.name for each in body if isinstance(each, ast.FunctionDef)]
                hooks = [name for name in methods if PRIVATE_NAME.fullmatch(name) and name in numbas]
                yield from (f"{node.lineno} overrides {name} in {node.name}" for name in hooks)


def test_only_one_package_touches_what_is_private_to_numba() -> None:
    """All else goes through `internals` and `patches`, where each has a reason and what should replace it."""
    modules = sources()
    owned, numbas = set().union(*map(defined_in, modules.values())), names_of_numba()
    assert len(modules) > 100
    assert {"_compiler", "_can_compile", "_final_module", "_get_excinfo_argument", "_targetctx"} <= numbas
    found = {str(path.relative_to(ROOT)): list(complaints(nodes, owned, numbas)) for path, nodes in modules.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "dispatcher._compiler",
        "getattr(template, '_overload_func', None)",
        "vars(f)['_cache'] = None",
        "from numba.core.caching import _Cache",
        "from numba.experimental.jitclass import _box",
        "from numba.core import dispatcher\ndispatcher.Dispatcher.compile = None",
        "from numba.core import cgutils\nsetattr(cgutils, 'do_boundscheck', None)",
        "dispatcher.__class__ = Own",
        "from numba.core.registry import CPUDispatcher\nclass D(CPUDispatcher):\n    def _compile_for_args(self): ...",
        "class D(Base):\n    def f(self):\n        return self._compiler",
        "from numba import D\nclass E(D):\n    def f(self):\n        return self._cache",
        "numba_object._made_up_by_a_later_release",
    ],
)
def test_what_is_private_to_numba_is_seen(source: str) -> None:
    assert list(
        complaints(
            nodes_of(source), {"_tape", "_cache"}, {"_compiler", "_cache", "_overload_func", "_compile_for_args"}
        )
    )


@pytest.mark.parametrize(
    "source",
    ["tape._tape", "proxy._getvalue()", "from numba.core import config\nconfig.OPT = 0", "class A:\n    _x = 1\nA._x"],
)
def test_what_is_irads_own_or_public_is_not(source: str) -> None:
    assert not list(complaints(nodes_of(source), {"_tape"}, {"_compiler"}))


# ------------------------------------------------------------------------------------------------ samplers


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
