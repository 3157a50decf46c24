/* Signal frames of the program's, made by the engine as the kernel would make
 * them (arch/x86/kernel/signal.c, get_sigframe; signal_64.c,
 * x64_setup_rt_frame). The kernel's own frames go to a stack of the engine's, for
 * the program's stack for handlers may be in use while the thread is in the
 * engine, on another stack, and the kernel would start at its top again. And
 * so every byte of a frame is the same in a replay: what the processor leaves
 * undefined (padding, the last x87 instruction's address, which state it
 * happens to consider in use) is set here. */
#include "engine/engine.h"
#include "syscall.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31) /* linux/signal.h, which signal.h excludes */
#endif

struct dg_sigcontext {
	uint64_t registers[18]; /* enum dg_context_register */
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t fpstate;
	uint64_t reserved[8];
};

enum dg_context_register {
	DG_REG_R8, DG_REG_R9, DG_REG_R10, DG_REG_R11, DG_REG_R12, DG_REG_R13, DG_REG_R14, DG_REG_R15, DG_REG_RDI,
	DG_REG_RSI, DG_REG_RBP, DG_REG_RBX, DG_REG_RDX, DG_REG_RAX, DG_REG_RCX, DG_REG_RSP, DG_REG_RIP, DG_REG_FLAGS,
	DG_REGS
};

struct dg_ucontext {
	uint64_t flags, link;
	uint64_t stack_low;
	int32_t stack_flags;
	uint32_t reserved;
	uint64_t stack_size;
	struct dg_sigcontext context;
	uint64_t mask;
};

#define DG_SIGINFO_BYTES 128u

struct dg_sigframe {
	uint64_t restorer;
	struct dg_ucontext uc;
	uint8_t info[DG_SIGINFO_BYTES];
};

_Static_assert(sizeof(struct dg_sigcontext) == 256, "struct sigcontext");
_Static_assert(sizeof(struct dg_sigframe) == 440, "struct rt_sigframe");

#define DG_UC_FLAGS 7u /* UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
#define DG_USER_CS 0x33u
#define DG_USER_SS 0x2bu
#define DG_FLAG_TRAP 0x100ull
#define DG_FLAG_DIRECTION 0x400ull
#define DG_FLAG_RESUME 0x10000ull
#define DG_RED_ZONE 128u
#define DG_PAGE_SIZE 4096ull

/* ---- the state of the vector and x87 registers: an XSAVE area, not compacted ---- */

#define DG_XSTATE_LEGACY 416u /* x87, mxcsr and xmm0 to xmm15; then bytes that are not defined */
#define DG_XSTATE_XMM 160u
#define DG_XSTATE_SOFTWARE 464u /* struct _fpx_sw_bytes */
#define DG_XSTATE_HEADER 512u
#define DG_XSTATE_MOST 12288u
#define DG_XSTATE_MAGIC1 0x46505853u
#define DG_XSTATE_MAGIC2 0x46505845u
#define DG_XSTATE_TILE_DATA 18 /* only for those who ask the kernel for it */
/* Components of which the initial state is zeros: these are marked as in use
 * whether the processor thinks so or not. x87, SSE, AVX, AVX-512. */
#define DG_XSTATE_MARKED 0xe7ull
#define DG_FCW_INITIAL 0x37fu
#define DG_MXCSR_INITIAL 0x1f80u

static struct {
	uint64_t features;
	uint32_t size;
	struct {
		uint32_t at, size;
	} part[64];
} dg_xstate;

static void dg_cpuid(uint32_t leaf, uint32_t sub, uint32_t *a, uint32_t *b, uint32_t *c)
{
	uint32_t d;

	__asm__ volatile("cpuid" : "=a"(*a), "=b"(*b), "=c"(*c), "=d"(d) : "a"(leaf), "c"(sub));
}

/* What the kernel puts into frames: fpu_user_cfg.default_features. */
static void dg_xstate_learn(void)
{
	uint32_t a, b, c, low, high;

	dg_cpuid(1, 0, &a, &b, &c);
	dg_xstate.size = DG_XSTATE_HEADER;
	if (!(c & (1u << 27)))
		return;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	dg_xstate.features = ((uint64_t)high << 32 | low) & ~(1ull << DG_XSTATE_TILE_DATA);
	dg_xstate.size = DG_XSTATE_HEADER + 64;
	for (uint32_t i = 2; i < 63; i++) {
		if (!(dg_xstate.features >> i & 1))
			continue;
		dg_cpuid(0xd, i, &a, &b, &c);
		dg_xstate.part[i].at = b;
		dg_xstate.part[i].size = a;
		if (b + a > dg_xstate.size)
			dg_xstate.size = b + a;
	}
}

static uint32_t *dg_word32_at(uint8_t *p, uint32_t at)
{
	return (uint32_t *)(void *)(p + at);
}

static uint64_t *dg_word64_at(uint8_t *p, uint32_t at)
{
	return (uint64_t *)(void *)(p + at);
}

/* How many bytes the area takes in a frame, its end mark included. */
static uint64_t dg_xstate_bytes(void)
{
	return dg_xstate.features ? dg_xstate.size + 4u : dg_xstate.size;
}

/* The processor's registers now. The buffer is aligned to 64 bytes. */
static void dg_xstate_save(uint8_t *to)
{
	memset(to, 0, dg_xstate_bytes());
	if (dg_xstate.features)
		__asm__ volatile("xsave64 (%0)"
				 :
				 : "r"(to), "a"((uint32_t)dg_xstate.features), "d"((uint32_t)(dg_xstate.features >> 32))
				 : "memory");
	else
		__asm__ volatile("fxsave64 (%0)" : : "r"(to) : "memory");
}

/* What the kernel looks for before it takes more than x87 and SSE from a frame. */
static void dg_xstate_seal(uint8_t *area)
{
	if (!dg_xstate.features)
		return;
	*dg_word32_at(area, DG_XSTATE_SOFTWARE) = DG_XSTATE_MAGIC1;
	*dg_word32_at(area, DG_XSTATE_SOFTWARE + 4) = dg_xstate.size + 4;
	*dg_word64_at(area, DG_XSTATE_SOFTWARE + 8) = dg_xstate.features;
	*dg_word32_at(area, DG_XSTATE_SOFTWARE + 16) = dg_xstate.size;
	*dg_word32_at(area, dg_xstate.size) = DG_XSTATE_MAGIC2;
}

/* The same state in a form that has one way to be written. */
static void dg_xstate_copy(uint8_t *to, uint8_t *from)
{
	uint64_t used;

	memset(to, 0, dg_xstate_bytes());
	dg_copy(to, from, DG_XSTATE_LEGACY);
	/* fop, fip and fdp: processors keep them only while an exception is pending. */
	if (!(from[2] & 0x80))
		memset(to + 6, 0, 18);
	if (!dg_xstate.features)
		return;
	used = *dg_word64_at(from, DG_XSTATE_HEADER);
	for (uint32_t i = 2; i < 63; i++)
		if (dg_xstate.features >> i & used >> i & 1)
			dg_copy(to + dg_xstate.part[i].at, from + dg_xstate.part[i].at, dg_xstate.part[i].size);
	*dg_word64_at(to, DG_XSTATE_HEADER) = (used | DG_XSTATE_MARKED) & dg_xstate.features;
	dg_xstate_seal(to);
}

/* Registers that hold nothing for the caller (a call's caller saved them), and
 * that a wrapper may leave otherwise in a replay. The modes stay. */
static void dg_xstate_drop_vectors(uint8_t *area)
{
	memset(area + DG_XSTATE_XMM, 0, DG_XSTATE_LEGACY - DG_XSTATE_XMM);
	for (uint32_t i = 2; i < 8; i++)
		if (dg_xstate.features & DG_XSTATE_MARKED & (1ull << i))
			memset(area + dg_xstate.part[i].at, 0, dg_xstate.part[i].size);
}

/* What a handler starts with. Protection keys stay as they are. */
static void dg_xstate_initial(uint8_t *area)
{
	uint32_t mxcsr_mask = *dg_word32_at(area, 28);

	memset(area, 0, DG_XSTATE_LEGACY);
	*dg_word32_at(area, 0) = DG_FCW_INITIAL;
	*dg_word32_at(area, 24) = DG_MXCSR_INITIAL;
	*dg_word32_at(area, 28) = mxcsr_mask;
	for (uint32_t i = 2; i < 63; i++)
		if (dg_xstate.features & DG_XSTATE_MARKED & (1ull << i))
			memset(area + dg_xstate.part[i].at, 0, dg_xstate.part[i].size);
	if (dg_xstate.features)
		*dg_word64_at(area, DG_XSTATE_HEADER) |= DG_XSTATE_MARKED & dg_xstate.features;
}

/* ---- the way out ---- */

/* Where a handler returns to, and what a return to the program ends with. What
 * unwinders know of it is the same that glibc says of its own: `S`, and where in
 * the context each register is. They look it up by the address before it. */
void dg_restorer(void) DG_HIDDEN;
extern const char dg_restorer_low[] DG_HIDDEN, dg_restorer_high[] DG_HIDDEN;
/* uc: the program's, on its stack; f: the engine's frame, to be filled. */
__attribute__((noreturn)) void dg_handler_returned(struct dg_rthread *me, uint64_t uc, struct dg_frame *f) DG_HIDDEN;

/* CFI as in glibc's sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c: number,
 * offset from rsp, which is the address of the ucontext. */
#define DG_CFI_SAVED(number, offset) ".cfi_escape 0x10, " #number ", 3, 0x77, (" #offset " & 0x7f) | 0x80, " #offset " >> 7\n"

__asm__(".text\n"
	".balign 16\n"
	".cfi_startproc\n"
	".cfi_signal_frame\n"
	".cfi_escape 0x0f, 4, 0x77, (160 & 0x7f) | 0x80, 160 >> 7, 0x06\n" /* CFA: rsp of the context */
	DG_CFI_SAVED(8, 40) DG_CFI_SAVED(9, 48) DG_CFI_SAVED(10, 56) DG_CFI_SAVED(11, 64) DG_CFI_SAVED(12, 72)
	DG_CFI_SAVED(13, 80) DG_CFI_SAVED(14, 88) DG_CFI_SAVED(15, 96) DG_CFI_SAVED(5, 104) DG_CFI_SAVED(4, 112)
	DG_CFI_SAVED(6, 120) DG_CFI_SAVED(3, 128) DG_CFI_SAVED(1, 136) DG_CFI_SAVED(0, 144) DG_CFI_SAVED(2, 152)
	DG_CFI_SAVED(7, 160) DG_CFI_SAVED(16, 168)
	"nop\n"
	".balign 16\n"
	".globl dg_restorer\n"
	".hidden dg_restorer\n"
	".type dg_restorer, @function\n"
	"dg_restorer:\n"
	"	movq dg_me@gottpoff(%rip), %rax\n"
	"	movq %fs:(%rax), %rdi\n"
	"	movq %rsp, %rsi\n"
	".globl dg_restorer_low\n"
	".hidden dg_restorer_low\n"
	"dg_restorer_low:\n"
	"	movq 24(%rdi), %rsp\n" /* engine_sp */
	"	subq $176, %rsp\n" /* struct dg_frame, where engine/entry.S has it */
	"	movq %rsp, 32(%rdi)\n" /* inside */
	"	movq %rsp, %rdx\n"
	"	cld\n"
	"	call dg_handler_returned\n"
	"	ud2\n"
	".globl dg_restorer_high\n"
	".hidden dg_restorer_high\n"
	"dg_restorer_high:\n"
	".cfi_endproc\n"
	".size dg_restorer, .-dg_restorer\n"
	/* For the kernel's frames of the engine's handler. */
	".type dg_kernel_restorer, @function\n"
	"dg_kernel_restorer:\n"
	"	movq $15, %rax\n"
	"	syscall\n"
	"	ud2\n"
	".size dg_kernel_restorer, .-dg_kernel_restorer\n");
void dg_kernel_restorer(void) DG_HIDDEN;

/* Continues as the context says: registers, vector registers, mask. */
__attribute__((noreturn)) static void dg_resume(struct dg_ucontext *uc)
{
	__asm__ volatile("movq %0, %%rsp\n\t"
			 "movl $15, %%eax\n\t"
			 "syscall\n\t"
			 "ud2"
			 :
			 : "r"(uc)
			 : "memory");
	__builtin_unreachable();
}

/* ---- the program's frame ---- */

struct dg_frame_place {
	uint64_t frame, fpstate;
	bool alternate; /* goes to the stack for handlers, which was not in use */
};

static bool dg_on_alternate(const struct dg_rthread *me, uint64_t sp)
{
	/* on_sig_stack: one that disarms itself is never in use. */
	return !(me->alt_flags & SS_AUTODISARM) && me->alt_size && sp > me->alt_low && sp - me->alt_low <= me->alt_size;
}

/* copy_to_user makes the stack of the main thread grow where it can, and does
 * not kill where it cannot. All of it is written over later. */
static bool dg_can_write(uint64_t low, uint64_t high)
{
	for (uint64_t at = low; at < high; at = (at & ~(DG_PAGE_SIZE - 1)) + DG_PAGE_SIZE)
		if (dg_sys4(SYS_rt_sigprocmask, SIG_BLOCK, 0, at & ~7ull, 8))
			return false;
	return true;
}

/* False: there is no room, so the kernel would have killed the process. */
static bool dg_frame_find(const struct dg_rthread *me, uint64_t sp, uint64_t flags, struct dg_frame_place *p)
{
	bool on = dg_on_alternate(me, sp);
	uint64_t top = sp - DG_RED_ZONE;

	p->alternate = (flags & SA_ONSTACK) && me->alt_size && !on;
	if (p->alternate)
		top = me->alt_low + me->alt_size;
	p->fpstate = (top - dg_xstate_bytes()) & ~63ull;
	p->frame = ((p->fpstate - sizeof(struct dg_sigframe)) & ~15ull) - 8;
	if ((on || p->alternate) && (p->frame < me->alt_low || p->frame > top))
		return false;
	return dg_can_write(p->frame, p->fpstate + dg_xstate_bytes());
}

/* Saves the context in the program's frame, as it is. */
static void dg_frame_write(struct dg_rthread *me, const struct dg_frame_place *p, const struct dg_ucontext *uc,
			   const uint8_t *info, const struct dg_signal_state *state)
{
	struct dg_sigframe *f = (struct dg_sigframe *)p->frame;

	memset(f, 0, sizeof(*f));
	f->restorer = (uint64_t)dg_restorer;
	f->uc.flags = dg_xstate.features ? DG_UC_FLAGS : DG_UC_FLAGS & ~1u;
	f->uc.stack_low = me->alt_low;
	f->uc.stack_size = me->alt_size;
	f->uc.stack_flags = (int32_t)(me->alt_size ? me->alt_flags : SS_DISABLE);
	dg_copy(f->uc.context.registers, uc->context.registers, sizeof(uc->context.registers));
	f->uc.context.registers[DG_REG_FLAGS] &= ~(DG_FLAG_TRAP | DG_FLAG_RESUME);
	f->uc.context.cs = DG_USER_CS;
	f->uc.context.ss = DG_USER_SS;
	f->uc.context.err = state->err;
	f->uc.context.trapno = state->trapno;
	f->uc.context.cr2 = state->cr2;
	f->uc.context.oldmask = me->mask;
	f->uc.context.fpstate = p->fpstate;
	f->uc.mask = me->mask;
	dg_copy(f->info, info, DG_SIGINFO_BYTES);
	dg_xstate_copy((uint8_t *)p->fpstate, (uint8_t *)uc->context.fpstate);
	if (me->alt_flags & SS_AUTODISARM)
		me->alt_low = me->alt_size = me->alt_flags = 0;
}

/* Makes the context, with which the thread is about to continue, that of the
 * handler's first instruction. */
static void dg_frame_enter(struct dg_ucontext *uc, const struct dg_frame_place *p, int signal, uint64_t handler)
{
	uint64_t *r = uc->context.registers;

	r[DG_REG_RIP] = handler;
	r[DG_REG_RSP] = p->frame;
	r[DG_REG_RDI] = (uint64_t)signal;
	r[DG_REG_RSI] = p->frame + offsetof(struct dg_sigframe, info);
	r[DG_REG_RDX] = p->frame + offsetof(struct dg_sigframe, uc);
	r[DG_REG_RAX] = 0;
	r[DG_REG_FLAGS] &= ~(DG_FLAG_DIRECTION | DG_FLAG_TRAP | DG_FLAG_RESUME);
	uc->context.cs = DG_USER_CS;
	uc->context.ss = DG_USER_SS;
	dg_xstate_initial((uint8_t *)uc->context.fpstate);
}
