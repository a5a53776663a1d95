# expect: lifetime=PASS
# Kernels with by-value structs, launched on memory that goes away and then captured on memory that stays: a slot that a launch
# does not fill may still hold the address of the launch before.
import torch
import torch.nn.functional as F
from _common import report

torch.manual_seed(0)


def inputs():
    g = torch.randn(256, 256, device="cuda")
    return {"a": g, "b": torch.randn(256, 256, device="cuda"), "i": torch.randint(0, 256, (256,), device="cuda")}


OPS = {
    "sum": lambda t: t["a"].sum(),
    "sum_dim": lambda t: t["a"].sum(0),
    "mean": lambda t: t["a"].mean(1),
    "max_dim": lambda t: t["a"].max(1),
    "min_all": lambda t: t["a"].min(),
    "aminmax": lambda t: torch.aminmax(t["a"], dim=1),
    "argmax": lambda t: t["a"].argmax(1),
    "var_mean": lambda t: torch.var_mean(t["a"], 1),
    "norm": lambda t: torch.linalg.vector_norm(t["a"], dim=1),
    "logsumexp": lambda t: torch.logsumexp(t["a"], 1),
    "softmax": lambda t: torch.softmax(t["a"], 1),
    "cumsum": lambda t: torch.cumsum(t["a"], 1),
    "cumsum_flat": lambda t: torch.cumsum(t["a"].view(-1), 0),
    "sort": lambda t: torch.sort(t["a"], 1),
    "topk": lambda t: torch.topk(t["a"], 8, 1),
    "gather": lambda t: torch.gather(t["a"], 1, t["i"][:, None]),
    "index": lambda t: t["a"][t["i"]],
    "index_two": lambda t: t["a"][t["i"], t["i"]],
    "index_put": lambda t: t["b"].index_put((t["i"],), t["a"]),
    "index_put_add": lambda t: t["b"].index_put((t["i"],), t["a"], accumulate=True),
    "index_add": lambda t: t["b"].index_add(0, t["i"], t["a"]),
    "scatter_add": lambda t: t["b"].scatter_add(0, t["i"][:, None].expand(256, 256), t["a"]),
    "scatter_reduce": lambda t: t["b"].scatter_reduce(0, t["i"][:, None].expand(256, 256), t["a"], "amax"),
    "layer_norm": lambda t: F.layer_norm(t["a"], (256,), t["b"][0], t["b"][1]),
    "rms_norm": lambda t: F.rms_norm(t["a"], (256,), t["b"][0]),
    "group_norm": lambda t: F.group_norm(t["a"].view(4, 64, 256), 8),
    "batch_norm": lambda t: F.batch_norm(t["a"], None, None, training=True),
    "where": lambda t: torch.where(t["a"] > 0, t["a"], t["b"]),
    "transpose": lambda t: t["a"].t().contiguous(),
    "broadcast": lambda t: t["a"][:, :1] * t["b"],
    "addcmul": lambda t: torch.addcmul(t["a"], t["a"], t["b"]),
    "lerp": lambda t: torch.lerp(t["a"], t["b"], 0.3),
    "embedding": lambda t: F.embedding(t["i"], t["a"]),
    "embedding_bag": lambda t: F.embedding_bag(t["i"][None], t["a"]),
    "cross_entropy": lambda t: F.cross_entropy(t["a"], t["i"]),
    "searchsorted": lambda t: torch.searchsorted(torch.sort(t["a"], 1).values, t["b"]),
    "histc": lambda t: torch.bucketize(t["a"], t["b"][0].sort().values),
    "tril": lambda t: t["a"].tril(),
    "roll": lambda t: t["a"].roll(3, 0),
    "flip": lambda t: t["a"].flip(0),
    "repeat": lambda t: t["a"].repeat(2, 1),
    "cat_uneven": lambda t: torch.cat([t["a"], t["b"][:3]], 0),
    "stack": lambda t: torch.stack([t["a"], t["b"]], 1),
    "split_copy": lambda t: torch._foreach_mul([t["a"], t["b"]], 2.0),
    "foreach_norm": lambda t: torch._foreach_norm([t["a"], t["b"]]),
    "foreach_lerp": lambda t: torch._foreach_lerp([t["a"]], [t["b"]], 0.5),
    "fused_adam": lambda t: torch._fused_adam_(
        [t["b"].clone()],
        [t["a"]],
        [t["a"].abs()],
        [t["a"].abs()],
        [],
        [torch.ones((), device="cuda")],
        lr=0.1,
        beta1=0.9,
        beta2=0.99,
        weight_decay=0.0,
        eps=1e-8,
        amsgrad=False,
        maximize=False,
    ),
    "mm": lambda t: t["a"] @ t["b"],
    "mm_bf16": lambda t: t["a"].bfloat16() @ t["b"].bfloat16(),
    "bmm": lambda t: torch.bmm(t["a"].view(4, 64, 256), t["b"].view(4, 256, 64)),
    "addmm": lambda t: torch.addmm(t["b"][0], t["a"], t["b"]),
    "mv": lambda t: t["a"] @ t["b"][0],
    "dot": lambda t: torch.dot(t["a"][0], t["b"][0]),
    "conv": lambda t: F.conv2d(t["a"].view(1, 4, 128, 128), t["b"].view(-1)[: 8 * 4 * 9].view(8, 4, 3, 3)),
    "max_pool": lambda t: F.max_pool2d(t["a"].view(1, 1, 256, 256), 2),
    "avg_pool": lambda t: F.adaptive_avg_pool2d(t["a"].view(1, 1, 256, 256), 7),
    "upsample": lambda t: F.interpolate(t["a"].view(1, 1, 256, 256), scale_factor=2, mode="bilinear"),
    "pad": lambda t: F.pad(t["a"].view(1, 1, 256, 256), (1, 1), mode="reflect"),
    "attention": lambda t: F.scaled_dot_product_attention(*[t["a"].half().view(1, 4, 64, 256)[..., :64]] * 3),
    "attention_causal": lambda t: F.scaled_dot_product_attention(
        *[t["b"].half().view(1, 4, 64, 256)[..., :64]] * 3, is_causal=True
    ),
    "dropout": lambda t: F.dropout(t["a"], 0.5),
    "bernoulli": lambda t: torch.bernoulli(torch.sigmoid(t["a"])),
    "normal": lambda t: torch.empty_like(t["a"]).normal_(),
    "multinomial": lambda t: torch.multinomial(torch.softmax(t["a"], 1), 1, replacement=True),
    "exponential": lambda t: torch.empty_like(t["a"]).exponential_(),
    "fft": lambda t: torch.fft.rfft(t["a"], dim=1).real,
    "copy_cast": lambda t: t["a"].to(torch.float16).to(torch.float64),
    "copy_strided": lambda t: t["a"][::2, ::3].contiguous(),
    "masked_fill": lambda t: t["a"].masked_fill(t["b"] > 0, 0.0),
    "masked_scatter": lambda t: t["a"].masked_scatter(t["b"] > 0, t["b"]),
    "unfold": lambda t: F.unfold(t["a"].view(1, 1, 256, 256), 3),
    "cdist": lambda t: torch.cdist(t["a"], t["b"]),
    "triangular": lambda t: torch.linalg.solve_triangular(
        t["a"].tril() + 9 * torch.eye(256, device="cuda"), t["b"], upper=False
    ),
    "diag": lambda t: torch.diag(t["a"]),
    "arange": lambda t: torch.arange(256, device="cuda") + t["i"],
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
        stream = torch.cuda.Stream()
        with torch.cuda.graph(graph, stream=stream):
            out = op(stays)
        kept.append((name, graph, stays, out))
    except RuntimeError:
        skipped.append(name)
        torch.cuda.synchronize()
print(len(kept), skipped)
decoys.clear()
del goes
torch.cuda.synchronize()
for _, graph, _, _ in kept:
    graph.replay()
torch.cuda.synchronize()
report(kept[1][3])
