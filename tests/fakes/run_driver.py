"""Runs `execute` against the fake checkout, in a process of its own so that it can be killed.

usage: python run_driver.py OUT [option=value ...]; options are fields of RunOptions, and tp, labels, map.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from sgl_graph.analyzer.serving_command import parse
from sgl_graph.cli.exits import guarded
from sgl_graph.cli.render.report import markdown, report_text
from sgl_graph.cli.run import exit_code
from sgl_graph.runtime.checkout import locate
from sgl_graph.runtime.options import RunOptions
from sgl_graph.runtime.planning import prepare
from sgl_graph.runtime.run import execute

HERE = Path(__file__).parent
CHECKOUT, MODEL = HERE / "checkout", HERE / "model"


@dataclass
class FakeInjection:
    """Tells the fake where to write; there is no probe."""

    folder: Path
    receipts: Path

    def environment(self, base):
        return {**base, "FAKE_RECEIPTS": str(self.receipts), "FAKE_SEAL": str(self.folder / "seal")}

    def seal(self) -> None:
        (self.folder / "seal").touch()


def inject(*, launch, receipts, run, map_bytes, count_only, poison):
    folder = receipts.parent / f".{launch}.injection"
    folder.mkdir(parents=True, exist_ok=True)
    return FakeInjection(folder, receipts)


TRAFFIC = [
    {"name": "one", "labels": ["target:decode@1"], "concurrency": 1, "input_len": 8, "output_len": 6},
    {"name": "four", "labels": ["target:decode@4"], "concurrency": 4, "input_len": 8, "output_len": 6},
]


def path_map(labels=("target:decode",), **extra):
    """A map that fits the fake."""
    path = {
        "id": "p1", "family": "decode", "worker": "scheduler", "runner": "target", "backend": "full", "sites": [],
        "name": "target:decode", "components": [], "reachable": "yes", "trigger": "startup", "nested_in": None,
        "inspectability": "lifetime-inspectable",
        "label": {"key": "k", "expression": "k", "variants": [None], "buckets": [1, 2, 4]},
    }  # fmt: skip
    return {
        "schema": "sgl-graph.path-map/1", "checkout": {"root": "", "layout": "repository", "digest": "d"},
        "command": [], "env": {}, "device": {"name": None, "source": "none"}, "starts": {"value": "yes"},
        "config": [{"name": "attention_backend", "value": None, "source": "unresolved", "automatic": True,
                    "predicted": "fake"}],
        "workers": [], "sites": [], "paths": [path], "unresolved": [], "gaps": [], "labels": list(labels),
        "traffic": TRAFFIC, **extra,
    }  # fmt: skip


def main() -> None:
    out, given = Path(sys.argv[1]), dict(item.split("=", 1) for item in sys.argv[2:])
    tp = given.pop("tp", "1")
    extra_arguments = given.pop("arguments", "").split()
    body = path_map(**json.loads(given.pop("map", "{}")))
    labels = given.pop("labels", None)
    values = {key: json.loads(value) for key, value in given.items()}
    values |= {key: Path(values[key]) for key in ("traffic", "map_file") if key in values}
    command = [
        "python",
        "-m",
        "sglang.launch_server",
        "--model-path",
        str(MODEL),
        "--device",
        "emulated",
        "--tp-size",
        tp,
    ]
    options = RunOptions(
        out=out,
        command=parse([*command, *extra_arguments]),
        checkout=CHECKOUT,
        expect_labels=tuple(filter(None, labels.split(","))) if labels is not None else None,
        **{
            "start_timeout": 20.0,
            "request_timeout": 20.0,
            "stop_timeout": 3.0,
            "settle": 0.1,
            "footer_wait": 3.0,
            **values,
        },
    )
    prepared = prepare(options, locate(CHECKOUT), json.dumps(body).encode(), inspector="emulated")
    finished = execute(options, prepared, inject, markdown, lambda line: print(line, file=sys.stderr, flush=True))
    print(report_text(finished.ledger))
    print("digest", finished.manifest_digest)
    raise SystemExit(int(exit_code(finished.ledger)))


if __name__ == "__main__":
    sys.exit(guarded(main))
