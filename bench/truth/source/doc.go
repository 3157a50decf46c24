// Package source describes the real programs that bugs are put into, and fetches their
// sources from Debian's source packages. The sources never become part of the repository.
package source
