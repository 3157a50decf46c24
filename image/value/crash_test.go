package value_test

import (
	"bytes"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/internal/crashtest"
)

// scope is one level of a crashed program's inline chains, with the variables
// in scope there.
type scope struct {
	function  string
	variables []evidence.Variable
}

// crashed compiles and crashes a program of testdata and reads the variables
// of every level of its failing stack.
func crashed(t *testing.T, p crashtest.Program) (exe, core string, scopes []scope) {
	t.Helper()
	exe = crashtest.Compile(t, p)
	core = crashtest.Core(t, exe, crashtest.Run{})
	process, err := image.OpenCore(core, image.Options{Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Close() })
	thread := &process.Threads[max(process.Failing, 0)]
	stack := unwind.New(process).Walk(thread, 100)
	frames := make([]value.Frame, len(stack.Frames))
	for i := range stack.Frames {
		f := &stack.Frames[i]
		frames[i] = value.Frame{Process: process, Thread: thread, Module: process.ModuleAt(f.PC()),
			Registers: f.Registers, CFA: f.CFA, Lookup: f.Lookup}
		if i+1 < len(frames) {
			frames[i].CalledBy(&frames[i+1])
		}
	}
	for i := range frames {
		scopes = append(scopes, read(t, &frames[i])...)
	}
	return exe, core, scopes
}

func read(t *testing.T, f *value.Frame) (scopes []scope) {
	t.Helper()
	if f.Module == nil {
		return nil
	}
	info, err := f.Module.Debug()
	if err != nil {
		t.Fatal(err)
	}
	if info == nil {
		return nil
	}
	pc := f.Module.LinkAddr(f.Registers.PC())
	if f.Lookup == image.ReturnAddress {
		pc--
	}
	calls, err := info.CallsAt(pc)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range calls {
		s := scope{function: call.Function.Name}
		list, err := info.VariablesAt(call, pc)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, v := range list {
			out := value.Read(f, v, value.Options{Values: 3000})
			if at, hidden := seen[v.Name]; hidden { // inner blocks come last
				s.variables[at] = out
				continue
			}
			seen[v.Name] = len(s.variables)
			s.variables = append(s.variables, out)
		}
		scopes = append(scopes, s)
	}
	return scopes
}

var programs = []struct {
	name string
	crashtest.Program
	// least is how many scalars must agree with gdb.
	least int
	// gdbWrong is a part that the debug information does not describe and that
	// gdb shows as zero.
	gdbWrong string
}{
	{"C -O0", crashtest.Program{Source: "testdata/values.c", Flags: []string{"-O0"}}, 80, ""},
	{"C -O2", crashtest.Program{Source: "testdata/values.c", Flags: []string{"-O2"}}, 50, ""},
	{"C -O2 clang", crashtest.Program{Source: "testdata/values.c", Compiler: "clang", Flags: []string{"-O2"}}, 40, "outer\twhere.y"},
	{"C -O2 no-pie", crashtest.Program{Source: "testdata/values.c", Flags: []string{"-O2", "-no-pie", "-gdwarf-4"}}, 50, ""},
	{"C++ -O0", crashtest.Program{Source: "testdata/values.cc", Flags: []string{"-O0"}}, 10, ""},
	{"C++ -O2", crashtest.Program{Source: "testdata/values.cc", Flags: []string{"-O2"}}, 2, ""},
	{"Rust -O0", crashtest.Program{Source: "testdata/values.rs"}, 15, ""},
	{"Rust -O2", crashtest.Program{Source: "testdata/values.rs", Flags: []string{"-O"}}, 3, ""},
}

func TestAgainstGDB(t *testing.T) {
	if _, err := exec.LookPath("gdb"); err != nil {
		t.Skip((&crashtest.UnsupportedError{What: "gdb is not installed"}).Error())
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			exe, core, scopes := crashed(t, p.Program)
			want := gdbScalars(t, exe, core)
			ours := map[string]evidence.Value{}
			for _, s := range scopes {
				for _, v := range s.variables {
					flatten(ours, last(s.function)+"\t"+v.Name, v.Value)
				}
			}
			agreed := 0
			for path, w := range want {
				v, ok := ours[path]
				if !ok {
					continue // shown as a string, a container, or elided
				}
				if path == p.gdbWrong || path == "inspect\tunit" { // Rust's () is no number
					continue
				}
				if problem := w.compare(v); problem != "" {
					t.Errorf("%s: %s", path, problem)
				} else if v.Unavailable == "" {
					agreed++
				}
			}
			if agreed < p.least {
				t.Errorf("only %d of %d scalars were compared", agreed, len(want))
			}
		})
	}
}

// last is a function's name without its scope and parameters, as the script
// for gdb writes it.
func last(name string) string {
	name, _, _ = strings.Cut(name, "(")
	return name[strings.LastIndex(name, ":")+1:]
}

func flatten(into map[string]evidence.Value, path string, v evidence.Value) {
	if v.Fields == nil || v.Address != nil {
		if _, taken := into[path]; !taken { // the innermost frame of the name
			into[path] = v
		}
		return
	}
	for _, f := range v.Fields {
		name := f.Name
		if !strings.HasPrefix(name, "[") {
			name = "." + name
		}
		from, to, ok := repeated(name)
		if !ok {
			flatten(into, path+name, f.Value)
			continue
		}
		for i := from; i <= to && i < from+20; i++ {
			flatten(into, path+"["+strconv.Itoa(i)+"]", f.Value)
		}
	}
}

var repeatPattern = regexp.MustCompile(`^\[(\d+)\.\.(\d+)\]$`)

func repeated(name string) (from, to int, ok bool) {
	m := repeatPattern.FindStringSubmatch(name)
	if m == nil {
		return 0, 0, false
	}
	from, _ = strconv.Atoi(m[1])
	to, _ = strconv.Atoi(m[2])
	return from, to, true
}

// scalar is gdb's value of one scalar.
type scalar struct{ kind, text string }

func gdbScalars(t *testing.T, exe, core string) map[string]scalar {
	t.Helper()
	// gdb 13 aborts on some variables of optimized C++; what it wrote until
	// then counts, and the test's least number guards against too few.
	out, err := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off",
		"-ex", "source testdata/flatten.py", exe, core).CombinedOutput()
	if bytes.Contains(out, []byte("not supported in this copy of GDB")) {
		t.Skip((&crashtest.UnsupportedError{What: "gdb has no Python"}).Error())
	}
	list := map[string]scalar{}
	for _, line := range strings.Split(string(out), "\n") {
		parts := strings.Split(line, "\t")
		if len(parts) != 5 || parts[0] != "FLAT" {
			continue
		}
		key := parts[1] + "\t" + parts[2]
		if _, taken := list[key]; !taken {
			list[key] = scalar{parts[3], parts[4]}
		}
	}
	if len(list) == 0 {
		t.Fatalf("gdb shows nothing: %v\n%s", err, out)
	}
	return list
}

// compare returns how our value differs from gdb's; "" if it does not.
func (s scalar) compare(v evidence.Value) string {
	if v.Unavailable != "" {
		// gdb assumes that registers that calls may change are unchanged.
		if s.kind == "lost" || s.kind == "error" || strings.Contains(v.Details, "not kept across the call") ||
			strings.Contains(v.Details, "not known in this frame") || strings.Contains(v.Details, "must have jumped") {
			return ""
		}
		return "gdb has " + s.text + ", we have nothing: " + v.Why()
	}
	switch s.kind {
	case "pointer":
		if want, _ := strconv.ParseInt(s.text, 10, 64); v.Address != nil && uint64(*v.Address) == uint64(want) {
			return ""
		}
		if want, err := strconv.ParseUint(s.text, 10, 64); err == nil && v.Address != nil && uint64(*v.Address) == want {
			return ""
		}
	case "float":
		want, _ := strconv.ParseFloat(s.text, 64)
		got, err := strconv.ParseFloat(v.Text, 64)
		if err == nil && (math.Abs(got-want) <= 1e-6*math.Abs(want)) {
			return ""
		}
	case "int":
		if number(v.Text) == s.text {
			return ""
		}
	}
	return "gdb has " + s.kind + " " + s.text + ", we have " + v.Text
}

var numberPattern = regexp.MustCompile(`^(?:-?\d+|.*\((-?\d+|0x[0-9a-f]+)\)$)`)

// number extracts the number from the texts of integers, characters,
// enumerations and booleans.
func number(text string) string {
	if _, referred, ok := strings.Cut(text, ": "); ok && text[0] == '@' {
		text = referred
	}
	switch text {
	case "false":
		return "0"
	case "true":
		return "1"
	}
	m := numberPattern.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	if m[1] == "" {
		return m[0]
	}
	n, _ := strconv.ParseInt(m[1], 0, 64)
	return strconv.FormatInt(n, 10)
}
