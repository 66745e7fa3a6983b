"""Functions of any size in LLVM text, of the shapes that real ones have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final


def straight(count: int) -> str:
    """A chain through arithmetic, calls and an array that is read and written."""
    body = ["define i32 @f(ptr noalias %out, ptr %x, i64 %n) {", "  %s0 = load double, ptr %x"]
    for i in range(count):
        body += [
            f"  %p{i} = getelementptr double, ptr %x, i64 {i % 50}",
            f"  %a{i} = load double, ptr %p{i}",
            f"  %b{i} = call double @llvm.sin.f64(double %s{i})",
            f"  %c{i} = fmul double %a{i}, %b{i}",
            f"  %s{i + 1} = fadd double %c{i}, %s{i}",
            f"  store double %s{i + 1}, ptr %p{i}",
        ]
    return _finished([*body, f"  store double %s{count}, ptr %out", "  ret i32 0", "}"])


def branches(count: int) -> str:
    """Diamonds in a row, each with a value of its own on both sides."""
    body = [
        "define i32 @f(ptr noalias %out, ptr %x, i64 %n) {",
        "entry:",
        "  %s0 = load double, ptr %x",
        "  br label %head0",
    ]
    for i in range(count):
        body += [
            f"head{i}:",
            f"  %q{i} = fcmp ogt double %s{i}, 1.0",
            f"  br i1 %q{i}, label %left{i}, label %right{i}",
            f"left{i}:",
            f"  %l{i} = call double @llvm.sin.f64(double %s{i})",
            f"  br label %join{i}",
            f"right{i}:",
            f"  %p{i} = getelementptr double, ptr %x, i64 {i % 50}",
            f"  %a{i} = load double, ptr %p{i}",
            f"  %r{i} = fmul double %a{i}, %s{i}",
            f"  br label %join{i}",
            f"join{i}:",
            f"  %s{i + 1} = phi double [ %l{i}, %left{i} ], [ %r{i}, %right{i} ]",
            f"  br label %head{i + 1}",
        ]
    return _finished([*body, f"head{count}:", f"  store double %s{count}, ptr %out", "  ret i32 0", "}"])


def loops(count: int) -> str:
    """Counted loops in a row that read and write an array."""
    body = [
        "define i32 @f(ptr noalias %out, ptr %x, i64 %n) {",
        "entry:",
        "  %s0 = load double, ptr %x",
        "  br label %ahead0",
    ]
    for i in range(count):
        body += [
            f"ahead{i}:",
            f"  br label %loop{i}",
            f"loop{i}:",
            f"  %i{i} = phi i64 [ 0, %ahead{i} ], [ %j{i}, %loop{i} ]",
            f"  %t{i} = phi double [ %s{i}, %ahead{i} ], [ %u{i}, %loop{i} ]",
            f"  %p{i} = getelementptr double, ptr %x, i64 %i{i}",
            f"  %a{i} = load double, ptr %p{i}",
            f"  %b{i} = call double @llvm.sin.f64(double %t{i})",
            f"  %u{i} = fmul double %a{i}, %b{i}",
            f"  store double %u{i}, ptr %p{i}",
            f"  %j{i} = add nuw nsw i64 %i{i}, 1",
            f"  %e{i} = icmp eq i64 %j{i}, %n",
            f"  br i1 %e{i}, label %after{i}, label %loop{i}",
            f"after{i}:",
            f"  %s{i + 1} = phi double [ %u{i}, %loop{i} ]",
            f"  br label %ahead{i + 1}",
        ]
    return _finished([*body, f"ahead{count}:", f"  store double %s{count}, ptr %out", "  ret i32 0", "}"])


def objects(count: int) -> str:
    """Many allocations, each written and read, with pointers that are stored."""
    body = ["define i32 @f(ptr noalias %out, ptr %x, i64 %n) {", "  %s0 = load double, ptr %x", "  %table = alloca ptr"]
    for i in range(count):
        body += [
            f"  %m{i} = call noalias ptr @malloc(i64 32)",
            f"  store double %s{i}, ptr %m{i}",
            f"  store ptr %m{i}, ptr %table",
            f"  %g{i} = load ptr, ptr %table",
            f"  %a{i} = load double, ptr %g{i}",
            f"  %s{i + 1} = fmul double %a{i}, %s{i}",
            f"  call void @free(ptr %m{i})",
        ]
    return _finished([*body, f"  store double %s{count}, ptr %out", "  ret i32 0", "}"])


def calls(count: int) -> str:
    """Many functions, each called by the next one twice."""
    texts = [
        "define internal double @h0(double %v) noinline {\n"
        "  %r = call double @llvm.sin.f64(double %v)\n  ret double %r\n}"
    ]
    for i in range(1, count):
        texts.append(
            f"define internal double @h{i}(double %v) noinline {{\n  %a = call double @h{i - 1}(double %v)\n"
            f"  %b = fmul double %a, %v\n  %c = call double @h{i - 1}(double %b)\n  %r = fadd double %b, %c\n"
            "  ret double %r\n}"
        )
    entry = [
        "define i32 @f(ptr noalias %out, ptr %x, i64 %n) {",
        "  %s = load double, ptr %x",
        f"  %r = call double @h{count - 1}(double %s)",
        "  store double %r, ptr %out",
        "  ret i32 0",
        "}",
    ]
    return _finished([*entry, *texts])


SHAPES: Final[dict[Callable[[int], str], int]] = {straight: 6, branches: 8, loops: 14, objects: 7, calls: 5}
"""Each with its instructions per count."""

LINEAR: Final = (straight, branches, loops, calls)
"""Those whose derivation takes time in proportion to their size."""


def _finished(lines: list[str]) -> str:
    declarations = "declare double @llvm.sin.f64(double)\ndeclare noalias ptr @malloc(i64)\ndeclare void @free(ptr)\n"
    return "\n".join(lines) + "\n" + declarations
