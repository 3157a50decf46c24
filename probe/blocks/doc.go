// Package blocks reads debug code: C that runs at places of a replay. It is marked in a copy of the
// program's source, or is in a file of its own that names the places.
package blocks
