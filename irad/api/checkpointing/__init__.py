"""The parts of checkpointed functions; `irad.api.checkpoint` has the public functions."""
