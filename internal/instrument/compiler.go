package instrument

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Language is what a wrapped compiler compiles by itself.
type Language int

// The two whose compilers are wrapped.
const (
	C Language = iota
	CXX
)

// Command is the name under which `diagnose` wraps a compiler of the language.
func (l Language) Command() string {
	if l == CXX {
		return "c++"
	}
	return "cc"
}

// compilerVariables name the user's compiler, the first that is set counts. CC
// and CXX may hold `diagnose cc` itself, as a build wants them.
func (l Language) compilerVariables() []string {
	if l == CXX {
		return []string{"DIAGNOSE_CXX", "CXX"}
	}
	return []string{"DIAGNOSE_CC", "CC"}
}

func (l Language) compilers() []string {
	if l == CXX {
		return []string{"c++", "g++", "clang++"}
	}
	return []string{"cc", "gcc", "clang"}
}

// family is what compilers differ in here.
type family int

const (
	gcc family = iota
	clang
)

// compiler is a command that compiles.
type compiler struct {
	path  string
	words []string // the command as it was given
	family
}

// CompilerError says why there is no compiler to run.
type CompilerError struct{ Why string }

func (e *CompilerError) Error() string { return e.Why }

// findCompiler resolves a command; "" stands for what the environment names, or
// else for the first that is installed.
func findCompiler(ctx context.Context, language Language, command string) (*compiler, error) {
	words, from := strings.Fields(command), "--compiler"
	for _, name := range language.compilerVariables() {
		if len(words) == 0 {
			words, from = strings.Fields(os.Getenv(name)), name
			if isOurs(words) && !strings.HasPrefix(name, "DIAGNOSE_") {
				words = nil
			}
		}
	}
	for _, name := range language.compilers() {
		if _, err := exec.LookPath(name); err == nil && len(words) == 0 {
			words, from = []string{name}, "PATH"
		}
	}
	if len(words) == 0 {
		return nil, &CompilerError{fmt.Sprintf("no compiler: %s are not in PATH", strings.Join(language.compilers(), ", "))}
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return nil, &CompilerError{fmt.Sprintf("the compiler of %s cannot be run: %v", from, err)}
	}
	if isOurs(words) {
		return nil, &CompilerError{fmt.Sprintf("%s names diagnose itself, not a compiler", from)}
	}
	c := &compiler{path: path, words: words}
	c.family, err = familyOf(ctx, path, words)
	return c, err
}

// isOurs tells `diagnose cc`.
func isOurs(words []string) bool {
	if len(words) < 2 || words[1] != C.Command() && words[1] != CXX.Command() {
		return false
	}
	if filepath.Base(words[0]) == "diagnose" {
		return true
	}
	own, err := os.Executable()
	if err != nil {
		return false
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return false
	}
	a, errA := os.Stat(own)
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// familyOf goes by names where they tell, as asking takes as long as compiling
// something small.
func familyOf(ctx context.Context, path string, words []string) (family, error) {
	names := []string{path}
	for _, word := range words {
		if !strings.HasPrefix(word, "-") {
			names = append(names, word)
		}
	}
	if file, err := filepath.EvalSymlinks(path); err == nil {
		names = append(names, file)
	}
	for _, name := range names {
		switch base := filepath.Base(name); {
		case strings.Contains(base, "clang"):
			return clang, nil
		case strings.Contains(base, "gcc"), strings.Contains(base, "g++"):
			return gcc, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, append(words[1:len(words):len(words)], "--version")...).Output()
	switch {
	case strings.Contains(string(said), "clang"):
		return clang, nil
	case strings.Contains(string(said), "Free Software Foundation"):
		return gcc, nil
	case err != nil:
		return 0, &CompilerError{fmt.Sprintf("%s --version: %v", strings.Join(words, " "), err)}
	}
	return 0, &CompilerError{fmt.Sprintf("%s is neither gcc nor clang, as far as its --version says", strings.Join(words, " "))}
}
