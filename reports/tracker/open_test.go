package tracker

import (
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	for spec, want := range map[string]string{
		"github:o/r":                             "https://api.github.com/repos/o/r/issues",
		"github:https://ghe.example.org/o/r":     "https://ghe.example.org/api/v3/repos/o/r/issues",
		"gitlab:g/sub/p":                         "https://gitlab.com/api/v4/projects/g%2Fsub%2Fp/issues",
		"gitea:https://h.example/sub/o/r":        "https://h.example/sub/api/v1/repos/o/r/issues",
		"jira:https://h.example/jira/PRJ?type=X": "https://h.example/jira/rest/api/2",
		"bugzilla:https://h.example/bz/A%2FB/C#": "https://h.example/bz/rest",
		"gitea:http://127.0.0.1:3000/o/r":        "http://127.0.0.1:3000/api/v1/repos/o/r/issues",
		"github:http://example.org/o/r":          "",
		"github:https://user:pw@example.org/o/r": "",
		"github:o":                               "",
		"github:o/..":                            "",
		"gitea:o/r":                              "",
		"jira:https://h.example":                 "",
		"jira:https://h.example/A?kind=1":        "",
		"jira:https://h.example/A%22":            "",
		"ftp:https://h.example/A":                "",
		"github":                                 "",
		"dir:":                                   "",
	} {
		tr, err := Open(spec, Options{})
		if (err == nil) != (want != "") {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if err != nil {
			if strings.Contains(err.Error(), "pw@") {
				t.Errorf("%s: the password is in %v", spec, err)
			}
			continue
		}
		h := tr.(*hosted)
		got := h.base.String()
		switch a := h.api.(type) {
		case *gitHub:
			got += a.path()
		case *gitea:
			got += a.path()
		case *gitLab:
			got += a.path()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
}
