package object

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// server serves debug files by build-id and counts requests.
type server struct {
	*httptest.Server
	requests atomic.Int32
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// download is a stripped object, the path by which its debug file is requested,
// and the path where it is cached.
type download struct {
	separate
	id, path, cache string
}

func downloadable(t *testing.T) download {
	t.Helper()
	d := download{separate: stripped(t), cache: t.TempDir()}
	d.id = open(t, d.object).BuildID()
	d.path = "/buildid/" + d.id + "/debuginfo"
	moved := filepath.Join(t.TempDir(), "served")
	d.move(t, moved)
	d.debug = moved
	return d
}

func TestDebuginfod(t *testing.T) {
	d := downloadable(t)
	good := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != d.path {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, d.debug)
	})
	empty := serve(t, http.NotFound)
	t.Setenv("XDG_CACHE_HOME", d.cache)
	finder := Finder{Debuginfod: []string{empty.URL, good.URL + "/"}}
	want := filepath.Join(d.cache, "debuginfod_client", d.id, "debuginfo")
	for range 2 { // the second one is answered by the cache
		found(t, finder, d.object, want)
	}
	if empty.requests.Load() != 1 || good.requests.Load() != 1 {
		t.Errorf("%d and %d requests, want one each", empty.requests.Load(), good.requests.Load())
	}
	for path, mode := range map[string]os.FileMode{want: 0o600, filepath.Dir(want): 0o700} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, want %v", path, st.Mode(), mode)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(want), ".*")); len(left) > 0 {
		t.Errorf("not removed: %v", left)
	}
}

func TestDebuginfodOptIn(t *testing.T) {
	d := downloadable(t)
	t.Setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1")
	if debug, err := (&Finder{CacheDir: d.cache}).Debug(open(t, d.object)); debug != nil || err != nil {
		t.Errorf("without servers: %v, %v", debug, err)
	}
	if left, _ := os.ReadDir(d.cache); len(left) > 0 {
		t.Errorf("the cache was touched: %v", left)
	}
}

func TestDebuginfodNegativeCache(t *testing.T) {
	d := downloadable(t)
	s := serve(t, http.NotFound)
	finder := Finder{Debuginfod: []string{s.URL}, CacheDir: d.cache}
	ask := func(want int32) {
		t.Helper()
		if debug, err := finder.Debug(open(t, d.object)); debug != nil || err != nil {
			t.Errorf("not served: %v, %v", debug, err)
		}
		if got := s.requests.Load(); got != want {
			t.Errorf("%d requests, want %d", got, want)
		}
	}
	ask(1)
	ask(1)
	old := time.Now().Add(-2 * missLifetime)
	if err := os.Chtimes(filepath.Join(d.cache, d.id, "debuginfo"), old, old); err != nil {
		t.Fatal(err)
	}
	ask(2)
}

// TestDebuginfodBadAnswers: a wrong file is an error, and is not kept.
func TestDebuginfodBadAnswers(t *testing.T) {
	d := downloadable(t)
	other := stripped(t, "-Wl,--build-id=0x11223344")
	for name, answer := range map[string]http.HandlerFunc{
		"wrong build-id": func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, other.debug) },
		"no object":      func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("<html>log in first</html>")) },
		"empty":          func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK) },
		"error":          func(w http.ResponseWriter, r *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) },
		"too large":      func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "99999999999") },
		"cut": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			w.Write([]byte("\x7fELF"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer)
			cache := t.TempDir()
			debug, err := (&Finder{Debuginfod: []string{s.URL}, CacheDir: cache}).Debug(open(t, d.object))
			if debug != nil || err == nil || s.requests.Load() != 1 {
				t.Errorf("%v, %v after %d requests", debug, err, s.requests.Load())
			}
			if kept, _ := filepath.Glob(filepath.Join(cache, "*", "*")); len(kept) > 0 {
				t.Errorf("kept %v", kept)
			}
		})
	}
}

// TestDebuginfodTimeout: a server that does not answer costs one timeout, not
// one for each object.
func TestDebuginfodTimeout(t *testing.T) {
	d := downloadable(t)
	release := make(chan struct{})
	defer close(release) // before the servers are closed, which wait for their answers
	// On a busy machine the time may be over before the server is reached.
	asked := int32(0)
	for timeout := 50 * time.Millisecond; asked == 0 && timeout < time.Minute; timeout *= 2 {
		s := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
		finder := Finder{Debuginfod: []string{s.URL}, CacheDir: d.cache, Timeout: timeout}
		for range 3 {
			debug, err := finder.Debug(open(t, d.object))
			if debug != nil || err == nil || !strings.Contains(err.Error(), "deadline") {
				t.Errorf("%v, %v", debug, err)
			}
		}
		asked = s.requests.Load()
	}
	if asked != 1 {
		t.Errorf("%d requests", asked)
	}
}

func TestCopyBounded(t *testing.T) {
	for size, want := range map[int]bool{0: false, 1: true, 10: true, 11: false, 1000: false} {
		var out bytes.Buffer
		err := copyBounded(&out, bytes.NewReader(make([]byte, size)), "url", 10)
		if (err == nil) != want || out.Len() > 11 {
			t.Errorf("%d bytes: %v, %d written", size, err, out.Len())
		}
	}
	failing := errors.New("broken")
	if err := copyBounded(&bytes.Buffer{}, errorReader{failing}, "url", 10); !errors.Is(err, failing) {
		t.Errorf("error %v", err)
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }
