package load

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// Home makes an empty directory.
func Home(dir, name string) (string, error) {
	home := filepath.Join(dir, name)
	if err := os.RemoveAll(home); err != nil {
		return "", err
	}
	return home, os.MkdirAll(home, 0o755)
}

// NginxConfiguration is for Site.
const NginxConfiguration = `daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/errors;
events { worker_connections 256; }
http {
  access_log off; gzip on; gzip_types text/plain; gzip_min_length 100; default_type text/plain;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
  server { listen 127.0.0.1:%[2]d; root %[1]s; keepalive_requests 100; }
}
`

// The names of what Site writes.
const (
	Configuration = "configuration"
	Page          = "/page.txt"
)

// Site writes a page and a configuration with the directory and a free port in
// it, and returns the address.
func Site(dir, configuration string, page []byte) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := listener.Addr().(*net.TCPAddr)
	listener.Close()
	if err := os.WriteFile(filepath.Join(dir, Page), page, 0o644); err != nil {
		return "", err
	}
	return address.String(), os.WriteFile(filepath.Join(dir, Configuration), fmt.Appendf(nil, configuration, dir, address.Port), 0o644)
}

var wrkRequests = regexp.MustCompile(`(\d+) requests in`)

// Wrk asks a server at an address for a page, compressed, over so many connections
// and for two seconds: it asks for a time and not for a number of requests, which
// it returns.
func Wrk(address, page string, connections int) (float64, error) {
	out, err := exec.Command("wrk", "-d", "2s", "-t", "1", "-c", strconv.Itoa(connections), "-H", "Accept-Encoding: gzip", "http://"+address+page).CombinedOutput()
	m := wrkRequests.FindSubmatch(out)
	if err != nil || m == nil || bytes.Contains(out, []byte("Non-2xx")) {
		return 0, fmt.Errorf("wrk: %v: %s", err, Tail(string(out)))
	}
	requests, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil || requests == 0 {
		return 0, fmt.Errorf("wrk: %s requests", m[1])
	}
	return requests, nil
}

// Await connects until a server listens.
func Await(network, address string) error {
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var conn net.Conn
		if conn, err = net.Dial(network, address); err == nil {
			return conn.Close()
		}
	}
	return fmt.Errorf("the server does not listen: %w", err)
}
