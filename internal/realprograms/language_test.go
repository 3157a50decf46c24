package realprograms

import (
	"fmt"
	"path/filepath"
	"testing"

	"diagnose/agent"
)

func TestLanguages(t *testing.T) {
	t.Parallel()
	for _, w := range []work{
		{name: "perl", needs: []string{"perl"}, uses: []string{"perl"}, script: `
cat > work.pl <<'PERL'
use strict; use warnings; use threads; use threads::shared; use Thread::Queue;
use Storable qw(freeze thaw dclone); use JSON::PP; use Data::Dumper; use List::Util qw(sum reduce); use POSIX ();
use Encode; use Time::Local; use Digest::SHA qw(sha256_hex); use File::Temp; use IO::Handle; use Compress::Zlib;
$| = 1; $Data::Dumper::Sortkeys = 1; my $scale = $ENV{SCALE};
my %count; $count{$_ % 997} .= "$_," for 1 .. 40000 * $scale;
print sha256_hex(join ";", map { "$_=$count{$_}" } sort { $a <=> $b } keys %count), "\n";
my $text = join " ", map { "word$_ " . "x" x ($_ % 50) } 1 .. 3000;
my $hits = () = $text =~ /\b(w\w+?)(\d+)\s+x{3,7}\b/g; (my $t = $text) =~ s/(\d+)/<$1>/g; print "$hits ", length $t, "\n";
my $deep = []; $deep = [$deep, {n => $_}] for 1 .. 200; print length(freeze($deep)), " ", scalar @{dclone($deep)}, "\n";
print encode_json([map { {id => $_} } 1 .. 5]) =~ tr/{//, " ", Dumper({a => [1, {b => undef}], c => \"s"});
for my $n (1 .. 25) {
    pipe(my $r, my $w) or die; my $pid = fork // die;
    unless ($pid) { close $r; my %h = map { $_ => "v" x $_ } 1 .. 200; print $w sum(map { length } values %h) + $n, "\n"; close $w; POSIX::_exit($n % 3) }
    close $w; print scalar <$r>; waitpid $pid, 0; print $? >> 8, "\n";
}
my $q = Thread::Queue->new; my $total :shared = 0;
my @t = map { threads->create(sub { while (defined(my $i = $q->dequeue)) { my @l = map { $_ x 10 } 1 .. $i % 100; lock $total; $total += @l } }) } 1 .. 4;
$q->enqueue($_) for 1 .. 2000 * $scale; $q->end; $_->join for @t; print "$total\n";
print join(",", map { threads->create(sub { my @x = (1) x 1000; scalar @x })->join } 1 .. 20), "\n";
for (1 .. 300) { my $code = eval "sub { my \$x = shift; \$x * $_ + " . ($_ % 7) . " }" or die; $code->(3) == 3 * $_ + $_ % 7 or die }
my $z = compress($text, 9); print length($z), " ", uncompress($z) eq $text ? "same" : "differs", "\n";
print decode("UTF-8", "\xc3\xa9") eq "\x{e9}" ? "utf8\n" : "not\n", sprintf("%.3f %s\n", atan2(1, 1), reverse "abc");
eval { die { code => 42 } }; print "died $@->{code}\n"; local $SIG{ALRM} = sub { print "alarm\n" }; kill ALRM => $$;
my $out = qx(echo from the shell; exit 3); print $out, $? >> 8, "\n"; open my $p, "-|", "sort -r <<E\n1\n2\nE" or die; print <$p>;
{ package Node; sub new { bless {v => $_[1]}, $_[0] } sub DESTROY { $main::dead++ } } Node->new($_) for 1 .. 1000; print "$main::dead\n";
format STDOUT =
@<<<<< @>>>>>
$hits, $total
.
write;
PERL
perl work.pl; perl -MCPAN::Meta::YAML -e 'print "yaml\n"'; perl -e 'exec "echo", "exec"'; perl -c -e 'syntax (' || echo "status $?"
perl -ne 'print if /a.*b/ .. /c/' work.pl | md5sum
`},
		{name: "python", needs: []string{"python3"}, uses: []string{"python3"}, script: pythonWork},
		// Every object of Python a malloc of its own.
		{name: "python-malloc", needs: []string{"python3"}, uses: []string{"python3"}, script: pythonWork, env: []string{"PYTHONMALLOC=malloc"}},
		{name: "node", needs: []string{"node"}, uses: []string{"node"}, script: `
cat > work.js <<'JS'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const zlib = require('zlib'), crypto = require('crypto'), fs = require('fs'), { execFileSync, spawn } = require('child_process');
if (!isMainThread) {
  const lists = []; for (let i = 0; i < 20000; i++) lists.push({ i, s: 'x'.repeat(i % 100) });
  parentPort.postMessage([workerData, lists.reduce((n, l) => n + l.s.length, 0), crypto.createHash('sha256').update(JSON.stringify(lists)).digest('hex')]);
} else (async () => {
  const text = Buffer.from(Array.from({ length: 50000 * process.env.SCALE }, (_, i) => 'line ' + i).join('\n'));
  const packed = zlib.gzipSync(text, { level: 6 }); console.log(packed.length, zlib.gunzipSync(packed).equals(text));
  const brotli = await new Promise((ok, no) => zlib.brotliCompress(text, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }, (e, b) => e ? no(e) : ok(b))); console.log(brotli.length);
  const answers = await Promise.all([1, 2, 3].map(n => new Promise((ok, no) => new Worker(__filename, { workerData: n }).on('message', ok).on('error', no))));
  console.log(answers.sort());
  console.log(crypto.pbkdf2Sync('p', 's', 1000, 32, 'sha512').toString('hex'), crypto.createCipheriv('aes-128-cbc', Buffer.alloc(16), Buffer.alloc(16)).update(text).length);
  const keys = await Promise.all([1, 2, 3, 4, 5, 6].map(n => new Promise(ok => crypto.scrypt('p' + n, 's', 16, (e, k) => ok(k.toString('hex')))))); console.log(keys);
  fs.writeFileSync('out', text.subarray(0, 1000)); await fs.promises.copyFile('out', 'copy');
  console.log(execFileSync('echo', ['child']).toString(), 'a-b-c'.replace(/-(\w)/gu, (m, c) => c.toUpperCase()), new Intl.NumberFormat('de').format(12345.6));
  const { port1, port2 } = new MessageChannel(); port1.postMessage(new Uint8Array(1e6)); port2.once('message', m => { console.log(m.length); port2.close(); });
  const wasm = new WebAssembly.Module(Buffer.from('0061736d01000000', 'hex')); console.log(WebAssembly.Module.exports(wasm).length);
  const server = require('http').createServer((q, r) => r.end('served ' + q.url)).listen(0, '127.0.0.1', async () => {
    for (let i = 0; i < 20; i++) console.log(await (await fetch('http://127.0.0.1:' + server.address().port + '/' + i)).text());
    server.close(); server.closeAllConnections();
  });
})();
JS
node work.js; node -e 'process.exit(7)' || echo "status $?"
`},
		{name: "java", needs: []string{"java", "javac"}, uses: []string{"java", "javac"}, script: `
cat > Work.java <<'JAVA'
import java.util.*; import java.util.concurrent.*; import java.util.stream.*; import java.util.zip.*; import java.nio.*; import java.nio.file.*;
public class Work {
  static int deep(int n) { return n == 0 ? 0 : 1 + deep(n - 1); }
  public static void main(String[] args) throws Exception {
    int scale = Integer.parseInt(System.getenv("SCALE"));
    ExecutorService pool = Executors.newFixedThreadPool(4); List<Future<Long>> sums = new ArrayList<>();
    for (int k = 0; k < 16; k++) { int seed = k; sums.add(pool.submit(() -> { Random r = new Random(seed); long sum = 0; List<byte[]> keep = new ArrayList<>();
      for (int i = 0; i < 20000 * scale; i++) { byte[] b = new byte[r.nextInt(500)]; sum += b.length; if (i % 50 == 0) keep.add(b); } return sum + keep.size(); })); }
    for (Future<Long> f : sums) System.out.println(f.get()); pool.shutdown();
    System.out.println(IntStream.range(0, 200000).parallel().mapToLong(i -> i % 7).sum());
    String s = null; int caught = 0; // the virtual machine's own SIGSEGV handler
    for (int i = 0; i < 50000; i++) try { if (s.length() > 0) caught--; } catch (NullPointerException e) { caught++; } System.out.println(caught);
    try { deep(1 << 30); } catch (StackOverflowError e) { System.out.println("overflow"); }
    try { long[][] all = new long[1 << 20][]; for (int i = 0; ; i++) all[i] = new long[1 << 20]; } catch (OutOfMemoryError e) { System.out.println("out of memory"); }
    Deflater d = new Deflater(); d.setInput(new byte[1 << 20]); d.finish(); byte[] out = new byte[1 << 16]; System.out.println(d.deflate(out)); d.end();
    for (int i = 0; i < 200; i++) { ByteBuffer.allocateDirect(100000).putInt(0, i); Thread t = new Thread(() -> {}); t.start(); t.join(); }
    Process p = new ProcessBuilder("echo", "child").redirectErrorStream(true).start(); System.out.println(new String(p.getInputStream().readAllBytes()) + p.waitFor());
    System.out.println(Pattern()); System.gc(); Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook"))); System.exit(3);
  }
  static String Pattern() { return java.util.regex.Pattern.compile("(a+)(b*)").matcher("xaabbb").replaceAll("[$2$1]"); }
}
JAVA
javac Work.java; java -Xmx64m -XX:-UsePerfData Work || echo "status $?"; java -XX:+UseParallelGC -Xmx64m -XX:-UsePerfData -Xint -XX:NativeMemoryTracking=summary Work || echo "status $?"; java -version 2>&1
`},
		{name: "ruby", needs: []string{"ruby"}, uses: []string{"ruby"}, script: `
ruby -rjson -rdigest -rzlib -rset -e '
h = Hash.new { |m, k| m[k] = [] }; (20000 * ENV["SCALE"].to_i).times { |i| h[i % 313] << "v#{i}" }; puts Digest::SHA256.hexdigest(h.sort.to_s)
puts 8.times.map { |n| Thread.new { (1..2000).map { |i| (i * n).to_s }.join.size } }.map(&:value).inspect
10.times { |i| r, w = IO.pipe; pid = fork { r.close; w.puts "x" * 1000 * i; exit!(i) }; w.close; puts r.read.size; Process.wait pid; puts $?.exitstatus }
puts JSON.parse(JSON.generate((1..200).map { |i| { "k#{i}" => [i, nil, 1.5] } })).size, Zlib.inflate(Zlib.deflate("abc" * 10000)).size
f = Fiber.new { 1000.times { |i| Fiber.yield i }; :done }; s = 0; while (v = f.resume) != :done do s += v end; puts s
GC.compact rescue puts "no"; GC.start; puts 3 ** 2000 % 10007, "aXbX".gsub(/x/i) { |c| c.ord.to_s }, [3, 1, 2].to_set.sort.inspect, eval("1 + 1"), %x(echo sub)
puts Ractor.new { 42 }.take rescue puts "ractor"
' 2>&1
`, varies: []string{`^<internal.*Ractor.*\n|^-e:.*Ractor.*`}},
		{name: "lua", needs: []string{"lua5.4"}, uses: []string{"lua5.4"}, script: `
lua5.4 -e 'local t = {} for i = 1, 200000 do t[i] = ("s"):rep(i % 40) .. i end table.sort(t) print(#t, t[1], t[#t])
for i = 1, 2000 do coroutine.wrap(function() coroutine.yield(i) end)() end
local s = {} for w in ("one two three"):gmatch("%a+") do s[#s + 1] = w:upper() end print(table.concat(s, ",")) collectgarbage() print(pcall(error, "x"), select("#", table.unpack({}, 1, 200)))
print(string.format("%q %5.1f", "a\nb", 2.25), load("return 6 * 7")(), utf8.len("äö"))'
`},
	} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.compareSettings(t)
		})
	}
}

const pythonWork = `
cat > work.py <<'PY'
import array, asyncio, bz2, collections, concurrent.futures, csv, ctypes, ctypes.util, decimal, gc, hashlib, io, itertools, json, lzma, mmap
import multiprocessing, os, pickle, random, re, select, signal, socket, sqlite3, struct, subprocess, sys, tempfile, threading, unicodedata, weakref, zlib
import xml.etree.ElementTree as ET

scale = int(os.environ["SCALE"])

def square(n):
    return hashlib.sha256(json.dumps([{str(i): [i] * (i % 7)} for i in range(n)]).encode()).hexdigest()

def main():
    random.seed(7)
    words = collections.Counter(random.choice("abcdefgh") * random.randrange(60) for _ in range(20000 * scale))
    print(words.most_common(3), hashlib.md5(repr(sorted(words.items())).encode()).hexdigest())
    data = b"".join(b"%d lines of text\n" % i for i in range(30000))
    for codec in (zlib, bz2, lzma):
        packed = codec.compress(data); print(codec.__name__, len(packed), codec.decompress(packed) == data)
    text = data.decode(); print(len(re.findall(r"\b(\d)\d*\1\b", text)), len(re.sub(r"(\d+) (\w+)", r"\2 \1", text)))
    db = sqlite3.connect(":memory:"); db.execute("create table t(a, b)")
    db.executemany("insert into t values(?, ?)", ((i, "x" * (i % 50)) for i in range(5000)))
    print(db.execute("select sum(a), sum(length(b)) from t where a % 3 = 0").fetchall())
    with multiprocessing.Pool(3) as pool: print(pool.map(square, range(0, 400, 40)))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool: print(list(pool.map(square, [10, 20])))
    queue = multiprocessing.get_context("forkserver").Queue()
    child = multiprocessing.get_context("forkserver").Process(target=queue.put, args=([1] * 10000,)); child.start(); print(len(queue.get())); child.join()
    with concurrent.futures.ThreadPoolExecutor(8) as pool: print(list(pool.map(square, [100] * 16)) == [square(100)] * 16)
    results = []
    for _ in range(200):
        t = threading.Thread(target=lambda: results.append(len([str(i) for i in range(50)]))); t.start(); t.join()
    print(sum(results))
    for i in range(20):
        pid = os.fork()
        if pid == 0:
            blocks = [bytes(j * 100) for j in range(100)]; os._exit(len(blocks) - 100 + i)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), end=" ")
    libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; libc.realloc.restype = ctypes.c_void_p
    libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]; libc.free.argtypes = [ctypes.c_void_p]
    for n in range(1, 200000, 777): libc.free(libc.realloc(libc.malloc(n), n * 2))
    handles = [ctypes.CDLL("libm.so.6").cos for _ in range(50)]
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
    numbers = (ctypes.c_int * 100)(*random.sample(range(1000), 100)); libc.qsort(numbers, 100, 4, callback); print(list(numbers) == sorted(numbers))
    a, b = socket.socketpair(); a.sendall(b"x" * 1000); print(len(b.recv(2000)))
    async def work(n): await asyncio.sleep(0); return sum(range(n))
    async def all(): return await asyncio.gather(*(work(n) for n in range(300)))
    print(sum(asyncio.run(all())))
    root = ET.fromstring("<a>" + "".join(f"<b n='{i}'>t{i}</b>" for i in range(3000)) + "</a>"); print(len(ET.tostring(root)), len(root.findall("b[@n='7']")))
    class Node: pass
    for _ in range(1000): n = Node(); n.me = n; n.list = [n] * 10
    print(gc.collect() > 0, decimal.Decimal(2).sqrt(decimal.Context(prec=200)), 3 ** 3000 % 1000003)
    print(subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 5"], capture_output=True), subprocess.getoutput("echo shell"))
    big = bytearray()
    for i in range(2000): big += b"y" * i
    print(len(big), zlib.crc32(pickle.dumps({i: str(i) for i in range(10000)})), len(array.array("d", range(100000)) * 3))
    m = mmap.mmap(-1, 1 << 20); m[:5] = b"hello"; print(m[:5], unicodedata.normalize("NFKD", "é").encode())
    signal.signal(signal.SIGALRM, lambda *_: print("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()
    sys.setrecursionlimit(5000); f = lambda n: 0 if n == 0 else 1 + f(n - 1); print(f(4000))
    try: [0] * (1 << 60)
    except MemoryError: print("MemoryError")

if __name__ == "__main__": main()
PY
python3 -X faulthandler work.py; rm -rf __pycache__; (ulimit -c 0; python3 -c 'import subprocess; print(subprocess.run(["python3", "-c", "import ctypes; ctypes.string_at(0)"]).returncode)')
python3 -m venv --help | md5sum; python3 -m compileall -q -o 1 work.py; rm -rf __pycache__; python3 -c 1/0 || echo "status $?"
`

// TestPythonSuite runs the quick part of Python's own test suite. What its
// timings do not show is compared: the verdict of each test.
func TestPythonSuite(t *testing.T) {
	t.Parallel()
	if suite, _ := filepath.Glob("/usr/lib/python3.*/test/test_dict.py"); suite == nil {
		t.Skip((&agent.UnsupportedError{What: "Python's test suite is not installed"}).Error())
	}
	modules := "test_dict test_list test_json test_re test_struct test_threading_local test_dynamicclassattribute test_gc test_ctypes test_fork1 test_weakref"
	if soak() {
		modules = "-x test_gdb test_urllibnet test_urllib2net test_ssl test_tools test_distutils"
	}
	work{name: "python-suite", needs: []string{"python3"}, uses: []string{"python3"}, script: fmt.Sprintf(`
export TMPDIR=$PWD
python3 -m test -v %s > log 2>&1 || echo "status $?"
grep -aE '^[a-zA-Z_0-9]+ \(.*\) \.\.\. ' log | sort | uniq; grep -aE '^(FAILED|OK|All|Result:)' log
rm -rf log tmp* build
`, modules)}.compareSettings(t)
}
