package image

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"diagnose/evidence"
	"diagnose/image/object"
	"diagnose/internal/crashtest"
)

const inlinesSource = `
namespace shop {
struct cart {
	int *items;
	__attribute__((noinline)) int total(int n);
};
static inline __attribute__((always_inline)) void price(int *p)
{
	*p = 7; /* the write */
}
int cart::total(int n)
{
	price(items); /* the call */
	return n;
}
}
int main(int argc, char **)
{
	shop::cart c = {reinterpret_cast<int *>(8L * argc)};
	return c.total(argc);
}
`

func TestSymbolizeInlines(t *testing.T) {
	exe := compileText(t, "inlines.cc", inlinesSource, "-O2")
	core := crashtest.Core(t, exe, crashtest.Run{})
	p := open(t, core, Options{})
	pc := p.Threads[0].Registers.PC()
	calls := p.Symbolize(pc, AtInstruction)
	if len(calls) != 2 || !calls[0].Inlined || calls[1].Inlined {
		t.Fatalf("inline chain %+v", calls)
	}
	inner, outer := calls[0].Site, calls[1].Site
	if !strings.Contains(inner.Function, "price") || inner.Line != lineOf(t, inlinesSource, "the write") || inner.FunctionOffset != 0 {
		t.Errorf("inlined %+v", inner)
	}
	if outer.Function != "shop::cart::total(int)" || outer.LinkageName != "_ZN4shop4cart5totalEi" ||
		outer.Line != lineOf(t, inlinesSource, "the call") || outer.PC != pc {
		t.Errorf("physical %+v", outer)
	}
	s, ok := p.SymbolNamed("_ZN4shop4cart5totalEi")
	if !ok || s.Name != "shop::cart::total(int)" || outer.FunctionOffset != uint64(pc-s.Addr) {
		t.Errorf("symbol %+v, offset %d", s, outer.FunctionOffset)
	}
	mangled := open(t, core, Options{NoDemangle: true})
	calls = mangled.Symbolize(pc, AtInstruction)
	if got := calls[len(calls)-1].Site.Function; got != "_ZN4shop4cart5totalEi" {
		t.Errorf("not demangled: %s", got)
	}
}

// TestSymbolizeWithoutDebugInfo falls back to symbols, and says so once.
func TestSymbolizeWithoutDebugInfo(t *testing.T) {
	library := crashtest.Compile(t, crashtest.Program{Source: "plain.c", Output: "libplain.so",
		Flags: []string{"-shared", "-fPIC", "-s", "-O1"}, Text: "int crashes_here(int *p) { return *p; }"})
	exe := compileText(t, "user.c", "int crashes_here(int *); int main(void) { return crashes_here((int *)8); }",
		library, "-Wl,-rpath,"+filepath.Dir(library))
	p := open(t, crashtest.Core(t, exe, crashtest.Run{}), Options{})
	pc := p.Threads[0].Registers.PC()
	for range 3 {
		site := p.Symbolize(pc, AtInstruction)[0].Site
		if site.Function != "crashes_here" || site.Module != library || site.File != "" {
			t.Errorf("%+v", site)
		}
		p.Symbolize(pc+1, ReturnAddress)
	}
	said := 0
	for _, l := range p.AllLimits() {
		if l.Text == "no debug information for libplain.so; names come from its dynamic symbols" {
			said++
		}
	}
	if said != 1 {
		t.Errorf("said %d times: %+v", said, p.AllLimits())
	}
}

// TestSymbolizeBySeparateFile takes names and lines from a debug file.
func TestSymbolizeBySeparateFile(t *testing.T) {
	if _, err := exec.LookPath("objcopy"); err != nil {
		t.Skip("not supported here: objcopy is not installed")
	}
	exe := threadsProgram(t)
	debug := exe + ".debug"
	for _, args := range [][]string{{"--only-keep-debug", exe, debug}, {"--strip-all", exe}, {"--add-gnu-debuglink=" + debug, exe}} {
		cmd := exec.Command("objcopy", args...)
		cmd.Dir = filepath.Dir(exe)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	p := open(t, crashtest.Core(t, exe, crashtest.Run{}), Options{})
	site := p.Symbolize(p.Threads[0].Registers.PC(), AtInstruction)[0].Site
	if site.Function != "fails" || site.Line != lineOf(t, threadsSource, "fails here") || p.Exe.DebugFile() != debug {
		t.Errorf("%+v by %s", site, p.Exe.DebugFile())
	}
	if _, ok := p.SymbolNamed("marker"); !ok {
		t.Error("no symbol of the debug file")
	}
}

func TestSymbolizeOutside(t *testing.T) {
	p := open(t, tinyCore(t), Options{})
	for _, pc := range []evidence.Addr{0, 1, 0x1234, 1 << 63, ^evidence.Addr(0)} {
		for _, how := range []Lookup{AtInstruction, ReturnAddress} {
			calls := p.Symbolize(pc, how)
			if len(calls) != 1 || calls[0].Site != (evidence.Site{PC: pc}) {
				t.Errorf("%v: %+v", pc, calls)
			}
		}
	}
}

func TestSymbolizeConcurrently(t *testing.T) {
	p := open(t, crashtest.Core(t, threadsProgram(t), crashtest.Run{}), Options{})
	var pcs []evidence.Addr
	for i := range p.Threads {
		pcs = append(pcs, p.Threads[i].Registers.PC())
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			p.Prefetch(pcs)
			exercise(p)
		})
	}
	wait.Wait()
}

func TestSysroot(t *testing.T) {
	exe := threadsProgram(t)
	core := crashtest.Core(t, exe, crashtest.Run{})
	root := t.TempDir()
	inRoot := filepath.Join(root, exe)
	if out, err := exec.Command("mkdir", "-p", filepath.Dir(inRoot)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	copyFile(t, exe, inRoot)
	p := open(t, core, Options{Finder: object.Finder{Sysroot: root}})
	if p.Exe.File != inRoot || p.Exe.Path != exe {
		t.Errorf("executable %s by %s", p.Exe.Path, p.Exe.File)
	}
	wantLimit(t, p, false, "no files were found for", "libc.so.6")
}
