package x86

// ArgumentRegisters hand over the first integers and pointers of a call, in their order (System V ABI, AMD64 supplement, 3.2.3).
var ArgumentRegisters = [...]Reg{RDI, RSI, RDX, RCX, R8, R9}

// KeptRegisters have the same value after a call as before it (System V ABI, AMD64 supplement, figure 3.4), as has RSP.
var KeptRegisters = [...]Reg{RBX, RBP, R12, R13, R14, R15}
