"""Draws the pictures of the tutorial by running its code; needs the extra `demo`: python scripts/make_pictures.py"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.guides import examples_of  # noqa: E402  # found by the path above

PATH = ROOT / "docs" / "images" / "tutorial_fit.png"


def main() -> None:
    """Fits as the tutorial does and draws measurements, start and fit."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    [fit] = [example for example in examples_of("docs/tutorial.md") if "fit = minimize" in example.code]
    with tempfile.TemporaryDirectory() as folder:
        names = fit.names(Path(folder))
    np = names["np"]
    times = np.linspace(0.0, 6.0, 400)
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    axes.plot(names["times"], names["positions"], "o", ms=4, color="0.35", label="measured")
    for label, parameters, style in (("start", names["start"], "--"), ("fit", names["fit"].x, "-")):
        amplitude, decay, frequency, phase = parameters
        position = amplitude * np.exp(-decay * times) * np.cos(frequency * times + phase)
        axes.plot(times, position, style, label=label)
    axes.set(xlabel="time", ylabel="position")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PATH, dpi=110)


if __name__ == "__main__":
    main()
