"""The table of registers: its figures are those of ptxas."""

from __future__ import annotations

import json

from click.testing import CliRunner

from bench.cuda_registers import Needs, Row, main
from irad.backend.cuda.ptx import compile_ptx
from irad.backend.cuda.toolkit import assemble
from tests.cuda.derivatives import derivative_of, program_of
from tests.cuda.kernels import KERNELS
from tests.cuda.ptx.tools import needs_libdevice, needs_ptxas

pytestmark = [needs_ptxas, needs_libdevice]


def test_the_result_file_has_what_ptxas_says(tmp_path):
    file = tmp_path / "registers.json"
    done = CliRunner().invoke(main, ["gather_scatter", "--arch", "sm_80", "--output", str(file)])
    assert done.exit_code == 0, done.output
    assert "gather_sc" in done.output
    [row] = json.loads(file.read_text())["rows"]
    case = KERNELS["gather_scatter"]
    for kind, module in (("primal", program_of(case).module), ("reverse", derivative_of(case).module)):
        wanted = assemble(compile_ptx(module, "sm_80"), "sm_80")
        assert row[kind]["registers"] == wanted.registers
    assert row["ratio"] == row["reverse"]["registers"] / row["primal"]["registers"]


def test_what_is_worth_a_look():
    def row(primal: int, reverse: int, spilled: int = 0) -> Row:
        few, many = Needs(primal, 0, 0, 0), Needs(reverse, 0, spilled, 0)
        return Row("k", "sm_90", None, few, many, few)

    assert row(10, 32).is_fine
    assert row(40, 80).is_fine
    assert not row(40, 81).is_fine
    assert not row(40, 40, spilled=8).is_fine


def test_an_unknown_kernel_is_named():
    assert "no kernel 'nothing'" in CliRunner().invoke(main, ["nothing"]).output
