# expect: lifetime=FAIL
# The fault is in a spawned worker, which torch.multiprocessing starts.
import torch.multiprocessing as mp


def work(rank):
    from _common import capture, full, report

    x = full(3.0)
    _ = x * 2 + 1
    graph, y = capture(lambda: x * 2 + 1)
    del x  # the freeing line
    graph.replay()
    report(y)


if __name__ == "__main__":
    mp.spawn(work, nprocs=1)
