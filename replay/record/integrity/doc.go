// Package integrity checks whether all files of a recording, and of its children, are whole.
package integrity
