"""Layers of neural networks for Numba code, with derivatives by rules.

All modules are loaded at once, for a rule that is registered while Numba compiles a function has that compiled again.
"""

from __future__ import annotations

from irad.nn.activations import (
    bias_act,
    celu,
    elu,
    gelu,
    gelu_erf,
    gelu_sigmoid,
    gelu_tanh,
    glu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leakyrelu,
    lisht,
    logcosh,
    logsigmoid,
    mish,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    softplus,
    softshrink,
    softsign,
    swish,
    tanh,
    tanhshrink,
    thresholdrelu,
    trelu,
)
from irad.nn.attention import dot_product_attention, dot_product_attention_scores, make_causal_mask
from irad.nn.convolution.public import (
    conv,
    conv_data,
    conv_filter,
    depthwiseconv,
)
from irad.nn.indexing import gather, scatter
from irad.nn.normalisation import batchnorm, groupnorm, instancenorm, layernorm
from irad.nn.pooling import lpnormpool, maxpool, meanpool
from irad.nn.products import batched_mul, batched_vec
from irad.nn.random_masks import dropout
from irad.nn.resampling.folding import fold, pixel_shuffle, pixel_unshuffle, unfold
from irad.nn.resampling.grids import grid_sample, imrotate
from irad.nn.resampling.padding import pad_circular, pad_constant, pad_reflect, pad_repeat, pad_symmetric, pad_zeros
from irad.nn.resampling.upsampling import upsample_bilinear, upsample_linear, upsample_nearest, upsample_trilinear
from irad.nn.sequences.ctc import ctc_loss
from irad.nn.sequences.features import db_to_power, melscale_filterbanks, power_to_db, spectrogram
from irad.nn.sequences.spectra import hamming_window, hann_window, istft, stft
from irad.nn.softmaxes import logsoftmax, logsumexp, softmax

__all__ = [
    "batched_mul",
    "batched_vec",
    "batchnorm",
    "bias_act",
    "celu",
    "conv",
    "conv_data",
    "conv_filter",
    "ctc_loss",
    "db_to_power",
    "depthwiseconv",
    "dot_product_attention",
    "dot_product_attention_scores",
    "dropout",
    "elu",
    "fold",
    "gather",
    "gelu",
    "gelu_erf",
    "gelu_sigmoid",
    "gelu_tanh",
    "glu",
    "grid_sample",
    "groupnorm",
    "hamming_window",
    "hann_window",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "imrotate",
    "instancenorm",
    "istft",
    "layernorm",
    "leakyrelu",
    "lisht",
    "logcosh",
    "logsigmoid",
    "logsoftmax",
    "logsumexp",
    "lpnormpool",
    "make_causal_mask",
    "maxpool",
    "meanpool",
    "melscale_filterbanks",
    "mish",
    "pad_circular",
    "pad_constant",
    "pad_reflect",
    "pad_repeat",
    "pad_symmetric",
    "pad_zeros",
    "pixel_shuffle",
    "pixel_unshuffle",
    "power_to_db",
    "relu",
    "relu6",
    "rrelu",
    "scatter",
    "selu",
    "sigmoid",
    "softmax",
    "softplus",
    "softshrink",
    "softsign",
    "spectrogram",
    "stft",
    "swish",
    "tanh",
    "tanhshrink",
    "thresholdrelu",
    "trelu",
    "unfold",
    "upsample_bilinear",
    "upsample_linear",
    "upsample_nearest",
    "upsample_trilinear",
]
