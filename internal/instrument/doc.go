// Package instrument makes of a compiler's command line one that compiles for
// the runtime of instrumented programs: -fsanitize=thread, whose calls before
// each access are points where a schedule can preempt a thread, linked with our
// runtime in the place of libtsan.
package instrument
