package agent

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Target is a program as the kernel would run it.
type Target struct {
	// Path is the file that the name was found to be.
	Path string
	// File is the ELF file that runs: Path, or the interpreter of that script.
	File string
	// Python: the program is the Python interpreter, or is linked with libpython.
	Python bool
	// Go: File was built by Go's compiler.
	Go bool
	// Warnings say what evidence will be missing.
	Warnings []string
}

// FindTarget looks a program up as a shell does, follows the interpreters of
// scripts, and refuses what the agent cannot be loaded into, because then the
// program would run as if nothing had been asked for.
func FindTarget(name string) (Target, error) {
	path, err := lookUp(name)
	if err != nil {
		return Target{}, err
	}
	t := Target{Path: path}
	if t.File, err = followScripts(path); err != nil {
		return Target{}, err
	}
	if err := t.inspect(); err != nil {
		if t.File != t.Path {
			err = fmt.Errorf("%s is run by another program: %w", t.Path, err)
		}
		return Target{}, err
	}
	return t, nil
}

// lookUp finds a program in PATH, or at a path.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // a user with . in PATH wants it
		return path, nil
	case !errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s cannot be run: %w", name, errors.Unwrap(err))
	case isProgram(name):
		return "", fmt.Errorf("%s is not in PATH; did you mean ./%s?", name, name)
	}
	return "", fmt.Errorf("%s is not in PATH", name)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// inspect refuses a file in which the dynamic linker does not load the agent.
func (t *Target) inspect() error {
	file, err := os.Open(t.File)
	if errors.Is(err, fs.ErrPermission) {
		// Programs that may be run and not be read exist; they say nothing.
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s cannot be read, so it is not known whether the agent can be loaded into it", t.File))
		return t.checkPrivilege()
	}
	if err != nil {
		return err
	}
	defer file.Close()
	f, err := elf.NewFile(file)
	if err != nil {
		return fmt.Errorf("%s is neither an ELF program nor a script with a #! line", t.File)
	}
	if err := checkMachine(t.File, f); err != nil {
		return err
	}
	if err := checkLinker(t.File, f); err != nil {
		return err
	}
	if err := t.checkPrivilege(); err != nil {
		return err
	}
	t.Python, t.Go = isPython(t.Path, t.File, f), isGo(f)
	return t.checkAllocator(f)
}

// checkMachine: debug/elf names no two of these alike.
func checkMachine(path string, f *elf.File) error {
	switch {
	case f.Machine != elf.EM_X86_64 && f.Machine != elf.EM_386:
		return fmt.Errorf("%s is a program for another processor (%s): the agent is for x86-64", path, strings.TrimPrefix(f.Machine.String(), "EM_"))
	case f.Class != elf.ELFCLASS64:
		return fmt.Errorf("%s is a 32-bit program: the agent is for 64-bit ones", path)
	case f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN:
		return fmt.Errorf("%s is no program (%v)", path, f.Type)
	}
	return nil
}

// checkLinker: LD_PRELOAD is a service of glibc's dynamic linker.
func checkLinker(path string, f *elf.File) error {
	linker, err := interpreter(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	base := filepath.Base(linker)
	switch {
	case linker == "" && isLinker(f):
		return nil
	case linker == "" && f.Section(".go.buildinfo") != nil:
		return fmt.Errorf("%s is a statically linked Go program: the agent can be loaded into dynamically linked ones only", path)
	case linker == "":
		return fmt.Errorf("%s is statically linked: the agent can be loaded into dynamically linked programs only; link it without -static, -static-pie or +crt-static", path)
	case strings.HasPrefix(base, "ld-musl-"):
		return fmt.Errorf("%s is linked with musl: the agent is for programs that are linked with glibc", path)
	case !strings.HasPrefix(base, "ld-linux-x86-64."):
		return fmt.Errorf("%s has a dynamic linker (%s) that is not glibc's: the agent is for programs that are linked with glibc", path, linker)
	}
	return checkSanitizer(path, f)
}

// interpreter is the path of the dynamic linker, empty for a static program.
func interpreter(f *elf.File) (string, error) {
	const longest = 4096 // PATH_MAX, as the kernel has it
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		if p.Filesz > longest {
			return "", fmt.Errorf("the name of its dynamic linker has %d bytes", p.Filesz)
		}
		name := make([]byte, p.Filesz)
		if _, err := p.ReadAt(name, 0); err != nil {
			return "", fmt.Errorf("the name of its dynamic linker: %w", err)
		}
		return strings.TrimRight(string(name), "\x00"), nil
	}
	return "", nil
}

// isLinker: glibc's dynamic linker is a program too, and runs the one that it
// is given with what LD_PRELOAD names.
func isLinker(f *elf.File) bool {
	names, err := f.DynString(elf.DT_SONAME)
	return err == nil && len(names) == 1 && strings.HasPrefix(names[0], "ld-linux-x86-64.")
}

// checkSanitizer: their runtimes insist on being first, or replace malloc
// themselves.
func checkSanitizer(path string, f *elf.File) error {
	needed, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, library := range needed {
		for _, name := range []string{"libasan.so", "libhwasan.so", "liblsan.so", "libtsan.so", "libclang_rt."} {
			if strings.HasPrefix(library, name) && !strings.Contains(library, "ubsan") {
				return fmt.Errorf("%s is built with a sanitizer (%s), which brings an allocator of its own: run it without the agent", path, library)
			}
		}
	}
	return nil
}
