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

// TestPluginsAtOneAddress: an object gets nothing of another one that was at its address.
func TestPluginsAtOneAddress(t *testing.T) {
	for _, b := range builds {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			path, err := exec.LookPath(b.compiler)
			if err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			exe, first, second := filepath.Join(dir, "program"), filepath.Join(dir, "first.so"), filepath.Join(dir, "second.so")
			for _, args := range [][]string{{"-o", exe, "-ldl"}, {"-DFIRST", "-shared", "-fPIC", "-o", first}, {"-DSECOND", "-shared", "-fPIC", "-o", second}} {
				if out, err := exec.Command(path, append([]string{"-g", b.level, "../internal/testdata/probe/plugins.c"}, args...)...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			for last, loaded := range map[string][]string{"first": {second, first, second, first, first}, "second": {first, second, first, first, second}} {
				rec, err := record.Open(recordtest.RecordProgram(t, exe, loaded, "", "SIGABRT").Dir)
				if err != nil {
					t.Fatal(err)
				}
				defer rec.Close()
				log := ask(t, rec, probe.Question{Calls: []string{"plugin_work"}, Returns: []string{"plugin_work"}, Lines: []string{map[string]string{"first": "plugins.c:7", "second": "plugins.c:16"}[last]}})
				var by, twice []string
				for _, path := range loaded {
					if filepath.Base(path) == last+".so" {
						by, twice = append(by, "0", "1", "2", "3"), append(twice, "0", "2", "4", "6")
					}
				}
				check(t, values(log, probe.KindCall, "plugin_work", "by"), by, last+": calls")
				check(t, values(log, probe.KindReturn, "plugin_work", probe.Result), twice, last+": results")
				hits := uint64(0)
				for i := range log.Places {
					if p := &log.Places[i]; p.Kind == probe.KindLine {
						hits += p.Hits
					}
				}
				if hits != uint64(len(by)) {
					t.Errorf("%s: the line was reached %d times, want %d", last, hits, len(by))
				}
			}
		})
	}
}
