# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# Another thread drops the last reference while the main thread waits.
import threading

from _common import capture, full, report

held = [full(3.0)]
_ = held[0] * 2 + 1
graph, y = capture(lambda: held[0] * 2 + 1)


def drop():
    held.clear()  # the freeing line


thread = threading.Thread(target=drop)
thread.start()
thread.join()
graph.replay()
report(y)
