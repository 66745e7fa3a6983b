"""The bridge to JAX, checked by JAX's own means."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass

import irad

jax = pytest.importorskip("jax", reason="JAX is an extra: nox -s bridges")

import jax.numpy as jnp  # noqa: E402 - there may be no JAX
from jax.test_util import check_grads  # noqa: E402

from irad.interop import jax as bridge  # noqa: E402
from irad.interop.jax import wrap  # noqa: E402
from tests.interop.steps import steps  # noqa: E402


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


X, A, B = jnp.array([0.3, 0.8, 1.1], np.float32), np.array([1.2, 0.7, 0.9]), 1.4


def test_structures_and_several_outputs():
    f = wrap(steps)
    x, a, b = jnp.asarray(X, float), jnp.asarray(A), jnp.asarray(B)
    check_grads(lambda x, a, b: f(x, 2, (a, b))[:2], (x, a, b), order=2)
    y, total, count = f(x, 2, (a, b))
    expected = steps(np.asarray(x), 2, (A, B))
    np.testing.assert_allclose(y, expected[0], rtol=1e-15)
    assert (total.shape, int(count)) == ((), 2)


def test_complex_numbers():
    f = wrap(njit(lambda z, w: (z * z * w, np.abs(z).sum())))
    z, w = jnp.array([0.4 + 0.3j, -0.8 + 1.1j]), jnp.array([1.0 - 0.5j, 0.3 + 0.2j])
    check_grads(f, (z, w), order=2, modes=["fwd", "rev"])


class Model(NamedTuple):
    """Parameters."""

    scale: object
    parts: tuple


def test_named_tuples_and_keywords():
    f = wrap(njit(lambda model, x, power=2: model.scale * (model.parts[0] * x**power).sum() + model.parts[1]))
    model = Model(jnp.asarray(1.5), (jnp.array([1.0, 2.0]), jnp.asarray(0.5)))
    found = jax.grad(f)(model, jnp.array([3.0, 4.0]), power=1)
    assert isinstance(found, Model)
    np.testing.assert_allclose(found.scale, 11.0)
    np.testing.assert_allclose(found.parts[0], [4.5, 6.0])
    assert wrap(njit(lambda x: Model(x, (x, x))))(jnp.ones(2))._fields == Model._fields


def test_dictionaries():
    f = wrap(njit(lambda p, x: p["scale"] * (p["parts"]["weights"] * x).sum()))
    p, x = {"scale": jnp.asarray(1.5), "parts": {"weights": jnp.array([1.0, 2.0])}}, jnp.array([3.0, 4.0])
    found = jax.jit(jax.grad(f))(p, x)
    np.testing.assert_allclose(found["scale"], 11.0)
    np.testing.assert_allclose(found["parts"]["weights"], 1.5 * x)
    assert "python" not in jax.jit(f).lower(p, x).as_text()
    assert wrap(njit(lambda p: p))(p)["parts"]["weights"].tolist() == [1.0, 2.0]


@jitclass([("stiffness", float64), ("weights", float64[:])])
class Spring:
    """What compiled code cannot hold as a constant."""

    def __init__(self, stiffness, weights):
        self.stiffness, self.weights = stiffness, weights


def test_objects_and_strings_go_through_python():
    @njit
    def f(x, spring, kind):
        return spring.stiffness * (spring.weights * x**2).sum() * (2.0 if kind == "double" else 1.0)

    spring, g, x = Spring(3.0, np.array([1.0, 2.0])), wrap(f), jnp.array([0.5, -1.5])

    def energy(x):
        return g(x, spring, "double")

    slope = 12.0 * spring.weights * np.asarray(x)
    check_grads(energy, (x,), order=1)
    np.testing.assert_allclose(jax.jit(jax.grad(energy))(x), slope)
    np.testing.assert_allclose(jax.vmap(jax.grad(energy))(jnp.stack([x, 2.0 * x])), [slope, 2.0 * slope])
    assert "python" in jax.jit(energy).lower(x).as_text()
    assert float(g(x, Spring(1.0, np.ones(2)), "single")) == 2.5
    with pytest.raises(jax.errors.JaxRuntimeError, match="cannot be copied"):
        jax.block_until_ready(jax.grad(lambda x: jax.grad(energy)(x).sum())(x))


def test_within_scan_and_jit():
    @njit
    def step(state, rate):
        out = np.empty_like(state)
        out[0] = state[0] + 0.1 * state[1]
        out[1] = state[1] - 0.1 * rate * math.sin(state[0])
        return out

    compiled = wrap(step)

    def plain(state, rate):
        return jnp.stack([state[0] + 0.1 * state[1], state[1] - 0.1 * rate * jnp.sin(state[0])])

    def loss(state, rate, step):
        return (jax.lax.scan(lambda s, _: (step(s, rate), None), state, None, length=30)[0] ** 2).sum()

    given = jnp.array([0.5, 0.1]), jnp.asarray(1.3)
    for transform in (jax.grad, jax.hessian):
        ours = jax.jit(transform(lambda *args: loss(*args, compiled), argnums=(0, 1)))(*given)
        theirs = transform(lambda *args: loss(*args, plain), argnums=(0, 1))(*given)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), ours, theirs)


def test_transformations():
    f = wrap(njit(lambda x: np.sin(x).sum() * x[0]))

    def truth(x):
        return jnp.sin(x).sum() * x[0]

    x = jnp.linspace(0.2, 1.4, 5)
    transforms = (
        lambda f: jax.jacfwd(jax.grad(f)),
        lambda f: jax.jacrev(jax.grad(f)),
        lambda f: jax.jacfwd(jax.jacfwd(f)),
        lambda f: lambda x: jax.jvp(f, (x,), (jnp.cos(x),))[1],
        lambda f: jax.grad(lambda x: jax.grad(lambda x: jax.grad(f)(x)[0])(x)[1]),
    )
    for transform in transforms:
        np.testing.assert_allclose(transform(f)(x), transform(truth)(x), rtol=1e-12, atol=1e-15)


def test_vmap():
    f = wrap(njit(lambda x, y: (np.sin(x) * y.sum(), x.sum())))
    x, y = jnp.arange(6.0).reshape(3, 2), jnp.arange(12.0).reshape(4, 3)
    first, second = jax.vmap(f, in_axes=(0, None))(x, y[:, 0])
    np.testing.assert_allclose(first, np.sin(x) * y[:, 0].sum())
    np.testing.assert_allclose(second, x.sum(1))
    first, _ = jax.jit(jax.vmap(f, in_axes=(0, 1)))(x, y)
    np.testing.assert_allclose(first, np.sin(x) * np.asarray(y).sum(0)[:, None])
    per_sample = jax.vmap(jax.grad(lambda x, y: f(x, y)[0].sum()), in_axes=(0, None))(x, y[:, 0])
    np.testing.assert_allclose(per_sample, np.cos(x) * y[:, 0].sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_dtypes(dtype):
    f = wrap(njit(lambda x: (x * x, x.sum())))
    x = jnp.array([0.5, 2.0 + (0.5j if np.dtype(dtype).kind == "c" else 0.0)], dtype)
    squares, total = f(x)
    assert squares.dtype == total.dtype == dtype
    gradient = jax.grad(lambda x: f(x)[0].real.sum())(x)
    assert gradient.dtype == dtype
    theirs = jax.grad(lambda x: (x * x).real.sum())(x)
    np.testing.assert_allclose(gradient, theirs)


def test_integers_and_bools_have_no_derivative():
    f = wrap(njit(lambda x, index, chosen: (x[index] * chosen.sum(), index + 1, x[0] > 0.0)))
    x, index, chosen = jnp.array([1.0, 2.0]), jnp.asarray(1), jnp.array([True, False, True])
    value, following, positive = f(x, index, chosen)
    assert (float(value), int(following), bool(positive)) == (4.0, 2, True)
    np.testing.assert_allclose(jax.grad(lambda x: f(x, index, chosen)[0])(x), [0.0, 2.0])


def test_thirty_two_bits():
    @njit
    def f(x):
        total = 0.0
        for each in x:
            total += each * each
        return total

    with jax.enable_x64(False):
        g = wrap(f)
        with pytest.warns(UserWarning, match="f returns float64, which is rounded to float32"):
            value = g(X)
        assert value.dtype == np.float32
        gradient = jax.grad(g)(X)
        assert gradient.dtype == np.float32
        np.testing.assert_allclose(gradient, 2.0 * X)


def test_argnums_make_the_others_constants():
    f = wrap(njit(lambda x, y: (x * y).sum()), argnums=0)
    x, y = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    np.testing.assert_allclose(jax.grad(f, 0)(x, y), y)
    np.testing.assert_allclose(jax.grad(f, 1)(x, y), 0.0)


def test_empty_arrays():
    f = wrap(njit(lambda x: (x * 2.0, x.sum())))
    assert f(jnp.zeros((0,)))[0].shape == (0,)
    assert jax.grad(lambda x: f(x)[1])(jnp.zeros((0,))).shape == (0,)


def test_errors_of_the_function_come_out():
    @njit
    def f(x):
        if x[0] < 0.0:
            raise ValueError("too small")
        return x.sum()

    g = wrap(f)
    for call in (g, jax.jit(g), jax.jit(jax.grad(g))):
        with pytest.raises(RuntimeError, match="f raised an exception"):
            jax.block_until_ready(call(jnp.array([-1.0])))
    assert float(g(jnp.array([1.0]))) == 1.0


def test_shapes_that_the_user_states():
    @njit
    def first(x, count):
        while count < 0:  # runs forever on what is not positive
            count -= 0
        return x[:3] * count, (x[:1],)

    f = wrap(first, shapes=lambda x, count: ((3,), ((1,),)))
    x = jnp.arange(5.0)
    y, (z,) = f(x, jnp.asarray(2))
    np.testing.assert_allclose(y, [0.0, 2.0, 4.0])
    assert z.shape == (1,)
    np.testing.assert_allclose(jax.grad(lambda x: f(x, jnp.asarray(2))[0].sum())(x), [2.0, 2.0, 2.0, 0.0, 0.0])


def test_a_result_of_another_shape_is_an_error():
    f = wrap(njit(lambda x: x[x > 0.0]))
    with pytest.raises(RuntimeError, match="another shape"):
        jax.block_until_ready(f(jnp.array([1.0, -1.0])))


def test_programs_of_other_processes_are_not_taken(tmp_path):
    """Both find the same program on disk, but for the name of their function."""
    program = """
import sys
import jax
import jax.numpy as jnp
from numba import njit
import irad.interop.jax
jax.config.update("jax_compilation_cache_dir", sys.argv[2])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
f = irad.interop.jax.wrap(njit((lambda x: (x**3).sum()) if sys.argv[1] == "cube" else (lambda x: (x**2).sum())))
print(jax.jit(jax.grad(f))(jnp.array([1.0, 2.0])).tolist())
"""
    for power, gradient in (("cube", "[3.0, 12.0]"), ("square", "[2.0, 4.0]")):
        command = [sys.executable, "-c", program, power, str(tmp_path)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == gradient
    assert any(tmp_path.iterdir())


def test_a_gpu_is_refused():
    traced = jax.jit(wrap(njit(lambda x: x.sum()))).trace(jnp.ones(2))
    with pytest.raises(NotImplementedError, match="irad_call"):
        traced.lower(lowering_platforms=("cuda",))


def test_no_python_runs():
    text = jax.jit(jax.grad(wrap(njit(lambda x: (x**3).sum())))).lower(jnp.ones(2)).as_text()
    assert "irad_call" in text
    assert "python" not in text


@pytest.mark.parametrize(
    ("f", "given", "words"),
    [
        (lambda x: x.sum(), lambda: (jnp.ones(2, jnp.bfloat16),), "dtype bfloat16"),
        (lambda x: "a", lambda: (jnp.ones(2),), "returns"),
        (lambda x, y: x.sum(), lambda: (jnp.ones(2), object()), "neither an array nor a constant"),
    ],
)
def test_what_is_refused(f, given, words):
    with pytest.raises(irad.SignatureError, match=words):
        wrap(njit(f))(*given())


def test_a_function_that_writes_to_its_argument_is_refused():
    @njit
    def f(x):
        x[0] = 7.0
        return x.sum()

    with pytest.raises(irad.SignatureError, match="writes to its argument 0"):
        wrap(f)(jnp.ones(2))


FIELDS = {
    "_FRAME": ("XLA_FFI_CallFrame", {"args": "args.args", "rets": "rets.rets"}),
    "_BUFFER": ("XLA_FFI_Buffer", {}),
    "_EXTENSION": ("XLA_FFI_Metadata_Extension", {"type": "extension_base.type"}),
    "_METADATA": ("XLA_FFI_Metadata", {"version": "api_version.major_version"}),
}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc, to read the header that comes with JAX")
def test_offsets_are_those_of_the_header(tmp_path: Path):
    wanted = {"XLA_FFI_Api.XLA_FFI_Error_Create": 8 * bridge._ERROR_CREATE}
    for table, (structure, others) in FIELDS.items():
        for field, word in getattr(bridge, table).items():
            wanted[f"{structure}.{others.get(field, field)}"] = 8 * word
    lines = [f'    printf("%zu\\n", offsetof(struct {name.replace(".", ", ", 1)}));' for name in wanted]
    constants = "XLA_FFI_Error_Create_Args_STRUCT_SIZE, XLA_FFI_ExecutionStage_EXECUTE, XLA_FFI_Extension_Metadata"
    sizes = f'    printf("%d %d %d\\n", {constants});'
    program = (
        "#include <stdio.h>\n#include <xla/ffi/api/c_api.h>\nint main() {\n" + "\n".join([*lines, sizes]) + "\n}\n"
    )
    (tmp_path / "offsets.c").write_text(program)
    command = ["gcc", "-I", jax.ffi.include_dir(), "-o", str(tmp_path / "offsets"), str(tmp_path / "offsets.c")]
    subprocess.run(command, check=True)
    *found, constants = subprocess.run(
        [tmp_path / "offsets"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert dict(zip(wanted, map(int, found), strict=True)) == wanted
    assert tuple(map(int, constants.split())) == (bridge._ERROR_SIZE, bridge._EXECUTE, bridge._METADATA_QUERY)


def test_arrays_are_taken_as_constants():
    f = njit(lambda x, data: ((x * data) ** 2).sum())
    np.testing.assert_allclose(irad.grad(f)(np.array([1.0, 2.0]), jnp.array([3.0, 4.0])), [18.0, 64.0])
