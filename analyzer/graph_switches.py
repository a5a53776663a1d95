"""How a serving checkout turns its graphs off: the arguments that it declares itself, never a list of releases."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass

from sgl_graph.analyzer.errors import CommandInvalid
from sgl_graph.analyzer.serving_command import ServingCommand, options

_GENERAL = "--disable-cuda-graph"
_PHASE = "--cuda-graph-backend-"
_PER_PHASE = (f"{_PHASE}decode", f"{_PHASE}prefill")
_CONFIG = "--cuda-graph-config"
_PIECEWISE_OFF = "--disable-piecewise-cuda-graph"


@dataclass(frozen=True)
class EagerCommand:
    """The command of the eager launch, and what was taken out and put in."""

    command: ServingCommand
    removed: tuple[str, ...]
    added: tuple[str, ...]

    def why(self) -> str:
        """One sentence for the plan."""
        text = f"graphs off by {' '.join(self.added)}"
        return f"{text}, without {' '.join(self.removed)}" if self.removed else text


def declared_flags(sources: Iterable[str]) -> frozenset[str]:
    """Options that argument modules declare: literals given to an adder of arguments, and annotated fields.

    Args:
        sources: Text of the modules that declare the server's arguments; one that does not parse declares nothing.
    """
    found: set[str] = set()
    for text in sources:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                values = (arg.value for arg in node.args if isinstance(arg, ast.Constant))
                found.update(v for v in values if isinstance(v, str) and v.startswith("--"))
            elif isinstance(node, ast.ClassDef):
                fields = (item for item in node.body if isinstance(item, ast.AnnAssign))
                for item in fields:
                    if isinstance(item.target, ast.Name) and "no_cli=True" not in ast.unparse(item.annotation):
                        found.add("--" + item.target.id.replace("_", "-"))
    return frozenset(found)


def eager_command(command: ServingCommand, declared: frozenset[str]) -> EagerCommand:
    """The same command with every graph turned off.

    Explicit selectors of graphs in the command are taken out first: in the releases that have them they win over the
    general switch.

    Args:
        command: As the user serves.
        declared: What the checkout declares.

    Raises:
        CommandInvalid: The checkout declares no way to turn graphs off.
    """
    removed = tuple(sorted({name for name, _ in options(command.arguments) if _selects_graphs(name)}))
    if all(flag in declared for flag in _PER_PHASE):
        phases = sorted(flag for flag in declared if flag.startswith(_PHASE))
        added = [part for flag in phases for part in (flag, "disabled")]
    elif _GENERAL in declared:
        added = [_GENERAL, *([_PIECEWISE_OFF] if _PIECEWISE_OFF in declared else [])]
    elif _CONFIG in declared:
        off = {phase: {"backend": "disabled"} for phase in ("decode", "prefill")}
        added = [_CONFIG, json.dumps(off, separators=(",", ":"))]
    else:
        raise CommandInvalid(
            "this checkout declares no argument that turns its graphs off: there is no eager launch",
            hint="run with --skip-eager; the numerical verdict is then NOT-RUN",
        )
    stripped = command.without(*removed) if removed else command
    return EagerCommand(stripped.with_arguments(added), removed, tuple(added))


def enabling_variables(env: Iterable[str]) -> list[str]:
    """Names of environment variables that ask for more graphs: the eager launch does without them."""
    return sorted(name for name in env if "CUDA_GRAPH" in name and "ENABLE" in name and "DISABLE" not in name)


def _selects_graphs(flag: str) -> bool:
    """Whether an option chooses whether or how graphs are made, rather than their sizes."""
    if not flag.startswith("--") or "cuda-graph" not in flag:
        return False
    chooses = ("--cuda-graph-backend", _CONFIG, "--enable-", "--enforce-", "--disable-decode", "--disable-prefill")
    return flag.startswith(chooses) and "profil" not in flag and "padding" not in flag
