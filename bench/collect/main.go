// Command collect measures what `diagnose collect handle` costs: the time and the memory for a large
// core, its size compared with the whole core under zstd, and a storm of crashes. It prints Markdown.
//
//	go run ./bench/collect
//	go run ./bench/collect -size 256 -storm 2s
//	go run ./bench/collect -real 1000 -storm 3s
//
// The cores are files that the kernel wrote (core_pattern must be core), and reach the handler by a
// pipe. The storm starts handlers with the core of a small program, a bounded number at a time, as the
// kernel does with kernel.core_pipe_limit.
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program fills memory with pages of three kinds: of text, of random bytes, of one word repeated.
const program = `
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	size_t size = (size_t)atoi(argv[1]) << 20;
	unsigned char *p = malloc(size + 1);
	unsigned long x = 88172645463325252ul;
	for (size_t page = 0; page < size / 4096; page++) {
		unsigned char *at = p + page * 4096;
		switch (page % 4) {
		case 0: for (int i = 0; i < 4096; i += 32) sprintf((char *)at + i, "record %8zu of table %4d ", page, i); break;
		case 1: for (int i = 0; i < 4096; i += 8) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; memcpy(at + i, &x, 8); } break;
		case 2: memset(at, page, 4096); break;
		case 3: for (int i = 0; i < 4096; i += 8) { unsigned long v = (unsigned long)p + page * 64 + i; memcpy(at + i, &v, 8); } break;
		}
	}
	abort();
}
`

type settings struct {
	size          int
	storm         time.Duration
	handlers      int
	diagnose, dir string
}

func main() {
	var s settings
	flag.IntVar(&s.size, "size", 1024, "memory of the large program, in MiB")
	flag.DurationVar(&s.storm, "storm", 5*time.Second, "length of the storm")
	flag.IntVar(&s.handlers, "handlers", 8, "handlers at a time in the storm")
	rate := flag.Int("real", 0, "only a storm of so many crashes a second by the kernel: sets core_pattern of this machine meanwhile")
	flag.StringVar(&s.diagnose, "diagnose", "bin/diagnose", "the command")
	flag.StringVar(&s.dir, "work", "bench/work/collect", "directory for cores and spools")
	flag.Parse()
	run := s.run
	if *rate > 0 {
		run = func() error { return s.real(*rate) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/collect:", err)
		os.Exit(1)
	}
}

func (s *settings) run() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	source, exe := filepath.Join(s.dir, "program.c"), filepath.Join(s.dir, "program")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		return err
	}
	if out, err := exec.Command("gcc", "-O2", "-g", "-Wl,--build-id", "-o", exe, source).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	fmt.Println("| Core | Size | Whole, zstd -1 | Kept | Objects, once | Time | Rate | CPU | Peak memory |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, c := range []struct {
		name, filter string
		size         int
	}{
		{"small program, default filter", "0x33", 1}, {"small program, with mapped files", "0x7f", 1}, {fmt.Sprintf("%d MiB of memory", s.size), "0x33", s.size},
	} {
		if err := s.one(exe, c.name, c.filter, c.size); err != nil {
			return err
		}
	}
	return s.crashes(exe)
}

// core crashes the program and returns its core.
func (s *settings) core(exe, filter string, size int) (string, error) {
	const own = "/proc/self/coredump_filter"
	if err := os.WriteFile(own, []byte(filter), 0); err != nil {
		return "", err
	}
	limit := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return "", err
	}
	exe, err := filepath.Abs(exe)
	if err != nil {
		return "", err
	}
	cmd := exec.Command(exe, fmt.Sprint(size))
	cmd.Dir = s.dir
	cmd.Run() // it crashes
	found, _ := filepath.Glob(filepath.Join(s.dir, "core*"))
	if len(found) != 1 {
		return "", fmt.Errorf("%d cores, not one: core_pattern must be core", len(found))
	}
	return found[0], nil
}

// one measures a handler with one core.
func (s *settings) one(exe, name, filter string, size int) error {
	core, err := s.core(exe, filter, size)
	if err != nil {
		return err
	}
	defer os.Remove(core)
	spool, err := s.spool("one")
	if err != nil {
		return err
	}
	begun := time.Now()
	usage, err := s.handle(spool, core)
	if err != nil {
		return err
	}
	took := time.Since(begun)
	info, err := os.Stat(core)
	if err != nil {
		return err
	}
	whole, err := compressed(core)
	if err != nil {
		return err
	}
	kept, objects := sizeOf(filepath.Join(spool, "entries"), "core"), sizeOf(filepath.Join(spool, "objects"), "")
	fmt.Printf("| %s | %s | %s | %s | %s | %v | %.0f MiB/s | %v | %s |\n", name, bytesText(info.Size()), bytesText(whole), bytesText(kept), bytesText(objects),
		took.Round(time.Millisecond), float64(info.Size())/(1<<20)/took.Seconds(), cpu(usage).Round(time.Millisecond), bytesText(usage.Maxrss<<10))
	return nil
}

// spool makes an empty spool, with a configuration.
func (s *settings) spool(name string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(s.dir, name))
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(dir+".toml", []byte("[limits]\nfree_mib = 0\n"), 0o600)
}

// handle runs a handler, whose core comes through a pipe, and returns what it used.
func (s *settings) handle(spool, core string) (*syscall.Rusage, error) {
	in, err := os.Open(core)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	cmd := exec.Command(s.diagnose, "collect", "handle", "--config", spool+".toml", "--spool", spool, "4194304", "4194304", "0", "0", "6", fmt.Sprint(time.Now().Unix()))
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	var errors strings.Builder
	cmd.Stderr = &errors
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	io.Copy(pipe, in) // a handler that counts the core does not read all of it
	pipe.Close()
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, errors.String())
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage), nil
}

func cpu(u *syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }

// compressed is the size of a file under zstd -1.
func compressed(path string) (int64, error) {
	cmd := exec.Command("zstd", "-1", "-q", "-c", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, out)
	if err != nil {
		return 0, err
	}
	return n, cmd.Wait()
}

// sizeOf adds up the files of a name, or all.
func sizeOf(dir, name string) (sum int64) {
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || name != "" && d.Name() != name {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

func bytesText(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// crashes measures a storm of crashes of one program.
func (s *settings) crashes(exe string) error {
	core, err := s.core(exe, "0x33", 1)
	if err != nil {
		return err
	}
	defer os.Remove(core)
	spool, err := s.spool("storm")
	if err != nil {
		return err
	}
	var used, peak, count atomic.Int64
	var failure atomic.Value
	var wait sync.WaitGroup
	begun := time.Now()
	for range s.handlers {
		wait.Go(func() {
			for time.Since(begun) < s.storm {
				u, err := s.handle(spool, core)
				if err != nil {
					failure.Store(err)
					return
				}
				count.Add(1)
				used.Add(int64(cpu(u)))
				for old := peak.Load(); u.Maxrss > old && !peak.CompareAndSwap(old, u.Maxrss); old = peak.Load() {
				}
			}
		})
	}
	wait.Wait()
	if err, failed := failure.Load().(error); failed {
		return err
	}
	took, n := time.Since(begun), count.Load()
	fmt.Printf("\nA storm of %v, %d handlers at a time: %d crashes, %.0f a second; %.1f ms of processor time and %s of memory at most for each; the spool has %s.\n",
		took.Round(time.Second), s.handlers, n, float64(n)/took.Seconds(), float64(used.Load())/float64(n)/1e6, bytesText(peak.Load()<<10), bytesText(sizeOf(spool, "")))
	return nil
}
