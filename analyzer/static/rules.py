"""Every code that a map's report prints: what it means, why it matters, what to do. `explain CODE` shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """A code with its meaning."""

    code: str
    title: str
    text: str


_ALL = [
    Rule(
        "SGG001",
        "a plain graph object of torch",
        "The graph is an object of the CUDA graph class of torch. Its capture and every replay are calls of Python methods "
        "that an instrument can wrap, its nodes can be read while the capture is still open, and its memory comes from "
        "the caching allocator, whose state can be read. This is what lifetime-inspectable means. It is a prediction: "
        "only the receipts of a run confirm it.",
    ),
    Rule(
        "SGG002",
        "one logical replay of several segments",
        "The call stands for a container of graph segments with Python code between them. Each segment can be "
        "inspected on its own, but the kernels that the code in between launches are in no graph, and what they read "
        "and write is out of sight. Segments are listed as sites of their own.",
    ),
    Rule(
        "SGG003",
        "a split point of a segmented graph",
        "Here a captured segment ends and eager code runs at each replay. The eager code is not replayed from a graph: "
        "it cannot dangle, and it cannot be inspected. Inputs that it keeps by weak reference stay valid only as long "
        "as the pool of the segments keeps their memory.",
    ),
    Rule(
        "SGG004",
        "memory under the memory saver",
        "The memory of the graph, or of its inputs, lives under torch_memory_saver: addresses stay, the pages behind "
        "them are dropped and mapped again by pause and resume. The state of the caching allocator does not show that.",
    ),
    Rule(
        "SGG005",
        "an executable behind torch's back",
        "The executable is made, updated or launched through cuda-python. torch's own replay never runs; the launch can "
        "be followed from executable to graph, but one executable serves many graphs and is rewritten between replays.",
    ),
    Rule(
        "SGG006",
        "no hook on this device",
        "The graph belongs to a device (NPU, XPU, MUSA, or a compiler that calls its result a graph) whose graph "
        "contents and memory this tool cannot read.",
    ),
    Rule(
        "SGG007",
        "code registered elsewhere runs inside the capture",
        "The captured body calls functions from a list that other code fills, is given by a context that is entered around "
        "the capture, or takes another way while a mode is on. Which functions these are depends on what was registered, "
        "given or turned; their operands become part of the graph.",
    ),
    Rule(
        "SGG008",
        "the class is chosen at run time",
        "Which class is constructed here depends on a table, a plugin or a device. The source alone does not say; "
        "`unresolved` in the map names what decides.",
    ),
    Rule(
        "SGG009",
        "a second owner of graph-pool memory",
        "Blocks of the graph pool are handed out by a second allocator, or the pool's handle is dropped while its "
        "graphs may live. Two owners of one address cannot be told apart by the address.",
    ),
    Rule(
        "SGG010",
        "contents of the graph cannot be read",
        "Replays can be seen, but on this device no interface gives the nodes of a graph and their parameters.",
    ),
    Rule(
        "SGG011",
        "sets a series of captures going",
        "The call leads, through the functions listed in the chain of a path, to the captures themselves; it is "
        "observed through them.",
    ),
    Rule(
        "SGG012",
        "decides which graph runs, or whether one does",
        "A table, a predicate or a method that may either capture or replay. Nothing is captured by the decision itself.",
    ),
    Rule(
        "SGG013",
        "memory made for graphs before their capture",
        "Buffers that captured kernels read or write are allocated ahead of the capture and outside the graph pool. The "
        "caching allocator owns them; they must stay alive, at the same address, as long as the graphs replay.",
    ),
    Rule(
        "SGG014",
        "ends graphs, or changes what a capture or a replay does",
        "A table lets its graphs go, an event outlives the capture that recorded it, or a method of the device library is "
        "replaced while graphs are captured. What refers to the memory of a graph that ended must not be replayed; what was "
        "replaced no longer does what the library's documentation says.",
    ),
    Rule(
        "SGG020",
        "memory that the caching allocator does not own",
        "Kernels of this path may read or write device memory from another source: IPC, symmetric memory, NVSHMEM, "
        "virtual memory management, or a table of pointers that is filled after the capture. The lifetime verdict "
        "lists such references as outside its guarantee.",
    ),
    Rule(
        "SGG021",
        "pointers are filled in after the capture",
        "The captured kernels read addresses from a table that is written later, so the parameters of the graph's "
        "nodes name a row of the table and not the operand.",
    ),
    Rule(
        "SGG030",
        "the injection may not reach the worker",
        "The source does not show how the process of this worker starts, or it starts with an environment of its own.",
    ),
    Rule(
        "SGG040",
        "decided by something that only the server knows",
        "A branch of the resolution depends on a fact that neither the command, nor the model's configuration, nor the "
        "device facts settle. Both branches are in the map; `--assume NAME=VALUE` or `--resolve` sharpens it, and only "
        "the server's own resolved arguments confirm it.",
    ),
    Rule(
        "SGG041",
        "an automatic choice, not confirmed",
        "The value was predicted by evaluating the checkout's own resolution. Until the server's resolved arguments "
        "show it, the paths that depend on it are predictions.",
    ),
    Rule(
        "SGG042",
        "the model's configuration is not known",
        "Architecture, attention kind, experts and towers decide paths. Give `--model-config FILE` with the model's "
        "config.json; nothing is ever downloaded.",
    ),
    Rule(
        "SGG043",
        "the device is not known",
        "Memory size, capability and kind of the device decide defaults. Give `--device`, as in `--device h200`.",
    ),
    Rule(
        "SGG050",
        "labels that no planned traffic replays",
        "The path is captured, but no request within the budget, or none at all, replays these labels. Coverage cannot "
        "pass for them.",
    ),
    Rule(
        "SGG051",
        "labels that cannot be listed before the run",
        "The key of these graphs is made from the requests themselves, or their sizes rest on something that only the "
        "server knows, so the set of labels is open.",
    ),
    Rule(
        "SGG052",
        "captured while serving",
        "These graphs are captured by the first requests of a shape, or by an admin call, not at start-up.",
    ),
    Rule(
        "SGG053",
        "captured sizes that some batches do not replay",
        "The runner pads a batch up to the next captured size and refuses when that is too much padding: such batches run "
        "eagerly, so a captured graph may never be replayed by traffic of other lengths. Capture sizes that lie closer "
        "together, or send batches near the captured sizes.",
    ),
    Rule(
        "SGG054",
        "variants that only the server decides on",
        "The runner captures a size several times, for batches of different kinds, and computes for which from what only "
        "the server knows. These variants are shown and not expected: name them with --expect-labels, and bring traffic "
        "that replays them with --traffic.",
    ),
    Rule(
        "SGG055",
        "adapters that no planned request uses",
        "Adapters are loaded while the server runs, into buffers that captured graphs read by address. Without a request "
        "that uses one, a run proves nothing of that. Name some with --lora-paths, raise --budget, or bring traffic of "
        "variant lora or mixed with --traffic.",
    ),
    Rule(
        "SGG060",
        "the server does not start with this command",
        "The checkout's own code rejects the configuration at the line shown. No path is reachable.",
    ),
    Rule(
        "SGG061",
        "a file or folder of the checkout could not be read",
        "Facts of this file, or of all files in this folder, are missing from the map; the reason stands beside it. Paths "
        "and sites in it are not shown. Where code that runs imports the file, it may lead to any other capture: what "
        "nothing else excludes is then unresolved. Material where the file speaks of graphs or is imported; a note else. A file "
        "that is imported and not there at all counts too; where the same lies elsewhere, only the import is wrong: a note.",
    ),
    Rule(
        "SGG063",
        "the analysis was cut short here",
        "Values of this function were still growing after so many interpretations that the linker left it. The file was "
        "read and the rest of it is followed; what this one function leads to may be missing from the chains, or shown "
        "as unresolved.",
    ),
    Rule(
        "SGG062",
        "nothing is captured",
        "Under this configuration no capture is reachable: graphs are off, or nothing in this checkout makes them.",
    ),
    Rule(
        "SGG064",
        "the capture ends in an exception",
        "Every way through the capturing code, or through making what captures, raises for what this path hands to it, as "
        "the source has it: the server dies while it captures. Choose another backend for this phase, or another attention backend.",
    ),
    Rule(
        "SGG065",
        "the worker's first function was not found",
        "The file in which worker processes start is missing or could not be read, or its first function has another name "
        "in this release. Nothing can be linked, so no capture is confirmed or excluded.",
    ),
]

RULES: dict[str, Rule] = {rule.code: rule for rule in sorted(_ALL, key=lambda rule: rule.code)}
