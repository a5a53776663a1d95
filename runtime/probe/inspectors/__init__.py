"""Inspectors: what watches one kind of device. `cuda` is the product's; a run may name any other module."""

#: Modules of cuda-bindings that offer functions on graphs: runtime and driver, under their present and their former names.
LAUNCH_MODULES = ("cuda.bindings.runtime", "cuda.bindings.driver", "cuda.cudart", "cuda.cuda")
