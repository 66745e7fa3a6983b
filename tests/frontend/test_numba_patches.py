"""Numba calls what irad puts in the place of its own: a release that no longer does would drop marks, in silence.

Each row of the table of changes (`irad.frontend.numba.patches`) is counted in compilations that need it, which all rows
share. What must be in lowered code is looked for at run time, too: without it a function is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from numba import float64, guvectorize, njit, objmode, prange, stencil, typeof, types, vectorize
from numba.core import codegen, config
from numba.core.typing.templates import infer_getattr
from numba.extending import intrinsic, overload

import irad
from irad.errors import BackendError
from irad.frontend.numba import internals, patches, private, raw_target
from irad.frontend.numba.cpu import load_program
from irad.frontend.numba.library import build_support

COUNTED = (*patches.TABLES, *patches.METHODS, *patches.NAMES, *patches.FOR_GOOD, *patches.OVERRIDDEN)
FACTOR = 2.0


@intrinsic
def twice(_context: Any, x: Any) -> Any:
    return x(x), lambda context, builder, signature, arguments: builder.fadd(arguments[0], arguments[0])


def shifted(x: Any) -> Any: ...


def put_in_line(x: Any) -> Any: ...


overload(shifted)(lambda x: lambda x: x + 1.0)
overload(put_in_line, inline="always")(lambda x: lambda x: x + 1.0)


@njit(inline="always")
def inlined(x):
    return x * 3.0


@njit("float64(float64)")
def declared(x):
    return x * FACTOR


@njit
def again(x, n):
    return x if n == 0 else x * again(x, n - 1)


@vectorize
def of_numbers(x, y):
    return x * y


@guvectorize("(n)->()")
def of_rows(x, result):
    result[0] = x[0]


@stencil
def neighbours(a):
    return a[-1] + a[1]


def first(x):
    return x * x


def second(x):
    return x + x


FUNCTIONS = njit(first), njit(second)


@njit
def partly_in_python(x):
    """By itself, since Numba 0.65 pickles a function with such a block, and cannot pickle all that a program names."""
    with objmode(seen="float64"):
        seen = float(x)
    return seen * x


def make_program(scale: float) -> Any:
    """A function that needs what irad changes of Numba on the CPU, but for parallel loops."""

    @njit
    def function(a, x, choose):
        total = twice(x) + shifted(x) + put_in_line(x) + inlined(x) + declared(x) + again(x, 3) + x % 0.7
        total += partly_in_python(x)
        for row in a:
            total += row[0]
        total += a[0, 1] * scale + np.sin(a).sum() + neighbours(a[0]).sum()
        total += of_numbers(a, a).sum()
        result = np.zeros(a.shape[0])
        of_rows(a, result)
        f = FUNCTIONS[0] if choose else FUNCTIONS[1]
        return total + f(x) + result[0]

    return function


@njit(parallel=True)
def in_parallel(a):
    for i in prange(a.size):
        a[i] = a[i] * 2.0
    return a.sum()


@njit
def through(f, x):
    return f(x)


@njit
def gradient(x):
    return x[0] * x[1]


@njit
def several(x):
    return x * x


def counting(called: Counter[patches.Patch], patch: patches.Patch, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        called[patch] += 1
        return function(*args, **kwargs)

    return call


def count_replaced(called: Counter[patches.Patch], monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts calls of what `Shadow` puts in place, and looks at its tables."""
    original = patches.Patch.replacement
    monkeypatch.setattr(patches.Patch, "replacement", lambda patch: counting(called, patch, original(patch)))
    shadow = private.shadow()
    rows = {id(shadow._redirects[patch.name]): patch for patch in patches.TABLES}
    get = private._Redirect.__get__

    def look(self: Any, instance: object, owner: type | None = None) -> Any:
        if instance is not None and shadow.is_here():
            called[rows[id(self)]] += 1
        return get(self, instance, owner)

    monkeypatch.setattr(private._Redirect, "__get__", look)


def count_overridden(called: Counter[patches.Patch], monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts calls of methods of irad's classes, and looks at their attributes."""
    for patch in patches.OVERRIDDEN:
        owner = patch.replacement()
        if not isinstance(owner, type):
            continue  # it makes a class: see `has_method`
        mine = vars(owner)[patch.attribute]
        if isinstance(mine, FunctionType):
            monkeypatch.setattr(owner, patch.attribute, counting(called, patch, mine))
        else:
            look = counting(called, patch, lambda _, found=mine: found)
            monkeypatch.setattr(owner, patch.attribute, property(look))


def count_for_good(called: Counter[patches.Patch], monkeypatch: pytest.MonkeyPatch) -> None:
    for patch in patches.FOR_GOOD:
        owner = patch.owner()
        monkeypatch.setattr(owner, patch.attribute, counting(called, patch, getattr(owner, patch.attribute)))


def with_method_of_some(called: Counter[patches.Patch]) -> Any:
    """A program that calls a method that only some types of a class have."""
    [patch] = [each for each in patches.OVERRIDDEN if each.attribute == "_resolve"]

    def has_it(_: Any) -> bool:
        called[patch] += 1
        return True

    def tally(pair: Any) -> Any:
        return lambda pair: pair[0]

    overload(tally, strict=False)(tally)  # Numba looks for the implementation of a method under its own name, too
    infer_getattr(internals.method_of_some(types.UniTuple, "tally", tally, has_it))
    return njit(lambda x: (x, x).tally())


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Counter[patches.Patch]:
    """How often Numba called what is in the table, in compilations that need all of it."""
    found: Counter[patches.Patch] = Counter()
    folder: Path = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as monkeypatch:
        count_overridden(found, monkeypatch)
        count_for_good(found, monkeypatch)
        count_replaced(found, monkeypatch)
        monkeypatch.setattr(config, "CACHE_DIR", str(folder))
        matrix, vector = typeof(np.ones((2, 2))), typeof(np.ones(2))
        load_program(make_program(2.0), (matrix, float64, types.boolean), checks=True)
        load_program(in_parallel, (vector,))
        load_program(through, (types.FunctionType(float64(float64)), float64))
        load_program(with_method_of_some(found), (float64,))
        irad.grad(gradient)(np.ones(2))
        irad.jacobian(several)(np.ones(2))
        irad.jit(cache=True)(first)(1.0)
        # Another test of this process may have had the run-time support compiled.
        build_support("patches", "define void @irad.of_patches() noinline {\n  ret void\n}\n", ())
        with private.compiler_lock():
            codegen.AOTCPUCodegen("patches").create_library("extension").finalize()
    return found


@pytest.mark.parametrize("patch", COUNTED, ids=lambda patch: f"{patch.name} by {patch.by}")
def test_numba_calls_it(called: Counter[patches.Patch], patch: patches.Patch) -> None:
    assert called[patch] > 0, f"Numba no longer calls {patch.name}, and with it goes this: {patch.why}"


# ------------------------------------------------------------------------------------------------ at run time


def element(a):
    return a[1, 0]


def written(a):
    a[1, 0] = 2.0
    return 1.0


def rows(a):
    total = 0.0
    for row in a:
        total += row[1]
    return total


@pytest.mark.parametrize(
    ("name", "function", "checks", "words"),
    [
        ("do_boundscheck", element, True, "lowers an index without its check"),
        ("do_boundscheck", written, True, "lowers an index without its check"),
        ("basic_indexing", element, False, "lowers an index without its marks"),
        ("get_item_pointer2", element, False, "lowers an index without its marks"),
        ("get_item_pointer2", written, False, "lowers an index without its marks"),
        ("_getitem_array_single_int", rows, False, "lowers an index without its marks"),
        ("Lower.lower_inst", element, False, "without the flags and statements that irad sees"),
        ("_FunctionCompiler._customize_flags", element, True, "without the flags and statements that irad sees"),
    ],
)
def test_what_is_not_marked_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, function: Callable[..., Any], checks: bool, words: str
) -> None:
    """As if Numba no longer called what irad replaces."""
    monkeypatch.setattr(patches, "METHODS", tuple(patch for patch in patches.METHODS if patch.name != name))
    with pytest.raises(BackendError, match=words) as raised:
        load_program(njit(function), (typeof(np.ones((2, 2))),), checks=checks)
    assert str(raised.value).startswith("Numba ")
    assert f"in {function.__name__}" in str(raised.value)
    assert "install a version that irad was tested with" in str(raised.value)


def test_code_without_lines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_target.LineTable, "mark_location", lambda *_: None)
    with pytest.raises(BackendError, match="lowers element without a line table"):
        load_program(njit(element), (typeof(np.ones((2, 2))),))


def test_ranges_without_marks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_target, "SIGNED_RANGES", (types.range_iter32_type, "of a later release"))
    with pytest.raises(BackendError, match="has no lowering for the steps of a range"):
        load_program(njit(element), (typeof(np.ones((2, 2))),))


def test_the_user_sees_the_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "METHODS", tuple(p for p in patches.METHODS if p.name != "do_boundscheck"))
    with pytest.raises(BackendError, match="lowers an index without its check"):
        irad.grad(njit(element), options=irad.Options(boundscheck=True))(np.ones((2, 2)))


def test_a_name_that_is_gone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = patches.Patch(
        patches.Aim.MARKS, "numba.core.cgutils", "gone", "irad.frontend.numba.marks:check_bounds", "why", ""
    )
    monkeypatch.setattr(patches, "METHODS", (*patches.METHODS, gone))
    with pytest.raises(BackendError, match=r"has no numba\.core\.cgutils\.gone"):
        load_program(njit(element), (typeof(np.ones((2, 2))),))
    monkeypatch.undo()
    assert load_program(njit(element), (typeof(np.ones((2, 2))),)).text
