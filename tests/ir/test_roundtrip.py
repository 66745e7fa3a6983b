"""Property: LLVM reads a module and its copy that went through irad's objects as one and the same.

`str(parse_assembly(print_module(parse_module(text)))) == str(parse_assembly(text))`, for hand-written text of every
construct, for what Numba makes at every level of optimisation, and for random functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numba.core import cgutils, codegen

from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_function, print_module

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.ll"))


def canonical(text: str) -> str:
    """The text as LLVM prints it. Each time in a new context, or equal struct names get suffixes."""
    return str(llvm.parse_assembly(text, context=llvm.create_context()))


def verify(text: str) -> None:
    """Asserts that LLVM's verifier accepts the text (not so for the corpus, which holds much that makes no sense)."""
    llvm.parse_assembly(text, context=llvm.create_context()).verify()


def without_comments(text: str) -> list[str]:
    """The lines of LLVM's text less its comments and blank lines."""
    plain = re.sub(r'^([-\w$.]+:|"[^"]*":) *; (?:preds|No predecessors).*$', r"\1", text, flags=re.MULTILINE)
    return [line for line in plain.splitlines() if line and not line.startswith(";")]


def check(text: str) -> None:
    """Asserts the property for one text, and that irad's own layout is LLVM's but for comments."""
    wanted = canonical(text)
    printed = print_module(parse_module(wanted))
    assert canonical(printed) == wanted
    assert without_comments(printed) == without_comments(wanted)
    assert print_module(parse_module(printed)) == printed


# ------------------------------------------------------------------------------------------------ hand-written


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_corpus(path):
    check(path.read_text())


def test_the_corpus_is_complete():
    assert len(CORPUS) == 12


@pytest.mark.parametrize("path", [p for p in CORPUS if p.stem != "use_list_order"], ids=lambda path: path.stem)
def test_corpus_as_written(path):
    """The files need no detour through LLVM: comments, spacing and forward references are as a person writes them."""
    text = path.read_text()
    assert canonical(print_module(parse_module(text))) == canonical(text)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_functions_print_as_in_their_module(path):
    module = parse_module(canonical(path.read_text()))
    text = print_module(module)
    for function in module.functions.values():
        assert print_function(function) in text


# ------------------------------------------------------------------------------------------------ Numba


def loops(x, n):
    total = 0.0
    for i in range(n):
        for j in range(i, x.shape[0]):
            if x[j] < 0.0:
                continue
            total += x[j] ** 2 / (i + 1)
        while total > 1e6:
            total *= 0.5
    return total


def array_expressions(x, n):
    y = np.sin(x) * x + np.sqrt(np.abs(x[::-1])) - n
    y[1:] += x[:-1]
    return (y * y).sum() + y.max()


def linear_algebra(x, n):
    a = np.outer(x, x) + np.eye(x.size) * n
    return np.dot(np.linalg.solve(a, x), a @ x) + np.linalg.norm(x)


def exceptions(x, n):
    if n < 0:
        raise ValueError("n is negative", n)
    try:
        if n > 100:
            raise OverflowError("too large")
        return x[n % x.size]
    except Exception:
        return -1.0


def tuples(x, n):
    pair = (x[0], n, (x[-1], True))
    (a, b, (c, d)) = pair
    return a * b + c if d else 0.0


def complex_numbers(x, n):
    z = np.exp(1j * x) + complex(n, 1.0)
    return (z * z.conjugate()).real.sum()


def strings(x, n):
    text = "ab" if n > 3 else "ä"
    return float(len(text + "c")) + (1.0 if text == "ab" else x[0])


def integers(x, n):
    a = np.uint8(n) >> np.uint8(1)
    b = (n << 3) ^ (n // 3) ^ (n % 7)
    return float(a) + float(b) + float(np.float32(n) * np.float32(0.1)) + float(np.int16(n))


@numba.njit
def _squares(n):
    for i in range(n):
        yield i * i * 1.0


def generators(x, n):
    total = 0.0
    for value in _squares(n):
        total += value * x[0]
    return total


def containers(x, n):
    seen = {}
    items = [x[0], x[1]]
    for i in range(n):
        seen[i] = i * x[0]
        items.append(seen[i])
    return sum(items)


def parallel_loops(x, n):
    y = np.empty_like(x)
    for i in numba.prange(x.size):
        y[i] = np.cos(x[i]) * n
    return y.sum()


def printing(x, n):
    print("x", x[0], n)
    return np.random.random() + x.sum()


@numba.njit
def _doubled(x, n):
    if n <= 0:
        return x
    return _doubled(x, n - 1) * 2.0


def recursion(x, n):
    return _doubled(x[0], n)


CASES: list[tuple[Callable[..., object], dict[str, object]]] = [
    (loops, {}),
    (loops, {"fastmath": True, "boundscheck": True}),
    (array_expressions, {}),
    (array_expressions, {"debug": True}),
    (linear_algebra, {}),
    (exceptions, {"debug": True}),
    (tuples, {}),
    (complex_numbers, {}),
    (strings, {}),
    (integers, {"debug": True, "error_model": "numpy"}),
    (generators, {}),
    (containers, {}),
    (parallel_loops, {"parallel": True}),
    (printing, {}),
    (recursion, {}),
]


def optimised(text: str, level: int) -> str:
    """The module after LLVM's own pipeline."""
    module = llvm.parse_assembly(text, context=llvm.create_context())
    machine = llvm.Target.from_default_triple().create_target_machine(opt=level)
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = tuning.slp_vectorization = level > 1
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return str(module)


@pytest.mark.parametrize(
    ("function", "options"), CASES, ids=[f"{f.__name__}-{'-'.join(o) or 'plain'}" for f, o in CASES]
)
def test_numba(function, options, monkeypatch):
    raw: list[str] = []
    original = codegen.CPUCodeLibrary.add_ir_module

    def remember(self, ir_module):
        raw.append(cgutils.normalize_ir_text(str(ir_module)))
        original(self, ir_module)

    monkeypatch.setattr(codegen.CPUCodeLibrary, "add_ir_module", remember)
    compiled = numba.njit("float64(float64[::1], int64)", **options)(function)
    check(compiled.inspect_llvm(compiled.signatures[0]))
    assert raw
    text = max(raw, key=len)
    check(text)
    verify(print_module(parse_module(canonical(text))))
    for level in range(4) if len(text) < 200_000 else (3,):
        check(optimised(text, level))


# ------------------------------------------------------------------------------------------------ random

SCALARS = ("i1", "i8", "i32", "i64", "i128", "half", "bfloat", "float", "double", "x86_fp80", "fp128", "ptr")
INTEGERS = ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem")
FLAGS = {"add": "nuw nsw", "sub": "nuw nsw", "mul": "nuw nsw", "shl": "nuw nsw", "lshr": "exact", "ashr": "exact",
         "udiv": "exact", "sdiv": "exact", "or": "disjoint"}  # fmt: skip
FAST = ("", "fast ", "nnan ", "nnan ninf nsz ", "reassoc contract ", "arcp afn ")
FLOATS = ("fadd", "fsub", "fmul", "fdiv", "frem")
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6)


def is_float(type_: str) -> bool:
    return type_ in ("half", "bfloat", "float", "double", "x86_fp80", "fp128")


@st.composite
def types(draw, depth: int = 2) -> str:
    """A first-class type that can be loaded and stored."""
    kind = draw(st.sampled_from(("scalar",) * 4 + ("vector", "array", "struct", "packed")[: 4 if depth else 1]))
    if kind == "scalar":
        return draw(st.sampled_from(SCALARS))
    if kind == "vector":
        return f"<{draw(st.integers(1, 4))} x {draw(st.sampled_from(SCALARS))}>"
    if kind == "array":
        return f"[{draw(st.integers(0, 3))} x {draw(types(depth - 1))}]"
    fields = ", ".join(draw(st.lists(types(depth - 1), max_size=3)))
    struct = f"{{ {fields} }}" if fields else "{}"
    return f"<{struct}>" if kind == "packed" else struct


@st.composite
def scalar_constants(draw, type_: str) -> str:
    """A constant of a scalar type."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(("undef", "poison")))
    if type_ == "ptr":
        address = draw(st.integers(0, 2**40))
        return draw(
            st.sampled_from(
                ("null", "@g", "@f", "getelementptr inbounds (i8, ptr @g, i64 3)", f"inttoptr (i64 {address} to ptr)")
            )
        )
    if type_[0] == "i":
        bits = int(type_[1:])
        choices = [str(draw(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)))]
        if bits == 1:
            choices = ["true", "false"]
        elif bits == 64:
            choices.append("ptrtoint (ptr @g to i64)")
        return draw(st.sampled_from(choices))
    if type_ == "double":
        return f"0x{draw(st.integers(0, 2**64 - 1)):016X}"
    if type_ == "float":
        value = np.float32(draw(st.floats(width=32)))
        return f"0x{int(np.array([value], np.float64).view(np.uint64)[0]):016X}"
    letter, digits = {"half": ("H", 4), "bfloat": ("R", 4), "fp128": ("L", 32), "x86_fp80": ("K", 20)}[type_]
    bits = draw(st.integers(0, 16**digits - 1))
    if type_ == "x86_fp80":  # with the explicit integer bit of a normal number
        bits = 0x3FFF8000000000000000 | (bits & 0x7FFFFFFFFFFFFFFF)
    return f"0x{letter}{bits:0{digits}X}"


def split_fields(inside: str) -> list[str]:
    """The fields of a struct type."""
    fields, depth, start = [], 0, 0
    for position, char in enumerate(inside):
        depth += char in "{[<("
        depth -= char in "}])>"
        if char == "," and depth == 0:
            fields.append(inside[start:position].strip())
            start = position + 1
    return [*fields, inside[start:].strip()] if inside.strip() else []


@st.composite
def constants(draw, type_: str) -> str:
    """A constant of any type."""
    if type_[0] not in "<[{":
        return draw(scalar_constants(type_))
    choice = draw(st.integers(0, 6))
    if choice < 3:
        return ("zeroinitializer", "undef", "poison")[choice]
    if type_[0] == "[" or (type_[0] == "<" and type_[1] != "{"):
        count, element = type_[1:-1].split(" x ", 1)
        parts = [f"{element} {draw(constants(element))}" for _ in range(int(count))]
        if type_[0] == "<" and choice == 3:
            return f"splat ({parts[0]})"
        return f"{type_[0]}{', '.join(parts)}{'>' if type_[0] == '<' else ']'}"
    packed = type_[0] == "<"
    fields = split_fields(type_[2:-2] if packed else type_[1:-1])
    inside = ", ".join(f"{field} {draw(constants(field))}" for field in fields)
    struct = f"{{ {inside} }}" if inside else "{}"
    return f"<{struct}>" if packed else struct


@st.composite
def bodies(draw) -> str:
    """A function of several blocks: straight-line code, then phis that merge, branches and switches at random."""
    count = draw(st.integers(1, 5))
    names = draw(st.lists(st.none() | NAMES, min_size=200, max_size=200))
    used: set[str] = set()

    def fresh() -> str:
        name = names.pop()
        if name is None or name in used:
            name = f"v{len(names)}"
        used.add(name)
        return '%"' + "".join(f"\\{byte:02X}" for byte in name.encode()) + '"'

    labels = [fresh() for _ in range(count)]
    params = [(draw(st.sampled_from(SCALARS)), fresh()) for _ in range(draw(st.integers(0, 4)))]
    blocks: list[str] = []
    edges: dict[int, list[int]] = {i: [] for i in range(count)}
    ends: list[str] = []
    for index in range(count):
        later = list(range(index + 1, count))
        if not later:
            ends.append("ret void")
            continue
        targets = draw(st.lists(st.sampled_from(later), min_size=1, max_size=3))
        targets[0] = index + 1  # every block is reached
        for target in dict.fromkeys(targets):
            edges[target].append(index)
        if len(targets) == 1:
            ends.append(f"br label {labels[targets[0]]}")
        elif len(set(targets)) == 2 and len(targets) == 2:
            ends.append(f"br i1 {draw(st.sampled_from(('true', 'undef')))}, "
                        f"label {labels[targets[0]]}, label {labels[targets[1]]}")  # fmt: skip
        else:
            unique = list(dict.fromkeys(targets))
            cases = " ".join(f"i32 {i}, label {labels[t]}" for i, t in enumerate(unique[1:]))
            ends.append(f"switch i32 7, label {labels[unique[0]]} [ {cases} ]")
    for index in range(count):
        lines = [f"{labels[index][1:]}:"]
        known = list(params)
        for _ in range(draw(st.integers(0, 2)) if index else 0):
            type_ = draw(types())
            incoming = ", ".join(f"[ {draw(constants(type_))}, {labels[source]} ]" for source in edges[index])
            result = fresh()
            lines.append(f"{result} = phi {type_} {incoming}")
            known.append((type_, result))
        for _ in range(draw(st.integers(0, 6))):
            line = draw(instructions(known, fresh))
            lines.append(line)
        lines.append(ends[index])
        blocks.append("\n  ".join(lines))
    signature = ", ".join(f"{t} {n}" for t, n in params)
    return f"define void @f({signature}) {{\n" + "\n".join(blocks) + "\n}\n"


@st.composite
def instructions(draw, known: list[tuple[str, str]], fresh: Callable[[], str]) -> str:
    """One instruction; its result joins the known values."""

    def operand(type_: str) -> str:
        fitting = [name for t, name in known if t == type_]
        return draw(st.sampled_from(fitting)) if fitting and draw(st.booleans()) else draw(constants(type_))

    def result(type_: str, text: str) -> str:
        name = fresh()
        known.append((type_, name))
        return f"{name} = {text}"

    kind = draw(st.sampled_from(("binary", "compare", "select", "load", "store", "gep", "freeze", "fneg", "alloca")))
    scalar = draw(st.sampled_from(SCALARS))
    lanes = draw(st.integers(0, 3))
    type_ = f"<{lanes} x {scalar}>" if lanes else scalar
    boolean = f"<{lanes} x i1>" if lanes else "i1"
    match kind:
        case "binary" if is_float(scalar):
            opcode, flags = draw(st.sampled_from(FLOATS)), draw(st.sampled_from(FAST))
            return result(type_, f"{opcode} {flags}{type_} {operand(type_)}, {operand(type_)}")
        case "binary" if scalar != "ptr":
            opcode = draw(st.sampled_from(INTEGERS))
            chosen = [word for word in FLAGS.get(opcode, "").split() if draw(st.booleans())]
            return result(type_, f"{' '.join((opcode, *chosen))} {type_} {operand(type_)}, {operand(type_)}")
        case "compare" if is_float(scalar):
            predicate, flags = draw(st.sampled_from(("oeq", "une", "ult", "ord", "true"))), draw(st.sampled_from(FAST))
            return result(boolean, f"fcmp {flags}{predicate} {type_} {operand(type_)}, {operand(type_)}")
        case "compare":
            predicate = draw(st.sampled_from(("eq", "ne", "ult", "samesign ugt", "sle")))
            return result(boolean, f"icmp {predicate} {type_} {operand(type_)}, {operand(type_)}")
        case "fneg" if is_float(scalar):
            return result(type_, f"fneg {draw(st.sampled_from(FAST))}{type_} {operand(type_)}")
        case "load":
            any_type = draw(types())
            return result(any_type, f"load {any_type}, ptr {operand('ptr')}, align {2 ** draw(st.integers(0, 5))}")
        case "store":
            any_type = draw(types())
            return f"store {any_type} {operand(any_type)}, ptr {operand('ptr')}, align 1"
        case "gep":
            flags = draw(st.sampled_from(("", "inbounds ", "inbounds nuw ", "nusw ")))
            return result("ptr", f"getelementptr {flags}{draw(types())}, ptr {operand('ptr')}, i64 {operand('i64')}")
        case "alloca":
            return result("ptr", f"alloca {draw(types())}, i32 {operand('i32')}, align 8")
        case "select":
            condition = f"{boolean} {operand(boolean)}"
            flags = draw(st.sampled_from(FAST)) if is_float(scalar) else ""
            return result(type_, f"select {flags}{condition}, {type_} {operand(type_)}, {type_} {operand(type_)}")
        case _:
            return result(type_, f"freeze {type_} {operand(type_)}")


@settings(deadline=None, max_examples=60)
@given(bodies(), st.data())
def test_random_functions(body, data):
    value_type = data.draw(types())
    text = f"@g = global {value_type} {data.draw(constants(value_type))}\n{body}"
    check(text)
    verify(print_module(parse_module(text)))


@settings(deadline=None, max_examples=100)
@given(st.lists(NAMES, min_size=1, max_size=4, unique=True), st.binary(max_size=12))
def test_random_names_and_strings(names, data):
    quoted = ['"' + "".join(f"\\{byte:02X}" for byte in name.encode()) + '"' for name in names]
    string = "".join(f"\\{byte:02X}" for byte in data)
    lines = [f'@{name} = global [{len(data)} x i8] c"{string}"' for name in quoted]
    lines += [f'define double @{quoted[0][:-1]}.f"(double %{quoted[0]}) {{']
    lines += [f'  %{quoted[0][:-1]}.r" = fadd double %{quoted[0]}, 1.0', f'  ret double %{quoted[0][:-1]}.r"', "}"]
    check("\n".join(lines))
