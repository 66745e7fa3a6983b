"""What cannot be differentiated is refused by name, with the place in the user's source and a remedy."""

from __future__ import annotations

import functools
import math

import numba
import numpy as np
import pytest
from numba.experimental import jitclass
from numba.typed import Dict, List

import irad
import irad.cuda


@numba.njit
def product(a, b):
    return a * b


@numba.vectorize
def elementwise(x):
    return x * x


NOT_FUNCTIONS = {
    "number": 3.0,
    "string": "product",
    "none": None,
    "class": int,
    "builtin": math.sin,
    "ufunc": np.sin,
    "partial": functools.partial(product, 1.0),
    "vectorised": elementwise,
}


@pytest.mark.parametrize("make", [irad.grad, irad.value_and_grad, irad.value_and_grad_into])
@pytest.mark.parametrize("f", NOT_FUNCTIONS.values(), ids=NOT_FUNCTIONS)
def test_no_function(make, f):
    with pytest.raises(irad.SignatureError, match="irad cannot differentiate"):
        make(f)


class MLIRDispatcher:
    """What numba-cuda-mlir makes of a kernel or a device function, as far as irad looks at it."""

    def __init__(self, *, device: bool):
        self.__name__ = "square"
        self.targetoptions = {"device": device}

    def __call__(self, x):
        return x * x


MLIRDispatcher.__module__ = "numba_cuda_mlir.descriptor"


@pytest.mark.parametrize("kind", ["kernel", "device function"])
@pytest.mark.parametrize("make", [irad.grad, irad.cuda.grad, irad.cuda.jit, lambda f: irad.check(f, 1.0)])
def test_functions_of_another_cuda_compiler_are_refused_by_name(make, kind):
    with pytest.raises(irad.SignatureError, match=f"square is a {kind} of numba-cuda-mlir") as caught:
        make(MLIRDispatcher(device=kind != "kernel"))
    assert "from numba import cuda" in " ".join(str(caught.value).split())


def test_no_function_for_vjp_and_autodiff():
    with pytest.raises(irad.SignatureError):
        irad.vjp(NOT_FUNCTIONS["number"], 1.0)
    with pytest.raises(irad.SignatureError):
        irad.autodiff(irad.Reverse, math.sin, irad.Active(1.0))


@pytest.mark.parametrize("argnums", [2, -3, (0, 2), (), (0, 0), (1, -1), "0", 1.0, None, True, (0, "b"), [[0]], {0: 1}])
def test_bad_argnums(argnums):
    with pytest.raises(irad.SignatureError) as caught:
        irad.grad(product, argnums)
    assert "argnums" in str(caught.value)


def test_position_behind_the_star_arguments():
    @numba.njit
    def f(*args):
        return args[0]

    assert irad.grad(f, 1)(1.0, 2.0) == 0.0
    with pytest.raises(irad.SignatureError, match="has no argument 2"):
        irad.grad(f, 2)(1.0, 2.0)


WRONG_CALLS = {
    "none": ((), {}),
    "too few": ((1.0,), {}),
    "too many": ((1.0, 2.0, 3.0), {}),
    "unknown keyword": ((1.0, 2.0), {"c": 3.0}),
    "twice": ((1.0, 2.0), {"a": 3.0}),
}


@pytest.mark.parametrize(("args", "kwargs"), WRONG_CALLS.values(), ids=WRONG_CALLS)
@pytest.mark.parametrize("make", [irad.grad, irad.value_and_grad])
def test_wrong_argument_count(make, args, kwargs):
    with pytest.raises(irad.SignatureError) as caught:
        make(product)(*args, **kwargs)
    assert "test_bad_input.py" in str(caught.value)


def test_wrong_argument_count_of_vjp():
    with pytest.raises(irad.SignatureError):
        irad.vjp(product, 1.0)


WITHOUT_DERIVATIVE = {
    "int": (3, "3.0"),
    "bool": (True, "1.0"),
    "array of ints": (np.arange(3), "astype"),
    "array of bools": (np.ones(3, bool), "astype"),
    "numpy int": (np.int32(3), "float"),
    "string": ("abc", "leave it out"),
    "none": (None, "leave it out"),
    "tuple of ints": ((1, 2), "leave it out"),
    "empty tuple": ((), "leave it out"),
}


@pytest.mark.parametrize(("value", "words"), WITHOUT_DERIVATIVE.values(), ids=WITHOUT_DERIVATIVE)
def test_argument_without_derivative(value, words):
    @numba.njit
    def f(x, y):
        return y * 2.0

    with pytest.raises(irad.SignatureError) as caught:
        irad.grad(f)(value, 1.0)
    text = str(caught.value)
    assert "argument 0 (x)" in text
    assert words in caught.value.remedy
    assert "test_bad_input.py" in text
    assert irad.grad(f, 1)(value, 1.0) == 2.0, "as a constant it is fine"


@pytest.mark.parametrize("value", [np.ones(2, np.float16), np.float16(1.0)], ids=["array", "number"])
def test_a_type_without_representation(value):
    """Numba knows float16 by name, and fails with a bare NotImplementedError."""

    @numba.njit
    def f(x, scale):
        return scale

    for call in (irad.grad(f), irad.grad(f, 1), lambda *args: irad.vjp(f, *args)):
        with pytest.raises(irad.UnsupportedError, match=r"argument x of .*float16") as caught:
            call(value, 1.0)
        assert "test_bad_input.py" in str(caught.value)
        assert "np.float32" in caught.value.remedy


@pytest.mark.parametrize(("mine", "theirs"), [(np.float32, np.float64), (np.float64, np.float32)])
def test_numbers_seen_as_numbers_of_another_type(mine, theirs):
    @numba.njit
    def read(x):
        seen = x.view(theirs)
        return seen[0] * 2.0 + seen[1]

    @numba.njit
    def written(x, u):
        seen = x.view(theirs)
        seen[0] = u
        return x[0] * u

    for derivative, given in ((irad.grad(read), ()), (irad.grad(written, (0, 1)), (theirs(2.0),))):
        with pytest.raises(irad.UnsupportedError, match="argument 'x' is accessed as") as caught:
            derivative(np.ones(4, mine), *given)
        assert "astype" in str(caught.value)


@jitclass([("k", numba.float64), ("w", numba.float64[:])])
class Oscillator:
    def __init__(self, k, w):
        self.k = k
        self.w = w

    def energy(self, x):
        return self.k * x * x + self.w[0] * x


def test_constant_jitclass_instances():
    model = Oscillator(2.0, np.ones(3))

    @numba.njit
    def f(model, x):
        return model.energy(x) * model.w[1]

    @numba.njit
    def stores(model, x):
        model.k = x
        return x * x

    @numba.njit
    def stores_in_its_array(model, x):
        model.w[0] = x
        return model.w[0] * x

    assert irad.grad(f, 1)(model, 3.0) == 13.0
    for function in (stores, stores_in_its_array):
        with pytest.raises(irad.IradError, match="argument 'model', which was passed as constant"):
            irad.autodiff(irad.Reverse, function, irad.Const(model), irad.Active(3.0))
    assert (model.k, model.w[0]) == (2.0, 1.0)
    for function in (stores, stores_in_its_array):
        assert irad.grad(function, 1)(model, 3.0) == 6.0


def test_constant_container_arguments():
    @numba.njit
    def f(values, x):
        return values[0][0] * x

    values = List([List([2.0, 3.0])])
    table = Dict.empty(numba.int64, values._numba_type_.item_type)
    table[0] = values[0]
    for given in (values, table):
        assert irad.grad(f, 1)(given, 1.0) == 2.0


RETURNS = {
    "int": (lambda x: 3, "return a float"),
    "bool": (lambda x: x > 0, "return a float"),
    "none": (lambda x: None, "seed=None"),
    "string": (lambda x: "abc", "return a float"),
    "array": (lambda x: np.ones(3) * x, "irad.vjp"),
    "tuple": (lambda x: (x, x), "has_aux"),
    "complex": (lambda x: x * 1j, "irad.vjp"),
}


@pytest.mark.parametrize(("function", "words"), RETURNS.values(), ids=RETURNS)
def test_return_without_derivative(function, words):
    with pytest.raises(irad.SignatureError) as caught:
        irad.grad(numba.njit(function))(1.0)
    assert "returns" in caught.value.problem
    assert words in caught.value.remedy
    assert "test_bad_input.py" in str(caught.value)


def test_has_aux_without_pair():
    with pytest.raises(irad.SignatureError, match="has_aux"):
        irad.grad(product, has_aux=True)(1.0, 2.0)


def test_aux_first():
    @numba.njit
    def f(x):
        return 3, x

    with pytest.raises(irad.SignatureError, match="returns"):
        irad.grad(f, has_aux=True)(1.0)


def test_function_that_numba_cannot_compile():
    @numba.njit
    def f(x):
        return eval("x")

    with pytest.raises(irad.BackendError) as caught:
        irad.grad(f)(1.0)
    text = str(caught.value)
    assert "cannot compile" in text
    assert "test_bad_input.py" in text


def test_argument_that_numba_cannot_type():
    with pytest.raises(irad.IradError):
        irad.grad(product)(object(), 1.0)
    with pytest.raises(irad.IradError):
        irad.vjp(product, object(), 1.0)


def test_same_error_again():
    @numba.njit
    def f(x):
        return int(x)

    gradient = irad.grad(f)
    for _ in range(2):
        with pytest.raises(irad.SignatureError, match="returns"):
            gradient(1.0)


def test_error_inside_compiled_code_is_irads_own():
    gradient = irad.grad(product)

    @numba.njit
    def use(n):
        return gradient(n, 1.0)

    with pytest.raises(irad.SignatureError, match="has no derivative"):
        use(3)


@pytest.mark.parametrize("options", ["save_all", {"plan": "default"}, 1])
def test_bad_options(options):
    with pytest.raises(irad.SignatureError, match="Options"):
        irad.grad(product, options=options)
    with pytest.raises(irad.SignatureError, match="Options"):
        irad.vjp(product, 1.0, 2.0, options=options)
    with pytest.raises(irad.SignatureError, match="Options"):
        irad.autodiff(irad.Reverse, product, irad.Active(1.0), irad.Active(2.0), options=options)


# ------------------------------------------------------------------------------------------------ besides the arguments


@numba.njit
def sum_of_squares(x):
    return (x * x).sum()


class Tensor:
    """Stands for an array of a library that need not be installed."""


Tensor.__module__ = "torch"
ONES = np.ones(3)


def _into_a_shadow(given):
    return irad.autodiff(irad.Reverse, sum_of_squares, irad.Duplicated(ONES, given))


TAKES_A_DIRECTION = {
    "pushforward": lambda given: irad.pushforward(sum_of_squares)(ONES, given),
    "jvp": lambda given: irad.jvp(sum_of_squares, (ONES,), (given,)),
    "hvp": lambda given: irad.hvp(sum_of_squares)(ONES, given),
    "linearize": lambda given: irad.linearize(sum_of_squares, ONES)[1](given),
    "vjp": lambda given: irad.vjp(numba.njit(lambda x: x * x), ONES)[1](given),
    "autodiff": _into_a_shadow,
}


@pytest.mark.parametrize("call", TAKES_A_DIRECTION.values(), ids=TAKES_A_DIRECTION)
def test_directions_of_other_libraries(call):
    with pytest.raises(irad.BackendError, match=r"is a PyTorch Tensor, which Numba does not support") as caught:
        call(Tensor())
    assert ".detach().cpu().numpy()" in caught.value.remedy


@pytest.mark.parametrize("args", [ONES, 2.0, {"x": ONES}])
def test_jvp_takes_tuples(args):
    with pytest.raises(irad.SignatureError, match=r"the args of irad.jvp\(sum_of_squares, …\) are .*, not a tuple"):
        irad.jvp(sum_of_squares, args, (ONES,))
    with pytest.raises(irad.SignatureError, match=r"the tangents of irad.jvp"):
        irad.jvp(sum_of_squares, (ONES,), args)


@pytest.mark.parametrize("argnames", [0, {"a"}])
def test_argnames_that_are_no_names(argnames):
    with pytest.raises(irad.SignatureError, match="is neither a name nor a tuple of names"):
        irad.grad(product, argnames=argnames)


async def coroutine(x):
    return x


@functools.lru_cache
def cached(x):
    return x


def _decorated(f):
    @functools.wraps(f)
    def call(*args, **kwargs):
        return f(*args, **kwargs)

    return call


@_decorated
def decorated(x):
    return x


class Model:
    @classmethod
    def loss(cls, x):
        return x


def empty_default(x, more=[]):  # noqa: B006
    return x


@pytest.mark.parametrize(
    ("f", "problem"),
    [
        (coroutine, r"coroutine is a coroutine function"),
        (cached, r"cached is wrapped by functools.lru_cache"),
        (decorated, r"decorated is wrapped by a decorator"),
        (Model.loss, r"Model.loss is a method"),
        (empty_default, r"argument 1 \(more\) of empty_default is an empty list"),
    ],
)
def test_functions_that_are_not_plain(f, problem):
    with pytest.raises(irad.IradError, match=problem):
        irad.grad(f)(2.0)
