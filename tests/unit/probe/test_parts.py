"""Patches, post-import callbacks, segments, placement and the doctor's judgement."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from sgl_graph.runtime.doctor import Check, examine, worst
from sgl_graph.runtime.probe.imports import PostImport
from sgl_graph.runtime.probe.inspectors.cuda_atomic import unsplit
from sgl_graph.runtime.probe.inspectors.cuda_segments import MemoryMap
from sgl_graph.runtime.probe.inspectors.cuda_workspaces import clearing, is_workspace
from sgl_graph.runtime.probe.patching import Patches


class Base:
    def f(self) -> str:
        return "base"


class Derived(Base):
    pass


def test_patches_restore_inherited_and_own_attributes() -> None:
    patches = Patches()
    assert patches.replace(Derived, "f", lambda original: lambda self: original(self) + "!")
    assert not patches.replace(Derived, "f", lambda original: original)
    assert not patches.replace(Derived, "missing", lambda original: original)
    assert Derived().f() == "base!"
    patches.remove()
    assert Derived().f() == "base" and "f" not in vars(Derived)


def test_patches_leave_what_somebody_replaced_since() -> None:
    owner = SimpleNamespace(f=1)
    patches = Patches()
    patches.set(owner, "f", 2)
    owner.f = 3
    patches.remove()
    assert owner.f == 3


def test_the_sweep_finds_names_bound_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def original() -> int:
        return 1

    user = ModuleType("a_user")
    user.bound = original  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_user", user)
    patches = Patches()
    patches.sweep(original, replacement := (lambda: 2))
    assert user.bound is replacement
    patches.remove()
    assert user.bound is original


def test_a_module_is_seen_right_after_its_import_and_looks_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    imports, seen = PostImport(), []
    imports.install()
    imports.install()
    try:
        imports.watch("late_module", lambda module: seen.append(module.value))
        assert seen == []
        import late_module  # type: ignore[import-not-found]

        assert seen == [1]
        assert type(late_module.__spec__.loader).__name__ == "SourceFileLoader"
        imports.watch("late_module", lambda module: seen.append(2))
        assert seen == [1, 2]
    finally:
        imports.remove()
        sys.modules.pop("late_module", None)
    assert imports not in sys.meta_path


@pytest.mark.parametrize("before", ["looked for", "failed"])
def test_a_module_is_seen_although_it_was_looked_for_or_failed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Programs ask whether torch is installed before they import it, and try again what failed."""
    (tmp_path / "asked_module.py").write_text("import os\nif os.environ.get('ASKED_FAILS'): raise ValueError\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    imports, seen = PostImport(), []
    imports.install()
    try:
        imports.watch("asked_module", lambda module: seen.append(module.__name__))
        if before == "looked for":
            spec = importlib.util.find_spec("asked_module")
            assert spec is not None and spec.loader is not None
            assert spec.loader.get_filename("asked_module") == spec.origin  # type: ignore[attr-defined]
            assert copy.copy(spec.loader) is not None
        else:
            monkeypatch.setenv("ASKED_FAILS", "1")
            with pytest.raises(ValueError):
                importlib.import_module("asked_module")
            monkeypatch.delenv("ASKED_FAILS")
        assert seen == []
        for _ in range(2):
            importlib.import_module("asked_module")
            assert seen == ["asked_module"]
    finally:
        imports.remove()
        sys.modules.pop("asked_module", None)


def test_overlapping_segments_give_the_inner_one_and_then_the_outer() -> None:
    def segment(address: int, size: int, pool: tuple[int, int]) -> dict[str, object]:
        block = {"address": address, "size": size, "state": "active_allocated"}
        return {"address": address, "total_size": size, "segment_pool_id": pool, "device": 0, "blocks": [block]}

    memory = MemoryMap([segment(1000, 1000, (0, 0)), segment(1200, 100, (0, 1)), segment(5000, 10, (0, 0))])
    pools = [(s.pool if s else None) for s in map(memory.segment, (999, 1100, 1250, 1300, 1999, 2000, 5009, 5010))]
    assert pools == [None, (0, 0), (0, 1), (0, 0), (0, 0), None, (0, 0), None]


def test_unsplit_hides_the_lazy_module_only_meanwhile() -> None:
    torch = ModuleType("torch")
    seen = []
    unsplit([partial(lambda: seen.append(hasattr(torch._inductor, "codecache")))], torch)
    assert seen == [False] and "_inductor" not in vars(torch)
    torch._inductor = real = object()  # type: ignore[attr-defined]
    unsplit([partial(int)], torch)
    assert torch._inductor is real
    with pytest.raises(ZeroDivisionError):
        unsplit([partial(divmod, 1, 0)], torch)
    assert torch._inductor is real


def test_the_doctor_names_a_remedy_for_what_fails(tmp_path: Path) -> None:
    missing = examine(str(tmp_path / "python"))
    assert worst(missing) == "failure"
    assert all(check.remedy for check in missing if check.status == "failure")
    here = {check.name: check for check in examine(sys.executable)}
    assert here["injection"].status == "ok"
    assert worst([Check("a", "ok", ""), Check("b", "warning", "", "do")]) == "warning"


def test_what_is_freed_by_clearing_workspaces_is_told_by_its_stack() -> None:
    def stack() -> list[dict[str, Any]]:
        found, frame = [], sys._getframe()
        while frame is not None:
            found.append({"filename": frame.f_code.co_filename, "name": frame.f_code.co_name})
            frame = frame.f_back  # type: ignore[assignment]
        return found

    assert is_workspace(clearing(stack)())
    assert not is_workspace(stack())
    assert not is_workspace([])
