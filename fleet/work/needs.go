package work

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"diagnose/corpus"
	"diagnose/replay/record"
)

const (
	// mostFeatures and mostObjects bound what a job needs.
	mostFeatures, mostObjects = 256, 1024
	// longestWord is the maximum length of a version or a feature, in bytes.
	longestWord = 128
)

// Needs is what a host must have to do a job. Jobs of equal needs are a class.
type Needs struct {
	// Diagnose is the version of diagnose: the result counts as one of this version.
	Diagnose string `json:"diagnose"`
	// Architecture is that of the program, as GOARCH names it.
	Architecture string `json:"architecture"`
	// Features are the instruction sets of the recording's processor, sorted, as /proc/cpuinfo
	// names them: its libraries chose their functions by them.
	Features []string `json:"features,omitempty"`
	// Kernel are abilities of the kernel.
	Kernel []Ability `json:"kernel,omitempty"`
	// Objects are files that a replay maps and the recording does not bring along, sorted.
	Objects []Object `json:"objects,omitempty"`
}

// Ability is something that a kernel allows, or not.
type Ability string

// AbilityPtrace: a process may trace its children. Replays need it.
const AbilityPtrace Ability = "ptrace"

// Object is an executable or a library.
type Object struct {
	// Path is where it must be, BuildID its build-id, in hexadecimal.
	Path    string `json:"path"`
	BuildID string `json:"build_id"`
}

// instructionSets are the flags of /proc/cpuinfo that stand for instructions of user mode, by
// prefix (arch/x86/include/asm/cpufeatures.h of Linux). The others describe the kernel, the
// machine or the hypervisor, and programs do not depend on them.
var instructionSets = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(fpu|cx8|cx16|cmov|mmx|fxsr|lahf_lm|movbe|popcnt|abm|aes|vaes|gfni|pclmulqdq|vpclmulqdq|rdrand|rdseed|rdpid|adx|f16c|fma|bmi[12]|tbm|xop|xsave.*|xgetbv1|sha_ni|sse.*|ssse3|pni|avx.*|amx.*|rtm|hle|erms|fsrm|fsgsbase|pku|ospke|movdiri|movdir64b|clflushopt|clwb|prefetchw|3dnow.*|serialize|enqcmd|waitpkg|cldemote)$`)
})

// userFeatures returns the instruction sets among the flags of a processor, sorted.
func userFeatures(flags []string) []string {
	var list []string
	for _, f := range flags {
		if instructionSets().MatchString(f) {
			list = append(list, f)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// needsOf returns what the analysis of an entry needs. dir is the recording, or the directory of
// the core.
func needsOf(kind, dir, version string) (Needs, error) {
	n := Needs{Diagnose: version, Architecture: runtime.GOARCH}
	if kind == corpus.KindCore {
		return n, nil
	}
	m, err := record.ReadManifest(dir)
	if err != nil {
		return n, err
	}
	n.Features, n.Kernel = userFeatures(m.Machine.Features), []Ability{AbilityPtrace}
	brought := map[string]bool{string(m.Agent.Path): true}
	for _, o := range m.Portable {
		brought[string(o.Path)] = true
	}
	need := func(path, id string) {
		if path != "" && id != "" && !brought[path] {
			brought[path] = true
			n.Objects = append(n.Objects, Object{path, id})
		}
	}
	need(string(m.Program.Path), m.Program.BuildID)
	for i := range m.Start.Mappings {
		need(string(m.Start.Mappings[i].Path), m.Start.Mappings[i].BuildID)
	}
	slices.SortFunc(n.Objects, func(a, b Object) int { return strings.Compare(a.Path, b.Path) })
	_, err = n.class()
	return n, errors.Join(err, n.check())
}

// class names the jobs of these needs.
func (n *Needs) class() (string, error) {
	text, err := json.Marshal(n)
	if err == nil && len(text) > mostNeeds {
		err = inputf("the needs have %d bytes, and %d are allowed", len(text), mostNeeds)
	}
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]), nil
}

var (
	classForm = regexp.MustCompile(`^[0-9a-f]{24}$`)
	idOfBuild = regexp.MustCompile(`^[0-9a-f]{1,128}$`)
)

// decodeNeeds reads the needs of a class, which may be hostile.
func decodeNeeds(class string, text []byte) (*Needs, error) {
	if len(text) > mostNeeds || !classForm.MatchString(class) {
		return nil, inputf("the needs have %d bytes, and %d are allowed, or the class %.40q is none", len(text), mostNeeds, class)
	}
	n := &Needs{}
	if err := json.Unmarshal(text, n); err != nil {
		return nil, inputf("the needs: %w", err)
	}
	if is, err := n.class(); err != nil || is != class {
		return nil, errors.Join(err, inputf("the needs are not those of the class %s", class))
	}
	return n, n.check()
}

func (n *Needs) check() error {
	if len(n.Features) > mostFeatures || len(n.Kernel) > mostFeatures || len(n.Objects) > mostObjects {
		return inputf("the job needs %d features and %d objects, and %d and %d are allowed", len(n.Features), len(n.Objects), mostFeatures, mostObjects)
	}
	words := append([]string{n.Diagnose, n.Architecture}, n.Features...)
	for _, a := range n.Kernel {
		words = append(words, string(a))
	}
	for _, w := range words {
		if w == "" || len(w) > longestWord {
			return inputf("the job needs %.40q, which is no name", w)
		}
	}
	for _, o := range n.Objects {
		if !filepath.IsAbs(o.Path) || filepath.Clean(o.Path) != o.Path || len(o.Path) > 4096 || !idOfBuild.MatchString(o.BuildID) {
			return inputf("the job needs the object %.80q, which has no clean path or no build-id", o.Path)
		}
	}
	return nil
}
