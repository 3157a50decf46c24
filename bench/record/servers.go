package main

import (
	"bytes"
	"fmt"
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

// servers are asked by clients that are not recorded; a cost is by request.
func servers(dir string) []program {
	return []program{
		server("memcached", dir, []string{"memcached"}, memcached),
		server("redis", dir, []string{"redis-server", "redis-benchmark"}, redis),
		server("nginx", dir, []string{"nginx", "wrk"}, nginx),
		server("apache2", dir, []string{"apache2", "wrk"}, apache),
	}
}

func server(name, dir string, commands []string, start func(dir string) (job, error)) program {
	return program{name: name, replayed: 100, commands: commands, job: func(way, int) (job, error) {
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

func memcached(dir string) (job, error) {
	socket := filepath.Join(dir, "socket")
	argv := []string{"memcached", "-s", socket, "-m", "256", "-t", "4"}
	if os.Getuid() == 0 {
		argv = append(argv, "-u", "root")
	}
	return job{argv: argv, dir: dir, serve: func() (float64, time.Duration, error) {
		if err := await("unix", socket); err != nil {
			return 0, 0, err
		}
		const clients, batches, batch = 4, 3000, 8
		start := time.Now()
		var all sync.WaitGroup
		var errs [clients]error
		for c := range clients {
			all.Go(func() { errs[c] = memcachedClient(socket, c, batches, batch) })
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				return 0, 0, fmt.Errorf("memcached: %w", err)
			}
		}
		return 2 * clients * batches * batch, time.Since(start), nil
	}}, nil
}

// memcachedClient sends batches of pairs of a set and a get.
func memcachedClient(socket string, number, batches, batch int) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	answer := make([]byte, 1<<16)
	for b := range batches {
		var ask bytes.Buffer
		for i := range batch {
			key := fmt.Sprintf("key:%d:%d", number, (b*batch+i*31)%9000)
			value := strings.Repeat("x", 20+(b+i*37)%900)
			fmt.Fprintf(&ask, "set %s 0 0 %d\r\n%s\r\nget %s\r\n", key, len(value), value, key)
		}
		ask.WriteString("mn\r\n")
		if _, err := conn.Write(ask.Bytes()); err != nil {
			return err
		}
		for last := []byte(nil); !bytes.HasSuffix(last, []byte("MN\r\n")); {
			n, err := conn.Read(answer)
			if err != nil {
				return err
			}
			last = append(last[max(0, len(last)-4):], answer[:n]...)
		}
	}
	return nil
}

func redis(dir string) (job, error) {
	socket := filepath.Join(dir, "socket")
	argv := []string{"redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir, "--logfile", filepath.Join(dir, "log")}
	return job{argv: argv, dir: dir, serve: func() (float64, time.Duration, error) {
		if err := await("unix", socket); err != nil {
			return 0, 0, err
		}
		const requests, tests = 15000, 6
		start := time.Now()
		load := exec.Command("redis-benchmark", "-s", socket, "-n", strconv.Itoa(requests), "-c", "20", "-P", "4", "-r", "20000", "-d", "120",
			"-t", "set,get,lpush,rpop,hset,zadd", "-q")
		out, err := load.CombinedOutput()
		if err != nil {
			return 0, 0, fmt.Errorf("redis-benchmark: %w: %s", err, tail(string(out)))
		}
		return requests * tests, time.Since(start), nil
	}}, nil
}

const nginxConfiguration = `daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/errors;
events { worker_connections 256; }
http {
  access_log off; gzip on; gzip_types text/plain; gzip_min_length 100; default_type text/plain;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
  server { listen 127.0.0.1:%[2]d; root %[1]s; keepalive_requests 100; }
}
`

func nginx(dir string) (job, error) {
	port, err := site(dir, nginxConfiguration)
	return job{argv: []string{"nginx", "-p", dir, "-c", filepath.Join(dir, "configuration")}, dir: dir, serve: wrk(port)}, err
}

const apacheConfiguration = `ServerRoot %[1]s
ServerName localhost
PidFile %[1]s/pid
Mutex file:%[1]s
LoadModule mpm_worker_module /usr/lib/apache2/modules/mod_mpm_worker.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
TypesConfig /etc/mime.types
AddOutputFilterByType DEFLATE text/plain
Listen 127.0.0.1:%[2]d
StartServers 1
ServerLimit 1
ThreadsPerChild 8
MaxRequestWorkers 8
DocumentRoot %[1]s
ErrorLog %[1]s/error
`

func apache(dir string) (job, error) {
	port, err := site(dir, apacheConfiguration)
	return job{argv: []string{"apache2", "-X", "-f", filepath.Join(dir, "configuration")}, dir: dir, serve: wrk(port)}, err
}

// site writes a page and a configuration and returns the port that it names.
func site(dir, configuration string) (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	var page bytes.Buffer
	for i := range 600 {
		fmt.Fprintf(&page, "line %d of a page with %x in it\n", i, i*2654435761)
	}
	if err := os.WriteFile(filepath.Join(dir, "page.txt"), page.Bytes(), 0o644); err != nil {
		return 0, err
	}
	return port, os.WriteFile(filepath.Join(dir, "configuration"), fmt.Appendf(nil, configuration, dir, port), 0o644)
}

var wrkRequests = regexp.MustCompile(`(\d+) requests in`)

// wrk asks for a time and not for a number of requests.
func wrk(port int) func() (float64, time.Duration, error) {
	address := fmt.Sprintf("127.0.0.1:%d", port)
	return func() (float64, time.Duration, error) {
		if err := await("tcp", address); err != nil {
			return 0, 0, err
		}
		start := time.Now()
		out, err := exec.Command("wrk", "-d", "2s", "-t", "1", "-c", "8", "-H", "Accept-Encoding: gzip", "http://"+address+"/page.txt").CombinedOutput()
		took := time.Since(start)
		m := wrkRequests.FindSubmatch(out)
		if err != nil || m == nil || bytes.Contains(out, []byte("Non-2xx")) {
			return 0, 0, fmt.Errorf("wrk: %v: %s", err, tail(string(out)))
		}
		requests, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil || requests == 0 {
			return 0, 0, fmt.Errorf("wrk: %s requests", m[1])
		}
		return requests, took, nil
	}
}

// await connects until a server listens.
func await(network, address string) error {
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var conn net.Conn
		if conn, err = net.Dial(network, address); err == nil {
			return conn.Close()
		}
	}
	return fmt.Errorf("the server does not listen: %w", err)
}
