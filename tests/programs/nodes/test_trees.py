"""Trees of nodes that a differentiated function makes: counts, heights, colours and flags beside numbers.

Each node that is inserted changes integers and numbers on its way down. Nodes are turned with a path in a list, with
pointers to their parents, and on the way down; they hold arrays, and fields of all sizes; functions recurse over them.
"""

from __future__ import annotations

import numpy as np
import pytest
from numba import boolean, deferred_type, float32, float64, int8, int32, int64, njit, optional
from numba.experimental import jitclass

import irad
from tests.tools.catalogue import Case, Catalogue

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests

X = np.array([0.7, -0.3, 1.2, 0.45, -0.8, 0.33, 0.05, 0.91, -0.62])

NODE = deferred_type()


@jitclass(
    [
        ("height", int64),
        ("key", float64),
        ("red", boolean),
        ("left", optional(NODE)),
        ("right", optional(NODE)),
        ("parent", optional(NODE)),
        ("size", int32),
        ("value", float64),
        ("n", int64),
    ]
)
class Node:
    def __init__(self, key, value):
        self.height = 1
        self.key = key
        self.red = True
        self.left = None
        self.right = None
        self.parent = None
        self.size = 1
        self.value = value
        self.n = 1


NODE.define(Node.class_type.instance_type)


@njit
def the(other, p):
    """What is not None, as the type of the other: Numba sets no field of an optional node, nor passes it for a node."""
    q = other
    if p is not None:
        q = p
    return q


@njit
def hang(p, new):
    """Inserts a node below another; the nodes on its way down count it, and take of its value."""
    while True:
        p.n += 1
        p.value += 0.1 * new.value
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
    new.parent = p


@njit
def total(root):
    """A sum over all nodes, in which each field counts that some program changes."""
    s = 0.0
    stack = [root]
    while len(stack) > 0:
        p = stack.pop()
        s += p.key * p.value * p.size * p.n + p.height * p.value * (2.0 if p.red else 1.0)
        if p.left is not None:
            stack.append(p.left)
        if p.right is not None:
            stack.append(p.right)
    return s


@PROGRAMS.at(X)
@njit
def counted_search_tree(x):
    root = Node(x[0], x[0])
    for i in range(1, x.size):
        hang(root, Node(x[i] * x[i], x[i]))
    s = 0.0
    p = root
    while p is not None:
        s += p.key * p.value * p.n
        p = p.right
    return s


@njit
def height(p):
    return 0 if p is None else p.height


@njit
def size(p):
    return 0 if p is None else p.size


@njit
def update(p):
    p.height = 1 + max(height(p.left), height(p.right))
    p.size = 1 + size(p.left) + size(p.right)
    p.value = p.key
    if p.left is not None:
        p.value += p.left.value
    if p.right is not None:
        p.value += p.right.value * p.right.key


@njit
def rotate_right(p):
    q = the(p, p.left)
    p.left = q.right
    q.right = p
    update(p)
    update(q)
    return q


@njit
def rotate_left(p):
    q = the(p, p.right)
    p.right = q.left
    q.left = p
    update(p)
    update(q)
    return q


@njit
def inserted(root, key, value):
    path = [root]
    p = root
    new = Node(key, value)
    while True:
        if key < p.key:
            if p.left is None:
                p.left = new
                break
            p = p.left
        else:
            if p.right is None:
                p.right = new
                break
            p = p.right
        path.append(p)
    k = len(path) - 1
    while k >= 0:
        p = path[k]
        update(p)
        balance = height(p.left) - height(p.right)
        q = p
        if balance > 1:
            if height(p.left.left) < height(p.left.right):
                p.left = rotate_left(the(p, p.left))
            q = rotate_right(p)
        elif balance < -1:
            if height(p.right.right) < height(p.right.left):
                p.right = rotate_right(the(p, p.right))
            q = rotate_left(p)
        if k == 0:
            root = q
        elif path[k - 1].key > q.key:
            path[k - 1].left = q
        else:
            path[k - 1].right = q
        k -= 1
    return root


@MORE.at(X)
@njit
def balanced_along_a_path(x):
    """An AVL tree."""
    root = Node(x[0], x[0] * x[0])
    for i in range(1, x.size):
        root = inserted(root, x[i], x[i] * x[i - 1])
    return total(root)


@njit
def turn_left(root, p):
    q = the(p, p.right)
    p.right = q.left
    if q.left is not None:
        the(p, q.left).parent = p
    q.parent = p.parent
    up = the(p, p.parent)
    if p.parent is None:
        root = q
    elif up.left is not None and up.left.key == p.key:
        up.left = q
    else:
        up.right = q
    q.left = p
    p.parent = q
    p.n += 1
    return root


@njit
def turn_right(root, p):
    q = the(p, p.left)
    p.left = q.right
    if q.right is not None:
        the(p, q.right).parent = p
    q.parent = p.parent
    up = the(p, p.parent)
    if p.parent is None:
        root = q
    elif up.left is not None and up.left.key == p.key:
        up.left = q
    else:
        up.right = q
    q.right = p
    p.parent = q
    p.n += 1
    return root


@MORE.at(X)
@njit
def balanced_through_parents(x):
    """A red-black tree."""
    root = Node(x[0], x[0] * x[0])
    root.red = False
    for i in range(1, x.size):
        new = Node(x[i], x[i] * x[i - 1])
        hang(root, new)
        z = new
        while z.parent is not None and the(z, z.parent).red:
            up = the(z, z.parent)
            grand = the(up, up.parent)
            if up.parent is None:
                break
            if grand.left is not None and grand.left.key == up.key:
                uncle = the(grand, grand.right)
                if grand.right is not None and uncle.red:
                    up.red = False
                    uncle.red = False
                    grand.red = True
                    z = grand
                else:
                    if up.right is not None and up.right.key == z.key:
                        z = up
                        root = turn_left(root, z)
                        up = the(z, z.parent)
                    up.red = False
                    grand.red = True
                    root = turn_right(root, grand)
            else:
                uncle = the(grand, grand.left)
                if grand.left is not None and uncle.red:
                    up.red = False
                    uncle.red = False
                    grand.red = True
                    z = grand
                else:
                    if up.left is not None and up.left.key == z.key:
                        z = up
                        root = turn_right(root, z)
                        up = the(z, z.parent)
                    up.red = False
                    grand.red = True
                    root = turn_left(root, grand)
        root.red = False
    return total(root)


@njit
def splay(root, key):
    head = Node(0.0, 0.0)
    low = head
    high = head
    p = root
    while True:
        p.n += 1
        if key < p.key:
            q = the(p, p.left)
            if p.left is None:
                break
            if key < q.key:
                p.left = q.right
                q.right = p
                p = q
                if p.left is None:
                    break
            high.left = p
            high = p
            p = p.left
        elif key > p.key:
            q = the(p, p.right)
            if p.right is None:
                break
            if key > q.key:
                p.right = q.left
                q.left = p
                p = q
                if p.right is None:
                    break
            low.right = p
            low = p
            p = p.right
        else:
            break
    low.right = p.left
    high.left = p.right
    p.left = head.right
    p.right = head.left
    return p


@MORE.at(X)
@njit
def balanced_on_the_way_down(x):
    """A splay tree: a node that is not part of it holds both sides, and fields become None again."""
    root = Node(x[0], x[0])
    for i in range(1, x.size):
        root = splay(root, x[i])
        new = Node(x[i], x[i])
        if x[i] < root.key:
            new.left = root.left
            new.right = root
            root.left = None
        else:
            new.right = root.right
            new.left = root
            root.right = None
        root = new
    return total(root)


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


@jitclass(
    [
        ("n", int64),
        ("own", float64[::1]),
        ("lent", float64[::1]),
        ("key", float64),
        ("left", optional(ARR)),
        ("right", optional(ARR)),
    ]
)
class WithArrays:
    def __init__(self, key, own, lent):
        self.n = 0
        self.own = own
        self.lent = lent
        self.key = key
        self.left = None
        self.right = None


ARR.define(WithArrays.class_type.instance_type)


@PROGRAMS.at(X)
@njit
def tree_of_nodes_with_arrays(x):
    """Arrays of their own, which change, and views of the argument."""
    root = WithArrays(x[0], x * x[0], x)
    for i in range(1, x.size):
        new = WithArrays(x[i], x * x[i], x[i:])
        p = root
        while True:
            p.n += 1
            p.own[p.n % p.own.size] += new.key
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
        s += p.key * p.n * (p.own.sum() + p.lent.sum())
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


PLAIN = deferred_type()


@jitclass([("key", float64), ("n", int64), ("left", optional(PLAIN)), ("right", optional(PLAIN))])
class Plain:
    def __init__(self, key):
        self.key = key
        self.n = 1
        self.left = None
        self.right = None


PLAIN.define(Plain.class_type.instance_type)


@njit
def _made_and_inserted(p, key):
    if key < p.key:
        if p.left is None:
            p.left = Plain(key)
        else:
            _made_and_inserted(the(p, p.left), key)
    elif p.right is None:
        p.right = Plain(key)
    else:
        _made_and_inserted(the(p, p.right), key)
    return 0


@MORE.at(X)
@njit
def nodes_made_by_recursion(x):
    root = Plain(x[0])
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


@MORE.at(X)
@njit
def nodes_inserted_by_recursion(x):
    root = Plain(x[0])
    for i in range(1, x.size):
        _inserted(root, Plain(x[i] * x[0]))
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
    root = Plain(x[0])
    for i in range(1, x.size):
        p, new = root, Plain(x[i] * x[0])
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


@MORE.at(X)
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


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_nodes_with_numbers_and_integers_of_all_sizes(plan):
    """Quadratic in numbers of few bits: central differences are exact, in single precision, too."""
    x, step = np.array([11, -5, 19, 7, -13, 5, 1, 15, -10], dtype=np.float32) / 16, np.float32(1 / 64)
    differences = np.zeros(x.size)
    for i in range(x.size):
        change = np.where(np.arange(x.size) == i, step, np.float32(0))
        differences[i] = (tree_of_mixed_fields(x + change) - tree_of_mixed_fields(x - change)) / (2 * step)
    gradient = irad.grad(tree_of_mixed_fields, options=irad.Options(plan=plan))(x)
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)


@pytest.mark.parametrize("case", [*PROGRAMS, *MORE.slow()], ids=str)
def test_gradient(case: Case) -> None:
    case.check()


def test_a_recursive_function_that_counts_its_visits_is_refused():
    with pytest.raises(irad.UnsupportedError, match="whether an active number is manipulated as an integer") as error:
        irad.grad(visits_counted_by_recursion)(X)
    assert "with a list as the stack" in " ".join(str(error.value).split())  # visits_counted_with_a_stack
