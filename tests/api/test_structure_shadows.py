"""Shadows that are structures of Python: the same functions of flat arguments are the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import Active, BatchDuplicated, Const, Duplicated, DuplicatedNoNeed, Reverse, data


@dataclass
class Layer:
    weights: np.ndarray[Any, Any]
    bias: float
    name: str = "dense"


@dataclass(frozen=True)
class Frozen:
    weights: np.ndarray[Any, Any]
    bias: float


@njit
def loss(params, x):
    total = 0.0
    for layer in params["layers"]:
        total += layer.weights.sum() * layer.bias * x
    return total * params["scale"]


@njit
def flat(v, w, b, c, scale, x):
    return (v.sum() * b * x + w.sum() * c * x) * scale


def model() -> Any:
    layers = [Layer(np.ones(2), 0.5), Layer(np.arange(3.0), 2.0)]
    return {"layers": layers, "scale": np.float32(3.0), "steps": 4, "none": None}


def truth(x: float) -> Any:
    first, second = model()["layers"]
    by = irad.grad(flat, tuple(range(5)))(first.weights, second.weights, first.bias, second.bias, np.float32(3.0), x)
    return [by[0], by[2], by[1], by[3], by[4]]


EXPECTED = data.to_vec(truth(2.0))


def test_numbers_and_arrays_are_added_to() -> None:
    params, shadow = model(), data.make_zero(model())
    places = shadow["layers"][0], shadow["layers"][0].weights
    for count in (1, 2):
        assert irad.autodiff(Reverse, loss, Duplicated(params, shadow), Active(2.0)) == (None, 21.0)
        assert data.to_vec(shadow).tolist() == (count * EXPECTED).tolist()
    irad.autodiff(Reverse, loss, DuplicatedNoNeed(params, shadow), Const(2.0))
    assert data.to_vec(shadow).tolist() == (3 * EXPECTED).tolist()
    assert (shadow["layers"][0], shadow["layers"][0].weights) == (places[0], places[0].weights)
    assert places[1] is shadow["layers"][0].weights
    assert type(shadow["scale"]) is np.float32
    assert (shadow["steps"], shadow["none"], shadow["layers"][1].name) == (4, None, "dense")
    assert data.to_vec(params).tolist() == data.to_vec(model()).tolist()


def test_a_destination_is_overwritten() -> None:
    out = data.copy(model())
    assert irad.value_and_grad_into(loss)(out, model(), 2.0) == loss_of(2.0)
    assert data.to_vec(out).tolist() == EXPECTED.tolist()
    pair = model(), np.ones(1)
    irad.value_and_grad_into(loss, (0, 1))(pair, model(), x=2.0)
    assert (data.to_vec(pair[0]).tolist(), pair[1].tolist()) == (EXPECTED.tolist(), [21.0])
    given = {"layers": model()["layers"], "scale": np.ones(1, np.float32), "steps": None, "none": None}
    irad.value_and_grad_into(loss)(given, model(), 2.0)
    assert given["scale"].tolist() == EXPECTED[-1:].tolist()


def loss_of(x: float) -> Any:
    return irad.value_and_grad(loss)(model(), x)[0]


def test_several_directions() -> None:
    shadows = data.make_zero(model()), data.make_zero(model())
    irad.autodiff(Reverse, loss, BatchDuplicated(model(), shadows), Const(2.0), seed=(1.0, -2.0))
    assert [data.to_vec(s).tolist() for s in shadows] == [EXPECTED.tolist(), (-2.0 * EXPECTED).tolist()]
    with pytest.raises(irad.SignatureError, match="the shadow of params is also the shadow of another part"):
        irad.autodiff(Reverse, loss, BatchDuplicated(model(), (shadows[0],) * 2), Const(2.0), seed=(1.0, 1.0))


def test_what_is_shared_is_added_to_once_for_each_place() -> None:
    layer = Layer(np.ones(2), 0.5)
    params = {"layers": [layer, layer], "scale": 3.0}
    shadow = data.make_zero(params)
    irad.autodiff(Reverse, loss, Duplicated(params, shadow), Const(2.0))
    assert shadow["layers"][0] is shadow["layers"][1]
    h = 1e-6
    shifted = [{**params, "layers": [replace(layer, bias=0.5 + s * h)] * 2} for s in (1, -1)]
    slope = np.subtract(*(irad.value_and_grad(loss)(each, 2.0)[0] for each in shifted)) / (2 * h)
    assert (shadow["layers"][0].bias, shadow["layers"][0].weights.tolist()) == (pytest.approx(slope), [6.0, 6.0])


def test_star_arguments_and_other_instances() -> None:
    @njit
    def product(*models):
        return models[0].a * models[1].a * models[1].b[0]

    models = SimpleNamespace(a=2.0), SimpleNamespace(a=3.0, b=np.array([5.0]))
    shadows = [data.make_zero(each) for each in models]
    irad.autodiff(Reverse, product, *map(Duplicated, models, shadows))
    assert (shadows[0].a, shadows[1].a, shadows[1].b.tolist()) == (15.0, 10.0, [6.0])


def _changed(**fields: Any) -> Any:
    shadow = data.make_zero(model())
    shadow["layers"][1] = replace(shadow["layers"][1], **fields)
    return shadow


def _without(key: str) -> Any:
    shadow = data.make_zero(model())
    del shadow[key]
    return shadow


def _with_layers(*layers: Any) -> Any:
    return {**data.make_zero(model()), "layers": list(layers)}


MISFITS = [
    (lambda p: p, "a shadow holds an object that an argument holds"),
    (lambda p: _with_layers(*p["layers"]), "a shadow holds an object that an argument holds"),
    (lambda p: _changed(weights=p["layers"][0].weights.copy()), r"\['layers'\]\[1\].weights has the shape \(2,\)"),
    (lambda p: _changed(weights=np.zeros(3, np.float32)), r"\['layers'\]\[1\].weights has the dtype float32"),
    (lambda p: _changed(weights=p["layers"][1].weights), "shares memory with argument 0"),
    (lambda p: _changed(bias=np.zeros(2)), r"is an array with more|\['layers'\]\[1\].bias is an? ndarray"),
    (lambda p: _changed(bias="none"), r"params\['layers'\]\[1\].bias is a str, the argument a float"),
    (lambda p: _with_layers(Layer(np.zeros(2), 0.0)), r"params\['layers'\] is a list of 1, the argument a list of 2"),
    (lambda p: _without("scale"), "params is a dict with the keys 'layers', 'steps', 'none', the argument"),
    (
        lambda p: _with_layers(*[Layer(np.zeros(2), 0.0)] * 2),
        r"params\['layers'\]\[1\] is also the shadow of another part|shape",
    ),
]


@pytest.mark.parametrize(("make", "message"), MISFITS)
def test_shadows_that_do_not_fit(make, message) -> None:
    params = model()
    shadow = make(params)
    before = [np.copy(part) for part in data.leaves(shadow)]
    for call in (
        lambda: irad.autodiff(Reverse, loss, Duplicated(params, shadow), Active(2.0)),
        lambda: irad.value_and_grad_into(loss)(shadow, params, 2.0),
    ):
        with pytest.raises(irad.SignatureError, match=message):
            call()
    assert all(map(np.array_equal, data.leaves(shadow), before))
    assert data.to_vec(params).tolist() == data.to_vec(model()).tolist()


def test_numbers_that_cannot_be_overwritten() -> None:
    params = {"layers": [Frozen(np.ones(2), 0.5)], "scale": 3.0}
    shadow = data.make_zero(params)
    with pytest.raises(irad.SignatureError, match=r"params\['layers'\]\[0\].bias has a shadow that cannot") as caught:
        irad.autodiff(Reverse, loss, Duplicated(params, shadow), Active(2.0))
    assert "irad.MixedDuplicated" in caught.value.remedy
    arrays_only = njit(lambda params: params.weights.sum() * params.bias[0])
    frozen, its = Frozen(np.ones(2), np.ones(1)), Frozen(np.zeros(2), np.zeros(1))  # type: ignore[arg-type]
    irad.autodiff(Reverse, arrays_only, Duplicated(frozen, its))
    assert its.bias.tolist() == [2.0]  # type: ignore[attr-defined]


def test_an_exception_leaves_a_shadow_as_it_was() -> None:
    @njit
    def fails(params):
        params["w"][0] *= 2.0
        if params["a"] > 0.0:
            raise ValueError("positive")
        return params["a"] * params["w"][0]

    shadow = {"a": 1.0, "w": np.zeros(1)}
    with pytest.raises(ValueError, match="positive"):
        irad.autodiff(Reverse, fails, Duplicated({"a": 2.0, "w": np.ones(1)}, shadow))
    assert (shadow["a"], shadow["w"].tolist()) == (1.0, [0.0])
