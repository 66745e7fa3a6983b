"""Balanced trees of nodes that a differentiated function makes: heights, sizes, colours, visits that change."""

from __future__ import annotations

import numpy as np
import pytest
from numba import boolean, deferred_type, float64, int32, int64, njit, optional
from numba.experimental import jitclass

from tests.tools.catalogue import Case, Catalogue

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests

X = np.array([0.7, -0.3, 1.2, 0.45, -0.8, 0.33, 0.05, 0.91, -0.62])


@njit
def the(other, p):
    """What is not None, as the type of the other: Numba sets no field of what may be None."""
    q = other
    if p is not None:
        q = p
    return q


AVL = deferred_type()


@jitclass(
    [
        ("height", int64),
        ("key", float64),
        ("left", optional(AVL)),
        ("right", optional(AVL)),
        ("size", int32),
        ("value", float64),
    ]
)
class Avl:
    def __init__(self, key, value):
        self.height = 1
        self.key = key
        self.left = None
        self.right = None
        self.size = 1
        self.value = value


AVL.define(Avl.class_type.instance_type)


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
def avl_insert_loop(root, key, value):
    path = [root]
    p = root
    new = Avl(key, value)
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
def avl_tree(x):
    root = Avl(x[0], x[0] * x[0])
    for i in range(1, x.size):
        root = avl_insert_loop(root, x[i], x[i] * x[i - 1])
    s = 0.0
    stack = [root]
    while len(stack) > 0:
        p = stack.pop()
        s += p.key * p.value * p.size + p.height * p.value
        if p.left is not None:
            stack.append(p.left)
        if p.right is not None:
            stack.append(p.right)
    return s


RB = deferred_type()


@jitclass(
    [
        ("key", float64),
        ("red", boolean),
        ("left", optional(RB)),
        ("right", optional(RB)),
        ("parent", optional(RB)),
        ("turns", int64),
        ("weight", float64),
    ]
)
class Rb:
    def __init__(self, key, weight):
        self.key = key
        self.red = True
        self.left = None
        self.right = None
        self.parent = None
        self.turns = 0
        self.weight = weight


RB.define(Rb.class_type.instance_type)


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
    p.turns += 1
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
    p.turns += 1
    return root


@PROGRAMS.at(X)
@njit
def red_black_tree(x):
    root = Rb(x[0], x[0] * x[0])
    root.red = False
    for i in range(1, x.size):
        new = Rb(x[i], x[i] * x[i - 1])
        p = root
        while True:
            p.weight += new.weight * 0.1
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
    s = 0.0
    stack = [root]
    while len(stack) > 0:
        p = stack.pop()
        s += p.key * p.weight * (1 + p.turns) * (2.0 if p.red else 1.0)
        if p.left is not None:
            stack.append(p.left)
        if p.right is not None:
            stack.append(p.right)
    return s


TREAP = deferred_type()


@jitclass(
    [
        ("priority", int64),
        ("key", float64),
        ("n", int64),
        ("total", float64),
        ("left", optional(TREAP)),
        ("right", optional(TREAP)),
    ]
)
class Treap:
    def __init__(self, priority, key):
        self.priority = priority
        self.key = key
        self.n = 1
        self.total = key
        self.left = None
        self.right = None


TREAP.define(Treap.class_type.instance_type)


@njit
def pull(p):
    p.n = 1
    p.total = p.key
    if p.left is not None:
        p.n += p.left.n
        p.total += p.left.total
    if p.right is not None:
        p.n += p.right.n
        p.total += p.right.total * p.right.key


@MORE.at(X)
@njit
def treap(x):
    root = Treap(17, x[0])
    for i in range(1, x.size):
        new = Treap(i * 7919 % 31, x[i])
        path = [root]
        path.pop()
        p = root
        while True:
            path.append(p)
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
        child = new
        while len(path) > 0:
            p = path.pop()
            if p.priority < child.priority:
                if child.key < p.key:
                    p.left = child.right
                    child.right = p
                else:
                    p.right = child.left
                    child.left = p
                pull(p)
                pull(child)
                if len(path) > 0:
                    up = path[-1]
                    if child.key < up.key:
                        up.left = child
                    else:
                        up.right = child
            else:
                pull(p)
                child = p
        root = child
    return root.total * root.n + root.key * root.priority


SPLAY = deferred_type()


@jitclass([("visits", int32), ("key", float64), ("left", optional(SPLAY)), ("right", optional(SPLAY))])
class Splay:
    def __init__(self, key):
        self.visits = 0
        self.key = key
        self.left = None
        self.right = None


SPLAY.define(Splay.class_type.instance_type)


@njit
def splay(root, key):
    head = Splay(0.0)
    low = head
    high = head
    p = root
    while True:
        p.visits += 1
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
def splay_tree(x):
    root = Splay(x[0])
    for i in range(1, x.size):
        root = splay(root, x[i])
        new = Splay(x[i])
        if x[i] < root.key:
            new.left = root.left
            new.right = root
            root.left = None
        else:
            new.right = root.right
            new.left = root
            root.right = None
        root = new
    s = 0.0
    stack = [root]
    while len(stack) > 0:
        p = stack.pop()
        s += p.key * p.key * p.visits
        if p.left is not None:
            stack.append(p.left)
        if p.right is not None:
            stack.append(p.right)
    return s


@pytest.mark.parametrize("case", [*PROGRAMS, *MORE.slow()], ids=str)
def test_gradient(case: Case) -> None:
    case.check()
