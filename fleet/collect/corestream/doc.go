// Package corestream rewrites an ELF core while it is read: from the kernel's pipe the core is seen
// once, in order, and it may be larger than the memory. The new core lacks the pages that are equal
// to those of files that are kept elsewhere, and secrets of the environment are blanked.
//
// The order of what the kernel writes is that of elf_core_dump (fs/binfmt_elf.c): the header, the
// program headers, the notes, the contents of the segments. A stream in another order is refused.
package corestream
