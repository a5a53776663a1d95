"""The device check by a fake NVML, locks, and a port that somebody else answers."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sgl_graph.analyzer.errors import GpuUnavailable, ServerStartFailed
from sgl_graph.analyzer.serving_command import parse
from sgl_graph.runtime.devices import check_devices, gpu_count, visible_devices
from sgl_graph.runtime.locks import gpu_locks
from sgl_graph.runtime.run import own_gpus
from sgl_graph.runtime.server import Server

GIB = 1 << 30


class FakeNvml:
    """Four GPUs; `busy` maps an index to what is on it."""

    def __init__(self, busy: dict[int, dict[str, Any]] | None = None, *, broken: bool = False) -> None:
        self.busy, self.broken, self.ended = busy or {}, broken, 0

    def nvmlInit(self) -> None:
        if self.broken:
            raise RuntimeError("Driver Not Loaded")

    def nvmlShutdown(self) -> None:
        self.ended += 1

    def nvmlDeviceGetCount(self) -> int:
        return 4

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}aaa"

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return b"H200"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(total=100 * GIB, used=self.busy.get(handle, {}).get("used", GIB // 4))

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        return SimpleNamespace(gpu=self.busy.get(handle, {}).get("utilisation", 0))

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        return [SimpleNamespace(pid=pid) for pid in self.busy.get(handle, {}).get("pids", [])]

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.1"


def command(*arguments: str) -> Any:
    return parse(["python", "-m", "sglang.launch_server", *arguments])


def indices(
    visible: str | None, *arguments: str, busy: dict[int, dict[str, Any]] | None = None, allow: bool = False
) -> Any:
    nvml = FakeNvml(busy)
    found = check_devices(command(*arguments), visible, allow_busy=allow, nvml=nvml)
    assert nvml.ended == 1
    return [gpu.index for gpu in found.gpus]


def test_gpus_follow_the_command_and_what_is_visible() -> None:
    assert indices(None) == [0]
    assert indices(None, "--tp-size", "2") == [0, 1]
    assert indices("2,3", "--tp", "2") == [2, 3]
    assert indices("GPU-3", "--tp", "1") == [3]
    assert indices(None, "--base-gpu-id", "1", "--gpu-id-step", "2", "--tp", "2") == [1, 3]
    assert indices("1,7,2") == [1]


def test_counts_multiply_what_does_not_share() -> None:
    assert gpu_count(command("--tp", "2", "--pp-size", "2", "--dp", "2")) == 8
    assert gpu_count(command("--tp", "4", "--dp", "4", "--enable-dp-attention")) == 4


@pytest.mark.parametrize(("visible", "arguments"), [("", []), ("0", ["--tp", "2"]), (None, ["--tp", "8"]), ("9", [])])
def test_too_few_gpus_are_an_error(visible: str | None, arguments: list[str]) -> None:
    with pytest.raises(GpuUnavailable, match="offers"):
        indices(visible, *arguments)


@pytest.mark.parametrize("state", [{"pids": [7]}, {"used": 20 * GIB}, {"utilisation": 60}])
def test_a_busy_gpu_is_refused_unless_allowed_and_only_if_it_is_meant(state: dict[str, Any]) -> None:
    with pytest.raises(GpuUnavailable, match="busy"):
        indices("1", busy={1: state})
    assert indices("1", busy={1: state}, allow=True) == [1]
    assert indices("0", busy={1: state}) == [0]


def test_a_broken_driver_is_said() -> None:
    with pytest.raises(GpuUnavailable, match="Driver Not Loaded"):
        check_devices(command(), None, allow_busy=False, nvml=FakeNvml(broken=True))


def test_the_first_environment_that_sets_visible_devices_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert visible_devices({"CUDA_VISIBLE_DEVICES": "1"}, {"CUDA_VISIBLE_DEVICES": "2"}) == "1"
    assert visible_devices({}, {"CUDA_VISIBLE_DEVICES": "2"}) == "2"
    assert visible_devices({}, {}) == "3"


def test_two_runs_do_not_share_a_gpu() -> None:
    with gpu_locks(["GPU-test-a", "GPU-test-b"]):
        with pytest.raises(GpuUnavailable, match="another sgl-graph run"), gpu_locks(["GPU-test-b"]):
            pass
        with gpu_locks(["GPU-test-c"]):
            pass
    with gpu_locks(["GPU-test-b"]):
        pass


def test_runs_that_take_busy_gpus_share_them() -> None:
    found = check_devices(command(), None, allow_busy=True, nvml=FakeNvml())
    with gpu_locks(own_gpus(found, allow_busy=True)), gpu_locks(own_gpus(found, allow_busy=True)):
        pass
    with (
        gpu_locks(own_gpus(found, allow_busy=False)),
        pytest.raises(GpuUnavailable, match="another sgl-graph run"),
        gpu_locks(own_gpus(found, allow_busy=False)),
    ):
        pass


def test_a_healthy_answer_of_another_process_does_not_count(tmp_path: Path) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    other = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        server = Server(
            ["sleep", "60"],
            {"PATH": "/usr/bin:/bin"},
            log=tmp_path / "log",
            host="127.0.0.1",
            port=other.server_address[1],
            mark="test-owner",
            stop_grace=1.0,
        )
        with server, pytest.raises(ServerStartFailed, match="answered by another process"):
            server.wait_healthy(5.0, print)
        assert not server.alive()
    finally:
        other.shutdown()
        other.server_close()
