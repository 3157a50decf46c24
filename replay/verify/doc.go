// Package verify compares the end of a replay with the recorded one: threads, registers, mappings
// and every byte of memory that the core has, except where the recording cannot determine it.
package verify
