package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// servers are asked by clients that run under glibc; a server's cost is its
// own alone.
func servers(dir string) []program {
	return []program{
		server("redis", 4, dir, []string{"redis-server", "redis-benchmark", "redis-cli"}, redis),
		server("memcached", 10, dir, []string{"memcached"}, memcached),
		server("nginx", 1, dir, []string{"nginx", "wrk"}, nginx),
	}
}

func server(name string, threads int, dir string, commands []string, start func(dir string) (job, error)) program {
	return program{name: name, threads: threads, commands: commands, job: func(allocator, int) (job, error) {
		home := filepath.Join(dir, name)
		if err := os.RemoveAll(home); err != nil {
			return job{}, err
		}
		if err := os.MkdirAll(home, 0o755); err != nil {
			return job{}, err
		}
		return start(home)
	}}
}

// redis of Debian is linked with jemalloc, whose malloc would be the one that
// is compared with; libc, loaded before it, gives its own. Any other preload
// takes the place of this one.
func redis(dir string) (job, error) {
	socket := filepath.Join(dir, "socket")
	argv := []string{"redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir, "--logfile", filepath.Join(dir, "log")}
	return job{argv: argv, env: []string{"LD_PRELOAD=libc.so.6"}, dir: dir, serve: func() (string, float64, error) {
		if err := await("unix", socket); err != nil {
			return "", 0, err
		}
		load := exec.Command("redis-benchmark", "-s", socket, "-n", "60000", "-c", "20", "-P", "8", "-r", "20000", "-d", "120",
			"-t", "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset", "-q")
		if out, err := load.CombinedOutput(); err != nil {
			return "", 0, fmt.Errorf("redis-benchmark: %w: %s", err, tail(string(out)))
		}
		ask := exec.Command("redis-cli", "-s", socket)
		ask.Stdin = strings.NewReader(redisQuestions())
		out, err := ask.Output()
		return string(out), 1, err
	}}, nil
}

// redisQuestions have the same answers every time, other than the load's.
func redisQuestions() string {
	var b strings.Builder
	b.WriteString("flushall\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "set key%d %s\nrpush list%d a%d b%d\nhset hash%d f%d %d\nappend key%d more\n",
			i, strings.Repeat("v", i%300+1), i%37, i, i, i%11, i, i*i, i*7%2000)
	}
	b.WriteString("sort list5 alpha\nhgetall hash3\ndbsize\nget key1999\nget key14\n")
	return b.String()
}

// memcached is filled, overwritten, asked and emptied over four connections.
func memcached(dir string) (job, error) {
	socket := filepath.Join(dir, "socket")
	argv := []string{"memcached", "-s", socket, "-u", "root", "-m", "256", "-t", "4"}
	if os.Getuid() != 0 {
		argv = []string{"memcached", "-s", socket, "-m", "256", "-t", "4"}
	}
	return job{argv: argv, dir: dir, serve: func() (string, float64, error) {
		if err := await("unix", socket); err != nil {
			return "", 0, err
		}
		const connections = 4
		var answers [connections]string
		var errs [connections]error
		var all sync.WaitGroup
		for c := range connections {
			all.Go(func() { answers[c], errs[c] = memcachedClient(socket, c) })
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				return "", 0, fmt.Errorf("memcached: %w", err)
			}
		}
		return strings.Join(answers[:], "\n"), 1, nil
	}}, nil
}

// memcachedClient sends batches and reads their answers, of which it returns
// the digest.
func memcachedClient(socket string, number int) (string, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	const batch, batches = 50, 1200
	answers, digest := bufio.NewReader(conn), sha256.New()
	for b := range batches {
		var ask bytes.Buffer
		for i := range batch {
			key := fmt.Sprintf("key:%d:%d", number, (b*batch+i*31)%9000)
			value := strings.Repeat("x", 20+(b+i*37)%900)
			fmt.Fprintf(&ask, "set %s 0 0 %d\r\n%s\r\nget %s key:%d:%d\r\n", key, len(value), value, key, number, b)
			if i%10 == 0 {
				fmt.Fprintf(&ask, "delete %s noreply\r\n", key)
			}
		}
		ask.WriteString("mn\r\n")
		if _, err := conn.Write(ask.Bytes()); err != nil {
			return "", err
		}
		for {
			line, err := answers.ReadString('\n')
			if err != nil {
				return "", err
			}
			if line == "MN\r\n" {
				break
			}
			io.WriteString(digest, line)
		}
	}
	return fmt.Sprintf("%x", digest.Sum(nil)), nil
}

const nginxConfiguration = `daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/errors;
events { worker_connections 256; }
http {
  access_log off; gzip on; gzip_types text/plain; gzip_min_length 100; default_type text/plain;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
  server { listen unix:%[1]s/socket; listen 127.0.0.1:%[2]d; root %[1]s; keepalive_requests 100; }
}
`

var wrkRequests = regexp.MustCompile(`(\d+) requests in`)

// nginx serves a compressed page under wrk, which runs for a time and not for
// a number of requests: the cost is by request.
func nginx(dir string) (job, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		return job{}, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	if err := os.WriteFile(filepath.Join(dir, "page.txt"), words(60), 0o644); err != nil {
		return job{}, err
	}
	configuration := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(configuration, fmt.Appendf(nil, nginxConfiguration, dir, port), 0o644); err != nil {
		return job{}, err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/page.txt", port)
	return job{argv: []string{"nginx", "-p", dir, "-c", configuration}, dir: dir, serve: func() (string, float64, error) {
		if err := await("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
			return "", 0, err
		}
		out, err := exec.Command("wrk", "-d", "2s", "-t", "1", "-c", "16", "-H", "Accept-Encoding: gzip", url).CombinedOutput()
		m := wrkRequests.FindSubmatch(out)
		if err != nil || m == nil || bytes.Contains(out, []byte("Non-2xx")) {
			return "", 0, fmt.Errorf("wrk: %v: %s", err, tail(string(out)))
		}
		requests, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil || requests == 0 {
			return "", 0, fmt.Errorf("wrk: %s requests", m[1])
		}
		page, err := get("127.0.0.1:"+strconv.Itoa(port), "/page.txt")
		return page, requests, err
	}}, nil
}

// get returns the body of a page.
func get(address, path string) (string, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.0\r\n\r\n", path)
	answer, err := io.ReadAll(conn)
	_, body, ok := strings.Cut(string(answer), "\r\n\r\n")
	if err != nil || !ok {
		return "", fmt.Errorf("get %s: %v: %s", path, err, tail(string(answer)))
	}
	return body, nil
}

// await connects until a server listens.
func await(network, address string) error {
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var conn net.Conn
		if conn, err = net.Dial(network, address); err == nil {
			return conn.Close()
		}
	}
	return fmt.Errorf("the server does not listen: %w", err)
}
