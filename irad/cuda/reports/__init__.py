"""What is found out about the derivative of a kernel: its tape, measured."""
