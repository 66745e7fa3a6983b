"""Dictionaries, lists and dataclasses of Python as arguments of derivatives: what JAX calls pytrees."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import float64, literal_unroll, njit, prange
from numba.experimental import jitclass

import irad
from irad import data
from irad.testing import gradcheck


@dataclass
class Layer:
    weights: Any
    bias: Any
    name: str = "dense"
    _scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Frozen:
    weights: Any
    bias: float


@njit
def network(params, x):
    hidden = np.tanh(params["layers"][0].weights @ x + params["layers"][0].bias)
    out = params["layers"][1].weights @ hidden
    return params["scale"] * (out * out).sum() * params["layers"][1]._scale


def parameters(rng: np.random.Generator) -> dict[str, Any]:
    first = Layer(rng.normal(size=(4, 3)), rng.normal(size=4), "first")
    return {"layers": [first, Layer(rng.normal(size=(2, 4)), None, "second", 0.5)], "scale": 1.5}


def flat_network(params: dict[str, Any], x: Any) -> float:
    """The same with NumPy."""
    first, second = params["layers"]
    out = second.weights @ np.tanh(first.weights @ x + first.bias)
    return params["scale"] * (out * out).sum() * second._scale


def differences(params: Any, x: Any) -> Any:
    at = data.to_vec(params)

    def value(vector: Any) -> float:
        return flat_network(data.from_vec(vector, params), x)

    step = 1e-6
    return np.array([(value(at + step * e) - value(at - step * e)) / (2 * step) for e in np.eye(at.size)])


@pytest.fixture
def params() -> dict[str, Any]:
    return parameters(np.random.default_rng(7))


X = np.array([0.3, -0.4, 1.2])


def test_gradients_mirror_the_structure(params: dict[str, Any]) -> None:
    value, gradient = irad.value_and_grad(network)(params, X)
    assert value == pytest.approx(flat_network(params, X))
    assert list(gradient) == ["layers", "scale"]
    assert type(gradient["layers"]) is list
    assert type(gradient["layers"][1]) is Layer
    assert gradient["layers"][1].bias is None
    assert gradient["layers"][0].name is None
    assert data.to_vec(gradient) == pytest.approx(differences(params, X), abs=1e-8)
    data.accumulate(params, gradient, lambda g: -1e-3 * g)
    assert flat_network(params, X) < value
    assert irad.grad(network, (0, 1))(params, X)[1].shape == (3,)
    assert irad.jit(network.py_func)(params, X) == pytest.approx(flat_network(params, X))


def test_forward_and_reverse_mode_and_second_derivatives_agree(params: dict[str, Any]) -> None:
    direction = data.recursive_map(lambda v: np.cos(v) if isinstance(v, np.ndarray) else 0.5, params)
    gradient = irad.grad(network)(params, X)
    value, tangent = irad.jvp(network, (params, X), (direction, None))
    assert tangent == pytest.approx(data.dot(gradient, direction), rel=1e-12)
    again, pullback = irad.vjp(network, params, X)
    assert again == pytest.approx(value, rel=1e-14)
    assert data.to_vec(pullback(2.0)[0]) == pytest.approx(2.0 * data.to_vec(gradient), rel=1e-12)
    assert irad.pushforward(network)(params, direction, X) == pytest.approx((value, tangent), rel=1e-14)
    step = 1e-5
    ahead, behind = (
        data.to_vec(irad.grad(network)(data.from_vec(data.to_vec(params) + h * data.to_vec(direction), params), X))
        for h in (step, -step)
    )
    product = irad.hvp(network)(params, direction, X)
    assert data.to_vec(product) == pytest.approx((ahead - behind) / (2 * step), rel=1e-6, abs=1e-8)
    _, linear = irad.linearize(network, params, X)
    assert linear(direction, None) == pytest.approx(tangent, rel=1e-12)


def test_shadows_and_returned_structures() -> None:
    @njit
    def squares(params):
        return (params["a"] ** 2).sum() + params["b"].weights[0] ** 3

    params = {"a": np.array([1.0, 2.0]), "b": Frozen(np.array([2.0]), 7.0)}
    shadow = data.make_zero(params)
    irad.autodiff(irad.Reverse, squares, irad.MixedDuplicated(params, shadow))
    assert shadow["a"].tolist() == [2.0, 4.0]
    assert shadow["b"].weights.tolist() == [12.0]
    first = {"a": np.ones(2), "b": Frozen(np.zeros(1), 0.0)}
    second = {"a": np.zeros(2), "b": Frozen(np.ones(1), 0.0)}
    assert irad.autodiff(irad.Forward, squares, irad.BatchDuplicated(params, (first, second))) == (6.0, 12.0)

    @njit
    def passed_on(params):
        params["a"][0] *= 3.0
        return params

    value, pullback = irad.vjp(passed_on, params)
    assert value["a"].tolist() == [3.0, 2.0]
    assert type(value["b"]) is Frozen
    (gradient,) = pullback({"a": np.array([1.0, 1.0]), "b": Frozen(np.array([5.0]), 1.0)})
    assert gradient["a"].tolist() == [3.0, 1.0]
    assert (gradient["b"].weights.tolist(), gradient["b"].bias) == ([5.0], 1.0)


def test_jacobians_have_the_structure_of_value_and_argument() -> None:
    @njit
    def both(params):
        return params["a"] * params["s"]

    made = irad.jacobian(both)({"a": np.array([1.0, 2.0]), "s": 3.0})
    assert made["a"].tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert made["s"].tolist() == [1.0, 2.0]
    square = njit(lambda p: (p["a"] ** 2).sum() * p["s"])
    hessian = irad.hessian(square)({"a": np.array([1.0, 2.0]), "s": 3.0})
    assert hessian["a"]["a"].tolist() == [[6.0, 0.0], [0.0, 6.0]]
    assert hessian["s"]["a"].tolist() == hessian["a"]["s"].tolist() == [2.0, 4.0]
    assert hessian["s"]["s"] == 0.0


def test_what_a_dictionary_can_do_in_compiled_code() -> None:
    @njit
    def uses(params):
        total = 0.0
        for part in params.values():
            total += part.sum()
        for key, part in params.items():
            if key == "b":
                total += part[0]
        for pair in literal_unroll(params.items()):  # of tuples of pairs, Numba makes code that crashes
            total += pair[1][0] if pair[0] == "a" else 0.0
        if "c" in params:
            total = 0.0
        return total * len(params) * len(params.keys())

    @njit
    def looks_up(params, key):
        total = params.get("a").sum() * params.get("z", 3.0) if key in params else 0.0
        for each in literal_unroll(params.keys()):
            total += np.asarray(params[each]).sum()
        return total if params.get("z") is None else 0.0

    assert irad.grad(uses)({"a": np.ones(2), "b": np.ones(1)})["b"].tolist() == [8.0]
    found = irad.grad(looks_up)({"a": np.ones(2), "b": 1.0}, "a")
    assert (found["a"].tolist(), found["b"]) == ([4.0, 4.0], 1.0)
    assert irad.grad(uses)(OrderedDict(b=np.ones(1), a=np.ones(2)))["a"].tolist() == [8.0, 4.0]


class Parameters(dict[str, Any]):
    """Is made as a dictionary is."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class Named(dict[str, Any]):
    """Is made otherwise."""

    def __init__(self, name: str, **items: Any) -> None:
        super().__init__(items)
        self.name = name


class Layers(list[Any]):
    pass


def test_gradients_keep_the_classes_of_dictionaries_and_lists() -> None:
    @njit
    def energy(params: Any) -> Any:
        return params["w"].sum() ** 2 * params["layers"][0]

    parts: dict[str, Any] = {"w": np.ones(2), "layers": Layers([3.0, np.ones(1)])}
    made = [Parameters(parts), OrderedDict(parts), defaultdict(list, parts), Named("a", **parts)]
    for given, cls in zip(made, [Parameters, OrderedDict, defaultdict, dict], strict=True):
        gradient = irad.grad(energy)(given)
        assert (type(gradient), type(gradient["layers"])) == (cls, Layers)
        assert gradient["w"].tolist() == [12.0, 12.0]
        assert gradient["layers"][0] == 4.0
        assert cls is not defaultdict or gradient.default_factory is None
        value, tangent = irad.jvp(energy, (given,), (gradient,))
        assert (value, tangent) == (12.0, 2 * 144.0 + 16.0)


def test_classes_with_equal_names_and_types_are_told_apart() -> None:
    @njit
    def first(params):
        return params["a"] * 2.0 + params["b"]

    gradient = irad.grad(first)
    assert gradient({"a": 1.0, "b": 2.0}) == {"a": 2.0, "b": 1.0}
    assert gradient({"b": 1.0, "a": 2.0}) == {"b": 1.0, "a": 2.0}
    namesakes = []
    for names in (("x", "y"), ("y", "x")):
        cls = dataclass(type("Pair", (), {"__annotations__": dict.fromkeys(names, float)}))
        namesakes.append(irad.grad(njit(lambda p: p.x * 3.0 + p.y))(cls(1.0, 2.0)))
    assert [(each.x, each.y) for each in namesakes] == [(3.0, 1.0), (3.0, 1.0)]


def test_lists_of_different_things_and_other_instances() -> None:
    @njit
    def mixed(params):
        return params[0].sum() * params[1] + params[2][0, 0]

    gradient = irad.grad(mixed)([np.ones(2), 3.0, np.ones((1, 1))])
    assert [np.asarray(part).tolist() for part in gradient] == [[3.0, 3.0], 2.0, [[1.0]]]
    assert irad.grad(njit(lambda p: p.x**2))(SimpleNamespace(x=3.0)) == SimpleNamespace(x=6.0)

    class Registered:
        def __init__(self, value: float) -> None:
            self.value, self.note = value, object()

    square = irad.grad(njit(lambda p: p.value**2))
    with pytest.raises(irad.BackendError, match="Registered"):
        square(Registered(3.0))
    data.register_container(Registered, ["value"])
    try:
        assert square(Registered(3.0)).value == 6.0
    finally:
        data.unregister(Registered)


def test_errors_name_keys() -> None:
    with pytest.raises(irad.BackendError, match=r"no key 'z': the keys are 'a', 'b'"):
        irad.grad(njit(lambda p: p["z"]))({"a": 1.0, "b": 2.0})
    with pytest.raises(irad.SignatureError, match="the key 1, an int"):
        irad.grad(njit(lambda p: p[1]))({1: 2.0})


def test_what_a_dictionary_cannot_do_in_compiled_code() -> None:
    def of_key(p, key):
        return p[key]

    def of_itself(p):
        total = 0.0
        for key in p:
            total += p[key]
        return total

    def assigned(p):
        p["a"] *= 2.0
        return p["a"]

    def deleted(p):
        del p["a"]
        return p["b"]

    def popped(p):
        return p.pop("a")

    def items(p):
        return p.items()[0][1]

    def attribute(p):
        p["b"].bias += 2.0
        return p["b"].bias

    def parallel(p):
        total = 0.0
        for i in prange(3):
            total += p["b"].weights[i]
        return total

    def parallel_part(p):
        layer, total = p["b"], 0.0
        for i in prange(3):
            total += layer.weights[i]
        return total

    layer = Layer(np.ones(3), 2.0)
    for function, words, line, arguments in (
        (of_key, "a key that is known only when the function runs", 1, ({"a": 1.0}, "a")),
        (of_itself, "it looks up a float64 in a dictionary", 3, ({"a": 1.0},)),
        (assigned, "it assigns to a key of a dictionary", 1, ({"a": 1.0},)),
        (deleted, "it deletes a key of a dictionary", 1, ({"a": 1.0, "b": 2.0},)),
        (popped, "it adds or removes keys", 1, ({"a": 1.0},)),
        (items, "it asks for the items of a dictionary whose parts have different types", 1, ({"a": 1.0, "b": 2},)),
        (attribute, r"it assigns to the attribute bias of a Layer\(", 1, ({"b": layer},)),
        (parallel, r"a parallel loop uses a Layer\(float64\[::1\], ", 2, ({"b": layer},)),
        (parallel_part, "a parallel loop uses a named tuple from another tuple", 2, ({"b": layer},)),
    ):
        compiled = njit(function, parallel="prange" in function.__code__.co_names)
        with pytest.raises(irad.BackendError, match=words) as refusal:
            irad.grad(compiled)(*arguments)
        assert refusal.value.location.line == function.__code__.co_firstlineno + line, function


def test_reports_take_structures(params: dict[str, Any]) -> None:
    assert irad.check(network, params, X).supported
    assert "active params" in str(irad.inspect(network, params, X))


def test_gradients_of_structures_are_checked(params: dict[str, Any]) -> None:
    report = gradcheck(network, params, X)
    assert report.right

    @njit
    def kinked(params):
        return abs(params["inner"][1].weights[2])

    params = {"inner": [0.0, Layer(np.array([1.0, 2.0, 0.0]), 0.0)]}
    assert "params['inner'][1].weights[2]" in str(gradcheck(kinked, params, raises=False))


def test_no_reference_is_kept() -> None:
    array = np.ones(3)
    gradient = irad.grad(njit(lambda p: p["a"].sum()))
    gradient({"a": array})
    before = sys.getrefcount(array)
    for _ in range(100):
        gradient({"a": array})
    assert sys.getrefcount(array) == before


@njit
def rooted(params):
    return np.sqrt(params["layers"][1].weights[0]) * params["scale"]


def test_debug_mode_names_parts_as_the_function_does() -> None:
    debug = irad.Options(debug=True)
    params = {"layers": [0.0, Layer(np.array([0.0, 1.0]), None)], "scale": 1.0}
    with pytest.raises(irad.NonFiniteError, match=r"with respect to params\['layers'\]\[1\].weights\[0\] is inf"):
        irad.grad(rooted, options=debug)(params)
    with pytest.raises(irad.NonFiniteError, match=r"the argument params\['scale'\] was nan from the start"):
        irad.grad(rooted, options=debug)(params | {"scale": np.nan})
    params["layers"][1].weights[0] = 1.0
    _, pullback = irad.vjp(rooted, params, options=debug)
    params["layers"][1].weights[0] = 4.0
    with pytest.warns(irad.ChangedBufferWarning, match=r"params\['layers'\]\[1\].weights was changed"):
        assert pullback(1.0)[0]["layers"][1].weights[0] == 0.5


@jitclass([("rate", float64), ("weights", float64[:])])
class Model:
    def __init__(self, rate, weights):
        self.rate = rate
        self.weights = weights


def test_instances_of_compiled_classes_in_structures_are_not_varied() -> None:
    squared = njit(lambda params, x: params["model"].rate ** 2 * params["scale"] * x)
    report = gradcheck(squared, {"model": Model(2.0, np.ones(2)), "scale": 2.0}, 3.0)
    assert report.right
    assert [each.partition(",")[0] for each in report.not_checked] == ["params"]


def test_linear_maps_of_structures() -> None:
    value, linear = irad.linearize(rooted, {"layers": [0.0, Layer(np.array([4.0, 1.0]), 0.0)], "scale": 1.0})
    assert value == 2.0
    assert linear({"layers": [1.0, Layer(np.array([4.0, 0.0]), 1.0)], "scale": 3.0}) == pytest.approx(7.0)
    assert linear(None) == 0.0

    @njit
    def drawn(params):
        params["w"][0] = np.random.rand()
        return params

    _, linear = irad.linearize(drawn, {"w": np.ones(2)})
    with pytest.raises(irad.SignatureError, match="gives another value now"):
        linear({"w": np.ones(2)})


def test_constant_structures_are_copies() -> None:
    params = {"w": np.ones(2), "layers": [Layer(np.ones(1), 2.0)]}
    stopped = irad.stop_gradient(params)
    stopped["w"][0] = stopped["layers"][0].weights[0] = 5.0
    assert params["w"][0] == params["layers"][0].weights[0] == 1.0
    weighted = njit(lambda p: (irad.stop_gradient(p)["w"] * p["w"]).sum())
    assert irad.grad(weighted)({"w": np.array([2.0, 3.0])})["w"].tolist() == [2.0, 3.0]
