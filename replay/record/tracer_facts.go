package record

import (
	"bufio"
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
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image/object"
	"diagnose/replay/ptrace"
)

// maxMaps bounds what is read of a process's mappings: vm.max_map_count is
// 65,530 unless somebody raised it, and a line has some 100 bytes.
const maxMaps = 256 << 20

// readMappings reads /proc/PID/maps.
func readMappings(pid int) ([]Mapping, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []Mapping
	lines := bufio.NewScanner(io.LimitReader(f, maxMaps))
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		m, err := parseMapping(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("mappings of process %d: %w", pid, err)
		}
		list = append(list, m)
	}
	return list, lines.Err()
}

// parseMapping reads a line: "start-end rwxp offset major:minor inode   path",
// the path with newlines as \012.
func parseMapping(line string) (Mapping, error) {
	bad := func() (Mapping, error) { return Mapping{}, fmt.Errorf("line %q", line) }
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 5 || len(fields[1]) != 4 {
		return bad()
	}
	low, high, _ := strings.Cut(fields[0], "-")
	major, minor, _ := strings.Cut(fields[3], ":")
	var numbers [5]uint64
	for i, text := range []string{low, high, fields[2], major, minor} {
		var err error
		if numbers[i], err = strconv.ParseUint(text, 16, 64); err != nil {
			return bad()
		}
	}
	inode, err := strconv.ParseUint(fields[4], 10, 64)
	if err != nil {
		return bad()
	}
	m := Mapping{Start: evidence.Addr(numbers[0]), End: evidence.Addr(numbers[1]), Offset: evidence.Addr(numbers[2]), Permissions: fields[1]}
	if len(fields) == 6 {
		m.Path = Text(strings.ReplaceAll(strings.TrimLeft(fields[5], " "), `\012`, "\n"))
	}
	if inode != 0 {
		m.File = &File{Device: unix.Mkdev(uint32(numbers[3]), uint32(numbers[4])), Inode: inode}
	}
	return m, nil
}

// identify completes the mappings' files by their size and time, and the
// objects' build-ids.
func (r *run) identify(maps []Mapping) {
	known := map[Text]*Mapping{}
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
		if file, err := statFile(string(m.Path)); err == nil && file.Inode == m.File.Inode {
			m.File = &file
		}
		m.BuildID = r.buildID(m)
	}
}

// buildID is that of a mapping's file, which most processes of a run have.
func (r *run) buildID(m *Mapping) string {
	key := fileAt{m.Path, *m.File}
	id, known := r.buildIDs[key]
	if !known {
		id = buildID(string(m.Path))
		if r.buildIDs == nil {
			r.buildIDs = map[fileAt]string{}
		}
		r.buildIDs[key] = id
	}
	return id
}

// fileAt is a file with its state.
type fileAt struct {
	path Text
	file File
}

func statFile(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return File{}, fmt.Errorf("%s: no inode is known", path)
	}
	return File{Device: stat.Dev, Inode: stat.Ino, Size: stat.Size, MTimeNS: stat.Mtim.Nano()}, nil
}

func buildID(path string) string {
	if identity, err := identityOf(path); err == nil {
		if code := knownSites.lookup(identity); code != nil {
			return code.buildID
		}
	}
	var magic [4]byte
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	_, err = io.ReadFull(f, magic[:])
	f.Close()
	if err != nil || string(magic[:]) != elf.ELFMAG {
		return ""
	}
	o, err := object.Open(path)
	if err != nil {
		return ""
	}
	defer o.Close()
	return o.BuildID()
}

// maxAuxv is larger than the kernel's AT_VECTOR_SIZE in bytes.
const maxAuxv = 4096

func readAuxv(pid int) ([]Aux, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAuxv))
	if err != nil {
		return nil, err
	}
	var list []Aux
	for ; len(data) >= 16; data = data[16:] {
		kind := binary.LittleEndian.Uint64(data)
		if kind == auxNull {
			break
		}
		list = append(list, Aux{Type: kind, Value: evidence.Addr(binary.LittleEndian.Uint64(data[8:]))})
	}
	return list, nil
}

// readProgram returns what a process executes.
func readProgram(pid int) (Program, error) {
	base := fmt.Sprintf("/proc/%d/", pid)
	var p Program
	var problems error
	link := func(name string) Text {
		text, err := os.Readlink(base + name)
		problems = errors.Join(problems, err)
		return Text(text)
	}
	list := func(name string) []Text {
		data, err := os.ReadFile(base + name)
		problems = errors.Join(problems, err)
		if len(data) == 0 {
			return nil
		}
		return Texts(strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00"))
	}
	p.Path = link("exe")
	p.Args = list("cmdline")
	var err error
	if p.Environ, err = readEnviron(pid); err != nil { // a program may have written to its pointers before it forked
		p.Environ = list("environ")
	}
	if problems != nil {
		return p, problems
	}
	if p.Executed, problems = executed(pid); problems != nil {
		return p, problems
	}
	p.Script = isScript(pid, p.Executed)
	p.File, problems = statFile(base + "exe")
	p.BuildID = buildID(base + "exe")
	p.Personality = addrNoRandomize
	return p, errors.Join(problems, p.readInherited(pid))
}

// readInherited reads the attributes that a process passes on to its children and may change.
func (p *Program) readInherited(pid int) error {
	directory, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return err
	}
	p.Directory = Text(directory)
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_STACK, nil, &limit); err != nil {
		return err
	}
	p.StackLimit = limit.Cur
	p.Umask = umaskOf(pid)
	return nil
}

// executed returns the file name by which the process was executed.
func executed(pid int) (Text, error) {
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
		if a.Type != auxExecFn {
			continue
		}
		for name := []byte(nil); len(name) < longest; {
			var b [1]byte
			if _, err := memory.ReadAt(b[:], int64(a.Value)+int64(len(name))); err != nil {
				return "", err
			}
			if b[0] == 0 {
				return Text(name), nil
			}
			name = append(name, b[0])
		}
	}
	return "", nil
}

// isScript reports whether the kernel ran an interpreter for the file. A relative name is
// relative to the working directory, which execve does not change.
func isScript(pid int, name Text) bool {
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
func readMachine() Machine {
	m := Machine{CPUs: runtime.NumCPU()}
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
	if bits&addrNoRandomize != 0 {
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
