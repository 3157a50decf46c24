package sites

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diagnose/image/x86"
)

func TestLearnedSitesAreKept(t *testing.T) {
	dir := t.TempDir()
	c := newTestCache(dir)
	if list := c.learned("abcd"); list != nil {
		t.Fatalf("%#x were learned of an object that nothing was learned of", list)
	}
	for _, x := range []struct{ at, added, all []uint64 }{
		{[]uint64{0x30, 0x10}, []uint64{0x30, 0x10}, []uint64{0x10, 0x30}},
		{[]uint64{0x20, 0x10}, []uint64{0x20}, []uint64{0x10, 0x20, 0x30}},
		{[]uint64{0x20}, nil, []uint64{0x10, 0x20, 0x30}},
	} {
		added, err := c.learn("abcd", x.at)
		if err != nil || !cmp.Equal(added, x.added) {
			t.Errorf("of %#x %#x were added, want %#x: %v", x.at, added, x.added, err)
		}
		if diff := cmp.Diff(x.all, newTestCache(dir).learned("abcd")); diff != "" {
			t.Error(diff)
		}
	}
	if list := c.learned("abce"); list != nil {
		t.Errorf("%#x were learned of another object", list)
	}
	info, err := os.Stat(filepath.Join(dir, learnedName("abcd")))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v, want a file for the user alone", info, err)
	}
}

func TestLearnedSitesAreBounded(t *testing.T) {
	c := newTestCache(t.TempDir())
	var many []uint64
	for i := range uint64(MostLearned + 10) {
		many = append(many, 1000-i)
	}
	if added, err := c.learn("abcd", many); err != nil || !cmp.Equal(added, many[:MostLearned]) {
		t.Errorf("%d of %d were added: %v", len(added), len(many), err)
	}
	if n := len(c.learned("abcd")); n != MostLearned {
		t.Errorf("%d are kept, want %d", n, MostLearned)
	}
	if _, err := c.learn("", many); err != errNoBuildID {
		t.Errorf("%v for an object without a build-id", err)
	}
	if _, err := newTestCache("").learn("abcd", many); err != errNoCache {
		t.Errorf("%v without a cache", err)
	}
}

// TestLearnedSitesNotOfALink: what a link in the cache leads to is not read.
func TestLearnedSitesNotOfALink(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(other, encodeLearned([]uint64{1}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(dir, learnedName("abcd"))); err != nil {
		t.Fatal(err)
	}
	if list := newTestCache(dir).learned("abcd"); list != nil {
		t.Errorf("%#x were read through a link", list)
	}
}

// FuzzLearned decodes files that anybody may have written: an accepted one encodes to the same bytes.
func FuzzLearned(f *testing.F) {
	f.Add([]byte{}, true)
	f.Add(encodeLearned([]uint64{1, 2}), false)
	f.Add(bytes.Repeat([]byte{1}, MostLearned*8+8), true)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed {
			sum := sha256.Sum256(b)
			b = append(bytes.Clone(b), sum[:]...)
		}
		list, err := decodeLearned(b)
		if err != nil {
			return
		}
		if len(list) > MostLearned || !slices.IsSorted(list) || !bytes.Equal(encodeLearned(list), b) {
			t.Errorf("%#x of %x", list, b)
		}
	})
}

// TestLearnedSitesAreOrdered gives FindAtomics all addresses of some functions, in the middle of instructions and outside of the code,
// too: those of accesses are ordered or left, and no others.
func TestLearnedSitesAreOrdered(t *testing.T) {
	f, without := findAtomics(t, libcPath(t))
	learned := []uint64{0, 1, 1 << 40, ^uint64(0)}
	want := map[uint64]bool{}
	for _, name := range []string{"qsort_r", "rand_r", "strtok_r", "fgetc"} {
		s, ok := f.SymbolNamed(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		code := make([]byte, s.Size)
		if _, err := f.ReadAddr(code, uint64(s.Value)); err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(code); {
			pc := uint64(s.Value) + uint64(at)
			inst, err := x86.Decode(code[at:], pc)
			if err != nil {
				t.Fatal(err)
			}
			if CanOrder(&inst) {
				want[pc] = true
			}
			at += inst.Len
		}
		for pc := range s.Size {
			learned = append(learned, uint64(s.Value)+pc)
		}
	}
	found, err := FindAtomics(t.Context(), f, learned)
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint64]bool{}
	for _, pc := range found.LearnedLeft {
		got[pc] = true
	}
	if len(got) != len(found.LearnedLeft) || found.Learned < len(want)/2 {
		t.Errorf("%d are patchable of %d, %d are left", found.Learned, len(want), len(found.LearnedLeft))
	}
	for i := range found.Windows {
		w := &found.Windows[i]
		for _, pc := range w.Learned {
			got[pc] = true
			if j := slices.IndexFunc(w.Moved, func(inst x86.Inst) bool { return inst.PC == pc }); j < 0 || !w.Ordered[j] {
				t.Errorf("the window at %#x does not order the access at %#x", w.Start, pc)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if found.Total() != without.Total() {
		t.Errorf("%d atomic instructions, %d without learned sites", found.Total(), without.Total())
	}
}
