package driver_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// A crash in C that Python code called has the Python frames of the failing thread.
func TestPythonFrames(t *testing.T) {
	out, err := exec.Command("/usr/bin/python3", "-c", "import sys, ctypes; print(sys.version_info[:2] in ((3, 11), (3, 12), (3, 13)))").Output()
	if err != nil || strings.TrimSpace(string(out)) != "True" {
		t.Skip("/usr/bin/python3 is no Python 3.11 to 3.13")
	}
	exe, err := filepath.EvalSymlinks("/usr/bin/python3")
	if err != nil {
		t.Fatal(err)
	}
	c := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Args: []string{"-c", "import ctypes\ndef peek(at):\n    return ctypes.string_at(at)\npeek(8)\n"}})})
	if len(c.Python) != 1 {
		t.Fatalf("%+v", c.Python)
	}
	s := c.Python[0]
	if n := len(s.Frames); n != 3 || s.Stopped != "" || s.Frames[0].Function != "string_at" || s.Frames[1] != (evidence.PythonFrame{Function: "peek", File: "<string>", Line: 3}) ||
		s.Frames[2].Function != "<module>" || s.Frames[2].Line != 4 || s.Threads[0] != *c.Failure.Thread {
		t.Errorf("%+v", s)
	}
}

// The races of a report are attached to the case of a core, and a file that cannot be read is an unusable input.
func TestRaceReport(t *testing.T) {
	f := crashtest.Named(t, "null_read")
	x := f.Crash(t, f.AllVariants()[0])
	c := crash(t, driver.Request{Core: x.Core, RaceReports: []string{"testdata/race.txt"}})
	if len(c.Races) != 1 || c.Races[0].Accesses[0].Stack[0].Function != "main.(*counter).add" || c.Races[0].Report != "testdata/race.txt" {
		t.Errorf("%+v", c.Races)
	}
	if _, err := driver.Crash(t.Context(), driver.Request{Core: x.Core, RaceReports: []string{"testdata/no such file"}}); err == nil {
		t.Error("a missing report is no error")
	}
}
