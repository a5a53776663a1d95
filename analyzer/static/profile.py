"""Names of SGLang concepts that the analyser relies on: the one place to look when a release renames one."""

from __future__ import annotations

# -- configuration of a launch ---------------------------------------------------------------------------------------

#: The class whose annotated fields are the server's arguments, and the function that parses a command into it.
ARGUMENT_CLASS = "sglang.srt.server_args:ServerArgs"
PREPARE_FUNCTION = "sglang.srt.server_args:prepare_server_args"
#: Derives one command-line argument from every annotated field of a class.
FIELD_REGISTRATION = "add_cli_args_from_dataclass"
#: Methods that finish the resolution after construction, in releases that do it in a second step.
RESOLUTION_METHODS = ("resolve_once",)
#: Checks that the launcher makes on the finished arguments.
CHECK_METHODS = ("check_server_args",)
#: Makes the arguments visible to the whole process, and the role that a scheduler process publishes under.
PUBLISH_FUNCTION = "sglang.srt.runtime_context:publish"
PUBLISH_ROLE = "scheduler"
#: Older releases publish by these.
PUBLISH_LEGACY = ("sglang.srt.server_args:set_global_server_args_for_scheduler",)
#: Functions that record decisions by keyword instead of assigning attributes: keywords are the written fields.
DECLARE_FUNCTIONS = frozenset({"declare_resolution", "override", "record_override"})
#: Importing these packages registers things (overrides per model): their modules are executed when they are imported.
EAGER_PACKAGES = ("sglang.srt.arg_groups",)
#: Functions that read a model's configuration from disk, by name; the last part of their module contains `hf_transformers`
#: in every release, as does one of its packages.
MODEL_CONFIG_LOADERS = frozenset({"get_config"})
MODEL_CONFIG_MODULES = "hf_transformers"
#: Named functions of the checkout that read the machine rather than compute; each names the fact that it gives, in the
#: unit that the checkout expects (MiB).
MEMORY_FUNCTIONS = frozenset(
    {
        "get_nvgpu_memory_capacity",
        "get_amdgpu_memory_capacity",
        "get_npu_memory_capacity",
        "get_xpu_memory_capacity",
        "get_hpu_memory_capacity",
        "get_mtgpu_memory_capacity",
        "get_mps_memory_capacity",
        "get_cpu_memory_capacity",
    }
)
#: Field of the arguments that holds the capture settings per phase, where a release has it.
GRAPH_CONFIG_FIELD = "cuda_graph_config"
#: Attributes of one phase: the sizes and their bound.
GRAPH_SIZES, GRAPH_BOUND, GRAPH_BACKEND = "bs", "max_bs", "backend"
#: Fields that hold the decode sizes in releases without settings per phase.
LEGACY_SIZE_FIELDS = {"decode": ("cuda_graph_bs",), "prefill": ("piecewise_cuda_graph_tokens",)}

# -- graph primitives ------------------------------------------------------------------------------------------------

#: Decorators that name an operator at which a compiled graph is cut into pieces.
SPLIT_REGISTRARS = frozenset({"register_split_op"})
