/* See engine/wait.h. */
#include "engine/engine.h"
#include "engine/wait.h"
#include "engine/sync.h"
#include "engine/thread.h"

static bool dg_wait_over(const struct dg_wait *w)
{
	if (w->expired)
		return true;
	switch (w->how) {
	case DG_WAIT_CHANGE:
		/* The thread that has it may have freed the memory as well. */
		return !dg_readable(w->word, 4) || __atomic_load_n((const uint32_t *)w->word, __ATOMIC_ACQUIRE) != w->value;
	case DG_WAIT_NOTHING:
		return true;
	default:
		return w->woken;
	}
}

/* A thread that others know of and that may not be made yet. */
static bool dg_wait_cloned(const struct dg_rthread *t)
{
	const struct dg_fact *parent = &dg_facts[dg_facts[t->index].parent % DG_RTHREADS];

	return parent->creating != t->index || parent->cloned ||
	       dg_rthread_number(dg_facts[t->index].parent)->waits_for == DG_EV_CREATED;
}

/* Whether the thread is there, and can be given the right. One that seems to run
 * without it has woken for nothing and is about to wait again. */
static bool dg_wait_stands(const struct dg_rthread *t)
{
	if (t->state == DG_R_STARTING && t != dg_me)
		return dg_wait_cloned(t);
	return t->state != DG_R_NONE && t->state != DG_R_ENDED;
}

/* Follows the chain: a thread waits for a mutex, its owner for another. */
static bool dg_wait_cycle(const struct dg_rthread *from, const struct dg_wait *(*of)(const struct dg_rthread *))
{
	const struct dg_rthread *t = from;

	for (uint32_t steps = 0; steps < DG_CONTROL->threads; steps++) {
		const struct dg_rthread *owner = NULL;
		uint32_t tid;

		if (t->waits_for != DG_EV_MUTEX || of(t)->how != DG_WAIT_CHANGE || !dg_readable(t->waits_object, 16))
			return false;
		tid = ((const struct dg_mutex *)t->waits_object)->owner;
		for (uint32_t i = 1; tid && i <= DG_CONTROL->threads && !owner; i++)
			if (dg_rthread_number(i)->tid == tid && dg_rthread_number(i)->state != DG_R_ENDED)
				owner = dg_rthread_number(i);
		if (!owner || owner == from)
			return owner;
		t = owner;
	}
	return false;
}
