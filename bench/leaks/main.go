// Command leaks compares the unreachable objects that diagnose heap finds in cores with those of LeakSanitizer and of memcheck, on the same programs, and
// prints a Markdown table. With -large it measures a core with two million objects instead.
//
//	go run ./bench/leaks
//	go run ./bench/leaks -large
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	tool := flag.String("diagnose", "bin/diagnose", "the diagnose to compare")
	large := flag.Bool("large", false, "measure the time and the memory on a large core")
	flag.Parse()
	if err := run(*tool, *large); err != nil {
		fmt.Fprintln(os.Stderr, "leaks:", err)
		os.Exit(1)
	}
}

func run(tool string, large bool) error {
	tool, err := filepath.Abs(tool)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "leaks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{tool: tool, dir: dir}
	if large {
		return b.large()
	}
	return b.compare()
}

// bench compares in a folder of its own.
type bench struct{ tool, dir string }

// programs lose objects; their first line says how many.
const programs = "diagnosis/driver/testdata/leaks/*.c*"

func (b *bench) compare() error {
	list, err := filepath.Glob(programs)
	if err != nil || len(list) == 0 {
		return fmt.Errorf("no %s: %w", programs, err)
	}
	fmt.Println("| program | compiler | lost by the source | diagnose heap | memcheck | LeakSanitizer | diagnose heap, fixed program |")
	fmt.Println("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
	for _, source := range list {
		for _, compiler := range []string{"gcc -O0", "gcc -O2", "clang -O1"} {
			if strings.HasSuffix(source, ".cc") {
				compiler = strings.NewReplacer("gcc", "g++", "clang", "clang++").Replace(compiler)
			}
			if err := b.program(source, compiler); err != nil {
				return fmt.Errorf("%s, %s: %w", source, compiler, err)
			}
		}
	}
	return b.realPrograms()
}

// lostOf are the numbers of direct and of indirect leaks.
type lostOf struct{ direct, indirect int }

func (l lostOf) String() string { return fmt.Sprintf("%d + %d", l.direct, l.indirect) }

func (b *bench) program(source, compiler string) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	var want lostOf
	if _, err := fmt.Sscanf(string(text), "// LOST %d %d:", &want.direct, &want.indirect); err != nil {
		return err
	}
	exe, checked := filepath.Join(b.dir, "program"), filepath.Join(b.dir, "checked")
	if err := build(compiler, source, exe); err != nil {
		return err
	}
	if err := build(compiler, source, checked, "-DCHECKED", "-fsanitize=leak"); err != nil {
		return err
	}
	got, err := b.inCore(exe)
	if err != nil {
		return err
	}
	fixed, err := b.inCore(exe, "fixed")
	if err != nil {
		return err
	}
	memcheck, err := b.memcheck(exe)
	if err != nil {
		return err
	}
	fmt.Printf("| %s | %s | %v | %v | %v | %s | %v |\n", filepath.Base(source), compiler, want, got, memcheck, sanitized(checked), fixed)
	return nil
}

func build(compiler, source, exe string, flags ...string) error {
	words := strings.Fields(compiler)
	args := append(words[1:], "-g", "-w", "-pthread", "-o", exe, source)
	if out, err := exec.Command(words[0], append(args, flags...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// core runs a program that leaves a core in the folder.
func (b *bench) core(exe string, args ...string) (string, error) {
	core := filepath.Join(b.dir, "core")
	if err := os.RemoveAll(core); err != nil {
		return "", err
	}
	quoted := append([]string{"-c", `ulimit -c unlimited; exec "$0" "$@"`, exe}, args...)
	cmd := exec.Command("sh", quoted...)
	cmd.Dir = b.dir
	err := cmd.Run()
	if _, statErr := os.Stat(core); statErr != nil {
		return "", fmt.Errorf("no core (%v); core_pattern has to be 'core'", err)
	}
	return core, nil
}

// summary has the members of a report that are compared.
type summary struct {
	Heap struct {
		Objects int `json:"live_objects"`
		Malloc  struct {
			Leaks *struct {
				Direct   int `json:"direct"`
				Indirect int `json:"indirect"`
			} `json:"leaks"`
		} `json:"malloc"`
	} `json:"heap"`
}

func (b *bench) summary(core string) (*summary, error) {
	out, err := exec.Command(b.tool, "heap", "--core", core, "--json").Output()
	if err != nil {
		return nil, err
	}
	s := &summary{}
	if err := json.Unmarshal(out, s); err != nil {
		return nil, err
	}
	if s.Heap.Malloc.Leaks == nil {
		return nil, errors.New("which objects are unreachable is not known")
	}
	return s, nil
}

func (b *bench) inCore(exe string, args ...string) (lostOf, error) {
	core, err := b.core(exe, args...)
	if err != nil {
		return lostOf{}, err
	}
	s, err := b.summary(core)
	if err != nil {
		return lostOf{}, err
	}
	return lostOf{s.Heap.Malloc.Leaks.Direct, s.Heap.Malloc.Leaks.Indirect}, nil
}

// lostBlocks and usedBlocks are in memcheck's summary.
var (
	lostBlocks = regexp.MustCompile(`(definitely|indirectly) lost: .* in ([0-9,]+) blocks`)
	usedBlocks = regexp.MustCompile(`in use at exit: .* in ([0-9,]+) blocks`)
)

func (b *bench) memcheck(exe string, args ...string) (lostOf, error) {
	out, err := b.valgrind(exe, args...)
	if err != nil {
		return lostOf{}, err
	}
	var l lostOf
	for _, m := range lostBlocks.FindAllSubmatch(out, -1) {
		n := number(m[2])
		if string(m[1]) == "definitely" {
			l.direct = n
		} else {
			l.indirect = n
		}
	}
	return l, nil
}

// valgrind returns what memcheck says. The program ends by a signal.
func (b *bench) valgrind(exe string, args ...string) ([]byte, error) {
	cmd := exec.Command("valgrind", append([]string{exe}, args...)...)
	cmd.Dir = b.dir
	out, err := cmd.CombinedOutput()
	if !bytes.Contains(out, []byte("in use at exit")) {
		return nil, fmt.Errorf("valgrind: %w: %s", err, out)
	}
	return out, nil
}

func number(digits []byte) int {
	n, err := strconv.Atoi(strings.ReplaceAll(string(digits), ",", ""))
	if err != nil {
		return -1
	}
	return n
}

var allocations = regexp.MustCompile(`leaked in ([0-9]+) allocation`)

// sanitized is how many objects LeakSanitizer calls leaked: it does not divide cycles into direct and indirect ones.
func sanitized(exe string) string {
	out, err := exec.Command(exe).CombinedOutput()
	if m := allocations.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	if err != nil {
		return "failed"
	}
	return "0"
}

// realPrograms end themselves at work.
func (b *bench) realPrograms() error {
	fmt.Println("\n| program | live objects, diagnose heap | memcheck | lost, diagnose heap | memcheck |\n| --- | ---: | ---: | ---: | ---: |")
	for _, x := range [][]string{
		{"bash", "-c", `declare -A a; for i in {1..500}; do a[$i]=x$i; done; f() { local x=$1; echo $x; }; for i in {1..50}; do f $i; done >/dev/null; kill -SEGV $$`},
		{"perl", "-e", `%h=map{$_=>[1..5]}1..2000; for(1..200){my $a={}; $a->{self}=$a;} kill 11,$$; sleep 1`},
		{"sqlite3", ":memory:", `create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<3000) insert into t select x,hex(zeroblob(20)) from c; select count(*) from t;`, `.shell kill -SEGV $PPID`},
		{"gawk", `BEGIN { for (i = 0; i < 3000; i++) a[i % 70, i] = "value " i; system("kill -SEGV $PPID") }`},
		{"lua5.4", "-e", `t = {} for i = 1, 3000 do t[i] = {name = "n" .. i} end os.execute("kill -SEGV $PPID")`},
	} {
		exe, err := exec.LookPath(x[0])
		if err != nil {
			fmt.Fprintf(os.Stderr, "leaks: %v\n", err)
			continue
		}
		core, err := b.core(exe, x[1:]...)
		if err != nil {
			return fmt.Errorf("%s: %w", x[0], err)
		}
		s, err := b.summary(core)
		if err != nil {
			return fmt.Errorf("%s: %w", x[0], err)
		}
		out, err := b.valgrind(exe, x[1:]...)
		if err != nil {
			return err
		}
		used := -1
		if m := usedBlocks.FindSubmatch(out); m != nil {
			used = number(m[1])
		}
		lost, err := b.memcheck(exe, x[1:]...)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %d | %d | %v | %v |\n", x[0], s.Heap.Objects, used, lostOf{s.Heap.Malloc.Leaks.Direct, s.Heap.Malloc.Leaks.Indirect}, lost)
	}
	return nil
}

// large measures a core of one gigabyte.
func (b *bench) large() error {
	exe := filepath.Join(b.dir, "large")
	if err := build("gcc -O1", "bench/leaks/programs/large.c", exe); err != nil {
		return err
	}
	core, err := b.core(exe)
	if err != nil {
		return err
	}
	info, err := os.Stat(core)
	if err != nil {
		return err
	}
	fmt.Println("| core | objects | time | processor | most memory |\n| ---: | ---: | ---: | ---: | ---: |")
	for range 3 {
		begin := time.Now()
		cmd := exec.Command(b.tool, "heap", "--core", core)
		if err := cmd.Run(); err != nil {
			return err
		}
		took := time.Since(begin)
		s, err := b.summary(core)
		if err != nil {
			return err
		}
		fmt.Printf("| %d MB | %d | %.1f s | %.1f s | %d MB |\n", info.Size()>>20, s.Heap.Objects, took.Seconds(),
			(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), peak(cmd.ProcessState))
	}
	return nil
}
