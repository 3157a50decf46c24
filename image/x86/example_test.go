package x86_test

import (
	"fmt"

	"diagnose/image/x86"
)

// What a store writes, and which registers its address is made of.
func ExampleDecode() {
	inst, err := x86.Decode([]byte{0x48, 0x89, 0x44, 0xcf, 0x10}, 0x401000)
	if err != nil {
		panic(err)
	}
	fmt.Println(inst.Text())
	for _, o := range inst.Operands {
		if o.IsMemory {
			fmt.Println(o.Access, o.Size, "bytes at", o.Memory.String())
		}
	}
	value := map[x86.Reg]uint64{x86.RDI: 0x1000, x86.RCX: 2}
	address, known := inst.Operands[0].Memory.Address(func(r x86.Reg) (uint64, bool) { v, ok := value[r]; return v, ok })
	fmt.Printf("%#x %v\n", address, known)
	// Output:
	// mov qword ptr [rdi+rcx*8+0x10], rax
	// write 8 bytes at [rdi+rcx*8+0x10]
	// 0x1020 true
}
