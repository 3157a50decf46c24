package secrets

import (
	"strings"
	"testing"
)

// TestValuesInsideValues: names inside of values take linear time (this test would take
// minutes), and a secret after the longest value is still found.
func TestValuesInsideValues(t *testing.T) {
	const secret = "q7Zk29XvB4nM81Lt"
	for _, x := range []struct{ again, last string }{
		{"password={", `"` + secret + `"`},
		{"PWD={", `"` + secret + `"`},
		{"pass = { {} ", `"` + secret + `"`},
		{"key=", secret},
		{"key=f/", "key=" + secret},
		{"key=)", "key=" + secret + ")"},
		{"pass=", "0 password=" + secret},
	} {
		for _, times := range []int{1, 3000, 60_000} {
			text := strings.Repeat(x.again, times) + x.last
			at := strings.Index(text, secret)
			found := false
			for _, s := range new(Finder).Text(text) {
				found = found || s.Start <= at && at+len(secret) <= s.End
			}
			if !found {
				t.Errorf("%q, %d times: %q is not found", x.again, times, x.last)
			}
		}
	}
}
