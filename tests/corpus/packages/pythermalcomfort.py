"""Thermal comfort: heat balances iterated to a tolerance, minute by minute, and roots found by bisection."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

M = "pythermalcomfort.models."
AIR, RADIANT = floats(3, low=28.0, high=31.0), floats(3, low=28.0, high=31.0, seed=1)
BODY = (33.7, 0.094, 0.1, 6.3, 0.0)
SLEEP = (0.0, 101325.0, 8, 171.0, 70.0, 170.0, 120.0, 0.5)
STATE = (34.1, 36.8, 36.8, 36.9, 0.3, 0.0, 0.0)

PACKAGE = Package(
    "pythermalcomfort",
    "pythermalcomfort>=4.8",
    (
        of(
            M + "two_nodes_gagge_sleep:_two_nodes_gagge_sleep_optimized",
            floats(3, low=17.0, high=19.0),
            floats(3, low=17.0, high=19.0, seed=1),
            floats(3, low=0.11, high=0.2),
            floats(3, low=45.0, high=55.0),
            floats(3, low=1.1, high=1.4),
            floats(3, low=1.6, high=1.8),
            *SLEEP,
            *BODY,
        ),
        of(M + "cooling_effect:_p_sat_torr", 25.0),
        of(
            M + "two_nodes_gagge_ji:_two_nodes_ji_optimized_scalar",
            *(36.5, 36.7, 0.3, 1.1, 0.4, 18.0, 0.0, 1.8, 101325.0, 0, True, 70.0, 8, 33.7, 36.8),
        ),
        of(
            M + "two_nodes_gagge_ji:_two_nodes_ji_optimized_array",
            AIR,
            RADIANT,
            floats(3, low=0.3, high=0.5),
            floats(3, low=1.0, high=1.5),
            floats(3, low=0.55, high=0.9),
            floats(3, low=12.0, high=18.0),
            np.zeros(3),
            np.full(3, 1.8),
            np.full(3, 101325.0),
            1,
            False,
            70.0,
            6,
            33.7,
            36.8,
        ),
        of(M + "heat_index_lu:_pv_star", 300.0),
        of(M + "heat_index_lu:_zs", 30.0),
        of(M + "heat_index_lu:_qv", 300.0, 2000.0),
        of(M + "heat_index_lu:_find_t", 3, 0.03, known="not smooth: bisection"),
        of(M + "heat_index_lu:_residual", 3, 306.0, 305.0, 2000.0, 0.03, 309.0),
        of(
            M + "phs:_phs_optimized_scalar",
            *(40.0, 40.5, 0.3, 2.5, 150.0, 0.5, 0, 1, 100, 75.0, 0.0, 0.38, 0.54, 1.8, 0.0, 0.0, 30, 0.97),
            *STATE,
            0,
            known="not smooth: iterated to a tolerance",
        ),
        of(M + "cooling_effect:_set_for_cooling_effect", 28.0, 28.5, 0.3, 50.0, 1.2, 0.5, 0.0),
        of(M + "two_nodes_gagge_sleep:_fnsvp", 25.0),
        of(
            M + "ireq:_solve_single_criterion",
            *(-5.0, -5.5, 116.0, 0.0, 0.5, 0.2, 8.0, 0.387, 40.0, 30.0, 0.06),
            known="not smooth: bisection",
        ),
        of(M + "solar_gain:_solar_gain_scalar", *(42.0, 121.0, 800.0, 0.5, 0.5, 0.5, 0.7, 0.6, 1)),
    ),
)
