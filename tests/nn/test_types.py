"""Types and layouts of arguments, for every function of irad.nn: one rule, that of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import nn
from tests.nn.checks import scalar_of

ACTIVATIONS = (
    *("celu", "elu", "gelu_erf", "gelu_sigmoid", "gelu_tanh", "hardsigmoid", "hardswish", "hardtanh", "leakyrelu"),
    *("lisht", "logcosh", "logsigmoid", "mish", "relu", "relu6", "rrelu", "selu", "sigmoid", "softplus", "softshrink"),
    *("softsign", "swish", "tanh", "tanhshrink", "trelu"),
)
WITHOUT_ARRAYS = {"hamming_window", "hann_window", "melscale_filterbanks"}
OF_ANY_ARRAY = {"make_causal_mask"}
NEED_TRANSFORMS = {"stft", "istft", "spectrogram"}
SECOND_NAMES = {"gelu", "thresholdrelu"}


def _bits(*shape: int) -> Any:
    """Zeros and ones, which all types of numbers hold."""
    return np.random.default_rng(sum(shape)).integers(0, 2, shape).astype(float)


IMAGE, INDICES = _bits(2, 4, 4, 6), np.array([0, 2, 2])
# The arguments of each function; arrays of floats are those that may have any type.
TABLE: dict[str, tuple[Any, ...]] = {
    **{name: (_bits(3, 4),) for name in ACTIVATIONS},
    "batched_mul": (_bits(2, 3, 4), _bits(1, 4, 2)),
    "batched_vec": (_bits(2, 3, 4), _bits(2, 4)),
    "batchnorm": (_bits(4, 3), _bits(3), 1.0 + _bits(3), _bits(3), _bits(3)),
    "bias_act": (nn.relu, _bits(2, 3, 2), _bits(3)),
    "conv": (IMAGE, _bits(3, 4, 2, 2), 1, 1),
    "conv_data": (_bits(2, 3, 3, 5), _bits(3, 4, 2, 2), IMAGE.shape),
    "conv_filter": (IMAGE, _bits(2, 3, 3, 5), (3, 4, 2, 2)),
    "ctc_loss": (_bits(2, 4, 3), np.array([[0, 1], [1, 1]])),
    "db_to_power": (_bits(3, 4),),
    "depthwiseconv": (IMAGE, _bits(8, 1, 2, 2)),
    "dot_product_attention": (_bits(1, 2, 3, 4), _bits(1, 2, 5, 4), _bits(1, 2, 5, 2), _bits(1, 1, 3, 5)),
    "dot_product_attention_scores": (_bits(1, 2, 3, 4), _bits(1, 2, 5, 4), _bits(1, 1, 3, 5)),
    "dropout": (_bits(3, 4), 0.0),
    "fold": (_bits(2, 8, 5), (2, 4, 6), 2),
    "gather": (_bits(3, 2), INDICES),
    "glu": (_bits(3, 4),),
    "grid_sample": (IMAGE, _bits(2, 3, 3, 2)),
    "groupnorm": (_bits(2, 4, 3), 2, _bits(4), _bits(4)),
    "imrotate": (IMAGE, 0.5),
    "instancenorm": (_bits(2, 4, 3), _bits(4), _bits(4)),
    "layernorm": (_bits(3, 4), _bits(4), _bits(4)),
    "logsoftmax": (_bits(3, 4),),
    "logsumexp": (_bits(3, 4),),
    "lpnormpool": (IMAGE, 2.0, 2),
    "maxpool": (IMAGE, 2),
    "meanpool": (IMAGE, 2),
    "pad_circular": (IMAGE, 1),
    "pad_constant": (IMAGE, 1, 0.5),
    "pad_reflect": (IMAGE, 1),
    "pad_repeat": (IMAGE, 1),
    "pad_symmetric": (IMAGE, 1),
    "pad_zeros": (IMAGE, 1),
    "pixel_shuffle": (IMAGE, 2),
    "pixel_unshuffle": (IMAGE, 2),
    "power_to_db": (_bits(3, 4),),
    "scatter": ("mean", _bits(3, 2), _bits(3, 2), INDICES),
    "softmax": (_bits(3, 4),),
    "unfold": (IMAGE, 2),
    "upsample_bilinear": (IMAGE, 2),
    "upsample_linear": (IMAGE, 2),
    "upsample_nearest": (IMAGE, 2),
    "upsample_trilinear": (IMAGE.reshape(2, 2, 2, 4, 6), 2),
}
COMPLEX = {
    *("lisht", "logcosh", "logsigmoid", "mish", "sigmoid", "softplus", "swish", "tanh", "tanhshrink"),
    *("batched_mul", "batched_vec", "conv", "conv_data", "conv_filter", "depthwiseconv", "meanpool"),
}
"""Functions that take complex numbers."""
QUICK = {"sigmoid", "softmax"}
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in TABLE]


def _places(arguments: tuple[Any, ...]) -> list[int]:
    if arguments is TABLE["batchnorm"]:
        return [0, 3, 4]  # running statistics are written to, so they are floats
    return [i for i, each in enumerate(arguments) if isinstance(each, np.ndarray) and each.dtype == float]


def _with(arguments: tuple[Any, ...], changes: dict[int, Any]) -> tuple[Any, ...]:
    return tuple(changes.get(i, each) for i, each in enumerate(arguments))


def test_every_function_is_in_the_table() -> None:
    assert TABLE.keys() == set(nn.__all__) - WITHOUT_ARRAYS - OF_ANY_ARRAY - NEED_TRANSFORMS - SECOND_NAMES


@pytest.mark.parametrize("name", NAMES)
def test_integers_and_booleans_count_as_float64(name: str) -> None:
    f, arguments = getattr(nn, name), TABLE[name]
    wanted = f(*arguments)
    assert wanted.dtype == float
    for types in ([np.int64], [np.uint8], [np.bool_], [np.int8, np.float64], [np.float64, np.bool_]):
        places = _places(arguments)
        if len(types) > len(places):
            continue
        given = {i: arguments[i].astype(types[min(n, len(types) - 1)]) for n, i in enumerate(places)}
        found = f(*_with(arguments, given))
        assert found.dtype == float
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_several_types_become_one(name: str) -> None:
    f, arguments = getattr(nn, name), TABLE[name]
    places, wanted = _places(arguments), f(*arguments)
    for first, rest in (
        (np.float32, np.float32),
        (np.float32, np.float64),
        (np.float64, np.float32),
        (np.float32, int),
    ):
        given = {i: arguments[i].astype(rest if n else first) for n, i in enumerate(places)}
        every = _with(arguments, given)
        found = f(*every)
        floats = [each for each in every if isinstance(each, np.ndarray) and each.dtype.kind == "f"]
        assert found.dtype == np.result_type(*given.values(), *floats)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_layouts_and_read_only_arrays(name: str) -> None:
    f, arguments = getattr(nn, name), TABLE[name]
    wanted = f(*arguments)
    strided, fortran = {}, {}
    for i in _places(arguments):
        strided[i] = np.repeat(arguments[i], 2, axis=-1)[..., ::2]
        fortran[i] = np.asfortranarray(arguments[i])
        strided[i].flags.writeable = False
    for given in (strided, fortran):
        np.testing.assert_array_equal(f(*_with(arguments, given)), wanted)


@pytest.mark.parametrize("name", [name for name in NAMES if not isinstance(name, str) or name in QUICK])
def test_what_has_no_type_is_refused_by_name(name: str) -> None:
    f, arguments = getattr(nn, name), TABLE[name]
    for i in _places(arguments):
        for wrong in (arguments[i].astype(complex), arguments[i].astype(np.float16), "text"):
            if name in COMPLEX and not isinstance(wrong, str) and wrong.dtype == complex:
                np.testing.assert_allclose(f(*_with(arguments, {i: wrong})), f(*arguments), rtol=1e-14)
                continue
            with pytest.raises(irad.SignatureError, match=f"^{name}: "):
                f(*_with(arguments, {i: wrong}))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, arguments in TABLE.items() if len(_places(arguments)) > 1])
def test_derivatives_have_the_types_of_their_arguments(name: str) -> None:
    arguments = TABLE[name]
    if name == "bias_act":
        arguments = arguments[1:]
    f = _relu_of_sum if name == "bias_act" else getattr(nn, name)
    if name == "scatter":
        f, arguments = _means, arguments[1:]
    places = _places(arguments)[: 1 if name == "batchnorm" else None]
    given = _with(arguments, {places[0]: arguments[places[0]].astype(np.float32)})
    loss = scalar_of(f, len(arguments))
    weights = np.ones(f(*arguments).shape)
    active = tuple(1 + i for i in places)
    found = irad.grad(loss, argnums=active)(weights, *given)
    wanted = irad.grad(loss, argnums=active)(weights, *arguments)
    for i, gradient, expected in zip(places, found, wanted, strict=True):
        assert gradient.dtype == given[i].dtype
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)


@njit
def _relu_of_sum(x, b):
    return nn.bias_act(nn.relu, x, b)


@njit
def _means(dst, src, indices):
    return nn.scatter("mean", dst, src, indices)


def test_numbers() -> None:
    """Of Python and NumPy: an integer is a float, a float keeps its precision."""
    assert nn.sigmoid(1) == nn.sigmoid(np.int8(1)) == nn.sigmoid(True) == nn.sigmoid(1.0)

    @njit
    def half(x):
        return nn.sigmoid(x)

    assert irad.grad(half)(0.0) == 0.25
    with pytest.raises(irad.SignatureError, match="relu: complex128 where a number or an array is needed"):
        nn.relu(1j)


def test_masks_and_running_statistics_of_the_wrong_type() -> None:
    q = _bits(1, 1, 2, 2)
    with pytest.raises(irad.SignatureError, match="a mask of float64, where booleans are needed"):
        nn.dot_product_attention(q, q, q, None, np.zeros((1, 1, 2, 2)))
    with pytest.raises(irad.SignatureError, match="running statistics of int64"):
        nn.batchnorm(_bits(4, 3), np.zeros(3, int), np.ones(3, int), training=True)
    with pytest.raises(irad.SignatureError, match="gather: an array of float64, which it does not support"):
        nn.gather(q, np.zeros(2))
