"""A running miniserve, and the requests that tests send to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).parents[3] / "fixtures"
MINISERVE = FIXTURES / "miniserve"

Answers = list[tuple[list[int], list[float]]]


class Server:
    """One launched server in a process group of its own."""

    def __init__(self, args: Sequence[str], fault: str, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = log
        self.started = time.monotonic()
        path = os.pathsep.join([str(MINISERVE / "python"), str(FIXTURES / "emulated")])
        command = [sys.executable, "-m", "sglang.launch_server", "--model-path", "models/tiny-moe", *args]
        with log.open("w") as stream:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port)],
                stdout=stream,
                stderr=stream,
                cwd=MINISERVE,
                env={**os.environ, "PYTHONPATH": path, "MINISERVE_FAULT": fault, "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
        self.wait_healthy()

    def wait_healthy(self) -> None:
        while time.monotonic() - self.started < 90:
            if self.process.poll() is not None:
                break
            try:
                self.get("/health")
            except OSError:
                time.sleep(0.02)
            else:
                return
        self.stop()
        raise AssertionError(self.log.read_text())

    def get(self, route: str) -> Any:
        return self._call(route, None)

    def generate(self, body: Mapping[str, Any]) -> Any:
        return self._call("/generate", body)

    def _call(self, route: str, body: Mapping[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{route}", data, timeout=90) as answer:
            return json.loads(answer.read() or b"null")

    def processes(self) -> list[int]:
        """The living processes of its group, itself included."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    fields = Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()
                except OSError:
                    continue
                if int(fields[2]) == self.process.pid and fields[0] != "Z":
                    found.append(int(entry))
        return found

    def stop(self) -> int:
        """Ask it to stop, insist after a while, and return its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                pass
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        return self.process.wait(30)


Start = Callable[..., Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Launches servers, and stops whatever a test left running."""
    servers: list[Server] = []

    def launch(*args: str, fault: str = "") -> Server:
        server = Server(args, fault, tmp_path / f"server{len(servers)}.log")
        servers.append(server)
        return server

    yield launch
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def faults() -> dict[str, Any]:
    """What faults.json states."""
    stated: dict[str, Any] = json.loads((MINISERVE / "faults.json").read_text())
    return stated


def _answers(server: Server, adapters: bool) -> Answers:
    items: list[Any] = []
    for count in (1, 2, 4):
        for adapter in (None, "a", "b") if adapters else (None,):
            prompts = [[(7 * i + 3 * j + count) % 120 + 3 for j in range(4 + i)] for i in range(count)]
            items += server.generate(_body(prompts, adapter))
    if adapters:
        items += server.generate(_body([[5, 6, 7, 8]] * 3, ["a", None, "b"]))
    items += server.generate(_body([[(5 * j) % 120 + 3 for j in range(length)] for length in (40, 25)], None))
    return [(item["output_ids"], [row[0] for row in item["meta_info"]["output_token_logprobs"]]) for item in items]


def _body(prompts: list[list[int]], adapter: Any) -> dict[str, Any]:
    sampling = {"temperature": 0, "max_new_tokens": 8, "ignore_eos": True}
    body = {"input_ids": prompts, "sampling_params": sampling, "return_logprob": True}
    return {**body, "lora_path": adapter} if adapter is not None else body


@pytest.fixture(scope="session")
def answers() -> Callable[[Server, bool], Answers]:
    """Sends the same requests to a server: single, batched, with adapters or without, short and long."""
    return _answers


@pytest.fixture(scope="session")
def http_error() -> type[Exception]:
    """What a refused request raises."""
    return urllib.error.HTTPError
