"""What checkpointed functions are made of; `irad.api.checkpoint` has the public functions."""
