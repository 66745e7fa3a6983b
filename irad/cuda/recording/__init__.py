"""The tape of launches: what host code does on a device, and how it is reversed."""
