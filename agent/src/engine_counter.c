/* rdtsc and rdtscp, which trap for a program that is recorded or replayed: the
 * tracer sends the thread to dg_entry_tsc. */
#include "engine.h"

static uint64_t dg_counter_replayed(uint64_t site, uint32_t *processor)
{
	const struct dg_event *e = dg_event_await(DG_EV_TSC, 0);
	uint64_t counter = (uint64_t)e->result;

	if (e->args)
		*processor = (uint32_t)dg_logged_args(e)[0];
	dg_event_take(e, DG_EV_TSC, 0, site, NULL, 0);
	return counter;
}

static uint64_t dg_counter_recorded(uint64_t site, uint32_t *processor)
{
	uint64_t counter = dg_read_counter(processor);
	struct dg_event *e = dg_event_begin(DG_EV_TSC, 0, site, 1, 0);

	if (e) {
		e->result = (int64_t)counter;
		dg_event_args(e)[0] = *processor;
		dg_event_commit(e);
	}
	return counter;
}

void dg_time_stamp(struct dg_frame *f) DG_HIDDEN;
void dg_time_stamp(struct dg_frame *f)
{
	bool with_processor = ((const uint8_t *)f->rip)[1] == 0x01; /* 0f 01 f9, against 0f 31 */
	uint32_t processor = 0;
	uint64_t counter;

	f->rip += with_processor ? 3 : 2;
	counter = dg_mode == DG_MODE_REPLAY ? dg_counter_replayed(f->rip, &processor) : dg_counter_recorded(f->rip, &processor);
	f->rax = (uint32_t)counter;
	f->rdx = counter >> 32;
	if (with_processor)
		f->rcx = processor;
}
