"""Search trees of nodes that a differentiated function makes: counts, axes and flags that change on the way down."""

from __future__ import annotations

import numpy as np
import pytest
from numba import boolean, deferred_type, float32, float64, int8, int32, int64, njit, optional
from numba.experimental import jitclass

import irad
from irad.testing.check_gradient import check_quickly
from tests.tools.catalogue import Case, Catalogue

PROGRAMS = Catalogue()

X = np.array([0.7, -0.3, 1.2, 0.45, -0.8, 0.33, 0.05, 0.91, -0.62])
BOTH = ("default", "save_all")


NODE = deferred_type()


@jitclass([("key", float64), ("n", int64), ("left", optional(NODE)), ("right", optional(NODE))])
class Node:
    def __init__(self, key):
        self.key = key
        self.n = 1
        self.left = None
        self.right = None


NODE.define(Node.class_type.instance_type)


@PROGRAMS.at(X)
@njit
def counted_search_tree(x):
    root = Node(x[0])
    for i in range(1, x.size):
        p = root
        new = Node(x[i] * x[i])
        while True:
            p.n += 1
            if new.key < p.key:
                if p.left is None:
                    p.left = new
                    break
                p = p.left
            else:
                if p.right is None:
                    p.right = new
                    break
                p = p.right
    s = 0.0
    p = root
    while p is not None:
        s += p.key * p.n
        p = p.right
    return s


KD = deferred_type()


@jitclass(
    [("x", float64), ("y", float64), ("axis", int64), ("size", int64), ("left", optional(KD)), ("right", optional(KD))]
)
class Kd:
    def __init__(self, x, y):
        self.x = x
        self.y = y
        self.axis = 0
        self.size = 1
        self.left = None
        self.right = None


KD.define(Kd.class_type.instance_type)
POINTS = np.array([[0.1, 0.9], [0.4, 0.2], [0.8, 0.6], [0.5, 0.5], [0.95, 0.15], [0.3, 0.75], [0.65, 0.35]])


@PROGRAMS.at(POINTS)
@njit
def kd_tree_with_sizes(p):
    root = Kd(p[0, 0], p[0, 1])
    for i in range(1, p.shape[0]):
        new = Kd(p[i, 0], p[i, 1])
        q = root
        while True:
            q.size += 1
            here = q.x if q.axis == 0 else q.y
            mine = new.x if q.axis == 0 else new.y
            new.axis = 1 - q.axis
            if mine < here:
                if q.left is None:
                    q.left = new
                    break
                q = q.left
            else:
                if q.right is None:
                    q.right = new
                    break
                q = q.right
    s = 0.0
    stack = [root]
    while len(stack) > 0:
        q = stack.pop()
        s += q.x * q.y * q.size * (1 + q.axis)
        if q.left is not None:
            stack.append(q.left)
        if q.right is not None:
            stack.append(q.right)
    return s


ARR = deferred_type()


@jitclass([("n", int64), ("data", float64[::1]), ("key", float64), ("left", optional(ARR)), ("right", optional(ARR))])
class WithArray:
    def __init__(self, key, data):
        self.n = 0
        self.data = data
        self.key = key
        self.left = None
        self.right = None


ARR.define(WithArray.class_type.instance_type)


@PROGRAMS.at(X)
@njit
def tree_of_nodes_with_arrays(x):
    root = WithArray(x[0], x * x[0])
    for i in range(1, x.size):
        new = WithArray(x[i], x * x[i])
        p = root
        while True:
            p.n += 1
            p.data[p.n % p.data.size] += new.key
            if new.key < p.key:
                if p.left is None:
                    p.left = new
                    break
                p = p.left
            else:
                if p.right is None:
                    p.right = new
                    break
                p = p.right
    s = 0.0
    p = root
    while p is not None:
        s += p.key * p.n * p.data.sum()
        p = p.right
    return s


@PROGRAMS.at(X)
@njit
def tree_of_nodes_with_an_argument(x):
    root = WithArray(x[0], x)
    for i in range(1, x.size):
        new = WithArray(x[i], x[i:])
        p = root
        while True:
            p.n += 1
            if new.key < p.key:
                if p.left is None:
                    p.left = new
                    break
                p = p.left
            else:
                if p.right is None:
                    p.right = new
                    break
                p = p.right
    s = 0.0
    p = root
    while p is not None:
        s += p.key * p.n * p.data.sum()
        p = p.right
    return s


MIX = deferred_type()


@jitclass(
    [
        ("a", float32),
        ("n", int32),
        ("b", float64),
        ("flag", boolean),
        ("m", int8),
        ("left", optional(MIX)),
        ("c", float32),
        ("right", optional(MIX)),
        ("k", int64),
    ]
)
class Mix:
    def __init__(self, a, b):
        self.a = a
        self.n = 1
        self.b = b
        self.flag = False
        self.m = 0
        self.left = None
        self.c = b
        self.right = None
        self.k = 1


MIX.define(Mix.class_type.instance_type)


@njit
def tree_of_mixed_fields(x):
    root = Mix(x[0], x[0])
    for i in range(1, x.size):
        new = Mix(x[i], x[i] * x[i])
        p = root
        while True:
            p.n += 1
            p.m += np.int8(2)
            p.flag = not p.flag
            p.k *= 3
            if new.a < p.a:
                if p.left is None:
                    p.left = new
                    break
                p = p.left
            else:
                if p.right is None:
                    p.right = new
                    break
                p = p.right
    s = 0.0
    stack = [root]
    while len(stack) > 0:
        p = stack.pop()
        s += p.b * p.n + p.c * p.m + (p.b * p.k if p.flag else 0.0)
        if p.left is not None:
            stack.append(p.left)
        if p.right is not None:
            stack.append(p.right)
    return s


@pytest.mark.parametrize("plan", BOTH)
def test_nodes_with_numbers_and_integers_of_all_sizes(plan):
    """Quadratic in numbers of few bits: central differences are exact, in single precision, too."""
    x, step = np.array([11, -5, 19, 7, -13, 5, 1, 15, -10], dtype=np.float32) / 16, np.float32(1 / 64)
    differences = np.zeros(x.size)
    for i in range(x.size):
        change = np.where(np.arange(x.size) == i, step, np.float32(0))
        differences[i] = (tree_of_mixed_fields(x + change) - tree_of_mixed_fields(x - change)) / (2 * step)
    gradient = irad.grad(tree_of_mixed_fields, options=irad.Options(plan=plan))(x)
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case) -> None:
    case.check()


# ------------------------------------------------------------------------------------------------ recursive functions


@njit
def the(other, p):
    """What is not None, as the type of the other: Numba passes no optional node for a node."""
    q = other
    if p is not None:
        q = p
    return q


@njit
def _made_and_inserted(p, key):
    if key < p.key:
        if p.left is None:
            p.left = Node(key)
        else:
            _made_and_inserted(the(p, p.left), key)
    elif p.right is None:
        p.right = Node(key)
    else:
        _made_and_inserted(the(p, p.right), key)
    return 0


@njit
def nodes_made_by_recursion(x):
    root = Node(x[0])
    for i in range(1, x.size):
        _made_and_inserted(root, x[i] * x[0])
    return _total(root, 1)


@njit
def _inserted(p, new):
    if new.key < p.key:
        if p.left is None:
            p.left = new
        else:
            _inserted(the(p, p.left), new)
    elif p.right is None:
        p.right = new
    else:
        _inserted(the(p, p.right), new)
    return 0


@njit
def _total(p, depth):
    s = p.key * p.key * p.n * depth
    if p.left is not None:
        s += _total(the(p, p.left), depth + 1)
    if p.right is not None:
        s += _total(the(p, p.right), depth + 1)
    return s


@njit
def nodes_inserted_by_recursion(x):
    root = Node(x[0])
    for i in range(1, x.size):
        _inserted(root, Node(x[i] * x[0]))
    return _total(root, 1)


@njit
def _visited(p):
    p.n += 1
    if p.left is not None:
        _visited(the(p, p.left))
    if p.right is not None:
        _visited(the(p, p.right))
    return 0


@njit
def _linked(x):
    root = Node(x[0])
    for i in range(1, x.size):
        p, new = root, Node(x[i] * x[0])
        while True:
            if new.key < p.key:
                if p.left is None:
                    p.left = new
                    break
                p = p.left
            else:
                if p.right is None:
                    p.right = new
                    break
                p = p.right
    return root


@njit
def visits_counted_by_recursion(x):
    root = _linked(x)
    _visited(root)
    return _total(root, 1)


@njit
def visits_counted_with_a_stack(x):
    root = _linked(x)
    stack = [root]
    while len(stack) > 0:
        p = stack.pop()
        p.n += 1
        if p.left is not None:
            stack.append(p.left)
        if p.right is not None:
            stack.append(p.right)
    s = 0.0
    stack = [root]
    while len(stack) > 0:
        p = stack.pop()
        s += p.key * p.key * p.n
        if p.left is not None:
            stack.append(p.left)
        if p.right is not None:
            stack.append(p.right)
    return s


@pytest.mark.parametrize(
    ("refused", "message", "remedy", "instead"),
    [
        (nodes_made_by_recursion, "constant bytes", "be given the new object", nodes_inserted_by_recursion),
        (
            visits_counted_by_recursion,
            "it cannot be told whether an active number is manipulated as an integer",
            "with a list as the stack",
            visits_counted_with_a_stack,
        ),
    ],
)
def test_what_recursive_functions_do_to_nodes(refused, message, remedy, instead):
    with pytest.raises(irad.UnsupportedError, match=message) as error:
        irad.grad(refused)(X)
    assert remedy in " ".join(str(error.value).split())
    for plan in BOTH:
        check_quickly(instead, X, plans=(plan,))
