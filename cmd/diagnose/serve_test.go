package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"diagnose/corpus"
)

// What would show failures to a network without a token is refused, and so is a token that others
// can read or that is short.
func TestServeRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "corpus")
	c, err := corpus.Create(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	token := func(text string, mode os.FileMode) string {
		name := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, x := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, exitUsage, "--token-file"},
		{[]string{"--listen", ":0"}, exitUsage, "--token-file"},
		{[]string{"--listen", "example.org:0"}, exitUsage, "--token-file"},
		{[]string{"--listen", "127.0.0.1"}, exitUsage, "--listen"},
		{[]string{"--token-file", token("0123456789abcdef", 0o644)}, exitUsage, "chmod 600"},
		{[]string{"--token-file", token("short", 0o600)}, exitUsage, "16"},
		{[]string{"--token-file", token("", 0o600)}, exitUsage, "empty"},
		{[]string{"--tls-cert", "x"}, exitUsage, "--tls-key"},
		{[]string{"--corpus", t.TempDir()}, exitInput, "is no corpus"},
		{[]string{"more"}, exitUsage, "more"},
	} {
		got := diagnose(t, nil, append([]string{"serve", "--corpus", dir}, x.args...)...)
		if got.status != x.status || !strings.Contains(got.stderr, x.says) {
			t.Errorf("%q: status %d: %s", x.args, got.status, got.stderr)
		}
	}
}

// serving is a server that a test started.
type serving struct {
	*exec.Cmd
	at string
}

func startServing(t *testing.T, args ...string) *serving {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &serving{Cmd: exec.CommandContext(t.Context(), exe, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)}
	s.Env = append(os.Environ(), "DIAGNOSE_TEST_MAIN=1")
	said, err := s.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	_, at, found := strings.Cut(strings.TrimSpace(line), " is at ")
	if err != nil || !found {
		t.Fatalf("it says %q, %v", line, err)
	}
	s.at = at
	return s
}

func (s *serving) get(t *testing.T) string {
	t.Helper()
	answer, err := http.Get(s.at)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("status %d, %v: %s", answer.StatusCode, err, text)
	}
	return string(text)
}

// end ends the server by a signal. Its status must be 0.
func (s *serving) end(t *testing.T, by syscall.Signal) {
	t.Helper()
	if err := s.Process.Signal(by); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%v: %v", by, err)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("%v does not end it", by)
	}
}

// The server says where it is, answers, and ends with status 0 when it is told to.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "corpus")
	if got := diagnose(t, nil, "corpus", "add", recorded(t, 1), "--corpus", dir); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	for _, by := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		s := startServing(t, "--corpus", dir)
		if text := s.get(t); !strings.Contains(text, "1 not diagnosed yet") {
			t.Error(text)
		}
		s.end(t, by)
	}
}

// Failures that others push are pulled and shown.
func TestServeEngine(t *testing.T) {
	dir := t.TempDir()
	from, at := filepath.Join(dir, "from"), listening(t)
	if got := diagnose(t, nil, "corpus", "add", recorded(t, 1), "--corpus", from); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	if got := diagnose(t, nil, "corpus", "push", "--corpus", from, "--engine", at); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	s := startServing(t, "--corpus", filepath.Join(dir, "cache"), "--engine", at)
	for end := time.Now().Add(30 * time.Second); !strings.Contains(s.get(t), "1 not diagnosed yet"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not shown")
		}
	}
	s.end(t, syscall.SIGTERM)
	if got := diagnose(t, nil, "serve", "--corpus", filepath.Join(dir, "cache"), "--listen", "127.0.0.1:0", "--engine", "http://x"); got.status != exitUsage {
		t.Errorf("%+v", got)
	}
}
