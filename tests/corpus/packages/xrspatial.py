"""Rasters: slopes, curvature, filters and shortest paths, most of them in single precision."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Named, Package, ints, of
from tests.tools.catalogue import floats

HEIGHTS = floats(6, 7)
RASTER = HEIGHTS.astype(np.float32)
BANDS = (floats(3, 4), floats(3, 4, seed=1), floats(3, 4, seed=2))
LATITUDES, LONGITUDES = 47.0 + 0.001 * np.repeat([-1.0, 0.0, 1.0], 3), 8.0 + 0.001 * np.tile([-1.0, 0.0, 1.0], 3)
ONES = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
STARTS = np.zeros((4, 5))
STARTS[1, 2] = 1.0
STEPS = (ints(-1, 0, 0, 1), ints(0, -1, 1, 0), np.array([30.0, 25.0, 25.0, 30.0]))

PACKAGE = Package(
    "xrspatial",
    "xarray-spatial>=0.5.3",
    (
        of(
            "xrspatial.geodesic:_geodesic_slope_at_point",
            *(47.0, 8.0, 150.0, LATITUDES, LONGITUDES, 100.0 * floats(9), 6378137.0**2, 6356752.314**2, 1.0, 7.8e-8),
            argnums=(5, 8),
        ),
        of("xrspatial.focal:_calc_min", floats(3, 3)),
        of("xrspatial.curvature:_cpu", HEIGHTS, 1.5, has_nan=True),
        of("xrspatial:manhattan_distance", 1.0, 2.3, 0.4, 0.7),
        of("xrspatial.aspect:_run_numpy", RASTER, has_nan=True),
        of("xrspatial:euclidean_distance", 1.0, 2.3, 0.4, 0.7),
        of("xrspatial.focal:_mean_numpy", HEIGHTS, np.array([np.nan]), argnums=(0,)),
        of("xrspatial.convolution:_convolve_2d_numpy", RASTER, floats(3, 3), has_nan=True),
        of("xrspatial.multispectral:_evi_cpu", *BANDS, 6.0, 0.5, 1.0, 2.5),
        of("xrspatial.slope:_cpu", RASTER, 1.5, 2.5, has_nan=True),
        of("xrspatial.multispectral:_normalize_data_cpu", BANDS[0], 0.3, 2.3, 255.0, 10.0, 0.125),
        of("xrspatial:great_circle_distance", 8.5, 9.1, 47.4, 46.9),
        of(
            "xrspatial.cost_distance:_cost_distance_kernel",
            *(STARTS, floats(4, 5, seed=1), 4, 5, 25.0, 30.0, 500.0, np.zeros(0), *STEPS),
            argnums=(1,),
        ),
        of("xrspatial.viewshed:_calc_event_grad", 3.0, 4.0, 12.0, 1.0, 1.0, 10.0, 25.0, 30.0),
        of("xrspatial.focal:_apply_numpy", RASTER, ONES, Named("xrspatial.focal:_calc_std"), argnums=(0,)),
    ),
)
