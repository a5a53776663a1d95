"""What watching costs a real SGLang: one serving command ordinary and with parts of the probe, measured in turn on a quiet GPU.

usage: python3 tests/gpu/serving_cost.py --bundle DIR --out DIR [--model 8b|wide|tiny] [--limit SECONDS] [--rounds N] [--map FILE]
       [--variants NAME...] [--copies N]

Models: `8b` has the shape of Llama 3.1 8B and dummy weights; `wide` and `tiny` are far smaller, so that the host's part of a step,
which is where a probe costs, is as large as it can be.

Variants: `ordinary` has no probe; `hooks` sees captures and replays, reads labels and writes receipts; `no-stacks` inspects
graphs and follows the allocator besides; `whole` gathers stacks with the allocator's events, as `sgl-graph run` does. All
servers start at the same moment and are up together; all but the one that is measured are stopped (SIGSTOP), for an idle scheduler spins and
takes a core from its neighbours. Rounds go through the servers in alternating order, so that drift of the host falls on each. Processes of the
same command differ by some per cent: --copies N starts N servers of each variant. OUT/cost-MODEL.json holds every measurement, OUT/cost-MODEL.md the
table.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from cost_table import Measured, captured_seconds, inspected, table, variant_of
from run_sglang import COMMON, REPOSITORY, SMALL_PREFILL, WORK, unpack

#: Probe settings of each variant; None is no probe.
VARIANTS: dict[str, dict[str, bool] | None] = {
    "ordinary": None,
    "hooks": {"count_only": True},
    "no-stacks": {"stacks": False},
    "whole": {},
}
#: Model: what makes it, and the server's further flags. Four servers of `8b` share the device, so each takes what is left.
MODELS = {
    "8b": ("llama_8b", "--load-format dummy --mem-fraction-static 0.9"),
    "tiny": ("llama", ""),
    "wide": ("wide_llama", ""),
}
#: Seconds of each measurement.
DECODE_SECONDS, PREFILL_SECONDS = 6.0, 2.5
_ANSWER, _PROMPT, _PREFILL = 1000, 8, 1500
_BEGAN = time.monotonic()
_seeds = itertools.count()


class Serving:
    """One variant's server."""

    def __init__(self, name: str, model: Path, flags: str, number: int, site: Path, map_bytes: bytes | None) -> None:
        self.name, self.port = name, 25000 + 10 * number
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = WORK / "cost" / f"{name.replace('/', '-')}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": str(site),
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "PYTHONUNBUFFERED": "1",
            "PATH": os.pathsep.join(
                [os.environ.get("PATH", ""), os.path.dirname(sys.executable), "/usr/local/cuda/bin"]
            ),
        }
        self.injection = injected(name, WORK / "cost", map_bytes)
        if self.injection is not None:
            environment = self.injection.environment(environment)
        self.began = time.monotonic()
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                serving_command(model, self.port, 27000 + 10 * number, flags),
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def healthy(self) -> bool:
        """Whether it serves by now.

        Raises:
            SystemExit: It ended.
        """
        if self.process.poll() is not None:
            sys.exit(f"{self.name} did not start:\n" + self.log.read_text(errors="replace")[-3000:])
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=2):
                return True
        except OSError:
            return False

    def generate(self, prompts: list[list[int]], tokens: int) -> int:
        """Send one batch; how many tokens came."""
        sampling = {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}
        body = json.dumps({"input_ids": prompts, "sampling_params": sampling}).encode()
        request = urllib.request.Request(f"{self.url}/generate", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return sum(len(item["output_ids"]) for item in json.loads(answer.read()))

    def decode(self, batch: int, seconds: float, calls: list[float]) -> float:
        """Tokens a second of whole answers to a batch of short prompts."""
        return rate(lambda: self.generate(prompts(batch, _PROMPT), _ANSWER), seconds, calls)

    def prefill(self, seconds: float) -> float:
        """Prompt tokens a second, one new token each; no prompt begins like another."""

        def send() -> int:
            self.generate(prompts(4, _PREFILL), 1)
            return 4 * _PREFILL

        return rate(send, seconds)

    def flush(self) -> None:
        """Empty the prefix cache, so that every measurement begins alike."""
        for _ in range(50):
            try:
                with urllib.request.urlopen(urllib.request.Request(f"{self.url}/flush_cache", b""), timeout=30):
                    return
            except OSError:
                time.sleep(0.1)  # the last answer is not yet accounted for

    def pause(self) -> None:
        """Stop its whole group until `go_on`."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run again, and settle."""
        os.killpg(self.process.pid, signal.SIGCONT)
        time.sleep(0.3)

    def family(self) -> list[Any]:
        """Its processes."""
        import psutil

        return [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]

    def host_memory(self) -> dict[str, float]:
        """Resident and unshared MiB of all its processes."""
        full = [member.memory_full_info() for member in self.family()]
        return {"resident": sum(m.rss for m in full) / 2**20, "unshared": sum(m.uss for m in full) / 2**20}

    def device_memory(self) -> float | None:
        """MiB of the first GPU that its processes hold, where the driver says so."""
        used = device_use_by_process()
        own = [used[member.pid] for member in self.family() if member.pid in used]
        return sum(own) / 2**20 if own else None

    def stop(self) -> None:
        """End its whole group, once its receipts are closed."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGCONT)
        if self.injection is not None:
            self.injection.seal()
            time.sleep(0.5)
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(8)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def injected(name: str, folder: Path, map_bytes: bytes | None) -> Any:
    """The injection of a variant, or None."""
    settings = VARIANTS[variant_of(name)]
    if settings is None:
        return None
    import shutil

    from sgl_graph.runtime.inject import ProbeSettings, write_injection

    target = folder / name.replace("/", "-")
    shutil.rmtree(target, ignore_errors=True)
    chosen = ProbeSettings(run="cost", launch="instrumented", receipts=target / "receipts", **settings)
    return write_injection(target / "inject", chosen, map_bytes)


def serving_command(model: Path, port: int, nccl_port: int, flags: str) -> list[str]:
    """The command that every variant serves; `flags` come last and win."""
    ports = ["--port", str(port), "--nccl-port", str(nccl_port)]
    head = ["python3", "-m", "sglang.launch_server", "--model-path", str(model)]
    return [*head, *COMMON.split(), *SMALL_PREFILL.split(), *ports, *flags.split()]


def prompts(count: int, length: int) -> list[list[int]]:
    """Token ids that were not sent before; already the first two differ between any two prompts near in time."""
    seed = next(_seeds)
    return [
        [3 + (seed * count + i) % 1000, *(3 + (seed * 31 + i * 17 + j * 7) % 1000 for j in range(length - 1))]
        for i in range(count)
    ]


def rate(send: Callable[[], int], seconds: float, calls: list[float] | None = None) -> float:
    """Units a second of whole calls until the time is over; `calls` takes the rate of each."""
    total, last = 0, 0.0
    began = time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds:
        units = send()
        total += units
        now = time.perf_counter() - began
        if calls is not None:
            calls.append(round(units / (now - last), 1))
        last = now
    return total / spent


def device_use_by_process() -> dict[int, int]:
    """Bytes of the first GPU by process, as far as the driver tells."""
    try:
        import pynvml
    except ImportError:
        return {}
    try:
        pynvml.nvmlInit()
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0))
        return {int(p.pid): int(p.usedGpuMemory) for p in running if p.usedGpuMemory}
    except pynvml.NVMLError:
        return {}


def measure(server: Serving, measured: Measured) -> None:
    """One turn of a variant."""
    calls: dict[str, list[float]] = {"decode-8": [], "decode-1": []}
    turns: dict[str, Callable[[], float]] = {
        "decode-8": lambda: server.decode(8, DECODE_SECONDS, calls["decode-8"]),
        "decode-1": lambda: server.decode(1, DECODE_SECONDS, calls["decode-1"]),
        "prefill": lambda: server.prefill(PREFILL_SECONDS),
    }
    for what, turn in turns.items():
        server.flush()
        value = turn()
        measured.tokens_a_second.setdefault(what, []).append(value)
        if what in calls:
            measured.calls.setdefault(what, []).append(calls[what])
        print(
            f"{time.monotonic() - _BEGAN:4.0f} {server.name}: {what} {value:,.0f} tokens/s {calls.get(what)}",
            flush=True,
        )


def main() -> None:
    """Start, measure in turn, write after every turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "/tmp/sgl-graph-out")))
    parser.add_argument("--model", choices=sorted(MODELS), default="wide")
    parser.add_argument("--limit", type=float, default=240.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--map", type=Path)
    parser.add_argument("--variants", nargs="+", choices=sorted(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--copies", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    site, tool = unpack(args.bundle)
    sys.path[:0] = [str(REPOSITORY / ".typeview"), str(tool)]
    import tiny_models

    maker, flags = MODELS[args.model]
    model = getattr(tiny_models, maker)(WORK / maker)
    map_bytes = args.map.read_bytes() if args.map and args.map.exists() else None
    numbered = [f"/{number}" if number > 1 else "" for number in range(1, args.copies + 1)]
    found = {name + number: Measured() for number in numbered for name in args.variants}
    servers: dict[str, Serving] = {}
    numbers = {name: number for number, name in enumerate(found)}

    def write() -> None:
        inspection = {
            name: inspected(WORK / "cost" / name.replace("/", "-") / "receipts")
            for name in servers
            if VARIANTS[variant_of(name)] is not None
        }
        body = {name: vars(one) for name, one in found.items()}
        (args.out / f"cost-{args.model}.json").write_text(
            json.dumps(
                {"command": serving_command(model, 0, 0, flags), "variants": body, "inspection": inspection}, indent=1
            )
        )
        (args.out / f"cost-{args.model}.md").write_text(table(args.model, found, inspection))

    try:
        for name in found:
            servers[name] = Serving(name, model, flags, numbers[name], site, map_bytes)
        waiting = dict(servers)
        while waiting:
            if time.monotonic() - _BEGAN > args.limit:
                sys.exit(f"not healthy in time: {', '.join(waiting)}")
            time.sleep(0.1)
            for name in [name for name, server in waiting.items() if server.healthy()]:
                server, one = waiting.pop(name), found[name]
                one.start = round(time.monotonic() - server.began, 2)
                one.capture = captured_seconds(server.log.read_text(errors="replace"))
                print(f"{time.monotonic() - _BEGAN:4.0f} {name}: healthy after {one.start} s, captures {one.capture} s")
        for server in servers.values():
            server.generate(prompts(8, _PROMPT), 64)
            server.prefill(0.1)
        for server in servers.values():
            server.pause()
        slowest = 0.0
        for turn in range(args.rounds):
            began = time.monotonic()
            if turn and began - _BEGAN + slowest > args.limit - 10:
                print(f"{turn} rounds: no time for another", flush=True)
                break
            for name in list(found) if turn % 2 == 0 else list(found)[::-1]:
                servers[name].go_on()
                measure(servers[name], found[name])
                found[name].host_mib = servers[name].host_memory()
                found[name].device_mib = servers[name].device_memory()
                servers[name].pause()
                write()
            slowest = max(slowest, time.monotonic() - began)
    finally:
        for server in servers.values():
            server.stop()
        write()
    print((args.out / f"cost-{args.model}.md").read_text(), flush=True)


if __name__ == "__main__":
    main()
