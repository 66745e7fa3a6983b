"""What users call. Everything here is also a name of ``irad`` itself."""

from irad.api import inside as inside
from irad.api import nopython as nopython
from irad.api.annotate import Active, Const, Duplicated, DuplicatedNoNeed, MixedDuplicated, Reverse, ReverseWithPrimal
from irad.api.autodiff import autodiff
from irad.api.check import CheckReport, check
from irad.api.grad import grad, value_and_grad, value_and_grad_into
from irad.api.jit import jit
from irad.api.shadow import shadow_like
from irad.api.tape import TapeReport, tape_report
from irad.api.vjp import Pullback, vjp

__all__ = [
    "Active",
    "CheckReport",
    "Const",
    "Duplicated",
    "DuplicatedNoNeed",
    "MixedDuplicated",
    "Pullback",
    "Reverse",
    "ReverseWithPrimal",
    "TapeReport",
    "autodiff",
    "check",
    "grad",
    "jit",
    "shadow_like",
    "tape_report",
    "value_and_grad",
    "value_and_grad_into",
    "vjp",
]
