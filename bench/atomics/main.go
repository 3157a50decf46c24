// Command atomics counts the atomic instructions of programs and libraries that a jump to the
// recorder's code can replace, as a Markdown table.
//
//	go run ./bench/atomics [FILE...]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"diagnose/image/object"
	"diagnose/replay/recorder/sites"
)

// usual are the files that docs/atomics.md tells of.
var usual = []string{
	"/lib/x86_64-linux-gnu/libgomp.so.1", "/lib/x86_64-linux-gnu/libstdc++.so.6", "/lib/x86_64-linux-gnu/libx264.so.164",
	"/usr/bin/redis-server", "/usr/bin/sort", "/lib/x86_64-linux-gnu/libc.so.6",
}

func main() {
	flag.Parse()
	files := flag.Args()
	if len(files) == 0 {
		files = usual
	}
	fmt.Println("| File | Atomic instructions | Patchable | Shorter than a jump | Plain | Plain, left | Fences | Unsure | Search, ms |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, path := range files {
		if err := count(path); err != nil {
			fmt.Fprintln(os.Stderr, "bench/atomics:", err)
			os.Exit(1)
		}
	}
}

func count(path string) error {
	f, err := object.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := sites.CachedSites(f); err != nil { // a search of its own, which a recording makes in any case
		return err
	}
	start := time.Now()
	found, err := sites.FindAtomics(context.Background(), f, nil)
	if err != nil {
		return err
	}
	const jump = 5
	short := 0
	for _, w := range found.Windows {
		for i := range w.Moved {
			if w.Ordered[i] && w.Moved[i].Len < jump && sites.IsAtomic(&w.Moved[i]) {
				short++
			}
		}
	}
	fmt.Printf("| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", filepath.Base(path), found.Total(), found.Patchable, short, found.Plain,
		found.PlainLeft, found.Fences, found.Unsure, time.Since(start).Milliseconds())
	return nil
}
