package main

import (
	"fmt"

	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tool is a command line over a core.
type tool struct {
	name string
	argv func(t target) []string
}

func tools(diagnose string) []tool {
	list := []tool{
		{"diagnose crash", func(t target) []string {
			return with(t.debugDir, []string{diagnose, "crash", "--core", t.core, "--exe", t.exe}, "--debug-dir", t.debugDir)
		}},
		{"gdb bt", func(t target) []string {
			argv := with(t.debugDir, []string{"gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off"},
				"-iex", "set debug-file-directory "+t.debugDir+":/usr/lib/debug")
			return append(argv, "-ex", "thread apply all bt", t.exe, t.core)
		}},
		{"lldb bt", func(t target) []string {
			argv := with(t.debugDir, []string{"lldb", "--batch", "--no-lldbinit"},
				"-O", "settings set target.debug-file-search-paths "+t.debugDir)
			return append(argv, "-o", "thread backtrace all", "-c", t.core, t.exe)
		}},
		{"eu-stack", func(t target) []string {
			return with(t.debugDir, []string{"eu-stack", "--core", t.core, "-e", t.exe}, "--debuginfo-path", t.debugDir+":/usr/lib/debug")
		}},
	}
	return slices.DeleteFunc(list, func(t tool) bool {
		_, err := exec.LookPath(t.argv(target{})[0])
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s is left out: %v\n", t.name, err)
		}
		return err != nil
	})
}

// with adds options where a debug directory is given.
func with(debugDir string, argv []string, options ...string) []string {
	if debugDir == "" {
		return argv
	}
	return append(argv, options...)
}

// sample is one run's cost.
type sample struct {
	wall   time.Duration
	memory int64 // peak resident set, KiB
	output int64 // bytes printed
}

func compare(w workload, core target, diagnose string, runs int) error {
	list := tools(diagnose)
	samples := make([][]sample, len(list))
	for round := 0; round <= runs; round++ {
		for i, t := range list {
			s, err := measure(t.argv(core))
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			if round > 0 {
				samples[i] = append(samples[i], s)
			}
		}
	}
	table(w, core, list, samples)
	return nil
}

// measure runs a command under time(1): a child of this process would count
// this process's own memory as its own until it calls exec, because Go starts
// children with vfork and the kernel keeps the peak over exec (fs/exec.c,
// exec_mmap).
func measure(argv []string) (sample, error) {
	cmd := exec.Command("/usr/bin/time", append([]string{"-f", "%M", "--"}, argv...)...)
	var messages strings.Builder
	counter := &counter{}
	cmd.Stdout, cmd.Stderr = counter, &messages
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	lines := strings.Split(strings.TrimSpace(messages.String()), "\n")
	memory, parseErr := strconv.ParseInt(lines[len(lines)-1], 10, 64)
	if parseErr != nil {
		return sample{}, fmt.Errorf("time printed %q: %v", messages.String(), err)
	}
	// The exit status is no measure: eu-stack's is 1 where a frame has no name.
	if counter.n == 0 {
		return sample{}, fmt.Errorf("printed nothing: %v: %s", err, messages.String())
	}
	return sample{wall, memory, counter.n}, nil
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func table(w workload, core target, list []tool, samples [][]sample) {
	size := int64(0)
	if info, err := os.Stat(core.core); err == nil {
		size = info.Size()
	}
	fmt.Printf("\n### %s: %s (core of %d MiB)\n\n", w.name, w.what, size>>20)
	fmt.Println("| tool | wall ms | of gdb's | peak MiB | of gdb's | printed KiB |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: |")
	gdb := slices.IndexFunc(list, func(t tool) bool { return t.name == "gdb bt" })
	for i, t := range list {
		wall := median(samples[i], func(s sample) float64 { return float64(s.wall.Microseconds()) / 1000 })
		memory := median(samples[i], func(s sample) float64 { return float64(s.memory) / 1024 })
		timeRatio, memoryRatio := "", ""
		if gdb >= 0 {
			timeRatio = ratio(samples[i], samples[gdb], func(s sample) float64 { return float64(s.wall) })
			memoryRatio = ratio(samples[i], samples[gdb], func(s sample) float64 { return float64(s.memory) })
		}
		fmt.Printf("| %s | %.1f | %s | %.1f | %s | %d |\n", t.name, wall, timeRatio, memory, memoryRatio, samples[i][0].output>>10)
	}
}

// ratio is the median of the ratios within each round, which drift of the
// machine's speed does not touch.
func ratio(a, b []sample, of func(sample) float64) string {
	var list []float64
	for i := range a {
		list = append(list, of(a[i])/of(b[i]))
	}
	slices.Sort(list)
	return fmt.Sprintf("%.2f", list[len(list)/2])
}

func median(list []sample, of func(sample) float64) float64 {
	var values []float64
	for _, s := range list {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
