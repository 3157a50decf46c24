#ifndef DG_TSAN_H
#define DG_TSAN_H

/* Within what it is linked into; twice there does no harm. */
#define DG_OWN __attribute__((visibility("hidden"), weak))

void dg_tsan_nothing(void) DG_OWN;
void __tsan_init(void) DG_OWN;

#endif
