package agent

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// rootSymbol is a variable that holds the address of the root.
const rootSymbol = "diagnose_agent_root"

// codeFlags are for every translation unit. What distributions switch on by
// default and must not be in an allocator is switched off: stack protectors run
// before their guard is set up.
var codeFlags = []string{
	"-std=gnu11", "-O2", "-g", "-pipe", "-fPIC", "-iquote", ".",
	"-fvisibility=hidden", "-ftls-model=initial-exec",
	"-fno-builtin-malloc", "-fno-builtin-calloc", "-fno-builtin-realloc", "-fno-builtin-free",
	"-fno-stack-protector", "-U_FORTIFY_SOURCE", "-fasynchronous-unwind-tables",
}

var linkFlags = []string{
	"-shared", "-Wl,--build-id=sha1",
	"-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,noexecstack", "-Wl,--no-undefined",
}

// oldVersions: glibc.h says which.
var oldVersions = []string{"-include", "glibc.h"}

// oldestFlags are for the libraries of a release. Programs on a glibc before 2.34 may not
// have loaded the libraries in which it has threads and the dynamic linker's functions.
// Since then these are there and empty. Their names for linking are not installed, so the
// files are named that programs are run with.
var oldestFlags = []string{"-Wl,--no-as-needed", "-l:libpthread.so.0", "-l:libdl.so.2"}

// systemLibraries were not part of libc before glibc 2.34; since then nothing
// is needed.
var systemLibraries = []string{"-Wl,--as-needed", "-lpthread", "-ldl"}

// UnsupportedError says what this machine lacks.
type UnsupportedError struct{ What string }

func (e *UnsupportedError) Error() string { return "not supported here: " + e.What }

// Library returns the path of libdiagnose.so, for LD_PRELOAD. It is built at
// the first use and cached. Where there is neither a compiler nor a library
// that a release build brought, the error is an *UnsupportedError.
func Library(ctx context.Context) (string, error) {
	built, err := Build(ctx, BuildOptions{})
	return built.Path, err
}

// RecordLibrary returns the path of libdiagnose-record.so, which is what a
// program that is recorded or replayed runs with, as Library does.
func RecordLibrary(ctx context.Context) (string, error) {
	built, err := Build(ctx, BuildOptions{Recording: true})
	return built.Path, err
}

// BuildOptions says from what the library is made and where it is kept. The
// zero value is what users get.
type BuildOptions struct {
	// Recording asks for the library that records and replays as well.
	Recording bool
	// Sources has agent.c, engine.c and the version maps at its root, the parts in
	// folders; nil is Sources().
	Sources fs.FS
	// Compiler is a command and its first arguments; "" is what CC says, or
	// else the first of cc, gcc and clang that is installed.
	Compiler string
	// Places are the directories that may keep the library, best first; nil is
	// the user's cache, then private directories in the temporary ones.
	Places []string

	runtime  bool // of instrumented programs: Runtime
	release  bool // for glibc of other versions than this machine's
	prebuilt *prebuilt
}

// Built is a library that can be loaded.
type Built struct {
	// Path has no symbolic links in it.
	Path string
	// Note says why it is not in the first of the places; empty if it is.
	Note string
}

// Build returns the library, made now or before.
func Build(ctx context.Context, o BuildOptions) (Built, error) {
	o.setDefaults()
	maker, err := o.maker()
	if err != nil {
		return Built{}, err
	}
	places, refused := o.Places, []string(nil)
	if places == nil {
		places, refused = defaultPlaces()
	}
	for _, dir := range places {
		path, err := keep(ctx, filepath.Join(dir, maker.key), maker)
		var unusable *placeError
		if errors.As(err, &unusable) {
			refused = append(refused, unusable.Error())
			continue
		}
		if err != nil {
			return Built{}, fmt.Errorf("build the agent: %w", err)
		}
		return Built{path, note(path, refused)}, nil
	}
	return Built{}, fmt.Errorf("no place to keep the agent's library: %s", strings.Join(refused, "; "))
}

func note(path string, refused []string) string {
	if len(refused) == 0 {
		return ""
	}
	return fmt.Sprintf("the agent's library is kept in %s, because %s", filepath.Dir(path), strings.Join(refused, "; "))
}

func (o *BuildOptions) setDefaults() {
	if o.Sources == nil && o.runtime {
		o.Sources = runtimeSources()
	}
	if o.Sources == nil {
		o.Sources = Sources()
	}
	if o.Compiler == "" {
		o.Compiler = os.Getenv("CC")
	}
	if isOurs(o.Compiler) {
		o.Compiler = ""
	}
	if o.prebuilt == nil {
		o.prebuilt = brought[o.product().name]
	}
}

// isOurs tells `diagnose cc`, under which a program's build may run us: what it
// makes is instrumented, which the agent must not be.
func isOurs(compiler string) bool {
	words := strings.Fields(compiler)
	return len(words) > 1 && filepath.Base(words[0]) == "diagnose" && (words[1] == "cc" || words[1] == "c++")
}

func (o *BuildOptions) product() product {
	switch {
	case o.runtime:
		return runtimeProduct
	case o.Recording:
		return recordProduct
	}
	return heapProduct
}

// maker puts the library into a directory.
type maker struct {
	name string
	// key differs for everything from which a different library comes.
	key string
	put func(ctx context.Context, dir string) error
	// check refuses a file that is not what it should be.
	check func(path string) error
	// beside are files that have to be there before it is.
	beside []string
}

// maker prefers the library that a release brought: that one was tested.
func (o *BuildOptions) maker() (maker, error) {
	product := o.product()
	sources, err := product.digest(o.Sources)
	if err != nil {
		return maker{}, err
	}
	if p := o.prebuilt; p != nil && len(p.library) > 0 && p.sources == sources {
		put := func(_ context.Context, dir string) error {
			if err := os.WriteFile(filepath.Join(dir, product.name), p.library, 0o600); err != nil {
				return &placeError{dir, err}
			}
			return nil
		}
		return product.maker(key(sources, string(p.library)), put), nil
	}
	compiler, err := findCompiler(o.Compiler)
	if err != nil {
		return maker{}, err
	}
	put := func(ctx context.Context, dir string) error {
		if !o.release {
			return product.compile(ctx, compiler.command, nil, o.Sources, dir)
		}
		if err := product.compile(ctx, compiler.command, oldestFlags, o.Sources, dir); err != nil {
			return err
		}
		return dropWeakVersions(filepath.Join(dir, product.name))
	}
	identity := compiler.identity
	if o.release {
		identity += " without weak versions"
	}
	return product.maker(key(sources, identity), put), nil
}

func key(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d %s\n", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

type compiler struct {
	command []string
	// identity stands for the version as well, which cannot be asked without
	// running the compiler: an update changes the file's size or time.
	identity string
}

func findCompiler(command string) (compiler, error) {
	words := strings.Fields(command)
	if len(words) == 0 {
		for _, name := range []string{"cc", "gcc", "clang"} {
			if _, err := exec.LookPath(name); err == nil {
				words = []string{name}
				break
			}
		}
	}
	if len(words) == 0 {
		return compiler{}, &UnsupportedError{"no C compiler to build the agent with: cc, gcc and clang are not in PATH (CC may name another; a release build needs none)"}
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return compiler{}, &UnsupportedError{fmt.Sprintf("the C compiler %s, which CC names, cannot be run: %v", words[0], err)}
	}
	if path, err = filepath.Abs(path); err != nil {
		return compiler{}, err
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return compiler{}, fmt.Errorf("the C compiler: %w", err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return compiler{}, fmt.Errorf("the C compiler: %w", err)
	}
	// The name that was found is a part of it, and is what runs: what a link to
	// ccache does depends on its name.
	identity := fmt.Sprintf("%s %q %s %d %d", path, words[1:], file, info.Size(), info.ModTime().UnixNano())
	return compiler{append([]string{path}, words[1:]...), identity}, nil
}

// checkLibrary refuses a file that is not the agent: the compiler may be one for
// another machine, and a file may have been cut short.
func checkLibrary(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 || f.Type != elf.ET_DYN {
		return fmt.Errorf("%s is no shared library for x86-64: %v, %v, %v", path, f.Class, f.Machine, f.Type)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, s := range symbols {
		if s.Name == rootSymbol && s.Section != elf.SHN_UNDEF {
			return nil
		}
	}
	return fmt.Errorf("%s does not define %s", path, rootSymbol)
}

// Export builds the libraries and writes what a release build embeds
// (embed_release.go) to a directory.
func Export(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, recording := range []bool{false, true} {
		// What the release is built from must not be what an older one brought.
		o := BuildOptions{Recording: recording, prebuilt: &prebuilt{}, release: true}
		if err := export(ctx, dir, o); err != nil {
			return err
		}
	}
	return nil
}

func export(ctx context.Context, dir string, o BuildOptions) error {
	product := o.product()
	sources, err := product.digest(Sources())
	if err != nil {
		return err
	}
	built, err := Build(ctx, o)
	if err != nil {
		return err
	}
	library, err := os.ReadFile(built.Path)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, product.name)
	return errors.Join(os.WriteFile(path, library, 0o666), os.WriteFile(path+".sources", []byte(sources+"\n"), 0o666))
}
