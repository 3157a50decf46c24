package expression_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"diagnose/image"
	"diagnose/image/expression"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/internal/crashtest"
)

func TestMain(m *testing.M) { crashtest.Main(m) }

// crashed returns the scope of a function of a program that crashed.
func crashed(t *testing.T, p crashtest.Program, function string) (*expression.Place, expression.Scope) {
	t.Helper()
	exe := crashtest.Compile(t, p)
	core := crashtest.Core(t, exe, crashtest.Run{})
	process, err := image.OpenCore(core, image.Options{Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Close() })
	thread := &process.Threads[max(process.Failing, 0)]
	u := unwind.New(process)
	stack := u.Walk(thread, 100)
	u.Symbolize(stack.Frames)
	for i := range stack.Frames {
		f := &stack.Frames[i]
		for level, call := range f.Calls {
			if !strings.HasPrefix(call.Site.Function, function) {
				continue
			}
			place, err := expression.NewPlace(process, f.LookupPC(), level)
			if err != nil {
				t.Fatal(err)
			}
			return place, place.In(value.FrameIn(process, thread, stack.Frames, i))
		}
	}
	t.Fatalf("no frame of %s", function)
	return nil, nil
}

// eval parses, checks and evaluates an expression.
func eval(p *expression.Place, s expression.Scope, text string) (value.Object, error) {
	e, err := expression.Parse(text, p.IsType)
	if err != nil {
		return value.Object{}, err
	}
	if err := e.Check(p.Dry()); err != nil {
		return value.Object{}, fmt.Errorf("check: %w", err)
	}
	return e.Eval(s)
}

func bits(t *testing.T, p *expression.Place, s expression.Scope, text string) []byte {
	t.Helper()
	o, err := eval(p, s, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	data, err := o.Bytes()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return data
}

func whole(data []byte, signed bool) int64 {
	var wide [8]byte
	copy(wide[:], data)
	v := binary.LittleEndian.Uint64(wide[:])
	if shift := uint(64 - 8*len(data)); signed {
		return int64(v<<shift) >> shift
	}
	return int64(v)
}

// TestAgainstCompiler: expressions have the values that the compiler gives them.
func TestAgainstCompiler(t *testing.T) {
	for _, p := range []crashtest.Program{
		{Source: "testdata/expressions.c", Flags: []string{"-O0", "-w"}},
		{Source: "testdata/expressions.c", Compiler: "clang", Flags: []string{"-O0", "-w"}},
		{Source: "testdata/expressions.c", Flags: []string{"-O0", "-w", "-gdwarf-4", "-no-pie"}},
	} {
		t.Run(fmt.Sprint(p.Compiler, p.Flags), func(t *testing.T) {
			place, scope := crashed(t, p, "work")
			n := int(whole(bits(t, place, scope, "number_of_checks"), true))
			if n < 150 {
				t.Fatalf("%d checks", n)
			}
			for i := range n {
				at := fmt.Sprintf("checks[%d]", i)
				text, err := eval(place, scope, at+".text")
				if err != nil {
					t.Fatal(err)
				}
				shown := text.Format(value.Defaults).Text
				var expr string
				if _, err := fmt.Sscanf(shown[len("0x"):], "%x %q", new(uint64), &expr); err != nil {
					t.Fatalf("%s: %v", shown, err)
				}
				compare(t, place, scope, expr, at)
			}
		})
	}
}

func compare(t *testing.T, place *expression.Place, scope expression.Scope, expr, at string) {
	t.Helper()
	o, err := eval(place, scope, expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return
	}
	data, err := o.Bytes()
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return
	}
	if size := whole(bits(t, place, scope, at+".size"), false); size != int64(len(data)) {
		t.Errorf("%s: %d bytes, the compiler has %d", expr, len(data), size)
	}
	if bits(t, place, scope, at+".kind")[0] == 'i' {
		want := whole(bits(t, place, scope, at+".whole"), true)
		if got := whole(data, value.Signed(o.Type)); got != want {
			t.Errorf("%s is %d, the compiler has %d", expr, got, want)
		}
		return
	}
	want := math.Float64frombits(uint64(whole(bits(t, place, scope, at+".real"), true)))
	got := 0.0
	if len(data) == 4 {
		got = float64(math.Float32frombits(uint32(whole(data, false))))
	} else {
		got = math.Float64frombits(uint64(whole(data, false)))
	}
	if got != want {
		t.Errorf("%s is %g, the compiler has %g", expr, got, want)
	}
}
