"""What an export masks on a command line."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.masking import MASK, Masker


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
