# expect: lifetime=PASS
# As stale_slots, for what training and preparation of data launch: backward kernels, filling and picking by index, casts of strided memory.
import torch
import torch.nn.functional as F
from _common import report

torch.manual_seed(0)


def inputs():
    a = torch.randn(64, 96, device="cuda")
    return {
        "a": a,
        "b": torch.randn(64, 96, device="cuda"),
        "i": torch.randperm(64, device="cuda"),
        "m": a > 0,
        "p": torch.randn(64, 96, device="cuda", requires_grad=True),
        "n": torch.randn(8, 16, 20, 12, device="cuda", requires_grad=True),
    }


def back(forward):
    def run(t):
        leaves = [v for v in t.values() if v.requires_grad]
        return torch.autograd.grad(forward(t).float().square().sum(), leaves, allow_unused=True)

    return run


OPS = {
    "strided_add": lambda t: t["a"].t() + t["b"].t()[:, :1],
    "strided_cast": lambda t: t["a"].t()[::2].to(torch.bfloat16),
    "strided_mixed": lambda t: t["a"].t() * t["b"].t().half(),
    "strided_compare": lambda t: t["a"][:, ::2] > t["b"][:, 1::2],
    "strided_clamp": lambda t: torch.clamp(t["a"][:, ::3], t["b"][:, ::3], None),
    "strided_copy": lambda t: torch.empty(96, 64, device="cuda").t().copy_(t["a"][:, :].flip(1)),
    "addcdiv": lambda t: torch.addcdiv(t["a"][:, ::2], t["b"][:, ::2], t["a"][:, 1::2]),
    "where_cast": lambda t: torch.where(t["m"][:, ::2], t["a"][:, ::2].double(), t["b"][:, ::2].double()),
    "index_fill": lambda t: t["a"].index_fill(0, t["i"][:8], 3.0),
    "index_copy": lambda t: t["a"].index_copy(0, t["i"], t["b"]),
    "index_select": lambda t: t["a"].index_select(1, t["i"]),
    "index_reduce": lambda t: t["a"].index_reduce(0, t["i"], t["b"], "amin"),
    "take": lambda t: t["a"].take(t["i"]),
    "put": lambda t: t["a"].put(t["i"], t["b"][0, :64]),
    "take_along": lambda t: torch.take_along_dim(t["a"], t["i"][:, None], 1),
    "scatter_value": lambda t: t["a"].scatter(1, t["i"][:, None], 2.0),
    "scatter": lambda t: t["a"].scatter(0, t["i"][:, None], t["b"]),
    "index_three": lambda t: t["n"].detach()[t["i"] % 8, t["i"] % 16, t["i"] % 20],
    "index_slice": lambda t: t["n"].detach()[:, t["i"] % 16, :, t["i"] % 12],
    "index_put_three": lambda t: (
        t["n"].detach().clone().index_put_((t["i"] % 8, t["i"] % 16, t["i"] % 20), t["a"][:, :12])
    ),
    "index_bool_put": lambda t: t["a"].masked_fill(t["m"].flip(0), 1.0),
    "sum_middle": lambda t: t["n"].detach().sum((0, 2)),
    "var_two": lambda t: t["n"].detach().transpose(1, 3).var((1, 2)),
    "any_all": lambda t: (t["m"].any(0), t["m"].all(1)),
    "prod": lambda t: t["a"].prod(0),
    "nansum": lambda t: t["a"].t().nansum(1),
    "argmin_all": lambda t: t["a"].argmin(),
    "std_mean": lambda t: torch.std_mean(t["n"].detach(), (0, 3)),
    "cummax": lambda t: t["a"].cummax(0),
    "cumprod": lambda t: t["a"].t().cumprod(1),
    "logcumsumexp": lambda t: t["a"].logcumsumexp(0),
    "renorm": lambda t: t["a"].renorm(2, 0, 1.0),
    "triu": lambda t: t["n"].detach().triu(1),
    "repeat_interleave": lambda t: t["a"].repeat_interleave(3, 0),
    "roll_two": lambda t: t["n"].detach().roll((1, 2), (1, 3)),
    "grid_sample": lambda t: F.grid_sample(
        t["n"].detach(), t["n"].detach()[:, :2].permute(0, 2, 3, 1).clamp(-1, 1), align_corners=False
    ),
    "back_linear": back(lambda t: F.linear(t["p"], t["a"])),
    "back_norm": back(lambda t: F.layer_norm(t["p"], (96,))),
    "back_softmax": back(lambda t: torch.log_softmax(t["p"], 1)),
    "back_pool": back(lambda t: F.max_pool2d(t["n"], 2)),
    "back_average": back(lambda t: F.adaptive_avg_pool2d(t["n"], 5)),
    "back_group": back(lambda t: F.group_norm(t["n"], 4)),
    "back_batch": back(lambda t: F.batch_norm(t["n"], None, None, training=True)),
    "back_index": back(lambda t: t["p"][t["i"]]),
    "back_select": back(lambda t: t["p"].index_select(0, t["i"])),
    "back_gather": back(lambda t: t["p"].gather(1, t["i"][:, None])),
    "back_conv": back(lambda t: F.conv2d(t["n"], t["p"].view(-1)[: 8 * 16 * 9].view(8, 16, 3, 3))),
    "back_interpolate": back(lambda t: F.interpolate(t["n"], scale_factor=2, mode="bicubic")),
    "back_unfold": back(lambda t: F.unfold(t["n"], 3)),
    "back_dropout": back(lambda t: F.dropout(t["p"], 0.3)),
    "back_cat": back(lambda t: torch.cat([t["p"], t["p"] * 2, t["p"][:5]])),
    "back_sort": back(lambda t: t["p"].sort(1).values),
    "back_cumsum": back(lambda t: t["p"].cumsum(0)),
    "back_gelu": back(lambda t: F.gelu(t["p"].t())),
    "back_embedding": back(lambda t: F.embedding(t["i"], t["p"])),
    "back_entropy": back(lambda t: F.cross_entropy(t["p"], t["i"])),
    "foreach_norms": lambda t: torch._foreach_norm([t["a"], t["b"], t["p"].detach()], 2),
    "foreach_addcmul": lambda t: torch._foreach_addcmul([t["a"], t["b"]], [t["b"], t["a"]], [t["a"], t["a"]], 0.5),
    "foreach_scalars": lambda t: torch._foreach_add([t["a"], t["b"]], [1.0, 2.0]),
    "foreach_tensor": lambda t: torch._foreach_mul([t["a"], t["b"]], t["a"].sum()),
    "foreach_copy": lambda t: torch._foreach_copy_([t["a"].clone(), t["b"].clone()], [t["b"], t["a"]]),
    "foreach_max": lambda t: torch._foreach_maximum([t["a"], t["b"]], [t["b"], t["a"]]),
    "fused_sgd": lambda t: torch._fused_sgd_(
        [t["a"].clone()],
        [t["b"]],
        [t["a"].clone()],
        weight_decay=0.1,
        momentum=0.9,
        lr=0.1,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    ),
    "fused_adagrad": lambda t: torch._fused_adagrad_(
        [t["a"].clone()],
        [t["b"]],
        [t["a"].abs()],
        [torch.ones((), device="cuda")],
        lr=0.1,
        lr_decay=0.0,
        weight_decay=0.0,
        eps=1e-8,
        maximize=False,
    ),
    "amp_unscale": lambda t: torch._amp_foreach_non_finite_check_and_unscale_(
        [t["a"].clone(), t["b"].clone()], torch.zeros(1, device="cuda"), torch.ones(1, device="cuda")
    ),
    "clip": lambda t: torch._foreach_mul(
        [t["a"], t["b"]],
        torch.clamp(1 / torch.linalg.vector_norm(torch.stack(torch._foreach_norm([t["a"], t["b"]]))), max=1.0),
    ),
}
kept, decoys, skipped = [], [], []
for name, op in OPS.items():
    stays = inputs()
    try:
        for _ in range(3):
            goes = inputs()
            decoys.append((goes, op(goes)))
        op(stays)
        decoys.append((goes := inputs(), op(goes)))
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            out = op(stays)
        kept.append((name, graph, stays, out))
    except (RuntimeError, TypeError, AttributeError):
        skipped.append(name)
        torch.cuda.synchronize()
print(len(kept), skipped)
decoys.clear()
del goes
torch.cuda.synchronize()
for _, graph, _, _ in kept:
    graph.replay()
torch.cuda.synchronize()
report(kept[0][3])
