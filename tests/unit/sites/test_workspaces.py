"""Workspaces that built objects keep: who holds one, and whose memory it is."""

from __future__ import annotations

from pathlib import Path

from sgl_graph.analyzer.static.paths.workspaces import workspaces_of

from tests.unit.link.programs import program

PROGRAM = """
        # file: main.py
        import torch
        import fusion

        def buffer_of(name, make):
            return make()

        class Plain:
            def __init__(self, fresh):
                shared = buffer_of("plain", lambda: torch.empty(8, device="cuda"))
                if fresh:
                    self.workspace_buffer = torch.empty(8, device="cuda")
                else:
                    self.workspace_buffer = shared

        class Child(Plain):
            pass

        class Library:
            def __init__(self):
                self.workspace = None

            def prepare(self):
                self.workspace = fusion.create_workspace(8)
                self.workspace_size = fusion.size_of(self.workspace)

        class Sized:
            def __init__(self, workspace):
                self.workspace_size = fusion.size_of(8)
                self.workspace = workspace

        class Idle:
            def __init__(self):
                self.workspace = torch.zeros(8)

        def run():
            Child(False)
            Library().prepare()
            Sized(8)
"""


def test_who_keeps_a_workspace_of_whose_memory(tmp_path: Path) -> None:
    linked = program(tmp_path, PROGRAM, kept=("torch", "fusion")).linked
    built = {"main:Child": "yes", "main:Library": "unresolved", "main:Sized": "yes"}
    kept = list(workspaces_of(linked, lambda name: built.get(name, "no")))  # type: ignore[arg-type,return-value]
    assert [name for name, _ in kept] == ["main:Child", "main:Library"]
    found = [workspace for _, workspace in kept]
    text = (tmp_path / "main.py").read_text().split("\n")
    assert [(w.class_, w.memory, w.reachable, text[w.line - 1].strip()) for w in found] == [
        ("Child", "caching allocator", "unresolved", "self.workspace_buffer = shared"),
        (
            "Library",
            "made by fusion.create_workspace, whose allocator is not known",
            "unresolved",
            "self.workspace = fusion.create_workspace(8)",
        ),
    ]
    assert {w.kind for w in found} == {"workspace"}
