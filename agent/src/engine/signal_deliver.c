/* A signal for the program: the event of it, and its handler, which the thread
 * will continue with. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/free.h"
#include "syscall.h"

struct dg_delivery {
	int signal;
	enum dg_signal_place place;
	struct dg_action action;
	bool passed;      /* dg_signal_passed */
	uint64_t blocked; /* while the handler runs, besides the action's: what the interrupted call blocked */
	const uint8_t *info;
	struct dg_signal_state state;
};

#define DG_SIGNAL_ARGS 9

/* me->pending in a replay, of a signal that dg_signal_passed is for. */
#define DG_PENDING_PASSED 2u

/* The event, to be committed; NULL: nothing is logged any more. */
static struct dg_event *dg_signal_log(const struct dg_delivery *d, const struct dg_rthread *me, const struct dg_ucontext *uc)
{
	struct dg_range list[DG_RANGES];
	struct dg_signal_ranges ranges = { .range = list, .most = DG_RANGES };
	uint64_t pc = uc->context.registers[DG_REG_RIP], digests[3] = { 0, 0, 0 };
	struct dg_event *e;
	uint64_t *args;

	if (d->place == DG_SIGNAL_ASYNC) {
		ranges.range[ranges.count++] = dg_live_stack(me, uc->context.registers[DG_REG_RSP]);
		if (DG_CONTROL->threads == 1 || (dg_hunting() && dg_hunt_alone()))
			dg_data_ranges(&ranges);
		digests[0] = dg_state_digest(&d->state, uc);
		digests[1] = dg_digest((const void *)ranges.range[0].address, ranges.range[0].length, 0);
		digests[2] = dg_data_digest(&ranges);
	}
	e = dg_event_begin(DG_EV_SIGNAL, (uint64_t)d->signal, pc, DG_SIGNAL_ARGS,
			   3 * sizeof(struct dg_payload) + DG_SIGINFO_BYTES + sizeof(d->state) +
				   ranges.count * sizeof(struct dg_range) + dg_words_room(&ranges));
	if (!e)
		return NULL;
	args = dg_event_args(e);
	args[0] = d->place;
	args[1] = pc;
	args[2] = digests[0];
	args[3] = digests[1];
	args[4] = digests[2];
	args[5] = ranges.left_out;
	args[6] = d->action.handler;
	args[7] = d->action.flags;
	args[8] = d->action.mask;
	dg_event_payload(e, DG_PAYLOAD_INFO, 0, d->info, DG_SIGINFO_BYTES);
	dg_event_payload(e, DG_PAYLOAD_REGISTERS, 0, &d->state, sizeof(d->state));
	if (ranges.count) {
		dg_event_payload(e, DG_PAYLOAD_RANGES, 0, ranges.range, ranges.count * (uint32_t)sizeof(struct dg_range));
		dg_words_log(e, &ranges);
	}
	return e;
}

/* Of a handler that runs elsewhere than it did: its frame, and the pc that the
 * log has for where it returns to. */
static struct dg_passed {
	uint64_t frame, pc;
} dg_passed[DG_RTHREADS];

/* Everything but the place is the log's. */
static void dg_signal_replay(struct dg_delivery *d, const struct dg_ucontext *uc)
{
	uint64_t pc = uc->context.registers[DG_REG_RIP], came[2] = { d->place, pc };
	const struct dg_payload *info, *state;
	const struct dg_event *e;
	const uint64_t *args;

	if (dg_free_signal(d, uc))
		return;
	e = dg_event_await(DG_EV_SIGNAL, (uint64_t)d->signal);
	if (d->passed)
		dg_passed[dg_me->index].pc = pc = came[1] = e->site;
	info = dg_logged_payload(e, 0);
	state = dg_logged_payload(e, 1);
	args = dg_logged_args(e);
	if (e->kind == DG_EV_SIGNAL &&
	    (e->args < DG_SIGNAL_ARGS || !info || info->length != DG_SIGINFO_BYTES || !state ||
	     state->length != sizeof(d->state)))
		dg_diverge(DG_DIFFERS_LOG, e, 0, 0, 0);
	dg_event_take(e, DG_EV_SIGNAL, (uint64_t)d->signal, pc, came, 2);
	d->info = dg_payload_bytes(info);
	d->action.handler = args[6];
	d->action.flags = args[7];
	d->action.mask = args[8];
	dg_copy(&d->state, dg_payload_bytes(state), sizeof(d->state));
}

/* The kernel's answer to a frame that has no room: the default action of
 * SIGSEGV, with the thread where it was. */
static void dg_no_room(struct dg_delivery *d)
{
	siginfo_t info;

	dg_action_default(SIGSEGV);
	if (d->place == DG_SIGNAL_FAULT && d->signal == SIGSEGV)
		return;
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGSEGV;
	info.si_code = SI_TKILL;
	dg_requeue(SIGSEGV, (const uint8_t *)&info);
}

/* Makes the context, with which the thread will continue, enter the program's
 * handler. The thread is in the engine, and has all signals blocked. */
static void dg_deliver(struct dg_rthread *me, struct dg_ucontext *uc, struct dg_delivery *d)
{
	struct dg_frame_place place;
	struct dg_event *e = NULL;

	dg_state_of(&d->state, me, uc, d->place == DG_SIGNAL_FAULT);
	if (dg_mode == DG_MODE_REPLAY)
		dg_signal_replay(d, uc);
	else
		e = dg_signal_log(d, me, uc);
	/* This writes to the program's stack already. */
	if (!dg_frame_find(me, uc->context.registers[DG_REG_RSP], d->action.flags, &place)) {
		dg_no_room(d);
		return;
	}
	if (e)
		dg_event_commit(e);
	if (dg_hunting())
		dg_hunt_signalled();
	if (d->passed)
		dg_passed[me->index].frame = place.frame;
	else if (dg_passed[me->index].frame == place.frame)
		dg_passed[me->index].frame = 0; /* the other one was left by longjmp */
	dg_frame_write(me, &place, uc, d->info, &d->state);
	dg_frame_enter(uc, &place, d->signal, d->action.handler);
	me->mask = (d->blocked | d->action.mask | (d->action.flags & SA_NODEFER ? 0 : DG_BIT(d->signal))) & ~DG_NEVER_BLOCKED;
	uc->mask = dg_kernel_mask(me->mask);
	if (d->action.flags & SA_RESETHAND) {
		dg_actions[d->signal].handler = (uint64_t)SIG_DFL;
		dg_action_default(d->signal);
	}
}

/* What the kernel does with a signal that has no handler, or not now. False:
 * the program's handler gets it. */
static bool dg_disposed(struct dg_rthread *me, struct dg_ucontext *uc, const struct dg_delivery *d)
{
	uint64_t handler = d->action.handler;
	bool fault = d->place == DG_SIGNAL_FAULT, blocked = me->mask & DG_BIT(d->signal) & DG_RAISED;

	if (handler > (uint64_t)SIG_IGN && !blocked)
		return false;
	if (fault) {
		dg_action_default(d->signal); /* the instruction raises it again */
	} else if (blocked) {
		uc->mask |= DG_BIT(d->signal); /* until the program unblocks it */
		dg_mask_set(DG_ALL | (uc->mask & DG_RAISED)); /* or it returned here at once */
		dg_requeue(d->signal, d->info);
	} else if (handler == (uint64_t)SIG_DFL) {
		dg_mask_set(DG_ALL | (DG_BIT(d->signal) & DG_RAISED)); /* it comes where the program continues, with its registers */
		dg_requeue(d->signal, d->info);
	}
	return true;
}
