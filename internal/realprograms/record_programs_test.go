package realprograms

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compiled builds a program of testdata/record and returns its path.
func compiled(t testing.TB, source string, flags ...string) string {
	t.Helper()
	compiler := map[string]string{".c": "gcc", ".cc": "g++"}[filepath.Ext(source)]
	return build(t, compiler, filepath.Join("record", source), append([]string{"-O2", "-pthread"}, flags...)...)
}

func TestIdentity(t *testing.T) {
	for _, p := range []identity{
		{name: "pigz -p4", needs: []string{"pigz"}, setup: `seq 200000 > data`, command: `pigz -p4 -k data`},
		{name: "pbzip2 -p4", needs: []string{"pbzip2"}, setup: `seq 300000 > data`, command: `pbzip2 -p4 -b1 -k data`},
		{name: "xz -T4", needs: []string{"xz"}, setup: `seq 300000 > data`, command: `xz -T4 --block-size=256KiB -1 -k data`},
		{name: "sort --parallel=4", needs: []string{"sort"}, setup: `seq 300000 | rev > data`, command: `sort --parallel=4 -S 100M data -o sorted`,
			never: "a merge reads how far its children came while they write it under another lock"},
		{name: "git gc", needs: []string{"git"}, setup: `
git config --global init.defaultBranch main; git config --global pack.threads 4
git config --global user.name a; git config --global user.email a@example.com; git init -q repo; cd repo
for i in {1..6}; do seq $((i * 100)) $((i * 150)) > file; cp -r /usr/include/asm-generic copy$i; git add -A; git commit -qm "change $i"; done`,
			command: `git gc -q --aggressive`},
		{name: "ffmpeg", needs: []string{"ffmpeg"}, command: `ffmpeg -nostdin -v error -filter_threads 4 -f lavfi -i testsrc2=size=320x240:rate=25 -t 1 -c:v mpeg4 -threads 4 -y out.mp4`,
			never: "which thread takes which slice, and which is the last, is decided by atomic instructions"},
		{name: "x264 --threads 4", needs: []string{"ffmpeg", "x264"}, setup: `ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=320x240:rate=25 -t 1 -pix_fmt yuv420p clip.y4m`,
			command: `x264 --quiet --threads 4 --preset veryfast -o out.264 clip.y4m`,
			never:   "a thread of its pool reads without a lock whether the pool ends"},
		{name: "x264 --sliced-threads", needs: []string{"ffmpeg", "x264"}, setup: `ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=320x240:rate=25 -t 1 -pix_fmt yuv420p clip.y4m`,
			command: `x264 --quiet --threads 4 --sliced-threads --sync-lookahead 0 --rc-lookahead 0 --preset ultrafast -o out.264 clip.y4m`},
		{name: "python3 (threads)", needs: []string{"python3"}, setup: `cat > work.py <<'PY'
import hashlib, json, queue, random, sys, threading, time, zlib
sys.setswitchinterval(60) # threads switch where they wait, not where an atomic flag says that 5 ms are over
q, results, lock = queue.Queue(), {}, threading.Lock()
def work():
    while (n := q.get()) is not None:
        text = json.dumps([random.random() for _ in range(n % 50)])
        digest = hashlib.sha256(zlib.compress(text.encode() * 50)).hexdigest()
        with lock: results[n] = (digest, time.time(), threading.current_thread().name)
        time.sleep(0)
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
for i in range(400): q.put(i)
for t in threads: q.put(None)
[t.join() for t in threads]
print(len(results))
PY
`, command: `python3 work.py`},
		{name: "python3 (computes)", needs: []string{"python3"}, setup: `cat > work.py <<'PY'
import threading
seen = []
def work(n):
    h = n
    for i in range(300000):
        h = (h * 31 + i) % 1000003
        if not i % 1000: seen.append(h)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(hash(tuple(seen)))
PY
`, command: `python3 work.py`,
			never: "after 5 ms a flag is set that the interpreter looks at"},
		{name: "perl (threads)", needs: []string{"perl"}, setup: `cat > work.pl <<'PERL'
use strict; use threads; use threads::shared; use Thread::Queue;
my $q = Thread::Queue->new; my $total :shared = 0;
my @t = map { threads->create(sub { while (defined(my $i = $q->dequeue)) { my %h = map { $_ => rand } 1 .. $i % 50; lock $total; $total += keys %h } }) } 1 .. 4;
$q->enqueue($_) for 1 .. 400; $q->end; $_->join for @t; print "$total\n";
PERL
`, command: `perl work.pl`},
		{name: "ruby (threads)", needs: []string{"ruby"}, setup: `cat > work.rb <<'RUBY'
q = Queue.new; lock = Mutex.new; seen = Hash.new(0)
threads = 4.times.map { Thread.new { while (n = q.pop) != :end; s = (1..n % 50).map { rand.to_s }.join; lock.synchronize { seen[s.length] += 1 } end } }
100.times { |i| q << i }; 4.times { q << :end }; threads.each(&:join); puts seen.values.sum
RUBY
`, command: `ruby --disable-gems work.rb`,
			never: "a thread that waited 0.1 s for the interpreter's lock sets a flag that the running thread looks at"},
		{name: "node", needs: []string{"node"}, setup: `cat > work.js <<'JS'
const crypto = require('crypto'), fs = require('fs'), zlib = require('zlib');
let left = 8;
for (let i = 0; i < 8; i++)
  crypto.pbkdf2('p' + i, 'salt', 1000, 32, 'sha256', (e, key) => { zlib.deflate(key.toString('hex').repeat(100), () => { if (--left == 0) console.log('done'); }); });
fs.writeFileSync('x', JSON.stringify([...Array(1000).keys()])); fs.readFile('x', () => setTimeout(() => console.log('timer'), 5));
JS
`, command: `node work.js`,
			never: "threads of V8's garbage collector take their work by atomic instructions, which no event orders"},
		{name: "java", needs: []string{"java", "javac"}, setup: `cat > Work.java <<'JAVA'
import java.util.concurrent.*;
public class Work { public static void main(String[] a) throws Exception { var pool = Executors.newFixedThreadPool(3); var map = new ConcurrentHashMap<Integer, Integer>();
for (int i = 0; i < 300; i++) { int n = i; pool.submit(() -> map.merge(n % 17, n, Integer::sum)); } pool.shutdown(); pool.awaitTermination(1, TimeUnit.MINUTES); System.out.println(map.size()); } }
JAVA
javac -J-Xshare:auto Work.java`, command: `java -Xint -Xmx64m -XX:+UseSerialGC Work`,
			never: "threads take their pieces of the heap by an atomic instruction, which no event orders"},
		{name: "java (parallel collector)", needs: []string{"java", "javac"}, setup: `cat > Heap.java <<'JAVA'
import java.util.*; import java.util.concurrent.atomic.*;
public class Heap { static final AtomicLong sum = new AtomicLong(); static Object[] kept = new Object[4096];
public static void main(String[] a) throws Exception { var threads = new Thread[4];
for (int t = 0; t < 4; t++) { int n = t; threads[t] = new Thread(() -> { for (int i = 0; i < 40000; i++) { var list = new ArrayList<Integer>(); for (int k = 0; k < 20; k++) list.add(i * k);
kept[(i * 7 + n) & 4095] = list; sum.addAndGet(list.hashCode()); } }); threads[t].start(); }
for (var t : threads) t.join(); System.out.println(sum); } }
JAVA
javac -J-Xshare:auto Heap.java`, command: `java -Xmx64m -XX:+UseParallelGC -XX:ParallelGCThreads=4 Heap`,
			never: "threads of the collector take their work by atomic instructions, which no event orders"},
		{name: "openssl", needs: []string{"openssl"}, command: `openssl genrsa -out key.pem 2048`},
		{name: "curl", needs: []string{"curl", "python3"}, setup: `seq 20000 > page; python3 -m http.server --bind 127.0.0.1 $PORT >/dev/null 2>&1 & within curl -sf http://127.0.0.1:$PORT/page`,
			env: []string{fmt.Sprintf("PORT=%d", freePort(t))}, command: `curl -s -o got http://localhost:$PORT/page`},
		{name: "bash (pipelines)", needs: []string{"bash"}, setup: `cat > work.sh <<'SH'
total=0; for i in 1 2 3; do n=$(seq $((i * 1000)) | grep 7 | sort -rn | head -5 | wc -c); total=$((total + n)); done
(echo a; sleep 0.01; echo b) | while read -r x; do echo "$x$total"; done; sed s/1/2/ <<<"11" | tr 1 3 & wait; trap 'echo usr1' USR1; kill -USR1 $$; cat work.sh > copy
SH
`, command: `bash work.sh`},
		{name: "memcached", needs: []string{"memcached", "python3"}, command: `memcached -s mc.sock -t 4 -u $(id -un) -P $PWD/mc.pid`,
			rarely: "hits are counted by the list that an item is in, which is read without its lock while the lists' thread moves it", client: `
cat > client.py <<'PY'
import random, socket, threading
def client(n):
    rng, s = random.Random(n), socket.socket(socket.AF_UNIX); s.connect("mc.sock"); f = s.makefile("rwb")
    for i in range(200):
        key = b"k%d" % rng.randrange(50)
        if i % 2: f.write(b"set %s 0 0 100\r\n%s\r\n" % (key, b"v" * 100))
        else: f.write(b"get %s\r\n" % key)
        f.flush()
        while (line := f.readline()) not in (b"STORED\r\n", b"END\r\n"): assert line
threads = [threading.Thread(target=client, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
PY
within test -S mc.sock; within test -s mc.pid; python3 client.py; kill -ABRT $(cat mc.pid)`},
		{name: "redis-server", needs: []string{"redis-server", "redis-cli", "redis-benchmark"},
			command: `redis-server --port 0 --unixsocket $PWD/redis.sock --dir $PWD --save "" --pidfile $PWD/redis.pid --crash-log-enabled no --logfile $PWD/log`,
			client: `within redis-cli -s redis.sock ping
redis-benchmark -s redis.sock -n 300 -c 8 -P 4 -t set,get,lpush,hset -q >/dev/null; redis-cli -s redis.sock flushall async >/dev/null
kill -ABRT $(redis-cli -s redis.sock info server | tr -d '\r' | sed -n 's/^process_id://p')`},
		{name: "nginx", needs: []string{"nginx", "curl"}, env: nginxEnv(t, 1), command: `nginx -c $PWD/nginx.conf -e $PWD/error`, client: nginxClient, child: true, limits: shared, setup: nginxSetup},
		{name: "nginx (2 workers)", needs: []string{"nginx", "curl"}, never: "the workers number connections by a counter that they share", env: nginxEnv(t, 2), command: `nginx -c $PWD/nginx.conf -e $PWD/error`, client: nginxClient, child: true, limits: shared, setup: nginxSetup},
		{name: "apache2 -X", needs: []string{"apache2", "curl"}, env: apacheEnv(t), setup: apacheSetup, command: `apache2 -X -f $PWD/apache.conf`, rarely: "workers give their pools back to a list without a lock", client: `apache_load; kill -ABRT $(cat pid)`},
		{name: "apache2 (worker)", needs: []string{"apache2", "curl"}, env: apacheEnv(t), setup: apacheSetup, command: `apache2 -DFOREGROUND -f $PWD/apache.conf`, limits: shared, never: "the parent reports what its children wrote into shared memory", client: `apache_load
for worker in $(cat /proc/$(cat pid)/task/*/children); do kill -ABRT $worker; break; done; sleep 0.3; kill -TERM $(cat pid)`, child: true},
	} {
		t.Run(p.name, p.compareRuns)
	}
	for mode, never := range map[string]string{
		"delete": "",
		"wal":    "connections read the header of the log's index without a lock, and look whether they read it twice the same",
	} {
		t.Run("sqlite-"+mode, func(t *testing.T) {
			if exec.Command("gcc", "-E", "-include", "sqlite3.h", "-x", "c", "/dev/null").Run() != nil {
				t.Skip("libsqlite3-dev is not installed")
			}
			p := identity{name: "sqlite3 (4 threads, " + mode + ")", command: compiled(t, "sqlite.c", "-lsqlite3") + " " + mode, never: never}
			p.compareRuns(t)
		})
	}
	t.Run("c++", func(t *testing.T) {
		p := identity{name: "C++ threads", command: compiled(t, "threads.cc", "-std=c++17")}
		p.compareRuns(t)
	})
	t.Run("openmp", func(t *testing.T) {
		p := identity{name: "OpenMP", command: compiled(t, "openmp.c", "-fopenmp"), never: "threads take their iterations, and wait for each other, by atomic instructions"}
		p.compareRuns(t)
	})
	t.Run("queue", func(t *testing.T) {
		p := identity{name: "lock-free queue", command: compiled(t, "queue.c"), never: "which thread takes a cell of the queue is decided by an atomic instruction"}
		p.compareRuns(t)
	})
	t.Run("rust", func(t *testing.T) {
		rustc, err := exec.LookPath("rustc")
		if err != nil {
			need(t, "rustc")
		}
		program := filepath.Join(t.TempDir(), "threads")
		if out, err := exec.Command(rustc, "-O", "-o", program, "testdata/record/threads.rs").CombinedOutput(); err != nil {
			t.Fatalf("rustc: %v\n%s", err, out)
		}
		for argument, never := range map[string]string{
			"":         "who gets a lock of std is decided by an atomic instruction, which no event orders",
			"channels": "a channel's ends wait for each other in loops on atomic variables",
		} {
			t.Run("rust-"+argument, func(t *testing.T) {
				p := identity{name: strings.TrimSpace("Rust threads " + argument), command: program + " " + argument, never: never}
				p.compareRuns(t)
			})
		}
	})
	t.Run("daemon", func(t *testing.T) {
		p := identity{name: "daemon", command: compiled(t, "daemon.c"), client: `within test -s daemon.pid; within eval '! find $RECORDINGS -type d -regex ".*/children/[0-9]*-[0-9]*" ! -exec test -e {}/manifest.json \; -print | grep -q . && ! grep -rq "\"running\"" --include=manifest.json $RECORDINGS'`, child: true}
		p.compareRuns(t)
	})
}

// shared: the processes count in memory that they share.
var shared = []string{"shared"}

func nginxEnv(t testing.TB, workers int) []string {
	return []string{fmt.Sprintf("PORT=%d", freePort(t)), fmt.Sprintf("WORKERS=%d", workers)}
}

const nginxSetup = `
mkdir -p root logs; seq 5000 > root/large.txt; echo small > root/small.txt
{ [ "$(id -u)" != 0 ] || echo "user $(id -un) $(id -gn);"
cat <<NGINX
worker_processes $WORKERS; daemon off; pid $PWD/nginx.pid; error_log $PWD/error;
events { worker_connections 64; }
http { access_log $PWD/logs/access; gzip on; gzip_types text/plain; gzip_min_length 100;
  client_body_temp_path $PWD/b; proxy_temp_path $PWD/p; fastcgi_temp_path $PWD/f; uwsgi_temp_path $PWD/u; scgi_temp_path $PWD/s;
  server { listen 127.0.0.1:$PORT; root $PWD/root; } }
NGINX
} > nginx.conf`

// One worker fails, and the others are told to end.
const nginxClient = `
within curl -sf http://127.0.0.1:$PORT/small.txt
for i in {1..20}; do curl -s http://127.0.0.1:$PORT/{small.txt,large.txt,nothing} >/dev/null; curl -s --compressed http://127.0.0.1:$PORT/large.txt | cmp - root/large.txt; done
master=$(cat nginx.pid); workers=$(cat /proc/$master/task/*/children); for w in $workers; do kill -ABRT $w; done; sleep 0.2; kill -TERM $master`

func apacheEnv(t testing.TB) []string { return []string{fmt.Sprintf("PORT=%d", freePort(t))} }

const apacheSetup = `
mkdir root; echo small > root/small.txt; seq 5000 > root/large.txt; modules=/usr/lib/apache2/modules
cat > apache.conf <<CONF
ServerRoot $PWD
ServerName localhost
PidFile $PWD/pid
Mutex file:$PWD
LoadModule mpm_worker_module $modules/mod_mpm_worker.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule deflate_module $modules/mod_deflate.so
Listen 127.0.0.1:$PORT
StartServers 1
ServerLimit 1
ThreadsPerChild 8
MaxRequestWorkers 8
DocumentRoot $PWD/root
ErrorLog $PWD/error
CONF
apache_load() { within curl -sf http://127.0.0.1:$PORT/small.txt; for i in {1..10}; do curl -s http://127.0.0.1:$PORT/{small.txt,large.txt,nothing} >/dev/null & done; for job in $(jobs -p); do [ $job = $recorder ] || wait $job; done; }
`
