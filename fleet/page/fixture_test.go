package page

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"diagnose/corpus"
)

// now is the moment of the tests.
var now = time.Date(2026, 3, 20, 9, 0, 0, 0, time.Local)

// hostile is a name that a failing program may have.
const hostile = `<script>alert(1)</script>"'&\x00` + "\u202e"

// planted is a failure that a test puts into a corpus.
type planted struct {
	program, build, ended, cause, kind, summary string
	labels                                      map[string]string
	at                                          time.Time
	passed                                      bool
}

// digest is a name of an entry or of a cause.
func digest(n int) string { return fmt.Sprintf("%032x", n) }

// plant makes a corpus with failures, without their files.
func plant(t testing.TB, list []planted) *corpus.Corpus {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "corpus")
	made, err := corpus.Create(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	made.Close()
	db, err := sql.Open("sqlite", filepath.Join(dir, "corpus.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := tx.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}
	report := packed(t)
	for i, p := range list {
		id := digest(i + 1)
		exec(`INSERT INTO entries (id, kind, program, build_id, outcome, ended, likeness, culprit, passed, failed_at, added_at, bytes, source) VALUES (?, 'core', ?, ?, ?, ?, '', '', ?, ?, ?, 4096, '/srv/cores')`,
			id, "/srv/bin/"+p.program, p.build, "it ended by "+p.ended, p.ended, p.passed, p.at.UnixNano(), p.at.UnixNano())
		exec("INSERT INTO history (at, entry, what, detail) VALUES (?, ?, 'added', '/srv/cores')", p.at.UnixNano(), id)
		for k, v := range p.labels {
			exec("INSERT INTO labels (entry, key, value) VALUES (?, ?, ?)", id, k, v)
		}
		if p.cause == "" {
			continue
		}
		exec(`INSERT INTO diagnoses (entry, version, status, reason, stack, cause, kind, proof, summary, started_at, took_ns, cpu_ns, rss_bytes, report, class, estimate) VALUES (?, 'v1', 'diagnosed', '', ?, ?, ?, 'proved', ?, ?, 1, 1, 1, ?, 'heap-buffer-overflow(write)', 'EXPLOITABLE')`,
			id, p.cause, p.cause, p.kind, p.summary, p.at.UnixNano(), report)
		exec("INSERT OR IGNORE INTO signatures (digest, lines) VALUES (?, ?)", p.cause, "parse_header\nmain\n"+p.kind)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	c, err := corpus.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// packed is a report as a corpus keeps it.
func packed(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("../../reports/testdata/sample.json")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// week is a corpus of a team: three causes, a flaky test, passed runs, a hostile program, a failure
// without a diagnosis.
func week(t testing.TB) *corpus.Corpus {
	var list []planted
	back := func(days, hours int) time.Time {
		return now.AddDate(0, 0, -days).Add(-time.Duration(hours) * time.Hour)
	}
	for i := range 30 {
		list = append(list, planted{program: "server", build: fmt.Sprintf("%040x", 0xa0+i/10), ended: "SIGSEGV", cause: digest(0xc1), kind: "heap-overflow",
			summary: "copy_name writes 8 bytes after the object that parse_header allocated", at: back(29-i, i%5), labels: map[string]string{"host": fmt.Sprintf("web-%d", i%4)}})
	}
	for i := range 3 {
		list = append(list, planted{program: "server", build: fmt.Sprintf("%040x", 0xa2), ended: "SIGABRT", cause: digest(0xc2), kind: "deadlock", summary: "two threads take lock_a and lock_b in opposite orders",
			at: back(0, i+1), labels: map[string]string{"host": "web-1", "version": "2.4.1"}})
	}
	list = append(list, planted{program: hostile, ended: "SIGSEGV", cause: digest(0xc3), kind: "null pointer", summary: hostile + strings.Repeat("x", 3000), at: back(0, 2), labels: map[string]string{"host": hostile, "x": hostile}},
		planted{program: "worker", ended: "SIGBUS", at: back(0, 3), labels: map[string]string{"host": "job-1"}})
	for i, commit := range []string{"1111111111aa", "2222222222bb", "3333333333cc", "4444444444dd"} {
		for k := range 10 {
			failed := i >= 2 && k%3 == 0
			p := planted{program: "tests", build: "bb", ended: "passed", passed: !failed, at: back(8-2*i, 10-k), labels: map[string]string{"test": "TestQueue/parallel", "commit": commit}}
			if failed {
				p.ended, p.cause, p.kind, p.summary = "exit-1", digest(0xc4), "data race", "push and pop of queue.head in an order that passing runs do not have"
			}
			list = append(list, p)
		}
	}
	return plant(t, list)
}

// served is a server of a corpus, at the moment of the tests.
func served(t testing.TB, c *corpus.Corpus, token string) *Server {
	t.Helper()
	s, err := New(Options{Corpus: c, Token: []byte(token), Version: "1.2"})
	if err != nil {
		t.Fatal(err)
	}
	s.keep.now = func() time.Time { return now }
	return s
}
