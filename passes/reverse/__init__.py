"""The reverse sweep: the adjoint of every instruction, in reversed control flow."""
