package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Package is a program and how it is built and run. Commands are run by sh in the top of
// the tree, with CC, CXX, CFLAGS, CXXFLAGS and LDFLAGS set.
type Package struct {
	// Name is that of Debian's source package, unless Debian is set: several programs may be
	// of one package.
	Name, Debian string
	// Configure is run once in a new tree, Make after each change of a file.
	Configure, Make string
	// Compile is the other way to build after Configure, of sources without a usable makefile.
	Compile *Compile
	// Program is the executable, relative to the top of the tree.
	Program string
	// Sources are patterns of the files that bugs are put into.
	Sources []string
	// Inputs are what the program is run with.
	Inputs []Input
	// Threads says that bugs of concurrency are put into it, and those alone; Signals the same
	// of a program without threads whose handlers share memory with the rest.
	Threads, Signals bool
}

// Concurrent says that bugs of concurrency are put into it.
func (p *Package) Concurrent() bool { return p.Threads || p.Signals }

// Compile is a list of sources that make one program.
type Compile struct {
	// Sources are patterns. Those of Except are left out. Flags are for the compiler, Libs
	// for the linker.
	Sources, Except []string
	Flags, Libs     string
	// Driver is the name of a file of ours, in the folder drivers: a main function for a
	// library. In the tree its name is truth-driver- and the name.
	Driver string
}

// Input is a group of runs of a program, one for each file that a pattern finds.
type Input struct {
	// Args are the arguments; {} is the file's path, {dir} the top of the sources.
	Args []string
	// Files is a pattern in the package's sources, Own one in the folder inputs here. The
	// runs of an Input with neither take the arguments alone.
	Files, Own string
	// Stdin says that the file is the standard input.
	Stdin bool
}

// Run is one run of a program.
type Run struct {
	Args []string
	// Stdin is the path of the standard input; empty: there is none.
	Stdin string
}

// Runs are the runs of a package whose sources are unpacked in a directory; own is that of
// the inputs of ours.
func (p *Package) Runs(sources, own string) ([]Run, error) {
	var runs []Run
	for _, in := range p.Inputs {
		files, err := in.files(sources, own)
		if err != nil {
			return nil, fmt.Errorf("source: %s: %w", p.Name, err)
		}
		for _, f := range files {
			runs = append(runs, in.runOn(f, sources))
		}
	}
	return runs, nil
}

func (in *Input) files(sources, own string) ([]string, error) {
	pattern := filepath.Join(sources, in.Files)
	switch {
	case in.Own != "":
		pattern = filepath.Join(own, in.Own)
	case in.Files == "":
		return []string{""}, nil
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f string) bool {
		s, err := os.Stat(f)
		return err != nil || !s.Mode().IsRegular() || s.Size() > 4<<20
	})
	if len(files) == 0 {
		return nil, fmt.Errorf("no input is %s", pattern)
	}
	return files, nil
}

func (in *Input) runOn(file, sources string) Run {
	var r Run
	for _, a := range in.Args {
		r.Args = append(r.Args, strings.NewReplacer("{}", file, "{dir}", sources).Replace(a))
	}
	if in.Stdin {
		r.Stdin = file
	}
	return r
}

// Files are the paths of the files that bugs are put into, relative to the sources.
func (p *Package) Files(sources string) ([]string, error) {
	var list []string
	for _, pattern := range p.Sources {
		found, err := filepath.Glob(filepath.Join(sources, pattern))
		if err != nil {
			return nil, fmt.Errorf("source: %s: %w", p.Name, err)
		}
		for _, f := range found {
			name, err := filepath.Rel(sources, f)
			if err != nil {
				return nil, fmt.Errorf("source: %s: %w", p.Name, err)
			}
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// DebianName is the name of Debian's source package.
func (p *Package) DebianName() string {
	if p.Debian != "" {
		return p.Debian
	}
	return p.Name
}

// Named is the package of a name in Packages; nil: there is none.
func Named(name string) *Package {
	for i := range Packages {
		if Packages[i].Name == name {
			return &Packages[i]
		}
	}
	return nil
}
