package page

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// large is a corpus of that many failures of 500 causes, 40 programs, 200 hosts and 60 days, a tenth
// of them of tests.
func large(t testing.TB, failures int) *Server {
	var list []planted
	for i := range failures {
		cause := i * i % 500
		p := planted{program: fmt.Sprintf("service-%d", cause%40), build: fmt.Sprintf("%040x", 1000+i/(failures/60+1)), ended: "SIGSEGV", cause: digest(1e6 + cause), kind: "heap-overflow",
			summary: fmt.Sprintf("function_%d writes after the object that function_%d allocated", cause, cause+1), at: now.Add(-time.Duration(i) * 60 * 24 * time.Hour / time.Duration(failures)), labels: map[string]string{"host": fmt.Sprintf("host-%d", i%200)}}
		if i%10 == 0 {
			p.labels["test"], p.labels["commit"], p.passed = fmt.Sprintf("Test%d", i/10%100), fmt.Sprintf("%040x", i/100), i%20 == 0
		}
		list = append(list, p)
	}
	return served(t, plant(t, list), "")
}

// largePages are the pages that are measured: first of all the state that all are made of, which is
// read again after the corpus was changed.
var largePages = []string{"/", "/causes", "/causes?program=service-7", "/failures", "/failures?page=50", "/failures?from=2026-03-01&to=2026-03-10", "/cause/" + digest(1e6+1), "/failure/" + digest(5000),
	"/tests", "/test?name=Test9", "/search?q=function_41", "/metrics"}

// BenchmarkPages measures each page of a corpus with 10,000 failures; docs/serve.md has the figures.
func BenchmarkPages(b *testing.B) {
	s := large(b, 10_000)
	b.Run("state", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.keep.read(b.Context(), now); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, path := range largePages {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				if status, text := get(b, s, path); status != http.StatusOK {
					b.Fatalf("status %d: %s", status, text)
				}
			}
		})
	}
}

// A page of a large corpus is not larger than one of a small corpus by much.
func TestLargePages(t *testing.T) {
	s := large(t, 3000)
	for _, path := range largePages {
		if path == "/failure/"+digest(5000) {
			continue
		}
		if status, text := get(t, s, path); status != http.StatusOK || len(text) > 300<<10 {
			t.Errorf("%s: status %d, %d bytes", path, status, len(text))
		}
	}
}
