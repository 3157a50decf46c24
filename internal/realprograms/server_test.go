package realprograms

import (
	"fmt"
	"net"
	"testing"
)

// freePort is a port without a listener. A second listener at it would make the plain run fail.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// within is a bash function that waits for a command's success, and stop ends
// the server in the background and prints how it ended.
const within = `
within() { for _ in {1..400}; do "$@" >/dev/null 2>&1 && return; sleep 0.05; done; echo "never: $*"; return 1; }
stop() { kill "$1" && for _ in {1..400}; do kill -0 "$1" 2>/dev/null || break; sleep 0.05; done; wait "$1" || echo "server: status $?"; }
`

func TestServers(t *testing.T) {
	t.Parallel()
	seconds := size(1, 60)
	for _, w := range []work{
		{name: "redis", needs: []string{"redis-server", "redis-cli", "redis-benchmark"},
			uses: []string{"redis-server", "redis-benchmark", "redis-cli"}, script: within + fmt.Sprintf(`
redis-server --port 0 --unixsocket redis.sock --dir . --save '' --appendonly no --io-threads 2 --io-threads-do-reads yes \
  --maxmemory 64mb --maxmemory-policy allkeys-lru --lazyfree-lazy-eviction yes --daemonize no --logfile log --hash-max-listpack-entries 16 &
server=$!
cli() { redis-cli -s redis.sock "$@"; }
within cli ping
redis-benchmark -s redis.sock -n %d -c 16 --threads 2 -P 8 -r 10000 -t set,incr,lpush,lpop,sadd,hset,zadd,zpopmin,mset --csv | cut -d, -f1
redis-benchmark -s redis.sock -n %d -c 16 -t lrange_100 --csv | cut -d, -f1
redis-benchmark -s redis.sock -n %d -c 16 -d 5000 -t set,get --csv | cut -d, -f1
cli flushall async
cat > commands <<'REDIS'
eval "for i=1,3000 do redis.call('set','k'..i,string.rep('v',i%%300)); redis.call('hset','h'..(i%%7),i,i*i); redis.call('zadd','z',i*7919%%1000,'m'..i); redis.call('lpush','l',i); redis.call('sadd','s'..(i%%3),i) end return redis.call('dbsize')" 0
zrangebyscore z 10 20 withscores
hlen h3
sort l limit 0 10 by nosort get # get k*
sunionstore u s0 s1 s2
scard u
append k7 tail
setrange k8 5000 x
strlen k8
xadd stream 1-1 a b
xadd stream 1-2 c d
xrange stream - +
geoadd g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
georadius g 15 37 200 km withdist
pfadd hll a b c d
pfcount hll
object encoding h3
multi
incr counter
incrby counter 41
exec
bitop not b k7
dump counter
lpos l 77
lrange l 0 5
config set activerehashing no
expire k1 -1
exists k1 k2
unlink l z
function load "#!lua name=lib\nredis.register_function('f', function(k, a) return #a end)"
fcall f 0 1 2 3
acl setuser joe on >secret ~k* +get
client list type pubsub
config set maxmemory 4mb
bgsave
REDIS
cli < commands
within eval 'cli info persistence | grep "rdb_bgsave_in_progress:0"'
cli info persistence | tr -d '\r' | grep -E 'rdb_last_bgsave_status|rdb_saves'
cli config set maxmemory 200mb; cli config set appendonly yes
within eval 'cli info persistence | grep "aof_rewrite_in_progress:0"'; cli bgrewriteaof
within eval 'cli info persistence | grep "aof_rewrite_in_progress:0"'
cli save
cli memory malloc-stats | wc -l >/dev/null; cli memory purge; cli config set activedefrag yes; cli memory doctor >/dev/null
cli shutdown nosave || true; wait $server && echo "ended well"
redis-check-rdb dump.rdb | tail -1 | cut -c1-30; rm -rf log dump.rdb appendonlydir redis.sock
`, size(4000, 1000000), size(500, 200000), size(2000, 200000))},
		{name: "memcached", needs: []string{"memcached", "python3"}, uses: []string{"memcached", "python3"}, script: within + `
cat > client.py <<'PY'
import hashlib, os, random, socket, threading
def client(n):
    rng, s = random.Random(n), socket.socket(socket.AF_UNIX); s.connect("mc.sock"); f = s.makefile("rwb"); digest = hashlib.sha256()
    def ask(line, body=None, until=None):
        f.write(line.encode() + b"\r\n" + (body + b"\r\n" if body is not None else b"")); f.flush()
        while True:
            answer = f.readline(); digest.update(answer)
            if until is None or answer.startswith(until) or not answer: return
    for i in range(3000 * int(os.environ["SCALE"])):
        key = f"c{n}k{rng.randrange(200)}"
        match rng.randrange(8):
            case 0 | 1: size = rng.choice([1, 20, 100, 1000, 9000]); ask(f"set {key} 0 0 {size}", b"v" * size)
            case 2 | 3: ask(f"get {key} {key}x", until=b"END")
            case 4: ask(f"delete {key}")
            case 5: ask(f"set c{n}n 0 0 2", b"10"); ask(f"incr c{n}n {i}")
            case 6: ask(f"append {key} 0 0 3", b"abc")
            case 7: ask(f"mg {key} s v")  if False else ask(f"touch {key} 100")
    ask("set big 0 0 600000", b"b" * 600000); ask("bogus"); ask("get " + " ".join(f"x{i}" for i in range(500)), until=b"END")
    results[n] = digest.hexdigest()
results = {}
threads = [threading.Thread(target=client, args=(n,)) for n in range(6)]
[t.start() for t in threads]; [t.join() for t in threads]
for n in sorted(results): print(n, results[n])
PY
user=(); [ "$(id -u)" != 0 ] || user=(-u root)
memcached -s mc.sock -t 4 -m 64 -o slab_reassign,slab_automove=2,lru_crawler,hash_algorithm=murmur3 "${user[@]}" 2>/dev/null &
server=$!
within test -S mc.sock; python3 client.py; python3 client.py
stop $server; rm -f mc.sock
`},
		{name: "nginx", needs: []string{"nginx", "wrk", "curl", "gawk"}, uses: []string{"nginx", "wrk", "curl"},
			env: []string{fmt.Sprintf("PORT=%d", freePort(t))}, script: within + fmt.Sprintf(`
mkdir -p root/sub temp logs; seq 20000 > root/large.txt; echo '<html><!--# include virtual="/small.txt" --> <b>SSI</b></html>' > root/index.html; echo small > root/small.txt
{
  [ "$(id -u)" != 0 ] || echo "user $(id -un) $(id -gn);"
  cat <<NGINX
worker_processes 2; daemon off; pid $PWD/nginx.pid; error_log $PWD/logs/error crit;
events { worker_connections 128; }
http {
  access_log $PWD/logs/access; default_type text/plain;
  client_body_temp_path $PWD/temp/b; proxy_temp_path $PWD/temp/p; fastcgi_temp_path $PWD/temp/f; uwsgi_temp_path $PWD/temp/u; scgi_temp_path $PWD/temp/s;
  proxy_cache_path $PWD/temp/cache keys_zone=c:1m; limit_req_zone \$binary_remote_addr zone=l:1m rate=100000r/s;
  aio threads; sendfile on; open_file_cache max=10; gzip on; gzip_types text/plain; gzip_min_length 100; server_tokens off;
  upstream self { server 127.0.0.1:$PORT; keepalive 4; }
  server {
    listen 127.0.0.1:$PORT; root $PWD/root; etag off;
    location / { ssi on; }
    location ~ ^/re/(?<name>[a-z]+)$ { limit_req zone=l burst=100; return 200 "name \$name \$args\n"; }
    location /proxy/ { proxy_pass http://self/; proxy_cache c; proxy_cache_valid 200 1s; proxy_http_version 1.1; proxy_set_header Connection ""; }
    location /old { rewrite ^/old/(.*)$ /\$1 redirect; }
    location /put { client_body_in_file_only clean; client_max_body_size 4m; proxy_pass http://self/re/put; proxy_method GET; proxy_pass_request_body off; proxy_set_header Content-Length ""; }
  }
}
NGINX
} > nginx.conf
nginx -q -t -c $PWD/nginx.conf -e $PWD/logs/start; nginx -c $PWD/nginx.conf -e $PWD/logs/start & server=$!
url=http://127.0.0.1:$PORT; within curl -sf $url/small.txt
for path in index.html small.txt 're/abc?x=1' proxy/small.txt proxy/large.txt nothing old/small.txt sub; do
  echo "== $path"; curl -s -i --compressed $url/$path | grep -aviE '^(date|last-modified|connection|keep-alive):' | tr -d '\r' | gawk 'NR <= 30'
done
curl -s -r 100-200 $url/large.txt; head -c 1000000 /dev/zero | curl -s -X POST --data-binary @- $url/put
for path in small.txt large.txt proxy/large.txt index.html re/load; do
  wrk -t 2 -c 20 -d %ds $url/$path > load; grep -E 'Non-2xx|Socket errors' load || echo "$path fine"
done
old=$(cat /proc/$server/task/$server/children); kill -HUP $server
for worker in $old; do within eval "! kill -0 $worker"; done
curl -s -H 'Accept-Encoding: gzip' $url/large.txt | gzip -dc | cmp - root/large.txt
kill -QUIT $server; wait $server || echo "server: status $?"; grep 'on signal' logs/error || true; rm -rf logs temp load nginx.pid
`, max(1, seconds/5))},
	} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.compareSettings(t)
		})
	}
}
