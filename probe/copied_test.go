package probe_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/probe"
)

// TestCopyDiffers: a marked copy with another line than the recorded source is refused; a source that has changed since is not compared.
func TestCopyDiffers(t *testing.T) {
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	for _, compiler := range []string{"gcc", "clang"} { // only the debug information of clang has the MD5 of sources
		t.Run(compiler, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "queue.c")
			write := func(text string) {
				t.Helper()
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(string(text))
			rec := recorded(t, file, "SIGABRT", compiler, "-O0", "-gdwarf-5")
			const line = "    pushed++; /* PUSHED */\n"
			copied := strings.Replace(string(text), line, "DIAGNOSE_BEGIN\nif (pushed == 5) printf(\"five\\n\");\nDIAGNOSE_END\n"+line, 1)
			asks := func(copied string) error {
				t.Helper()
				log, err := probe.Ask(t.Context(), rec, &probe.Question{Code: code(t, "queue.c", copied)})
				if err == nil && printed(log) != "five\n" {
					t.Errorf("the code printed %q", printed(log))
				}
				return err
			}
			if err := asks(copied); err != nil {
				t.Fatal(err)
			}
			for changed, want := range map[string]string{
				strings.Replace(copied, "return h >> 7;", "return h >> 8;", 1):                              "queue.c:38: the line differs from line 38 of",
				strings.Replace(copied, "pthread_mutex_unlock(&q->lock);\n}\n\n__attr", "\n}\n\n__attr", 1): "queue.c:63: the line differs from line 60 of",
				copied + "/* more */\n":                          "ends after",
				strings.TrimSuffix(copied, "    return 0;\n}\n"): "the copy ends after line",
			} {
				var wrong *probe.Error
				if err := asks(changed); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
			write(strings.Replace(string(text), "h >> 7", "h >> 9", 1))
			later := time.Now().Add(time.Hour)
			if err := os.Chtimes(file, later, later); err != nil {
				t.Fatal(err)
			}
			if err := asks(strings.Replace(copied, "return h >> 7;", "return h >> 8;", 1)); err != nil {
				t.Errorf("the copy was compared with a source that has changed: %v", err)
			}
		})
	}
}
