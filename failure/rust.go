package failure

import "diagnose/evidence"

func rustPanicking(names []string) bool {
	return hasPrefix(names, "core::panicking::", "std::panicking::", "std::rt::panic_count") ||
		has(names, "rust_begin_unwind", "rust_panic", "__rust_start_panic")
}

func (s *scene) rustPanic(f *evidence.Failure, names []string) {
	f.Kind = evidence.RustPanic
	f.Exception = &evidence.Exception{WhatUnavailable: "the panic's message was formatted and is not kept", Proof: evidence.FromCore}
}
