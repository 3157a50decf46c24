package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// defaultTimeout is DEBUGINFOD_TIMEOUT's default.
	defaultTimeout = 90 * time.Second
	// maxDownload bounds a response. The largest known debug files (browsers)
	// have about 4 GiB.
	maxDownload = 8 << 30
	// missLifetime is how long an empty file in the cache means "not found"
	// (debuginfod_find_debuginfo(3), cache_miss_s).
	missLifetime = 10 * time.Minute
)

// errNotServed: no server has the file.
var errNotServed = errors.New("no debuginfod server has it")

// silent remembers servers that could not be reached in time, so that each of a
// hundred modules does not wait for the timeout again.
var silent sync.Map // URL -> error

// debuginfod tries the cache and the servers.
func (s *search) debuginfod(id string) {
	if len(s.finder.Debuginfod) == 0 || len(id) < 4 || s.found != nil {
		return
	}
	path, err := s.finder.download(id)
	if errors.Is(err, errNotServed) {
		return
	}
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("debuginfod: %w", err))
		return
	}
	before := len(s.errs)
	s.host(path)
	if s.found == nil && len(s.errs) > before {
		// A wrong file must not be found again.
		os.Remove(path)
	}
}

// download returns the path in the cache of the debug file with a build-id. The
// layout is that of debuginfod's client, so both share a cache.
func (d *Finder) download(id string) (string, error) {
	cache, err := d.cacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, id)
	path := filepath.Join(dir, "debuginfo")
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
		if st.Size() > 0 {
			return path, nil
		}
		if time.Since(st.ModTime()) < missLifetime {
			return "", errNotServed
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	var errs []error
	for _, server := range d.Debuginfod {
		err := d.fetch(server, id, path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, errNotServed) {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return "", errors.Join(errs...)
	}
	if err := writeAtomically(path, func(io.Writer) error { return nil }); err != nil {
		return "", err
	}
	return "", errNotServed
}

func (d *Finder) cacheDir() (string, error) {
	if d.CacheDir != "" {
		return d.CacheDir, nil
	}
	base, err := os.UserCacheDir() // $XDG_CACHE_HOME, else $HOME/.cache
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "debuginfod_client"), nil
}

// fetch downloads from one server; errNotServed is its answer 404.
func (d *Finder) fetch(server, id, path string) error {
	if err, known := silent.Load(server); known {
		return err.(error)
	}
	timeout := d.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	url := strings.TrimRight(server, "/") + "/buildid/" + id + "/debuginfo"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	d.progress("asking " + url)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		silent.Store(server, err)
		return err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return errNotServed
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", url, response.Status)
	case response.ContentLength > maxDownload:
		return fmt.Errorf("%s: a response of %d bytes", url, response.ContentLength)
	}
	err = writeAtomically(path, func(w io.Writer) error { return copyBounded(w, response.Body, url, maxDownload) })
	if errors.Is(err, context.DeadlineExceeded) {
		silent.Store(server, err)
	}
	return err
}

// copyBounded copies a response of at most limit and at least one byte.
func copyBounded(w io.Writer, body io.Reader, url string, limit int64) error {
	n, err := io.Copy(w, io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: after %d bytes: %w", url, n, err)
	case n > limit:
		return fmt.Errorf("%s: a response of more than %d bytes", url, limit)
	case n == 0:
		return fmt.Errorf("%s: an empty response", url)
	}
	return nil
}

// writeAtomically creates path with all its contents or not at all, readable by
// the user only.
func writeAtomically(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".download-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, as it should
	err = write(f)
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
