# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=yes outside=1 class=outside-allocator
# The input is another process's memory, opened here: no allocator of this process owns it.
import torch
import torch.multiprocessing as mp
from _common import capture, full, report


def work(queue, done):
    x = queue.get()
    _ = x * 2 + 1
    graph, y = capture(lambda: x * 2 + 1)
    graph.replay()
    report(y)
    del x
    done.set()


if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, done = context.Queue(), context.Event()
    worker = context.Process(target=work, args=(queue, done))
    worker.start()
    x = full(3.0)
    torch.cuda.synchronize()
    queue.put(x)
    done.wait()
    worker.join()
