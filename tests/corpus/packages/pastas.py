"""Groundwater: recharge models with thresholds, noise models, correlations of irregular series."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

RAIN, EVAPORATION = floats(12, low=1.0, high=8.0), floats(12, low=0.5, high=3.0, seed=1)
TIMES, OTHER_TIMES = np.cumsum(floats(12)), np.cumsum(floats(12, seed=1))
C = "pastas.stats.core:"
R = "pastas.recharge:"

PACKAGE = Package(
    "pastas",
    "pastas>=2.0",
    (
        of(
            "pastas.timeseries_utils:_ts_resample_slow",
            TIMES[:-1].copy(),
            TIMES[1:].copy(),
            floats(11),
            np.linspace(2.0, 9.0, 5),
            has_nan=True,
        ),
        of(R + "Berendrecht.get_recharge", RAIN, EVAPORATION, 1.0, 0.9, 0.5, 25.0, -2.0, 0.5, 50.0, 1.0),
        of(R + "FlexModel.get_interception_balance", RAIN, EVAPORATION, 2.0, 1.0),
        of(C + "_compute_ccf_gaussian", floats(3), TIMES, floats(12), OTHER_TIMES, floats(12, seed=2), 0.5),
        of("pastas.noisemodels:ArmaNoiseModel.calculate_noise", floats(9), floats(8), 5.0, 2.0),
        of(R + "FlexModel.get_snow_balance", RAIN, floats(12, low=-3.0, high=4.0), 0.1, 2.0),
        of(R + "Peterson.get_recharge", RAIN, EVAPORATION, 1.0, 1.0, 0.5, 0.5, 1.0, 1.0),
        of("pastas.rfunc:Hantush._integrand_hantush", 0.7, 0.4),
        of(R + "FlexModel.get_root_zone_balance", RAIN, EVAPORATION, 50.0, 0.25, 10.0, 4.0, 1.0),
        of(
            C + "_compute_ccf_rectangle",
            floats(3),
            TIMES,
            floats(12),
            OTHER_TIMES,
            floats(12, seed=2),
            0.5,
            argnums=(2, 4),
        ),
        of(
            "pastas.stressmodels:TarsoModel.tarso",
            np.array([2.0, 30.0, 0.5, 1.0, 20.0, 3.0]),
            floats(12),
            10.0,
        ),
    ),
)
