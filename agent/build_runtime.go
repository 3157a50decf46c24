package agent

import (
	"context"
	"debug/elf"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed tsan/*.c tsan/*.S tsan/*.h tsan/*.ld
var embeddedRuntime embed.FS

// RuntimeName is the file name of the object that is linked into instrumented programs.
const RuntimeName = "diagnose-tsan.o"

// runtimeBeside stand in for gcc's own files: the first two are linker scripts, the
// third is what gcc links into executables before everything else.
var runtimeBeside = []string{"libtsan.so", "libtsan.a", "libtsan_preinit.o"}

var runtimeFlags = []string{"-D_GNU_SOURCE", "-mcx16", "-c"}

// runtimeProduct is one relocatable object, so that a program has it for itself
// and runs wherever its other libraries are.
var runtimeProduct = product{
	name: RuntimeName,
	commands: func() [][]string {
		code := arguments(codeFlags, runtimeFlags)
		var commands [][]string
		parts := []string{"access.S", "annotate.S", "atomic.c", "start.c"}
		link := []string{"-r", "-nostdlib", "-o", RuntimeName}
		for _, part := range parts {
			object := strings.TrimSuffix(part, filepath.Ext(part)) + ".o"
			commands = append(commands, arguments(code, []string{part, "-o", object}))
			link = append(link, object)
		}
		return append(commands, arguments(code, []string{"-x", "c", "/dev/null", "-o", "libtsan_preinit.o"}), link)
	},
	has:    func(string) bool { return true },
	copies: map[string]string{"libtsan.so": "libtsan.ld", "libtsan.a": "libtsan.ld"},
	check:  checkRuntime,
	beside: runtimeBeside,
}

// Runtime returns the directory that has the runtime of instrumented programs
// (RuntimeName), and libtsan.so and libtsan.a, which stand for it where a
// compiler says -ltsan. It is built at the first use and cached, as Library is.
func Runtime(ctx context.Context) (string, error) {
	built, err := Build(ctx, BuildOptions{runtime: true})
	if err != nil {
		return "", err
	}
	return filepath.Dir(built.Path), nil
}

func runtimeSources() fs.FS {
	dir, err := fs.Sub(embeddedRuntime, "tsan")
	if err != nil {
		panic(err) // "tsan" is a valid path
	}
	return dir
}

func checkRuntime(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 || f.Type != elf.ET_REL {
		return fmt.Errorf("%s is no object for x86-64: %v, %v, %v", path, f.Class, f.Machine, f.Type)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == "__tsan_init" && s.Section != elf.SHN_UNDEF }) {
		return fmt.Errorf("%s does not define __tsan_init", path)
	}
	for _, name := range runtimeBeside {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), name)); err != nil {
			return err
		}
	}
	return nil
}
