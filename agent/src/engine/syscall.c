/* The entry of every system call of the program, and the calls that are not
 * treated as their row says. */
#include "engine/engine.h"
#include "engine/free.h"
#include "hunt/hunt.h"
#include "engine/table.h"
#include "syscall.h"

#include <asm/prctl.h>
#include <errno.h>
#include <linux/close_range.h>
#include <sys/prctl.h>

static bool dg_own_descriptor(uint64_t fd)
{
	const struct dg_control *c = DG_CONTROL;

	return c->mode == DG_MODE_RECORD && (uint32_t)fd <= INT32_MAX &&
	       ((int32_t)fd == c->log_fd || (int32_t)fd == c->data_fd);
}

/* The engine's descriptors are passed over. */
static long dg_close_range(const uint64_t args[6])
{
	uint32_t own[2] = { (uint32_t)DG_CONTROL->log_fd, (uint32_t)DG_CONTROL->data_fd };
	uint32_t from = (uint32_t)args[0], to = (uint32_t)args[1];
	long result = 0;

	if (from > to || args[2] & ~(uint64_t)(CLOSE_RANGE_CLOEXEC | CLOSE_RANGE_UNSHARE))
		return dg_sys3(SYS_close_range, args[0], args[1], args[2]);
	if (own[0] > own[1]) {
		uint32_t higher = own[0];

		own[0] = own[1];
		own[1] = higher;
	}
	for (uint32_t i = 0; i < 2 && !result; i++) {
		if (own[i] > INT32_MAX || own[i] < from || own[i] > to)
			continue; /* not open, or not among them */
		if (own[i] > from)
			result = dg_sys3(SYS_close_range, from, own[i] - 1, args[2]);
		from = own[i] + 1;
	}
	if (!result && from <= to && from)
		result = dg_sys3(SYS_close_range, from, to, args[2]);
	return result;
}

static void dg_descriptor_call(struct dg_frame *f, const struct dg_call *c)
{
	bool own = dg_own_descriptor(c->args[0]) || (c->nr != SYS_close && dg_own_descriptor(c->args[1]));

	if (DG_CONTROL->mode == DG_MODE_RECORD && c->nr == SYS_close_range)
		dg_call_answer(f, c, dg_close_range(c->args));
	else if (own)
		dg_call_answer(f, c, -EBADF);
	else
		dg_emulate(f, c);
}

/* A filter would hit the engine's own calls, so none is set. */
static void dg_seccomp(struct dg_frame *f, const struct dg_call *c)
{
	bool filter = c->nr == SYS_prctl || c->args[0] <= 1;

	if (!filter) {
		dg_emulate(f, c);
		return;
	}
	if (DG_CONTROL->mode == DG_MODE_RECORD)
		dg_limit(DG_LIMIT_SYSCALL, c->site, "answered, but the filter was not set", c);
	dg_refusal_tell(c, 0);
	dg_call_answer(f, c, 0);
}

static void dg_prctl(struct dg_frame *f, const struct dg_call *c)
{
	switch (c->args[0]) {
	case PR_SET_SECCOMP:
		dg_seccomp(f, c);
		return;
	case PR_SET_NAME:
		dg_call_again(f, c);
		return;
	case PR_SET_TSC: /* it is the engine's */
		dg_call_answer(f, c, 0);
		return;
	case 59: /* PR_SET_SYSCALL_USER_DISPATCH */
		dg_call_refuse(f, c, -EINVAL);
		return;
	default:
		dg_emulate(f, c);
	}
}

static void dg_arch_prctl(struct dg_frame *f, const struct dg_call *c)
{
	if (c->args[0] == ARCH_SET_FS || c->args[0] == ARCH_SET_GS || c->args[0] == ARCH_GET_FS ||
	    c->args[0] == ARCH_GET_GS)
		dg_call_again(f, c);
	else if (c->args[0] == 0x1012 /* ARCH_SET_CPUID */)
		dg_call_refuse(f, c, -ENODEV);
	else
		dg_call_limit(f, c);
}

static void dg_special(struct dg_frame *f, const struct dg_call *c)
{
	switch (c->nr) {
	case SYS_close:
	case SYS_dup2:
	case SYS_dup3:
	case SYS_close_range:
		dg_descriptor_call(f, c);
		return;
	case SYS_prctl:
		dg_prctl(f, c);
		return;
	case SYS_seccomp:
		dg_seccomp(f, c);
		return;
	case SYS_arch_prctl:
		dg_arch_prctl(f, c);
		return;
	case SYS_ptrace:
		dg_ptrace(f, c);
		return;
	default:
		dg_futex_call(f, c);
	}
}

static const struct dg_row dg_row_unknown = { .args = 6 };

static void dg_call_rare(struct dg_frame *f, const struct dg_call *c)
{
	switch (c->row->class_) {
	case DG_CALL_EMULATE:
		dg_call_replay(f, c);
		return;
	case DG_CALL_AGAIN:
		dg_call_again(f, c);
		return;
	case DG_CALL_MEMORY:
		if (DG_CONTROL->mode == DG_MODE_RECORD)
			dg_memory_record(f, c);
		else
			dg_memory_replay(f, c);
		return;
	case DG_CALL_THREAD:
		dg_thread_call(f, c);
		return;
	case DG_CALL_SIGNAL:
		dg_signal_call(f, c);
		return;
	case DG_CALL_SPECIAL:
		dg_special(f, c);
		return;
	case DG_CALL_REFUSE:
		dg_call_refuse(f, c, -ENOSYS);
		return;
	default:
		dg_call_limit(f, c);
	}
}

extern const char dg_exit_check[] DG_HIDDEN; /* engine/entry.S */

void dg_system_call(struct dg_frame *f)
{
	const struct dg_stub *stub = (const struct dg_stub *)f->rcx;
	struct dg_call c = {
		.nr = (long)f->rax,
		.args = { f->rdi, f->rsi, f->rdx, f->r10, f->r8, f->r9 },
		.site = f->rip,
	};

	dg_free_enter(f, dg_system_call);
	c.row = (uint64_t)c.nr < DG_ROWS ? dg_rows + c.nr : &dg_row_unknown;
	if (!c.row->name)
		c.row = &dg_row_unknown;
	if (f->kind == DG_ENTRY_SYSCALL) {
		f->origin = stub->origin;
		c.site = stub->resume;
	}
	if (dg_me->state == DG_R_STARTING)
		dg_thread_start();
	dg_gates_open();
	if (dg_counter_traps != dg_me->counter_traps)
		dg_counter_follow();
	if (f->kind == DG_ENTRY_SYSCALL && stub->kind != DG_STUB_CALL)
		dg_clone_stub(f, &c, stub);
	else if (DG_CONTROL->mode != DG_MODE_RECORD)
		(dg_free() ? dg_free_system_call : dg_call_rare)(f, &c);
	else if (dg_hunting())
		dg_hunt_system_call(f, &c);
	else {
		dg_call_way(&c);
		if (c.row->class_ != DG_CALL_EMULATE)
			dg_call_rare(f, &c);
		else if (!dg_simple_record(f, &c))
			dg_call_record(f, &c);
	}
	dg_turn_leave();
	f->rcx = f->rip;
	f->r11 = f->rflags;
	/* No return: see dg_blocking_done. The way out takes nothing from the stack. */
	((void (*)(void))dg_exit_check)();
	__builtin_unreachable();
}
