"""What a finding of numerical, coverage or agreement is called and what it means; `explain` shows it too."""

from __future__ import annotations

from sgl_graph.analyzer.reconcile.lifetime_codes import Code

ANSWERS_DIFFER = "answers-differ"
ANSWERS_UNSETTLED = "answers-unsettled"
WATCHING_DIFFERS = "watching-differs"
LABEL_NOT_REPLAYED = "label-not-replayed"

RUN_CODES: dict[str, Code] = {
    ANSWERS_DIFFER: Code(
        "definite",
        "the server with graphs answered otherwise than the server without",
        "Beyond the tolerance that the plan fixed, and not where eager differs from itself under another batch "
        "composition. A replay that reads stale or foreign data does this, and so does a kernel that is chosen "
        "otherwise under capture.",
        "Repeat with --control and --repeat-reference; then log the kernel calls of the replayed and of the eager step "
        "(SGLang: SGLANG_KERNEL_API_LOGLEVEL=1 or higher) for this request and compare the first that differs.",
    ),
    ANSWERS_UNSETTLED: Code(
        "hazard",
        "the answers differ, and the reference is no firmer",
        "Eager differs at the same request under another batch composition, or from itself when repeated: rounding may "
        "decide, or a fault that both share.",
        "Compare with logprobs:ATOL,RTOL instead of token ids, and make the server deterministic where it offers that.",
    ),
    WATCHING_DIFFERS: Code(
        "hazard",
        "the instrumented server answered otherwise than the ordinary one",
        "Watching changed the timing or the memory, or the server does not agree with itself.",
        "Repeat with --repeat-reference to see whether the server agrees with itself; when it does, compare the two "
        "server logs at the first request that differs.",
    ),
    LABEL_NOT_REPLAYED: Code(
        "definite",
        "a required label was not replayed on every worker of its role",
        "Whole receipts show no launch of all its segments while the planned requests ran.",
        "See captured_not_replayed and the drift of its path for the line that decided it; send traffic that reaches it "
        "with --traffic, or declare what is served with --expect-labels.",
    ),
}
