package ways

import (
	"path/filepath"
	"testing"
	"time"
)

func TestRecordOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "once")
	once := Once{Path: "/bin/true", Args: []string{"a"}, Options: []string{"--races=turns"}, Time: 20 * time.Second}
	script := `[ "$1 $2 $3 $5 $6 $7 $8" = "record --all --output --races=turns -- /bin/true a" ] || exit 9
for n in $NAMES; do mkdir -p "$4/$n"; done`
	for names, passed := range map[string]bool{"p-0001-passed": true, "p-0001-SIGSEGV": false} {
		once.Env = []string{"NAMES=" + names}
		path, err := tool(t, script).RecordOnce(t.Context(), once, dir)
		if err != nil || filepath.Base(path) != names || Passed(path) != passed {
			t.Errorf("%s: %q, %v", names, path, err)
		}
	}
	once.Env = []string{"NAMES=.p-0001"}
	if path, err := tool(t, script).RecordOnce(t.Context(), once, dir); err != nil || path != "" {
		t.Errorf("a recording that was not finished: %q, %v", path, err)
	}
}
