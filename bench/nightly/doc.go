// Package nightly measures how well failures are grouped: its test makes failures from
// the programs of testdata/cause, each labelled by the program whose bug it is, has a
// night diagnose them, and compares the clusters with the labels.
package nightly
