"""The HTTP side of a server: health, resolved arguments, and request sets by token ids."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from sgl_graph.analyzer.errors import HostError
from sgl_graph.analyzer.records.outputs import Number, RequestOutput, number, request_output
from sgl_graph.analyzer.records.plan import PlannedRequest, RequestSet

TOP_LOGPROBS = 3


class RequestFailed(HostError):
    """A planned request got no usable answer."""


class RequestRefused(RequestFailed):
    """The server says that it does not serve such a request (status 400)."""


class Client:
    """Talks to one server; nothing but the planned requests and questions about the server itself is sent."""

    def __init__(self, url: str, *, api_key: str | None = None, timeout: float = 300.0) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # Proxies of the user's environment must not see, or answer, what is meant for this host.
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=False, verify=False)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def healthy(self) -> bool:
        """Whether the server says that it can serve."""
        try:
            return self._http.get("/health", timeout=10.0).status_code == 200
        except httpx.HTTPError:
            return False

    def question(self, *routes: str) -> dict[str, Any] | None:
        """The first JSON object that one of the routes answers with; None when none does."""
        for route in routes:
            try:
                answer = self._http.get(route, timeout=30.0)
                if answer.status_code == 200:
                    body = answer.json()
                    if isinstance(body, dict):
                        return body
            except (httpx.HTTPError, ValueError):
                continue
        return None

    def flush_cache(self) -> bool:
        """Empty the prefix cache, so that each set starts alike in every launch; False when the server cannot."""
        try:
            return self._http.post("/flush_cache", timeout=30.0).status_code == 200
        except httpx.HTTPError:
            return False

    def send(self, request_set: RequestSet) -> list[RequestOutput]:
        """Send a set and return its answers in order.

        Raises:
            RequestRefused: The server does not serve such a request.
            RequestFailed: The server hung, failed, or answered something that is no answer to this set.
        """
        if request_set.send == "single":
            return [self._post([r], i, request_set)[0] for i, r in enumerate(request_set.requests)]
        return self._post(request_set.requests, 0, request_set)

    def _post(self, requests: Sequence[PlannedRequest], first: int, request_set: RequestSet) -> list[RequestOutput]:
        body: dict[str, Any] = {
            "input_ids": [r.input_ids for r in requests],
            "sampling_params": [
                {"temperature": 0, "max_new_tokens": r.output_len, "ignore_eos": True} for r in requests
            ],
        }
        if request_set.logprobs:
            body |= {"return_logprob": True, "top_logprobs_num": TOP_LOGPROBS}
        if any(r.lora is not None for r in requests):
            body["lora_path"] = [r.lora for r in requests]
        try:
            answer = self._http.post("/generate", json=body)
        except httpx.TimeoutException as error:
            raise RequestFailed(f"{request_set.name}: no answer within {self._http.timeout.read:g} s") from error
        except httpx.HTTPError as error:
            raise RequestFailed(f"{request_set.name}: {type(error).__name__}: {error}") from error
        if answer.status_code != 200:
            kind = RequestRefused if answer.status_code == 400 else RequestFailed
            raise kind(f"{request_set.name}: status {answer.status_code}: {answer.text[:200]}")
        try:
            parsed = json.loads(answer.content)
        except (ValueError, RecursionError) as error:
            raise RequestFailed(f"{request_set.name}: the answer is not JSON: {answer.text[:80]!r}") from error
        items = parsed if isinstance(parsed, list) else [parsed]
        if len(items) != len(requests):
            raise RequestFailed(f"{request_set.name}: {len(items)} answers to {len(requests)} requests")
        return [_output(item, first + i, requests[i], request_set.name) for i, item in enumerate(items)]


def wait_idle(seconds: float) -> None:
    """Leave the server alone, so that the replays of one set cannot be taken for those of the next."""
    time.sleep(seconds)


def _output(item: Any, index: int, request: PlannedRequest, name: str) -> RequestOutput:
    where = f"{name}, request {index}"
    if not isinstance(item, Mapping):
        raise RequestFailed(f"{where}: the answer is no object: {str(item)[:80]!r}")
    meta = item.get("meta_info")
    meta = meta if isinstance(meta, Mapping) else {}
    rows = meta.get("output_token_logprobs")
    ids, logprobs = _rows(rows) if isinstance(rows, list) else ([], [])
    stated = item.get("output_ids")
    if isinstance(stated, list) and all(isinstance(x, int) and not isinstance(x, bool) for x in stated):
        if ids and ids != stated:
            raise RequestFailed(f"{where}: output_ids and output_token_logprobs name different tokens")
        ids = list(stated)
    if len(ids) != request.output_len:
        raise RequestFailed(f"{where}: {len(ids)} tokens instead of {request.output_len}: {str(item)[:120]!r}")
    tops = meta.get("output_top_logprobs")
    return request_output(index, ids, logprobs, _table(tops))


def _rows(rows: Sequence[Any]) -> tuple[list[int], list[Number]]:
    """Token ids and log-probabilities of rows [log-probability, token id, text]; malformed rows are left out."""
    ids: list[int] = []
    values: list[Number] = []
    for row in rows:
        if isinstance(row, list) and len(row) >= 2 and isinstance(row[1], int) and not isinstance(row[1], bool):
            ids.append(row[1])
            values.append(number(row[0]))
    return ids, values


def _table(rows: Any) -> list[list[tuple[int, Number]]]:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        return []
    return [list(zip(*_rows(row), strict=True)) for row in rows]
