"""Runs inside serving workers; imports the standard library, torch, numpy and cuda-bindings only."""
