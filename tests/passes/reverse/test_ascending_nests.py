from __future__ import annotations

import pytest

import irad.passes.reverse.ascending_nests as nests
from tests.passes.units import generated

# y[i, j] = x[i, j] * x[i, j + 1]
NEST = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %x, ptr %y, i64 %n, i64 %m) {
entry:
  br label %rows
rows:
  %i = phi i64 [ 0, %entry ], [ %i.next, %rows.end ]
  %row = mul i64 %i, %m
  %px = getelementptr double, ptr %x, i64 %row
  %py = getelementptr double, ptr %y, i64 %row
  br label %columns
columns:
  %j = phi i64 [ 0, %rows ], [ %j.next, %columns ]
  %p = getelementptr double, ptr %px, i64 %j
  %q = getelementptr double, ptr %py, i64 %j
  %a = load double, ptr %p
  %p.next = getelementptr i8, ptr %p, i64 8
  %b = load double, ptr %p.next
  %s = fmul double %a, %b
  store double %s, ptr %q
  %j.next = add nuw i64 %j, 1
  %j.more = icmp ult i64 %j.next, %m
  br i1 %j.more, label %columns, label %rows.end
rows.end:
  %i.next = add nuw i64 %i, 1
  %i.more = icmp ult i64 %i.next, %n
  br i1 %i.more, label %rows, label %end
end:
  ret i32 0
}
"""
TRIANGLE = NEST.replace("%j.more = icmp ult i64 %j.next, %m", "%j.more = icmp ult i64 %j.next, %i")
SCATTER = NEST.replace("ptr %px, i64 %j", "ptr %px, i64 %w").replace(
    "%p = get", "%w.0 = mul i64 %j, %j\n  %w = urem i64 %w.0, %m\n  %p = get"
)
SCATTERED_STORE = NEST.replace("ptr %y, i64 %row", "ptr %y, i64 %w").replace(
    "%px = get", "%w.0 = mul i64 %i, %i\n  %w = urem i64 %w.0, %m\n  %px = get"
)
CHOICE = NEST.replace("br label %columns\ncolumns", "%c = load double, ptr %px\n  br label %choice\nchoice").replace(
    "choice:",
    "choice:\n  %d = fcmp ogt double %c, 0.0\n  br i1 %d, label %columns.pre, label %rows.end\n"
    "columns.pre:\n  br label %columns\ncolumns:",
).replace("[ 0, %rows ]", "[ 0, %columns.pre ]")  # fmt: skip


def found(monkeypatch: pytest.MonkeyPatch, text: str, **options: object) -> list[tuple[str, int, int]]:
    """The nests that are turned: the head, how many roots are stored to row by row, how many pairs are to be apart."""
    turned = list[nests.Nest]()
    original = nests._turn

    def turn(nest: nests.Nest) -> None:
        turned.append(nest)
        original(nest)

    monkeypatch.setattr(nests, "_turn", turn)
    generated(text, "scsscc", **options)
    return [(str(each.state.loop.header.name), len(each.rows), len(each.apart)) for each in turned]


def test_rows_run_upwards_if_what_is_cleared_lies_apart_from_what_is_added_to(monkeypatch: pytest.MonkeyPatch):
    assert found(monkeypatch, NEST) == [("rows", 1, 1)]


def test_what_cannot_be_the_same_is_not_compared(monkeypatch: pytest.MonkeyPatch):
    apart = NEST.replace("ptr %x, ptr %y", "ptr noalias %x, ptr noalias %y")
    assert found(monkeypatch, apart) == [("rows", 1, 0)]


@pytest.mark.parametrize("text", [TRIANGLE, SCATTERED_STORE, CHOICE], ids=["triangle", "scattered", "choice"])
def test_nests_whose_accesses_have_no_bounds_are_left_alone(monkeypatch: pytest.MonkeyPatch, text: str):
    assert found(monkeypatch, text) == []


def test_nests_whose_inner_loop_runs_downwards_are_left_alone(monkeypatch: pytest.MonkeyPatch):
    assert found(monkeypatch, SCATTER) == []


@pytest.mark.parametrize("options", [{"strict": True}, {"plan": "save_all"}, {"watches": True}, {"is_primal": True}])
def test_modes_that_keep_the_order(monkeypatch: pytest.MonkeyPatch, options: dict[str, object]):
    assert found(monkeypatch, NEST, **options) == []
