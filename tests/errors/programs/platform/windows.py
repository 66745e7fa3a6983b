"""A machine that irad does not run on."""

from irad.backend.machine import check_machine


def wrong():
    check_machine(system="win32")


def mended():
    check_machine(system="linux")
