package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// frame holds the fields of a frame that are compared.
type frame struct {
	Kind string `json:"kind"`
	PC   uint64 `json:"pc"`
	Name string `json:"name"`
	Line int    `json:"line"`
	// linkage is the mangled name, if there is one.
	Linkage string `json:"linkage"`
}

type thread struct {
	TID    int     `json:"tid"`
	Frames []frame `json:"frames"`
}

// mostFrames bounds the frames of a stack that are compared.
const mostFrames = 100

// ownStacks are the stacks of diagnose crash by thread. Of a stack with a gap only the frames before
// it are known by their number.
func ownStacks(tool, core string) (map[int][]frame, error) {
	out := core + ".json"
	text, err := exec.Command(tool, "crash", "--core", core, "--format", "json", "--output", out).CombinedOutput()
	if _, statErr := os.Stat(out); statErr != nil {
		return nil, fmt.Errorf("diagnose: %v: %s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	var document struct {
		Case struct {
			Stacks []struct {
				Threads []struct {
					TID int `json:"tid"`
				} `json:"threads"`
				Stack struct {
					Frames []struct {
						Kind string `json:"kind"`
						Site struct {
							PC       string `json:"pc"`
							Function string `json:"function"`
							Linkage  string `json:"linkage_name"`
							Line     int    `json:"line"`
						} `json:"site"`
					} `json:"frames"`
					Omitted   int `json:"omitted"`
					OmittedAt int `json:"omitted_at"`
				} `json:"stack"`
			} `json:"stacks"`
		} `json:"case"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	stacks := map[int][]frame{}
	for _, g := range document.Case.Stacks {
		var list []frame
		for i, f := range g.Stack.Frames {
			if g.Stack.Omitted > 0 && i == g.Stack.OmittedAt || i == mostFrames {
				break
			}
			pc, err := strconv.ParseUint(f.Site.PC, 0, 64)
			if err != nil {
				return nil, err
			}
			list = append(list, frame{f.Kind, pc, f.Site.Function, f.Site.Line, f.Site.Linkage})
		}
		for _, t := range g.Threads {
			stacks[t.TID] = list
		}
	}
	return stacks, nil
}

// gdbStacks are gdb's.
func gdbStacks(script, core string) ([]thread, error) {
	out := filepath.Join(filepath.Dir(core), "gdb.json")
	exe, err := executable(core)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-x", script, exe, core)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=", "STACKS_OUTPUT="+out, fmt.Sprintf("STACKS_LIMIT=%d", mostFrames))
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gdb: %w: %s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	var list []thread
	err = json.Unmarshal(data, &list)
	return list, err
}

// executable is the program of the core, as gdb finds it.
func executable(core string) (string, error) {
	text, err := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "core-file "+core, "-ex", "info auxv").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gdb: %w: %s", err, text)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "AT_EXECFN") {
			_, path, _ := strings.Cut(line, `"`)
			path, _, _ = strings.Cut(path, `"`)
			if !filepath.IsAbs(path) {
				return exec.LookPath(path)
			}
			return path, nil
		}
	}
	return "", fmt.Errorf("no AT_EXECFN in %s", core)
}
