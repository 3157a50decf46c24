/* Included before every source: the functions that glibc 2.34 moved into libc.so.6 got a
 * new version there, by which a library that is built with it cannot be loaded by an older
 * one. The old versions are in both (glibc's NEWS for 2.34, and its Versions files). On an
 * older glibc they are in libpthread and libdl: see oldestFlags in build_product.go. */
#ifndef __ASSEMBLER__
#define DG_OLD_VERSION(name, version) __asm__(".symver " #name ", " #name "@GLIBC_" #version)

DG_OLD_VERSION(dlsym, 2.2.5);
DG_OLD_VERSION(dladdr1, 2.3.3);
#ifndef DG_RECORD /* which has a function of that name */
DG_OLD_VERSION(pthread_key_create, 2.2.5);
#endif
DG_OLD_VERSION(pthread_setspecific, 2.2.5);
DG_OLD_VERSION(pthread_attr_getstack, 2.2.5);
DG_OLD_VERSION(pthread_attr_setstack, 2.2.5);
DG_OLD_VERSION(pthread_attr_getstacksize, 2.2.5);
DG_OLD_VERSION(pthread_attr_getguardsize, 2.2.5);
DG_OLD_VERSION(pthread_attr_setguardsize, 2.2.5);
DG_OLD_VERSION(pthread_getattr_default_np, 2.18);
DG_OLD_VERSION(_pthread_cleanup_push, 2.2.5);
DG_OLD_VERSION(_pthread_cleanup_pop, 2.2.5);

#undef DG_OLD_VERSION
#endif
