package x86

import (
	"fmt"
	"strings"
	"sync"

	"diagnose/evidence"
	"golang.org/x/arch/x86/x86asm"
)

// action is what an instruction does with one operand.
type action uint8

const (
	actRead action = 1 << iota
	actWrite
	actConditional // may not happen, or may leave the old value
	actInexact     // the access is only near the address
)

func (a action) kind() evidence.AccessKind {
	switch a & (actRead | actWrite) {
	case actRead:
		return evidence.Read
	case actWrite:
		return evidence.Write
	case actRead | actWrite:
		return evidence.ReadWrite
	}
	return ""
}

// implicit is an implicit operand: a register or a stack slot.
type implicit struct {
	name string // "rax", "eax", "al"; "a" and "d" at operand size; "push", "pop", ...
	reg  Reg
	size int // 0: the operand size
	act  action
}

// behaviour describes all instructions with one mnemonic.
type behaviour struct {
	known    bool
	actions  [6]action // of the explicit operands
	implicit []implicit
	flow     Flow
	size     int // of the memory operand, if x86asm does not give it
}

// The table: mnemonics as x86asm names them, what they do with their operands
// from left to right (r reads, w writes, m modifies, - neither, ? may not
// happen, ~ near that address), and their implicit operands. Sources: Intel SDM
// volume 2, AMD volumes 3 to 5.
var behaviours = []struct{ actions, implicit, ops string }{
	// General.
	{"w r", "", "mov movzx movsx movsxd movbe movnti rdfsbase rdgsbase lzcnt tzcnt popcnt"},
	{"m r r", "", "adc add and or sbb sub xor rcl rcr rol ror sar shl shr shld shrd crc32 adcx adox"},
	{"r r", "", "cmp test bt"},
	{"m r", "", "btc btr bts"},
	{"m", "", "inc dec neg not bswap"},
	{"m m", "", "xadd xchg"},
	{"m? r", "", "cmova cmovae cmovb cmovbe cmove cmovg cmovge cmovl cmovle cmovne cmovno cmovnp cmovns cmovo cmovp cmovs bsf bsr lar lsl"},
	{"w", "", "seta setae setb setbe sete setg setge setl setle setne setno setnp setns seto setp sets rdrand"},
	{"m? r", "a=m?", "cmpxchg"},
	{"m?", "eax=m? edx=m? ebx=r ecx=r", "cmpxchg8b"},
	{"m?", "rax=m? rdx=m? rbx=r rcx=r", "cmpxchg16b"},
	{"w -", "", "lea"},
	{"-", "", "nop prefetchnta prefetcht0 prefetcht1 prefetcht2 prefetchw invlpg"},
	// A flush counts as the load of a byte (SDM volume 2, CLFLUSH).
	{"r", "", "clflush"},
	{"", "", "pause lfence mfence sfence clc cld cli clts cmc stc std sti emms invd wbinvd xend xtest swapgs monitor mwait fwait fnop fnclex fninit"},
	{"", "al=m", "cbw"},
	{"", "eax=m", "cwde"},
	{"", "rax=m", "cdqe"},
	{"", "a=r d=w", "cwd cdq cqo"},
	{"", "ah=w", "lahf"},
	{"", "ah=r", "sahf"},
	{"r~", "al=m rbx=r", "xlatb"},
	{"r", "mul=m", "mul"},
	{"r", "div=m", "div idiv"},
	{"m r r", "", "imul"},
	{"", "eax=m ebx=w ecx=m edx=w", "cpuid"},
	{"", "eax=w edx=w", "rdtsc"},
	{"", "eax=w edx=w ecx=w", "rdtscp"},
	{"", "ecx=r eax=w edx=w", "rdpmc rdmsr xgetbv"},
	{"", "ecx=r eax=r edx=r", "wrmsr xsetbv"},
	{"r", "", "wrfsbase wrgsbase lmsw lldt ltr verr verw lgdt lidt"},
	{"w", "", "sldt str smsw sgdt sidt"},
	{"r r", "", "invpcid ud0 ud1 out"},
	{"w r", "", "in"},
	{"w r", "", "lfs lgs lss"},
	{"r", "eax=w", "xabort xbegin"},
	// Stack and control flow.
	{"r", "push=w", "push"},
	{"w", "pop=r", "pop"},
	{"", "push=w", "pushf pushfd pushfq"},
	{"", "pop=r", "popf popfd popfq"},
	{"r", "push8=w", "call lcall"},
	{"", "pop8=r", "ret lret iret iretd iretq"},
	{"", "leave=r", "leave"},
	{"", "enter=w", "enter"},
	{"r", "", "jmp ljmp int icebp"},
	{"", "", "ja jae jb jbe je jg jge jl jle jne jno jnp jns jo jp js hlt ud2 rsm sysexit sysret"},
	{"", "rcx=m", "loop loope loopne"},
	{"", "rcx=r", "jrcxz"},
	{"", "ecx=r", "jecxz jcxz"},
	{"", "rax=m rcx=w r11=w", "syscall"},
	{"", "rax=m", "sysenter"},
	// Strings.
	{"w r", "di=m si=m", "movsb movsw movsd movsq"},
	{"r r", "si=m di=m", "cmpsb cmpsw cmpsd cmpsq"},
	{"w r", "di=m", "stosb stosw stosd stosq insb insw insd"},
	{"w r", "si=m", "lodsb lodsw lodsd lodsq"},
	{"r r", "di=m", "scasb scasw scasd scasq"},
	{"r r", "si=m", "outsb outsw outsd"},
	// State.
	{"w", "", "fxsave fxsave64 stmxcsr vstmxcsr"},
	{"r", "", "fxrstor fxrstor64 ldmxcsr vldmxcsr"},
	{"m?", "eax=r edx=r", "xsave xsave64 xsavec xsavec64 xsaveopt xsaveopt64 xsaves xsaves64"},
	{"r?", "eax=r edx=r", "xrstor xrstor64 xrstors xrstors64"},
	// x87: see x87Actions for the rest.
	{"w r", "", "fst fstp fist fistp fisttp fbstp fnstcw fnstsw fnstenv fnsave"},
	{"r", "", "fld fild fbld fldcw fldenv frstor ffree ffreep"},
	{"r r", "", "fcom fcomp fcomi fcomip fucom fucomp fucomi fucomip ficom ficomp"},
	{"m m", "", "fxch"},
	{"m r", "", "fadd faddp fmul fmulp fsub fsubp fsubr fsubrp fdiv fdivp fdivr fdivrp fcmovb fcmovbe fcmove fcmovnb fcmovnbe fcmovne fcmovnu fcmovu"},
	{"r", "", "fiadd fimul fisub fisubr fidiv fidivr"},
	{"", "", "f2xm1 fabs fchs fcompp fcos fdecstp fincstp fld1 fldl2e fldl2t fldlg2 fldln2 fldpi fldz fpatan fprem fprem1 fptan frndint fscale fsin fsincos fsqrt ftst fucompp fxam fxtract fyl2x fyl2xp1"},
	// MMX and SSE: "m r r" unless listed here.
	{"w r r", "", "cvtdq2pd cvtdq2ps cvtpd2dq cvtpd2pi cvtpd2ps cvtps2dq cvtps2pd cvtps2pi cvtsd2si cvtss2si cvttpd2dq cvttpd2pi cvttps2dq cvttps2pi cvttsd2si cvttss2si extractps lddqu movapd movaps movd movddup movdq2q movdqa movdqu movmskpd movmskps movntdq movntdqa movntpd movntps movntq movntsd movntss movq movq2dq movshdup movsldup movupd movups pabsb pabsd pabsw pextrb pextrd pextrq pextrw phminposuw pmovmskb pmovsxbd pmovsxbq pmovsxbw pmovsxdq pmovsxwd pmovsxwq pmovzxbd pmovzxbq pmovzxbw pmovzxdq pmovzxwd pmovzxwq pshufd pshufhw pshuflw pshufw rcpps roundpd roundps rsqrtps sqrtpd sqrtps aesimc aeskeygenassist"},
	{"r r", "", "comisd comiss ucomisd ucomiss ptest"},
	{"r r", "ecx=w", "pcmpistri"},
	{"r r", "eax=r edx=r ecx=w", "pcmpestri"},
	{"r r", "", "pcmpistrm"},
	{"r r", "eax=r edx=r", "pcmpestrm"},
	{"r r", "maskmov=w?", "maskmovdqu maskmovq vmaskmovdqu"},
	// VEX and EVEX: "w r r r" unless listed here.
	{"w w r", "d=r", "mulx"},
	{"r r r", "", "kortestb kortestd kortestq kortestw ktestb ktestd ktestq ktestw vcomisd vcomiss vcomish vcomisbf16 vcomxsd vcomxsh vcomxss vucomisd vucomiss vucomish vucomxsd vucomxsh vucomxss vptest vtestpd vtestps"},
	{"r r r", "ecx=w", "vpcmpistri vpcmpistri64"},
	{"r r r", "eax=r edx=r ecx=w", "vpcmpestri vpcmpestri64"},
	{"r r r", "", "vpcmpistrm"},
	{"r r r", "eax=r edx=r", "vpcmpestrm vpcmpestrm64"},
	{"-", "", "vgatherpf0dpd vgatherpf0dps vgatherpf0qpd vgatherpf0qps vgatherpf1dpd vgatherpf1dps vgatherpf1qpd vgatherpf1qps vscatterpf0dpd vscatterpf0dps vscatterpf0qpd vscatterpf0qps vscatterpf1dpd vscatterpf1dps vscatterpf1qpd vscatterpf1qps"},
	{"m? r? m", "", "vgatherdpd vgatherdps vgatherqpd vgatherqps vpgatherdd vpgatherdq vpgatherqd vpgatherqq"},
	{"w? r", "", "vpscatterdd vpscatterdq vpscatterqd vpscatterqq vscatterdpd vscatterdps vscatterqpd vscatterqps"},
	{"m r r r", "", "vdpbf16ps vdpphps vfixupimmpd vfixupimmps vfixupimmsd vfixupimmss vp4dpwssd vp4dpwssds vpdpbssd vpdpbssds vpdpbsud vpdpbsuds vpdpbusd vpdpbusds vpdpbuud vpdpbuuds vpdpwssd vpdpwssds vpdpwsud vpdpwsuds vpdpwusd vpdpwusds vpdpwuud vpdpwuuds vpermi2b vpermi2d vpermi2pd vpermi2ps vpermi2q vpermi2w vpermt2b vpermt2d vpermt2pd vpermt2ps vpermt2q vpermt2w vpmadd52huq vpmadd52luq vpshldvd vpshldvq vpshldvw vpshrdvd vpshrdvq vpshrdvw vpternlogd vpternlogq v4fmaddps v4fmaddss v4fnmaddps v4fnmaddss"},
}

// memorySizes are the operand sizes that x86asm does not give or gives wrong.
var memorySizes = map[string]int{
	"fxsave": 512, "fxsave64": 512, "fxrstor": 512, "fxrstor64": 512,
	"fnsave": 108, "frstor": 108, "fnstenv": 28, "fldenv": 28,
	"fbld": 10, "fbstp": 10, "lgdt": 10, "lidt": 10, "sgdt": 10, "sidt": 10,
	"cmpxchg8b": 8, "cmpxchg16b": 16, "invpcid": 16, "xlatb": 1,
	"insb": 1, "insw": 2, "insd": 4, "outsb": 1, "outsw": 2, "outsd": 4,
	"movsb": 1, "movsw": 2, "movsd": 4, "movsq": 8, "cmpsb": 1, "cmpsw": 2, "cmpsd": 4, "cmpsq": 8,
	"stosb": 1, "stosw": 2, "stosd": 4, "stosq": 8, "lodsb": 1, "lodsw": 2, "lodsd": 4, "lodsq": 8,
	"scasb": 1, "scasw": 2, "scasd": 4, "scasq": 8,
	"ldmxcsr": 4, "stmxcsr": 4, "vldmxcsr": 4, "vstmxcsr": 4,
	"pmovsxbd": 4, "pmovzxbd": 4, "pmovsxbq": 2, "pmovzxbq": 2,
	"lar": 2, "lsl": 2, "clflush": 1,
}

var flows = map[string]Flow{
	"jmp": FlowJump, "ljmp": FlowJump, "call": FlowCall, "lcall": FlowCall,
	"ret": FlowReturn, "lret": FlowReturn, "iret": FlowReturn, "iretd": FlowReturn, "iretq": FlowReturn,
	"sysret": FlowReturn, "sysexit": FlowReturn, "rsm": FlowReturn,
	"ud0": FlowTrap, "ud1": FlowTrap, "ud2": FlowTrap, "hlt": FlowTrap, "int": FlowTrap, "icebp": FlowTrap,
	"syscall": FlowSyscall, "sysenter": FlowSyscall, "xbegin": FlowBranch,
	"loop": FlowBranch, "loope": FlowBranch, "loopne": FlowBranch,
	"jrcxz": FlowBranch, "jecxz": FlowBranch, "jcxz": FlowBranch,
}

// spellings are the names that x86asm writes differently from the manuals.
var spellings = map[string]string{
	"movsd_xmm": "movsd", "cmpsd_xmm": "cmpsd", "lcall": "call far", "ljmp": "jmp far",
	"lret": "retf", "icebp": "int1", "xlatb": "xlat", "vpextrw_c5": "vpextrw",
	"vpcmpestri64": "vpcmpestri", "vpcmpistri64": "vpcmpistri", "vpcmpestrm64": "vpcmpestrm",
	"iret": "iretw", "popfd": "popf", "pushfd": "pushf",
}

// knowledge is the table, by x86asm's number of the operation.
type knowledge struct {
	names      []string
	behaviours []behaviour
}

// known is built on first use: most runs of the tool decode nothing.
var known = sync.OnceValue(newKnowledge)

func newKnowledge() *knowledge {
	k := &knowledge{}
	byName := make(map[string]behaviour, 1024)
	for _, row := range behaviours {
		b := behaviour{known: true, actions: parseActions(row.actions), implicit: parseImplicit(row.implicit)}
		for name := range strings.FieldsSeq(row.ops) {
			byName[name] = b
		}
	}
	for op := x86asm.Op(0); op == 0 || int(op) <= maxOp; op++ {
		name := strings.ToLower(op.String())
		b, ok := byName[name]
		if !ok {
			b = defaultBehaviour(name)
		}
		b.flow, b.size = flows[name], memorySizes[name]
		if name[0] == 'j' && b.flow == FlowNext {
			b.flow = FlowBranch
		}
		if s, ok := spellings[name]; ok {
			name = s
		}
		k.names = append(k.names, name)
		k.behaviours = append(k.behaviours, b)
	}
	return k
}

// maxOp is the last operation that x86asm names.
const maxOp = int(x86asm.VZEROUPPER)

func defaultBehaviour(name string) behaviour {
	b := behaviour{known: true}
	switch {
	case strings.HasPrefix(name, "op("):
		b.known = false
	case strings.HasPrefix(name, "vfmadd"), strings.HasPrefix(name, "vfmsub"),
		strings.HasPrefix(name, "vfnm"), strings.HasPrefix(name, "vfcmadd"):
		b.actions = parseActions("m r r r")
	case name[0] == 'v', name[0] == 'k', isBMI(name):
		b.actions = parseActions("w r r r r")
	default:
		b.actions = parseActions("m r r")
	}
	return b
}

func isBMI(name string) bool {
	switch name {
	case "andn", "bextr", "blsi", "blsmsk", "blsr", "bzhi", "pdep", "pext", "rorx", "sarx", "shlx", "shrx":
		return true
	}
	return false
}

func parseActions(text string) (actions [6]action) {
	for i, field := range strings.Fields(text) {
		actions[i] = parseAction(field)
	}
	return actions
}

func parseAction(text string) (a action) {
	for _, c := range text {
		switch c {
		case 'r':
			a |= actRead
		case 'w':
			a |= actWrite
		case 'm':
			a |= actRead | actWrite
		case '?':
			a |= actConditional
		case '~':
			a |= actInexact
		case '-':
		default:
			panic(fmt.Sprintf("x86: action %q", text))
		}
	}
	return a
}

func parseImplicit(text string) (list []implicit) {
	for field := range strings.FieldsSeq(text) {
		name, act, _ := strings.Cut(field, "=")
		im := implicit{name: name, reg: RegNone, act: parseAction(act)}
		if r, ok := registerNames[name]; ok {
			im.reg, im.size = r.reg, r.size
		}
		list = append(list, im)
	}
	return list
}
