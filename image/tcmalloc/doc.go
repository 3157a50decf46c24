// Package tcmalloc reads the heap of gperftools' tcmalloc from the memory of a process: which object an
// address is in, how large its size class is, and whether it is in use, or free in a span, in a transfer
// cache, or in a thread's cache.
//
// The layouts are those of gperftools 2.10 on x86-64 with pages of 8192 bytes: src/common.h (class SizeMap),
// span.h (struct Span), central_freelist.h (class CentralFreeList), thread_cache.h (class ThreadCache) and
// pagemap.h (TCMalloc_PageMap2). All are found by their form, and must agree with each other. The
// free objects of a class are linked through their first words. An object counts as in use only if all lists of its
// class are whole.
package tcmalloc
