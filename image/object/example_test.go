package object_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"diagnose/image/object"
)

// The function at an address of an executable.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	source, exe := filepath.Join(dir, "count.c"), filepath.Join(dir, "count")
	if err := os.WriteFile(source, []byte("int count(int n) { return n + 1; }\nint main(void) { return count(1); }\n"), 0o600); err != nil {
		panic(err)
	}
	if out, err := exec.Command("cc", "-O0", "-o", exe, source).CombinedOutput(); err != nil {
		panic(string(out))
	}
	f, err := object.Open(exe)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	entry, ok := f.SymbolNamed("count")
	fmt.Println(ok, entry.Name)
	at, ok := f.SymbolAt(entry.Value + 4)
	fmt.Println(ok, at.Name)
	// Output:
	// true count
	// true count
}
