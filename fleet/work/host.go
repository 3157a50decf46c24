package work

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"strings"

	"diagnose/corpus/nightly"
	"diagnose/image/object"
)

// Host is what a worker's host has.
type Host struct {
	// Diagnose is the worker's version, Architecture as GOARCH names it.
	Diagnose     string `json:"diagnose"`
	Architecture string `json:"architecture"`
	// Features are the instruction sets of the processor, sorted; Kernel the kernel's abilities.
	Features []string  `json:"features,omitempty"`
	Kernel   []Ability `json:"kernel,omitempty"`
}

// thisHost examines the host that this process runs on.
func thisHost(version string) (Host, error) {
	h := Host{Diagnose: version, Architecture: runtime.GOARCH}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return h, err
	}
	h.Features = featuresOf(text)
	if mayTrace() {
		h.Kernel = append(h.Kernel, AbilityPtrace)
	}
	return h, nil
}

// featuresOf returns the instruction sets of the first processor of /proc/cpuinfo.
func featuresOf(cpuinfo []byte) []string {
	for line := range bytes.Lines(cpuinfo) {
		name, value, found := strings.Cut(string(line), ":")
		if found && strings.TrimSpace(name) == "flags" {
			return userFeatures(strings.Fields(value))
		}
	}
	return nil
}

// mayTrace: scope 3 of Yama forbids every use of ptrace
// (Documentation/admin-guide/LSM/Yama.rst). Kernels without Yama have no such file.
func mayTrace() bool {
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	return err != nil || strings.TrimSpace(string(text)) != "3"
}

// lacks returns the first thing that a host lacks for a job; nil: nothing.
func (h *Host) lacks(n *Needs) *nightly.Lack {
	switch {
	case n.Diagnose != h.Diagnose:
		return &nightly.Lack{Kind: nightly.LackVersion, Name: n.Diagnose}
	case n.Architecture != h.Architecture:
		return &nightly.Lack{Kind: nightly.LackArchitecture, Name: n.Architecture}
	}
	for _, f := range n.Features {
		if _, found := slices.BinarySearch(h.Features, f); !found {
			return &nightly.Lack{Kind: nightly.LackFeature, Name: f}
		}
	}
	for _, a := range n.Kernel {
		if !slices.Contains(h.Kernel, a) {
			return &nightly.Lack{Kind: nightly.LackKernel, Name: string(a)}
		}
	}
	for _, o := range n.Objects {
		if object.BuildIDOf(o.Path) != o.BuildID {
			return &nightly.Lack{Kind: nightly.LackObject, Name: o.Path, BuildID: o.BuildID}
		}
	}
	return nil
}
