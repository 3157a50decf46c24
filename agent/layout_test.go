package agent_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"diagnose/agent"
)

// structs are the mirrors of the C structs.
var structs = map[string]any{
	"dg_span": agent.RawSpan{}, "dg_freed": agent.RawFreed{}, "dg_ring": agent.RawRing{}, "dg_bin": agent.RawBin{},
	"dg_heap": agent.RawHeap{}, "dg_thread": agent.RawThread{}, "dg_site": agent.RawSite{}, "dg_error": agent.RawError{},
	"dg_options": agent.RawOptions{}, "dg_window": agent.RawWindow{}, "dg_root": agent.RawRoot{},
}

// constants are the mirrors of the C constants.
var constants = map[string]uint64{
	"DG_MAGIC": agent.Magic, "DG_VERSION": agent.Version, "DG_BASE": agent.Base, "DG_STEP": agent.Step, "DG_TRIES": agent.Tries,
	"DG_OFF_ROOT": agent.OffRoot, "DG_OFF_HEAPS": agent.OffHeaps, "DG_OFF_THREADS": agent.OffThreads, "DG_OFF_SITES": agent.OffSites,
	"DG_OFF_SPANS": agent.OffSpans, "DG_OFF_META": agent.OffMeta, "DG_OFF_OBJECTS": agent.OffObjects, "DG_OBJECTS_LIMIT": agent.ObjectsLimit,
	"DG_UNIT_SHIFT": agent.UnitShift, "DG_UNIT": agent.Unit, "DG_BLOCK_UNITS": agent.BlockUnits, "DG_CLASSES": agent.Classes,
	"DG_SMALL_MAX": agent.SmallMax, "DG_MIN_CANARY": agent.MinCanary, "DG_MAX_CANARY": agent.MaxCanary, "DG_LARGE_CANARY": agent.LargeCanary, "DG_FRAMES": agent.Frames,
	"DG_ERROR_FRAMES": agent.ErrorFrames, "DG_BATCH": agent.BatchSize, "DG_ERRORS": agent.MaxErrors, "DG_ERROR_BYTES": agent.ErrorBytes,
	"DG_WORD_SITE": agent.WordSite, "DG_WORD_THREAD": agent.WordThread, "DG_WORD_STATE": agent.WordState, "DG_WORD_API": agent.WordAPI,
	"DG_WORD_REPORTED": agent.WordReported, "DG_SIZE_MASK": agent.SizeMask, "DG_SITE_MASK": agent.SiteMask, "DG_THREAD_MASK": agent.ThreadMask,
	"DG_FRESH": uint64(agent.Fresh), "DG_LIVE": uint64(agent.Live), "DG_QUARANTINED": uint64(agent.Quarantined), "DG_REUSABLE": uint64(agent.Reusable),
	"DG_API_MALLOC": uint64(agent.APIMalloc), "DG_API_NEW": uint64(agent.APINew), "DG_API_NEW_ARRAY": uint64(agent.APINewArray),
	"DG_SPAN_NONE": agent.SpanNone, "DG_SPAN_SMALL": agent.SpanSmall, "DG_SPAN_LARGE": agent.SpanLarge, "DG_SPAN_INTERIOR": agent.SpanInterior,
	"DG_SPAN_FREED": agent.SpanFreed, "DG_SPAN_GUARDED": agent.SpanGuarded,
	"DG_HEAP_NONE": agent.HeapNone, "DG_HEAP_OWNED": agent.HeapOwned, "DG_HEAP_IDLE": agent.HeapIdle, "DG_HEAP_ABANDONED": agent.HeapAbandoned,
	"DG_THREAD_NONE": agent.ThreadNone, "DG_THREAD_RUNNING": agent.ThreadRunning, "DG_THREAD_ENDED": agent.ThreadEnded, "DG_THREAD_PARENT": agent.ThreadParent,
	"DG_ERROR_NONE": agent.ErrorNone, "DG_ERROR_OVERFLOW": agent.ErrorOverflow, "DG_ERROR_UNDERFLOW": agent.ErrorUnderflow,
	"DG_ERROR_USE_AFTER_FREE": agent.ErrorUseAfterFree, "DG_ERROR_DOUBLE_FREE": agent.ErrorDoubleFree, "DG_ERROR_FREE_MIDDLE": agent.ErrorFreeMiddle,
	"DG_ERROR_FREE_WILD": agent.ErrorFreeWild, "DG_ERROR_FREE_STACK": agent.ErrorFreeStack, "DG_ERROR_FREE_GLOBAL": agent.ErrorFreeGlobal,
	"DG_ERROR_FREE_FOREIGN": agent.ErrorFreeForeign, "DG_ERROR_MISMATCH": agent.ErrorMismatch,
	"DG_AT_FREE": agent.AtFree, "DG_AT_REALLOC": agent.AtRealloc, "DG_AT_EVICTION": agent.AtEviction, "DG_AT_CHECK": agent.AtCheck,
	"DG_AT_EXIT": agent.AtExit, "DG_AT_SIZE": agent.AtSize,
	"DG_ABORT": agent.OnErrorAbort, "DG_LOG": agent.OnErrorLog, "DG_CONTINUE": agent.OnErrorContinue,
	"DG_FILL_TAG": agent.FillTag, "DG_FILL_LOW": agent.FillLow, "DG_DEFAULT_CANARY": agent.DefaultCanary,
	"DG_CANARY_SHIFT": agent.CanaryShift, "DG_CANARY_LARGE_SHIFT": agent.CanaryLargeShift,
	"DG_CANARY_HIGH": agent.CanaryHigh, "DG_CANARY_FACTOR": agent.CanaryFactor,
}

// cName is the C name of a field.
func cName(f reflect.StructField) string {
	if name := f.Tag.Get("c"); name != "" {
		return name
	}
	return strings.ToLower(f.Name)
}

// layoutDigest is of the sizes, offsets and constants of this Version. A core
// outlives the tool that could read it: whoever changes the layout gives it
// another version, and the reader refuses cores that it would misread.
const layoutDigest = "4a6d774c1078ef765bbeed080c5b4269560fc23f0fa202f886ef55514c06847a"

func TestLayout(t *testing.T) {
	var program, want strings.Builder
	program.WriteString("#include <stdio.h>\n#include \"layout.h\"\n" +
		"#define S(s) printf(#s \" %zu\\n\", sizeof(struct s))\n" +
		"#define F(s, f) printf(#s \".\" #f \" %zu %zu\\n\", offsetof(struct s, f), sizeof(((struct s *)0)->f))\n" +
		"#define C(c) printf(#c \" %llu\\n\", (unsigned long long)(c))\n" +
		"int main(void)\n{\n")
	for name, mirror := range structs {
		typ := reflect.TypeOf(mirror)
		fmt.Fprintf(&program, "S(%s);\n", name)
		fmt.Fprintf(&want, "%s %d\n", name, typ.Size())
		if binary.Size(mirror) != int(typ.Size()) {
			t.Errorf("%s: encoding/binary sees %d bytes, the compiler %d", name, binary.Size(mirror), typ.Size())
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			fmt.Fprintf(&program, "F(%s, %s);\n", name, cName(f))
			fmt.Fprintf(&want, "%s.%s %d %d\n", name, cName(f), f.Offset, f.Type.Size())
		}
	}
	for name, value := range constants {
		fmt.Fprintf(&program, "C(%s);\n", name)
		fmt.Fprintf(&want, "%s %d\n", name, value)
	}
	const start, object = 0x280000000000, 0x280012345670
	fmt.Fprintf(&program, "C(DG_FILL_WORD(%#xull, %#xull));\n", start, object)
	fmt.Fprintf(&want, "DG_FILL_WORD(%#xull, %#xull) %d\n", start, object, agent.FillWord(start, object))
	for _, number := range []uint64{0, 127, 128, 0x402000001ff, 0x400c0000} {
		fmt.Fprintf(&program, "C(DG_CANARY_WORD(%#xull, %#xull));\n", uint64(agent.DefaultCanary), number)
		fmt.Fprintf(&want, "DG_CANARY_WORD(%#xull, %#xull) %d\n", uint64(agent.DefaultCanary), number, agent.CanaryWord(agent.DefaultCanary, number))
	}
	for _, size := range []uint64{0, 1, 15, 16, 17, 112, 113, 127, 128, 129, 1 << 40} {
		fmt.Fprintf(&program, "C(DG_FILLED(%dull, 128));\n", size)
		fmt.Fprintf(&want, "DG_FILLED(%dull, 128) %d\n", size, agent.Filled(size, 128))
	}
	lines := strings.Split(want.String(), "\n")
	slices.Sort(lines) // the order of the maps
	if d := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n")))); d != layoutDigest {
		t.Errorf("the layout of version %d changed: its digest is %s", agent.Version, d)
	}
	program.WriteString("return 0;\n}\n")
	got := strings.Split(run(t, program.String()), "\n")
	for i, line := range strings.Split(want.String(), "\n") {
		if i >= len(got) || got[i] != line {
			t.Errorf("the mirror says %q, the compiler %q", line, append(got, "nothing")[min(i, len(got))])
		}
	}
}

// run compiles a C program with the header and returns what it prints.
func run(t *testing.T, program string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(&agent.UnsupportedError{What: "no C compiler: " + err.Error()})
	}
	source := filepath.Join(t.TempDir(), "layout.c")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	include, err := filepath.Abs("src")
	if err != nil {
		t.Fatal(err)
	}
	exe := strings.TrimSuffix(source, ".c")
	if out, err := exec.Command(cc, "-I", include, "-o", exe, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out bytes.Buffer
	cmd := exec.Command(exe)
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestLayoutIsWhole finds what the header has and the mirror has not.
func TestLayoutIsWhole(t *testing.T) {
	header, err := os.ReadFile("src/layout.h")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(string(header), "")
	macros := map[string]bool{"DG_LAYOUT_H": true, "DG_FILL_WORD": true, "DG_CANARY_WORD": true, "DG_ON_KIND": true, "DG_FILLED": true}
	found := 0
	for _, m := range regexp.MustCompile(`\bDG_[A-Z0-9_]+\b`).FindAllString(text, -1) {
		found++
		if _, ok := constants[m]; !ok && !macros[m] {
			t.Errorf("%s has no mirror", m)
			macros[m] = true
		}
	}
	for _, m := range regexp.MustCompile(`(?s)\bstruct (dg_\w+) \{(.*?)\n\}`).FindAllStringSubmatch(text, -1) {
		found++
		checkFields(t, structs, m[1], m[2])
	}
	if found < len(constants)+len(structs) {
		t.Errorf("found only %d names in the header", found)
	}
}

// checkFields compares a struct's members, which are declared one type a
// line, with the mirror's.
func checkFields(t *testing.T, mirrors map[string]any, name, body string) {
	mirror, ok := mirrors[name]
	if !ok {
		t.Errorf("struct %s has no mirror", name)
		return
	}
	var fields, mirrored []string
	for _, line := range strings.Split(body, ";") {
		line = strings.TrimSpace(regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(line, ""))
		if line == "" {
			continue
		}
		names := regexp.MustCompile(`^(?:struct )?\w+ (.*)$`).FindStringSubmatch(line)
		if names == nil {
			t.Fatalf("struct %s: cannot read %q", name, line)
		}
		fields = append(fields, strings.Split(strings.ReplaceAll(names[1], " ", ""), ",")...)
	}
	typ := reflect.TypeOf(mirror)
	for i := range typ.NumField() {
		mirrored = append(mirrored, cName(typ.Field(i)))
	}
	if !reflect.DeepEqual(fields, mirrored) {
		t.Errorf("struct %s has %v, its mirror %v", name, fields, mirrored)
	}
}
