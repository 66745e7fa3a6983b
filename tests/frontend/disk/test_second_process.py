"""A second process compiles nothing: derivatives of each kind, computed by two processes, one after the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
MODEL = """
import irad
import numpy as np
from irad import nn
from irad.implicit import argmin, brentq, fixed_point, gmres, least_squares, newton, solves
from irad.integrate import quad
from irad.ode import solve
from irad.rules import AugmentedReturn, StatefulRule
from numba import njit, prange

STORED = irad.Options(cache=True)

@njit
def chain(x):
    total = 0.0
    for i in range(1, x.size):
        total += np.exp(-x[i] * x[i]) * x[i - 1]
    return total

@njit
def scaled(x):
    return np.sin(x) * x[0]

@njit
def products(out, x):
    for i in range(out.size):
        out[i] = x[i] * x[i + 1]

@njit
def residuals(x):
    out = np.empty(x.size)
    for i in range(x.size):
        out[i] = x[i] ** 2 - x[max(i - 1, 0)]
    return out

@njit
def move(state, dt):
    return state + dt * np.sin(state)

loop = irad.checkpoint_loop(move, 20, 4)

@njit
def energy(x, dt):
    return loop(x, dt).sum()

@njit
def halve(x):
    return 0.5 * x

@irad.rules.build_rule(halve)
def build(signature):
    def state():
        return np.zeros(1)

    def augmented_primal(config, slot, x):
        slot.state[0] += 1.0
        return AugmentedReturn(0.5 * x.value, None, None)

    def reverse(config, slot, cotangent, tape, x):
        return (0.5 * cotangent + 1000.0 * slot.state[0],)

    return StatefulRule(augmented_primal, reverse, state)

@njit
def halved(x):
    return halve(x) * halve(x)

@irad.jit(cache=True)
def gradient_inside(x):
    value, slope = irad.value_and_grad(chain)(x)
    return value + slope.sum()

@irad.jit(cache=True)
def hessian_inside(x):
    return irad.hessian(chain)(x).sum()

@irad.jit(cache=True)
def pullback_inside(x):
    return irad.vjp(chain, x)[1](2.0)[0].sum()

@irad.jit(cache=True)
def network(x):
    return (irad.nn.softmax(x) * x).sum()

@irad.jit(cache=True)
def convolution(images, filters):
    return (nn.conv(images, filters, pad=1) ** 2).sum()

@irad.jit(cache=True)
def pooling(images):
    return (nn.maxpool(images, (2, 2)) * nn.meanpool(images, (2, 2))).sum()

@irad.jit(cache=True)
def attention(q, k, v):
    y, weights = nn.dot_product_attention(q, k, v)
    return (y * y).sum()

@njit
def cubic(x, a):
    return x * x * x + x - a

@irad.jit(cache=True)
def by_newton(a):
    return newton(cubic, 1.0, (a,))

@irad.jit(cache=True)
def by_brentq(a):
    return brentq(cubic, 0.0, 4.0, (a,))

@njit
def system(x, a):
    return np.array([x[0] ** 3 + x[1] - a, x[1] - a * x[0]])

@irad.jit(cache=True)
def by_newton_of_vectors(a):
    return newton(system, np.ones(2), (a,)).sum()

@njit
def misfit(x, t, y):
    return x[0] * np.exp(-x[1] * t) - y

@irad.jit(cache=True)
def by_least_squares(t, y):
    return least_squares(misfit, np.ones(2), (t, y))[1]

@njit
def valley(x, a):
    return (x[0] - a) ** 2 + 2.0 * (x[1] - x[0] * a) ** 2

@irad.jit(cache=True)
def by_argmin(a):
    return argmin(valley, np.ones(2), (a,)).sum()

@njit
def halfway(x, a):
    return 0.5 * (x + a / x)

@irad.jit(cache=True)
def by_fixed_point(a):
    return fixed_point(halfway, 1.0, (a,))

@njit
def operator(v, d):
    return d * v

@irad.jit(cache=True)
def by_gmres(d):
    return gmres(operator, np.ones(3), args=(d,)).sum()

@solves(cubic)
def own_solver(guess, a):
    low, high = 0.0, max(a, 1.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle**3 + middle < a else (low, middle)
    return high

@irad.jit(cache=True)
def by_own_solver(a):
    return own_solver(0.0, a)

@njit
def decay(t, y, rate):
    return -rate * y

@irad.jit(cache=True)
def by_rk4(y, rate):
    return solve(decay, y, (0.0, 1.0), (rate,), method="rk4", steps=10).y.sum()

@irad.jit(cache=True)
def by_dopri5(y, rate):
    return solve(decay, y, (0.0, 1.0), (rate,)).y.sum()

@irad.jit(cache=True)
def by_rodas(y, rate):
    return solve(decay, y, (0.0, 1.0), (rate,), method="rodas").y.sum()

@njit
def density(x, power):
    return x ** power * np.exp(-x)

@irad.jit(cache=True)
def by_quad(start, power):
    return quad(density, start, np.inf, (power,))[0]

@irad.jit(cache=True, parallel=True)
def in_parallel(x):
    total = 0.0
    for i in prange(x.size):
        total += np.sin(x[i]) * x[i]
    return total

@njit
def roots(x):
    return np.sqrt(x) * x

@njit
def larger(x, y):
    return max(x, y)

@njit
def repeated(x, n):
    for _ in range(n):
        x = np.exp(-x) * x
    return x
"""
MAIN = """
import json
import sys
import warnings

import numpy as np
from numba.core import event

compiled = event.RecordingListener()
event.register("numba:compile", compiled)
import irad
import model as m

x, v, n, own = np.linspace(0.5, 2.0, 5), np.linspace(1.0, 3.0, 5), 5, m.STORED

def matrix(made, shape, *args):
    out = np.empty(shape)
    return np.asarray(made(out, *args)).sum() + out.sum()

def workspace():
    # gradients, which tell how often each slot was taken; how many slots there are; the same once they are released
    made, found = irad.grad(m.halved, options=own), []
    for _ in range(2):
        found += [made(3.0), made(3.0), irad.rules.workspace(made).spare, irad.rules.workspace(m.halve).spare]
        irad.rules.close(made)
        found += irad.rules.workspace(made)
    return found

def value_and_gradient(f, *args, argnums=0):
    return np.append(f(*args), irad.grad(f, argnums)(*args))

def swept():
    # a forward and a reverse sweep that are called one after the other, and a cotangent of another type
    augmented, reverse = irad.split(irad.ReverseSplitWithPrimal, m.chain, irad.Duplicated, options=own)
    found = []
    for seed in ((), (2,)):
        shadow = np.zeros(n)
        tape, value = augmented(irad.Duplicated(x, shadow))
        reverse(tape, *seed)
        found += [value, *shadow]
    return found

def reported(derivative, *args):
    # what debug mode, or a limit, says of a call
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = repr(derivative(*args))
        except irad.IradError as error:
            found = str(error)
    return [found, *(str(each.message) for each in told)]

def pulled(f, *args, cotangent, **options):
    def call():
        return irad.vjp(f, *args, options=irad.Options(cache=True, **options))[1](cotangent)
    return reported(call)

debug, limit = irad.Options(cache=True, debug=True), irad.Options(cache=True, max_tape_bytes=64)
images, filters = np.sin(np.arange(72.0)).reshape(2, 1, 6, 6), np.cos(np.arange(27.0)).reshape(3, 1, 3, 3)
tokens, times = images.reshape(2, 1, 6, 6), np.linspace(0.0, 1.0, 6)

CALLS = {
    "hvp": lambda: irad.hvp(m.chain, options=own)(x, v),
    "hvp_and_grad": lambda: irad.hvp_and_grad(m.chain, options=own)(x, v)[0],
    "hvp_into": lambda: matrix(irad.hvp_into(m.chain, options=own), n, x, v),
    "hessian": lambda: irad.hessian(m.chain, options=own)(x),
    "hessian_into": lambda: matrix(irad.hessian_into(m.chain, options=own), (n, n), x),
    "jacobian": lambda: irad.jacobian(m.scaled, options=own)(x),
    "rows": lambda: irad.jacobian(m.chain, options=own)(x),
    "value_and_jacobian_into": lambda: matrix(irad.value_and_jacobian_into(m.scaled, options=own), (n, n), x),
    "outputs": lambda: irad.jacobian(m.products, argnums=1, outputs=0, options=own)(np.empty(n - 1), x),
    "linearize": lambda: irad.linearize(m.chain, x, options=own)[1](v),
    "taylor": lambda: irad.taylor(m.chain, 2, options=own)(x, (v, v))[1][1],
    "sparse_jacobian": lambda: irad.sparse_jacobian(m.residuals, options=own).prepare(x)(x).toarray(),
    "sparse_hessian": lambda: irad.sparse_hessian(m.chain, options=own).prepare(x)(x).toarray(),
    "checkpoint_loop": lambda: irad.grad(m.energy, options=own)(x, 0.1),
    "workspace": workspace,
    "gradient_inside": lambda: m.gradient_inside(x),
    "hessian_inside": lambda: m.hessian_inside(x),
    "pullback_inside": lambda: m.pullback_inside(x),
    "network": lambda: np.append(irad.grad(m.network)(x.reshape(5, 1)), m.network(x.reshape(5, 1))),
    "convolution": lambda: value_and_gradient(m.convolution, images, filters, argnums=1),
    "pooling": lambda: value_and_gradient(m.pooling, images),
    "attention": lambda: value_and_gradient(m.attention, tokens, tokens, tokens),
    "newton": lambda: value_and_gradient(m.by_newton, 3.0),
    "newton of vectors": lambda: value_and_gradient(m.by_newton_of_vectors, 3.0),
    "brentq": lambda: value_and_gradient(m.by_brentq, 3.0),
    "least squares": lambda: value_and_gradient(m.by_least_squares, times, np.exp(-0.7 * times), argnums=1),
    "argmin": lambda: [m.by_argmin(0.5)],
    "fixed point": lambda: value_and_gradient(m.by_fixed_point, 2.0),
    "gmres": lambda: value_and_gradient(m.by_gmres, np.array([1.0, 2.0, 3.0])),
    "own solver": lambda: value_and_gradient(m.by_own_solver, 3.0),
    "rk4": lambda: value_and_gradient(m.by_rk4, x, 0.5),
    "dopri5": lambda: value_and_gradient(m.by_dopri5, x, 0.5),
    "rodas": lambda: value_and_gradient(m.by_rodas, x, 0.5),
    "quad": lambda: value_and_gradient(m.by_quad, 1.0, 2.0),
    "parallel": lambda: value_and_gradient(m.in_parallel, x),
    "vjp": lambda: irad.vjp(m.chain, x, options=own)[1](2.0),
    "split": swept,
    "debug": lambda: [
        *reported(irad.grad(m.larger, options=debug), 1.0, 1.0),
        *reported(irad.jacobian(m.roots, options=debug), np.array([1.0, -2.0])),
        *pulled(m.roots, np.array([4.0, 1.0]), cotangent=np.array([np.nan, 1.0]), debug=True),
    ],
    "limit": lambda: [
        *reported(irad.grad(m.repeated, options=limit), 1.5, 100),
        *reported(irad.grad(m.repeated, options=irad.Options(cache=True, measure_tape=True)), 1.5, 100),
        *pulled(m.repeated, 1.5, 100, cotangent=1.0, max_tape_bytes=64),
    ],
}
found = {}
for kind in sys.argv[1:]:
    before = len(compiled.buffer)
    value = CALLS[kind]()
    found[kind] = [np.asarray(value).ravel().tolist(), len(compiled.buffer) - before]
print(json.dumps(found))
"""
# A function is compiled under the options of its first caller, so programs with callers of their own run apart.
PROGRAMS = {
    "products": ("hvp", "hvp_and_grad", "hvp_into", "linearize", "taylor"),
    "matrices": ("hessian", "hessian_into", "jacobian", "rows", "value_and_jacobian_into", "outputs"),
    "sparse": ("sparse_jacobian", "sparse_hessian"),
    "rules": ("checkpoint_loop", "workspace"),
    "gradient inside": ("gradient_inside",),
    "hessian inside": ("hessian_inside",),
    "pullback inside": ("pullback_inside",),
    "network": ("network",),
    "convolution": ("convolution",),
    "pooling": ("pooling",),
    "attention": ("attention",),
    "numbers": ("newton", "brentq", "fixed point"),
    "own solver": ("own solver",),
    "vectors": ("newton of vectors",),
    "least squares": ("least squares",),
    "minimum": ("argmin",),
    "linear": ("gmres",),
    "equal steps": ("rk4",),
    "controlled steps": ("dopri5",),
    "stiff": ("rodas",),
    "integral": ("quad",),
    "parallel": ("parallel",),
    "sweeps": ("vjp", "split"),
    "debug": ("debug",),
    "limit": ("limit",),
}


_X, _ROOT = np.linspace(0.5, 2.0, 5), 1.2134116627622296  # of x³ + x = 3
_BOTH = [_ROOT, 1.0 / (3.0 * _ROOT**2 + 1.0)]
TRUTH = {
    "newton": _BOTH,
    "brentq": _BOTH,
    "own solver": _BOTH,
    "fixed point": [2**0.5, 0.5 / 2**0.5],
    "argmin": [0.75],  # the sum of a and a², at 0.5
    "gmres": [1.0 + 1.0 / 2.0 + 1.0 / 3.0, -1.0, -1.0 / 4.0, -1.0 / 9.0],
    "quad": [5.0 * np.exp(-1.0), -np.exp(-1.0)],
    "parallel": [(np.sin(_X) * _X).sum(), *(np.cos(_X) * _X + np.sin(_X))],
}
"""Values and gradients in closed form."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("second")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    (folder / "main.py").write_text(MAIN, encoding="utf-8")
    return folder


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_second_process_compiles_nothing(folder: Path, program: str):
    first, second = (run(folder, *PROGRAMS[program]) for _ in range(2))
    for kind, (values, _) in first.items():
        assert second[kind] == [values, 0], kind
    assert all(count for _, count in first.values())
    if program == "rules":
        assert first["workspace"][0] == 2 * [2001.5, 4001.5, 2, 2, 0, 0]
    for kind in first.keys() & TRUTH.keys():
        np.testing.assert_allclose(second[kind][0], TRUTH[kind], rtol=1e-9)
    for kind, words in {"debug": "sqrt(-2.0) = nan", "limit": "max_tape_bytes is 64 bytes"}.items():
        assert kind not in first or words in " ".join(second[kind][0])


def run(folder: Path, *kinds: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(folder / "main.py"), *kinds],
        env={**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "cache")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
