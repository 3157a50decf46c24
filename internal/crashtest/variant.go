package crashtest

import (
	"hash/fnv"
	"os"
	"slices"
)

// Variant is a way to compile a fixture.
type Variant struct {
	// Name is fit for a subtest: "O2-nopie".
	Name string
	// Compiler replaces the default one; "clang" stands for clang++ in C++.
	Compiler string
	Flags    []string
}

var variantsC = []Variant{
	{Name: "O0", Flags: []string{"-O0"}},
	{Name: "O2", Flags: []string{"-O2"}},
	{Name: "O2-nofp", Flags: []string{"-O2", "-fomit-frame-pointer", "-momit-leaf-frame-pointer"}},
	{Name: "O2-fp-nopie", Flags: []string{"-O2", "-fno-omit-frame-pointer", "-fno-pie", "-no-pie"}},
	{Name: "O0-nopie", Flags: []string{"-O0", "-fno-pie", "-no-pie"}},
	{Name: "clang-O0", Compiler: "clang", Flags: []string{"-O0"}},
	{Name: "clang-O2", Compiler: "clang", Flags: []string{"-O2", "-fPIE", "-pie"}},
}

var variantsRust = []Variant{
	{Name: "O0", Flags: []string{"-C", "opt-level=0"}},
	{Name: "O2", Flags: []string{"-C", "opt-level=2"}},
	{Name: "O2-nopie", Flags: []string{"-C", "opt-level=2", "-C", "relocation-model=static"}},
}

// The ways to link a program with the C library in it.
var (
	staticC = []Variant{
		{Name: "O0-static", Flags: []string{"-O0", "-static"}},
		{Name: "O2-static-pie", Flags: []string{"-O2", "-static-pie", "-fPIE"}},
		{Name: "clang-O1-static", Compiler: "clang", Flags: []string{"-O1", "-static"}},
	}
	staticRust = []Variant{
		{Name: "O0-static-pie", Flags: []string{"-C", "opt-level=0", "-C", "target-feature=+crt-static"}},
		{Name: "O2-static", Flags: []string{"-C", "opt-level=2", "-C", "target-feature=+crt-static", "-C", "relocation-model=static"}},
	}
)

// StaticVariants returns the ways to link the fixture statically; none for one with a library of its own, or with variants of its own. Unless
// FullMatrix, it is one, which differs from fixture to fixture.
func (f *Fixture) StaticVariants() []Variant {
	if f.library != "" || f.plugin != "" || len(f.only) > 0 {
		return nil
	}
	all := staticC
	if f.Language() == "rust" {
		all = staticRust
	}
	if FullMatrix() {
		return all
	}
	i := f.hash() % uint32(len(all))
	return all[i : i+1]
}

// hash is a number that differs from fixture to fixture.
func (f *Fixture) hash() uint32 {
	h := fnv.New32a()
	h.Write([]byte(f.Name))
	return h.Sum32()
}

// FullMatrix reports whether every fixture is to be run in every variant:
// DIAGNOSE_MATRIX=full.
func FullMatrix() bool { return os.Getenv("DIAGNOSE_MATRIX") == "full" }

// AllVariants returns every way in which the fixture can be compiled.
func (f *Fixture) AllVariants() []Variant {
	all := variantsC
	if f.Language() == "rust" {
		all = variantsRust
	}
	if len(f.only) == 0 {
		return all
	}
	var some []Variant
	for _, v := range all {
		if slices.Contains(f.only, v.Name) {
			some = append(some, v)
		}
	}
	return some
}

// Variants returns the ways to compile the fixture in this run: all of them
// with FullMatrix, otherwise two, which differ from fixture to fixture so that
// the table as a whole covers all of them.
func (f *Fixture) Variants() []Variant {
	all := f.AllVariants()
	if FullMatrix() || len(all) <= 2 {
		return all
	}
	first := int(f.hash() % uint32(len(all)))
	return []Variant{all[first], all[(first+len(all)/2)%len(all)]}
}

// Variant returns the variant with this name; ok is false when the fixture
// cannot be compiled so.
func (f *Fixture) Variant(name string) (v Variant, ok bool) {
	for _, v := range f.AllVariants() {
		if v.Name == name {
			return v, true
		}
	}
	return Variant{}, false
}
