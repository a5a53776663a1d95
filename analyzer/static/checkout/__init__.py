"""A checkout as modules and texts: what may be read, and what was asked of it."""
