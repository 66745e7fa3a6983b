"""Explicit Runge–Kutta steps: one for all tables of coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from irad.frontend.inner import inner_jitable
from irad.ode.dense import Steps, put, with_slopes


class Tableau(NamedTuple):
    """The coefficients of a method.

    The last stage is the state at the end of the step; its slope is the first one of the next step.

    Attributes:
        nodes: the times of the stages, as shares of the step; the first is 0.
        stages: for each stage after the first the weights of the slopes before it.
        errors: the weights of all slopes in the estimate of the error; a second row is an estimate of lower order (see
            `irad.ode.march.error_size`), no row is a method with steps of one size.
        order: of the error estimate, and 1; 0 if there is none.
        dense: the weights of slopes in the rows of the solution within a step, after the first two; see `dense`.
        further: nodes and stages of slopes that only these rows need.
    """

    nodes: Sequence[float]
    stages: Sequence[Sequence[float]]
    errors: Sequence[Sequence[float]] = ()
    order: int = 0
    dense: Sequence[Sequence[float]] = ()
    further: Sequence[tuple[float, Sequence[float]]] = ()


def _matrix(rows: Sequence[Sequence[float]], width: int) -> Any:
    """Rows with zeros after their ends."""
    found = np.zeros((len(rows), width))
    for line, row in zip(found, rows, strict=True):
        line[: len(row)] = row
    return found


@inner_jitable
def _combined(out, y, h, weights, first, slopes, count):  # type: ignore[no-untyped-def]
    """Writes the state of a stage; the weights between the first one and ``first`` are zero."""
    for j in range(y.size):
        total = weights[0] * slopes[0, j]
        for i in range(first, count):
            total += weights[i] * slopes[i, j]
        out[j] = y[j] + h * total


def runge_kutta(f: Any, tableau: Tableau) -> Steps:
    """The steps of a method for a right-hand side; what they keep are the slopes."""
    last = len(tableau.stages)
    nodes = np.array([*tableau.nodes, *(node for node, _ in tableau.further)])
    rows = [(), *tableau.stages, *(row for _, row in tableau.further)]
    stages, errors = _matrix(rows, nodes.size), _matrix(tableau.errors, last + 1)
    # LLVM keeps products with zero, and the large tables have many
    firsts = np.array([next((i for i, weight in enumerate(row) if i > 0 and weight), len(row)) for row in rows])
    weights = _matrix(tableau.dense, nodes.size)

    @inner_jitable
    def step(t, h, y, slope, args):  # type: ignore[no-untyped-def]
        points, slopes = np.empty((last + 1, y.size)), np.empty((last + 1, y.size))
        put(slopes[0], slope)
        for i in range(1, last + 1):
            _combined(points[i], y, h, stages[i], firsts[i], slopes, i)
            put(slopes[i], f(t + nodes[i] * h, points[i], *args))
        return points[last], slopes[last], slopes

    @inner_jitable
    def extended(t, h, y, slopes, args):  # type: ignore[no-untyped-def]
        points, more = np.empty((nodes.size, y.size)), np.empty((nodes.size, y.size))
        for i in range(nodes.size):
            if i <= last:
                put(more[i], slopes[i])
            else:
                _combined(points[i], y, h, stages[i], firsts[i], more, i)
                put(more[i], f(t + nodes[i] * h, points[i], *args))
        return more

    all_slopes = extended if tableau.further else inner_jitable(lambda t, h, y, slopes, args: slopes)

    @inner_jitable
    def cubic(t, h, y, y1, slopes, args):  # type: ignore[no-untyped-def]
        return with_slopes(y, y1, h, slopes[0], slopes[last], 0)

    @inner_jitable
    def dense(t, h, y, y1, slopes, args):  # type: ignore[no-untyped-def]
        found = with_slopes(y, y1, h, slopes[0], slopes[last], weights.shape[0])
        slopes = all_slopes(t, h, y, slopes, args)
        for k in range(weights.shape[0]):
            for j in range(y.size):
                total = 0.0
                for i in range(nodes.size):
                    total += weights[k, i] * slopes[i, j]
                found[2 + k, j] = h * total
        return found

    return Steps(step, errors, True, dense if tableau.dense else cubic)


EULER = Tableau((0.0, 1.0), ((1.0,),))
MIDPOINT = Tableau((0.0, 0.5, 1.0), ((0.5,), (0.0, 1.0)))
HEUN = Tableau((0.0, 1.0, 1.0), ((1.0,), (0.5, 0.5)))
CLASSICAL = Tableau(
    (0.0, 0.5, 0.5, 1.0, 1.0), ((0.5,), (0.0, 0.5), (0.0, 0.0, 1.0), (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0))
)
# Bogacki, Shampine: A 3(2) pair of Runge–Kutta formulas, Appl. Math. Lett. 2 (1989) 321-325
BOGACKI_SHAMPINE = Tableau(
    (0.0, 0.5, 0.75, 1.0),
    ((0.5,), (0.0, 0.75), (2 / 9, 1 / 3, 4 / 9)),
    ((5 / 72, -1 / 12, -1 / 9, 1 / 8),),
    3,
)
# Dormand, Prince: J. Comput. Appl. Math. 6 (1980) 19-26; within a step: Hairer, Nørsett, Wanner: Solving Ordinary
# Differential Equations I, II.6
DORMAND_PRINCE = Tableau(
    (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    (
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    ((71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),),
    5,
    (
        (
            -12715105075 / 11282082432,
            0.0,
            87487479700 / 32700410799,
            -10690763975 / 1880347072,
            701980252875 / 199316789632,
            -1453857185 / 822651844,
            69997945 / 29380423,
        ),
    ),
)
# Tsitouras: Runge–Kutta pairs of order 5(4) satisfying only the first column simplifying assumption,
# Comput. Math. Appl. 62 (2011) 770-775. The row within a step has the leading coefficients of his polynomials, which
# have the slopes at both ends.
TSITOURAS = Tableau(
    (0.0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0),
    (
        (0.161,),
        (-0.008480655492356989, 0.335480655492357),
        (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
        (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
        (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383),
        (
            0.09646076681806523,
            0.01,
            0.4798896504144996,
            1.379008574103742,
            -3.290069515436081,
            2.324710524099774,
        ),
    ),
    (
        (
            -0.00178001105222577714,
            -0.0008164344596567469,
            0.007880878010261995,
            -0.1447110071732629,
            0.5823571654525552,
            -0.45808210592918697,
            1 / 66,
        ),
    ),
    5,
    (
        (
            -1.0530884977290216,
            0.1017,
            2.490627285651252793,
            -16.54810288924490272,
            47.37952196281928122,
            -34.87065786149660974,
            2.5,
        ),
    ),
)
# Dormand, Prince, in the form of Hairer, Nørsett, Wanner: Solving Ordinary Differential Equations I, second edition,
# II.5 and II.6; errors of order 5 and 3
_LAST = (
    5.42937341165687622380535766363e-2,
    0.0,
    0.0,
    0.0,
    0.0,
    4.45031289275240888144113950566,
    1.89151789931450038304281599044,
    -5.8012039600105847814672114227,
    3.1116436695781989440891606237e-1,
    -1.52160949662516078556178806805e-1,
    2.01365400804030348374776537501e-1,
    4.47106157277725905176885569043e-2,
)
_THIRD = {
    0: 0.244094488188976377952755905512,
    8: 0.733846688281611857341361741547,
    11: 0.220588235294117647058823529412e-1,
}
DORMAND_PRINCE_8 = Tableau(
    (
        0.0,
        0.526001519587677318785587544488e-01,
        0.789002279381515978178381316732e-01,
        0.118350341907227396726757197510,
        0.281649658092772603273242802490,
        0.333333333333333333333333333333,
        0.25,
        0.307692307692307692307692307692,
        0.651282051282051282051282051282,
        0.6,
        0.857142857142857142857142857142,
        1.0,
        1.0,
    ),
    (
        (5.26001519587677318785587544488e-2,),
        (1.97250569845378994544595329183e-2, 5.91751709536136983633785987549e-2),
        (2.95875854768068491816892993775e-2, 0.0, 8.87627564304205475450678981324e-2),
        (
            2.41365134159266685502369798665e-1,
            0.0,
            -8.84549479328286085344864962717e-1,
            9.24834003261792003115737966543e-1,
        ),
        (
            3.7037037037037037037037037037e-2,
            0.0,
            0.0,
            1.70828608729473871279604482173e-1,
            1.25467687566822425016691814123e-1,
        ),
        (
            3.7109375e-2,
            0.0,
            0.0,
            1.70252211019544039314978060272e-1,
            6.02165389804559606850219397283e-2,
            -1.7578125e-2,
        ),
        (
            3.70920001185047927108779319836e-2,
            0.0,
            0.0,
            1.70383925712239993810214054705e-1,
            1.07262030446373284651809199168e-1,
            -1.53194377486244017527936158236e-2,
            8.27378916381402288758473766002e-3,
        ),
        (
            6.24110958716075717114429577812e-1,
            0.0,
            0.0,
            -3.36089262944694129406857109825,
            -8.68219346841726006818189891453e-1,
            2.75920996994467083049415600797e1,
            2.01540675504778934086186788979e1,
            -4.34898841810699588477366255144e1,
        ),
        (
            4.77662536438264365890433908527e-1,
            0.0,
            0.0,
            -2.48811461997166764192642586468,
            -5.90290826836842996371446475743e-1,
            2.12300514481811942347288949897e1,
            1.52792336328824235832596922938e1,
            -3.32882109689848629194453265587e1,
            -2.03312017085086261358222928593e-2,
        ),
        (
            -9.3714243008598732571704021658e-1,
            0.0,
            0.0,
            5.18637242884406370830023853209,
            1.09143734899672957818500254654,
            -8.14978701074692612513997267357,
            -1.85200656599969598641566180701e1,
            2.27394870993505042818970056734e1,
            2.49360555267965238987089396762,
            -3.0467644718982195003823669022,
        ),
        (
            2.27331014751653820792359768449,
            0.0,
            0.0,
            -1.05344954667372501984066689879e1,
            -2.00087205822486249909675718444,
            -1.79589318631187989172765950534e1,
            2.79488845294199600508499808837e1,
            -2.85899827713502369474065508674,
            -8.87285693353062954433549289258,
            1.23605671757943030647266201528e1,
            6.43392746015763530355970484046e-1,
        ),
        _LAST,
    ),
    (
        (
            0.1312004499419488073250102996e-1,
            0.0,
            0.0,
            0.0,
            0.0,
            -0.1225156446376204440720569753e1,
            -0.4957589496572501915214079952,
            0.1664377182454986536961530415e1,
            -0.3503288487499736816886487290,
            0.3341791187130174790297318841,
            0.8192320648511571246570742613e-1,
            -0.2235530786388629525884427845e-1,
        ),
        tuple(weight - _THIRD.get(i, 0.0) for i, weight in enumerate(_LAST)),
    ),
    8,
    (
        (
            -0.84289382761090128651353491142e1,
            0.0,
            0.0,
            0.0,
            0.0,
            0.56671495351937776962531783590,
            -0.30689499459498916912797304727e1,
            0.23846676565120698287728149680e1,
            0.21170345824450282767155149946e1,
            -0.87139158377797299206789907490,
            0.22404374302607882758541771650e1,
            0.63157877876946881815570249290,
            -0.88990336451333310820698117400e-1,
            0.18148505520854727256656404962e2,
            -0.91946323924783554000451984436e1,
            -0.44360363875948939664310572000e1,
        ),
        (
            0.10427508642579134603413151009e2,
            0.0,
            0.0,
            0.0,
            0.0,
            0.24228349177525818288430175319e3,
            0.16520045171727028198505394887e3,
            -0.37454675472269020279518312152e3,
            -0.22113666853125306036270938578e2,
            0.77334326684722638389603898808e1,
            -0.30674084731089398182061213626e2,
            -0.93321305264302278729567221706e1,
            0.15697238121770843886131091075e2,
            -0.31139403219565177677282850411e2,
            -0.93529243588444783865713862664e1,
            0.35816841486394083752465898540e2,
        ),
        (
            0.19985053242002433820987653617e2,
            0.0,
            0.0,
            0.0,
            0.0,
            -0.38703730874935176555105901742e3,
            -0.18917813819516756882830838328e3,
            0.52780815920542364900561016686e3,
            -0.11573902539959630126141871134e2,
            0.68812326946963000169666922661e1,
            -0.10006050966910838403183860980e1,
            0.77771377980534432092869265740,
            -0.27782057523535084065932004339e1,
            -0.60196695231264120758267380846e2,
            0.84320405506677161018159903784e2,
            0.11992291136182789328035130030e2,
        ),
        (
            -0.25693933462703749003312586129e2,
            0.0,
            0.0,
            0.0,
            0.0,
            -0.15418974869023643374053993627e3,
            -0.23152937917604549567536039109e3,
            0.35763911791061412378285349910e3,
            0.93405324183624310003907691704e2,
            -0.37458323136451633156875139351e2,
            0.10409964950896230045147246184e3,
            0.29840293426660503123344363579e2,
            -0.43533456590011750143754432175058e2,
            0.96324553959188282948394950600e2,
            -0.39177261675615439165231486172e2,
            -0.14972683625798562581422125276e3,
        ),
    ),
    (
        (
            0.1,
            (
                5.61675022830479523392909219681e-2,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
                2.53500210216624811088794765333e-1,
                -2.46239037470802489917441475441e-1,
                -1.24191423263816360469010140626e-1,
                1.5329179827876569731206322685e-1,
                8.20105229563468988491666602057e-3,
                7.56789766054569976138603589584e-3,
                -8.298e-3,
            ),
        ),
        (
            0.2,
            (
                3.18346481635021405060768473261e-2,
                0.0,
                0.0,
                0.0,
                0.0,
                2.83009096723667755288322961402e-2,
                5.35419883074385676223797384372e-2,
                -5.49237485713909884646569340306e-2,
                0.0,
                0.0,
                -1.08347328697249322858509316994e-4,
                3.82571090835658412954920192323e-4,
                -3.40465008687404560802977114492e-4,
                1.41312443674632500278074618366e-1,
            ),
        ),
        (
            0.777777777777777777777777777778,
            (
                -4.28896301583791923408573538692e-1,
                0.0,
                0.0,
                0.0,
                0.0,
                -4.69762141536116384314449447206,
                7.68342119606340259904184240953878,
                4.06898981839711007970213554331,
                3.56727187455281109270669543021e-1,
                0.0,
                0.0,
                0.0,
                -1.39902416515901462129418009734e-3,
                2.9475147891527723389556272149,
                -9.15095847217987001081870187138,
            ),
        ),
    ),
)

TABLEAUX = {
    "euler": EULER,
    "midpoint": MIDPOINT,
    "heun": HEUN,
    "rk4": CLASSICAL,
    "bosh3": BOGACKI_SHAMPINE,
    "dopri5": DORMAND_PRINCE,
    "tsit5": TSITOURAS,
    "dop853": DORMAND_PRINCE_8,
}
"""The methods by name."""
