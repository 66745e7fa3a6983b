"""The check of the contract fires where it is violated, and nowhere else."""

from __future__ import annotations

import pytest

from irad.errors import InternalError
from irad.ir.builder import Builder
from irad.ir.clone import clone_instruction
from irad.ir.instructions import Cast, FCmp, Load, replace_uses
from irad.passes.generated import GeneratedPair
from irad.passes.mode import AUGMENTED, REVERSE
from irad.passes.plan.agreement import Pinned, check_agreement
from tests.passes.agreement.test_pinned import DECLARE, GATHER, MEMORY, TRIPS, index
from tests.passes.units import generated, value

FAST = DECLARE + GATHER.format(body=index("%q = fdiv fast double %v, %h"), factor="%y")


def check(made: GeneratedPair) -> None:
    check_agreement(made.pair[AUGMENTED], made.pair[REVERSE])


def test_what_is_generated_passes():
    check(generated(FAST, "scsccc", MEMORY)[0])
    check(generated(FAST, "scsccc", MEMORY, plan="save_all")[0])
    check(generated(FAST, "scsccc", MEMORY, watches=True)[0])


@pytest.mark.parametrize("text", [FAST, TRIPS, FAST.replace("fast", "contract")])
def test_a_plan_that_forgets_the_contract_is_caught(text, monkeypatch):
    monkeypatch.setattr(Pinned, "is_pinned", lambda self, value: False)
    with pytest.raises(InternalError, match=r"decides something by .*fdiv"):
        generated(text, "scsccc", MEMORY)


def test_a_violation_made_by_hand():
    """The saved index is replaced by a conversion of a quotient that is made again."""
    made = generated(FAST, "scsccc", MEMORY)[0]
    augmented, reverse = made.pair[AUGMENTED], made.pair[REVERSE]
    [tape] = [i for i in reverse.instructions() if isinstance(i, Load) and i.name == "k"]
    quotient, conversion = value(augmented, "q"), value(augmented, "k")
    x = Builder.before(tape).load(quotient.type, tape.operands[0])
    build = Builder.after(tape)
    again = clone_instruction(quotient, dict.fromkeys(quotient.operands, x))
    build.insert(again)
    anew = clone_instruction(conversion, {quotient: again})
    build.insert(anew)
    replace_uses(tape, anew)
    with pytest.raises(InternalError, match=r"%k = Cast\(fptosi\) decides something by %q = Binary\(fdiv\)"):
        check(made)


def test_flags_that_the_copy_lost_count(monkeypatch):
    """`fast` is taken off what is recomputed: it is another number for that very reason."""
    monkeypatch.setattr(Pinned, "is_pinned", lambda self, value: False)
    monkeypatch.setattr("tests.passes.units.check_agreement", lambda *functions: None)
    made = generated(FAST, "scsccc", MEMORY)[0]
    [copy] = [i for i in made.pair[REVERSE].instructions() if isinstance(i, Cast) and i.opcode == "fptosi"]
    quotient = copy.operands[0]
    assert quotient.flags == ()
    with pytest.raises(InternalError):
        check(made)


def test_comparisons_of_cotangents_are_the_reverse_sweep_s_own():
    """The guard against zero cotangents compares what only one sweep has, made of loose factors."""
    text = DECLARE + GATHER.format(body="%q = fdiv fast double %v, %h\n%k = add i64 %i, 0", factor="%q")
    made = generated(text.replace("%w = fmul", "%w1 = fmul double %y, %y\n%w = fmul").replace("%y, %q", "%w1, %q"),
                     "scsccc", MEMORY)[0]  # fmt: skip
    assert any(isinstance(i, FCmp) for i in made.pair[REVERSE].instructions())
    check(made)


def test_a_comparison_of_an_adjoint_by_a_loose_number_is_caught(monkeypatch):
    body = """
      %p0 = getelementptr double, ptr %a, i64 %i
      %y0 = load double, ptr %p0
      %q = fsub reassoc double %y0, %h
      %j = call double @llvm.fabs.f64(double %q)
      %k = add i64 %i, 0
    """
    text = DECLARE + GATHER.format(body=body, factor="%j")
    generated(text, "scsccc", MEMORY)
    monkeypatch.setattr(Pinned, "is_pinned", lambda self, value: False)
    with pytest.raises(InternalError, match="FCmp"):
        generated(text, "scsccc", MEMORY)
