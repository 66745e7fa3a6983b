"""The bridge to PyTorch, checked by PyTorch's own means."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
import weakref
from typing import NamedTuple

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass

import irad

torch = pytest.importorskip("torch", reason="PyTorch is an extra: nox -s bridges")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from irad.interop.torch import _operator, wrap  # noqa: E402 - it imports PyTorch
from tests.interop.steps import steps  # noqa: E402

DOUBLE = {"dtype": torch.float64}


def numbers(*shape, dtype=torch.float64, seed=0):
    """A tensor that requires a gradient."""
    generator = torch.Generator().manual_seed(seed)
    return (0.4 + torch.rand(shape, dtype=dtype, generator=generator)).requires_grad_()


def passes_checks(f, *inputs):
    assert torch.autograd.gradcheck(f, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, inputs, check_fwd_over_rev=True)


def test_structures_and_several_outputs():
    f = wrap(steps)
    passes_checks(lambda x, a, b: f(x, 2, (a, b))[:2], numbers(3), numbers(3, seed=1), numbers(seed=2))
    y, total, count = f(numbers(3), 2, (numbers(3, seed=1), numbers(seed=2)))
    assert (y.shape, total.shape, count.item()) == ((3,), (), 2)
    assert not count.requires_grad


def test_complex_numbers():
    f = wrap(njit(lambda z, w: (z * z * np.conj(w), np.abs(z).sum())))
    passes_checks(f, numbers(2, dtype=torch.complex128), numbers(2, dtype=torch.complex128, seed=1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
def test_dtypes_of_values_and_gradients(dtype):
    f = wrap(njit(lambda x: (x * x, x.sum())))
    x = numbers(4, dtype=dtype)
    squares, total = f(x)
    assert squares.dtype == total.dtype == dtype
    (squares.real.sum() + total.real).backward()
    assert x.grad.dtype == dtype
    torch.testing.assert_close(x.grad, (2.0 * x.detach()).conj().resolve_conj() + 1.0)


def test_numbers_of_no_axes_stay_in_their_precision():
    f = wrap(njit(lambda x, scale: scale * x[0]))
    scale = torch.tensor(3.0, requires_grad=True)
    value = f(torch.ones(2), scale)
    value.backward()
    assert value.dtype == torch.float32
    assert (scale.grad.item(), scale.grad.dtype) == (1.0, torch.float32)


def test_memory_is_shared():
    x = torch.ones(5)
    assert wrap(njit(lambda x: x.ctypes.data))(x).item() == x.data_ptr()


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[::2],
        lambda x: x[0].expand(3, 4),
        lambda x: x.flatten().unfold(0, 3, 2),
        lambda x: x[:0],
    ],
)
def test_views(view):
    f = wrap(njit(lambda x: (x**3).sum()))
    x = numbers(4, 4)
    f(view(x)).backward()
    y = x.detach().clone().requires_grad_()
    (view(y) ** 3).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_conjugate_and_negative_views():
    f = wrap(njit(lambda z: z * z))
    z = numbers(3, dtype=torch.complex128)
    torch.testing.assert_close(f(z.conj()), z.conj() ** 2)
    torch.testing.assert_close(wrap(njit(lambda x: x * x * x))(z.conj().imag), z.conj().imag ** 3)


def test_a_view_of_an_argument_is_copied():
    x = numbers(3)
    y = wrap(njit(lambda x: x[1:]))(x)
    with torch.no_grad():
        y.zero_()
    assert (x > 0.0).all()


def test_only_what_is_needed_is_differentiated(monkeypatch):
    asked = []
    vjp = irad.vjp

    def spy(*args, argnums):
        asked.append(argnums)
        return vjp(*args, argnums=argnums)

    monkeypatch.setattr(irad, "vjp", spy)
    f = wrap(njit(lambda x, y, z: (x * y * z).sum()))
    x, y, z = numbers(2), numbers(2, seed=1), numbers(2, seed=2)
    f(x, y.detach(), z).backward()
    assert asked == [(0, 2)]
    with torch.no_grad():
        f(x, y, z)
    f(x.detach(), y.detach(), z.detach())
    assert asked == [(0, 2)]
    torch.testing.assert_close(x.grad, (y * z).detach())


def test_argnums_make_the_others_constants():
    f = wrap(njit(lambda x, y: (x * y).sum()), argnums=-2)
    x, y = numbers(2), numbers(2, seed=1)
    f(x, y).backward()
    assert y.grad is None
    torch.testing.assert_close(x.grad, y.detach())


def test_backward_may_be_repeated():
    x = numbers(3)
    value = wrap(njit(lambda x: (x**3).sum()))(x)
    (first,) = torch.autograd.grad(value, x, retain_graph=True)
    (second,) = torch.autograd.grad(value, x)
    torch.testing.assert_close(first, second)


def test_third_derivative():
    f = wrap(njit(lambda x: np.sin(x[0] * x[1])))
    x = numbers(2)
    ours = theirs = None
    for function in (f, lambda x: torch.sin(x[0] * x[1])):
        value = function(x)
        for _ in range(3):
            (gradient,) = torch.autograd.grad(value, x, create_graph=True)
            value = gradient[0] + 2.0 * gradient[1]
        ours, theirs = value, ours
    torch.testing.assert_close(ours, theirs)


class Model(NamedTuple):
    """Parameters."""

    scale: torch.Tensor
    parts: tuple


def test_named_tuples_lists_and_dictionaries():
    f = wrap(njit(lambda model, x: model.scale * (model.parts[0] * x).sum() + model.parts[1]))
    model = Model(numbers(), [numbers(3, seed=1), numbers(seed=2)])
    x = numbers(3, seed=3)
    f(model, x).backward()
    torch.testing.assert_close(model.scale.grad, (model.parts[0] * x).sum().detach())
    torch.testing.assert_close(model.parts[1].grad.item(), 1.0)

    g = wrap(lambda p, x: p["scale"] * (p["weights"] * x).sum())
    p = {"scale": numbers(), "weights": numbers(3, seed=1)}
    passes_checks(lambda a, b: g({"scale": a, "weights": b}, x.detach()), p["scale"], p["weights"])


def test_keywords_and_defaults():
    @njit
    def f(x, power=2, shift=1.0):
        return (x**power + shift).sum()

    x = numbers(2)
    assert wrap(f)(x, shift=0.0).item() == pytest.approx((x**2).sum().item())
    assert wrap(f)(x=x, power=3).item() == pytest.approx((x**3 + 1.0).sum().item())


def test_functions_of_torch_func():
    f = wrap(njit(lambda x: np.sin(x).sum() * x[0]))
    x = numbers(11).detach()

    def truth(x):
        return torch.sin(x).sum() * x[0]

    for transform in (
        torch.func.grad,
        torch.func.hessian,
        lambda f: torch.func.jacfwd(torch.func.grad(f)),
        lambda f: torch.func.jacrev(torch.func.jacrev(f)),
        lambda f: torch.func.jacfwd(torch.func.jacfwd(f)),
    ):
        torch.testing.assert_close(transform(f)(x), transform(truth)(x))
    value, tangent = torch.func.jvp(f, (x,), (torch.cos(x),))
    expected = torch.func.jvp(truth, (x,), (torch.cos(x),))
    torch.testing.assert_close((value, tangent), expected)


def test_vmap_over_arguments():
    f = wrap(njit(lambda x, y: (np.sin(x) * y.sum(), x.sum())))
    x, y = numbers(3, 2).detach(), numbers(2, 4, seed=1).detach()
    first, second = torch.func.vmap(f, in_dims=(0, None))(x, y)
    torch.testing.assert_close(first, torch.sin(x) * y.sum())
    torch.testing.assert_close(second, x.sum(1))
    per_sample = torch.func.vmap(torch.func.grad(lambda x, y: f(x, y)[0].sum()), in_dims=(0, 1))(
        x[:2].T.clone(), y[:, :2]
    )
    assert per_sample.shape == (2, 2)


@pytest.mark.parametrize("rows", [1, 3, 19])
def test_jacobians_of_any_number_of_rows(rows):
    @njit
    def f(x):
        return np.concatenate((x * x, x[:1] * x))

    g = wrap(f)
    x = numbers(rows).detach()
    jacobian = torch.func.jacrev(g)(x)
    truth = torch.cat(
        (torch.diag(2.0 * x), torch.diag(x[:1].expand(rows)) + torch.outer(x, torch.eye(rows, **DOUBLE)[0]))
    )
    torch.testing.assert_close(jacobian, truth)
    torch.testing.assert_close(torch.func.jacfwd(g)(x), truth)
    torch.testing.assert_close(
        torch.func.jacfwd(torch.func.jacrev(g))(x), torch.func.hessian(lambda x: torch.cat((x * x, x[:1] * x)))(x)
    )


def test_batches_without_rows():
    f = wrap(njit(lambda x: (x * x, x.sum())))
    squares, totals = torch.func.vmap(f)(torch.ones(0, 3))
    assert (squares.shape, totals.shape) == ((0, 3), (0,))


def test_recorded_operations():
    """What PyTorch records holds the call, not the result that it had."""
    f, x = wrap(njit(lambda x: (x * x).sum())), numbers(3).detach()
    _, linear = torch.func.linearize(f, x)
    direction = torch.tensor([0.5, -1.0, 2.0], **DOUBLE)
    torch.testing.assert_close(linear(direction), 2.0 * (x * direction).sum())
    graph = make_fx(torch.func.grad(f))(x)
    torch.testing.assert_close(graph(x + 1.0), 2.0 * (x + 1.0))


def test_older_vectorisation_is_refused():
    f, x = wrap(njit(lambda x: x * x)), numbers(2)
    with pytest.raises(irad.SignatureError, match="no memory of its own"):
        torch.autograd.grad(f(x), x, torch.eye(2, **DOUBLE), is_grads_batched=True)


def test_results_without_derivative():
    x = numbers(3)
    assert wrap(njit(lambda x: None))(x) is None
    assert wrap(njit(lambda x: np.argmax(x)))(x).item() == x.argmax()


def test_objects_are_passed_as_they_are():
    spring, x = Spring(3.0), numbers(2)
    wrap(njit(lambda x, spring: spring.stiffness * (x**2).sum()))(x, spring).backward()
    torch.testing.assert_close(x.grad, 6.0 * x.detach())


@jitclass([("stiffness", float64)])
class Spring:
    """An object of compiled code."""

    def __init__(self, stiffness):
        self.stiffness = stiffness


def test_graphs_of_other_processes_are_not_taken(tmp_path, monkeypatch):
    """Both find the same graph on disk, but for the numbers of their functions."""
    program = """
import sys
import torch
from numba import njit
import irad.interop.torch
f = irad.interop.torch.wrap(njit((lambda x: (x**3).sum()) if sys.argv[1] == "cube" else (lambda x: (x**2).sum())))
x = torch.tensor([1.0, 2.0], requires_grad=True)
torch.compile(f, fullgraph=True)(x).backward()
print(x.grad.tolist())
"""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    for power, gradient in (("cube", "[3.0, 12.0]"), ("square", "[2.0, 4.0]")):
        run = subprocess.run([sys.executable, "-c", program, power], capture_output=True, text=True, check=True)
        assert run.stdout.strip() == gradient


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_without_a_graph_break(backend):
    f = wrap(steps)

    def model(x, a, b):
        y, total, count = f(2.0 * x, 2, (a, b))
        return (y * y).sum() + count * total

    given = numbers(3), numbers(3, seed=1), numbers(seed=2)
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    torch.testing.assert_close(compiled(*given), model(*given))
    ours = torch.autograd.grad(compiled(*given), given)
    torch.testing.assert_close(ours, torch.autograd.grad(model(*given), given))


def test_compiled_again_for_other_constants_and_functions():
    """What changes between calls of compiled code PyTorch makes a variable: numbers, and attributes of closures."""

    def compiled(f):
        return torch.compile(lambda x, n: f(x, n).sum(), fullgraph=True, backend="aot_eager")

    x = torch.ones(3)
    first = compiled(wrap(njit(lambda x, n: x * n)))
    assert [first(x, n).item() for n in (2, 3, 4, 2.5, 3.5)] == [6.0, 9.0, 12.0, 7.5, 10.5]
    second = compiled(wrap(njit(lambda x, n: x + n)))
    assert [second(x, n).item() for n in (2, 3)] == [9.0, 12.0]


def test_compiled_with_shapes_that_the_user_states():
    calls = []

    @njit
    def f(x, n):
        while n != 7:  # runs forever on ones
            n += 0
        return np.outer(x, x), n

    def fake(x, n):
        calls.append(x.shape)
        return x.new_empty((x.shape[0], x.shape[0])), n.new_empty(())

    g = wrap(f, fake=fake)
    compiled = torch.compile(lambda x, n: g(x, n)[0].sum(), fullgraph=True, backend="aot_eager")
    x = numbers(3)
    compiled(x, torch.tensor(7)).backward()
    torch.testing.assert_close(x.grad, torch.full((3,), 2.0 * x.sum().item(), **DOUBLE))
    assert calls


def test_operator_passes_the_checks_of_pytorch():
    f = wrap(njit(lambda x, y: ((x * y).sum(), x + y)))
    key = f.key((..., ...), [(torch.float64, 1)] * 2)
    tests = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static")
    torch.library.opcheck(_operator, ([numbers(2), numbers(2, seed=1)], key), test_utils=tests)


def test_a_module_trains():
    class Oscillator(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rates = torch.nn.Parameter(torch.tensor([0.5, 0.1], **DOUBLE))
            self.simulate = wrap(simulate)

        def forward(self, times):
            return self.simulate(self.rates, times)

    @njit
    def simulate(rates, times):
        out = np.empty(times.size)
        for i in range(times.size):
            out[i] = math.exp(-rates[1] * times[i]) * math.cos(rates[0] * times[i])
        return out

    times = torch.linspace(0.0, 3.0, 30, **DOUBLE)
    data = torch.exp(-0.3 * times) * torch.cos(0.9 * times)
    model = Oscillator()
    optimiser = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe", max_iter=50)

    def loss():
        optimiser.zero_grad()
        error = ((model(times) - data) ** 2).sum()
        error.backward()
        return error

    optimiser.step(loss)
    np.testing.assert_allclose(model.rates.detach().numpy(), [0.9, 0.3], rtol=1e-4)


def test_memory_is_freed_with_the_graph():
    f = wrap(njit(lambda x: np.sin(x)))
    x = numbers(4)
    y = f(x)
    call = weakref.ref(y.grad_fn)
    y.sum().backward()
    del y
    gc.collect()
    assert call() is None


def test_errors_of_the_function_come_out():
    @njit
    def f(x):
        if x[0] > 0.0:
            raise ValueError("too large")
        return x.sum()

    with pytest.raises(ValueError, match="too large"):
        wrap(f)(numbers(1))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: torch.ones(2, dtype=torch.bfloat16), "dtype torch.bfloat16"),
        (lambda: torch.ones(2).to_sparse(), "layout torch.sparse_coo"),
        (lambda: torch.ones(2, device="meta"), "device meta"),
    ],
)
def test_tensors_that_are_refused(given, words):
    with pytest.raises(irad.SignatureError, match=words):
        wrap(njit(lambda x: x.sum()))(given())


def test_a_function_that_writes_to_its_argument_is_refused():
    @njit
    def f(x):
        x[0] = 7.0
        return x.sum()

    x = numbers(2)
    before = x.detach().clone()
    for _ in range(2):
        with pytest.raises(irad.SignatureError, match="writes to its argument 0"):
            wrap(f)(x)
    torch.testing.assert_close(x.detach(), before)


def test_results_that_are_refused():
    with pytest.raises(irad.SignatureError, match="returns a str"):
        wrap(njit(lambda x: "a"))(torch.ones(2))
    with pytest.raises(irad.SignatureError, match="pass a function"):
        wrap(3)
    with pytest.raises(irad.SignatureError, match="argnums"):
        wrap(njit(lambda x: x), argnums=1)


def test_tensors_are_taken_as_constants():
    f = njit(lambda x, data: ((x * data) ** 2).sum())
    data = torch.tensor([3.0, 4.0], **DOUBLE)
    np.testing.assert_allclose(irad.grad(f)(np.array([1.0, 2.0]), data), [18.0, 64.0])
    with pytest.raises(irad.BackendError, match="PyTorch Tensor"):
        irad.grad(f)(np.array([1.0, 2.0]), data.requires_grad_())
