package store

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/bench/truth/inject"
	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/ways"
)

func TestList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	if list, err := ReadList(path); err != nil || len(list) != 0 {
		t.Errorf("a list that does not exist: %v, %v", list, err)
	}
	a, b := Entry{mutant.ID{Package: "a", Version: "1:2-3+x", Seed: 10}, "00ff"}, Entry{mutant.ID{Package: "a", Version: "1:2-3+x", Seed: 9}, "11"}
	if err := WriteList(path, []Entry{a, b}); err != nil {
		t.Fatal(err)
	}
	if list, err := ReadList(path); err != nil || !slices.Equal(list, []Entry{b, a}) {
		t.Errorf("%v, %v", list, err)
	}
	if err := os.WriteFile(path, []byte("a 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadList(path); err == nil {
		t.Error("a short line is accepted")
	}
}

func TestShards(t *testing.T) {
	var list []Entry
	for i := range 23 {
		list = append(list, Entry{ID: mutant.ID{Seed: uint64(i)}, Digest: fmt.Sprint(i * 7 % 23)})
	}
	var all []Entry
	for k := range 5 {
		s, err := ParseShard(fmt.Sprintf("%d/5", k+1))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s.Of(list)...)
	}
	if !slices.Equal(all, list) {
		t.Errorf("the parts are %v", all)
	}
	for _, text := range []string{"0/2", "3/2", "x", "1"} {
		if _, err := ParseShard(text); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	if s, err := ParseShard(""); err != nil || !slices.Equal(s.Of(list), list) {
		t.Errorf("no shard is %v, %v", s, err)
	}
	if spread := Spread(list); len(spread) != len(list) || slices.Equal(spread, list) {
		t.Error("Spread keeps the order")
	}
}

func TestMutants(t *testing.T) {
	s := Store{t.TempDir()}
	m := mutant.Mutant{ID: mutant.ID{Package: "p", Version: "1", Seed: 3}, File: "a.c", Bug: inject.Mutation{Operator: "index", Line: 4}}
	digest := Digest(&m)
	if _, known, err := s.LoadMutant(m.ID, digest); known || err != nil {
		t.Errorf("known is %v, %v", known, err)
	}
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveMutant(m.ID, digest, &mutant.Kept{Mutant: m, Program: program}, ""); err != nil {
		t.Fatal(err)
	}
	if k, known, err := s.LoadMutant(m.ID, digest); !known || err != nil || k.Bug.Line != 4 {
		t.Errorf("%+v, %v, %v", k, known, err)
	}
	if _, known, _ := s.LoadMutant(m.ID, "other"); known {
		t.Error("another bug of the same seed is taken for it")
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if _, known, _ := s.LoadMutant(m.ID, digest); known {
		t.Error("a mutant without its program is taken for whole")
	}
	if err := s.SaveMutant(m.ID, digest, nil, mutant.NoEffect); err != nil {
		t.Fatal(err)
	}
	if k, known, err := s.LoadMutant(m.ID, digest); !known || err != nil || k != nil {
		t.Errorf("a dropped one: %+v, %v, %v", k, known, err)
	}
}

func TestHoldOutTellsNothing(t *testing.T) {
	dir := t.TempDir()
	s := Store{dir}
	id := mutant.ID{Package: "program-of-the-hold-out", Version: "1"}
	for !id.HoldOut() {
		id.Seed++
	}
	r := Result{ID: id, Way: ways.Core, Operator: "secret-operator", Score: score.Score{Outcome: score.Wrong}, Code: Code{"h", "c"}}
	if err := s.SaveResult(&r); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveReport(id, ways.Core, []byte("secret-report")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if all := path[len(dir):] + string(text); strings.Contains(all, "secret") || strings.Contains(all, "program-of") {
			t.Errorf("%s tells %s", path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.LoadResult(id, ways.Core); err != nil || got == nil || got.Outcome != score.Wrong || got.ID != id || !got.HoldOut() {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.LoadResult(id, ways.Agent); err != nil || got != nil {
		t.Errorf("another way: %+v, %v", got, err)
	}
	if err := s.DropResults(id); err != nil {
		t.Fatal(err)
	}
	if got, err := s.LoadResult(id, ways.Core); err != nil || got != nil {
		t.Errorf("a result that was dropped: %+v, %v", got, err)
	}
}

// TestReadOperators: the package that makes bugs has a hash, another one than the packages that judge.
func TestReadOperators(t *testing.T) {
	first, err := ReadOperators(t.Context(), "../../..")
	if err != nil {
		t.Fatal(err)
	}
	code, err := ReadCode(t.Context(), "../../..")
	if err != nil || first == "" || code.Hash == first {
		t.Errorf("%q, %+v, %v", first, code, err)
	}
}

func TestHashPackages(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := "diagnose/evidence"
	hash := func() string {
		list, err := json.Marshal(listed{Dir: dir, ImportPath: path, GoFiles: []string{"a.go"}, EmbedFiles: []string{"b.c"}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := hashPackages(append(list, list...), judge)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	put("a.go", "1")
	put("b.c", "2")
	put("c.go", "3")
	first := hash()
	put("c.go", "4")
	if hash() != first {
		t.Error("a file of no package changes the hash")
	}
	for _, name := range []string{"a.go", "b.c"} {
		before := hash()
		put(name, "changed")
		if hash() == before {
			t.Errorf("%s does not change the hash", name)
		}
	}
	path = "diagnose/bench/truth/source"
	before := hash()
	put("a.go", "changed again")
	if hash() != before {
		t.Error("a package of the bench that does not judge changes the hash")
	}
}
