package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"diagnose/bench/load"
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
		home, err := load.Home(dir, name)
		if err != nil {
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
		if err := load.Await("unix", socket); err != nil {
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
		if err := load.Await("unix", socket); err != nil {
			return 0, 0, err
		}
		const requests, tests = 15000, 6
		start := time.Now()
		ask := exec.Command("redis-benchmark", "-s", socket, "-n", strconv.Itoa(requests), "-c", "20", "-P", "4", "-r", "20000", "-d", "120",
			"-t", "set,get,lpush,rpop,hset,zadd", "-q")
		out, err := ask.CombinedOutput()
		if err != nil {
			return 0, 0, fmt.Errorf("redis-benchmark: %w: %s", err, load.Tail(string(out)))
		}
		return requests * tests, time.Since(start), nil
	}}, nil
}

func nginx(dir string) (job, error) {
	address, err := site(dir, load.NginxConfiguration)
	return job{argv: []string{"nginx", "-p", dir, "-c", filepath.Join(dir, load.Configuration)}, dir: dir, serve: wrk(address)}, err
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
	address, err := site(dir, apacheConfiguration)
	return job{argv: []string{"apache2", "-X", "-f", filepath.Join(dir, load.Configuration)}, dir: dir, serve: wrk(address)}, err
}

// site writes a page and a configuration and returns the address that it names.
func site(dir, configuration string) (string, error) {
	var page bytes.Buffer
	for i := range 600 {
		fmt.Fprintf(&page, "line %d of a page with %x in it\n", i, i*2654435761)
	}
	return load.Site(dir, configuration, page.Bytes())
}

func wrk(address string) func() (float64, time.Duration, error) {
	return func() (float64, time.Duration, error) {
		if err := load.Await("tcp", address); err != nil {
			return 0, 0, err
		}
		start := time.Now()
		requests, err := load.Wrk(address, load.Page, 8)
		return requests, time.Since(start), err
	}
}
