package page

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// get asks a server as a program on this machine does.
func get(t testing.TB, s http.Handler, path string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8420"+path, nil)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// allPages are the addresses of all pages of the corpus of week.
var allPages = []string{"/", "/?since=30d", "/causes", "/causes?state=new&since=7d", "/failures", "/failures?from=2026-03-01&to=2026-03-10", "/failures?page=2", "/failures?page=99",
	"/cause/" + digest(0xc1), "/cause/" + digest(0xc3), "/cause/" + digest(0xc4), "/failure/" + digest(1), "/failure/" + digest(34), "/failure/" + digest(35), "/tests", "/test?name=TestQueue%2Fparallel",
	"/search", "/search?q=parse_header", "/search?q=nothing-has-this", "/causes?program=" + url.QueryEscape(hostile), "/causes?label=" + url.QueryEscape("commit=3333333333cc")}

// Every page is whole, and has no text of a program as its own markup.
func TestPages(t *testing.T) {
	s := served(t, week(t), "")
	for _, path := range allPages {
		status, text := get(t, s, path)
		if status != http.StatusOK || !strings.HasSuffix(text, "</html>\n") {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
		if strings.Contains(text, "<script>alert") || strings.Contains(text, "ZgotmplZ") {
			t.Errorf("%s: a program's text is markup", path)
		}
	}
}

// The pages have the data of the corpus.
func TestPagesSay(t *testing.T) {
	s := served(t, week(t), "")
	for path, says := range map[string][]string{
		"/":                               {"4 new causes", "0 back", "heap-overflow in server", "deadlock in server", "1 not diagnosed yet", "copy_name writes 8 bytes"},
		"/causes?program=server":          {"heap-overflow in server", "deadlock in server", "web-3", "1 to 2 of 2"},
		"/causes?host=web-2":              {"1 to 1 of 1", "<strong>7</strong> of 30"},
		"/failures?from=2026-03-20":       {"2026-03-20", "1 to 6 of 6"},
		"/cause/" + digest(0xc1):          {"copy_name", "30, first", "It was seen first with", "No earlier one has runs", `<iframe class="report" src="/cause/` + digest(0xc1) + `/report"`, `sandbox="allow-scripts"`},
		"/cause/" + digest(0xc2):          {"2.4.1", "The last one before it is", "inferred"},
		"/test?name=TestQueue%2Fparallel": {"8 of 40", "20 %", "Flaky", "333333333", "0 % of 20 runs", "40 % of 20 runs", "inferred"},
		"/tests":                          {"TestQueue/parallel", "flaky", "after 2222222222bb, with 3333333333cc"},
		"/search?q=LOCK_A+deadlock":       {"deadlock in server", "1 to 1 of 1"},
		"/search?q=handle_LOGIN":          {"1 to 4 of 4"}, // a function that only the reports name
		"/search?q=web-3":                 {"heap-overflow in server"},
		"/failure/" + digest(34):          {"not removed from it", "/archive"},
	} {
		status, text := get(t, s, path)
		for _, want := range says {
			if status != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("%s: status %d, and it lacks %q", path, status, want)
			}
		}
	}
}
