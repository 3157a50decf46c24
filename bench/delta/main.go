// Command delta measures what delta and patterns cost over large access logs,
// which it generates: one failing and one passing run with half of the accesses
// each. Each workload runs in a process of its own, whose highest resident size
// is given, the logs included, and the processor time of all but generating them.
//
//	go run ./bench/delta                   # ten million accesses
//	go run ./bench/delta -accesses 100000  # does everything work?
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/patterns"
)

// The goals of the whole, over ten million accesses.
const (
	goalSeconds = 10
	goalBytes   = 1_000_000_000
)

func main() {
	accesses := flag.Int("accesses", 10_000_000, "accesses of the two logs together")
	rounds := flag.Int("runs", 3, "rounds, of which the medians are given")
	only := flag.String("workload", "", "measure this one in this process, and print its figures")
	flag.Parse()
	if err := run(*accesses, *rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench/delta:", err)
		os.Exit(1)
	}
}

func run(accesses, rounds int, only string) error {
	if accesses < 2 || rounds < 1 {
		return fmt.Errorf("-accesses is at least 2, -runs at least 1")
	}
	if only != "" {
		i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == only })
		if i < 0 {
			return fmt.Errorf("no workload %s", only)
		}
		return measure(workloads[i], accesses)
	}
	fmt.Printf("%d processors, %d accesses in two logs; medians of %d runs.\n\n", runtime.NumCPU(), accesses, rounds)
	fmt.Println("| workload | delta | patterns | both | processor | highest resident size | patterns seen |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	met := true
	for _, w := range workloads {
		var results []result
		for range rounds {
			r, err := inProcess(w.name, accesses)
			if err != nil {
				return err
			}
			results = append(results, r)
		}
		r := median(results)
		met = met && r.delta+r.patterns < goalSeconds && r.resident < goalBytes
		fmt.Printf("| %s: %s | %.1f s | %.1f s | %.1f s | %.1f s | %.0f MiB | %d |\n",
			w.name, w.what, r.delta, r.patterns, r.delta+r.patterns, r.processor, float64(r.resident)/(1<<20), r.seen)
	}
	fmt.Printf("\nGoal: under %d s and 1 GB (954 MiB), %s.\n", goalSeconds, map[bool]string{true: "met", false: "**missed**"}[met])
	return nil
}

type result struct {
	delta, patterns, processor float64
	resident                   int64
	seen                       int
}

func inProcess(name string, accesses int) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	out, err := exec.Command(self, "-workload", name, "-accesses", fmt.Sprint(accesses)).CombinedOutput()
	if err != nil {
		return result{}, fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	var r result
	if _, err := fmt.Sscan(string(out), &r.delta, &r.patterns, &r.processor, &r.resident, &r.seen); err != nil {
		return result{}, fmt.Errorf("%s said %q: %w", name, out, err)
	}
	return r, nil
}

// median is that of each figure by itself.
func median(list []result) result {
	of := func(value func(result) float64) float64 {
		var values []float64
		for _, r := range list {
			values = append(values, value(r))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return result{
		delta:     of(func(r result) float64 { return r.delta }),
		patterns:  of(func(r result) float64 { return r.patterns }),
		processor: of(func(r result) float64 { return r.processor }),
		resident:  int64(of(func(r result) float64 { return float64(r.resident) })),
		seen:      int(of(func(r result) float64 { return float64(r.seen) })),
	}
}

func measure(w workload, accesses int) error {
	failing, passing := w.generate(accesses/2, 1), w.generate(accesses-accesses/2, 2)
	failing.Failed = true
	used, err := processor()
	if err != nil {
		return err
	}
	started := time.Now()
	runs, err := delta.Align([]*evidence.AccessLog{failing}, []*evidence.AccessLog{passing})
	if err != nil {
		return err
	}
	d := delta.Compare(runs)
	between := time.Now()
	found := patterns.Find(d, patterns.Options{Threads: []uint32{1}})
	ended := time.Now()
	if found.Seen == 0 {
		return fmt.Errorf("%s has no pattern", w.name)
	}
	after, err := processor()
	if err != nil {
		return err
	}
	resident, err := highest()
	if err != nil {
		return err
	}
	fmt.Println(between.Sub(started).Seconds(), ended.Sub(between).Seconds(), (after - used).Seconds(), resident, found.Seen)
	return nil
}

// processor is the time that all threads have computed.
func processor() (time.Duration, error) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0, err
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}

// highest is the most memory that this process had.
func highest() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM")
}
