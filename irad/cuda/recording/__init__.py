"""The tape of launches: operations of host code on a device, and their reversal."""
