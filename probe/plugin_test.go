package probe_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"diagnose/internal/recordtest"
	"diagnose/probe"
	"diagnose/replay/record"
)

// TestPlugin: an object that is unloaded and loaded again is observed each time.
func TestPlugin(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		path, err := exec.LookPath(compiler)
		if err != nil {
			t.Skip(err)
		}
		exe, object := filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "plugin.so")
		for _, args := range [][]string{{"-o", exe, "-ldl"}, {"-DPLUGIN", "-shared", "-fPIC", "-o", object}} {
			if out, err := exec.Command(path, append([]string{"-g", "-O1", "../internal/testdata/probe/plugin.c"}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		rec, err := record.Open(recordtest.RecordProgram(t, exe, []string{object}, "", "SIGABRT").Dir)
		if err != nil {
			t.Fatal(err)
		}
		defer rec.Close()
		log := ask(t, rec, probe.Question{Calls: []string{"plugin_work"}, Returns: []string{"plugin_work"}})
		calls, results := values(log, probe.KindCall, "plugin_work", "by"), values(log, probe.KindReturn, "plugin_work", probe.Result)
		var by, sum []string
		for range 3 {
			by, sum = append(by, "0", "1", "2", "3"), append(sum, "0", "1", "3", "6")
		}
		check(t, calls, by, "calls")
		check(t, results, sum, "results")
	}
}
