package recorder

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/replay/launch"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorder/sites"
	"diagnose/replay/recorder/started"
)

// identify adds the size and time of the mappings' files, and the build-ids of objects.
func (r *run) identify(maps []record.Mapping) {
	known := map[record.Text]*record.Mapping{}
	for i := range maps {
		m := &maps[i]
		if m.File == nil || m.Path == "" || m.Path[0] != '/' {
			continue
		}
		if k := known[m.Path]; k != nil {
			*m.File, m.BuildID = *k.File, k.BuildID
			continue
		}
		known[m.Path] = m
		if file, err := sites.StatFile(string(m.Path)); err == nil && file.Inode == m.File.Inode {
			m.File = &file
		}
		m.BuildID = r.buildIDOnce(m)
		m.File.SHA256 = r.sharedSum(m)
	}
}

// sharedSum returns the digest of a mapping's file if others than its owner may change it;
// empty: they may not, or it cannot be read.
func (r *run) sharedSum(m *record.Mapping) string {
	key := fileAt{m.Path, *m.File}
	sum, known := r.sums[key]
	if known {
		return sum
	}
	if shared, err := record.SharedFile(string(m.Path)); err == nil && shared != record.NotShared {
		sum, _ = record.FileSum(string(m.Path)) // if it is missing, a replay reports that
	}
	if r.sums == nil {
		r.sums = map[fileAt]string{}
	}
	r.sums[key] = sum
	return sum
}

// buildIDOnce returns the build-id of a mapping's file. Most processes of a run share the
// files.
func (r *run) buildIDOnce(m *record.Mapping) string {
	key := fileAt{m.Path, *m.File}
	id, known := r.buildIDs[key]
	if !known {
		id = sites.BuildIDOf(string(m.Path))
		if r.buildIDs == nil {
			r.buildIDs = map[fileAt]string{}
		}
		r.buildIDs[key] = id
	}
	return id
}

// fileAt is a file with its state.
type fileAt struct {
	path record.Text
	file record.File
}

// maxAuxv is larger than the kernel's AT_VECTOR_SIZE in bytes.
const maxAuxv = 4096

func readAuxv(pid int) ([]record.Aux, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAuxv))
	if err != nil {
		return nil, err
	}
	var list []record.Aux
	for ; len(data) >= 16; data = data[16:] {
		kind := binary.LittleEndian.Uint64(data)
		if kind == launch.AuxNull {
			break
		}
		list = append(list, record.Aux{Type: kind, Value: evidence.Addr(binary.LittleEndian.Uint64(data[8:]))})
	}
	return list, nil
}

// readProgram returns what a process executes.
func readProgram(pid int) (record.Program, error) {
	base := fmt.Sprintf("/proc/%d/", pid)
	var p record.Program
	var problems error
	link := func(name string) record.Text {
		text, err := os.Readlink(base + name)
		problems = errors.Join(problems, err)
		return record.Text(text)
	}
	list := func(name string) []record.Text {
		data, err := os.ReadFile(base + name)
		problems = errors.Join(problems, err)
		if len(data) == 0 {
			return nil
		}
		return record.Texts(strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00"))
	}
	p.Path = link("exe")
	p.Args = list("cmdline")
	var err error
	if p.Environ, err = started.Environ(pid); err != nil { // a program may have written to its pointers before it forked
		p.Environ = list("environ")
	}
	if problems != nil {
		return p, problems
	}
	if p.Executed, problems = executed(pid); problems != nil {
		return p, problems
	}
	p.Script = isScript(pid, p.Executed)
	p.File, problems = sites.StatFile(base + "exe")
	p.BuildID = sites.BuildIDOf(base + "exe")
	p.Personality = launch.NoRandomize
	problems = errors.Join(problems, readInherited(&p, pid))
	return p, problems
}

// readInherited reads the attributes that a process passes on to its children and may change.
func readInherited(p *record.Program, pid int) error {
	directory, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return err
	}
	p.Directory = record.Text(directory)
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_STACK, nil, &limit); err != nil {
		return err
	}
	p.StackLimit = limit.Cur
	p.Umask = umaskOf(pid)
	return nil
}

// executed returns the file name by which the process was executed.
func executed(pid int) (record.Text, error) {
	const longest = 4096 // PATH_MAX
	auxv, err := readAuxv(pid)
	if err != nil {
		return "", err
	}
	memory, err := ptrace.OpenMemory(pid)
	if err != nil {
		return "", err
	}
	defer memory.Close()
	for _, a := range auxv {
		if a.Type != launch.AuxExecFn {
			continue
		}
		for name := []byte(nil); len(name) < longest; {
			var b [1]byte
			if _, err := memory.ReadAt(b[:], int64(a.Value)+int64(len(name))); err != nil {
				return "", err
			}
			if b[0] == 0 {
				return record.Text(name), nil
			}
			name = append(name, b[0])
		}
	}
	return "", nil
}

// isScript reports whether the kernel ran an interpreter for the file. A relative name is
// relative to the working directory, which execve does not change.
func isScript(pid int, name record.Text) bool {
	path := string(name)
	if !filepath.IsAbs(path) {
		path = fmt.Sprintf("/proc/%d/cwd/%s", pid, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var b [2]byte
	_, err = io.ReadFull(f, b[:])
	return err == nil && string(b[:]) == "#!"
}

func umaskOf(pid int) uint32 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0o22
	}
	_, rest, _ := strings.Cut(string(status), "Umask:\t")
	text, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return 0o22
	}
	return uint32(mask)
}

// readMachine describes this machine.
func readMachine() record.Machine {
	m := record.Machine{CPUs: runtime.NumCPU()}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m
	}
	for line := range strings.SplitSeq(string(info), "\n") {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name":
			m.CPU = strings.TrimSpace(value)
		case "flags":
			m.Features = strings.Fields(value)
		}
		if m.CPU != "" && m.Features != nil {
			break
		}
	}
	return m
}

func hexOf(random [16]byte) string { return hex.EncodeToString(random[:]) }

// unrecordable says why a process that has just executed a program cannot be recorded; empty if
// it can be.
func unrecordable(pid int) string {
	exe := fmt.Sprintf("/proc/%d/exe", pid)
	name, err := os.Readlink(exe)
	if err != nil {
		return err.Error()
	}
	aux, err := readAuxv(pid)
	if err != nil {
		return err.Error()
	}
	for _, a := range aux {
		if a.Type == auxSecure && a.Value != 0 {
			return name + " gains rights when it is run"
		}
	}
	if why, err := randomised(pid); why != "" {
		return fmt.Sprintf("%s %s", name, why)
	} else if err != nil {
		return err.Error()
	}
	f, err := elf.Open(exe)
	if err != nil {
		return fmt.Sprintf("%s: %v", name, err)
	}
	defer f.Close()
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 {
		return name + " is no program for x86-64"
	}
	if !hasInterpreter(f) {
		return name + " is statically linked"
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return err.Error()
	}
	if !strings.Contains("\x00"+string(environ), "\x00"+agent.RecordVariable+"=") {
		return fmt.Sprintf("%s was started without %s in its environment", filepath.Base(name), agent.RecordVariable)
	}
	return ""
}

// randomised says why a process that has just executed a program has random addresses, though
// its launcher had disabled that; empty if it has not. The kernel enables it again if the file
// is set-user-ID or set-group-ID, whichever user runs it (PER_CLEAR_ON_SETID, bprm_fill_uid of
// fs/exec.c).
func randomised(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/personality", pid))
	if err != nil {
		return "", fmt.Errorf("its personality: %w", err)
	}
	bits, err := strconv.ParseUint(strings.TrimSpace(string(text)), 16, 64)
	if err != nil {
		return "", fmt.Errorf("its personality: %w", err)
	}
	if bits&launch.NoRandomize != 0 {
		return "", nil
	}
	info, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return "is set-user-ID or set-group-ID: the kernel loads it at random addresses, which no replay can repeat; record a copy without that bit, as cp makes one", nil
	}
	return "is loaded at random addresses, which no replay can repeat: address space randomisation was switched on for it (personality)", nil
}

const auxSecure = 23

// hasInterpreter: a program without an interpreter is static, or it is the dynamic linker run
// by name.
func hasInterpreter(f *elf.File) bool {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true
		}
	}
	names, err := f.DynString(elf.DT_SONAME)
	return err == nil && len(names) == 1 && strings.HasPrefix(names[0], "ld-linux-x86-64.")
}
