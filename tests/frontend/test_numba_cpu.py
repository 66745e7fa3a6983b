"""Loading programs: dispatchers in every state, undisturbed; threads; nesting; errors; what the text looks like."""

from __future__ import annotations

import gc
import importlib.util
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import float64, int64, literally, njit, prange, typeof, types
from numba.core import event
from numba.core.errors import ForceLiteralArg, NumbaDebugInfoWarning
from numba.extending import intrinsic, overload

from irad.errors import BackendError
from irad.frontend.numba.cpu import load_program

VECTOR = typeof(np.ones(3))


@njit
def callee(v):
    return np.sin(v) * 2


def make_caller() -> Any:
    @njit
    def caller(a):
        s = 0.0
        for i in range(a.shape[0]):
            s += callee(a[i])
        return s + np.linalg.norm(a)

    return caller


def test_program_describes_the_function() -> None:
    caller = make_caller()
    program = load_program(caller, (VECTOR,))
    assert program.signature == float64(VECTOR)
    assert f"@{program.entry}(" in program.text
    assert program.descriptor.mangled_name == program.entry
    assert program.source.file == __file__
    assert program.source.line == caller.py_func.__code__.co_firstlineno + 1  # below the decorator
    assert program.python_functions[program.entry][0] is caller.py_func
    assert len(program.environments) >= 1


def test_python_functions_name_callees_and_library_functions() -> None:
    functions = dict(load_program(make_caller(), (VECTOR,)).python_functions.values())
    assert functions[callee.py_func] == float64(float64)
    assert functions[np.linalg.norm].args[:1] == (VECTOR,)


def test_nothing_undefined_of_numba_is_left() -> None:
    text = load_program(make_caller(), (VECTOR,)).text
    assert not re.search(r"^declare .*@_ZN", text, re.MULTILINE)


def test_dispatchers_are_not_disturbed() -> None:
    seen: list[Any] = []

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            seen.append(event)

        def on_end(self, event: Any) -> None:
            seen.append(event)

    caller = make_caller()
    table = caller.overloads
    with event.install_listener("numba:compile", Listener()):
        load_program(caller, (VECTOR,))
    assert not seen
    assert caller.overloads is table
    assert not table
    assert not caller.signatures
    assert caller.stats.cache_misses == {}
    assert caller(np.ones(3)) == pytest.approx(3 * 2 * np.sin(1.0) + np.sqrt(3.0))
    compiled = dict(table)
    load_program(caller, (typeof(np.ones(3, np.float32)),))
    assert dict(table) == compiled
    assert sum(caller.stats.cache_misses.values()) == 1


def test_repeated_calls_give_the_same_program() -> None:
    caller = make_caller()
    assert load_program(caller, (VECTOR,)) is load_program(caller, (VECTOR,))


def test_programs_die_with_their_dispatcher() -> None:
    caller = make_caller()
    program = weakref.ref(load_program(caller, (VECTOR,)))
    del caller
    gc.collect()
    assert program() is None


def test_compiled_before() -> None:
    fresh, compiled = make_caller(), make_caller()
    compiled(np.ones(3))
    lengths = [load_program(f, (VECTOR,)).text.count("\n  ") for f in (fresh, compiled)]
    assert lengths[0] == lengths[1]


def loader_of(path: Path, source: str) -> Callable[[], Any]:
    """Imports a new module of this source in each call, as a new process would."""
    path.write_text(source)

    def load() -> Any:
        spec = importlib.util.spec_from_file_location("cached_module", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["cached_module"] = module
        spec.loader.exec_module(module)
        return module

    return load


def test_loaded_from_disk_cache(tmp_path: Path) -> None:
    load = loader_of(
        tmp_path / "cached_module.py",
        "from numba import njit\n"
        "@njit(cache=True)\ndef inner(x):\n    return x * 3\n"
        "@njit(cache=True)\ndef outer(x):\n    return inner(x) + 1\n",
    )
    assert load().outer(2.0) == 7.0
    again = load()
    assert again.outer(2.0) == 7.0
    assert sum(again.outer.stats.cache_hits.values()) == 1
    hits = dict(again.outer.stats.cache_hits)
    program = load_program(again.outer, (float64,))
    assert program.text.count("fmul double") == 1
    assert dict(again.outer.stats.cache_hits) == hits
    del sys.modules["cached_module"]


def test_elementwise_functions_in_the_disk_cache(tmp_path: Path) -> None:
    load = loader_of(
        tmp_path / "cached_module.py",
        "from numba import njit, vectorize\n"
        "@vectorize(['float64(float64)'], cache=True)\ndef declared(x):\n    return x * 3\n"
        "@vectorize(cache=True)\ndef lazy(x):\n    return x * 5\n"
        "@njit\ndef outer(x):\n    return declared(x) + lazy(x)\n",
    )
    for _ in range(2):  # irad neither reads the cache nor writes what it lowers to it
        module = load()
        assert load_program(module.outer, (float64,)).text.count("fmul double") == 2
    assert load().outer(2.0) == 16.0
    assert load().lazy(2.0) == 10.0
    del sys.modules["cached_module"]


def test_explicit_signatures_are_resolved_as_numba_does() -> None:
    @njit([float64(float64), int64(int64)])
    def declared(x):
        return x * 2

    assert load_program(declared, (float64,)).signature == float64(float64)
    assert load_program(declared, (types.int32,)).signature == int64(int64)
    with pytest.raises(BackendError, match="declared"):
        load_program(declared, (VECTOR,))


def test_declared_return_type_is_kept() -> None:
    @njit(types.float32(float64))
    def narrow(x):
        return x * 2

    assert load_program(narrow, (float64,)).signature == types.float32(float64)


@njit
def even(n):
    if n == 0:
        return 1.0
    return odd(n - 1) * 2.0


@njit
def odd(n):
    if n == 0:
        return 3.0
    return even(n - 1) + 1.0


@njit
def uses_both(n):
    return even(n) + odd(n)


def test_mutual_recursion_from_every_side() -> None:
    for function in (even, odd, uses_both):
        text = load_program(function, (int64,)).text
        assert ".numba.unresolved$" not in text
        assert not re.search(r"^declare .*@_ZN", text, re.MULTILINE)


def test_inside_a_compilation_by_numba() -> None:
    primal = make_caller()
    programs = []

    @intrinsic
    def probe(typing_context, a):
        programs.append(load_program(primal, (a,)))
        return float64(a), lambda context, builder, sig, args: context.get_constant(float64, 42.0)

    @njit
    def outer(a):
        b = np.zeros_like(a) + callee(a[0])  # typed before the nested compile, lowered after it
        t = probe(a)
        return t + b.sum() + callee(a[0]) + np.linalg.norm(a) + primal(a)

    @njit
    def again(a):
        return np.linalg.norm(a) + outer(a) + np.zeros(2).sum()

    a = np.ones(3)
    expected = 42.0 + 4 * 2 * np.sin(1.0) + np.sqrt(3.0) + primal.py_func(a)
    assert outer(a) == pytest.approx(expected)
    assert again(a) == pytest.approx(expected + np.sqrt(3.0))
    assert len(programs) >= 1
    assert programs[0] is load_program(primal, (VECTOR,))


def test_of_the_function_that_is_being_compiled() -> None:
    texts = []

    @intrinsic
    def probe(typing_context, x):
        if not texts:
            texts.append("")
            texts.append(load_program(inner, (x,)).text)
        return float64(x), lambda context, builder, sig, args: args[0]

    @njit
    def inner(x):
        return callee(x) + (inner(x - 1) if x > 0 else 0.0)

    @njit
    def outer(x):
        return inner(x) + probe(x)

    assert outer(2.0) == pytest.approx(sum(2 * np.sin(v) for v in (2.0, 1.0, 0.0)) + 2.0)
    assert "define" in texts[1]


def test_threads() -> None:
    functions = [make_caller() for _ in range(6)]
    failures: list[BaseException] = []
    barrier = threading.Barrier(len(functions))

    def work(index: int) -> None:
        try:
            barrier.wait()
            if index % 2:
                load_program(functions[index], (VECTOR,))
                assert not functions[index].overloads
            for _ in range(200):
                assert len(functions[index].overloads) == 0
            functions[index](np.ones(3))
            assert len(functions[index].overloads) == 1
            load_program(functions[index - 1], (VECTOR,))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_first_compilation_of_the_process() -> None:
    code = (
        "import numpy as np\n"
        "from numba import njit, typeof\n"
        "from irad.frontend.numba.cpu import load_program\n"
        "@njit\n"
        "def f(a):\n    return np.zeros(3).sum() + a.sum()\n"
        "load_program(f, (typeof(np.ones(2)),))\n"
        "print(f(np.ones(2)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "2.0", done.stderr


def test_typing_error_names_the_line() -> None:
    @njit
    def broken(x):
        y = x + 1
        return np.sort(y, nothing=3)

    with pytest.raises(BackendError) as raised:
        load_program(broken, (float64,))
    location = raised.value.location
    assert location is not None
    assert location.file == __file__
    assert location.line == broken.py_func.__code__.co_firstlineno + 3
    assert "candidate" not in raised.value.problem


def test_a_folder_called_numba_is_the_users(tmp_path: Path) -> None:
    file = tmp_path / "numba" / "model.py"
    file.parent.mkdir()
    file.write_text("from numba import njit\n@njit\ndef broken(x):\n    y = x + 1\n    return y.nothing\n")
    specification = importlib.util.spec_from_file_location("model", file)
    assert specification is not None
    assert specification.loader is not None
    model = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(model)
    with pytest.raises(BackendError) as raised:
        load_program(model.broken, (float64,))
    location = raised.value.location
    assert location is not None
    assert (location.file, location.line) == (str(file), 5)


def test_error_in_a_callee_names_the_callers_line() -> None:
    @njit
    def broken(x):
        return x.nothing

    @njit
    def caller(x):
        return broken(x)

    with pytest.raises(BackendError) as raised:
        load_program(caller, (float64,))
    location = raised.value.location
    assert location is not None
    assert location.file == __file__
    assert "nothing" in raised.value.problem


def test_failure_leaves_numba_intact() -> None:
    @njit
    def broken(x):
        return x.nothing

    for _ in range(2):
        with pytest.raises(BackendError):
            load_program(broken, (float64,))
    caller = make_caller()
    load_program(caller, (VECTOR,))
    assert caller(np.ones(3)) > 0


def literal_only(x: Any, n: Any) -> Any:
    raise NotImplementedError


@overload(literal_only)
def _literal_only(x, n):
    return (lambda x, n: x) if isinstance(n, types.IntegerLiteral) else None


def test_requests_for_literals_pass_through() -> None:
    @njit
    def needs_literal(x, n):
        return literal_only(x, literally(n))

    with pytest.raises(ForceLiteralArg):
        load_program(needs_literal, (float64, int64))
    assert load_program(needs_literal, (float64, types.literal(3))).signature.return_type == float64


def test_signed_counters_have_nsw() -> None:
    @njit
    def triangle(a):
        s = 0.0
        for i in range(1, a.shape[0]):
            for j in range(i, a.shape[0], 3):
                s += a[j]
        return s

    text = load_program(triangle, (VECTOR,)).text
    assert re.search(r"add nuw nsw i64 %\S+, 3", text)
    assert " select " not in text  # the index is known not to be negative


def test_unsigned_counters_do_not() -> None:
    @njit
    def count(n):
        s = np.uint64(0)
        for i in range(n - np.uint64(3), n, np.uint64(2)):
            s ^= np.uint64(i)
        return s

    text = load_program(count, (types.uint64,)).text
    adds = [line for line in text.splitlines() if re.search(r" = add .*i64 ", line)]
    assert adds
    assert not any("nsw i64 %" in line and ", 2" in line for line in adds)


def test_records_are_copied_as_memory() -> None:
    dtype = np.dtype([("a", np.float64), ("b", np.int32), ("c", np.float64)])

    @njit
    def swap(r):
        r[0], r[1] = r[1], r[0]
        return r[0].a

    text = load_program(swap, (typeof(np.zeros(2, dtype)),)).text
    assert "llvm.mem" in text
    assert not re.search(r"load \[\d+ x i8\]|load i8|load i160|load <", text)


def test_options_are_kept() -> None:
    def body(a, n):
        s = 0.0
        for i in range(n):
            s += a[i] / a[0]
        return s

    def parallel_body(a, n):
        s = 0.0
        for i in prange(n):
            s += a[i]
        return s

    arguments = (VECTOR, int64)
    plain = load_program(njit(body), arguments).text
    assert "ZeroDivisionError" in plain
    assert "IndexError" not in plain
    assert "ZeroDivisionError" not in load_program(njit(error_model="numpy")(body), arguments).text
    assert "IndexError" in load_program(njit(boundscheck=True)(body), arguments).text
    assert "fadd fast" in load_program(njit(fastmath=True)(body), arguments).text
    assert "fadd contract" in load_program(njit(fastmath={"contract"})(body), arguments).text
    assert "@numba_parallel_for" in load_program(njit(parallel=True)(parallel_body), arguments).text


SLICES = """
def body(a, b):
    a[1:, :] = b
    a[:, 1:] = b[0, :]
    a[:-1, :] += 2.0 * b
    return a[0, 0]
"""


def definitions(text: str) -> dict[str, str]:
    """Line of definition → body."""
    return {d[1]: d[2] for d in re.finditer(r"^define ([^\n]*)\n(.*?)^}", text, re.MULTILINE | re.DOTALL)}


def test_what_writes_the_message_of_an_error_stays_a_call() -> None:
    scope: dict[str, Any] = {}
    exec(SLICES, scope)
    text = load_program(njit(scope["body"]), (typeof(np.ones((2, 2))),) * 2).text
    found = definitions(text)
    writers = [head for head in found if "raise_with_shape_context" in head]
    assert 1 <= len(writers) <= 2  # one for each pair of numbers of axes
    for head in writers:
        group = re.search(r" (#\d+) ", head)
        assert group is not None
        words = re.search(rf"^attributes {group[1]} = {{ (.*) }}", text, re.MULTILINE)
        assert words is not None
        assert {"noinline", "cold", "optsize"} <= set(words[1].split())
        assert " void @" in head  # LLVM knows that it returns the status of an error
    entry = next(body for head, body in found.items() if "body" in head and "raise_with" not in head)
    assert entry.count("raise_with_shape_context") >= 3
    assert entry.count("\n") < 1000


@pytest.mark.parametrize(
    ("source", "is_inlined"),
    [
        ("def fail(n):\n    raise ValueError('size', n)", False),
        ("def fail(n):\n    if n > 2:\n        raise ValueError('size', n)", True),
        ("def fail(n):\n    raise ValueError('size', float(n + 0.5))", True),
    ],
    ids=["raises", "may raise", "takes a number"],
)
def test_only_functions_of_integers_that_always_raise_stay_calls(source: str, is_inlined: bool) -> None:
    scope: dict[str, Any] = {}
    exec(source, scope)
    fail = njit(scope["fail"])

    @njit
    def body(x, n):
        if x.size < n:
            fail(x[0] if is_number else n)
        return x[0] * x[0]

    is_number = "float" in source
    heads = definitions(load_program(body, (VECTOR, int64)).text)
    assert any("fail" in head for head in heads) != is_inlined


def test_debug_option_does_not_stop_the_optimiser() -> None:
    def body(x):
        y = x + 1
        return y * y

    text = load_program(njit(debug=True)(body), (float64,)).text
    assert "optnone" not in text
    assert "alloca" not in text


@pytest.mark.filterwarnings(f"error::{NumbaDebugInfoWarning.__module__}.{NumbaDebugInfoWarning.__name__}")
def test_every_operation_has_its_line() -> None:
    caller = make_caller()
    program = load_program(caller, (VECTOR,))
    metadata = dict(re.findall(r"^(!\d+) = (.*)$", program.text, re.MULTILINE))
    calls = re.findall(r"call double @llvm\.sin.*!dbg (!\d+)", program.text)
    assert calls
    for location in calls:
        assert f"line: {callee.py_func.__code__.co_firstlineno + 2}" in metadata[location]
    assert Path(__file__).name in program.text
