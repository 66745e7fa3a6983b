"""Structures in every kind of call: names that mean something else, star arguments, defaults, orders of keys."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit, prange, types
from numba.extending import typeof_impl

import irad
from irad.rules import AugmentedReturn, is_active
from irad.testing import check_rule, test_forward, test_reverse
from irad.testing.check_gradient import check_quickly

Csr = namedtuple("Csr", "values items keys count")


@dataclass
class Coo:
    values: Any
    items: float
    keys: float
    count: float = field(init=False)


@njit
def entries(matrix):
    return matrix.values[0] * matrix.values[1] * matrix.items + matrix.keys**2


def test_fields_that_are_called_like_methods_of_dictionaries() -> None:
    gradient = irad.grad(entries)(Csr(np.array([2.0, 3.0]), 5.0, 7.0, 11.0))
    assert (gradient.values.tolist(), gradient.items, gradient.keys) == ([15.0, 10.0], 6.0, 14.0)
    of_instance = irad.grad(entries)(Coo(np.array([2.0, 3.0]), 5.0, 7.0))
    assert (of_instance.values.tolist(), of_instance.items, of_instance.keys) == ([15.0, 10.0], 6.0, 14.0)
    assert not hasattr(of_instance, "count")


@dataclass
class Needy:
    x: float

    def __new__(cls, x: float) -> Needy:
        return object.__new__(cls)


def test_an_instance_is_made_without_its_constructor() -> None:
    assert irad.grad(njit(lambda p: p.x**2))(Needy(3.0)) == Needy(6.0)


def test_structures_in_parallel_loops() -> None:
    @njit(parallel=True)
    def total(params, x):
        found = 0.0
        for i in prange(x.size):
            found += params["w"][i] * x[i] ** 2 * params["scale"]
        return found

    x = np.arange(4.0)
    gradient = irad.grad(total)({"w": np.ones(4), "scale": 3.0}, x)
    assert (gradient["w"].tolist(), gradient["scale"]) == ((3.0 * x**2).tolist(), 14.0)


CACHED = """
import dataclasses
import numpy as np
import irad

@dataclasses.dataclass
class Layer:
    w: object

def local():
    return dataclasses.dataclass(type("Local", (), {"__annotations__": {"w": object}}))

@irad.jit(cache=True)
def first(p):
    return (p["a"][0].w ** 2).sum() * p["a"][1].w * p["b"]

others = local(), local()
for layer in (*others[::-1 if len(__import__("sys").argv) > 1 else 1], Layer):
    p = {"a": [layer(np.ones(2)), layer(3.0)], "b": 2.0}
    print(first(p), type(irad.grad(first)(p)["a"][0]) is layer)
print(sum(first.stats.cache_hits.values()), sum(first.stats.cache_misses.values()))
"""


def test_code_on_disk_is_found_by_the_next_process(tmp_path: Path) -> None:
    script, folder = tmp_path / "script.py", tmp_path / "cache"
    script.write_text(CACHED)
    where = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    runs = [
        subprocess.run([sys.executable, script, *more], capture_output=True, text=True, check=True, env=where).stdout
        for more in ([], ["reversed"])
    ]
    calls = ["12.0 True"] * 3
    assert [run.splitlines() for run in runs] == [[*calls, "0 3"], [*calls, "3 0"]]
    assert len(list(folder.rglob("irad.*first*.irad"))) == 6  # three times the function, and its gradient


def test_star_arguments_and_defaults() -> None:
    def starred(scale, *models):
        return scale * models[0]["a"] + models[1]["a"] ** 2 * len(models)

    assert irad.jit(starred)(2.0, {"a": 3.0}, {"a": 5.0}) == 56.0
    assert irad.grad(njit(starred), (0, 1, 2))(2.0, {"a": 3.0}, {"a": 5.0}) == (3.0, {"a": 2.0}, {"a": 20.0})

    def with_default(x, model={"a": 3.0}, power=2):  # noqa: B006
        return x**power * model["a"]

    assert irad.jit(with_default)(2.0) == 12.0
    gradient = irad.grad(njit(with_default))
    assert (gradient(2.0), gradient(2.0, {"a": 4.0}), gradient(2.0, power=3)) == (12.0, 16.0, 36.0)


def test_lists_that_begin_like_lists_of_one_type() -> None:
    product = irad.grad(njit(lambda x: x[0] * 2.0 * len(x)))
    assert product([1.0, 2.0]) == [4.0, 0.0]
    assert product([1.0, 2]) == [4.0, None]
    assert product([1.0, {"a": 1.0}]) == [4.0, {"a": 0.0}]
    assert irad.grad(njit(lambda x: x[1]["a"] ** 2 + len(x[0])))(([], {"a": 3.0})) == ([], {"a": 6.0})
    total = irad.grad(njit(lambda x: (x[0] * x[1]).sum()))
    dense, strided = np.ones(2), np.arange(4.0)[::2]
    assert [each.tolist() for each in total([dense, dense])] == [[1.0, 1.0]] * 2
    assert [each.tolist() for each in total([dense, strided])] == [[0.0, 2.0], [1.0, 1.0]]


def test_classes_that_an_extension_of_numba_knows() -> None:
    @dataclass
    class Extended:
        x: float

    known = types.float64
    typeof_impl.register(Extended)(lambda value, context: known)
    dispatcher = irad.jit(lambda x: x)
    assert dispatcher.typeof_pyval(Extended(1.0)) is known


@njit
def weighted(params):
    return params["a"] * params["b"]


A_AND_B = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])}
OTHER_ORDER = {"b": np.zeros(2), "a": np.ones(2)}


@pytest.mark.parametrize(
    "call",
    [
        lambda: irad.jvp(weighted, (A_AND_B,), (OTHER_ORDER,)),
        lambda: irad.autodiff(irad.Reverse, weighted, irad.Duplicated(A_AND_B, OTHER_ORDER), seed=np.ones(2)),
        lambda: irad.vjp(njit(lambda params: params), A_AND_B)[1](OTHER_ORDER),
        lambda: irad.value_and_grad_into(njit(lambda params: weighted(params).sum()))(OTHER_ORDER, A_AND_B),
        lambda: irad.value_and_jacobian_into(weighted)({"b": np.zeros((2, 2)), "a": np.zeros((2, 2))}, A_AND_B),
    ],
    ids=["tangent", "shadow", "cotangent", "gradient", "Jacobian"],
)
def test_another_order_of_keys_is_not_taken_by_place(call) -> None:
    with pytest.raises(irad.SignatureError, match=r"with the keys 'b', 'a'|is to be written to nothing"):
        call()


def test_errors_name_the_part() -> None:
    square = irad.grad(njit(lambda p: p["x"] ** 2))
    with pytest.raises(irad.BackendError, match=r"a dict with the keys 'x', 'o': p\['o'\]\[1\] is an object"):
        square({"x": 1.0, "o": [2.0, object()]})
    with pytest.raises(irad.SignatureError, match=r"argument 0 \(p\) of .* is a dict with the keys 'x', which has no"):
        square({"x": 1})

    @njit
    def energy(p):
        return p["l"][0].values.sum() * p["s"] + p["l"][0].items

    point = {"l": [Coo(np.ones(2), 1.0, 2)], "s": 1.0}
    for tangent, words in (
        (
            Coo(np.ones(3), 1.0, None),
            r"argument 0 \(p\)\['l'\]\[0\].values has a different shape",
        ),
        (
            Coo(np.ones(2), "x", None),
            r"argument 0 \(p\)\['l'\]\[0\].items of .*energy is a float64; the tangent is a str",
        ),
    ):
        with pytest.raises(irad.SignatureError, match=words):
            irad.jvp(energy, (point,), ({"l": [tangent], "s": 1.0},))
    _, pullback = irad.vjp(njit(lambda p: p), {"a": (np.ones(2),), "b": np.ones(2)})
    with pytest.raises(irad.SignatureError, match=r"the cotangent\['a'\]\[0\] has a different shape"):
        pullback({"a": (np.ones(3),), "b": np.ones(2)})
    with pytest.raises(irad.SignatureError, match=r"the cotangent of value\['a'\]\[0\] of"):
        pullback({"a": (1.0,), "b": np.ones(2)})
    endless: dict[str, Any] = {"x": 1.0}
    endless["self"] = endless
    with pytest.raises(irad.SignatureError, match="contains itself"):
        square(endless)
    function = irad.jit(lambda p: p["n"])
    with pytest.raises(Exception, match="pyobject"):
        function({"n": 2**70})
    assert function({"n": 2**63}) == 2**63


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize("argument", [Pair(2.0, 3.0), {"a": 2.0, "b": 3.0}], ids=["named tuple", "dictionary"])
def test_tangents_that_a_rule_is_given_have_the_structure(argument: Any) -> None:
    part = (lambda p: p.a, lambda p: p.b) if isinstance(argument, Pair) else (lambda p: p["a"], lambda p: p["b"])
    a, b = map(njit, part)
    product = irad.custom_jvp(njit(lambda p: a(p) * b(p)))
    ten = 10.0  # tells the rule from the derivative of the function
    product.defjvp(njit(lambda p, dp: (a(p[0]) * b(p[0]), ten * a(dp[0]) * b(p[0]) + b(dp[0]) * a(p[0]))))
    for tangent, expected in (((1.0, 0.0), 30.0), ((1.0, None), 30.0), ((None, 1.0), 2.0)):
        given = Pair(*tangent) if isinstance(argument, Pair) else dict(zip(("a", "b"), tangent, strict=True))
        assert irad.jvp(njit(lambda p: product(p)), (argument,), (given,)) == (6.0, expected)


def test_checks_take_structures() -> None:
    @njit
    def energy(p):
        return (p["w"] ** 2).sum() * p["s"]

    point = {"w": np.array([1.0, -2.0]), "s": 2.0}
    check_quickly(energy, point, plans=["default"])
    slope = 2.0

    @irad.rules.augmented_primal(energy)
    def energy_augmented(config, p):
        return AugmentedReturn((p.value["w"] ** 2).sum() * p.value["s"], None, (p.value["w"].copy(), p.value["s"]))

    @irad.rules.reverse(energy)
    def energy_reverse(config, cotangent, tape, p):
        if is_active(cotangent) and is_active(p):
            p.shadow["w"][:] += slope * cotangent * tape[0] * tape[1]
            return ((None, (tape[0] ** 2).sum() * cotangent),)
        return ((None, 0.0),) if is_active(p) else (None,)

    try:
        check_rule(energy, point, single=False, aliasing=False, width=1)
        test_reverse(energy, point, aliasing=False)
        gradient = irad.grad(njit(lambda p: energy(p) * 3.0))(point)
        assert (gradient["w"].tolist(), gradient["s"]) == ([12.0, -24.0], 15.0)
    finally:
        irad.rules.remove(energy)
    test_forward(njit(lambda p: (p["w"] ** 2).sum() * p["s"]), point, aliasing=False)
    with pytest.raises(irad.SignatureError, match="is a dict, not an array"):
        irad.sparse_jacobian(njit(lambda p: p["w"] * p["s"]))(point)
