package object

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// TestPLTAgainstObjdump compares stubs' names with those of binutils, over
// the kinds of stub that the linkers here make.
func TestPLTAgainstObjdump(t *testing.T) {
	paths := map[string]string{
		"lazy":      build(t, "-Wl,-z,lazy"),
		"now":       build(t, "-Wl,-z,now"),
		"no-pie":    build(t, "-no-pie"),
		"protected": build(t, "-fcf-protection", "-Wl,-z,ibtplt,-z,lazy"),
		"libc":      systemLibc(t),
	}
	if _, err := exec.LookPath("ld.gold"); err == nil {
		paths["gold"] = build(t, "-fuse-ld=gold")
	}
	if _, err := exec.LookPath("ld.lld"); err == nil {
		paths["lld"] = build(t, "-fuse-ld=lld")
	}
	for name, path := range paths {
		t.Run(name, func(t *testing.T) { comparePLT(t, path) })
	}
}

var stubLine = regexp.MustCompile(`(?m)^([0-9a-f]{16}) <(.+@plt)>:$`)

func comparePLT(t *testing.T, path string) {
	f := open(t, path)
	lines := stubLine.FindAllStringSubmatch(tool(t, "objdump", "-d", path), -1)
	for _, m := range lines {
		addr, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []uint64{addr, addr + 7} {
			s, ok := f.SymbolAt(a)
			if !ok || s.Name != m[2] || s.Value != addr || !s.Synthetic || s.Kind != SymbolFunc {
				t.Errorf("%#x is %+v %v, objdump says %s", a, s, ok, m[2])
			}
		}
		if s, ok := f.SymbolNamed(m[2]); !ok || s.Name != m[2] {
			t.Errorf("SymbolNamed(%s) is %+v %v", m[2], s, ok)
		}
	}
	if len(lines) == 0 {
		t.Error("objdump knows no stub")
	}
	if s, ok := f.SymbolNamed("no_such_function@plt"); ok {
		t.Errorf("found %+v", s)
	}
}
