"""A second process compiles nothing: derivatives of each kind, computed by two processes, one after the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
MODEL = """
import irad
import numpy as np
from irad.rules import AugmentedReturn, StatefulRule
from numba import njit

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
"""
MAIN = """
import json
import sys

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
}


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
