// Package tree builds programs from their sources, in a private directory, once for each
// kind of build, and again after a bug was put into one file.
package tree
