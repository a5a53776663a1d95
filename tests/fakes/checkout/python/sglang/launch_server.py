"""The fake server: answers are a function of the prompt, workers are real processes that write real receipts.

FAKE_FAULT (comma separated): die-at-start, never-healthy, hang, garbage, short, slow-stop, wrong-tokens (with graphs
only), worker-dies, no-footer, dangling, no-replay, ignore-term. FAKE_RECEIPTS names the folder for receipts.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sglang.srt.server_args import add_cli_args

FAULTS = set(filter(None, os.environ.get("FAKE_FAULT", "").split(",")))


class Receipts:
    """A worker's receipts, written as docs/receipts.md says."""

    def __init__(self, folder: str, worker: str, rank: int) -> None:
        self.file = (Path(folder) / f"{worker}.jsonl").open("wb", buffering=0)
        self.link, self.n, self.order = b"0" * 32, 0, 0
        self.captures = self.replays = 0
        here = Path(__file__).resolve()
        self.write(
            k="hello", schema="sgl-graph.receipts/1", run="r", launch="instrumented", worker=worker, pid=os.getpid()
        )
        self.write(k="role", role="scheduler", rank={"tp": rank})
        digest = hashlib.sha256(here.read_bytes()).hexdigest()
        self.write(k="source", root=str(here.parent.parent), version="0", modules={"sglang.launch_server": digest})
        self.write(k="stack", id=0, frames=[["fake/model.py", 7, "forward"]])
        self.write(
            k="block",
            id=0,
            address=4096,
            size=512,
            pool=None,
            segment=[4096, 4096],
            device=0,
            generation=0,
            allocated=0,
            during=None,
        )

    def write(self, **body: object) -> None:
        text = json.dumps({"n": self.n, **body}, separators=(",", ":")).encode()
        self.link = hashlib.sha256(self.link + text).hexdigest()[:32].encode()
        self.file.write(text[:-1] + b',"h":"' + self.link + b'"}\n')
        self.n += 1

    def capture(self, graph: int, label: str) -> None:
        self.order += 2
        self.captures += 1
        self.write(
            k="capture",
            graph=graph,
            pool=1,
            label=label,
            key=label,
            site={"file": "fake/model.py", "line": 7, "qualname": "fake.model:capture"},
            path=None,
            stack=0,
            began=self.order - 1,
            ended=self.order,
            nodes={"kernel": 1},
            names=["kernel"],
            refs=[[0, 0, 0, 0, "param", "external", 0]],
            unowned=[],
            unread=[],
            complete=True,
            keep_graph=False,
            t=time.monotonic_ns(),
        )

    def replay(self, graph: int, count: int) -> None:
        now = time.monotonic_ns()
        self.write(k="replays", o=self.order + 1, to=self.order + count, t0=now, t1=now, cycle=[graph], count=count)
        self.order += count
        self.replays += count

    def free(self) -> None:
        self.order += 1
        self.write(k="event", o=self.order, e="free", block=0, stack=0, t=time.monotonic_ns())

    def footer(self) -> None:
        self.write(
            k="footer",
            captures=self.captures,
            replays=self.replays,
            inspections=self.captures,
            problems=0,
            reason="sealed",
        )


def worker(rank: int, graphs: bool) -> None:
    """One rank: captures at start, replays what it is told on stdin, one batch size a line."""
    if "ignore-term" in FAULTS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    folder = os.environ.get("FAKE_RECEIPTS")
    receipts = Receipts(folder, f"scheduler-{rank}", rank) if folder else None
    sizes = [1, 2, 4] if graphs else []
    if receipts:
        for graph, size in enumerate(sizes):
            receipts.capture(graph, f"target:decode@{size}")
    seal = Path(os.environ["FAKE_SEAL"]) if folder else None
    lines: list[str] = []

    def read() -> None:
        for line in sys.stdin:
            lines.append(line)  # noqa: PERF402 - as they come
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    freed = sealed = False
    while True:
        while lines:
            batch, steps = map(int, lines.pop(0).split())
            graph = next((i for i, size in enumerate(sizes) if size >= batch), None)
            if receipts and graph is not None and "no-replay" not in FAULTS and not sealed:
                if "dangling" in FAULTS and not freed:
                    freed = True
                    receipts.free()
                receipts.replay(graph, steps)
        if seal is not None and receipts and not sealed and seal.exists():
            sealed = True
            if "no-footer" not in FAULTS:
                receipts.footer()
        time.sleep(0.02)


def tokens(prompt: list[int], count: int) -> list[int]:
    """A function of the prompt."""
    digest = hashlib.sha256(json.dumps(prompt).encode()).digest()
    return [digest[i % 32] + 3 for i in range(count)]


def main() -> None:
    """Serve."""
    if sys.argv[1] == "worker":
        worker(int(sys.argv[2]), sys.argv[3] == "1")
        return
    parser = argparse.ArgumentParser()
    add_cli_args(parser)
    args = parser.parse_args()
    if "die-at-start" in FAULTS:
        raise RuntimeError("the fake was told to die")
    graphs = not args.disable_cuda_graph
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "sglang.launch_server", "worker", str(i), str(int(graphs))],
            stdin=subprocess.PIPE,
            text=True,
        )
        for i in range(args.tp_size)
    ]
    if "ignore-term" in FAULTS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: (time.sleep(3 if "slow-stop" in FAULTS else 0), os._exit(0)))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self, status: int, payload: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def do_GET(self) -> None:
            if self.path == "/health":
                self.reply(503 if "never-healthy" in FAULTS else 200, b"")
            elif self.path == "/server_info":
                self.reply(200, json.dumps({**vars(args), "attention_backend": "fake"}).encode())
            else:
                self.reply(404, b"")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
            if self.path != "/generate":
                self.reply(200, b"")
                return
            if "hang" in FAULTS:
                time.sleep(3600)
            if "worker-dies" in FAULTS and graphs:
                ranks[-1].kill()
                ranks[-1].wait()
                time.sleep(3600)
            if "garbage" in FAULTS:
                self.reply(200, b"<html>not what you asked for")
                return
            if "refuses-all" in FAULTS or ("refuses-logprobs" in FAULTS and body.get("return_logprob")):
                self.reply(400, b'{"error": {"message": "return_logprob is not supported"}}')
                return
            prompts, params = body["input_ids"], body["sampling_params"]
            steps = max(p["max_new_tokens"] for p in params) - 1
            for rank in ranks:
                rank.stdin.write(f"{len(prompts)} {steps}\n")
                rank.stdin.flush()
            print(f"Prefill batch, #new-seq: {len(prompts)}, #new-token: 9", flush=True)
            print(f"Decode batch, #running-req: {len(prompts)}, #token: 9", flush=True)
            answers = []
            for prompt, param in zip(prompts, params, strict=True):
                ids = tokens(prompt, param["max_new_tokens"])
                if "wrong-tokens" in FAULTS and graphs:
                    ids[2] += 1
                if "batch-sensitive" in FAULTS and (len(prompts) != 4 or graphs):
                    ids[3] += 1
                if "short" in FAULTS:
                    ids = ids[:-1]
                rows = [[-0.5, token, None] for token in ids]
                meta = {"output_token_logprobs": rows, "output_top_logprobs": [[row, [-1.5, 1, None]] for row in rows]}
                answers.append({"output_ids": ids, "meta_info": meta if body.get("return_logprob") else {}})
            time.sleep(0.05)
            self.reply(200, json.dumps(answers).encode())

        def log_message(self, *_: object) -> None:
            pass

    ThreadingHTTPServer((args.host, args.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
