"""What an export masks on a command line."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.masking import MASK, Masker, secrets_of


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--max-total-tokens", "65536"),
        ("--skip-tokenizer-init", "--disable-custom-all-reduce"),
        ("--tokenizer-mode", "auto"),
        ("--speculative-token-map", "map.pt"),
        ("--api-key", "--port"),
    ],
)
def test_flags_that_hold_no_secret_keep_what_follows(flag: str, value: str) -> None:
    masker = Masker()
    assert masker.value([flag, value]) == [flag, value]
    assert not masker.counts["secrets"]


def test_settings_are_masked_by_name_and_modules_are_not() -> None:
    digests = {"package.req_to_token": "ab12", "package.secret": "cd34"}
    assert Masker().value({"modules": digests, "hf_token": "hush"}) == {"modules": digests, "hf_token": MASK}


@pytest.mark.parametrize("flag", ["--api-key", "--admin-api-key", "--hf-token", "--token", "--ssl-keyfile-password"])
def test_secrets_are_masked_behind_their_flags(flag: str) -> None:
    masker = Masker()
    assert masker.value([flag, "hush", f"{flag}=hush", "--port", "1"]) == [flag, MASK, f"{flag}={MASK}", "--port", "1"]
    assert masker.counts["secrets"] == 2


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("/home/somebody/my models (v2)/llama 8b", "<path>"),
        ("--model-path=/home/somebody/my models/llama.json", "--model-path=<path>/llama.json"),
        ("PATH is /usr/local/bin:/home/somebody/bin", "PATH is <path>:<path>"),
        ("cannot open file:///home/somebody/x.py", "cannot open file://<path>/x.py"),
        ("~/checkouts/somebody/x.py:3", "<path>/x.py:3"),
        ("see /home/élise/données/x.py, line 3", "see <path>/x.py, line 3"),
        ("/scratch", "<path>"),
        ("/home/somebody/env/lib/python3.12/site-packages/torch/cuda/graphs.py:3 replay", "<path>/site-packages/torch/cuda/graphs.py:3 replay"),
        ("tcp://10.1.2.3:29500 and http://node17:30000/v1", "tcp://<host>:29500 and http://<host>:30000/v1"),
        ("proxy http://user:hush@proxy.example.com:8080/", "proxy http://<masked>@proxy.example.com:8080/"),
        ("listens on 192.168.7.9, driver 580.159.04, cudnn 9.1.0.70", "listens on <host>, driver 580.159.04, cudnn 9.1.0.70"),
        ("http://127.0.0.1:30000/generate", "http://127.0.0.1:30000/generate"),
        ("MY_SETTING='a b' SGLANG_X=1 python -m x --api-key hush --port 1", "MY_SETTING=<masked> SGLANG_X=1 python -m x --api-key <masked> --port 1"),
        ("target:decode (/lora, /nolora) sglang/srt/x.py:3", "target:decode (/lora, /nolora) sglang/srt/x.py:3"),
        ("void at::native::add<float, 4>(int, float*)", "void at::native::add<float, 4>(int, float*)"),
    ],
)  # fmt: skip
def test_texts_lose_what_tells_of_the_host_and_nothing_else(text: str, masked: str) -> None:
    assert Masker().value(text) == masked


def test_a_variable_that_the_archive_holds_is_masked_wherever_it_stands() -> None:
    masker = Masker(values={"MY_TEAM": "blue falcon", "SGLANG_MODE": "fast mode", "ONE": "1", "HF_TOKEN": "hf_abcdef"})
    text = "ran MY_TEAM=blue falcon ONE=1 with 1 of blue falcon in fast mode; hf_abcdef"
    assert masker.text(text) == "ran MY_TEAM=<masked> ONE=<masked> with 1 of <masked> in fast mode; <masked>"


def test_a_host_is_masked_by_its_short_name_and_in_any_case() -> None:
    masker = Masker(["gpu7.cluster.example"])
    assert masker.text("GPU7 of gpu7.cluster.example, not gpu77") == "<host> of <host>, not gpu77"


def test_members_named_after_secrets_are_masked_and_the_vocabulary_is_not() -> None:
    body = {
        "admin_api_key": "hush",
        "Authorization": "hush",
        "ssl_keyfile_password": "hush",
        "eos_token": "</s>",
        "token": "x",
    }
    shown = Masker().value(body)
    assert {name for name, value in shown.items() if value == MASK} == set(body) - {"eos_token"}


def test_rows_about_secret_settings_lose_their_values() -> None:
    rows = [
        {"name": "api_key", "value": "hush", "source": "flag", "predicted": None},
        {
            "kind": "setting",
            "subject": "hf_token",
            "predicted": "hush",
            "observed": "unknown",
            "text": "hf_token: predicted hush",
        },
        {"name": "max_total_tokens", "value": "65536"},
        {"name": "eos_token", "value": "</s>"},
    ]
    shown = Masker().value(rows)
    assert "hush" not in str(shown)
    assert shown[0]["source"] == "flag" and shown[1]["observed"] == "unknown" and shown[2:] == rows[2:]


def test_a_secret_of_the_archive_is_masked_in_any_text() -> None:
    body = {
        "command": ["python", "--api-key", "hush-hush", "--hf-token=quiet-please", "--api-key", "--port"],
        "rows": [{"name": "admin_api_key", "value": "shh-shh"}],
    }
    secrets = secrets_of(body)
    assert secrets == {"hush-hush", "quiet-please", "shh-shh"}
    assert (
        Masker(secrets=secrets).text("401 for hush-hush, quiet-please and shh-shh")
        == f"401 for {MASK}, {MASK} and {MASK}"
    )
