"""What is found out about the derivative of a kernel, for users who ask."""
