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

// The server says where it is, answers, and ends with status 0 when it is told to.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "corpus")
	store, err := corpus.Create(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Add(t.Context(), recorded(t, 1), corpus.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	store.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := exec.CommandContext(t.Context(), exe, "serve", "--corpus", dir, "--listen", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), "DIAGNOSE_TEST_MAIN=1")
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(said).ReadString('\n')
		_, at, found := strings.Cut(strings.TrimSpace(line), " is at ")
		if err != nil || !found {
			t.Fatalf("it says %q, %v", line, err)
		}
		answer, err := http.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if answer.Body.Close(); err != nil || answer.StatusCode != 200 || !strings.Contains(string(text), "1 not diagnosed yet") {
			t.Errorf("status %d, %v: %s", answer.StatusCode, err, text)
		}
		if err := cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%v: %v", end, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%v does not end it", end)
		}
	}
}
