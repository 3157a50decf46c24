/* The engine for sync_units.c: as in a recording, but nothing is written. */
#include "engine.c"

void dg_identify(void)
{
}

bool test_start(void);
bool test_start(void)
{
	if (!dg_map_private(DG_ENGINE_CONTROL, dg_control_bytes()) || !dg_sync_start())
		return false;
	DG_CONTROL->stopped = DG_LIMIT_DISK;
	dg_mode = DG_MODE_RECORD;
	return true;
}

/* Makes the calling thread known. */
bool test_thread(uint32_t index);
bool test_thread(uint32_t index)
{
	struct dg_rthread *t = dg_rthread_new(index);

	if (!t)
		return false;
	t->tid = t->real_tid = (uint32_t)dg_sys0(SYS_gettid);
	t->state = DG_R_RUNNING;
	dg_me = t;
	return true;
}

