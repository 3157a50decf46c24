package blocks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const markedCopy = `#include <stdio.h>
DIAGNOSE_BEGIN
#include <math.h>
static long most;
DIAGNOSE_END
int f(int n)
{
    int m = n; /* { */
DIAGNOSE_BEGIN
    if (m > most) {
        most = m;
        printf("}");
    }
DIAGNOSE_END;
    // a comment

    return m;
}
`

func TestMarkedCopy(t *testing.T) {
	s, err := Parse("dir/f.c", []byte(markedCopy))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Blocks) != 1 || s.Blocks[0].At != "f.c:7" || s.Blocks[0].Line != 10 || !strings.HasPrefix(s.Blocks[0].Text, "    if (m > most) {\n") {
		t.Errorf("blocks %+v", s.Blocks)
	}
	if len(s.Parts) != 1 || s.Parts[0].Line != 3 || s.Parts[0].Text != "\nstatic long most;\n" {
		t.Errorf("parts %+v", s.Parts)
	}
	if !slices.Equal(s.Includes, []string{"<math.h>"}) {
		t.Errorf("includes %q", s.Includes)
	}
}

func TestPlaced(t *testing.T) {
	s, err := Parse("code.c", []byte(`#include <math.h>
static int seen;
static void note(int at) { seen += at; }
at src/queue.c:69 { note(q->len); }

at queue.c:70 {
	#include <ctype.h>
	if (q) { seen++; }
}
static int last;
`))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%v %v %v", s.Blocks, s.Parts, s.Includes)
	want := "[{ note(q->len);  4 src/queue.c:69} {\n\t\n\tif (q) { seen++; }\n 6 queue.c:70}] " +
		"[{\nstatic int seen;\nstatic void note(int at) { seen += at; }\n 1} {\nstatic int last;\n 9}] [<math.h> <ctype.h>]"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "x.c: it has no code to run",
		"int f(void) {\nDIAGNOSE_BEGIN\nx();":   "x.c:2: DIAGNOSE_BEGIN without DIAGNOSE_END",
		"DIAGNOSE_END":                          "x.c:1: DIAGNOSE_END without DIAGNOSE_BEGIN",
		"DIAGNOSE_BEGIN\nDIAGNOSE_BEGIN":        "x.c:2: DIAGNOSE_BEGIN again",
		"{\nDIAGNOSE_BEGIN\n}\nDIAGNOSE_END\n}": "x.c:3: a closing brace",
		"at x.c:1 {\nif (x) {\n}":               "x.c:1: the code has no closing brace",
		"at x.c:1 {\n#include \"own.h\"\n}":     "x.c:2: only headers of the system",
		"at x.c:1 {\n#include <../own.h>\n}":    "x.c:2: only headers of the system",
		"{\nDIAGNOSE_BEGIN\nx;\nDIAGNOSE_END":   "x.c:3: nothing of the program",
	} {
		_, err := Parse("x.c", []byte(text))
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Bare(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestIdentifiers(t *testing.T) {
	got := Identifiers("#define MORE(x) \\\n more(x)\nint a = b->c + 'd' + \"e\"; // f\n/* g */ a;")
	if want := []string{"int", "a", "b", "c", "define", "MORE", "x", "more"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(markedCopy)
	f.Add("at a:1 { '\\")
	f.Add("at a:1 {} /*")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("x.c", []byte(text))
		if err != nil {
			return
		}
		for _, b := range s.Blocks {
			if b.Line < 1 || !strings.Contains(b.At, ":") {
				t.Errorf("%+v", b)
			}
			Identifiers(b.Text)
		}
	})
}

func TestDeclared(t *testing.T) {
	got := Declared("struct a { int b; }; extern int c(struct d *e, int f); typedef int (*g)(int h); static long i = 3; enum j { k } l;")
	for _, name := range []string{"c", "g", "i", "l", "struct a", "struct d", "enum j"} {
		if !got[name] {
			t.Errorf("%s is missing", name)
		}
	}
	for _, name := range []string{"a", "b", "d", "e", "f", "h", "j"} {
		if got[name] {
			t.Errorf("%s is declared", name)
		}
	}
}
