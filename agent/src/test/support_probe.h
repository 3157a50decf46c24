#ifndef SUPPORT_PROBE_H
#define SUPPORT_PROBE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return addresses from the caller's on, as dg_stack_at finds them. */
unsigned support_stack(uint64_t *pc, unsigned limit);

/* The site of this very call; its return addresses; the number of all. */
unsigned support_site(void);
unsigned support_site_frames(unsigned site, uint64_t *pc);
unsigned support_sites(void);

#ifdef __cplusplus
}
#endif

#endif
