"""A program in which tables, runners and their worker decide in many ways which graph runs, and what was found in it."""

from __future__ import annotations

from .programs import search

TABLES = """
    import torch

    class Whole:
        def __init__(self, runner):
            self._kept = {}

        def record(self, key, fn):
            thing = torch.cuda.CUDAGraph()
            with torch.cuda.graph(thing):
                fn()
            self._kept[key] = thing

        def holds(self, batch, key):
            return key in self._kept

        def again(self, key, batch):
            self._kept[key].replay()

        def forget(self):
            self._kept.clear()

        def size(self):
            return len(self._kept.keys())

    class Halves(Whole):
        def record(self, key, fn):
            super().record(key, fn)
"""
RUNNERS = """
    import bisect
    import torch
    from sglang.srt import dressing
    from sglang.srt.choosing import table_for

    def sizes_for(model):
        return [1, 2, 4]

    def prefers_plain(model):
        return model.plain

    class Loop:
        def __init__(self, model):
            self.sizes = sizes_for(model)
            self.plain = prefers_plain(model)
            self.table = table_for(self)
            self.mark = torch.cuda.Event(external=True)
            self.note = torch.cuda.Event()
            self.fill()

        def fill(self):
            for size in self.sizes:
                with dressing.dressed(size) as fn:
                    self.one(size, fn)

        def one(self, size, fn):
            def body():
                self.mark.record()
                self.note.record()
                return fn()
            self.table.record(self.name_of(size), body)

        def name_of(self, size, kind=None):
            return (size, kind)

        def kind_of(self, batch):
            if self.plain:
                return None
            return "rich"

        def pad(self, n):
            return self.sizes[bisect.bisect_left(self.sizes, n)]

        def may(self, batch):
            fits = self.table.holds(batch, self.name_of(len(batch))) if batch else False
            return fits and self.small(batch)

        def small(self, batch):
            return len(batch) < 9

        def step(self, batch):
            size = self.pad(len(batch))
            return self.table.again(self.name_of(size, self.kind_of(batch)), batch)

    class Wide(Loop):
        def may(self, batch):
            return len(batch) > 1

        def name_of(self, size, kind=None):
            return size
"""
CHOOSING = """
    from sglang.srt.tables import Whole, Halves

    def table_for(runner):
        if runner.half:
            return Halves(runner)
        return Whole(runner)

    def whole_for(runner):
        return Whole(runner)

    class Other: ...

    def other_for(runner):
        return Other() if runner else Other()
"""
DRESSING = """
    from contextlib import contextmanager

    @contextmanager
    def dressed(size):
        yield lambda: size

    @contextmanager
    def bare(size):
        yield lambda: 0
"""
WORKER = """
    from collections import defaultdict
    from sglang.srt.runners import Loop, Wide
    from sglang.srt.choosing import Other

    PLAIN = {"a": Other, "b": Other}

    def allowed(runner, batch):
        return True

    class Worker:
        def __init__(self, model, kind):
            self.model = model
            rows = defaultdict(lambda: Loop, {"wide": Wide})
            self.runner = rows[kind](model)

        def forward(self, batch):
            ready = bool(batch.ready() and self.runner and self.runner.may(batch))
            if ready and allowed(self.runner, batch):
                return self.runner.step(batch)
            return self.model(batch)
"""
PROGRAM = {"tables": TABLES, "runners": RUNNERS, "choosing": CHOOSING, "dressing": DRESSING, "worker": WORKER}


def names_of(form: str, **changes: str) -> set[str]:
    """Qualified names of the sites of one form."""
    found = search(**{**PROGRAM, **changes}).sites
    return {site.scope.public_name.partition(":")[2] for site in found if site.form == form}


def lines_of(form: str, **changes: str) -> set[tuple[str, str]]:
    """Function and callee (or what stands for it) of the sites of one form."""
    found = search(**{**PROGRAM, **changes}).sites
    return {(site.scope.public_name.partition(":")[2], site.api) for site in found if site.form == form}
