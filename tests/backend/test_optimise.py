"""The normal form, checked on Numba functions with an analysis of its own; and the vectorising pipeline."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import njit, typeof

from irad.backend.compat import with_attribute
from irad.backend.optimise import scalarise
from irad.frontend.numba.cpu import load_program
from irad.frontend.numba.library import CPU

A = np.ones(4)
M = np.ones((3, 3))


@dataclass
class Graph:
    """A function's blocks by name: instructions, successors, predecessors, dominators."""

    blocks: dict[str, list[Any]]
    successors: dict[str, list[str]]
    predecessors: dict[str, list[str]]
    dominators: dict[str, set[str]]


def graph_of(function: Any) -> Graph:
    blocks = {block.name: list(block.instructions) for block in function.blocks}
    successors = {
        name: [operand.name for operand in code[-1].operands if operand.name in blocks and code[-1].opcode != "ret"]
        for name, code in blocks.items()
    }
    predecessors: dict[str, list[str]] = {name: [] for name in blocks}
    for name, targets in successors.items():
        for target in targets:
            predecessors[target].append(name)
    entry = next(iter(blocks))
    dominators = {name: set(blocks) for name in blocks}
    dominators[entry] = {entry}
    changed = True
    while changed:
        changed = False
        for name in blocks:
            if name != entry:
                new = {name} | set.intersection(*(dominators[p] for p in predecessors[name]))
                changed |= new != dominators[name]
                dominators[name] = new
    return Graph(blocks, successors, predecessors, dominators)


def loops_of(graph: Graph) -> dict[str, tuple[list[str], set[str]]]:
    """Header → latches and body of every natural loop."""
    loops: dict[str, tuple[list[str], set[str]]] = {}
    for tail, targets in graph.successors.items():
        for head in set(targets):
            if head in graph.dominators[tail]:
                latches, body = loops.setdefault(head, ([], {head}))
                latches.append(tail)
                pending = [tail]
                while pending:
                    block = pending.pop()
                    if block not in body:
                        body.add(block)
                        pending.extend(graph.predecessors[block])
    return loops


def assert_reducible(graph: Graph, loops: dict[str, tuple[list[str], set[str]]]) -> None:
    """Every cycle goes through a back edge of a natural loop."""
    back = {(latch, head) for head, (latches, _) in loops.items() for latch in latches}
    state: dict[str, int] = {}

    def visit(block: str) -> None:
        state[block] = 1
        for target in graph.successors[block]:
            if (block, target) not in back:
                assert state.get(target) != 1, f"irreducible at {target}"
                if target not in state:
                    visit(target)
        state[block] = 2

    visit(next(iter(graph.blocks)))


def assert_canonical(graph: Graph, head: str, latches: list[str], body: set[str]) -> None:
    assert len(latches) == 1, f"loop {head} has latches {latches}"
    outside = [p for p in graph.predecessors[head] if p not in body]
    assert len(outside) == 1, f"loop {head} is entered from {outside}"
    assert graph.successors[outside[0]] == [head], f"loop {head} has no preheader"
    for block in body:
        for target in graph.successors[block]:
            if target not in body:
                assert set(graph.predecessors[target]) <= body, f"exit {target} of loop {head} is shared"


def assert_closed(graph: Graph, head: str, body: set[str]) -> None:
    """What a loop defines is used outside by phis at its exits only."""
    defined = {i.name for block in body for i in graph.blocks[block] if i.name}
    for name in set(graph.blocks) - body:
        for instruction in graph.blocks[name]:
            used = {operand.name for operand in instruction.operands} & defined
            if used:
                assert instruction.opcode == "phi", f"{used} of loop {head} used by {instruction}"
                assert set(graph.predecessors[name]) <= body


def check_normal_form(text: str) -> int:
    """Asserts the normal form of every function; the number of loops."""
    module = llvm.parse_assembly(text)
    count = 0
    for function in module.functions:
        if function.is_declaration:
            continue
        graph = graph_of(function)
        opcodes = [i.opcode for code in graph.blocks.values() for i in code]
        assert opcodes.count("ret") + (opcodes.count("unreachable") > 0) <= 2
        assert opcodes.count("ret") <= 1
        assert "switch" not in opcodes
        loops = loops_of(graph)
        assert_reducible(graph, loops)
        for head, (latches, body) in loops.items():
            assert_canonical(graph, head, latches, body)
            assert_closed(graph, head, body)
        count += len(loops)
    return count


def single_loop(a):
    s = 0.0
    for i in range(a.size):
        s += a[i]
    return s


def nested_loops(m):
    s = 0.0
    for i in range(m.shape[0]):
        for j in range(i, m.shape[1]):
            for k in range(j):
                s += m[i, j] * k
    return s


def sibling_loops(a):
    s = 0.0
    for v in a:
        s += v
    t = s
    for v in a[::-1]:
        t = t * s + v
    return t


def while_loop(x):
    while x > 1.0:
        x = x * 0.5
    return x


def while_two_exits(x):
    n = 0
    while True:
        x = x * 0.5
        if x < 1.0:
            return x
        n += 1
        if n > 1000:
            return x + n


def break_loop(a):
    s = 0.0
    for i in range(a.size):
        if a[i] < 0:
            break
        s += a[i]
    return s


def break_else(a, limit):
    for i in range(a.size):
        if a[i] > limit:
            r = a[i]
            break
    else:
        r = -1.0
    return r + i


def continue_loop(a):
    s = 0.0
    for i in range(a.size):
        if i % 3 == 0:
            continue
        s += a[i]
    return s


def early_return(m, limit):
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] > limit:
                return m[i, j] * i
    return 0.0


def raise_in_loop(a):
    s = 0.0
    for i in range(a.size):
        if a[i] < 0:
            raise ValueError("negative", i)
        s += np.sqrt(a[i])
    return s


def try_in_loop(a):
    s = 0.0
    for i in range(a.size):
        try:
            if a[i] < 0:
                raise ValueError
            s += a[i]
        except Exception:
            s -= 1.0
    return s


def chained_branches(a, k):
    s = 0.0
    for i in range(a.size):
        if k == 0:
            s += a[i]
        elif k == 1:
            s -= a[i]
        elif k == 2:
            s *= a[i]
        elif k == 3:
            s /= a[i] + 1
        elif k == 4:
            s = max(s, a[i])
        else:
            return s
    return s


def array_expression(a, b):
    return np.sin(a) * b + a


def allocation_in_loop(a):
    s = 0.0
    for i in range(a.size):
        t = np.zeros(i)
        t += a[i]
        s += t.sum()
    return s


def recursion(n):
    s = 0.0
    for i in range(n):
        s += i
    return s if n < 2 else s + recursion(n - 1)


recursion = njit(recursion)


def sorting(a):
    return np.sort(a)[0] + np.median(a)


def matrix_product(m):
    return (m @ m).sum() + np.linalg.det(m)


PROGRAMS = [
    (single_loop, (A,), 1),
    (nested_loops, (M,), 3),
    (sibling_loops, (A,), 2),
    (while_loop, (5.0,), 1),
    (while_two_exits, (5.0,), 1),
    (break_loop, (A,), 1),
    (break_else, (A, 2.0), 1),
    (continue_loop, (A,), 1),
    (early_return, (M, 2.0), 2),
    (raise_in_loop, (A,), 1),
    (try_in_loop, (A,), 1),
    (chained_branches, (A, 2), 1),
    (array_expression, (A, A), 1),
    (allocation_in_loop, (A,), 2),
    (recursion, (3,), 1),
    (sorting, (A,), 1),
    (matrix_product, (M,), 1),
]


@pytest.mark.parametrize(("function", "arguments", "loops"), PROGRAMS, ids=lambda v: getattr(v, "__name__", None))
def test_normal_form(function: Any, arguments: tuple[Any, ...], loops: int) -> None:
    dispatcher = function if hasattr(function, "py_func") else njit(function)
    text = load_program(dispatcher, tuple(map(typeof, arguments))).text
    assert check_normal_form(text) >= loops
    assert not re.search(r"<\d+ x \w+>", text), "vectorised"
    assert "#dbg_" not in text
    assert "!DILocation" in text


def test_normal_form_is_a_fixpoint() -> None:
    program = load_program(njit(nested_loops), (typeof(M),))
    again = scalarise(program.text, (program.entry,), CPU)
    assert check_normal_form(again) == check_normal_form(program.text)


SWITCH = """
define i32 @kept(i32 %x) {
entry:
  switch i32 %x, label %other [ i32 0, label %zero
                                i32 5, label %five
                                i32 9, label %nine ]
zero:
  %a = call i32 @effect(i32 7)
  ret i32 %a
five:
  ret i32 2
nine:
  %b = call i32 @hidden(i32 %x)
  ret i32 %b
other:
  ret i32 %x
}
define i32 @hidden(i32 %x) {
  %r = call i32 @effect(i32 %x)
  %s = call i32 @effect(i32 %r)
  ret i32 %s
}
define i32 @unused() {
  ret i32 0
}
declare i32 @effect(i32)
declare void @NRT_incref(ptr)
declare void @NRT_decref(ptr)
define void @counts(ptr %p) {
  call void @NRT_incref(ptr %p)
  call void @NRT_decref(ptr %p)
  ret void
}
"""


def test_switches_become_branches_and_returns_are_joined() -> None:
    text = scalarise(SWITCH, ("kept",), CPU)
    assert "switch" not in text
    assert text.count("ret i32") == 1


def test_only_kept_symbols_stay() -> None:
    text = scalarise(SWITCH, ("kept",), CPU)
    assert re.findall(r"^define .*@(\w+)\(", text, re.MULTILINE) == ["kept"]


def test_noinline_stays_a_call() -> None:
    text = scalarise(SWITCH, ("kept",), CPU, noinline=("hidden",))
    assert re.search(r"define internal .*@hidden\(", text)
    assert re.search(r"call .*@hidden\(", text)


def _of_a_constant(parts: int) -> str:
    """A program whose second function LLVM would clone, since it becomes much shorter with the constant argument."""
    body = "".join(
        f"""
  %a{i} = add i32 %n, {i}
  %b{i} = mul i32 %a{i}, %a{i}
  %c{i} = urem i32 %b{i}, 1000
  call void @effect(i32 %c{i})"""
        for i in range(parts)
    )
    return f"""
declare void @effect(i32)
define void @kept(i32 %x, i1 %flag) {{
  br i1 %flag, label %a, label %b
a:
  call void @ruled(i32 3)
  ret void
b:
  call void @ruled(i32 %x)
  ret void
}}
define void @ruled(i32 %n) {{{body}
  ret void
}}
"""


def test_what_stays_a_call_is_not_cloned_for_constant_arguments() -> None:
    """A clone has another name, so a function with a rule would silently be differentiated without it."""
    text = _of_a_constant(200)
    assert "@ruled.specialized" in _optimised_by_llvm(text), "LLVM does not clone it any more: choose another program"
    text = scalarise(text, ("kept", "ruled"), CPU, noinline=("ruled",))
    assert set(re.findall(r"call void @(ruled[^(]*)", text)) == {"ruled"}


def _optimised_by_llvm(text: str) -> str:
    module = llvm.parse_assembly(text)
    module.get_function("ruled").linkage = "weak_odr"
    module = with_attribute(module, ["ruled"], "noinline")
    builder = CPU.scalar_pass_builder()
    builder.getModulePassManager().run(module, builder)
    return str(module)


def test_reference_counts_that_cancel_are_removed() -> None:
    text = scalarise(SWITCH, ("counts",), CPU)
    assert "call void @NRT" not in text


def test_reference_counts_stay_calls_of_declarations() -> None:
    @njit
    def keep_array(a, flag):
        b = np.zeros(3)
        if flag:
            b = a
        return b

    text = load_program(keep_array, (typeof(A), typeof(True))).text
    assert re.search(r"call void @NRT_(incref|decref)\(", text)
    assert re.search(r"^declare void @NRT_(incref|decref)\(", text, re.MULTILINE)
    assert not re.search(r"^define .*@NRT_", text, re.MULTILINE)
    assert "NRT_MemInfo_data_fast" not in text


LOOP = """
define void @scale(ptr noalias %a, ptr noalias %b, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr double, ptr %a, i64 %i
  %to = getelementptr double, ptr %b, i64 %i
  %v = load double, ptr %from, align 8
  %w = fmul double %v, 2.0
  store double %w, ptr %to, align 8
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


SHARED_EXIT = LOOP.replace("label %done", "label %exit").replace("done:", "exit:\n  br label %done\ndone:")


@pytest.mark.parametrize("text", [SWITCH, SHARED_EXIT])
def test_the_checks_find_faults(text: str) -> None:
    with pytest.raises(AssertionError):
        check_normal_form(text)


def test_what_must_not_be_inlined_stays():
    text = """
define i64 @entry(i64 %n) {
  %a = call i64 @kept(i64 %n)
  ret i64 %a
}

define i64 @kept(i64 %n) #0 {
  %a = mul i64 %n, %n
  ret i64 %a
}

attributes #0 = { noinline nounwind }
"""
    assert "@kept(" in scalarise(text, ("entry",), CPU)


def power(x):
    return x**2 + x


def few(x):
    s = 0.0
    for i in range(3):
        s += x[i] * x[(i + 1) % 3]
    return s


def many(x):
    s = 0.0
    for i in range(300):
        s += x[i] * x[i]
    return s


def rows(m):
    s = 0.0
    for i in range(m.shape[0]):
        for j in range(2):
            s += m[i, j] * m[i, j]
    return s


@pytest.mark.parametrize(("function", "argument", "loops"), [(power, A, 1), (few, A, 0), (many, A, 1), (rows, M, 1)])
def test_only_short_loops_of_known_length_are_unrolled(function: Any, argument: np.ndarray, loops: int) -> None:
    """The others stay as they are, neither unrolled in part nor peeled: of `x**2` the loop over the elements."""
    text = load_program(njit(function), (typeof(argument),)).text
    assert check_normal_form(text) == loops
    assert text.count("fmul") == {power: 1, few: 3, many: 1, rows: 2}[function]
