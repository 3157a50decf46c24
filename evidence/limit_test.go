package evidence

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// codes are the limit codes that limit.go declares.
func codes(t *testing.T) []LimitCode {
	file, err := parser.ParseFile(token.NewFileSet(), "limit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var list []LimitCode
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := v.Type.(*ast.Ident); ok && name.Name == "LimitCode" {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, LimitCode(text))
		}
		return true
	})
	if len(list) < 20 {
		t.Fatalf("only %d codes were found", len(list))
	}
	return list
}

// Every code has words, and the words have all facts that a reader needs.
func TestLimitWords(t *testing.T) {
	seen := map[string]LimitCode{}
	for _, c := range codes(t) {
		l := Limit{Code: c, Pass: 3, Count: 4, Of: 5, Addr: 0x6, Names: []string{"name"}, Reason: "reason", Subject: "subject", Place: "place", Experiment: "what"}.Worded()
		if l.Text == "" {
			t.Errorf("%s has no words", c)
		}
		if c == LimitFailedPart || c == LimitOfRecording || c == LimitReplayEnded || c == LimitRecordingCut {
			continue // the reason is the text
		}
		if other := seen[l.Text]; other != "" || strings.HasSuffix(l.Text, "subject: reason") {
			t.Errorf("%s and %s have the words %q", c, other, l.Text)
		}
		seen[l.Text] = c
	}
}

// Two limits are the same whatever their words are, and are not if a fact differs.
func TestSameLimit(t *testing.T) {
	ended := Limit{Code: LimitPassEnded, Pass: 1, Reason: "why"}
	list := AddLimit(AddLimit(nil, ended), ended)
	restore := Reword(strings.ToUpper)
	defer restore()
	list = AddLimit(list, ended)
	if len(list) != 1 || list[0].Text != "pass 1 ended early: why" {
		t.Errorf("%+v", list)
	}
	ended.Pass = 2
	if list = AddLimit(list, ended); len(list) != 2 || list[1].Text != "PASS 2 ENDED EARLY: WHY" {
		t.Errorf("%+v", list)
	}
	if l := LimitOf(list, LimitTime, LimitPassEnded); l != &list[0] {
		t.Errorf("%+v", l)
	}
}

// Documents before version 2 have a limit of a replay as its text alone.
func TestOldLimits(t *testing.T) {
	var d Diagnosis
	const old = `{"coverage": {"passes": 2, "limits": ["pass 1 ended early: why"]}, "unknown": {"why": "x", "because": ["pass 1 ended early: why"]}}`
	if err := json.Unmarshal([]byte(old), &d); err != nil {
		t.Fatal(err)
	}
	if l := d.Coverage.Limits; len(l) != 1 || l[0].Text != "pass 1 ended early: why" || len(d.Unknown.Because) != 1 {
		t.Errorf("%+v", d)
	}
	l := Limit{Code: LimitTime, Time: "1s", Names: []string{"deadlocks"}}.Worded()
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var again Limit
	if err := json.Unmarshal(text, &again); err != nil || !again.Same(&l) || again.Text != l.Text {
		t.Errorf("%s: %+v, %v", text, again, err)
	}
}
