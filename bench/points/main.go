// Command points measures the cost of the points of instrumented programs: a small program is built
// as it is and by `diagnose cc`, and run by itself and under record. It prints a Markdown table of
// nanoseconds an operation.
//
//	go run ./bench/points
//
// All of them run in turn, so that drift of the machine's speed affects all alike.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const source = "bench/points/programs/access.c"

type settings struct {
	runs          int
	diagnose, dir string
}

// way is how the program is built and run.
type way struct {
	name    string
	command []string
	figures map[string][]float64
}

func main() {
	var s settings
	flag.IntVar(&s.runs, "runs", 7, "rounds in which everything runs once")
	flag.StringVar(&s.diagnose, "diagnose", "bin/diagnose", "the command that compiles and records")
	flag.StringVar(&s.dir, "work", "bench/work/points", "directory for programs and recordings")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "bench/points:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	for _, compiler := range []string{"gcc", "clang"} {
		if _, err := exec.LookPath(compiler); err != nil {
			continue
		}
		ways, err := s.build(compiler)
		if err != nil {
			return err
		}
		names, err := s.measure(ways)
		if err != nil {
			return err
		}
		print(compiler, names, ways)
	}
	return nil
}

func (s *settings) build(compiler string) ([]*way, error) {
	plain, points := filepath.Join(s.dir, compiler+"-plain"), filepath.Join(s.dir, compiler+"-points")
	for _, command := range [][]string{
		{compiler, "-O2", "-g", "-o", plain, source},
		{s.diagnose, "cc", "--compiler", compiler, "-O2", "-o", points, source},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
		}
	}
	record := []string{s.diagnose, "record", "-o", filepath.Join(s.dir, "recordings"), "--"}
	return []*way{
		{name: "plain", command: []string{plain}},
		{name: "plain, recorded", command: append(record, plain)},
		{name: "points", command: []string{points}},
		{name: "points, recorded", command: append(record, points)},
	}, nil
}

// measure returns the names of the figures in their order.
func (s *settings) measure(ways []*way) ([]string, error) {
	var names []string
	for range s.runs {
		for _, w := range ways {
			out, err := exec.Command(w.command[0], w.command[1:]...).Output()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", strings.Join(w.command, " "), err)
			}
			for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
				name, text, _ := strings.Cut(lines.Text(), " ")
				value, err := strconv.ParseFloat(text, 64)
				if err != nil {
					return nil, err
				}
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
				if w.figures == nil {
					w.figures = map[string][]float64{}
				}
				w.figures[name] = append(w.figures[name], value)
			}
		}
	}
	return names, nil
}

func print(compiler string, names []string, ways []*way) {
	fmt.Printf("| %s -O2, ns |", compiler)
	for _, w := range ways {
		fmt.Printf(" %s |", w.name)
	}
	fmt.Printf("\n|%s\n", strings.Repeat(" --- |", len(ways)+1))
	for _, name := range names {
		fmt.Printf("| %s |", name)
		for _, w := range ways {
			values := slices.Sorted(slices.Values(w.figures[name]))
			fmt.Printf(" %.2f |", values[len(values)/2])
		}
		fmt.Println()
	}
	fmt.Println()
}
