package x86

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// The instructions that x86asm does not know or mistakes for others.
//
// The first column is the opcode, the mandatory prefix (np, 66, f3, f2, or
// any), then the required ModRM: /digit, m for memory, r for a register, =xx
// for the whole byte, a dot for anything; VEX in front means that encoding. The
// third column are the explicit operands as the opcode map abbreviates them
// (SDM volume 2, A.2): E is r/m, M memory, R the register of r/m, G the reg
// field, B VEX.vvvv, V and W vectors; then b, w, d, q, x (16 bytes), s (64), 0
// (no fixed size), y (4 or 8 by REX.W) and v (2 too). I is an immediate byte, J
// the whole immediate, 1 the number, C is cl, S a register of the x87.
var extensions = []struct{ encoding, name, operands, implicit string }{
	// Unusual encodings that the processor treats like the usual ones.
	{"c0 any /6.", "shl", "Eb=m I", ""},
	{"c1 any /6.", "shl", "Ev=m I", ""},
	{"d0 any /6.", "shl", "Eb=m 1", ""},
	{"d1 any /6.", "shl", "Ev=m 1", ""},
	{"d2 any /6.", "shl", "Eb=m C=r", ""},
	{"d3 any /6.", "shl", "Ev=m C=r", ""},
	{"f6 any /1.", "test", "Eb=r I", ""},
	{"f7 any /1.", "test", "Ev=r J", ""},
	{"d9 any /3r", "fstp", "S=w", ""},
	{"dc any /2r", "fcom", "S=r", ""},
	{"dc any /3r", "fcomp", "S=r", ""},
	{"dd any /1r", "fxch", "S=m", ""},
	{"de any /2r", "fcomp", "S=r", ""},
	{"df any /1r", "fxch", "S=m", ""},
	{"df any /2r", "fstp", "S=w", ""},
	{"df any /3r", "fstp", "S=w", ""},
	{"0fae np /5r", "lfence", "", ""},
	{"0fae np /6r", "mfence", "", ""},
	{"0fae np /7r", "sfence", "", ""},
	{"0f1f any .", "nop", "Ev=-", ""},
	{"0f18 any r", "nop", "Ev=-", ""},
	{"0f18 any /4m", "nop", "Ev=-", ""},
	{"0f18 any /5m", "nop", "Ev=-", ""},
	// Control-flow enforcement.
	{"0f1e f3 =fa", "endbr64", "", ""},
	{"0f1e f3 =fb", "endbr32", "", ""},
	// Nothing happens while the thread has no shadow stack (SDM volume 2, RDSSP).
	{"0f1e f3 /1r", "rdssp+", "Ry=m?", ""},
	{"0f19 any .", "nop", "Ev=-", ""},
	{"0f1a any .", "nop", "Ev=-", ""},
	{"0f1b any .", "nop", "Ev=-", ""},
	{"0f1c np /0m", "cldemote", "Mb=-", ""},
	{"0f1c any .", "nop", "Ev=-", ""},
	{"0f1d any .", "nop", "Ev=-", ""},
	{"0f1e any .", "nop", "Ev=-", ""},
	{"0f0d any /0m", "prefetch", "Mb=-", ""},
	{"0f0d any /1m", "prefetchw", "Mb=-", ""},
	{"0f0d any /2m", "prefetchwt1", "Mb=-", ""},
	{"0f0d any m", "prefetch", "Mb=-", ""},
	{"0f0d any r", "nop", "Ev=-", ""},
	{"0f18 any /6m", "prefetchit1", "Mb=-", ""},
	{"0f18 any /7m", "prefetchit0", "Mb=-", ""},
	{"0f0e any *", "femms", "", ""},
	{"0f37 np *", "getsec", "", "eax=m ebx=m ecx=m edx=m"},
	{"0f09 f3 *", "wbnoinvd", "", ""},
	{"0f01 np =c0", "enclv", "", "eax=m rbx=m rcx=m rdx=m"},
	{"0f01 np =c1", "vmcall", "", "rax=m"},
	{"0f01 np =c2", "vmlaunch", "", ""},
	{"0f01 np =c3", "vmresume", "", ""},
	{"0f01 np =c4", "vmxoff", "", ""},
	{"0f01 np =c5", "pconfig", "", "eax=m rbx=m rcx=m rdx=m"},
	{"0f01 np =c6", "wrmsrns", "", "ecx=r eax=r edx=r"},
	{"0f01 np =ca", "clac", "", ""},
	{"0f01 np =cb", "stac", "", ""},
	{"0f01 np =cf", "encls", "", "eax=m rbx=m rcx=m rdx=m"},
	{"0f01 np =d4", "vmfunc", "", "eax=r ecx=r"},
	{"0f01 np =d7", "enclu", "", "eax=m rbx=m rcx=m rdx=m"},
	{"0f01 np =d8", "vmrun", "", "rax=r"},
	{"0f01 any =d9", "vmmcall", "", "rax=m"},
	{"0f01 np =da", "vmload", "", "rax=r"},
	{"0f01 np =db", "vmsave", "", "rax=r"},
	{"0f01 np =dc", "stgi", "", ""},
	{"0f01 np =dd", "clgi", "", ""},
	{"0f01 np =de", "skinit", "", "eax=r"},
	{"0f01 np =df", "invlpga", "", "rax=r ecx=r"},
	{"0f01 np =e8", "serialize", "", ""},
	{"0f01 f3 =e8", "setssbsy", "", ""},
	{"0f01 f2 =e8", "xsusldtrk", "", ""},
	{"0f01 f2 =e9", "xresldtrk", "", ""},
	{"0f01 f3 =ea", "saveprevssp", "", ""},
	{"0f01 f3 =ec", "uiret", "", "pop8=r"},
	{"0f01 f3 =ed", "testui", "", ""},
	{"0f01 f3 =ee", "clui", "", ""},
	{"0f01 f3 =ef", "stui", "", ""},
	{"0f01 np =ee", "rdpkru", "", "ecx=r eax=w edx=w"},
	{"0f01 np =ef", "wrpkru", "", "ecx=r eax=r edx=r"},
	{"0f01 np =fa", "monitorx", "", "rax=r ecx=r edx=r"},
	{"0f01 np =fb", "mwaitx", "", "eax=r ecx=r ebx=r"},
	{"0f01 np =fc", "clzero", "", "clzero=w"},
	{"0f01 np =fd", "rdpru", "", "ecx=r eax=w edx=w"},
	{"0f01 np =fe", "invlpgb", "", "rax=r ecx=r edx=r"},
	{"0f01 np =ff", "tlbsync", "", ""},
	{"0f01 f3 /5m", "rstorssp", "Mq=m", ""},
	{"0fae f3 /4.", "ptwrite", "Ey=r", ""},
	{"0fae f3 /5r", "incssp+", "Ry=r", ""},
	{"0fae f3 /6m", "clrssbsy", "Mq=m", ""},
	{"0fae f3 /6r", "umonitor", "Rq=r", ""},
	{"0fae f2 /6r", "umwait", "Rd=r", "edx=r eax=r"},
	{"0fae 66 /6r", "tpause", "Rd=r", "edx=r eax=r"},
	{"0fae 66 /6m", "clwb", "Mb=r", ""},
	{"0fae 66 /7m", "clflushopt", "Mb=r", ""},
	{"0fc7 f3 /7r", "rdpid", "Rq=w", ""},
	{"0fc7 any /7r", "rdseed", "Rv=w", ""},
	{"0fc7 f3 /6r", "senduipi", "Rq=r", ""},
	{"0fc7 any /6r", "rdrand", "Rv=w", ""},
	{"0fc7 np /6m", "vmptrld", "Mq=r", ""},
	{"0fc7 66 /6m", "vmclear", "Mq=r", ""},
	{"0fc7 f3 /6m", "vmxon", "Mq=r", ""},
	{"0fc7 np /7m", "vmptrst", "Mq=w", ""},
	{"0f78 np .", "vmread", "Eq=w Gq=r", ""},
	{"0f79 np .", "vmwrite", "Gq=r Eq=r", ""},
	{"0f78 66 /0r", "extrq", "Wx=m I I", ""},
	{"0f79 66 r", "extrq", "Vx=m Wx=r", ""},
	{"0f78 f2 r", "insertq", "Vx=m Wx=r I I", ""},
	{"0f79 f2 r", "insertq", "Vx=m Wx=r", ""},
	{"0f2b f3 m", "movntss", "Md=w Vx=r", ""},
	{"0f2b f2 m", "movntsd", "Mq=w Vx=r", ""},
	{"0f3880 66 m", "invept", "Gq=r Mx=r", ""},
	{"0f3881 66 m", "invvpid", "Gq=r Mx=r", ""},
	{"0f38cf 66 .", "gf2p8mulb", "Vx=m Wx=r", ""},
	{"0f3ace 66 .", "gf2p8affineqb", "Vx=m Wx=r I", ""},
	{"0f3acf 66 .", "gf2p8affineinvqb", "Vx=m Wx=r I", ""},
	{"0f38f5 66 m", "wruss+", "My=w Gy=r", ""},
	{"0f38f6 np m", "wrss+", "My=w Gy=r", ""},
	{"0f38f6 66 .", "adcx", "Gy=m Ey=r", ""},
	{"0f38f6 f3 .", "adox", "Gy=m Ey=r", ""},
	{"0f38f8 66 m", "movdir64b", "Gq=r Ms=r", "movdir=w"},
	{"0f38f8 f2 m", "enqcmd", "Gq=r Ms=r", "movdir=w"},
	{"0f38f8 f3 m", "enqcmds", "Gq=r Ms=r", "movdir=w"},
	{"0f38f9 np m", "movdiri", "My=w Gy=r", ""},
	{"0f38fc np m", "aadd", "My=m Gy=r", ""},
	{"0f38fc 66 m", "aand", "My=m Gy=r", ""},
	{"0f38fc f3 m", "axor", "My=m Gy=r", ""},
	{"0f38fc f2 m", "aor", "My=m Gy=r", ""},
	{"vex.0f3849 np /0m", "ldtilecfg", "Ms=r", ""},
	{"vex.0f3849 66 /0m", "sttilecfg", "Ms=w", ""},
	{"vex.0f3849 np =c0", "tilerelease", "", ""},
	{"vex.0f3849 f2 r", "tilezero", "", ""},
	{"vex.0f384b f2 m", "tileloadd", "M0=r?~", ""},
	{"vex.0f384b 66 m", "tileloaddt1", "M0=r?~", ""},
	{"vex.0f384b f3 m", "tilestored", "M0=w?~", ""},
}

var conditions = [16]string{"o", "no", "b", "nb", "z", "nz", "be", "nbe", "s", "ns", "p", "np", "l", "nl", "le", "nle"}

// rule is a parsed row of extensions.
type rule struct {
	pp       int  // -1: any
	digit    int  // -1: any
	modrm    int  // -1: any
	mem, reg bool // demanded
	name     string
	operands []ruleOperand
	implicit []implicit
}

type ruleOperand struct {
	place, size byte
	act         action
}

// ruleKey finds the rules of an opcode.
type ruleKey struct {
	enc    encoding
	opmap  uint8
	opcode byte
}

var (
	rules   = newRules()
	hasRule = newRuleIndex()
)

func newRules() map[ruleKey][]rule {
	m := make(map[ruleKey][]rule)
	for _, row := range extensions {
		fields := strings.Fields(row.encoding)
		key := parseRuleKey(fields[0])
		r := parseRule(fields[1], fields[2])
		r.name = row.name
		r.implicit = parseImplicit(row.implicit)
		for f := range strings.FieldsSeq(row.operands) {
			form, act, _ := strings.Cut(f, "=")
			r.operands = append(r.operands, ruleOperand{form[0], (form + " ")[1], parseAction(act)})
		}
		m[key] = append(m[key], r)
	}
	addCompareAndAdd(m)
	return m
}

// addCompareAndAdd adds cmpccxadd (SDM volume 2, CMPccXADD), which stores
// whether or not the condition holds.
func addCompareAndAdd(m map[ruleKey][]rule) {
	for i, condition := range conditions {
		key := ruleKey{encVEX, map0F38, 0xe0 + byte(i)}
		r := parseRule("66", "m")
		r.name = "cmp" + condition + "xadd"
		r.operands = []ruleOperand{
			{'M', 'y', actRead | actWrite | actConditional},
			{'G', 'y', actRead | actWrite},
			{'B', 'y', actRead},
		}
		m[key] = append(m[key], r)
	}
}

func parseRuleKey(text string) ruleKey {
	var key ruleKey
	if rest, ok := strings.CutPrefix(text, "vex."); ok {
		key.enc, text = encVEX, rest
	}
	for _, p := range []struct {
		prefix string
		opmap  uint8
	}{{"0f38", map0F38}, {"0f3a", map0F3A}, {"0f", map0F}} {
		if rest, ok := strings.CutPrefix(text, p.prefix); ok && rest != "" {
			key.opmap, text = p.opmap, rest
			break
		}
	}
	key.opcode = byte(parseHex(text))
	return key
}

func parseHex(text string) int {
	v, err := strconv.ParseUint(text, 16, 8)
	if err != nil {
		panic("x86: extension table: " + err.Error())
	}
	return int(v)
}

func parseRule(prefix, modrm string) rule {
	r := rule{digit: -1, modrm: -1}
	switch prefix {
	case "any":
		r.pp = -1
	case "66":
		r.pp = pp66
	case "f3":
		r.pp = ppF3
	case "f2":
		r.pp = ppF2
	}
	if rest, ok := strings.CutPrefix(modrm, "="); ok {
		r.modrm = parseHex(rest)
		return r
	}
	if rest, ok := strings.CutPrefix(modrm, "/"); ok {
		r.digit = int(rest[0] - '0')
		modrm = rest[1:]
	}
	r.mem, r.reg = modrm == "m", modrm == "r"
	return r
}

func newRuleIndex() *[4][256]bool {
	var t [4][256]bool
	for key := range rules {
		t[key.opmap][key.opcode] = true
	}
	return &t
}

func (r *rule) matches(l *layout, modrm byte) bool {
	switch {
	case r.pp >= 0 && r.pp != int(l.pp):
	case r.modrm >= 0 && r.modrm != int(modrm):
	case r.digit >= 0 && r.digit != int(l.reg):
	case r.mem && !l.hasMem, r.reg && l.hasMem:
	default:
		return true
	}
	return false
}

// extension decodes instructions that x86asm does not know or mistakes for
// others.
func (d *decoder) extension() bool {
	l := &d.l
	if l.opmap > map0F3A || l.enc > encVEX || !hasRule[l.opmap][l.opcode] {
		return false
	}
	var modrm byte
	if l.hasModRM {
		modrm = d.code[l.opcodeAt+1]
	}
	list := rules[ruleKey{l.enc, l.opmap, l.opcode}]
	for i := range list {
		if list[i].matches(l, modrm) {
			d.fromRule(&list[i])
			return true
		}
	}
	return false
}

func (d *decoder) fromRule(r *rule) {
	d.x = x86asm.Inst{}
	d.inst.Op = r.name
	if name, ok := strings.CutSuffix(r.name, "+"); ok {
		d.inst.Op = name + "d"
		if d.l.w {
			d.inst.Op = name + "q"
		}
	}
	immediates := 0
	for _, o := range r.operands {
		switch o.place {
		case 'I':
			d.addConstant(int64(d.code[d.l.immAt+immediates]), 1)
			immediates++
		case 'J':
			d.addConstant(d.l.immediate(d.code), d.l.immLen)
		case '1':
			d.addConstant(1, 0)
		default:
			d.addRuleOperand(o)
		}
	}
	for i := range r.implicit {
		d.addImplicit(&r.implicit[i])
	}
	if r.name == "uiret" {
		d.inst.Flow = FlowReturn
	}
}

func (d *decoder) addConstant(v int64, size int) {
	d.slab = append(d.slab, Operand{Reg: RegNone, IsImm: true, Imm: v, Size: size})
}

func (d *decoder) addRuleOperand(o ruleOperand) {
	l := &d.l
	size := d.sizeOf(o.size)
	switch o.place {
	case 'G':
		d.addRegister(generalRegister(l.regField(), size, true), o.act)
	case 'B':
		d.addRegister(generalRegister(l.vvvv, size, true), o.act)
	case 'C':
		d.addRegister(registerNames["cl"], o.act)
	case 'S':
		d.addRegister(registers[int(x86asm.F0)+int(l.rm)], o.act)
	case 'V':
		d.addRegister(vectorRegister(l.regField(), size), o.act)
	case 'W':
		if l.hasMem {
			d.addMemory(l.mem, size, o.act)
			return
		}
		d.addRegister(vectorRegister(l.rmField(), size), o.act)
	default:
		if l.hasMem {
			d.addMemory(l.mem, size, o.act)
			return
		}
		d.addRegister(generalRegister(l.rmField(), size, l.rex), o.act)
	}
}

func (d *decoder) sizeOf(code byte) int {
	switch code {
	case 'b':
		return 1
	case 'w':
		return 2
	case 'd':
		return 4
	case 'q':
		return 8
	case 'x':
		return 16
	case 's':
		return 64
	case 'y', 'v':
		switch {
		case d.l.w:
			return 8
		case d.l.data16 && code == 'v':
			return 2
		}
		return 4
	}
	return 0
}

func vectorRegister(n uint8, size int) register {
	first := x86asm.X0
	switch size {
	case 32:
		first = x86asm.Y0
	case 64:
		first = x86asm.Z0
	}
	return registers[int(first)+int(n&31)]
}

// unknownVector describes an instruction of which only the encoding is known.
// Any of its register fields may name a general register, as in cmpccxadd.
func (d *decoder) unknownVector() {
	l := &d.l
	d.x = x86asm.Inst{}
	scheme := [...]string{"", "vex", "evex", "xop"}[l.enc]
	prefix := [...]string{"np", "66", "f3", "f2"}[l.pp]
	opmap := fmt.Sprintf("map%d", l.opmap)
	if l.opmap >= map0F && l.opmap <= map0F3A {
		opmap = [...]string{"0f", "0f38", "0f3a"}[l.opmap-1]
	}
	d.inst.Op = fmt.Sprintf("%s.%s.%s.%02x", scheme, prefix, opmap, l.opcode)
	const perhaps = actRead | actWrite | actConditional
	if l.hasMem {
		m := l.mem
		m.Inexact = l.hasSIB && m.Index != RegNone || l.enc == encEVEX && l.disp8
		d.addMemory(m, 0, perhaps)
	}
	d.addUnknownRegister(l.regField(), perhaps)
	d.addUnknownRegister(l.vvvv, perhaps)
	if !l.hasMem {
		d.addUnknownRegister(l.rmField(), perhaps)
	}
}

func (d *decoder) addUnknownRegister(n uint8, act action) {
	d.addRegister(generalRegister(n, 8, true), act)
	d.slab[len(d.slab)-1].Implicit = true
}
