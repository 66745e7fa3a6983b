from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irad.driver import derive
from irad.errors import InternalError
from irad.ir.text.parser import parse_module
from irad.ir.verifier import verify
from irad.passes import pipeline
from irad.passes.generated import GeneratedPair
from irad.passes.mode import FORWARD_MODE
from irad.passes.pipeline import PIPELINE
from irad.passes.request import Request
from irad.passes.stages import Pass, PassStage
from tests.passes.augmented.test_tape import COUNTED, RAGGED, WHILE
from tests.passes.test_program import RECURSIVE
from tests.passes.units import canonical, generated, gradient, parsed, registry, request_of

ROOT = Path(__file__).parents[2]

COPY = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
  %l = alloca double
  %v = load i64, ptr %a
  store i64 %v, ptr %l
  %x = load double, ptr %l
  %y = fmul double %x, %x
  store double %y, ptr %r
  ret i32 0
}
"""


def test_copies_of_floats_as_integers_carry_the_derivative():
    assert gradient(COPY, [3.0], 0) == [6.0]
    assert gradient(COPY, [3.0], 0, plan="save_all") == [6.0]


def test_the_entry_comes_first():
    made = generated(RECURSIVE, "sac")
    assert made[0].pair.variant.is_entry
    assert not made[1].pair.variant.is_entry


def test_the_same_input_gives_the_same_text():
    texts = set()
    for _ in range(2):
        _, function = parsed(RAGGED)
        texts.add(derive(canonical(RAGGED), request_of(function, "scsc"), registry()).text)
    assert len(texts) == 1


def test_what_is_made_is_valid_and_contains_no_placeholder():
    for text, kinds in ((COUNTED, "scsc"), (RAGGED, "scsc"), (WHILE, "scs"), (RECURSIVE, "sac")):
        _, function = parsed(text)
        made = derive(canonical(text), request_of(function, kinds), registry(), check=True)
        verify(parse_module(canonical(made.text)))
        assert "freeze ptr undef" not in made.text
        assert "freeze double undef" not in made.text
        assert "freeze i64 undef" not in made.text


def test_the_table_of_contents_names_modules_in_the_order_of_work():
    names = [each.name for each in PIPELINE]
    assert len(set(names)) == len(names)
    order = ["memory.points_to", "analysis.activity", "augmented.shadows", "reverse.generate", "plan.materialise"]
    assert [name for name in names if name in order] == order
    for each in PIPELINE:
        path = ROOT / "passes" / each.name.replace(".", "/")
        assert any(module.is_file() for module in (path.with_suffix(".py"), path.parent.with_suffix(".py")))
        assert each.purpose.endswith(".")
        assert len(each.purpose) < 120


def test_the_pipeline_is_what_runs():
    seen: list[str] = []
    derive(canonical(COUNTED), _request(COUNTED), registry(), observe=lambda name, record: seen.append(name))
    shown = [each.name for each in PIPELINE if each.stage is not PassStage.PREPARE and each.name in seen]
    assert seen == shown
    left_out = {each.name for each in PIPELINE if each.stage is not PassStage.PREPARE} - set(seen)
    seldom = {
        "analysis.linearity",
        "analysis.activity.oracle",
        "parallel.sharing",
        "parallel.ownership",
        "instrument.watch",
        "plan.agreement",
    }
    assert left_out == {"forward.generate", *seldom}


@pytest.mark.parametrize("broken", [each.name for each in PIPELINE if each.stage is PassStage.PAIR and each.changes])
def test_code_is_verified_after_each_pass_that_changes_some(broken: str, monkeypatch: pytest.MonkeyPatch):
    options = {"instrument.watch": {"watches": True}, "forward.generate": {"mode": FORWARD_MODE}}.get(broken, {})
    monkeypatch.setattr(pipeline, "PIPELINE", tuple(_breaking(p) if p.name == broken else p for p in PIPELINE))
    with pytest.raises(InternalError, match="invalid IR"):
        derive(canonical(COUNTED), _request(COUNTED, **options), registry(), check=True)


def _request(text: str, **options: Any) -> Request:
    return request_of(parsed(text)[1], "scsc", **options)


def _breaking(one: Pass) -> Pass:
    """A pass that does its work, and puts an instruction after a terminator."""

    def run(made: GeneratedPair) -> None:
        one.run(made)
        block = made.pair.first.blocks[0]
        block.instructions.append(block.instructions[0])

    return replace(one, run=run)
