#!/usr/bin/env bash
# make_tool_bundle.sh DIR: what sgl-graph itself needs on a GPU host without network, for CPython 3.12, as DIR/tool.tar.xz.
# Only the tool's process has it on its path, never the servers. numpy comes from that host.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(mkdir -p "${1:?usage: make_tool_bundle.sh DIR}" && cd "$1" && pwd)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python=${PYTHON:-python3}
"$python" - "$here/../../pyproject.toml" > "$work/needs" <<'PY'
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
print("\n".join([*project["dependencies"], "nvidia-ml-py"]))
PY
platforms=(); for n in 34 28 27 24 17; do platforms+=(--platform "manylinux_2_${n}_x86_64"); done
platforms+=(--platform manylinux2014_x86_64 --platform manylinux1_x86_64)
"$python" -m pip install -q --no-compile --only-binary=:all: --python-version 3.12 --implementation cp --abi cp312 --abi abi3 \
  --abi none "${platforms[@]}" --target "$work/tool" -r "$work/needs"
rm -rf "$work"/tool/numpy "$work"/tool/numpy-* "$work"/tool/numpy.libs "$work"/tool/bin
find "$work/tool" -name __pycache__ -prune -exec rm -rf {} +
tar -C "$work" -cf - tool | xz -6 > "$dir/tool.tar.xz"
ls -l "$dir/tool.tar.xz"
