package nightly

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"diagnose/reports"
)

const hostileText = "a\x1b]0;owned\x07</title></style></script><script>document.title='owned'</script><img src=x onerror=alert(1)>" +
	"\"'`${alert(1)}{{.}}&lt;!-- -->\n\n# b\u202ec\u009b31m\x7f\U000e0041|d\xff"

// hostileSummary returns a summary with that text in every string.
func hostileSummary() *Summary {
	s := sampleSummary()
	fill(reflect.ValueOf(s).Elem(), hostileText)
	for i, list := range [][]Group{s.New, s.Back, s.Known, s.Fixed} {
		for j := range list { // digests are computed by the corpus
			list[j].Digest = strings.Repeat(string(rune('a'+i)), 8) + strings.Repeat(string(rune('0'+j)), 24)
		}
	}
	return s
}

// fill sets every string below v, and returns how many there are.
func fill(v reflect.Value, text string) (n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return 1
	case reflect.Pointer:
		if !v.IsNil() {
			return fill(v.Elem(), text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += fill(v.Index(i), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += fill(v.Field(i), text)
			}
		}
	}
	return n
}

// forms returns a summary in each of its forms.
func forms(t testing.TB, s *Summary) map[string]string {
	t.Helper()
	var text, doc bytes.Buffer
	if err := s.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := reports.WriteJSON(&doc, s); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"text": text.String(), "json": doc.String(), "html": pageOf(t, s, PageOptions{})}
}

// No text from a failing program is markup, a control character or a link, and a line stays one
// line.
func TestHostileTextInEveryForm(t *testing.T) {
	s := hostileSummary()
	if n := fill(reflect.ValueOf(hostileSummary()).Elem(), ""); n < 80 {
		t.Fatalf("only %d strings are hostile", n)
	}
	for form, text := range forms(t, s) {
		if !utf8.ValidString(text) {
			t.Errorf("%s is no UTF-8", form)
		}
		if i := strings.IndexAny(text, "\x1b\x07\x7f\r\u009b\u202e\U000e0041"); i >= 0 {
			t.Errorf("%s holds %q", form, text[i:min(len(text), i+20)])
		}
		if strings.Contains(text, "\n# b") {
			t.Errorf("%s: hostile text broke out of its line", form)
		}
		if !strings.Contains(text, "owned") {
			t.Errorf("%s does not show it at all", form)
		}
		switch form {
		case "json":
			var back Summary
			if err := json.Unmarshal([]byte(text), &back); err != nil || back.New[0].Program != strings.ToValidUTF8(hostileText, "\ufffd") {
				t.Errorf("%v: %q", err, back.New[0].Program)
			}
		case "html":
			if n := strings.Count(text, "<script"); n != 1 {
				t.Errorf("%d scripts", n)
			}
			for _, markup := range []string{"<img", "owned'</script>", "</title></style>", "onerror=alert(1)>"} {
				if strings.Contains(text, markup) {
					t.Errorf("the page holds %s", markup)
				}
			}
			for _, m := range pageLinks.FindAllStringSubmatch(text, -1) {
				if !strings.HasPrefix(m[1], "#") {
					t.Errorf("the page leads to %s", m[1])
				}
			}
		}
	}
}

// Names of a megabyte are cut for people, and complete for programs.
func TestVeryLongNames(t *testing.T) {
	const size = 1 << 20
	s := sampleSummary()
	long := "std::vector<" + strings.Repeat("x", size) + ">"
	s.New[0].Summary, s.New[0].Program, s.Known[0].Summary, s.Undiagnosed[0].Reason = long, long, long, long
	for form, text := range forms(t, s) {
		if form == "json" {
			if len(text) < 4*size {
				t.Error("JSON cut a name")
			}
			continue
		}
		if len(text) > size/8 || strings.Count(text, "more bytes in the JSON form") < 4 {
			t.Errorf("%s has %d bytes, or does not say that it cut names", form, len(text))
		}
	}
}

// A text that the user asks to redact is in no form of a summary.
func TestRedactedSummary(t *testing.T) {
	r, err := reports.ParseRedaction([]string{"home", "environment", "/cust-[0-9]+/"})
	if err != nil {
		t.Fatal(err)
	}
	s := sampleSummary()
	digests := []string{s.New[0].Digest, s.Back[0].Back, s.Known[0].Example}
	private := hostileText + ` /home/alice/src "GREETING=hello world" cust-58213 password=hunter2`
	for _, text := range []*string{&s.Corpus, &s.Run.MemoryWhy, &s.New[0].Summary, &s.New[0].Program, &s.Known[0].Summary, &s.Fixed[0].Summary, &s.Back[0].Note,
		&s.Undiagnosed[0].Reason, &s.Undiagnosed[0].Program, &s.Partial[0].Reason, &s.Tracking.Tracker, &s.Tracking.Error, &s.Tracking.Issues[0].URL, &s.Tracking.Issues[1].Note, &s.Tracking.Issues[2].Error} {
		*text = private
	}
	s.New[0].Lines[1] = `at load: open("/home/alice/cust-58213"); token = next(input);`
	s.Run.Memory = 1 << 30
	s.Redact(r)
	for form, text := range forms(t, s) {
		for _, secret := range []string{"alice", "hello world", "58213", "hunter2"} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s shows %q: %q", form, secret, text[max(0, i-60):i+len(secret)])
			}
		}
		if !strings.Contains(text, "[redacted]") || form == "html" && !strings.Contains(text, "token = next(input);") {
			t.Errorf("%s is not what it was", form)
		}
	}
	if s.New[0].Digest != digests[0] || s.Back[0].Back != digests[1] || s.Known[0].Example != digests[2] {
		t.Errorf("names of the corpus were changed: %+v", s.New[0])
	}
}
