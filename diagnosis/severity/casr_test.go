package severity_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
)

// casrContext is what casr-core asks gdb for (casr/src/bin/casr-core.rs).
type casrContext struct {
	signal, code int
	addr, pc, sp uint64
	memory       []byte // at the pc, at most 64 bytes
	stack        []string
}

const siKernel = 0x80

// askGDB reads a core as casr-core does.
func askGDB(exe, core string) (*casrContext, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args := []string{"--batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", "-iex", "set backtrace limit 200"}
	for _, command := range []string{
		"set language c", // the numbers are printed in C also of programs in Rust
		`printf "@signal %d\n", $_siginfo.si_signo`, `printf "@code %d\n", $_siginfo.si_code`,
		`printf "@addr %lu\n", (long)$_siginfo._sifields._sigfault.si_addr`, `printf "@pc %lu\n", (long)$rip`, `printf "@sp %lu\n", (long)$rsp`,
		"bt", "x/64xb $pc",
	} {
		args = append(args, "-ex", command)
	}
	cmd := exec.CommandContext(ctx, "gdb", append(args, exe, core)...)
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		return nil, fmt.Errorf("gdb: %w", err)
	}
	return parseGDB(string(out))
}

var (
	gdbNumber = regexp.MustCompile(`^@(\w+) (\d+)$`)
	gdbFrame  = regexp.MustCompile(`^#\d+ `)
	gdbMemory = regexp.MustCompile(`^0x[0-9a-f]+.*:((?:\t0x[0-9a-f]{2})+)$`)
)

func parseGDB(text string) (*casrContext, error) {
	c := &casrContext{}
	seen := 0
	for _, l := range strings.Split(text, "\n") {
		if m := gdbNumber.FindStringSubmatch(l); m != nil {
			n, err := strconv.ParseUint(m[2], 10, 64)
			if err != nil {
				return nil, err
			}
			seen++
			switch m[1] {
			case "signal":
				c.signal = int(n)
			case "code":
				c.code = int(n)
			case "addr":
				c.addr = n
			case "pc":
				c.pc = n
			case "sp":
				c.sp = n
			}
		}
		if gdbFrame.MatchString(l) {
			c.stack = append(c.stack, l)
		}
		if m := gdbMemory.FindStringSubmatch(l); m != nil {
			for _, b := range strings.Fields(m[1]) {
				v, err := strconv.ParseUint(b, 0, 8)
				if err != nil {
					return nil, err
				}
				c.memory = append(c.memory, byte(v))
			}
		}
	}
	if seen < 4 {
		return nil, fmt.Errorf("gdb told %d of 5 numbers: %.300s", seen, text)
	}
	return c, nil
}

// capstoneInsn is an instruction in the words of cstool -d.
type capstoneInsn struct {
	mnemonic string
	groups   []string
	operands []capstoneOperand
	read     []string // registers, those of the operands too
}

type capstoneOperand struct {
	memory, immediate bool
	register          string
	base, index       string
}

func (i *capstoneInsn) in(group string) bool { return slices.Contains(i.groups, group) }

// implicit reports whether the instruction reads a register that no operand names, which is what
// casr's binding calls regs_read.
func (i *capstoneInsn) implicit() bool {
	for _, r := range i.read {
		named := false
		for _, o := range i.operands {
			named = named || r == o.register || r == o.base || r == o.index
		}
		if !named {
			return true
		}
	}
	return false
}

var capstoneHead = regexp.MustCompile(`^ *[0-9a-f]+  (?:[0-9a-f]{2} )+ *(\S.*)$`)

// capstone disassembles code.
func capstone(code []byte, pc uint64) ([]capstoneInsn, error) {
	cmd := exec.Command("cstool", "-d", "x64", hex.EncodeToString(code), fmt.Sprintf("%x", pc))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		return nil, fmt.Errorf("cstool: %w: %s", err, stderr.String())
	}
	return parseCapstone(string(out)), nil
}

func parseCapstone(text string) []capstoneInsn {
	var list []capstoneInsn
	for _, l := range strings.Split(text, "\n") {
		if m := capstoneHead.FindStringSubmatch(l); m != nil {
			mnemonic, _, _ := strings.Cut(m[1], "\t")
			list = append(list, capstoneInsn{mnemonic: strings.TrimSpace(mnemonic)})
			continue
		}
		if len(list) == 0 {
			continue
		}
		i := &list[len(list)-1]
		key, value, _ := strings.Cut(strings.TrimSpace(l), ": ")
		switch {
		case key == "Groups":
			i.groups = strings.Fields(value)
		case key == "Registers read":
			i.read = strings.Fields(value)
		case strings.HasSuffix(key, "].type"):
			o := capstoneOperand{memory: strings.HasPrefix(value, "MEM"), immediate: strings.HasPrefix(value, "IMM")}
			if r, ok := strings.CutPrefix(value, "REG = "); ok {
				o.register = strings.TrimSpace(r)
			}
			i.operands = append(i.operands, o)
		case strings.HasSuffix(key, ".mem.base") && len(i.operands) > 0:
			i.operands[len(i.operands)-1].base = strings.TrimPrefix(value, "REG = ")
		case strings.HasSuffix(key, ".mem.index") && len(i.operands) > 0:
			i.operands[len(i.operands)-1].index = strings.TrimPrefix(value, "REG = ")
		}
	}
	return list
}

var errCasr = errors.New("casr has no class")

// reading is how casr's rule for HeapError is read.
type reading int

const (
	// byLetter has the name cfree alone, which glibc gave the function free until version 2.26.
	byLetter reading = iota
	// byName has the names that gdb prints for the same function today.
	byName
	// byDescription is what casr says of the class: an error of the heap allocator's functions.
	byDescription
	readings
)

var heapFunctions = [readings]*regexp.Regexp{
	byLetter:      regexp.MustCompile(`cfree`),
	byName:        regexp.MustCompile(`cfree| in (__GI___libc_|__libc_)?free \(`),
	byDescription: regexp.MustCompile(`cfree| in (__GI___libc_|__libc_|__GI_)?(free|malloc|calloc|realloc|memalign|aligned_alloc|posix_memalign) \(`),
}

// class is casr's judgement, rule by rule in its order (libcasr/src/gdb/exploitable.rs).
func (c *casrContext) class(how reading) (string, error) {
	switch unix.Signal(c.signal) {
	case unix.SIGABRT:
		if slices.ContainsFunc(c.stack, heapFunctions[how].MatchString) {
			return "HeapError", nil
		}
		for _, rule := range [][2]string{{"__chk_fail", "SafeFunctionCheck"}, {"_stack_chk_fail", "StackGuard"}} {
			if slices.ContainsFunc(c.stack, func(frame string) bool { return strings.Contains(frame, rule[0]) }) {
				return rule[1], nil
			}
		}
		return "AbortSignal", nil
	case unix.SIGTRAP:
		return "TrapSignal", nil
	case unix.SIGILL, unix.SIGSYS:
		return "BadInstruction", nil
	case unix.SIGFPE:
		return "FPE", nil
	case unix.SIGSEGV, unix.SIGBUS:
		return c.fault()
	}
	return "", errCasr
}

func (c *casrContext) nearNull() bool { return c.addr < 64<<10 }

func (c *casrContext) near(name string) string {
	if !c.nearNull() || c.code == siKernel {
		return name
	}
	return name + "NearNull"
}

func (c *casrContext) fault() (string, error) {
	segv := unix.Signal(c.signal) == unix.SIGSEGV
	if segv && c.pc == c.addr {
		if c.nearNull() {
			return "SegFaultOnPcNearNull", nil
		}
		return "SegFaultOnPc", nil
	}
	if segv && len(c.memory) == 0 && c.code == siKernel {
		return "SegFaultOnPc", nil
	}
	list, err := capstone(c.memory, c.pc)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", errCasr
	}
	i := &list[0]
	switch {
	case i.in("ret"):
		return "ReturnAv", nil
	case i.in("call") && c.sp-8 == c.addr:
		return "StackOverflow", nil
	case i.in("call") && i.implicit():
		return c.near("CallAv"), nil
	case i.in("jump") && i.implicit():
		return c.near("BranchAv"), nil
	case !strings.Contains(i.mnemonic, "mov"):
		return "AccessViolation", nil
	}
	for n, o := range i.operands {
		bus := unix.Signal(c.signal) == unix.SIGBUS
		switch {
		case !o.memory:
		case bus && n == 1:
			return "SourceAv", nil
		case n == 0 && (bus || c.code == siKernel || !c.nearNull()):
			return "DestAv", nil
		case n == 0:
			return "DestAvNearNull", nil
		case n == 1 && (c.code == siKernel || !c.nearNull()):
			if name := tainted(list); name != "" {
				return name, nil
			}
			return "SourceAv", nil
		case n == 1:
			return "SourceAvNearNull", nil
		default:
			return "AccessViolation", nil
		}
	}
	return "AccessViolation", nil
}

// tainted is casr's check_taint: registers by their names, so that eax and rax are two.
func tainted(list []capstoneInsn) string {
	set := map[string]bool{}
	for n := range list {
		i := &list[n]
		ops := i.operands
		pair := func() (a, b capstoneOperand) {
			if len(ops) >= 2 {
				return ops[0], ops[1]
			}
			return
		}
		a, b := pair()
		through := func(o capstoneOperand) bool { return o.memory && (set[o.base] || set[o.index]) }
		switch mnemonic := i.mnemonic; mnemonic {
		case "ret":
			if set["rsp"] || set["esp"] {
				return "ReturnAv"
			}
			return ""
		case "call", "jmp":
			if len(ops) > 0 && (set[ops[0].register] && ops[0].register != "" || through(ops[0])) {
				return map[string]string{"call": "CallAvTainted", "jmp": "BranchAvTainted"}[mnemonic]
			}
			return ""
		case "mov", "movabs":
			switch {
			case a.register != "" && b.register != "":
				if set[b.register] {
					set[a.register] = true
				}
			case a.register != "" && b.immediate:
				delete(set, a.register)
			case a.register != "" && b.memory:
				if through(b) || n == 0 {
					set[a.register] = true
				} else {
					delete(set, a.register)
				}
			case a.memory && b.register != "" && through(a):
				return "DestAvTainted"
			}
		case "xchg":
			switch {
			case a.register != "" && b.register != "":
				set[a.register], set[b.register] = set[b.register], set[a.register]
			case a.register != "":
				delete(set, a.register)
			case b.register != "":
				delete(set, b.register)
			}
		case "lea":
			if through(b) {
				set[a.register] = true
			} else {
				delete(set, a.register)
			}
		case "movzx", "movsx", "pop":
			if len(ops) > 0 {
				delete(set, ops[0].register)
			}
		case "or", "sub", "xor", "rol", "ror", "sal", "sar", "shl", "shr", "add", "and":
			if a.register != "" && b.register != "" && set[b.register] {
				set[a.register] = true
			}
		case "neg", "not", "dec", "inc", "test", "cmp":
		default:
			return ""
		}
	}
	return ""
}

// deviation names the reason why our class is another than casr's; empty: there is none. docs/severity.md
// has the reasons.
func (c *casrContext) deviation(ours evidence.SeverityClass, theirs string) string {
	if unix.Signal(c.signal) == unix.SIGABRT {
		switch {
		case ours == evidence.ClassHeapError:
			return "an allocation finds the damage"
		case ours != evidence.ClassAbortSignal && ours != "":
			return "the handler of a fault ended the process"
		}
		return ""
	}
	if ours == evidence.ClassStackOverflow {
		return "the stack was used up by another instruction than a call"
	}
	list, err := capstone(c.memory, c.pc)
	if err != nil || len(list) == 0 {
		return ""
	}
	mnemonic := list[0].mnemonic
	switch {
	case mnemonic == "ud2":
		return "a compiler's trap"
	case strings.Contains(mnemonic, "movs") && list[0].operands[0].memory && list[0].operands[1].memory:
		return "a string move faults at its source"
	case theirs == "AccessViolation" && !strings.Contains(mnemonic, "mov"):
		return "an instruction other than mov"
	case strings.HasPrefix(theirs, "SourceAv") && strings.HasSuffix(string(ours), "Tainted"):
		return "the value is followed through parts of registers"
	}
	return ""
}

// casrEstimate is the severity of a class (libcasr/src/execution_class.rs).
func casrEstimate(class string) string {
	switch class {
	case "SegFaultOnPc", "ReturnAv", "BranchAv", "CallAv", "DestAv", "BranchAvTainted", "CallAvTainted", "DestAvTainted":
		return "EXPLOITABLE"
	case "BadInstruction", "SegFaultOnPcNearNull", "BranchAvNearNull", "CallAvNearNull", "DestAvNearNull", "StackGuard", "HeapError":
		return "PROBABLY_EXPLOITABLE"
	}
	return "NOT_EXPLOITABLE"
}
