package nightly_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
)

// growthVariable names a file for the times of operations by the corpus's size. Without it two
// small sizes are measured.
const growthVariable = "DIAGNOSE_GROWTH"

// growthPrograms are the programs whose failures are copied: of one thread, and of several.
var growthPrograms = []string{"heap_memcpy", "overwritten_global", "divided_share", "bank_transfer"}

// longestNight bounds each night of the measurement, so that all of it takes no more than
// ten minutes.
const longestNight = 3 * time.Minute

// growth has the measurements at one size of a corpus.
type growth struct {
	size                      int
	add, list, clusters, idle time.Duration // add is of one failure, by one writer
	run                       *nightly.Run
	cpu                       time.Duration // of the night and all that it started
}

func (g *growth) perCoreHour() float64 { return float64(g.run.Diagnosed) / g.cpu.Hours() }

// TestGrowth measures a corpus at sizes that it grows to by copies.
func TestGrowth(t *testing.T) {
	path := os.Getenv(growthVariable)
	sizes, names := []int{2, 4}, growthPrograms[:1]
	if path != "" {
		sizes, names = []int{10, 100, 1000}, growthPrograms
	}
	store := create(t, "")
	opts := options(t, store, "")
	opts.Budget = longestNight
	var list []growth
	busy := load(t)
	for originals := recordings(t, names); len(sizes) > 0; sizes = sizes[1:] {
		g := measure(t, store, opts, originals, sizes[0])
		t.Logf("%+v, %+v", g, *g.run)
		list = append(list, g)
	}
	for _, g := range list {
		if g.run.Undiagnosed > 0 || g.run.Diagnosed == 0 || g.run.Diagnosed+g.run.NotReached != g.size {
			t.Errorf("of %d failures: %+v", g.size, *g.run)
		}
	}
	if path != "" {
		write(t, path, "Throughput", growthTable(list, processor(t), busy))
	}
}

// recordings are one failure of each program, at the higher level of optimisation.
func recordings(t *testing.T, names []string) []string {
	t.Helper()
	var list []string
	for _, c := range cases(t) {
		if slices.Contains(names, c.Name) && c.Level == "O2" && c.Compiler == "gcc" {
			list = append(list, c.Failing(t).Dir)
		}
	}
	if len(list) != len(names) {
		t.Fatalf("%d recordings of %v", len(list), names)
	}
	return list
}

// measure lets the corpus grow to a size, and has a night diagnose all of it.
func measure(t *testing.T, store *corpus.Corpus, opts nightly.Options, originals []string, size int) growth {
	t.Helper()
	g := growth{size: size}
	g.add = grow(t, store, originals, size)
	opts.Version = strconv.Itoa(size)
	began := processorTime(t)
	g.run = night(t, opts)
	g.cpu = processorTime(t) - began
	g.list = taken(func() { entries(t, store) })
	g.clusters = taken(func() {
		if _, err := store.Clusters(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	opts.Budget = time.Nanosecond // the rest is not measured here
	g.idle = taken(func() {
		if _, err := nightly.Summarize(t.Context(), store, night(t, opts), opts.Since, nil); err != nil {
			t.Fatal(err)
		}
	})
	return g
}

func night(t *testing.T, opts nightly.Options) *nightly.Run {
	t.Helper()
	run, err := nightly.Diagnose(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func entries(t *testing.T, store *corpus.Corpus) []corpus.Entry {
	t.Helper()
	list, err := store.List(t.Context(), corpus.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

const (
	// writers add the entries that are not measured, at the same time. The entries of alone are
	// added one after the other.
	writers, alone = 8, 2
)

// grow adds copies up to a size. It returns how long adding one takes.
func grow(t *testing.T, store *corpus.Corpus, originals []string, size int) time.Duration {
	t.Helper()
	numbers, failures := make(chan int), make(chan error, writers)
	add := func(number int) error {
		dir := t.TempDir()
		if err := copied(dir, originals[number%len(originals)], number); err != nil {
			return err
		}
		a, err := store.Add(t.Context(), dir, corpus.AddOptions{Move: true})
		if err == nil && a.Existed {
			err = fmt.Errorf("copy %d was there", number)
		}
		return err
	}
	for range writers {
		go func() {
			var err error
			for number := range numbers {
				err = errors.Join(err, add(number))
			}
			failures <- err
		}()
	}
	for number := len(entries(t, store)); number < size-alone; number++ {
		numbers <- number
	}
	close(numbers)
	for range writers {
		if err := <-failures; err != nil {
			t.Fatal(err)
		}
	}
	return taken(func() {
		for number := size - alone; number < size; number++ {
			if err := add(number); err != nil {
				t.Fatal(err)
			}
		}
	}) / alone
}

// copied makes a copy of a recording, which a file more makes one of its own.
func copied(dir, original string, number int) error {
	return errors.Join(os.CopyFS(dir, os.DirFS(original)), os.WriteFile(filepath.Join(dir, "copy"), []byte(strconv.Itoa(number)), 0o600))
}

func taken(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// processorTime is that of this process and of all that it started and that ended.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var sum time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		if err := unix.Getrusage(who, &r); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return sum
}

// load is how many processes wanted a processor in the last minute.
func load(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))[0]
}

func processor(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "an unknown processor"
}

func growthTable(list []growth, processor, busy string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `Throughput

Copies of the failures of %s, in one corpus that grows, on %d of %s; the machine's load
was %s when it began. A night has two jobs and at most %v. Failures per core-hour are by the
processor time of the night and of all that it starts. "Nothing to do" is a night that
finds nothing to diagnose, with its summary.

| Failures | Adding one | Listing all | Clusters | Diagnosed in the night | Per core-hour | Nothing to do |
| --- | --- | --- | --- | --- | --- | --- |
`, strings.Join(growthPrograms, ", "), runtime.NumCPU(), processor, busy, longestNight)
	for i := range list {
		g := &list[i]
		fmt.Fprintf(&b, "| %d | %v | %v | %v | %d in %v | %.0f | %v |\n", g.size, round(g.add), round(g.list), round(g.clusters), g.run.Diagnosed,
			g.run.Ended.Sub(g.run.Started).Round(time.Second), g.perCoreHour(), round(g.idle))
	}
	return b.String()
}

func round(d time.Duration) time.Duration { return d.Round(d / 100).Round(10 * time.Microsecond) }
