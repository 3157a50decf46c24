/* Where glibc has the id of a thread. */
#ifndef DG_TID_H
#define DG_TID_H

#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "syscall.h"

/* The offset in the main thread's control block, of so many bytes, of the word that has
 * the thread's id; 0: not found. It differs between versions of glibc. The kernel knows
 * it, for glibc has told it which word to clear when the thread is gone (set_tid_address).
 * One built without that question is asked nothing, and the word is told by its value:
 * after two pointers, so at a multiple of 8, where the upper half of a pointer, which may
 * be as small as an id (0x7fff), is not taken for it. */
static inline uint32_t dg_tid_offset(uint64_t block, uint32_t bytes, uint32_t tid)
{
	uint64_t cleared = 0;
	uint32_t found = 0, times = 0;

	if (!dg_sys2(SYS_prctl, PR_GET_TID_ADDRESS, &cleared) && cleared > block && cleared <= block + bytes - 4 &&
	    *(const uint32_t *)cleared == tid)
		return (uint32_t)(cleared - block);
	for (uint32_t at = 8; at < bytes; at += 8)
		if (*(const uint32_t *)(block + at) == tid) {
			found = at;
			times++;
		}
	return times == 1 ? found : 0;
}

#endif
