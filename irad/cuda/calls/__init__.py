"""The call of a kernel and of its derivative: arguments, annotations, memory."""
