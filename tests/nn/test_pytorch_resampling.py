"""Padding, resampling and sequences of irad.nn against PyTorch, in both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irad import nn
from tests.nn.checks import gradient_of

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install torch")
F: Any = torch.nn.functional
RANDOM = np.random.default_rng(0)
X, GRID = RANDOM.standard_normal((2, 4, 5, 6)), RANDOM.uniform(-1.3, 1.3, (2, 3, 4, 2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values(dtype: Any):
    x, grid = X.astype(dtype), GRID.astype(dtype)
    t, g = torch.tensor(x), torch.tensor(grid)
    pairs = [
        (nn.pad_reflect(x, (1, 2, 3, 0)), F.pad(t, (3, 0, 1, 2), mode="reflect")),
        (nn.pad_repeat(x, (1, 2, 3, 0)), F.pad(t, (3, 0, 1, 2), mode="replicate")),
        (nn.pad_circular(x, (1, 2, 3, 0)), F.pad(t, (3, 0, 1, 2), mode="circular")),
        (nn.upsample_nearest(x, size=(7, 4)), F.interpolate(t, size=(7, 4), mode="nearest")),
        (nn.pixel_shuffle(x, 2), F.pixel_shuffle(t, 2)),
        (nn.unfold(x, 3, 2, 1), F.unfold(t, 3, stride=2, padding=1)),
    ]
    for align_corners in (True, False):
        wanted = F.interpolate(t, size=(8, 3), mode="bilinear", align_corners=align_corners)
        pairs.append((nn.upsample_bilinear(x, size=(8, 3), align_corners=align_corners), wanted))
        for mode in ("bilinear", "nearest"):
            for padding in ("zeros", "border"):
                wanted = F.grid_sample(t, g, mode, padding, align_corners)
                pairs.append((nn.grid_sample(x, grid, mode, padding, align_corners), wanted))
    for found, wanted in pairs:
        assert found.dtype == dtype
        tolerance = 1e-12 if dtype is np.float64 else 1e-5
        np.testing.assert_allclose(found, wanted.numpy(), rtol=tolerance, atol=tolerance)


def test_gradients_of_sampling():
    x, grid = torch.tensor(X, requires_grad=True), torch.tensor(GRID, requires_grad=True)
    y = F.grid_sample(x, grid, "bilinear", "border", False)
    weights = np.random.default_rng(1).standard_normal(y.shape)
    (torch.tensor(weights) * (y * y + y)).sum().backward()
    found = gradient_of(nn.grid_sample, 5, (0, 1))(weights, X, GRID, "bilinear", "border", False)[1]
    np.testing.assert_allclose(found[0], x.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(found[1], grid.grad.numpy(), atol=1e-12)


def test_ctc():
    x = torch.tensor(X[:, 0], requires_grad=True)  # (batch, time, classes)
    labels, lengths, counts = np.array([[0, 0, 3], [4, 1, 0]]), np.array([5, 4]), np.array([3, 0])
    scores = F.log_softmax(x, 2).transpose(0, 1)
    y = F.ctc_loss(scores, *map(torch.tensor, (labels, lengths, counts)), blank=5, reduction="none")
    weights = np.array([0.7, -1.3])
    (torch.tensor(weights) * (y * y + y)).sum().backward()
    given = (X[:, 0].copy(), labels, lengths, counts)
    np.testing.assert_allclose(nn.ctc_loss(*given), y.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(gradient_of(nn.ctc_loss, 4, (0,))(weights, *given)[1][0], x.grad.numpy(), atol=1e-12)
