package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// makefile is the name of the makefile that is written for a package without one.
const makefile = "truth.mk"

// writeMakefile writes the makefile of a package that is described by its sources.
func (t *Tree) writeMakefile() error {
	sources, err := t.compiled()
	if err != nil {
		return err
	}
	text := t.makefileText(sources)
	return os.WriteFile(filepath.Join(t.Top, makefile), []byte(text), 0o644)
}

// addDriver puts the main function of ours, of a directory, among the sources.
func (t *Tree) addDriver(dir string) (err error) {
	if t.Compile == nil || t.Compile.Driver == "" {
		return nil
	}
	if t.driver, err = os.ReadFile(filepath.Join(dir, t.Compile.Driver)); err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	return os.WriteFile(filepath.Join(t.Dir, driver(t.Compile.Driver)), t.driver, 0o644)
}

func driver(name string) string { return "truth-driver-" + name }

func (t *Tree) makefileText(sources []string) string {
	if t.Compile.Driver != "" {
		sources = append(sources, driver(t.Compile.Driver))
	}
	var objects []string
	linker := "$(CC)"
	for _, s := range sources {
		objects = append(objects, strings.TrimSuffix(s, filepath.Ext(s))+".o")
		if filepath.Ext(s) != ".c" {
			linker = "$(CXX)"
		}
	}
	return fmt.Sprintf(`%[1]s: %[2]s
	%[3]s $(CFLAGS) $(LDFLAGS) -o $@ $^ %[4]s
%%.o: %%.c
	$(CC) $(CFLAGS) -w %[5]s -c -o $@ $<
%%.o: %%.cpp
	$(CXX) $(CXXFLAGS) -w %[5]s -c -o $@ $<
%%.o: %%.cc
	$(CXX) $(CXXFLAGS) -w %[5]s -c -o $@ $<
`, t.Program, strings.Join(objects, " "), linker, t.Compile.Libs, t.Compile.Flags)
}

// compiled are the sources of the program, relative to the top.
func (t *Tree) compiled() ([]string, error) {
	var list []string
	for _, pattern := range t.Compile.Sources {
		found, err := filepath.Glob(filepath.Join(t.Top, pattern))
		if err != nil {
			return nil, fmt.Errorf("tree: %s: %w", pattern, err)
		}
		for _, f := range found {
			name, err := filepath.Rel(t.Top, f)
			if err != nil {
				return nil, fmt.Errorf("tree: %w", err)
			}
			if !slices.Contains(t.Compile.Except, name) {
				list = append(list, name)
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("tree: %s has none of the sources %v", t.Name, t.Compile.Sources)
	}
	return list, nil
}
