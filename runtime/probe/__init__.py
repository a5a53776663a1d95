"""Runs inside workers of an instrumented run: standard library, torch, numpy and cuda-bindings, nothing of the analyzer."""
