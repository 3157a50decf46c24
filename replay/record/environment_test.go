package record

import (
	"fmt"
	"slices"
	"testing"
)

// TestEnvironmentRisks: a variable whose effect the recorded mappings confirm is no risk.
func TestEnvironmentRisks(t *testing.T) {
	m := &Manifest{Program: Program{Directory: "/work"}}
	for _, path := range []Text{"/usr/bin/x", "/opt/app/lib/libapp.so", "/opt/app/glibc-hwcaps/x86-64-v3/libfast.so", "/cache/libdiagnose-record.so", "/work/audit.so"} {
		m.Start.Mappings = append(m.Start.Mappings, Mapping{Path: path})
	}
	for variable, want := range map[string]string{
		"HOME=/root": "",
		"LD_PRELOAD=/cache/libdiagnose-record.so":        "",
		"LD_PRELOAD=libapp.so:/cache/../cache/evil.so":   "LD_PRELOAD loads code [/cache/../cache/evil.so]",
		"LD_PRELOAD=libapp.so libevil.so":                "LD_PRELOAD loads code [libevil.so]",
		"LD_AUDIT=/work/audit.so":                        "",
		"LD_AUDIT=./audit.so":                            "",
		"LD_AUDIT=/tmp/audit.so":                         "LD_AUDIT loads code [/tmp/audit.so]",
		"LD_LIBRARY_PATH=/opt/app/lib:/opt/app/":         "",
		"LD_LIBRARY_PATH=/opt/app/lib:/opt/ap":           "LD_LIBRARY_PATH loads code [/opt/ap]",
		"LD_LIBRARY_PATH=":                               "",
		"LD_DEBUG=all":                                   "",
		"LD_DEBUG_OUTPUT=/etc/x":                         "LD_DEBUG_OUTPUT writes files [/etc/x]",
		"LD_PROFILE=libc.so.6":                           "LD_PROFILE writes files [libc.so.6]",
		"MALLOC_TRACE=/etc/x":                            "MALLOC_TRACE writes files [/etc/x]",
		"GCONV_PATH=/tmp":                                "GCONV_PATH loads code [/tmp]",
		"LOCPATH=/tmp":                                   "LOCPATH reads files [/tmp]",
		"DIAGNOSE_OPTIONS=stacks=3:log_path=/etc/x:no=1": "DIAGNOSE_OPTIONS writes files [/etc/x]",
		"DIAGNOSE_OPTIONS=stacks=3":                      "",
	} {
		m.Program.Environ = []Text{Text(variable)}
		got := ""
		for _, r := range m.EnvironmentRisks() {
			got += fmt.Sprint(r.Variable, " ", r.Effect, " ", r.Paths)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", variable, got, want)
		}
	}
	m.Program.Environ = Texts([]string{"NLSPATH=/a", "LD_AUDIT=/b", "GCONV_PATH=/c"})
	var names []string
	for _, r := range m.EnvironmentRisks() {
		names = append(names, r.Variable)
	}
	if !slices.IsSorted(names) || len(names) != 3 {
		t.Error(names)
	}
}
