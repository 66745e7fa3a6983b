"""The names of irad.nn."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

import irad
from irad import nn
from irad.frontend.custom import catalogue

TABLE = (Path(__file__).parents[2] / "docs" / "reference" / "nnlib_names.md").read_text(encoding="utf-8")
# Names that NNlib 0.9 exports or declares public, without those of activations, which are in the table as they are.
EXPORTS = """
ConvDims DenseConvDims PoolDims DepthwiseConvDims σ hardσ logσ tanh_fast sigmoid_fast sigmoid hardsigmoid
logsigmoid thresholdrelu gelu dot_product_attention dot_product_attention_scores make_causal_mask dropout
dropout! softmax softmax! ∇softmax ∇softmax! logsoftmax logsoftmax! ∇logsoftmax ∇logsoftmax! logsumexp
batched_mul batched_mul! ⊠ batched_vec batched_transpose batched_adjoint grid_sample ∇grid_sample conv conv!
∇conv_data ∇conv_data! ∇conv_filter ∇conv_filter! depthwiseconv depthwiseconv! ∇depthwiseconv_data
∇depthwiseconv_data! ∇depthwiseconv_filter ∇depthwiseconv_filter! conv_bias_act conv_bias_act! bias_act!
ctc_loss maxpool maxpool! meanpool meanpool! lpnormpool lpnormpool! ∇maxpool ∇maxpool! ∇meanpool ∇meanpool!
∇lpnormpool ∇lpnormpool! pad_constant pad_repeat pad_reflect pad_zeros pad_symmetric pad_circular
upsample_nearest ∇upsample_nearest upsample_linear ∇upsample_linear upsample_bilinear ∇upsample_bilinear
upsample_trilinear ∇upsample_trilinear pixel_shuffle imrotate ∇imrotate stft istft hann_window hamming_window
spectrogram melscale_filterbanks gather gather! scatter scatter! fold unfold glu within_gradient
""".split()


def _rows() -> list[tuple[list[str], str]]:
    """The names of NNlib in each row of the table, and what the row says about irad."""
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", TABLE, re.MULTILINE)
    return [(re.findall(r"`([^`]+)`", left), right) for left, right in rows]


def test_the_table_has_every_name_of_nnlib_once():
    names = [name for left, _ in _rows() for name in left]
    assert len(names) == len(set(names))
    assert set(EXPORTS) - set(names) == set()


def test_names_in_the_table_exist():
    arguments = {"axis", "dims", "dstsize", "out", "None"}
    for left, right in _rows():
        found = set(re.findall(r"`(?:irad\.)?(\w+)`", right)) - arguments
        assert found or right.startswith("none"), left
        for name in found:
            assert hasattr(nn, name) or hasattr(irad, name), name


def test_every_function_is_in_the_table():
    named = set(re.findall(r"`(\w+)`", TABLE))
    assert set(nn.__all__) - named == set()


def test_no_module_hides_a_function():
    assert {module.name for module in pkgutil.iter_modules(nn.__path__)}.isdisjoint(nn.__all__)


def test_it_is_loaded_on_first_use_even_while_a_function_is_compiled():
    code = (
        "import sys, numpy as np, irad\n"
        "assert 'irad.nn' not in sys.modules\n"
        "print(irad.grad(lambda x: irad.nn.softmax(x, 0)[0])(np.zeros(2)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[0.25, -0.25]\n", done.stderr


# The functions that NNlib has Enzyme rules for (NNlibEnzymeCoreExt), without the "!" of those that write to arguments,
# and what they are called here; those for depthwise filters are the general ones, with as many groups as channels.
ENZYME_RULES = {
    "conv": nn.conv,
    "∇conv_data": nn.conv_data,
    "∇conv_filter": nn.conv_filter,
    "depthwiseconv": nn.depthwiseconv,
    "gather": nn.gather,
    "scatter": nn.scatter,
    "maxpool": nn.maxpool,
    "meanpool": nn.meanpool,
    "lpnormpool": nn.lpnormpool,
    "dropout": nn.dropout,
    "batched_mul": nn.batched_mul,
}


def _with_rules() -> set[Any]:
    return {rule.key[0] for rule in catalogue.rules() if rule.is_for_reverse and rule.is_for_forward}


def _kernels_of(f: Any, found: set[Any]) -> set[Any]:
    """The compiled functions of irad.nn that a function calls, and those that these call."""
    code = f.py_func.__code__
    for name in code.co_names:
        callee = f.py_func.__globals__.get(name)
        if isinstance(callee, Dispatcher) and callee not in found and callee.py_func.__module__.startswith("irad.nn"):
            found.add(callee)
            _kernels_of(callee, found)
    return found


@pytest.mark.parametrize("name", ENZYME_RULES)
def test_what_nnlib_has_enzyme_rules_for_has_rules_here(name: str):
    function = ENZYME_RULES[name]
    assert function.py_func.__name__ == name.removeprefix("∇")
    assert _kernels_of(function, {function}) & _with_rules()


def test_this_test_sees_what_has_no_rule():
    assert not _kernels_of(nn.hann_window, {nn.hann_window}) & _with_rules()
