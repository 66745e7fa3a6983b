"""Users' declarations about their functions: rules, and that there is no derivative."""

from irad.frontend.custom import pickled_rules  # noqa: F401 - it tells pickle of rules, which any module here declares
