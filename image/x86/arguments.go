package x86

// ArgumentRegisters hand over the first integers and pointers of a call, in their order (System V ABI, AMD64 supplement, 3.2.3).
var ArgumentRegisters = [...]Reg{RDI, RSI, RDX, RCX, R8, R9}
