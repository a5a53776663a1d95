# expect: lifetime=FAIL
# The fault is in a forked worker; the parent imported torch and never initialised CUDA.
import multiprocessing as mp


def work():
    from _common import capture, full, report

    x = full(3.0)
    _ = x * 2 + 1
    graph, y = capture(lambda: x * 2 + 1)
    del x  # the freeing line
    graph.replay()
    report(y)


if __name__ == "__main__":
    process = mp.get_context("fork").Process(target=work)
    process.start()
    process.join()
