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
	"strings"
	"sync"

	"diagnose/bench/load"
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
		home, err := load.Home(dir, name)
		if err != nil {
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
		if err := load.Await("unix", socket); err != nil {
			return "", 0, err
		}
		fill := exec.Command("redis-benchmark", "-s", socket, "-n", "60000", "-c", "20", "-P", "8", "-r", "20000", "-d", "120",
			"-t", "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset", "-q")
		if out, err := fill.CombinedOutput(); err != nil {
			return "", 0, fmt.Errorf("redis-benchmark: %w: %s", err, load.Tail(string(out)))
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
		if err := load.Await("unix", socket); err != nil {
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

// nginx serves a compressed page under wrk, which runs for a time and not for
// a number of requests: the cost is by request.
func nginx(dir string) (job, error) {
	address, err := load.Site(dir, load.NginxConfiguration, words(60))
	return job{argv: []string{"nginx", "-p", dir, "-c", filepath.Join(dir, load.Configuration)}, dir: dir, serve: func() (string, float64, error) {
		if err := load.Await("tcp", address); err != nil {
			return "", 0, err
		}
		requests, err := load.Wrk(address, load.Page, 16)
		if err != nil {
			return "", 0, err
		}
		page, err := get(address, load.Page)
		return page, requests, err
	}}, err
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
		return "", fmt.Errorf("get %s: %v: %s", path, err, load.Tail(string(answer)))
	}
	return body, nil
}
