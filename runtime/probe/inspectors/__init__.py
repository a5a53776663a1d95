"""Inspectors: what watches one kind of device. `cuda` is the product's; a run may name any other module."""
