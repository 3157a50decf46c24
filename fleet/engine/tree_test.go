package engine

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"
)

var (
	someSum  = digest(sha256.Sum256([]byte("some")))
	otherSum = digest(sha256.Sum256([]byte("other")))
)

func someList() *tree {
	return &tree{[]treeFile{
		{name: "a", size: 5, sum: someSum, chunks: []chunk{{5, someSum}}},
		{name: "b/c", executable: true, sum: otherSum},
		{name: "core", size: 3*segment + 7, sum: otherSum, extents: []extent{{true, segment}, {false, segment}, {true, segment + 7}}, chunks: []chunk{{segment - 1, someSum}, {1, otherSum}}},
		{name: "holes", size: segment, sum: otherSum, extents: []extent{{true, segment}}},
	}}
}

func TestTreeList(t *testing.T) {
	text := someList().encode()
	want := listHead + `file 600 5 ` + someSum.String() + ` "a"
chunk 5 ` + someSum.String() + `
file 700 0 ` + otherSum.String() + ` "b/c"
file 600 196615 ` + otherSum.String() + ` "core"
hole 65536
data 65536
hole 65543
chunk 65535 ` + someSum.String() + `
chunk 1 ` + otherSum.String() + `
file 600 65536 ` + otherSum.String() + ` "holes"
hole 65536
`
	if string(text) != want {
		t.Errorf("%s", text)
	}
	got, err := decodeTree(text)
	if err != nil || !bytes.Equal(got.encode(), text) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestHostileLists(t *testing.T) {
	good := string(someList().encode())
	for name, change := range map[string][]string{
		"version":     {"diagnose-tree 1", "diagnose-tree 2"},
		"leaves":      {`"b/c"`, `"b/../../c"`},
		"absolute":    {`"b/c"`, `"/c"`},
		"unclean":     {`"b/c"`, `"b//c"`},
		"control":     {`"b/c"`, `"b/\x1b"`},
		"bytes":       {`"b/c"`, `"b/\xff"`},
		"itself":      {`"a"`, `"."`},
		"order":       {`"a"`, `"x"`},
		"twice":       {`"b/c"`, `"a"`},
		"below":       {`"b/c"`, `"a/c"`},
		"long":        {`"b/c"`, `"b/` + strings.Repeat("c", longestName) + `"`},
		"deep":        {`"b/c"`, `"b` + strings.Repeat("/c", mostDepth) + `"`},
		"quotes":      {`"b/c"`, "`b/c`"},
		"mode":        {"file 700", "file 755"},
		"size":        {"file 600 5 ", "file 600 6 "},
		"negative":    {"file 600 5 ", "file 600 -5 "},
		"number":      {"file 600 5 ", "file 600 +5 "},
		"digest":      {someSum.String(), strings.ToUpper(someSum.String())},
		"short":       {someSum.String(), someSum.String()[1:]},
		"extent":      {"hole 65543", "hole 65544"},
		"overflow":    {"hole 65543", "hole 9223372036854775807"},
		"zero":        {"hole 65536\ndata", "hole 0\ndata"},
		"holes":       {"data 65536", "hole 65536"},
		"chunk":       {"chunk 1 ", "chunk 2 "},
		"empty chunk": {"chunk 1 ", "chunk 0 "},
		"huge chunk":  {"chunk 5 ", "chunk 917505 "},
		"unknown":     {"chunk 1 ", "chink 1 "},
		"first":       {listHead, listHead + "chunk 5 " + someSum.String() + "\n"},
		"end":         {"\nhole 65536\n", "\nhole 65536"},
		"more":        {"hole 65543\n", "hole 65543\n\n"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if name == "end" {
			text = strings.TrimSuffix(good, "\n")
		}
		if text == good {
			t.Fatalf("%s changes nothing", name)
		}
		if got, err := decodeTree([]byte(text)); !is[*InputError](err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func FuzzTree(f *testing.F) {
	f.Add(someList().encode())
	f.Add([]byte(listHead))
	f.Add([]byte(listHead + "chunk 5 " + someSum.String() + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if parts, err := decodeHead(text); err == nil {
			total := 0
			for _, c := range parts {
				total += c.size
			}
			if total > mostList {
				t.Errorf("a list of %d bytes", total)
			}
		}
		list, err := decodeTree(text)
		if err != nil {
			if !is[*InputError](err) {
				t.Errorf("%v", err)
			}
			return
		}
		if !bytes.Equal(list.encode(), text) {
			t.Error("another list is the same tree")
		}
		for i := range list.files {
			w := &extentWriter{ctx: t.Context(), file: nowhere{}, extents: list.files[i].layout(), sum: sha256.New()}
			left := 0
			for _, c := range list.files[i].chunks {
				left += c.size
			}
			if left > 1<<20 || list.files[i].size > 1<<24 {
				continue
			}
			if err := w.write(make([]byte, left)); err != nil || w.at != list.files[i].size {
				t.Errorf("%d of %d bytes are laid out, %v", w.at, list.files[i].size, err)
			}
		}
	})
}

type nowhere struct{}

func (nowhere) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
