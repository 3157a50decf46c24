// Package inline runs code of the tool at instructions of a traced program, inside of the process.
package inline
