// Command bench measures diagnose crash next to gdb, lldb and eu-stack on the same cores, run in
// turn, and prints a Markdown table of medians.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

func main() {
	runs := flag.Int("runs", 5, "runs of each tool on each core, after one that is not counted")
	tool := flag.String("diagnose", "bin/diagnose", "the diagnose to measure")
	dir := flag.String("work", "bench/work", "directory for programs and cores, about 2 GB; kept between runs")
	only := flag.String("only", "", "measure this workload only")
	flag.Parse()
	if err := run(*tool, *dir, *only, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(tool, dir, only string, runs int) error {
	tool, err := filepath.Abs(tool)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	fmt.Printf("%d processors, medians of %d interleaved runs; wall time in ms, peak resident memory in MiB.\n", runtime.NumCPU(), runs)
	fmt.Println("goal: at most 0.30 of gdb's time and 0.50 of its memory.")
	for _, w := range workloads {
		if only != "" && w.name != only {
			continue
		}
		core, err := w.prepare(filepath.Join(dir, w.name))
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if err := compare(w, core, tool, runs); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}
