// Package collected is the form in which a collector of cores hands them over: a directory with the
// core, the executable and libraries that it needs, and what the host knew of the crash.
//
//	core              the core, compressed by zstd
//	entry.json        Facts
//	objects/BUILD-ID  a file that was mapped; one without a build-id has its own name
package collected
