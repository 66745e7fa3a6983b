"""The names of irad.data. This is what `irad.lazy` reads, so each name is written once."""

from irad.api.structures.functions import (
    accumulate as accumulate,
    copy as copy,
    dot as dot,
    from_vec as from_vec,
    leaves as leaves,
    make_zero as make_zero,
    make_zero_ as make_zero_,
    norm as norm,
    one_hot as one_hot,
    recursive_map as recursive_map,
    recursive_map_ as recursive_map_,
    recursive_map_into as recursive_map_into,
    remake_zero_ as remake_zero_,
    to_vec as to_vec,
)
from irad.api.structures.registration import (
    register_container as register_container,
    register_inactive as register_inactive,
    register_vector as register_vector,
    unregister as unregister,
)
from irad.api.structures.space import VectorSpace as VectorSpace
