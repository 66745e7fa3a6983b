"""Functions of irad.nn against PyTorch, value and gradient: another implementation of the same mathematics.

One compiled gradient serves all shapes and layouts of a function; in single precision there is one more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irad
from irad import nn
from tests.nn.checks import scalar_of

torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
F = torch.nn.functional
_RANDOM = np.random.default_rng(0)
_TOLERANCE = {np.float64: 1e-10, np.float32: 2e-4}


def _draw(*shape: int) -> Any:
    return _RANDOM.standard_normal(shape)


def _strided(*shape: int) -> Any:
    """Every second element of the last axis, backwards, of an array with its first two axes exchanged."""
    first, second, *rest, last = shape
    return _RANDOM.standard_normal((second, first, *rest, 2 * last)).swapaxes(0, 1)[..., ::-2]


def compare(f: Any, theirs: Any, arguments: tuple[Any, ...], active: tuple[int, ...], dtype: Any) -> None:
    """Checks value and gradient of the weighted sum that `checks.scalar_of` makes."""
    given = [a.astype(dtype) if isinstance(a, np.ndarray) and a.dtype == float else a for a in arguments]
    tensors = [torch.from_numpy(np.ascontiguousarray(a)) if isinstance(a, np.ndarray) else a for a in given]
    for i in active:
        tensors[i].requires_grad_()
    wanted = theirs(*tensors)
    weights = np.linspace(0.5, 2.0, wanted.numel()).reshape(wanted.shape).astype(dtype)
    tolerance = _TOLERANCE[dtype]
    value = f(*given)
    assert value.dtype == dtype
    np.testing.assert_allclose(value, wanted.detach().numpy(), rtol=tolerance, atol=tolerance)
    found = irad.grad(scalar_of(f, len(given)), argnums=tuple(1 + i for i in active))(weights, *given)
    slopes = torch.autograd.grad(
        (torch.from_numpy(weights) * (wanted * wanted + wanted)).sum(), [tensors[i] for i in active]
    )
    for mine, other in zip(found, slopes, strict=True):
        scale = float(other.abs().max()) if other.numel() else 1.0
        np.testing.assert_allclose(mine, other.numpy(), rtol=tolerance, atol=tolerance * max(scale, 1.0))


_IDX = np.array([2, 0, 2, 2, 4])
_ROWS = _draw(5, 2), _draw(5, 2), _IDX
_PAIRS = np.array([[2, 0, 2], [2, 1, 2]]), np.array([[3, 0, 3], [3, 1, 0]])
_MASK = _RANDOM.random((2, 1, 5, 7)) > 0.3
_NORMAL = _draw(3, 4, 5), _draw(4), _draw(4)


def _attention(q: Any, k: Any, v: Any, bias: Any, mask: Any, causal: bool, scale: float) -> Any:
    seen = mask & torch.tril(torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)) if causal else mask
    return F.scaled_dot_product_attention(q, k, v, bias.masked_fill(~seen, -torch.inf), scale=scale)


def _heads(x: Any) -> Any:
    return x.reshape(*x.shape[:2], 2, -1).transpose(1, 2)


def _one_by_one(x: Any) -> Any:
    return x.transpose(1, 2).flatten(2)


def _scatter(reduce: str) -> Any:
    def scatter(op: str, dst: Any, src: Any, idx: Any) -> Any:
        return dst.index_reduce(0, idx, src, reduce) if reduce else dst.index_add(0, idx, src)

    return scatter


def _scatter_quotients(op: str, dst: Any, src: Any, idx: Any) -> Any:
    return dst / torch.ones_like(dst).index_reduce(0, idx, src, "prod")


def _scatter_means(op: str, dst: Any, src: Any, idx: Any) -> Any:
    return dst + torch.zeros_like(dst).index_reduce(0, idx, src, "mean", include_self=False)


CASES: dict[str, tuple[Any, Any, tuple[Any, ...], tuple[int, ...]]] = {
    "softmax": (nn.softmax, torch.softmax, (_draw(3, 4, 5), 1), (0,)),
    "softmax of strided memory": (nn.softmax, torch.softmax, (_strided(3, 4, 5), 2), (0,)),
    "logsoftmax": (nn.logsoftmax, torch.log_softmax, (_draw(3, 4, 5), 1), (0,)),
    "logsumexp": (nn.logsumexp, lambda x, axis: torch.logsumexp(x, axis, True), (_draw(3, 4, 5), 1), (0,)),
    "logsumexp of two axes": (nn.logsumexp, lambda x, axis: x.logsumexp(axis, True), (_draw(3, 4, 5), (2, 0)), (0,)),
    "batched_mul": (nn.batched_mul, torch.matmul, (_draw(3, 2, 4), _draw(1, 4, 5)), (0, 1)),
    "conv, columns": (
        nn.conv,
        lambda x, w, s, p, d, g, _: F.conv2d(x, w, None, s, p, d, g),
        (_draw(2, 4, 6, 5), _draw(4, 2, 3, 3), 2, 1, 1, 2, True),
        (0, 1),
    ),
    "conv, shifts": (
        nn.conv,
        lambda x, w, s, p, d, g, _: F.conv2d(x, w, None, s, p, d, g),
        (_draw(2, 16, 6, 5), _draw(17, 16, 3, 3), 1, 2, 2, 1, True),
        (0, 1),
    ),
    "conv_data": (
        nn.conv_data,
        lambda y, w, _, s, p, d, g, f: F.conv_transpose2d(y, w, None, s, p, 0, g, d),
        (_draw(2, 4, 3, 3), _draw(4, 2, 3, 3), (2, 4, 5, 5), 2, 1, 1, 2, True),
        (0, 1),
    ),
    "conv_filter": (
        nn.conv_filter,
        lambda x, y, shape, s, p, d, g, _: torch.nn.grad.conv2d_weight(x, shape, y, s, p, d, g),
        (_draw(2, 4, 5, 5), _draw(2, 4, 3, 3), (4, 2, 3, 3), 2, 1, 1, 2, True),
        (0, 1),
    ),
    "depthwiseconv": (
        nn.depthwiseconv,
        lambda x, w, s, p, d, _: F.conv1d(x, w, None, s, p, d, x.shape[1]),
        (_draw(2, 3, 9), _draw(6, 1, 3), 2, 1, 2, True),
        (0, 1),
    ),
    "maxpool": (nn.maxpool, F.max_pool2d, (_draw(2, 3, 6, 5), 3, 2, 1), (0,)),
    "meanpool": (nn.meanpool, F.avg_pool2d, (_draw(2, 3, 6, 5), 3, 2, 1), (0,)),
    "meanpool without padding": (
        nn.meanpool,
        lambda x, k, s, p, counts: F.avg_pool2d(x, k, s, p, count_include_pad=counts),
        (_draw(2, 3, 6, 5), 3, 2, 1, False),
        (0,),
    ),
    "lpnormpool": (nn.lpnormpool, F.lp_pool1d, (np.abs(_draw(2, 3, 8)), 3.0, 2, 2), (0,)),
    "gather": (nn.gather, lambda src, idx: src[idx], (_draw(5, 3), _IDX), (0,)),
    "gather by two axes": (nn.gather, lambda src, idx: src[idx], (_draw(3, 4, 2), _PAIRS), (0,)),
    "scatter by two axes": (
        nn.scatter,
        lambda op, dst, src, idx: dst.index_put(tuple(map(torch.from_numpy, idx)), src, accumulate=True),
        ("+", _draw(3, 4, 2), _draw(2, 3, 2), _PAIRS),
        (1, 2),
    ),
    "scatter +": (nn.scatter, _scatter(""), ("+", *_ROWS), (1, 2)),
    "scatter *": (nn.scatter, _scatter("prod"), ("*", *_ROWS), (1, 2)),
    "scatter max": (nn.scatter, _scatter("amax"), ("max", *_ROWS), (1, 2)),
    "scatter -": (nn.scatter, lambda op, dst, src, idx: dst.index_add(0, idx, -src), ("-", *_ROWS), (1, 2)),
    "scatter /": (nn.scatter, _scatter_quotients, ("/", *_ROWS), (1, 2)),
    "scatter min": (nn.scatter, _scatter("amin"), ("min", *_ROWS), (1, 2)),
    "scatter mean": (nn.scatter, _scatter_means, ("mean", *_ROWS), (1, 2)),
    "bias_act": (nn.bias_act, lambda f, x, b: torch.tanh(x + b[:, None]), (nn.tanh, _draw(2, 3, 4), _draw(3)), (1, 2)),
    "glu": (nn.glu, F.glu, (_draw(3, 4, 5), 1), (0,)),
    "layernorm": (nn.layernorm, lambda x, w, b: F.layer_norm(x, w.shape, w, b), (_draw(3, 4), *_NORMAL[1:]), (0, 1, 2)),
    "groupnorm": (
        nn.groupnorm,
        lambda x, g, w, b: F.group_norm(x, g, w, b),
        (_NORMAL[0], 2, *_NORMAL[1:]),
        (0, 2, 3),
    ),
    "instancenorm": (nn.instancenorm, lambda x, w, b: F.instance_norm(x, None, None, w, b), _NORMAL, (0, 1, 2)),
    "dot_product_attention": (
        nn.dot_product_attention,
        _attention,
        (_draw(2, 3, 5, 4), _draw(2, 3, 7, 4), _draw(2, 3, 7, 6), _draw(1, 3, 5, 7), _MASK, False, 0.7),
        (0, 1, 2, 3),
    ),
    "dot_product_attention, heads in a row": (
        nn.dot_product_attention,
        lambda q, k, v, *_: _one_by_one(F.scaled_dot_product_attention(*(_heads(each) for each in (q, k, v)))),
        (_draw(2, 5, 6), _draw(2, 7, 6), _draw(2, 7, 4), None, None, False, None, 2),
        (0, 1, 2),
    ),
    "batched_vec": (nn.batched_vec, lambda a, b: (a @ b[..., None])[..., 0], (_draw(3, 2, 4), _draw(3, 4)), (0, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(name: str):
    compare(*CASES[name], np.float64)


@pytest.mark.parametrize("name", ["dot_product_attention", "conv, shifts", "groupnorm", "softmax"])
def test_single_precision(name: str):
    compare(*CASES[name], np.float32)


ACTIVATIONS = {
    "celu": F.celu,
    "elu": F.elu,
    "gelu_erf": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardsigmoid": lambda x: F.relu6(x + 3.0) / 6.0,  # F.hardsigmoid has a sixth in single precision for its gradient
    "hardswish": F.hardswish,
    "hardtanh": F.hardtanh,
    "leakyrelu": F.leaky_relu,
    "logsigmoid": F.logsigmoid,
    "mish": F.mish,
    "relu": F.relu,
    "relu6": F.relu6,
    "selu": F.selu,
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "softshrink": F.softshrink,
    "softsign": F.softsign,
    "swish": F.silu,
    "tanh": torch.tanh,
    "tanhshrink": F.tanhshrink,
}


def test_activations():
    """All in one compiled function, a row for each."""
    names = sorted(ACTIVATIONS)
    lines = [f"    total += (w[{i}] * nn.{name}(x)).sum()" for i, name in enumerate(names)]
    scope: dict[str, Any] = {"nn": nn}
    exec("\n".join(["def loss(w, x):", "    total = 0.0", *lines, "    return total"]), scope)
    x, w = 3.0 * _draw(40), _draw(len(names), 40)
    tensor = torch.from_numpy(x).requires_grad_()
    wanted = sum((torch.from_numpy(w[i]) * ACTIVATIONS[name](tensor)).sum() for i, name in enumerate(names))
    value, slopes = irad.value_and_grad(scope["loss"], argnums=1)(w, x)
    np.testing.assert_allclose(value, float(wanted.detach()), rtol=1e-12)
    np.testing.assert_allclose(slopes, torch.autograd.grad(wanted, tensor)[0].numpy(), rtol=1e-9, atol=1e-12)


def test_batches_in_training_and_inference():
    x, w, b = _NORMAL
    mean, var = np.array([1.0, -1.0, 0.5, 0.0]), np.array([1.0, 2.0, 3.0, 4.0])
    statistics = torch.from_numpy(mean.copy()), torch.from_numpy(var.copy())
    gradient = irad.value_and_grad(scalar_of(nn.batchnorm, 7), argnums=(1, 4, 5))
    for training in (True, False):
        tensors = [torch.from_numpy(each).requires_grad_() for each in (x.copy(), w.copy(), b.copy())]
        wanted = F.batch_norm(tensors[0], *statistics, *tensors[1:], training, 0.3)
        total = (wanted * wanted + wanted).sum()
        value, slopes = gradient(np.ones(x.shape), x, mean, var, w, b, training, 0.3)
        np.testing.assert_allclose(value, float(total.detach()), rtol=1e-12)
        for mine, other in zip(slopes, torch.autograd.grad(total, tensors), strict=True):
            np.testing.assert_allclose(mine, other.numpy(), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose((mean, var), [each.numpy() for each in statistics], rtol=1e-12)
