"""Programs that capture graphs, on which several modules of tests stand; each is the text of one module of a checkout."""

from __future__ import annotations

#: A table of whole graphs, each under the key that it is captured with.
TABLE = """
    import torch

    class Table:
        def __init__(self):
            self.kept = {}

        def record(self, key, fn):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                fn()
            self.kept[key] = graph

        def again(self, key):
            self.kept[key].replay()
"""

#: What tables are asked for, and nothing that captures.
BASE = """
    from abc import ABC, abstractmethod

    class Table(ABC):
        @abstractmethod
        def session(self, stream): ...

        @abstractmethod
        def record(self, key, fn): ...

        @abstractmethod
        def again(self, key, batch): ...
"""

#: A table of whole graphs on `BASE`, in module `base`: with a session, a pool, and the device's module that its owner knows.
TABLE_OF_BASE = """
    import torch
    from contextlib import contextmanager
    from sglang.srt.base import Table

    class Whole(Table):
        def __init__(self, owner):
            self._kept = {}
            self._pool = None
            self._device = owner.device_module

        @contextmanager
        def session(self, stream):
            self._pool = self._device.graph_pool_handle()
            self._stream = stream
            yield

        def record(self, key, fn):
            thing = torch.cuda.CUDAGraph()
            with self._device.graph(thing, pool=self._pool):
                fn()
            self._kept[key] = thing

        def again(self, key, batch):
            self._kept[key].replay()
"""

#: A graph in segments, what records it, the wrapper that splits it where it is called, and a table of such graphs.
SEGMENTS = """
    import contextvars
    import torch

    current: contextvars.ContextVar["Recording | None"] = contextvars.ContextVar("current", default=None)

    def split(fn):
        def wrapper(*args):
            recording = current.get()
            if recording is None:
                return fn(*args)
            recording.finish()
            out = fn(*args)
            recording.whole.between.append(lambda: fn(*args))
            recording.start()
            return out
        return wrapper

    class Segments:
        def __init__(self):
            self.parts = []
            self.between = []

        def run_all(self):
            for i, part in enumerate(self.parts):
                part.replay()
                if i < len(self.between):
                    self.between[i]()

    class Recording:
        def __init__(self, whole: Segments, pool=None):
            self.whole = whole
            self.pool = pool

        def __enter__(self):
            self.start()
            return self

        def __exit__(self, *args):
            self.finish()

        def start(self):
            graph = torch.cuda.CUDAGraph()
            graph.capture_begin(pool=self.pool)
            self.open = graph

        def finish(self):
            self.open.capture_end()
            self.whole.parts.append(self.open)

    @split
    def eager_part(x):
        return x

    class Table:
        def __init__(self):
            self.kept = {}

        def record(self, key, fn):
            whole = Segments()
            with Recording(whole):
                fn()
            self.kept[key] = whole

        def again(self, key):
            self.kept[key].run_all()
"""
