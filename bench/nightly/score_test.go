package nightly_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
)

// score counts pairs: true positives are of one cause and in one cluster.
type score struct{ both, cluster, cause int }

func rate(list []failure, way string) score {
	var s score
	for i := range list {
		for j := range i {
			same, one := list[i].label == list[j].label, list[i].clusters[way] == list[j].clusters[way]
			if same {
				s.cause++
			}
			if one {
				s.cluster++
			}
			if same && one {
				s.both++
			}
		}
	}
	return s
}

func (s score) precision() float64 { return float64(s.both) / float64(max(1, s.cluster)) }
func (s score) recall() float64    { return float64(s.both) / float64(max(1, s.cause)) }

func (s score) String() string {
	return fmt.Sprintf("precision %.3f, recall %.3f (%d pairs of one cause, %d in one cluster, %d both)", s.precision(), s.recall(), s.cause, s.cluster, s.both)
}

// mistakes are the causes that are in several clusters, and the clusters with several
// causes.
func mistakes(list []failure, way string) string {
	clusters, causes := map[string][]string{}, map[string][]string{}
	for _, f := range list {
		clusters[f.label] = append(clusters[f.label], f.clusters[way])
		causes[f.clusters[way]] = append(causes[f.clusters[way]], f.label)
	}
	var out []string
	for label, names := range clusters {
		slices.Sort(names)
		if names = slices.Compact(names); len(names) > 1 {
			out = append(out, fmt.Sprintf("%s is in %d clusters", label, len(names)))
		}
	}
	for _, labels := range causes {
		slices.Sort(labels)
		if labels = slices.Compact(labels); len(labels) > 1 {
			out = append(out, "one cluster has "+strings.Join(labels, ", "))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// split says of each cause that is in several clusters by what these differ.
func split(t *testing.T, store *corpus.Corpus, list []failure) string {
	t.Helper()
	clusters := map[string]map[string][]string{} // the cases, by cause and cluster
	for _, f := range list {
		if clusters[f.label] == nil {
			clusters[f.label] = map[string][]string{}
		}
		clusters[f.label][f.clusters[byCause]] = append(clusters[f.label][f.clusters[byCause]], f.by)
	}
	var b strings.Builder
	for label, of := range clusters {
		if len(of) == 1 {
			continue
		}
		fmt.Fprintf(&b, "%s is in %d clusters:\n", label, len(of))
		for digest, by := range of {
			lines, err := store.Lines(t.Context(), digest)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "  %v: %q\n", by, lines)
		}
	}
	return b.String()
}

func table(list []failure, scores map[string]score, run *nightly.Run) string {
	var b strings.Builder
	caused, causes := 0, map[string]bool{}
	for _, f := range list {
		causes[f.label] = true
		if f.caused {
			caused++
		}
	}
	b.WriteString("# Clusters against true causes\n\nWritten by `make clusters`")
	if step := os.Getenv(stepVariable); step != "" {
		b.WriteString(" with `" + stepVariable + "=" + step + "`")
	}
	b.WriteString("; [corpus.md](corpus.md) says what signatures are.\n\n")
	fmt.Fprintf(&b, "%d failures of %d causes: each program of `internal/testdata/cause`, and of `bench/nightly/testdata/twins` those that differ in nothing but "+
		"their bugs, compiled with -O0 and with -O2 (some by clang as well), run twice each to fail, with environments of different sizes and where they have "+
		"them with different arguments. A night diagnosed %d of them; of %d the cause was seen on replays.\n\n", len(list), len(causes), run.Diagnosed, caused)
	b.WriteString("| Grouped by | Precision | Recall |\n| --- | --- | --- |\n")
	for _, way := range []string{byStack, byCause, nameless} {
		fmt.Fprintf(&b, "| %s | %.3f | %.3f |\n", way, scores[way].precision(), scores[way].recall())
	}
	b.WriteString("\nOf pairs of failures: precision is how many in one cluster have one cause, recall how many of one cause are in one cluster.\n")
	for _, way := range []string{byCause, nameless} {
		wrong := mistakes(list, way)
		if wrong == "" {
			continue
		}
		fmt.Fprintf(&b, "\nWhat is wrong by %s:\n\n", way)
		for line := range strings.Lines(wrong) {
			b.WriteString("- " + line)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// write puts a section into a document. It replaces the section that begins in the same way, or is
// added after all others. A section that begins with nothing is the first.
func write(t *testing.T, path, begins, text string) {
	t.Helper()
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	sections := strings.SplitAfter("\n"+string(old), "\n\n## ")
	for i := range sections {
		sections[i] = strings.TrimSpace(strings.TrimSuffix(sections[i], "## "))
	}
	at := 0
	if begins != "" {
		at = 1 + slices.IndexFunc(sections[1:], func(s string) bool { return strings.HasPrefix(s, begins) })
		if at == 0 {
			at, sections = len(sections), append(sections, "")
		}
	}
	sections[at] = strings.TrimSpace(text)
	if err := os.WriteFile(path, []byte(strings.Join(sections, "\n\n## ")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWrite(t *testing.T) {
	path := t.TempDir() + "/table.md"
	for _, x := range []struct{ begins, text, want string }{
		{"", "# One\n\ntwo\n", "# One\n\ntwo\n"},
		{"How", "How it is\n\nso\n", "# One\n\ntwo\n\n## How it is\n\nso\n"},
		{"Why", "Why it is", "# One\n\ntwo\n\n## How it is\n\nso\n\n## Why it is\n"},
		{"How", "How it was", "# One\n\ntwo\n\n## How it was\n\n## Why it is\n"},
		{"", "# Three", "# Three\n\n## How it was\n\n## Why it is\n"},
	} {
		write(t, path, x.begins, x.text)
		if got, err := os.ReadFile(path); err != nil || string(got) != x.want {
			t.Errorf("%q, %v, want %q", got, err, x.want)
		}
	}
}
