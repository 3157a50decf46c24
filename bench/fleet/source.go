package main

import _ "embed"

// diagnoseSource is the program that stands for diagnose.
//
//go:embed source/diagnose.c
var diagnoseSource string
