// Command frames compares the stacks of diagnose crash with gdb's: real programs get SIGSEGV at
// random moments, and every frame of every thread is compared by its kind, address, function and
// line. It prints a Markdown table.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

func main() {
	tool := flag.String("diagnose", "bin/diagnose", "the diagnose to compare")
	crashes := flag.Int("crashes", 3, "crashes of each program")
	seed := flag.Uint64("seed", 1, "seed of the moments of the crashes")
	only := flag.String("only", "", "compare this program only")
	built := flag.String("built", defaultBuilt(), "folder of programs that bench/truth has built, with debug information")
	flag.Parse()
	if err := run(*tool, *only, *built, *crashes, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "frames:", err)
		os.Exit(1)
	}
}

// defaultBuilt is where bench/truth builds; empty if the user has no cache.
func defaultBuilt() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "diagnose", "truth", "build")
}

func run(tool, only, built string, crashes int, seed uint64) error {
	tool, err := filepath.Abs(tool)
	if err != nil {
		return err
	}
	script, err := filepath.Abs("image/unwind/testdata/stacks.py")
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	var all count
	var notes []string
	compared := 0
	fmt.Println("| program | stacks | identical | frames of gdb | identical | tail calls of gdb | told | told besides |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, w := range works {
		if only != "" && w.name != only {
			continue
		}
		sum, more, err := w.compare(tool, script, built, crashes, random)
		if err != nil {
			fmt.Fprintf(os.Stderr, "frames: %s: %v\n", w.name, err)
			continue
		}
		compared++
		sum.print(w.name)
		all.add(sum)
		notes = append(notes, more...)
	}
	all.print(fmt.Sprintf("%d programs", compared))
	fmt.Println()
	for _, n := range notes {
		fmt.Println(n)
	}
	return nil
}

// compare crashes a program again and again and compares the stacks.
func (w work) compare(tool, script, built string, crashes int, random *rand.Rand) (sum count, notes []string, err error) {
	for range crashes {
		dir, err := os.MkdirTemp("", "frames-")
		if err != nil {
			return sum, notes, err
		}
		defer os.RemoveAll(dir)
		core, err := w.crash(dir, built, func() time.Duration { return time.Duration(10+random.IntN(290)) * time.Millisecond })
		if err != nil {
			return sum, notes, err
		}
		ours, err := ownStacks(tool, core)
		if err != nil {
			return sum, notes, err
		}
		theirs, err := gdbStacks(script, core)
		if err != nil {
			return sum, notes, err
		}
		for _, t := range theirs {
			c, note := compareStack(ours[t.TID], t.Frames)
			sum.add(c)
			if note != "" {
				notes = append(notes, fmt.Sprintf("- %s: %s", w.name, note))
			}
		}
	}
	return sum, notes, nil
}
