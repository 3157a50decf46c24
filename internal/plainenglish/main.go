// Command plainenglish finds phrases that readers of comments, messages and documents
// stumble over, and names plain ones.
//
// It looks at the comments and string literals of Go files, the comments of C and assembler
// files, and Markdown. It exits with 1 if a package that is not on the list of unclean
// packages has a phrase of the table, or if a package on the list is clean.
//
//	go run ./internal/plainenglish            # what make lint runs
//	go run ./internal/plainenglish -rate      # phrases per 10,000 words by package
//	go run ./internal/plainenglish -all canary agent/src    # every phrase of two folders
package main

import (
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// uncleanList names the packages that still have phrases of the table, one a line.
// Lines go away as packages are rewritten; none is added.
//
//go:embed unclean.txt
var uncleanList string

func main() {
	rate := flag.Bool("rate", false, "print the phrases per 10,000 words by package")
	all := flag.Bool("all", false, "print the phrases of unclean packages, too")
	flag.Parse()
	packages, err := read(".", flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "plainenglish:", err)
		os.Exit(1)
	}
	switch unclean := strings.Fields(uncleanList); {
	case *rate:
		printRates(os.Stdout, packages)
	case *all:
		printFindings(os.Stdout, packages, nil)
	case !lint(os.Stdout, packages, unclean, flag.NArg() == 0):
		os.Exit(1)
	}
}

// pkg is a folder with its prose.
type pkg struct {
	name     string // the path below the top of the repository, "." for the top itself
	words    int
	findings []finding
}

// per10000 is the number of findings in 10,000 words.
func (p pkg) per10000() float64 {
	return 10_000 * float64(len(p.findings)) / float64(max(p.words, 1))
}

// read returns the folders below root that have prose, all or those that are under one of
// the named ones, ordered by name. The package of this command is left out: its table has
// the phrases.
func read(root string, under []string) ([]pkg, error) {
	packages := map[string]*pkg{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ = filepath.Rel(root, name)
		if entry.IsDir() {
			if name != "." && (strings.HasPrefix(entry.Name(), ".") || name == "bin" || name == "internal/plainenglish") {
				return filepath.SkipDir
			}
			return nil
		}
		folder := filepath.Dir(name)
		if !entry.Type().IsRegular() || !selected(folder, name, under) {
			return nil
		}
		spans, err := fileSpans(filepath.Join(root, name))
		if len(spans) == 0 || err != nil {
			return err
		}
		if packages[folder] == nil {
			packages[folder] = &pkg{name: folder}
		}
		packages[folder].addSpans(name, spans)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var list []pkg
	for _, p := range packages {
		slices.SortStableFunc(p.findings, func(a, b finding) int {
			return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
		})
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b pkg) int { return cmp.Compare(a.name, b.name) })
	return list, nil
}

func selected(folder, file string, under []string) bool {
	return len(under) == 0 || slices.ContainsFunc(under, func(u string) bool {
		u = filepath.Clean(u)
		return u == "." || u == file || folder == u || strings.HasPrefix(folder, u+"/")
	})
}

func (p *pkg) addSpans(file string, spans []span) {
	for _, s := range spans {
		s.file = file
		p.words += s.words()
		p.findings = append(p.findings, check(s)...)
	}
}

// lint reports whether the packages are as the list of unclean ones says. If whole, the
// packages are those of the repository, and a name on the list must be among them.
func lint(w io.Writer, packages []pkg, unclean []string, whole bool) bool {
	printFindings(w, packages, unclean)
	ok := true
	names := map[string]bool{}
	for _, p := range packages {
		names[p.name] = true
		listed := slices.Contains(unclean, p.name)
		if listed && len(p.findings) == 0 {
			fmt.Fprintf(w, "%s is clean now: remove it from internal/plainenglish/unclean.txt\n", p.name)
		}
		ok = ok && listed == (len(p.findings) > 0)
	}
	for _, name := range unclean {
		if whole && !names[name] {
			fmt.Fprintf(w, "%s does not exist: remove it from internal/plainenglish/unclean.txt\n", name)
			ok = false
		}
	}
	return ok
}

// printFindings prints the phrases of the packages, except of those that are named.
func printFindings(w io.Writer, packages []pkg, except []string) {
	for _, p := range packages {
		if slices.Contains(except, p.name) {
			continue
		}
		for _, f := range p.findings {
			fmt.Fprintf(w, "%s:%d: %q: write %s\n", f.file, f.line, f.phrase, f.plain)
		}
	}
}

func printRates(w io.Writer, packages []pkg) {
	total := pkg{name: "all"}
	for _, p := range packages {
		total.words += p.words
		total.findings = append(total.findings, p.findings...)
	}
	for _, p := range append(packages, total) {
		fmt.Fprintf(w, "%-32s %8d words %6d phrases %6.1f per 10,000\n", p.name, p.words, len(p.findings), p.per10000())
	}
}
