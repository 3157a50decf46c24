# gdb executes this at the end of a recording: it steps backwards and prints how long the steps took.
import statistics
import time

took = []
for _ in range(20):
    begun = time.monotonic()
    gdb.execute("reverse-stepi", to_string=True)
    took.append(time.monotonic() - begun)
ordered = sorted(took)
print("steps %d first %.2f s median %.3f s p95 %.3f s longest %.2f s" % (
    len(took), took[0], statistics.median(took), ordered[int(len(took) * 0.95) - 1], ordered[-1]))
