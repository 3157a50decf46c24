package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"diagnose/bench/truth/limit"
	"diagnose/bench/truth/sanitizer"
	"diagnose/bench/truth/small/program"
)

// buildLimit and runLimit bound a compilation and a run.
const (
	buildLimit = time.Minute
	runLimit   = 30 * time.Second
)

// sanitized are the flags of a build for each sanitizer, and what its compiler is.
var sanitized = map[program.Sanitizer]struct {
	compiler string
	flags    []string
}{
	program.Address: {"gcc", []string{"-fsanitize=address,bounds", "-fno-sanitize-recover=bounds"}},
	program.Memory:  {"clang", []string{"-fsanitize=memory"}},
	program.Thread:  {"gcc", []string{"-fsanitize=thread"}},
}

// buildError says that a compiler refuses a program: a mistake of the generator.
type buildError struct{ message string }

func (e *buildError) Error() string { return "trial: " + e.message }

// compilers are those of C++ by those of C.
var compilers = map[string]string{"gcc": "g++", "clang": "clang++"}

// build compiles the text of a program to dir/name.
func build(ctx context.Context, p *program.Program, text, dir, name string) (string, error) {
	return compile(ctx, p, text, filepath.Join(dir, name), p.Compiler, append([]string{"-" + p.Level}, p.Flags...))
}

func compile(ctx context.Context, p *program.Program, text, dir, compiler string, flags []string) (string, error) {
	if err := limit.Empty(dir); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, p.File()), []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("trial: %w", err)
	}
	if p.Language == program.CXX {
		compiler = compilers[compiler]
	}
	r, err := limit.Run(ctx, limit.Command{Path: compiler, Dir: dir, Time: buildLimit,
		Args: slices.Concat([]string{"-g", "-w", "-pthread", "-o", "small", p.File()}, flags)})
	if err != nil {
		return "", err
	}
	if r.Status != 0 || r.Signal != 0 {
		return "", &buildError{fmt.Sprintf("seed %d: %s: %s", p.Seed, compiler, r.Stderr)}
	}
	return filepath.Join(dir, "small"), nil
}

// violation is what the program's sanitizer sees first; nil: it sees nothing, or there is no
// sanitizer for the bug.
func violation(ctx context.Context, p *program.Program, text, dir string) (*sanitizer.Violation, error) {
	kind := sanitized[p.Sanitizer]
	if kind.compiler == "" {
		return nil, nil
	}
	top := filepath.Join(dir, string(p.Sanitizer))
	path, err := compile(ctx, p, text, top, kind.compiler, append([]string{"-O0", "-fno-omit-frame-pointer"}, kind.flags...))
	if err != nil {
		return nil, err
	}
	r, err := limit.Run(ctx, limit.Command{Path: path, Args: p.Failing, Dir: top, Time: runLimit,
		Env: []string{"ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1:alloc_dealloc_mismatch=0", "UBSAN_OPTIONS=print_stacktrace=1"}})
	if err != nil {
		return nil, err
	}
	return sanitizer.Read(string(r.Stderr), top), nil
}

// intended reports whether a violation is the one that the program was made for.
func intended(v *sanitizer.Violation, p *program.Program) bool {
	if v == nil {
		return false
	}
	lines := slices.Concat(p.Root, p.Seen)
	in := func(s sanitizer.Place) bool { return slices.Contains(lines, s.Line) }
	if v.Class == sanitizer.Race {
		return !slices.ContainsFunc(v.Accesses, func(s sanitizer.Place) bool { return !in(s) })
	}
	return slices.ContainsFunc(v.Accesses, in) || slices.ContainsFunc(v.Freed, in) && slices.ContainsFunc(v.Allocated, in) ||
		p.Sanitizer == program.Memory // it sees the first use, which may be far from the bug
}
