"""Words of reports that are no codes: classes, values of verdicts, kinds of drift; `explain` shows them."""

from __future__ import annotations

from typing import NamedTuple


class Term(NamedTuple):
    """One word of a report."""

    kind: str
    title: str
    meaning: str
    remedy: str


_CLASS, _VALUE, _DRIFT, _STATUS = "class", "verdict", "drift", "status of a path"
_REASONS = "Read the reasons beside the class (preflight -v, or reasons[] of the map)."

TERMS: dict[str, Term] = {
    "lifetime-inspectable": Term(
        _CLASS,
        "capture, replays, contents and memory of the graph are in sight",
        "Capture and every replay can be intercepted, the nodes can be read, and the memory is the caching allocator's. It is a "
        "prediction from source: only the receipts of a run confirm it.",
        "Nothing is to be done; a run shows whether it holds.",
    ),
    "replay-observable-only": Term(
        _CLASS,
        "replays are seen, the contents of the graph are not",
        "Coverage can tell that it was replayed; the lifetime verdict cannot tell what its kernels reference.",
        _REASONS,
    ),
    "partial": Term(
        _CLASS,
        "some segments, operands or allocators of the graph are out of sight",
        "What is in sight is judged; what is not is named by the reasons, and no verdict reaches it.",
        _REASONS,
    ),
    "unsupported": Term(
        _CLASS,
        "no hook reaches the graph",
        "Neither its capture nor its replays can be intercepted. Nothing of it is judged.",
        f"{_REASONS} Compare answers instead: the numerical verdict needs no hook.",
    ),
    "unresolved": Term(
        _CLASS,
        "source alone does not settle it",
        "Which code runs, whether it runs, or its class depends on what only the model's configuration, the device or the server "
        "tells. It is neither a yes nor a no.",
        "Give preflight --model-config, --device or --assume as its line names them, or let a run settle it.",
    ),
    "PASS": Term(
        _VALUE,
        "nothing was found, and the evidence was whole",
        "It holds for the recorded configuration and the traffic that was sent, and for one verdict: none borrows from another.",
        "Keep the manifest digest that run printed: it binds the evidence.",
    ),
    "FAIL": Term(
        _VALUE,
        "something definite was found",
        "A replay referenced memory that is not its own, answers differ beyond the tolerance, or whole receipts show that a required "
        "label was not replayed. The findings name it.",
        "Follow the next step of the first finding.",
    ),
    "INCONCLUSIVE": Term(
        _VALUE,
        "the evidence was whole and does not decide",
        "A hazard was found that pointers cannot settle, the reference is no firmer than the difference, or nothing was required. It is "
        "not PASS.",
        "Read the reason; --control, --repeat-reference, another tolerance or --expect-labels may decide it.",
    ),
    "INCOMPLETE": Term(
        _VALUE,
        "evidence is missing, damaged or does not verify",
        "A worker died, a launch failed, answers or receipts are lost, or a file is not what its manifest says. It is not PASS.",
        "Read the reason and the line Not run / not covered; then run again, or find the archive as it was written.",
    ),
    "NOT-RUN": Term(
        _VALUE,
        "what it would judge was not run",
        "A launch was skipped, a program has no reference to compare with, no graph was captured, or none was replayed. It is not PASS.",
        "Run without --skip-..., or with traffic that reaches the graphs.",
    ),
    "NOT-RECOMPUTED": Term(
        _VALUE,
        "the archive lacks what it could be recomputed from",
        "An export without answers cannot be judged numerically again; the recorded verdict stands in it as recorded. It is not PASS.",
        "Ask for an export made with --include-outputs.",
    ),
    "dispatch": Term(
        _DRIFT,
        "the server resolved a setting otherwise than predicted",
        "An automatic or unresolved setting was predicted from source, and the server reports another value.",
        "Read the line that decided it; give preflight what the server knew (--device, --model-config).",
    ),
    "setting": Term(
        _DRIFT,
        "the server reports another value of a setting",
        "The setting was not automatic, and the server reports it otherwise than the map has it. Lists are compared as sets.",
        "Check that the map was made from the same command and environment.",
    ),
    "unmapped-capture": Term(
        _DRIFT,
        "a capture that matches no path of the map",
        "The run captured a graph that the map does not foresee: the map is of other source or another configuration, or the analysis "
        "missed it.",
        "Compare the capture's site with the map; make a map from the checkout that the workers imported.",
    ),
    "path-unexecuted": Term(
        _DRIFT,
        "a path held reachable was never captured",
        "The map expected its capture, and no worker made one.",
        "Follow the line that the entry names; a guard may have decided otherwise.",
    ),
    "reachability": Term(
        _DRIFT,
        "a path held unreachable was captured",
        "The map excludes the path under this configuration, and a worker captured it.",
        "Follow the line that the entry names, and check the configuration of the map.",
    ),
    "buckets": Term(
        _DRIFT,
        "captured sizes differ from the predicted ones",
        "The path was captured at other sizes than the map lists.",
        "Read the line that decided it; memory and batch limits clamp sizes at start-up.",
    ),
    "bucket-unreplayed": Term(
        _DRIFT,
        "sizes were captured and never replayed",
        "The traffic that was sent did not reach these sizes, so nothing is known of their replays.",
        "Send traffic of these sizes with --traffic, or raise --budget.",
    ),
    "class": Term(
        _DRIFT,
        "captures contradict the predicted class",
        "The receipts show more or less of the graph than the class of the map promises.",
        "Believe the receipts; the reasons of the path say what the prediction rested on.",
    ),
    "workers-differ": Term(
        _DRIFT,
        "workers of one role captured or replayed different labels",
        "Ranks of one role should do the same; one that does not may have fallen back to eager.",
        "Look at the entry's workers in the server log around the request set.",
    ),
    "verified": Term(
        _STATUS,
        "the path was captured, replayed and wholly inspected",
        "Receipts confirm the class that the map predicted.",
        "Nothing is to be done.",
    ),
    "unverified": Term(
        _STATUS,
        "receipts do not confirm the path",
        "It was not captured, not replayed, or not wholly inspected: neither confirmed nor contradicted.",
        "See the drift of the path for what was not seen.",
    ),
    "refuted": Term(
        _STATUS,
        "receipts contradict the path's class",
        "What was captured could not be inspected as predicted.",
        "See the drift of kind class for what contradicts it.",
    ),
}
