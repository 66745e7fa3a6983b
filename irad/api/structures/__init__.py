"""Functions over any structure; what they know of Numba's instances and containers is registered here."""

from irad.data.recursive import foreign as foreign
from irad.frontend.values import instances as instances
