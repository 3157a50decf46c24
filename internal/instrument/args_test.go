package instrument_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/internal/instrument"
)

// fakeCompilers puts commands into PATH that are never run, but for one without a
// telling name.
func fakeCompilers(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"gcc", "g++", "clang", "clang-14", "x86_64-linux-gnu-gcc-12", "ccache", "diagnose"} {
		fake(t, dir, name, "exit 1")
	}
	fake(t, dir, "cc", "echo 'Debian clang version 14.0.6'")
	fake(t, dir, "icc", "echo 'icc (ICC) 2021.10'")
	t.Setenv("PATH", dir)
	for _, name := range []string{"CC", "CXX", "DIAGNOSE_CC", "DIAGNOSE_CXX"} {
		t.Setenv(name, "")
	}
}

func fake(t *testing.T, dir, name, does string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+does+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// wrapped returns the options that were put before the user's, or the error.
func wrapped(compiler, args string) (string, error) {
	list := strings.Fields(args)
	c, err := instrument.Wrap(context.Background(), instrument.Options{Compiler: compiler, Args: list, RuntimeName: "runtime.o",
		Runtime: func(context.Context) (string, error) { return "/r", nil }})
	if err != nil {
		return "", err
	}
	words := len(strings.Fields(compiler))
	options := c.Args[words : len(c.Args)-len(list)]
	if !slices.Equal(c.Args[len(c.Args)-len(list):], list) {
		return "", fmt.Errorf("the arguments became %q", c.Args)
	}
	return strings.Join(options, " "), nil
}

func TestOptions(t *testing.T) {
	fakeCompilers(t)
	dir := t.TempDir()
	response := filepath.Join(dir, "response")
	write := func(text string) {
		if err := os.WriteFile(response, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`-c "a b.c" -o 'it''s' -DX=\"y\" -nostdlib`)
	const (
		gcc       = "-fsanitize=thread -g -Wno-tsan -B/r/"
		gccG      = "-fsanitize=thread -Wno-tsan -B/r/"
		clang     = "-fsanitize=thread -g"
		clangLink = "-fsanitize=thread -g -fno-sanitize-link-runtime /r/runtime.o -ldl"
	)
	for _, c := range []struct{ compiler, args, want string }{
		{"gcc", "-O2 a.c -o a", gcc},
		{"gcc", "-g3 -c a.c", gccG},
		{"gcc", "-g0 -c a.c", gccG},
		{"gcc", "-shared -fPIC a.o -o liba.so", gcc},
		{"gcc", "-nostdlib -shared a.o -o liba.so", gcc + " /r/runtime.o"},
		{"gcc", "-nostdlib -c a.c", gcc},
		{"gcc", "-nostdlib -r a.o -o b.o", gcc},
		{"gcc", "-nodefaultlibs -Wl,--relocatable a.o -o b.o", gcc},
		{"gcc", "-static -c a.c", gcc},
		{"gcc", "-static -E a.c", gcc},
		{"gcc", "@" + response, gcc},
		{"gcc", "@missing", gcc}, // a file of that name, as the compilers take it
		{"gcc", "-x c -", gcc},
		{"gcc", "-fsanitize=undefined a.c", gcc},
		{"gcc", "-fsanitize=address -fno-sanitize=address a.c", gcc},
		// Questions to the compiler, and command lines without an input.
		{"gcc", "--version", ""},
		{"gcc", "-print-file-name=libtsan.so", ""},
		{"gcc", "-dumpmachine", ""},
		{"gcc", "-v", ""},
		{"gcc", "-o a", ""},
		{"gcc", "-static -fsanitize=address -v", ""},
		{"clang", "a.c", clangLink},
		{"clang", "a.o -shared -o liba.so", clangLink},
		{"clang", "-lm", clangLink},
		{"clang", "-c a.c", clang},
		{"clang", "-S a.c", clang},
		{"clang", "-MM a.c", clang},
		{"clang", "-MMD a.c", clangLink},
		{"clang", "-fsyntax-only a.c", clang},
		{"clang", "a.h", clang},
		{"clang", "-xc++-header a.x", clang},
		{"clang", "-x c-header a.x -x none a.c", clangLink},
		{"clang", "-Xlinker -r a.o -o b.o", clang},
		{"clang", "-Xclang -r a.o", clangLink},
		{"clang", "-o -r a.o", clangLink},
		{"clang", "-c -- -c.c", clang},
		{"clang", "-fsanitize=undefined -c a.c", clang},
		{"clang", "-fsanitize=undefined -fsanitize-trap=undefined a.c", clangLink},
		{"clang", "-fsanitize=thread a.c", clangLink},
		// The family is known by the command's name, by the name after a launcher, or by the
		// compiler's output.
		{"clang-14", "a.c", clangLink},
		{"x86_64-linux-gnu-gcc-12", "a.c", gcc},
		{"ccache clang", "a.c", clangLink},
		{"ccache gcc -pipe", "a.c", gcc},
		{"cc", "a.c", clangLink},
	} {
		if got, err := wrapped(c.compiler, c.args); err != nil || got != c.want {
			t.Errorf("%s %s: %q, %v, want %q", c.compiler, c.args, got, err, c.want)
		}
	}
}

func TestConflicts(t *testing.T) {
	fakeCompilers(t)
	response := filepath.Join(t.TempDir(), "response")
	if err := os.WriteFile(response, []byte("-fsanitize=undefined,address\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ compiler, args, want string }{
		{"gcc", "-fsanitize=address a.c", "-fsanitize=address: "},
		{"gcc", "@" + response + " a.c", "-fsanitize=address: "},
		{"gcc -fsanitize=leak", "a.c", "-fsanitize=leak: "},
		{"clang", "-c -fsanitize=memory a.c", "-fsanitize=memory: "},
		{"gcc", "-static a.c", "-static: a statically linked program cannot be recorded"},
		{"clang", "-static-pie a.o", "-static-pie: a statically linked program cannot be recorded"},
		{"clang", "-fsanitize=undefined a.c", "-fsanitize=undefined: clang's runtime"},
		{"gcc", "-m32 -c a.c", "-m32: "},
	} {
		_, err := wrapped(c.compiler, c.args)
		var conflict *instrument.ConflictError
		if !errors.As(err, &conflict) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.compiler, c.args, err, c.want)
		}
	}
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.WriteFile(loop, []byte("@"+loop), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := wrapped("gcc", "@"+loop); err == nil {
		t.Error("a response file that names itself")
	}
}

// TestCompilerOfEnvironment sets CC and CXX as a build does that runs the wrapper.
func TestCompilerOfEnvironment(t *testing.T) {
	for _, c := range []struct {
		environment, flag, want string
		language                instrument.Language
	}{
		{"", "", "cc", instrument.C},
		{"", "", "g++", instrument.CXX},
		{"CC=gcc", "", "gcc", instrument.C},
		{"CC=diagnose cc", "", "cc", instrument.C},
		{"CC=diagnose cc;DIAGNOSE_CC=clang-14", "", "clang-14", instrument.C},
		{"CC=gcc;DIAGNOSE_CC=clang-14", "gcc -pipe", "gcc -pipe", instrument.C},
		{"CC=gcc;CXX=clang;DIAGNOSE_CC=gcc", "", "clang", instrument.CXX},
		{"DIAGNOSE_CC=diagnose cc", "", "DIAGNOSE_CC names diagnose itself, not a compiler", instrument.C},
		{"", "diagnose c++", "--compiler names diagnose itself, not a compiler", instrument.C},
		{"CC=none-such", "", `the compiler of CC cannot be run: exec: "none-such": executable file not found in $PATH`, instrument.C},
		{"", "icc", "icc is neither gcc nor clang, as far as its --version says", instrument.C},
	} {
		t.Run(c.environment+" "+c.flag, func(t *testing.T) {
			fakeCompilers(t)
			for setting := range strings.SplitSeq(c.environment, ";") {
				if name, value, found := strings.Cut(setting, "="); found {
					t.Setenv(name, value)
				}
			}
			command, err := instrument.Wrap(t.Context(), instrument.Options{Language: c.language, Compiler: c.flag, Args: []string{"--version"}})
			var got string
			var none *instrument.CompilerError
			if errors.As(err, &none) {
				got = err.Error()
			} else if err != nil {
				t.Fatal(err)
			} else {
				got = strings.Join(command.Args[:len(command.Args)-1], " ")
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
