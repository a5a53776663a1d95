"""Runs sgl-graph on a real SGLang, one configuration after the other or several at once, on a GPU host without network.

usage: python3 tests/gpu/run_sglang.py CASE... --bundle DIR --out DIR [--jobs N] [--limit SECONDS] [--map FILE] [--derived]
       [--dry-run] [-- EXTRA RUN OPTIONS]

--jobs N runs N cases side by side on the same GPU: verdicts do not depend on it, throughput does. --limit interrupts what
still runs after so many seconds, and packs it. --map takes a map made elsewhere (a file, or a folder with CASE.json). --derived sends the map's own traffic instead of
traffic.json beside this file. Gaps are accepted: the report lists them.

DIR holds site.tar.xz (SGLang and what it needs), tool.tar.xz (make_tool_bundle.sh), and in extra/ wheels that are unpacked beside
SGLang (eagle needs sgl-deep-gemm). Per case, in OUT: the archive as
CASE.tar.xz, its report as CASE.report.md and the tool's stderr as CASE.log, all of it once more in OUT/cases.tar. Exit
status: the worst of the cases.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from stopping import Stopping

REPOSITORY = Path(__file__).resolve().parents[2]
WORK = Path("/tmp/sgl-graph-gpu")
COMMON = (
    "--device cuda --attention-backend triton --sampling-backend pytorch --grammar-backend none --mem-fraction-static 0.3 "
    "--max-total-tokens 65536 --context-length 2048 --chunked-prefill-size 512 --max-running-requests 8 "
    "--cuda-graph-bs-decode 1 2 4 8 --random-seed 1 --skip-tokenizer-init --disable-custom-all-reduce --skip-server-warmup"
)
SMALL_PREFILL = "--cuda-graph-bs-prefill 16 64 256"
LORA = (
    f"--enable-lora --lora-paths a={WORK}/lora-a b={WORK}/lora-b --max-loras-per-batch 2 --max-lora-rank 8 "
    "--lora-target-modules q_proj v_proj --lora-backend triton"
)
EAGLE = (
    f"--speculative-algorithm EAGLE --speculative-draft-model-path {WORK}/eagle_draft --speculative-num-steps 2 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 3"
)
STANDALONE = EAGLE.replace("EAGLE", "STANDALONE").replace("eagle_draft", "llama_draft")
#: Its draft is captured with the target's class of runners.
DFLASH = f"--speculative-algorithm DFLASH --speculative-draft-model-path {WORK}/dflash_draft"
NGRAM = "--speculative-algorithm NGRAM --speculative-num-draft-tokens 4"
#: model, server flags, run options
CASES: dict[str, tuple[str, str, str]] = {
    "llama": ("llama", "", "--control --repeat-reference"),
    "llama-small": ("llama", SMALL_PREFILL, "--control"),
    "flashinfer": ("llama", f"{SMALL_PREFILL} --attention-backend flashinfer", "--control"),
    "lora": ("llama", f"{SMALL_PREFILL} {LORA}", "--control"),
    "lora-csgmv": ("llama", f"{SMALL_PREFILL} {LORA.replace('triton', 'csgmv')}", "--control"),
    "moe": ("qwen3_moe", f"{SMALL_PREFILL} --moe-runner-backend triton", "--control"),
    "ngram": ("llama", f"{SMALL_PREFILL} {NGRAM}", "--control"),
    # EAGLE workers import deep_gemm whatever they use.
    "eagle": ("llama", f"{SMALL_PREFILL} {EAGLE}", "--control --env SGLANG_ENABLE_JIT_DEEPGEMM=0"),
    "standalone": ("llama", f"{SMALL_PREFILL} {STANDALONE}", "--control --env SGLANG_ENABLE_JIT_DEEPGEMM=0"),
    "dflash": ("llama", f"{SMALL_PREFILL} {DFLASH}", "--control --env SGLANG_ENABLE_JIT_DEEPGEMM=0"),
    "piecewise": ("llama", f"{SMALL_PREFILL} --cuda-graph-backend-prefill tc_piecewise", "--control"),
    # These two are known to die while they capture; the run must say so, and the map beforehand.
    "prefill-full": ("llama", f"{SMALL_PREFILL} --cuda-graph-backend-prefill full", "--skip-eager --skip-instrumented"),
    "decode-breakable": (
        "llama",
        f"{SMALL_PREFILL} --cuda-graph-backend-decode breakable",
        "--skip-eager --skip-instrumented",
    ),
    "dedup": ("llama", SMALL_PREFILL, "--control --env SGLANG_ENABLE_CUDA_GRAPH_DEDUP=1"),
    "tp2": ("llama", f"{SMALL_PREFILL} --tp-size 2", "--control"),
}


_BEGAN = time.monotonic()
#: Set when no more is to be started and what runs is to be interrupted.
_stopping = Stopping()


def unpack(bundle: Path) -> tuple[Path, Path]:
    """SGLang's folder and the tool's."""
    folders = []
    for name in ("site", "tool"):
        folder = Path("/tmp") / name
        if not (folder / ".ok").exists():
            with tarfile.open(bundle / f"{name}.tar.xz") as archive:
                archive.extractall("/tmp", filter="data")
            (folder / ".ok").touch()
        folders.append(folder)
    for wheel in sorted(bundle.glob("extra/*.whl")):  # what one case needs and the bundle leaves out
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folders[0])
    return folders[0], folders[1]


def models() -> None:
    """Every model and adapter of the cases."""
    import tiny_models

    for make in (
        tiny_models.llama,
        tiny_models.qwen3_moe,
        tiny_models.eagle_draft,
        tiny_models.llama_draft,
        tiny_models.dflash_draft,
    ):
        make(WORK / make.__name__)
    tiny_models.lora(WORK / "lora-a", seed=7)
    tiny_models.lora(WORK / "lora-b", seed=8)


def run(case: str, out: Path, site: Path, tool: Path, extra: list[str]) -> int:
    """One case; its exit code, 130 when it was not begun."""
    if _stopping.begun:
        return 130
    model, flags, options = CASES[case]
    archive = WORK / "archives" / case
    archive.parent.mkdir(parents=True, exist_ok=True)
    program = [sys.executable, "-m", "sgl_graph.cli", "run", "--out", str(archive), "--checkout", str(site)]
    program += ["--env", f"PYTHONPATH={site}", *options.split(), *extra, "--"]
    server = [
        "python3",
        "-m",
        "sglang.launch_server",
        "--model-path",
        str(WORK / model),
        *COMMON.split(),
        *flags.split(),
    ]
    path = os.pathsep.join([str(REPOSITORY / ".typeview"), str(tool)])
    cuda = os.pathsep.join([os.environ.get("PATH", ""), os.path.dirname(sys.executable), "/usr/local/cuda/bin"])
    began = time.monotonic()
    with (out / f"{case}.log").open("w") as log:
        process = subprocess.Popen(
            [*program, *server],
            env={**os.environ, "PYTHONPATH": path, "PATH": cuda},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        _stopping.watch(process)
        assert process.stderr is not None
        for line in process.stderr:
            log.write(line)
            print(f"{time.monotonic() - _BEGAN:4.0f} {case}: {line}", end="", flush=True)
        code = process.wait()
    print(f"== {case}: exit {code} after {time.monotonic() - began:.0f} s", flush=True)
    report = archive / "report.md"
    if report.exists():
        print("\n".join(report.read_text().splitlines()[:14]), flush=True)
        (out / f"{case}.report.md").write_text(report.read_text())
    if archive.exists():
        with tarfile.open(out / f"{case}.tar.xz", "w:xz") as packed:
            packed.add(archive, arcname=case)
    return code


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", choices=sorted(CASES))
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "/tmp/sgl-graph-out")))
    parser.add_argument("--map", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--derived", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    own, _, extra = sys.argv[1:], None, []
    if "--" in own:
        extra = own[own.index("--") + 1 :]
        own = own[: own.index("--")]
    args = parser.parse_args(own)
    args.out.mkdir(parents=True, exist_ok=True)
    _stopping.listen(args.limit)
    site, tool = unpack(args.bundle)
    models()
    extra = ["--accept-gaps", *extra]
    extra += ["--allow-busy"] if args.jobs > 1 else []
    extra += [] if args.derived else ["--traffic", str(Path(__file__).with_name("traffic.json"))]
    extra += ["--dry-run"] if args.dry_run else []

    def one(case: str) -> int:
        found = args.map / f"{case}.json" if args.map and args.map.is_dir() else args.map
        return run(case, args.out, site, tool, [*extra, *(["--map", str(found)] if found else [])])

    with ThreadPoolExecutor(args.jobs) as pool:
        codes = list(pool.map(one, args.cases))
    with tarfile.open(args.out / "cases.tar", "w") as packed:
        for case in args.cases:
            for file in sorted(args.out.glob(f"{case}.*")):
                packed.add(file, arcname=file.name)
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
