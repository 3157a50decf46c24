package store

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"

	"diagnose/bench/truth/mutant"
)

// Entry is a line of the list.
type Entry struct {
	mutant.ID
	// Digest is that of the bug: after a change of the operators a seed makes another one.
	Digest string
}

// Digest is a hash of what a seed makes, and of the answers.
func Digest(m *mutant.Mutant) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %d %v %s", m.Level, m.File, m.Bug.Operator, m.Bug.Line, m.Bug.Root, m.Bug.Original))
	return fmt.Sprintf("%x", sum[:6])
}

// ReadList reads a list. A file that does not exist is an empty list.
func ReadList(path string) ([]Entry, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	var list []Entry
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var e Entry
		if _, err := fmt.Sscan(line, &e.Package, &e.Version, &e.Seed, &e.Digest); err != nil {
			return nil, fmt.Errorf("store: %s: %q: %w", path, line, err)
		}
		list = append(list, e)
	}
	return list, nil
}

// WriteList writes a list, sorted.
func WriteList(path string, list []Entry) error {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Seed, b.Seed))
	})
	var b strings.Builder
	b.WriteString("# The mutants that fail: package, version, seed, and a digest of the bug. Made by go run ./bench/truth -search.\n")
	for _, e := range list {
		fmt.Fprintln(&b, e.Package, e.Version, e.Seed, e.Digest)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// Shard is one of several parts of the list: number K of N, from 1.
type Shard struct{ K, N int }

// ParseShard reads "2/8"; an empty text is the whole list.
func ParseShard(text string) (Shard, error) {
	s := Shard{1, 1}
	if text == "" {
		return s, nil
	}
	if _, err := fmt.Sscanf(text, "%d/%d", &s.K, &s.N); err != nil || s.K < 1 || s.K > s.N {
		return s, fmt.Errorf("store: %q is no shard as 2/8", text)
	}
	return s, nil
}

// Of returns the part's entries. A package's are in one part as far as possible, because its
// build takes longer than its mutants.
func (s Shard) Of(list []Entry) []Entry {
	var part []Entry
	for i, e := range list {
		if i*s.N/max(1, len(list)) == s.K-1 {
			part = append(part, e)
		}
	}
	return part
}

// Spread returns the entries in an order that any beginning of is a fair sample.
func Spread(list []Entry) []Entry {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Digest, b.Digest) })
	return list
}
