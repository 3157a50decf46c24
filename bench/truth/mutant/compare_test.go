package mutant

import (
	"os"
	"path/filepath"
	"testing"

	"diagnose/bench/truth/source"
	"diagnose/bench/truth/tree"
)

const racing = `#include <pthread.h>
static int n;
static void *count(void *unused)
{
	for (int i = 0; i < 1000; i++)
		n++;
	return unused;
}
int main(void)
{
	pthread_t a, b;
	pthread_create(&a, 0, count, 0);
	pthread_create(&b, 0, count, 0);
	pthread_join(a, 0);
	pthread_join(b, 0);
	return 0;
}
`

// A race of the original is no answer, and no mutant that shows nothing else is of use.
func TestRaceOfTheOriginal(t *testing.T) {
	dir := t.TempDir()
	src := &source.Unpacked{Dir: filepath.Join(dir, "sources"), Version: "1", Package: &source.Package{
		Name: "racing", Program: "racing", Threads: true, Compile: &source.Compile{Sources: []string{"*.c"}, Flags: "-pthread", Libs: "-pthread"},
	}}
	if err := os.MkdirAll(src.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(src.Dir, "racing.c"), []byte(racing), 0o644); err != nil {
		t.Fatal(err)
	}
	checked, err := tree.Open(t.Context(), src, tree.Thread, filepath.Join(dir, "build"), "")
	if err != nil {
		t.Skip(err) // without the sanitizer
	}
	w := &Workshop{src: src, checked: checked, scratch: filepath.Join(dir, "scratch")}
	_, violation, err := w.check(t.Context(), checked, checked.Original(), source.Run{})
	if err != nil {
		t.Fatal(err)
	}
	if violation == nil {
		t.Skip("the sanitizer sees no race here")
	}
	for failure, want := range map[Failure]Drop{Silent: OriginalToo, Signal: ""} {
		k := &Kept{Failure: failure, Answer: Answer{Violation: violation}}
		drop, err := (&trial{Workshop: w, kept: k}).compare(t.Context())
		if err != nil || drop != want || k.Answer.Violation != nil {
			t.Errorf("%s: %q, %v; the violation is %v", failure, drop, err, k.Answer.Violation)
		}
	}
}
