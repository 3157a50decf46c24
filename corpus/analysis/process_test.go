package analysis

import "testing"

func TestParseStat(t *testing.T) {
	text := "12 (a) b (c) R 7 12 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4321 1000 50"
	if s, ok := parseStat([]byte(text)); !ok || s != (status{7, 12, 'R', 4321}) {
		t.Errorf("%+v, %v", s, ok)
	}
	for _, bad := range []string{"", "12", "12 (a", "12 (a) R 7", "12 (a) R x 12 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4321"} {
		if s, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q is %+v", bad, s)
		}
	}
}

func TestWhy(t *testing.T) {
	for stderr, want := range map[string]string{
		"a line\ndiagnose: no such file\ndiagnose: see --help\n":                       "see --help (exit status 3)",
		"diagnose: reading\nfatal error: out of memory\n\ngoroutine 1 [running]:\nx\n": "fatal error: out of memory (exit status 3)",
		"some text\n\n": "some text (exit status 3)",
		"":              "it said nothing (exit status 3)",
	} {
		if got := why(&ending{stderr: stderr, how: "exit status 3"}); got != want {
			t.Errorf("%q: %q, want %q", stderr, got, want)
		}
	}
}
