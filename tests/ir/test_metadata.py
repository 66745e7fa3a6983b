from __future__ import annotations

import pytest

from irad.ir.metadata import elements, is_reference


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("!{}", ()),
        ("!{!6, !6, i64 0}", ("!6", "!6", "i64 0")),
        ('!{!"any, pointer", !7, i64 0}', ('!"any, pointer"', "!7", "i64 0")),
        ('!{i32 2, !"Debug Info Version", i32 3}', ("i32 2", '!"Debug Info Version"', "i32 3")),
        ("!{null, !{!1, !2}, ptr @f}", ("null", "!{!1, !2}", "ptr @f")),
        ("!DILocation(line: 1, scope: !2)", ()),
    ],
)
def test_elements(node: str, expected: tuple[str, ...]):
    assert elements(node) == expected


def test_references():
    assert [e for e in elements('!{!6, !"7", i64 8, !{!9}, !DIExpression()}') if is_reference(e)] == ["!6"]
