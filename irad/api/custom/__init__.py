"""Users' declarations about their functions: rules, and that there is no derivative."""
