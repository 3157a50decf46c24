package record

import (
	"path"
	"slices"
	"strings"
)

// EnvironmentEffect is what a variable makes the dynamic linker, libc or the recorder do before
// the program runs or while it runs.
type EnvironmentEffect string

// The effects.
const (
	LoadsCode   EnvironmentEffect = "loads code"
	WritesFiles EnvironmentEffect = "writes files"
	ReadsFiles  EnvironmentEffect = "reads files" // in formats that trust their authors
)

// EnvironmentRisk is a variable of the recorded environment with such an effect, if the
// recorded start does not confirm the effect: nothing was mapped from the files that it names.
type EnvironmentRisk struct {
	Variable string
	Effect   EnvironmentEffect
	// Paths are the files that it names and that are not confirmed; empty: it names none.
	Paths []Text
}

// environmentEffects are the variables of ld.so(8), gconv, locales, malloc's tracing and
// the profilers of glibc (ld.so's unsecvars.h has most), and of the agent.
var environmentEffects = map[string]EnvironmentEffect{
	"LD_AUDIT": LoadsCode, "LD_PRELOAD": LoadsCode, "LD_LIBRARY_PATH": LoadsCode, "LD_ORIGIN_PATH": LoadsCode, "GCONV_PATH": LoadsCode,
	"LD_DEBUG_OUTPUT": WritesFiles, "LD_PROFILE": WritesFiles, "LD_PROFILE_OUTPUT": WritesFiles, "MALLOC_TRACE": WritesFiles,
	"MEMUSAGE_OUTPUT": WritesFiles, "PCPROFILE_OUTPUT": WritesFiles, "SEGFAULT_OUTPUT_NAME": WritesFiles, "GMON_OUT_PREFIX": WritesFiles,
	"LOCPATH": ReadsFiles, "NLSPATH": ReadsFiles, "GETCONF_DIR": ReadsFiles, "HOSTALIASES": ReadsFiles, "LOCALDOMAIN": ReadsFiles,
	"RES_OPTIONS": ReadsFiles, "RESOLV_HOST_CONF": ReadsFiles, "TZDIR": ReadsFiles,
}

// EnvironmentRisks returns the variables whose effect the recorded start does not confirm, by
// name. A replay does not depend on them: it follows what the process did.
func (m *Manifest) EnvironmentRisks() []EnvironmentRisk {
	var list []EnvironmentRisk
	for _, v := range m.Program.Environ {
		name, value, _ := strings.Cut(string(v), "=")
		if name == "DIAGNOSE_OPTIONS" {
			if file := logPath(value); file != "" {
				list = append(list, EnvironmentRisk{name, WritesFiles, []Text{Text(file)}})
			}
			continue
		}
		effect, found := environmentEffects[name]
		if !found || value == "" {
			continue
		}
		r := EnvironmentRisk{Variable: name, Effect: effect}
		for _, p := range strings.FieldsFunc(value, func(c rune) bool { return c == ':' || c == ';' || c == ' ' && name == "LD_PRELOAD" }) {
			if effect != LoadsCode || !m.loadedFrom(p, name) {
				r.Paths = append(r.Paths, Text(p))
			}
		}
		if len(r.Paths) > 0 {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b EnvironmentRisk) int { return strings.Compare(a.Variable, b.Variable) })
	return list
}

// logPath is the last log_path of the agent's options.
func logPath(options string) string {
	file := ""
	for _, o := range strings.FieldsFunc(options, func(c rune) bool { return c == ':' || c == ',' || c == ' ' }) {
		if value, found := strings.CutPrefix(o, "log_path="); found {
			file = value
		}
	}
	return file
}

// loadedFrom reports whether the recorded start mapped the file that a variable names, or a
// file in the directory that it names.
func (m *Manifest) loadedFrom(name, variable string) bool {
	directory := variable != "LD_AUDIT" && variable != "LD_PRELOAD"
	full := name
	if !path.IsAbs(full) && (directory || strings.Contains(full, "/")) {
		full = path.Join(string(m.Program.Directory), full)
	}
	full = path.Clean(full)
	return slices.ContainsFunc(m.Start.Mappings, func(x Mapping) bool {
		switch p := string(x.Path); {
		case directory:
			return strings.HasPrefix(p, strings.TrimSuffix(full, "/")+"/")
		case path.IsAbs(full):
			return p == full
		default: // searched in the directories of libraries
			return path.Base(p) == full
		}
	})
}
