"""A machine that stores numbers with the most significant byte first."""

from irad.backend.machine import check_machine


def wrong():
    check_machine(byte_order="big")


def mended():
    check_machine()
