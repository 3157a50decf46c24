// Package jemalloc reads the heap of jemalloc from the memory of a process: which object an address is
// in, how large its size class is, and whether it is in use, free in its slab, or in a thread's cache.
//
// The layouts are those of jemalloc 5.3 on x86-64 with pages of 4096 bytes and addresses of 48 bits:
// include/jemalloc/internal/rtree.h (struct rtree_s, rtree_leaf_elm_s, the compact form), edata.h (struct
// edata_s), slab_data.h, cache_bin.h (struct cache_bin_s), tcache_structs.h (struct tcache_slow_s,
// tcache_s) and sc.h (the size classes). The root of the radix tree, the size classes and the threads'
// caches are found by their form; what the tree leads to must lead back to it.
package jemalloc
