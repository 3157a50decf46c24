// Package nightly measures how well failures are grouped, and how fast nights are. Its
// tests make failures from programs with one bug each, labelled by the program, have a
// night diagnose them, and compare the clusters with the labels; and they let a corpus
// grow by copies.
package nightly
