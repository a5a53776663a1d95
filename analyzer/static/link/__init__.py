"""Linking: an abstract interpreter over facts that yields the call graph of one configuration."""
