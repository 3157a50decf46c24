// Package recorder runs programs and records them. A launcher starts the tracer, a process of
// its own; the tracer starts the program, gives the engine in each process the tables that it
// needs, and writes the manifest, the core and the tables of each process's recording. The
// engine itself writes the log (agent/src/engine).
package recorder
