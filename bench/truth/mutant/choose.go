package mutant

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"diagnose/bench/truth/inject"
	"diagnose/bench/truth/source"
	"diagnose/bench/truth/tree"
)

// ID says which mutant of which program it is. Together with the operators of package inject
// it decides everything.
type ID struct {
	Package string `json:"package"`
	Version string `json:"version"`
	Seed    uint64 `json:"seed"`
}

func (id ID) String() string { return fmt.Sprintf("%s %s %d", id.Package, id.Version, id.Seed) }

// hash is a number that is equal on all machines.
func (id ID) hash(purpose string) uint64 {
	sum := sha256.Sum256([]byte(purpose + " " + id.String()))
	return binary.LittleEndian.Uint64(sum[:])
}

// HoldOut reports whether only totals may be told of a mutant: of some packages all, of the
// others some. Together they are about a quarter.
func (id ID) HoldOut() bool {
	whole := ID{Package: id.Package}.hash("hold-out package")
	return whole%8 == 0 || id.hash("hold-out")%7 == 0
}

// Mutant is a program with a bug.
type Mutant struct {
	ID
	// Level is the name of the variant that is diagnosed.
	Level string `json:"level"`
	// File is relative to the top of the sources.
	File string          `json:"file"`
	Bug  inject.Mutation `json:"bug"`
}

// Site is a bug that is possible in a program.
type Site struct {
	File string
	Bug  inject.Mutation
}

// Sites are the bugs that change what a package does on one of its inputs, of which covered
// has the executed lines.
func Sites(src *source.Unpacked, covered []tree.Lines) ([]Site, error) {
	files, err := src.Files(src.Dir)
	if err != nil {
		return nil, err
	}
	var sites []Site
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(src.Dir, name))
		if err != nil {
			return nil, fmt.Errorf("mutant: %w", err)
		}
		bugs, err := inject.Find(name, text)
		if err != nil {
			return nil, err
		}
		for _, b := range bugs {
			reached := func(lines tree.Lines) bool { return reaches(lines[name], &b) }
			if (b.Class == inject.Concurrency) == src.Concurrent() && slices.ContainsFunc(covered, reached) {
				sites = append(sites, Site{name, b})
			}
		}
	}
	return sites, nil
}

// reaches reports whether a run that executed these lines of the file is changed by the bug.
// Where the body of a check is on the line of the condition, all of the line must be executed.
func reaches(lines map[int]tree.Extent, b *inject.Mutation) bool {
	for _, line := range b.Effect {
		if lines[line] == tree.Wholly || lines[line] == tree.Partly && !b.Conditional {
			return true
		}
	}
	return false
}

// Choose picks the bug of a seed: first an operator, so that rare ones occur as often as
// others, then one of its places. The seed ranks the operators and the places, so one more of
// either changes the choice of few seeds.
func Choose(id ID, sites []Site, levels []tree.Variant) (*Mutant, error) {
	if len(sites) == 0 {
		return nil, fmt.Errorf("mutant: %s: no place for a bug", id)
	}
	rank := func(s Site) uint64 { return id.hash("operator " + s.Bug.Operator) }
	operator := slices.MinFunc(sites, func(a, b Site) int { return cmp.Compare(rank(a), rank(b)) }).Bug.Operator
	rank = func(s Site) uint64 { return id.hash("place " + s.File + " " + s.Bug.Key()) }
	of := slices.DeleteFunc(slices.Clone(sites), func(s Site) bool { return s.Bug.Operator != operator })
	s := slices.MinFunc(of, func(a, b Site) int { return cmp.Compare(rank(a), rank(b)) })
	level := levels[id.hash("level")%uint64(len(levels))]
	return &Mutant{ID: id, Level: level.Name, File: s.File, Bug: s.Bug}, nil
}
