package mutant

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// Sites are the bugs in those lines of a package that its inputs execute.
func Sites(src *source.Unpacked, covered tree.Lines) ([]Site, error) {
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
			if (b.Class == inject.Concurrency) == src.Threads && reached(covered[name], &b) {
				sites = append(sites, Site{name, b})
			}
		}
	}
	return sites, nil
}

// reached reports whether a line of the changed statement is executed.
func reached(covered map[int]bool, b *inject.Mutation) bool {
	for line := b.Line; line <= b.Last; line++ {
		if covered[line] {
			return true
		}
	}
	return false
}

// Choose picks the bug of a seed: first an operator, so that rare ones occur as often as
// others, then one of its places.
func Choose(id ID, sites []Site, levels []tree.Variant) (*Mutant, error) {
	byOperator := map[string][]Site{}
	for _, s := range sites {
		byOperator[s.Bug.Operator] = append(byOperator[s.Bug.Operator], s)
	}
	if len(byOperator) == 0 {
		return nil, fmt.Errorf("mutant: %s: no place for a bug", id)
	}
	var names []string
	for name := range byOperator {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	random := rand.New(rand.NewPCG(id.hash("choice"), id.Seed))
	of := byOperator[names[random.IntN(len(names))]]
	s := of[random.IntN(len(of))]
	return &Mutant{ID: id, Level: levels[random.IntN(len(levels))].Name, File: s.File, Bug: s.Bug}, nil
}
