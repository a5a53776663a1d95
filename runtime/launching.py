"""One launch of a plan: start, send its sets, seal the receipts, stop; what happened becomes an outcome."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue

import psutil
from sgl_graph.analyzer.errors import SglGraphError, WorkerLost
from sgl_graph.analyzer.graph_switches import enabling_variables
from sgl_graph.analyzer.reconcile.coverage import satisfies
from sgl_graph.analyzer.reconcile.observation import Window, WorkerObservation
from sgl_graph.analyzer.records.archive import RECEIPTS
from sgl_graph.analyzer.records.ledger import LaunchOutcome, SetWindow
from sgl_graph.analyzer.records.outputs import ObservedBatches, OutputSet, RequestOutput, set_digest
from sgl_graph.analyzer.records.plan import PlannedLaunch, RequestSet
from sgl_graph.analyzer.server_log import batch_sizes
from sgl_graph.runtime.archive import RunArchive
from sgl_graph.runtime.client import RequestFailed, RequestRefused, wait_idle
from sgl_graph.runtime.evidence import OUTCOME, OUTPUTS_SUFFIX, SERVER_INFO, observed
from sgl_graph.runtime.injection import Injection, Injector
from sgl_graph.runtime.options import RunOptions
from sgl_graph.runtime.planning import Prepared
from sgl_graph.runtime.processes import Watchdog
from sgl_graph.runtime.server import Server

Say = Callable[[str], None]
#: How long a request may go on after one of the server's processes vanished.
_LOST_GRACE = 10.0


@dataclass
class Launcher:
    """Runs the launches of one plan."""

    options: RunOptions
    prepared: Prepared
    archive: RunArchive
    injector: Injector | None
    watchdog: Watchdog
    say: Say
    _windows: list[SetWindow] = field(default_factory=list)
    #: How a server of this run refused log-probabilities; none are asked for since.
    _plain: str | None = None

    def run(self, launch: PlannedLaunch) -> LaunchOutcome:
        """Carry out a launch; what a host can do wrong becomes a failed outcome, an interruption goes on."""
        self.say(f"{launch.name}: starting ({launch.why})")
        outcome = LaunchOutcome(state="failed", reason="interrupted")
        self._windows = []
        try:
            outcome = self._carry_out(launch)
        except SglGraphError as error:
            outcome = LaunchOutcome(state="failed", reason=error.message)
            self.say(f"{launch.name}: failed: {error.message}")
        except OSError as error:
            outcome = LaunchOutcome(state="failed", reason=f"{error.filename or 'this host'}: {error.strerror}")
            self.say(f"{launch.name}: failed: {outcome.reason}")
        finally:
            outcome = outcome.model_copy(update={"windows": list(self._windows)})
            self.archive.write_record(f"{launch.name}/{OUTCOME}", outcome)
        return outcome

    def _carry_out(self, launch: PlannedLaunch) -> LaunchOutcome:
        injection = self._inject(launch)
        with self._server(launch, injection) as server:
            seconds = server.wait_healthy(self.options.start_timeout, self.say)
            self.say(f"{launch.name}: healthy after {seconds:.0f} s")
            info = server.client.question("/server_info", "/get_server_info")
            if info is not None:
                self.archive.write_json(f"{launch.name}/{SERVER_INFO}", _finite(info))
            planned = [self.prepared.plan.set_named(name) for name in launch.sets]
            for request_set in planned:
                if request_set.purpose != "retry":
                    self._send(server, launch, request_set)
            if injection is not None and launch.probe == "full":
                retries = [s for s in planned if s.purpose == "retry"]
                self._retry(server, launch, retries)
            if injection is not None:
                injection.seal()
                self._await_footers(self.archive.root / self._receipts(launch))
        if server.killed:
            self.say(f"{launch.name}: {len(server.killed)} processes had to be killed")
        captures = observed(self.archive.root, self._receipts(launch), []) if injection is not None else []
        return LaunchOutcome.model_validate(
            {
                "state": "ran",
                "seconds_to_health": round(seconds, 3),
                "captures": sum(len(w.captures) for w in captures) if captures else "unknown",
                "without_logprobs": self._plain,
            }
        )

    def _inject(self, launch: PlannedLaunch) -> Injection | None:
        if launch.probe == "none" or self.injector is None:
            return None
        receipts = self.archive.root / self._receipts(launch)
        receipts.mkdir(parents=True, exist_ok=True)
        return self.injector(
            launch=launch.name,
            receipts=receipts,
            run=self.prepared.plan.run_id,
            map_bytes=self.prepared.map_bytes,
            count_only=launch.probe == "count",
            poison=self.prepared.plan.poison and launch.probe == "full",
        )

    @staticmethod
    def _receipts(launch: PlannedLaunch) -> str:
        return RECEIPTS if launch.name == "instrumented" else f"{launch.name}/{RECEIPTS}"

    def _server(self, launch: PlannedLaunch, injection: Injection | None) -> Server:
        inherited = dict(os.environ)
        if launch.name.startswith("eager"):
            for name in enabling_variables(inherited):
                del inherited[name]
        env = {**inherited, **launch.env}
        if injection is not None:
            env = dict(injection.environment(env))
        command = self.options.command
        return Server(
            launch.argv,
            env,
            log=self.archive.path(f"{launch.name}/server.log"),
            host=self.prepared.host,
            port=self.prepared.port,
            mark=self.prepared.plan.run_id,
            watchdog=self.watchdog,
            api_key=command.value("--api-key"),
            scheme="https" if command.value("--ssl-certfile") else "http",
            stop_grace=self.options.stop_timeout,
            request_timeout=self.options.request_timeout,
        )

    def _send(self, server: Server, launch: PlannedLaunch, request_set: RequestSet) -> None:
        """Send a set while the server is otherwise idle, and keep what it answered.

        A set that is refused is sent again without log-probabilities, which some configurations do not serve and token ids do not
        need. It gets a window of its own: a server may run something for what it refuses.
        """
        if self._plain is not None:
            request_set = request_set.model_copy(update={"logprobs": False})
        try:
            self._send_as_it_is(server, launch, request_set)
        except RequestRefused as refusal:
            if not request_set.logprobs or self.prepared.plan.tolerance.kind != "token-ids":
                raise
            self.say(f"{launch.name}: refused, sent again without log-probabilities: {refusal.message}")
            try:
                self._send_as_it_is(server, launch, request_set.model_copy(update={"logprobs": False}))
            except RequestRefused:
                raise refusal from None  # for another reason, which is in the first answer as well
            self._plain = refusal.message

    def _send_as_it_is(self, server: Server, launch: PlannedLaunch, request_set: RequestSet) -> None:
        server.client.flush_cache()
        logged = server.log_size()
        began = time.monotonic_ns()
        settle = self.options.settle if launch.probe == "full" else self.options.settle_unwatched
        wait_idle(settle)
        started = time.perf_counter()
        requests = self._answers(server, request_set)
        seconds = time.perf_counter() - started
        wait_idle(settle)
        ended = time.monotonic_ns()
        decode, prefill = batch_sizes(server.log_between(logged, server.log_size()))
        answers = OutputSet(
            launch=launch.name,
            set=request_set.name,
            began=began,
            ended=ended,
            seconds=seconds,
            batches=ObservedBatches(
                decode=decode, prefill=prefill, source="server log" if decode or prefill else "unknown"
            ),
            requests=requests,
            sha256=set_digest(requests),
        )
        self.archive.write_record(f"{launch.name}/{request_set.name}{OUTPUTS_SUFFIX}", answers)
        tokens = sum(len(r.output_ids) for r in requests)
        self.say(f"{launch.name}: {request_set.name}: {len(requests)} requests, {tokens} tokens in {seconds:.2f} s")
        self._windows.append(SetWindow(set=request_set.name, began=began, ended=ended))

    def _answers(self, server: Server, request_set: RequestSet) -> list[RequestOutput]:
        """Send in a thread, and watch the server meanwhile: a lost worker must not cost the whole time-out."""
        results: Queue[list[RequestOutput] | Exception] = Queue()

        def send() -> None:
            try:
                results.put(server.client.send(request_set))
            except Exception as error:  # noqa: BLE001 - handed to the thread that waits
                results.put(error)

        before = _names(server.pids())
        threading.Thread(target=send, daemon=True).start()
        lost_since: float | None = None
        while True:
            try:
                result = results.get(timeout=0.5)
                break
            except Empty:
                server.check_alive()
                lost = [pid for pid in before if not psutil.pid_exists(pid)]
                lost_since = (lost_since or time.monotonic()) if lost else None
                if lost_since is not None and time.monotonic() - lost_since > _LOST_GRACE:
                    raise WorkerLost(
                        f"{request_set.name}: process {lost[0]} ({before[lost[0]]}) of the server vanished, and no answer came"
                    ) from None
        if isinstance(result, Exception):
            if isinstance(result, RequestFailed):
                time.sleep(0.5)  # a server that dies answers first with a broken connection
                server.check_alive()
            raise result
        return result

    def _retry(self, server: Server, launch: PlannedLaunch, retries: Sequence[RequestSet]) -> None:
        """Send the retry sets of which a wanted label was not replayed."""
        for retry in retries:
            if not retry.of:
                continue
            windows = [Window(w.set, w.began, w.ended) for w in self._windows]
            workers = observed(self.archive.root, self._receipts(launch), windows)
            missed = [label for label in retry.labels if not _seen(workers, label)]
            if missed:
                self.say(f"{launch.name}: {', '.join(missed)} not replayed by {retry.of}: sending {retry.name}")
                self._send(server, launch, retry)

    def _await_footers(self, folder: Path) -> None:
        """Wait until each worker that lives has closed its receipts."""
        wait = self.options.footer_wait
        deadline = time.monotonic() + wait
        open_: list[Path] = []
        while time.monotonic() < deadline:
            open_ = [path for path in folder.glob("*.jsonl") if not _closed(path)]
            if not open_:
                return
            time.sleep(0.1)
        if open_:
            self.say(f"  {len(open_)} workers wrote no footer within {wait:.0f} s: {open_[0].stem}")


def _seen(workers: Sequence[WorkerObservation], label: str) -> bool:
    """Whether every worker that holds graphs replayed it."""
    holders = [w for w in workers if w.captures]
    return bool(holders) and all(any(satisfies(raw, label) for raw in w.labels_replayed()) for w in holders)


def _closed(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            last = file.read().rstrip(b"\n").rsplit(b"\n", 1)[-1]
    except OSError:
        return False
    return b'"k":"footer"' in last


def _names(pids: Sequence[int]) -> dict[int, str]:
    found = {}
    for pid in pids:
        try:
            found[pid] = " ".join(psutil.Process(pid).cmdline())[:80] or "unnamed"
        except psutil.Error:
            continue
    return found


def _finite(value: object) -> object:
    """JSON without the numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
