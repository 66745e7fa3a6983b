from __future__ import annotations

from irad.ir.instructions import Call, Load, Phi, Store
from irad.passes.mode import AUGMENTED, REVERSE
from tests.passes.augmented.test_tape import COUNTED, RAGGED, WHILE
from tests.passes.units import generated


def pair_of(text: str, kinds: str = "scsc", **options):
    return generated(text, kinds, **options)[0].pair


def test_an_affine_variable_is_start_plus_step_times_iteration():
    text = COUNTED.replace("%p = getelementptr double, ptr %a, i64 %i", "%k = sub i64 %n, %i\n"
                           "  %p = getelementptr double, ptr %a, i64 %k")  # fmt: skip
    pair = pair_of(text)
    assert not any(isinstance(i, Load) and i.name in ("i", "k") for i in pair[REVERSE].instructions())
    assert any(i.name == "k" for i in pair[REVERSE].instructions())


def test_the_forward_loop_counts_only_where_the_slab_needs_it():
    counters = [i for i in pair_of(COUNTED)[AUGMENTED].instructions() if isinstance(i, Phi) and i.name == "iteration"]
    assert len(counters) == 1
    plain = COUNTED.replace("call double @exp(double %v)", "fmul double %v, 2.0")
    plain = plain.replace("fadd double %wide, %e", "fadd double %s, %e")
    assert not [i for i in pair_of(plain)[AUGMENTED].instructions() if getattr(i, "name", "") == "iteration"]


def test_a_value_is_produced_once_for_each_block():
    reverse = pair_of(COUNTED)[REVERSE]
    for block in reverse.blocks:
        names = [i.name for i in block.instructions if isinstance(i, Load) and i.name]
        assert len(names) == len(set(names))


def test_slabs_of_an_inner_loop_are_saved_by_the_outer_one():
    augmented = pair_of(RAGGED)[AUGMENTED]
    slabs = [i for i in augmented.instructions() if isinstance(i, Call) and i.name == "slab"]
    assert len(slabs) == 2
    saves = [i.operands[0] for i in augmented.instructions() if isinstance(i, Store)]
    frozen = [f.operands[0] for f in saves if getattr(f, "operands", None)]
    assert all(slab in frozen for slab in slabs)


def test_records_are_linked_backwards():
    augmented = pair_of(WHILE, "scs")[AUGMENTED]
    (before,) = [i for i in augmented.instructions() if isinstance(i, Phi) and i.name == "record.before"]
    (record,) = [i for i in augmented.instructions() if isinstance(i, Call) and i.name == "record"]
    assert record in before.operands
    links = [i for i in augmented.instructions() if isinstance(i, Store) and i.operands == [before, record]]
    assert len(links) == 1


def test_save_all_neither_loads_again_nor_recomputes():
    reverse = pair_of(COUNTED, plan="save_all")[REVERSE]
    names = {i.name for i in reverse.instructions() if i.name and not isinstance(i, Load)}
    assert "p.shadow" not in names
    assert "wide" not in names
