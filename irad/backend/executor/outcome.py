"""Reasons for which a launch did not end well, as errors that name threads and lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from irad.backend.executor.dialect import LANES, State, Stop
from irad.backend.executor.launch import LaunchState
from irad.backend.executor.rewriting.sites import placed
from irad.backend.executor.trace import Trace
from irad.errors import BarrierError, IradError

_SHOWN: Final = 4


def raise_for(status: int, state: LaunchState, name: str, trace: Trace | None) -> None:
    """Raises the exception for a status of the scheduler.

    Raises:
        BarrierError: threads wait for each other, or at different barriers.
        KernelBoundsError: an access is outside of all arrays.
        MemoryError: there is no memory for the frames of the threads.
    """
    if status == Stop.STUCK:
        raise _stuck(state, name)
    if status == Stop.KINDS:
        raise _mixed_kinds(state, name)
    if status == Stop.NO_MEMORY:
        raise MemoryError(f"no memory for {len(state.threads)} threads of {name}")
    if status == Stop.OUTSIDE:
        assert trace is not None
        raise trace.fault()
    if status == Stop.PLACES:
        raise _mixed_places(state, name)


def _stuck(state: LaunchState, name: str) -> IradError:
    groups = list(_waiting(state))
    site = state.lowered.sites[groups[0][0]]
    return placed(
        BarrierError(
            f"threads of block {state.current_block} of {name} wait for each other forever",
            "make all participating threads reach the barrier, or pass the mask of those that do",
            "threads leave a barrier when all participating threads have reached it; threads that have returned do "
            "not count",
            location=site.location,
            detail="\n".join(text for _, text in groups[:_SHOWN]),
        ),
        site,
    )


def _waiting(state: LaunchState) -> Iterator[tuple[int, str]]:
    """For each place at which threads wait, its number and who waits; the places where fewest wait first."""
    waiting = state.threads[state.threads["state"] > State.FINISHED]
    places, counts = np.unique(waiting["site"], return_counts=True)
    for place in places[np.argsort(counts, kind="stable")]:
        here = waiting[waiting["site"] == place]
        place = max(place, ~place)  # a complement where threads in other places may wait as well
        text = f"{_threads(state, here)} at the {state.lowered.sites[place]}"
        if here["state"][0] >= State.WARP_SYNC and here["state"][0] != State.ACTIVEMASK:
            text += f" with the mask 0x{int(here['mask'][0]) & 0xFFFFFFFF:08x}"
            lane = int(here["index"][0]) % LANES
            if not int(here["mask"][0]) >> lane & 1:
                text += f", which leaves out its own lane {lane}"
        yield int(place), text


def _threads(state: LaunchState, records: Any) -> str:
    first = state.thread_at(int(records["index"][0]))
    more = f" and {len(records) - 1} more" if len(records) > 1 else ""
    return f"thread {first}{more} wait{'s' * (not more)}"


def _mixed_kinds(state: LaunchState, name: str) -> IradError:
    groups = list(_waiting(state))
    site = state.lowered.sites[groups[0][0]]
    return placed(
        BarrierError(
            f"threads of block {state.current_block} of {name} wait at barriers of different kinds",
            "make all threads of the block reach the same barrier",
            "a barrier with a predicate combines the predicates of all threads",
            location=site.location,
            detail="\n".join(text for _, text in groups[:_SHOWN]),
        ),
        site,
    )


def _mixed_places(state: LaunchState, name: str) -> IradError:
    launch, sites = state.launch, state.lowered.sites
    one, other = sites[launch.mixed_other], sites[launch.mixed_site]
    return placed(
        BarrierError(
            f"threads of block {state.current_block} of {name} wait at different barriers",
            "move the barrier out of the branch, so that all threads reach the same one",
            "on a GPU, threads that wait at different barriers may go on before the others have arrived",
            location=one.location,
            detail=f"thread {state.thread_at(launch.mixed_thread)} waits at the {other}",
        ),
        one,
    )
