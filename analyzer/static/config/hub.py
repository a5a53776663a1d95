"""The model hub as resolution code meets it: never asked, and a model is taken to come with the files that make it one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.config.possibilities import deps_of, single, taint, unknown
from sgl_graph.analyzer.static.config.program import Instance
from sgl_graph.analyzer.static.config.registry import CONSTANTS, native
from sgl_graph.analyzer.static.config.values import External, ListV, Value

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.calls import Calls

_API = "huggingface_hub.HfApi"


@native(_API)
def _api(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return Instance(External(_API))


@native(f"{_API}().repo_info", f"{_API}().model_info", "huggingface_hub.model_info", "huggingface_hub.repo_info")
def _repo_info(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    files = [Instance(External("huggingface_hub.RepoSibling"), {"rfilename": "config.json"})]
    return Instance(External("huggingface_hub.ModelInfo"), {"siblings": ListV(list(files))}, frozenset({"model"}))


@native(f"{_API}().file_exists", "huggingface_hub.file_exists")
def _file_exists(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    name = single(keywords.get("filename", arguments[-1] if arguments else None))
    return True if name == "config.json" else taint(False, frozenset({"disk"}) | deps_of(name))


CONSTANTS["huggingface_hub.constants.HF_HUB_OFFLINE"] = False


@native(
    "huggingface_hub.hf_hub_download", "huggingface_hub.snapshot_download", "transformers.utils.cached_file",
    "transformers.utils.hub.cached_file", "requests.get", "requests.head", "urllib.request.urlopen", "httpx.get",
)  # fmt: skip
def _download(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    raise machine.fail("OSError", "nothing is downloaded to answer a question")


@native("builtins.open")
def _open(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    path = single(arguments[0]) if arguments else None
    if isinstance(path, str) and single(machine.facts.path_is(path, ("file",))) is False:
        raise machine.fail("FileNotFoundError", path)
    return unknown(["disk"], machine.place())
