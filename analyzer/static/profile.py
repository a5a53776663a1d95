"""Names of SGLang concepts that the analyser relies on: the one place to look when a release renames one."""

from __future__ import annotations

# -- configuration of a launch ---------------------------------------------------------------------------------------

#: The class whose annotated fields are the server's arguments, and the function that parses a command into it.
ARGUMENT_CLASS = "sglang.srt.server_args:ServerArgs"
PREPARE_FUNCTION = "sglang.srt.server_args:prepare_server_args"
#: Derives one command-line argument from every annotated field of a class.
FIELD_REGISTRATION = "add_cli_args_from_dataclass"
#: Arguments that every value rests on: naming them as a cause says nothing.
IDENTITY_FIELDS = frozenset({"model_path"})
#: Methods that finish the resolution after construction, in releases that do it in a second step.
RESOLUTION_METHODS = ("resolve_once",)
#: Checks that the launcher makes on the finished arguments.
CHECK_METHODS = ("check_server_args",)
#: Gives what resolution decided for a field, in releases that record decisions beside the arguments.
RESULT_FUNCTION = "sglang.srt.arg_groups.overrides:resolution_result"
#: Makes the arguments visible to the whole process, and the role that a scheduler process publishes under.
PUBLISH_FUNCTION = "sglang.srt.runtime_context:publish"
PUBLISH_ROLE = "scheduler"
#: Older releases publish by these.
PUBLISH_LEGACY = ("sglang.srt.server_args:set_global_server_args_for_scheduler",)
#: Functions that record decisions by keyword instead of assigning attributes: keywords are the written fields.
DECLARE_FUNCTIONS = frozenset({"declare_resolution", "override", "record_override"})
#: Importing these packages registers things (overrides per model): their modules are executed when they are imported.
EAGER_PACKAGES = ("sglang.srt.arg_groups",)
#: Its functions return the fields that a model family decides.
OVERRIDE_PACKAGE = "sglang.srt.arg_groups"
#: Functions that read a model's configuration from disk, by name; the last part of their module contains `hf_transformers`
#: in every release, as does one of its packages.
MODEL_CONFIG_LOADERS = frozenset({"get_config"})
MODEL_CONFIG_MODULES = "hf_transformers"
#: What the checkout knows about a model; without a configuration nothing is.
MODEL_CLASS = "sglang.srt.configs.model_config:ModelConfig"
#: How it is made from the arguments: the function, the parameters that tell it that the model is the draft's and where that
#: lies, the argument that says so, and the way to the names of the model's classes.
MODEL_OF_ARGUMENTS, DRAFT_MODEL_PARAMETER, MODEL_PATH_PARAMETER = "from_server_args", "is_draft_model", "model_path"
DRAFT_PATH_FIELD = "speculative_draft_model_path"
ARCHITECTURES = ("hf_config", "architectures")
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
#: Functions that give the process groups of a live server, and the argument that is the group's size; the size of an
#: attention group is what data-parallel and context-parallel groups leave of the tensor-parallel one.
GROUP_MODULE = "sglang.srt.distributed.parallel_state"
GROUP_SIZES = {
    "get_tp_group": "tp_size",
    "get_pp_group": "pp_size",
    "get_attn_cp_group": "attn_cp_size",
    "get_attn_tp_group": "attn_tp_size",
    "get_moe_ep_group": "ep_size",
}
#: Classes of these groups, with the attribute that holds how many ranks one has.
GROUP_CLASSES = {f"{GROUP_MODULE}:GroupCoordinator": "world_size"}
#: Functions that give such a size by itself.
SIZE_ACCESSORS = {"sglang.srt.layers.dp_attention:get_attention_tp_size": "attn_tp_size"}
ATTENTION_TP, ATTENTION_TP_OF = "attn_tp_size", ("tp_size", "dp_size", "attn_cp_size")
ATTENTION_DP_FIELD = "enable_dp_attention"
#: Field of the arguments that holds the capture settings per phase, where a release has it.
GRAPH_CONFIG_FIELD = "cuda_graph_config"
#: Attributes of one phase: the sizes and their bound.
GRAPH_SIZES, GRAPH_BOUND, GRAPH_BACKEND = "bs", "max_bs", "backend"
#: Fields that hold the decode sizes in releases without settings per phase.
LEGACY_SIZE_FIELDS = {"decode": "cuda_graph_bs", "prefill": "piecewise_cuda_graph_tokens"}
LEGACY_OFF_FIELDS = {"decode": "disable_cuda_graph", "prefill": "disable_piecewise_cuda_graph"}
LEGACY_ON_FIELDS = {"prefill": "enable_piecewise_cuda_graph"}
#: Computes the decode sizes from a live runner, in the oldest releases.
LEGACY_SIZE_FUNCTION = "sglang.srt.model_executor.cuda_graph_runner:get_batch_sizes_to_capture"
#: Clamps the configured decode sizes by what a live runner holds; the first that a release has.
SIZE_FUNCTIONS = (
    "sglang.srt.model_executor.runner.base_cuda_graph_runner:get_batch_sizes_to_capture",
    LEGACY_SIZE_FUNCTION,
)
#: What gives a class the sizes that are configured, clamped at most: the functions above, and what hands a compiled backend
#: its sizes.
CONFIGURED_SIZES = frozenset(
    {*SIZE_FUNCTIONS, "sglang.srt.compilation.compilation_config:CompilationConfig.get_capture_sizes"}
)
#: The runner's attribute whose `size` clamps them.
LEGACY_POOL = "req_to_token_pool"
#: The most requests that it is made for: all ranks together, and among how many ranks they are divided.
POOL_FIELD, POOL_DIVISORS = "max_running_requests", ("attn_dp_size", "dp_size")
#: Value of a phase's backend that turns its capture off.
GRAPH_DISABLED = "disabled"

# -- graph primitives ------------------------------------------------------------------------------------------------

#: Decorators that name an operator at which a compiled graph is cut into pieces.
SPLIT_REGISTRARS = frozenset({"register_split_op"})
#: Attributes that list such operators as texts, `namespace.operator`, in releases without the decorator.
SPLIT_LISTS = frozenset({"split_ops"})

#: Words in the qualified name of a runner, a table or a file that tell what it captures; the first match counts.
FAMILY_WORDS: tuple[tuple[str, str], ...] = (
    ("metadata-glue", r"metadata_?glue|early_?verify_?metadata|glue_?graph"),
    ("vit", r"vi_?t_?(npu|cuda)|vision|_vit_|_vl\b|internvl|multimodal"),
    ("draft-extend", r"draft_?extend"),
    ("draft", r"draft|frozen_?kv_?mtp|uno_"),
    ("verify", r"sampling_?accept|target_?verify"),
    ("prefill-piecewise", r"piecewise"),
    ("prefill-breakable", r"breakable|row_?bucket"),
    ("prefill-full", r"prefill"),
    ("decode", r"decode|cuda_?graph_?runner|cudagraph_?backend|graph_?backend|graph_?runner|cpu_?graph"),
)
#: Words of classes that work for the draft model of speculative decoding.
DRAFT_WORDS = r"draft|mtp"
#: Configuration that names the speculative algorithm, and the capture settings per phase by attribute.
SPECULATIVE_FIELD = "speculative_algorithm"

#: Functions that allocate for captured graphs, before the capture and outside its pool.
PREALLOCATING = r"(?:init|alloc|allocate|create|make|reserve|prepare)\w*_cuda_graph_\w*(?:buffers?|workspaces?)"

#: What the forward pass of a generating model gives where a family captures the whole of it.
CAPTURED_OUTPUTS = {
    "decode": "sglang.srt.layers.logits_processor:LogitsProcessorOutput",
    "verify": "sglang.srt.layers.logits_processor:LogitsProcessorOutput",
}
#: Functions of an attention backend that prepare a captured batch, the parameters that tell it the batch and that it is
#: captured, and the mode of the batches of a family that captures whole prefills.
METADATA_FUNCTION = "init_forward_metadata_out_graph"
METADATA_BATCH, METADATA_CAPTURING = "forward_batch", "in_capture"
FORWARD_BATCH_CLASS = "sglang.srt.model_executor.forward_batch_info:ForwardBatch"
FORWARD_MODE_CLASS, FORWARD_MODE_ATTRIBUTE = "sglang.srt.model_executor.forward_batch_info:ForwardMode", "forward_mode"
CAPTURED_MODES = {"prefill-full": "EXTEND"}

#: Parameters by which the constructors of workers and model runners are told that the object is for the draft model.
DRAFT_PARAMETERS = frozenset({"is_draft_worker"})

#: How code asks whether a capture is under way, and does something else if so.
CAPTURE_STATE = r"is_current_stream_capturing|is_(in_)?capture_mode|is_in_\w*cuda_?graph|is_capturing|in_capture"

# -- processes and triggers ------------------------------------------------------------------------------------------

#: Where the processes that may hold graphs start: role and qualified name. An encoder's ranks but the first are processes of
#: their own; the first serves in the process of its server, with the same encoder.
WORKER_ENTRIES: tuple[tuple[str, str], ...] = (
    ("scheduler", "sglang.srt.managers.scheduler:run_scheduler_process"),
    ("encoder", "sglang.srt.disaggregation.encoder.server:launch_encoder"),
    ("encoder", "sglang.srt.disaggregation.encoder.http_server:launch_server"),
    ("encoder", "sglang.srt.disaggregation.encode_server:launch_encoder"),
    ("encoder", "sglang.srt.disaggregation.encode_server:launch_server"),
)
#: Functions in which a worker serves until it ends; what only they lead to is triggered by requests.
EVENT_LOOPS = r"^(run_)?(event_loop\w*|dispatch_event_loop|run_event_loop)$|^run_encoder$"
#: Functions that serve administrative requests: weights, memory, roles, adapters, scaling.
ADMIN_HANDLERS = (
    r"update_weights|weights_(from|by)|release_memory|resume_memory|role_switch|load_lora|unload_lora|elastic"
    r"|scale_(up|down)|_profile$|flush_cache"
)

# -- components of a path --------------------------------------------------------------------------------------------

#: Base classes whose subclasses are the attention backends, the token dispatchers and the LoRA backends of a path.
COMPONENT_BASES: tuple[tuple[str, str], ...] = (
    ("attention", "AttentionBackend"),
    ("moe", "BaseDispatcher"),
    ("lora", "BaseLoRABackend"),
)
#: Methods that make a class one of a kind without such a base: several backends of attention, driven as one.
COMPONENT_METHODS: tuple[tuple[str, str], ...] = (("attention", "init_cuda_graph_state"),)
#: Settings that choose a component of each kind.
COMPONENT_FIELDS: dict[str, tuple[str, ...]] = {
    "attention": ("attention_backend", "prefill_attention_backend", "decode_attention_backend"),
    "moe": ("moe_runner_backend", "moe_a2a_backend"),
    "lora": ("lora_backend",),
}
#: Settings that say whether adapters are served, and which a launch loads.
ADAPTERS_FIELD, ADAPTER_PATHS_FIELD = "enable_lora", "lora_paths"
#: Packages whose classes hold the memory of collectives.
COMMUNICATION_PACKAGES = ("sglang.srt.distributed.device_communicators",)
#: Methods that make a class of these packages a communicator, whose buffers captured kernels may use.
COLLECTIVE_METHODS = r"^(\w+_)?(all_?reduce|all_?gather|reduce_?scatter)|^(broadcast|send|recv|dispatch|combine)"

# -- topology --------------------------------------------------------------------------------------------------------

#: Sizes that multiply to the number of scheduler processes of one server.
RANK_FIELDS = ("tp_size", "pp_size")
ENCODER_FIELD = "encoder_only"

# -- linking ----------------------------------------------------------------------------------------------------------

#: Functions of these modules that read the machine or the finished configuration: the resolved configuration answers for
#: them when they are called without arguments.
ANSWERED_MODULES = (
    r"^sglang\.srt\.(utils(\.common|\.device\w*)?|runtime_context|server_args|environ|platforms(\.\w+)?)$"
)
ANSWERED_FUNCTIONS = r"^(\w+\.)?(is|has|supports?|cpu_has|xpu_has|get)(_\w+)?$"
#: Functions that tell by the model's configuration which kind of model, or of attention, it has, and how its sparse attention
#: is laid out.
MODEL_PREDICATES = (
    r"^sglang\.srt\.(configs\.hybrid_arch:\w+_config|configs\.model_config:(is|uses|get_dsa)_\w+"
    r"|layers\.attention\.qsa\.config:(parse_qsa_profile|is_qwen_qsa))$"
)
#: Predicates over the capture settings, which the resolution answers too; not once code that runs writes the attribute.
CAPTURE_PREDICATES = (
    r"^sglang\.srt\.model_executor\.cuda_graph_config:(check_cuda_graph_backend|cuda_graph_fully_disabled)$"
)
CAPTURE_PREDICATES_READ = GRAPH_BACKEND
#: Modules whose top-level names the resolution settles: the declared environment variables, the platform singleton.
SETTLED_NAMES = {"sglang.srt.environ": "envs", "sglang.srt.platforms": "current_platform"}
#: Accesses of these libraries are followed through calls, because graphs, pools and their contexts come from them.
FOLLOWED_LIBRARIES = (
    "torch.cuda",
    "torch.npu",
    "torch_npu",
    "torch.xpu",
    "torch.accelerator",
    "torch.get_device_module",
    "torch_memory_saver",
    "torchair",
    "cuda.bindings",
    "cuda.cudart",
    "emugraph",
)
#: Classes whose objects are configuration wherever they appear: the arguments, and what is derived from the model's files.
CONFIGURATION_CLASSES = frozenset({ARGUMENT_CLASS, "sglang.srt.configs.model_config:ModelConfig"})
#: Attributes of these that differ between the target's and the draft's object.
PER_WORKER_ATTRIBUTES = frozenset({"is_draft_model"})
#: Read-only views over the arguments: an attribute of a view is the argument of that name. Up to 0.5.18 there was one.
CONFIGURATION_VIEWS = frozenset(
    {
        "sglang.srt.arg_groups.overrides:ResolvedView",
        "sglang.srt.arg_groups.model_override_base:ResolvingConfig",
        "sglang.srt.arg_groups.model_override_base:ResolvedView",
    }
)
