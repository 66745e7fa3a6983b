"""A report made by hand, of a program that nobody compiled: what it shows is known exactly."""

from __future__ import annotations

import pytest

from irad.errors import SourceLocation
from irad.report.model import (
    FunctionReport,
    LineFacts,
    Report,
    Stage,
    StageText,
    Storage,
    TapeEntry,
    TextLine,
    ValueFacts,
)

FILE = "/home/someone/model.py"
SOURCE = {
    10: "@njit",
    11: "def energy(x, scale):",
    12: '    """Sum of x·exp(x).',
    13: '    for every x."""',
    14: "    total = 0.0",
    15: "    for i in range(x.size):",
    16: "        total += np.exp(x[i]) * x[i]  # <b>not markup</b> & </script>",
    17: "    return scale * total",
}


def at(line: int, function: str = "energy") -> SourceLocation:
    return SourceLocation(FILE, line, function)


def line_facts(shares: dict[int, float]) -> tuple[LineFacts, ...]:
    known = {
        14: (("total",), (), 0, 0, ()),
        15: ((), ("i",), 0, 0, ()),
        16: (("total", "x"), ("i",), 8, 24, ("exp",)),
        17: (("scale", "total"), (), 16, 0, ()),
    }
    nothing: tuple[tuple[str, ...], tuple[str, ...], int, int, tuple[str, ...]] = ((), (), 0, 0, ())
    return tuple(LineFacts(line, text, *known.get(line, nothing), shares.get(line)) for line, text in SOURCE.items())


def stage(name: Stage, language: str, *lines: tuple[str, int | None, str | None, bool]) -> tuple[Stage, StageText]:
    return name, StageText(name, language, tuple(TextLine(*line) for line in lines))


def filler(text: str, count: int) -> list[tuple[str, int | None, str | None, bool]]:
    return [(f"{text}{i}", None, None, False) for i in range(count)]


def stages() -> dict[Stage, StageText]:
    return dict(
        [
            stage(Stage.PYTHON, "python", *((text, line, None, False) for line, text in SOURCE.items())),
            stage(
                Stage.LLVM,
                "llvm",
                ("define double @energy(ptr %x, double %scale) {", 11, None, False),
                *filler("  %filler = add i64 1, ", 400),
                ("  %e = call double @llvm.exp.f64(double %v)", 16, "%e", False),
                ("  call void @NRT_incref(ptr %x)", 16, None, True),
                ("  %p = fmul double %e, %v", 16, "%p", False),
                *filler("  %more = add i64 2, ", 400),
                ("  %r = fmul double %scale, %total", 17, "%r", False),
                ("}", None, None, False),
            ),
            stage(
                Stage.ADJOINT,
                "llvm",
                *filler("  ; forward sweep ", 60),
                ("  %16 = fmul double %23, %e", 16, "%e", False),
                ("  %17 = fadd double %16, %15", 16, None, False),
                ("  ret void", 11, None, False),
            ),
            stage(Stage.OPTIMIZED, "llvm", ("  %fast = fmul fast double %e, %v", 16, "%p", False)),
            stage(Stage.ASM, "nasm", *filler("\tmov\trax, ", 90), ("\tvmulsd\txmm0, xmm1, xmm2", 16, None, False)),
        ]
    )


def functions() -> tuple[FunctionReport, ...]:
    values = (
        ValueFacts("%e", "double", "call of exp", (at(16),), True, "depends on x", (), "saved: dear to compute", True,
                   "exp", SourceLocation("rules/elementwise.py", 40)),
        ValueFacts("%p", "double", "product", (at(16),), True, "depends on x", plan="recomputed"),
        ValueFacts("%i", "i64", "loop counter", (at(15),), False, "its type holds no floating-point number"),
        ValueFacts("%x", "ptr", "argument x", (at(11),), True, "has a shadow", ("may point to argument x",)),
    )  # fmt: skip
    tape = (
        TapeEntry("%e", "double", 8, Storage.SLAB, (15,), at(16), "exp is dear to compute again"),
        TapeEntry("%slab", "ptr", 64, Storage.FRAME, (), at(16), "it points to the slab"),
        TapeEntry(
            "%w", "<4 x double>", 32, Storage.RECORD, (15, 16), SourceLocation("/lib/other.py", 3), "overwritten"
        ),
    )
    library = SourceLocation("/lib/other.py", 1, "helper")
    return (
        FunctionReport("_Zenergy", "energy", "by x, scale; result active", "energy.augmented", "energy.reverse", at(11),
                       (1, 1, 2), values, tape),
        FunctionReport("_Zhelper", "helper", "by a", "helper.augmented", "helper.reverse", library, (1,), (), ()),
        FunctionReport("_Zhelper", "helper", "by a, b", "helper.augmented.1", "helper.reverse.1", library, (1,),
                       (), ()),
    )  # fmt: skip


@pytest.fixture(scope="session")
def report() -> Report:
    return made_by_hand({})


@pytest.fixture(scope="session")
def profiled_report() -> Report:
    return made_by_hand({16: 0.75, 15: 0.2, 17: 0.05})


def made_by_hand(shares: dict[int, float]) -> Report:
    signature = "float64(float64[::1], float64)"
    return Report("energy", at(11), signature, "plan=default", functions(), line_facts(shares), stages())
