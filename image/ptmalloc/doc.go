// Package ptmalloc reads the heap of glibc's malloc from the memory of a process: its
// arenas, their chunks, and the lists of free chunks. It needs neither debug information
// nor symbols of the C library: the layout follows from the library's version and from
// the structures themselves, and where these do not agree with each other the heap is
// not read at all.
//
// The layouts are those of glibc 2.17 to 2.43 on x86-64 (malloc/malloc.c, struct
// malloc_chunk, struct malloc_state and tcache_perthread_struct; malloc/arena.c, struct
// _heap_info).
package ptmalloc
