"""Threads take pieces of work from a queue, and put results together under a lock."""
import hashlib, json, queue, random, sys, threading, zlib

q, results, lock = queue.Queue(), {}, threading.Lock()


def work():
    while (n := q.get()) is not None:
        text = json.dumps([random.random() for _ in range(n % 50)])
        digest = hashlib.sha256(zlib.compress(text.encode() * 50)).hexdigest()
        with lock:
            results[n] = digest


threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads:
    t.start()
for i in range(int(sys.argv[1])):
    q.put(i)
for t in threads:
    q.put(None)
for t in threads:
    t.join()
print(len(results))
